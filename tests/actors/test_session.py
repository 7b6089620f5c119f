"""The owner of a session's state: a refused append changes nothing, posts come one after the other, foreign lines are a branch."""

import errno
from typing import Any

import attrs
import pytest

from camshaft.actors.errors import StorageError
from camshaft.actors.event_stream import EventStream
from camshaft.actors.logs.jsonl import JsonlLog, JsonlOptions, open_jsonl
from camshaft.actors.session import SessionActor, loaded_state
from camshaft.actors.simulation.log_files import Fault, MemoryLogFiles
from camshaft.kernel import codec
from camshaft.kernel.commands import AppendCustom, AppendMessage, Enqueue, SetLabel
from camshaft.kernel.entries import SessionHeader
from camshaft.kernel.errors import Rejection
from camshaft.kernel.messages import UserMessage
from camshaft.kernel.settings import Settings
from tests.actors.running import PATH, CountedIds, simulate
from tests.kernel.made import TIME, user

HEADER = SessionHeader(id="s", timestamp=TIME, cwd="/")


@attrs.frozen
class Still:
    """A wall clock that stands."""

    def now_ms(self) -> int:
        return 1_772_355_600_000


@attrs.define
class Opened:
    """A session actor on files in memory, and what it published."""

    files: MemoryLogFiles = attrs.field(factory=MemoryLogFiles)
    ids: Any = attrs.field(factory=CountedIds)
    heard: list[Any] = attrs.field(factory=list)
    actor: SessionActor = attrs.field(init=False)
    log: JsonlLog = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        given = JsonlOptions(files=self.files, new_header=lambda: HEADER, new_entry_id=lambda: "m", holder="us", durability="none")
        self.log, loaded = open_jsonl(PATH, given)
        stream = EventStream()
        stream.subscribe(self.heard.append)
        self.actor = SessionActor(self.log, Still(), self.ids, stream, loaded_state(loaded, Settings()))


def said(text: str) -> AppendMessage:
    return AppendMessage(message=UserMessage(content=text, timestamp=1))


def full(_operation: Any) -> Fault:
    return Fault(error=OSError(errno.ENOSPC, "disk full"))


@pytest.mark.rule("SES-43")
@pytest.mark.parametrize(
    "command",
    [said("x"), AppendCustom(custom_type="k"), Enqueue(way="steer", message=UserMessage(content="x", timestamp=1))],
    ids=lambda each: type(each).__name__,
)
def test_an_append_that_fails_changes_nothing_and_tells_nobody(command: Any) -> None:
    session = Opened()
    session.actor.post(said("first"))
    before, heard = session.actor.state, list(session.heard)
    session.files.fault = full

    with pytest.raises(StorageError, match="disk full"):
        session.actor.post(command)

    assert session.actor.state is before
    assert session.heard == heard


def test_a_rejection_writes_nothing() -> None:
    session = Opened()
    session.actor.post(said("first"))
    before, content = session.actor.state, session.files.photo().texts()

    refused = session.actor.post(SetLabel(target_id="gone", label="x"))

    assert refused == Rejection("Entry gone not found")
    assert (session.actor.state, session.files.photo().texts()) == (before, content)


def test_what_was_posted_is_true_on_the_next_line_and_for_a_listener_that_posts_itself() -> None:
    session, seen = Opened(), list[Any]()

    def posting(event: Any) -> None:
        seen.append((event.entry.custom_type, session.actor.state.leaf_id == event.entry.id))
        if event.entry.custom_type == "outer":
            session.actor.post(AppendCustom(custom_type="inner"))

    session.actor._stream.subscribe(posting)
    session.actor.post(AppendCustom(custom_type="outer"))

    assert [entry.parent_id for entry in session.actor.state.tree.entries()] == [None, "00000001"]
    assert seen == [("outer", True), ("inner", True)]


@pytest.mark.rule("SES-90", "A01")
def test_lines_of_a_foreign_writer_become_a_branch_beside_ours() -> None:
    session = Opened()
    session.actor.post(said("first"))
    first = session.actor.state.leaf_id
    session.files.append_foreign(PATH, codec.line(user("f1", first)) + codec.line(user("f2", "f1")))

    session.actor.post(said("second"))

    entries = {entry.id: entry.parent_id for entry in session.actor.state.tree.entries()}
    second = session.actor.state.leaf_id
    assert second is not None and entries == {first: None, "f1": first, "f2": "f1", second: first}
    assert len(list(session.actor.state.projection.messages)) == 2
    assert [event.message for event in session.heard] == ["another program appended 2 entries; they are a sibling branch"]


@pytest.mark.rule("SES-90", "A05")
def test_what_another_process_wrote_while_the_session_rested_is_read_before_anything_is_decided() -> None:
    one = Opened()
    one.actor.post(said("first"))
    simulate(one.log.settle)
    one.actor.rest()
    two = Opened(files=one.files, ids=CountedIds(100))
    two.actor.post(said("second"))
    simulate(two.log.settle)

    commit = one.actor.post(said("third"))

    assert not isinstance(commit, Rejection)
    assert commit.entries[0].parent_id == two.actor.state.leaf_id
    assert [event.message for event in one.heard] == ["another process wrote the session; it was read again"]


def test_ids_drawn_together_differ_and_a_source_that_repeats_itself_gives_longer_ones() -> None:
    @attrs.define
    class Repeating(CountedIds):
        def entry_id(self) -> str:
            return "same"

        def session_id(self) -> str:
            return f"longer {CountedIds.entry_id(self)}"

    session = Opened(ids=Repeating())

    session.actor.post(said("first"))
    stamps = session.actor.stamps(2)

    assert session.actor.state.leaf_id == "same"
    assert len(set(stamps.ids)) == 2 and "same" not in stamps.ids
