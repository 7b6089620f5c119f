"""One running reference for all tests of this folder; without an installed one they are skipped."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reference.places import missing
from tests.reference.process import Reference, running

pytest.register_assert_rewrite("tests.reference.exchange")


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reference]:
    """The reference, with a home folder of its own."""
    why = missing()
    if why is not None:
        pytest.skip(why)
    with running(tmp_path_factory.mktemp("reference")) as process:
        yield process


@pytest.fixture
def agent_dir(tmp_path: Path) -> str:
    """A folder for the user files of the reference's agent session."""
    folder = tmp_path / "agent"
    folder.mkdir()
    return str(folder)
