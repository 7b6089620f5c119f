"""Where the reference cannot be installed, that is said, and nothing half done is taken for an installation."""

import json
from pathlib import Path

import pytest

from tests.reference.install import install
from tests.reference.places import PINNED


def test_without_npm_nothing_is_touched(tmp_path: Path) -> None:
    said = install(tmp_path / "reference", None)

    assert said == "npm is not installed here"
    assert list(tmp_path.iterdir()) == []


def test_a_failing_npm_is_told_in_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "installed.json").write_text("{}", "utf-8")

    said = install(tmp_path, _npm(tmp_path, "echo 'no such host' >&2; exit 1"))

    assert said == "`npm install` failed: no such host"
    assert not (tmp_path / "installed.json").exists()


def test_an_installation_without_its_program_is_none(tmp_path: Path) -> None:
    said = install(tmp_path, _npm(tmp_path, "exit 0"))

    assert said == "the package `node` brought no program for this machine"
    assert not (tmp_path / "installed.json").exists()


def test_an_npm_that_holds_the_script_back_is_given_the_approval(tmp_path: Path) -> None:
    program = "node_modules/node/bin/node"
    script = f"case $1 in install-scripts) touch approved;; rebuild) [ ! -e approved ] || install -D /dev/null {program};; esac"

    said = install(tmp_path, _npm(tmp_path, script))

    assert said is None
    assert (tmp_path / "installed.json").read_bytes() == PINNED.read_bytes()


@pytest.mark.parametrize("name", ["@earendil-works/pi-coding-agent", "node"])
def test_every_package_has_one_version(name: str) -> None:
    version = json.loads(PINNED.read_text("utf-8"))["dependencies"][name]

    assert all(part.isdigit() for part in version.split("."))


def _npm(folder: Path, script: str) -> str:
    """A program that npm is replaced by."""
    program = folder / "npm"
    program.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    program.chmod(0o755)
    return str(program)
