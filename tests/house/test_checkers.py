"""The checkers find nothing. `just check` runs these tests; the rules and their exceptions are in pyproject.toml and .flake8."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.house.sources import PYTHON, ROOT, files, text

PYTHON_FOLDERS: Final = ("src", "kernel", "actors", "extensions_std", "bench", "design", "tests")
"""Ruff and flake8 do not follow the links in src, so they get the real folders; mypy must not (two names a file)."""
FOLDERS: Final = tuple(folder for folder in PYTHON_FOLDERS if (ROOT / folder).is_dir())
ASYNC: Final = tuple(file for file in files(*PYTHON) if "async def" in text(file))
"""flake8-async takes a fifth of a second a file, and the others have nothing for it to find."""
CHECKERS: Final = {
    "format": ("ruff", "format", "--check", "--quiet", *FOLDERS),
    "lint": ("ruff", "check", "--output-format=concise", *FOLDERS),
    "async": ("flake8", *ASYNC),
    "types": ("mypy",),
    "contracts": ("lint-imports", "--no-cache"),
}
BROKEN: Final = {
    "Arrows point down": ("kernel/broken.py", "import camshaft.actors"),
    "The kernel knows no clock": ("kernel/broken.py", "import time"),
    "Each library of the kernel has its one place": ("actors/broken.py", "import msgspec"),
    "Extensions use the public faces": ("extensions_std/broken.py", "import camshaft.kernel.messages"),
}
"""Contract, and an import that breaks it."""


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_the_checker_finds_nothing(checker: str) -> None:
    shown = _run(CHECKERS[checker], ROOT)

    if shown.returncode != 0:
        pytest.fail(f"{' '.join(CHECKERS[checker])}\n{shown.stdout}{shown.stderr}", pytrace=False)


@pytest.mark.slow
@pytest.mark.parametrize("contract", BROKEN)
def test_a_contract_that_is_broken_on_purpose_fails(contract: str, tmp_path: Path) -> None:
    file, line = BROKEN[contract]
    _copy_of_the_packages(tmp_path)

    (tmp_path / file).write_text(f'"""Breaks a contract."""\n\n{line}\n', encoding="utf-8")
    shown = _run(CHECKERS["contracts"], tmp_path, PYTHONPATH=str(tmp_path / "src"))

    assert shown.returncode != 0
    assert any(row.startswith(contract) and "BROKEN" in row for row in shown.stdout.splitlines()), shown.stdout


def _run(command: tuple[str, ...], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    tool = Path(sys.executable).with_name(command[0])
    return subprocess.run([tool, *command[1:]], cwd=folder, env=environment or None, capture_output=True, text=True)


def _copy_of_the_packages(folder: Path) -> None:
    """The three floors with an `__init__` each: enough for a contract to be judged."""
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copytree(ROOT / "src", folder / "src", symlinks=True, ignore=shutil.ignore_patterns("*.egg-info", "__main__.py"))
    (folder / "src/camshaft/__init__.py").write_text('"""A copy."""\n', encoding="utf-8")
    for floor in ("kernel", "actors", "extensions_std"):
        (folder / floor).mkdir()
        (folder / floor / "__init__.py").write_text('"""A copy."""\n', encoding="utf-8")
    (folder / "kernel/messages.py").write_text('"""A copy."""\n', encoding="utf-8")
