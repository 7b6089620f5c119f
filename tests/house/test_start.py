"""What a fresh interpreter loads: nothing that only some programs need."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.house.sources import files

LATE: Final = ("mcp", "pydantic", "httpx2", "jsonschema", "asyncio", "importlib.metadata")
"""Loaded at first use: together half a second of start-up, for what many programs never do."""
FACES: Final = ("kernel/codec.py", "actors/api.py", "actors/host.py")
DOORS: Final = ["camshaft", *(f"camshaft.{file[:-3].replace('/', '.')}" for file in files("kernel", "actors") if file in FACES)]


@pytest.mark.slow
@pytest.mark.parametrize("module", DOORS)
def test_importing_a_public_door_loads_nothing_for_later(module: str, tmp_path: Path) -> None:
    program = f"import sys, {module}; print(*[name for name in {LATE!r} if name in sys.modules])"

    shown = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert shown.stdout.split() == []
