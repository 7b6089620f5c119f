"""The recorded files under data/ are the shared ones, byte by byte."""

from pathlib import Path
from typing import Final

import pytest

from tests.conformance.recorded import DATA

SHARED: Final = Path(__file__).resolve().parents[3] / "shared" / "conformance"


def test_the_copied_conformance_data_equals_the_shared_one_byte_by_byte() -> None:
    if not SHARED.is_dir():
        pytest.skip(f"the shared conformance data is not beside this repository ({SHARED.parent.name}/conformance is missing)")

    assert _contents(DATA) == _contents(SHARED)


def _contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
