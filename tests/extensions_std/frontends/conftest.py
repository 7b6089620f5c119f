"""What the tests of the command share."""

from pathlib import Path

import pytest

from tests.extensions_std.frontends.command import Place, place


@pytest.fixture
def where(tmp_path: Path) -> Place:
    """An empty home and an empty project."""
    return place(tmp_path)
