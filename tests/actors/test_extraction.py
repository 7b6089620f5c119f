"""Going on in a new session that holds one branch."""

import pytest

from camshaft.actors.host import MemorySession, StorageError, open_writer
from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.kernel.commands import SetLabel
from camshaft.kernel.entries import LabelEntry
from tests.actors.writing import ANSWER, HELLO, NO_SPACE, NOTE, PATH, appended, ids, lines, only, opened, world


@pytest.fixture
def files() -> MemoryLogFiles:
    return MemoryLogFiles()


@pytest.mark.rule("SES-79", "SES-81", "SES-82")
def test_extraction_goes_on_in_a_new_file_of_the_branch_and_its_labels(files: MemoryLogFiles) -> None:
    with opened(files) as writer:
        hello, answer, _ = appended(writer, HELLO, ANSWER, HELLO)
        appended(writer, SetLabel(target_id=hello, label="h"))
        old, old_header = files.photo().texts()[PATH], writer.header
        source = lines(files)[1:3]

        path = writer.extract(answer)
        (label,) = list(writer.entries)[2:]
        more = only(writer.append(HELLO))

        assert path == writer.path != PATH
        assert (writer.header.parent_session, writer.header.cwd) == (PATH, "/srv/app")
        assert writer.header.id != old_header.id
        assert isinstance(label, LabelEntry)
        assert (label.parent_id, label.target_id, label.label) == (answer, hello, "h")
        assert more.parent_id == label.id
        assert lines(files, path)[1:3] == source
        assert ids(files, path) == [hello, answer, label.id, more.id]
    assert files.photo().texts()[PATH] == old
    assert files.held_locks == ()
    assert files.open_handles == 0


@pytest.mark.rule("SES-55", "SES-82")
def test_an_extracted_branch_without_messages_waits_for_one(files: MemoryLogFiles) -> None:
    with opened(files) as writer:
        noted, _ = appended(writer, NOTE, HELLO)

        path = writer.extract(noted)

        assert files.state(path or "") is None
        assert writer.leaf_id == noted
        hello = only(writer.append(HELLO))
        assert ids(files, path) == [noted, hello.id]


def test_extraction_in_memory_stays_there(files: MemoryLogFiles) -> None:
    with open_writer(MemorySession(), world(files), cwd="/srv/app") as writer:
        hello, _ = appended(writer, HELLO, ANSWER)
        before = writer.header

        assert writer.extract(hello) is None
        assert [entry.id for entry in writer.entries] == [hello]
        assert writer.header.id != before.id


@pytest.mark.parametrize("kind", ["create", "write", "sync", "link", "sync_folder"])
def test_an_extraction_that_fails_leaves_the_writer_where_it_is(files: MemoryLogFiles, kind: str) -> None:
    with opened(files) as writer:
        hello, answer = appended(writer, HELLO, ANSWER)
        files.fault = lambda operation: NO_SPACE if operation.kind == kind else None

        with pytest.raises(StorageError, match="cannot create the session file"):
            writer.extract(hello)

        files.fault = None
        assert [name for name in files.photo().texts() if name.endswith((".jsonl", ".new"))] == [PATH]
        assert (writer.path, writer.leaf_id) == (PATH, answer)
        assert only(writer.append(HELLO)).parent_id == answer
    assert files.open_handles == 0
