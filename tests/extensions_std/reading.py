"""A page of design/ followed by a reader: its blocks in order, in an empty folder with an empty home.

A block with a name above it is saved; a block of `sh` is run, and prints what the `text` block after it says, standard
error included. Only `pip` is played, because a test has no network: the first call by the environment that runs the
tests, the second by what pip would leave of the reader's package.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import attrs

from tests.house.sources import ROOT

BLOCK: Final = re.compile(
    r"^(?:\*\*`(?P<name>\S+)`\*\*\n\n)?```(?P<kind>\w+)\n(?P<body>.*?)^```$(?:\n\n```text\n(?P<printed>.*?)^```$)?", re.M | re.S
)
FOLDER: Final = "/home/ada/play"
"""What the page calls the reader's folder."""
SECONDS: Final = re.compile(r"in \d+\.\d\ds")


@attrs.frozen
class Reader:
    """A folder, a home, and what is installed."""

    folder: Path
    home: Path
    site: Path

    @classmethod
    def in_(cls, folder: Path) -> "Reader":
        reader = cls(folder / "play", folder / "home", folder / "site")
        for each in (reader.folder, reader.home, reader.site):
            each.mkdir()
        return reader

    def run(self, command: str) -> str:
        """What it prints. Fails if it fails."""
        environment = {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.defpath]),
            "HOME": str(self.home),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(self.site)]),
        }
        shown = subprocess.run(
            ["bash", "-ec", command], cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert shown.returncode == 0, f"{command}{shown.stdout}"
        return shown.stdout.replace(os.path.realpath(self.folder), FOLDER).replace(str(self.folder), FOLDER)

    def install(self) -> None:
        """What `pip install .` leaves of a project of modules and entry points."""
        project = tomllib.loads((self.folder / "pyproject.toml").read_text())
        name, version = project["project"]["name"], project["project"]["version"]
        for module in project["tool"]["setuptools"]["py-modules"]:
            shutil.copy(self.folder / f"{module}.py", self.site)
        metadata = self.site / f"{name.replace('-', '_')}-{version}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        groups = project["project"]["entry-points"]
        lines = [line for group, entries in groups.items() for line in (f"[{group}]", *[f"{key} = {entries[key]}" for key in entries])]
        (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")


def play(reader: Reader, block: re.Match[str]) -> None:
    """Does what a block asks for."""
    name, body = block["name"], block["body"]
    if name is not None:
        (reader.folder / name).write_text(body, encoding="utf-8")
        return
    assert block["kind"] == "sh"
    if body.startswith("python3 -m venv"):
        return
    if body.startswith("pip install --quiet .\n"):
        reader.install()
        body = body.removeprefix("pip install --quiet .\n")
    assert block["printed"] is not None, f"nobody is told what this prints: {body}"
    printed = reader.run(body)
    assert SECONDS.sub("in 0.50s", printed) == SECONDS.sub("in 0.50s", block["printed"]), f"{body}prints\n{printed}"


def follow(reader: Reader, page: str) -> list[re.Match[str]]:
    """Follows a whole page from top to bottom; its blocks. Fails if a block does not do what the page says, or is none that is followed."""
    found = list(BLOCK.finditer(page))
    for block in found:
        play(reader, block)
    assert "```" not in BLOCK.sub("", page), "every block is followed"
    return found


def type_errors(reader: Reader, page: str) -> str:
    """What mypy says of the Python files of a page."""
    for block in BLOCK.finditer(page):
        if block["name"] is not None and block["name"].endswith(".py"):
            (reader.folder / block["name"]).write_text(block["body"], encoding="utf-8")
    return reader.run("python -m mypy --strict --cache-dir=../cache --follow-imports=silent *.py")
