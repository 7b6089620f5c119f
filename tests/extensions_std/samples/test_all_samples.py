"""All samples in one conversation: none is in another's way, and nothing in it is left to chance."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.actors.extensions_on_disk import write
from tests.extensions_std.samples.all_samples import NAMES, session_file


def project(folder: Path) -> str:
    return str(write(folder, {"notes.txt": "a loop\n", ".env": "KEY=1\n", ".claude/rules/tests.md": "Test it.\n"}))


@pytest.mark.slow
def test_all_samples_can_be_loaded_together(tmp_path: Path) -> None:
    held, unloaded, errors = session_file(project(tmp_path))

    assert unloaded == []
    assert errors == []
    assert len(held.splitlines()) > 40


@pytest.mark.slow
@pytest.mark.rule("EVT-1")
def test_two_runs_with_all_samples_leave_the_same_bytes(tmp_path: Path) -> None:
    folder = project(tmp_path)
    module = "tests.extensions_std.samples.all_samples"

    runs = [
        subprocess.run(
            [sys.executable, "-m", module, folder], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]

    assert runs[0] == runs[1]
    assert len(NAMES) > 20
