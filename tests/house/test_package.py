"""What is published is what stands in the tree: wheel and sdist hold every module, and the demo runs from the wheel.

The wheel is built from the sdist, as an index would do it, and once more from the tree. It is installed into an environment
of its own, with what it depends on, so this test needs the package index.
"""

import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.house.sources import ROOT, files

FLOORS = ("kernel", "actors", "extensions_std")
COPIED = (*FLOORS, "src", "pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `sdist`, `from_sdist` and `from_tree` in it."""
    folder = tmp_path_factory.mktemp("package")
    project = folder / "project"
    _copy_of_the_project(project)
    _build(project, folder / "sdist", "--sdist")
    _build(project, folder / "from_tree", "--wheel")
    with tarfile.open(_only(folder / "sdist")) as archive:
        # What `filter="data"` does, also on the first releases of Python 3.11, which have no such argument.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder / "unpacked")
    _build(_only(folder / "unpacked"), folder / "from_sdist", "--wheel")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("wheel", ["from_tree", "from_sdist"])
def test_the_wheel_holds_every_module_once(built: Path, wheel: str) -> None:
    expected = {f"camshaft/{file}" for file in files(*FLOORS)} | {file.removeprefix("src/") for file in files("src/camshaft")}

    held = [name for name in zipfile.ZipFile(_only(built / wheel)).namelist() if name.endswith(".py")]

    assert sorted(name for name in held if "/demo_project/" not in name) == sorted(expected)


@pytest.mark.slow
def test_the_wheel_says_that_it_is_typed_and_under_which_licence(built: Path) -> None:
    names = zipfile.ZipFile(_only(built / "from_sdist")).namelist()

    assert "camshaft/py.typed" in names
    assert any(name.endswith("/LICENSE") for name in names)


@pytest.mark.slow
def test_the_demo_runs_from_the_wheel_in_an_environment_of_its_own(built: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    install: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", _only(built / "from_sdist")]
    subprocess.run(install, cwd=tmp_path, check=True)

    shown = subprocess.run([tmp_path / "venv/bin/camshaft", "--demo"], cwd=tmp_path, capture_output=True, text=True)

    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert shown.stdout.strip() != ""


def _copy_of_the_project(folder: Path) -> None:
    folder.mkdir()
    left_out = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=left_out)
        else:
            shutil.copy(ROOT / name, folder)


def _build(project: Path, out: Path, kind: str) -> None:
    built = subprocess.run([sys.executable, "-m", "build", kind, "--outdir", out], cwd=project, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr


def _only(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path
