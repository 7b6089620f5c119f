"""A session written without a conversation: when its file is made, where it is, and positions in it."""

from collections.abc import Callable
from typing import Any

import pytest

from camshaft.actors.host import (
    CommandRefused,
    InvalidOptions,
    MemorySession,
    NewSession,
    SessionExists,
    SessionLocked,
    SessionSealed,
    SessionWriter,
    StorageError,
    open_writer,
)
from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.kernel.commands import Append, AppendBranchSummary, AppendContextEdit, AppendCustom, RecordSelection, SetLabel
from tests.actors.writing import ANSWER, HELLO, NAMED, NO_SPACE, NOTE, PATH, PROMPT, SHELL, appended, ids, lines, only, opened, world


@pytest.fixture
def files() -> MemoryLogFiles:
    return MemoryLogFiles()


# -- when the file is written ----------------------------------------------------------------


@pytest.mark.rule("SES-54", "SES-55")
@pytest.mark.parametrize("command", [PROMPT, NAMED, NOTE, SHELL, AppendCustom(custom_type="k"), RecordSelection(thinking_level="low")])
def test_what_is_no_message_of_user_or_assistant_makes_no_file(files: MemoryLogFiles, command: Append) -> None:
    with opened(files) as writer:
        appended(writer, command)

        assert files.state(PATH) is None
        assert len(list(writer.entries)) == 1

    assert files.photo().texts() == {}


@pytest.mark.rule("SES-55", "SES-56")
@pytest.mark.parametrize("command", [HELLO, ANSWER])
def test_the_first_message_writes_header_and_everything_so_far_then_each_append_adds_a_line(files: MemoryLogFiles, command: Append) -> None:
    with opened(files) as writer:
        before = appended(writer, NAMED, NOTE)
        made = appended(writer, command)
        first = lines(files)
        after = appended(writer, NAMED)

        assert [line["id"] for line in first] == [writer.header.id, *before, *made]
        assert lines(files)[:-1] == first
        assert ids(files)[-1:] == after


@pytest.mark.rule("SES-43", "SES-57")
def test_a_file_of_that_name_refuses_the_message_and_nothing_else(files: MemoryLogFiles) -> None:
    with opened(files) as writer:
        (named,) = appended(writer, NAMED)
        files.append_foreign(PATH, b"taken\n")

        with pytest.raises(SessionExists):
            writer.append(HELLO)
        (noted,) = appended(writer, NOTE)

        assert [entry.id for entry in writer.entries] == [named, noted]
    assert files.photo().texts()[PATH] == b"taken\n"


@pytest.mark.rule("SES-43")
def test_an_append_that_cannot_be_written_leaves_everything_as_it_was(files: MemoryLogFiles) -> None:
    with opened(files) as writer:
        (hello,) = appended(writer, HELLO)
        before, state = files.photo().texts()[PATH], writer.state
        files.fault = lambda operation: NO_SPACE if operation.kind == "write" else None

        with pytest.raises(StorageError):
            writer.append(ANSWER)

        assert writer.state is state
        assert files.photo().texts()[PATH] == before
        files.fault = None
        assert only(writer.append(ANSWER)).parent_id == hello


@pytest.mark.rule("SES-46")
def test_a_file_that_disappeared_is_written_again_whole(files: MemoryLogFiles) -> None:
    heard: list[Any] = []
    with opened(files) as writer:
        writer.subscribe(heard.append)
        known = appended(writer, NAMED, HELLO)
        files.remove_foreign(PATH)

        known += appended(writer, ANSWER)

        assert lines(files)[0]["id"] == writer.header.id
        assert ids(files) == known
    assert [event.message for event in heard if event.type == "diagnostic"] == [
        "the session file had disappeared; everything known was written again"
    ]


@pytest.mark.rule("SES-90")
def test_the_session_is_locked_until_the_writer_closes(files: MemoryLogFiles) -> None:
    with opened(files) as writer:
        appended(writer, HELLO)
        with pytest.raises(SessionLocked):
            opened(files)

    with opened(files) as again:
        assert len(list(again.entries)) == 1
    assert files.held_locks == ()
    assert files.open_handles == 0


def test_a_closed_writer_takes_nothing_and_can_be_closed_again(files: MemoryLogFiles) -> None:
    writer = opened(files)
    appended(writer, HELLO)
    writer.close()
    writer.close()

    with pytest.raises(SessionSealed, match="closed"):
        writer.append(ANSWER)


def test_closing_syncs_what_was_appended(files: MemoryLogFiles) -> None:
    with opened(files) as writer:
        appended(writer, HELLO, ANSWER)

    photo = files.photo()
    inode = photo.inodes[photo.safe_names[PATH]]
    assert inode.synced == len(inode.content)


# -- where the session is --------------------------------------------------------------------


@pytest.mark.rule("SES-65", "SES-66")
def test_a_new_session_is_named_after_time_and_id_in_the_folder_of_its_directory(files: MemoryLogFiles) -> None:
    with open_writer(NewSession(id="mine"), world(files), cwd="/srv/app") as writer:
        assert writer.path == "/home/.camshaft/sessions/--srv-app--/2023-11-14T22-13-20-000Z_mine.jsonl"
        assert (writer.header.id, writer.header.cwd) == ("mine", "/srv/app")


@pytest.mark.parametrize("session_id", ["", "a/b", "-a", "a."])
def test_an_id_that_cannot_name_a_file_is_refused(files: MemoryLogFiles, session_id: str) -> None:
    with pytest.raises(InvalidOptions, match="Session id"):
        open_writer(NewSession(id=session_id), world(files), cwd="/")


@pytest.mark.rule("SES-47")
def test_a_session_in_memory_behaves_the_same_without_a_file(files: MemoryLogFiles) -> None:
    with open_writer(MemorySession(), world(files), cwd="/srv/app") as first:
        appended(first, HELLO, ANSWER)
        known = tuple(first.entries)
    with open_writer(MemorySession(entries=known), world(files), cwd="/srv/app") as writer:
        named = only(writer.append(NAMED))

        assert writer.path is None
        assert named.parent_id == known[-1].id
        assert writer.name == "demo"
    assert files.photo().texts() == {}


# -- positions -------------------------------------------------------------------------------


@pytest.mark.rule("SES-38")
def test_a_branch_continues_the_entry_and_a_reset_begins_a_root(files: MemoryLogFiles) -> None:
    with opened(files) as writer:
        hello, _ = appended(writer, HELLO, ANSWER)
        written = files.photo().texts()[PATH]

        writer.branch(hello)
        moved = files.photo().texts()[PATH]
        sibling = only(writer.append(ANSWER))
        writer.reset()
        root = only(writer.append(HELLO))

        assert moved == written
        assert (sibling.parent_id, root.parent_id) == (hello, None)
        assert writer.leaf_id == root.id


@pytest.mark.rule("SES-38", "SES-52")
@pytest.mark.parametrize(
    "ask",
    [
        lambda writer: writer.branch("nope"),
        lambda writer: writer.extract("nope"),
        lambda writer: writer.append(SetLabel(target_id="nope", label="x")),
        lambda writer: writer.append(AppendContextEdit(target_id="nope", replacement=None)),
        lambda writer: writer.append(AppendBranchSummary(entry_id="nope", summary="s")),
    ],
)
def test_an_unknown_entry_is_refused_and_nothing_changes(files: MemoryLogFiles, ask: Callable[[SessionWriter], object]) -> None:
    with opened(files) as writer:
        appended(writer, HELLO)
        state, path = writer.state, writer.path

        with pytest.raises(CommandRefused, match="^Entry nope not found$"):
            ask(writer)

        assert (writer.state, writer.path) == (state, path)


@pytest.mark.rule("SES-52", "SES-53", "SES-62")
def test_labels_and_name_are_of_the_whole_session(files: MemoryLogFiles) -> None:
    with opened(files) as writer:
        hello, answer = appended(writer, HELLO, ANSWER)
        appended(writer, SetLabel(target_id=answer, label="a"), SetLabel(target_id=hello, label="h"), NAMED)
        writer.branch(hello)
        appended(writer, SetLabel(target_id=answer, label=""))

        assert writer.labels == ((hello, "h"),)
        assert writer.name == "demo"
