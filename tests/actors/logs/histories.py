"""Six histories of a session: what its actor would append, in short entries.

They cover every rule of the commit protocol: entries alone, with records, several, with a
decision, records alone, before the file exists, with and without settings in front, a moved
leaf, hand-overs (`settle`) and a side file that is rewritten.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import attrs

from camshaft.kernel import codec
from camshaft.kernel.entries import (
    ContextEditEntry,
    CustomEntry,
    Entry,
    MessageEntry,
    ModelChangeEntry,
    SessionHeader,
    ThinkingLevelChangeEntry,
)
from camshaft.kernel.messages import AssistantMessage, Message, TextBlock, ToolResultMessage, UserMessage
from camshaft.kernel.records import (
    CallsRecord,
    Decision,
    FateRecord,
    FinishedRecord,
    InputRecord,
    LeafRecord,
    PlannedCall,
    Record,
    RunRecord,
    SettledRecord,
    StartingMessage,
    WaitRecord,
)

TIME = "2026-01-01T00:00:00.000Z"


@attrs.frozen(kw_only=True)
class Step:
    """One thing the session actor does to its log."""

    kind: Literal["commit", "barrier", "settle"] = "commit"
    entries: tuple[Entry, ...] = ()
    records: tuple[Record, ...] = ()
    decision: Decision | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(entry.id for entry in self.entries)


@attrs.frozen(kw_only=True)
class History:
    name: str
    steps: tuple[Step, ...]
    start: bytes | None = None
    """The session file it begins with."""

    @property
    def commits(self) -> list[Step]:
        return [step for step in self.steps if step.kind == "commit"]


BARRIER = Step(kind="barrier")
SETTLE = Step(kind="settle")


def new_header() -> SessionHeader:
    return SessionHeader(id="ses", timestamp=TIME)


@attrs.define(eq=False)
class Author:
    """Writes entries one below the other."""

    prefix: str
    leaf: str | None = None
    count: int = 0

    def entry(self, make: Callable[..., Entry], **fields: object) -> Entry:
        self.count += 1
        made = make(id=f"{self.prefix}{self.count}", parent_id=self.leaf, timestamp=TIME, **fields)
        self.leaf = made.id
        return made

    def message(self, message: Message) -> Entry:
        return self.entry(MessageEntry, message=message)

    def user(self, text: str = "u") -> Entry:
        return self.message(UserMessage(content=text, timestamp=1))

    def assistant(self, text: str = "a") -> Entry:
        content = (TextBlock(text=text),)
        return self.message(AssistantMessage(content=content, api="x", provider="x", model="x", stop_reason="stop", timestamp=1))

    def result(self, call: str) -> Entry:
        return self.message(ToolResultMessage(tool_call_id=call, tool_name="t", is_error=False, timestamp=1))

    def note(self, text: str = "n") -> Entry:
        return self.entry(CustomEntry, custom_type="c", data=text)

    def omission(self, target: str) -> Entry:
        return self.entry(ContextEditEntry, target_id=target, replacement=None)

    def settings(self) -> tuple[Entry, Entry]:
        return (
            self.entry(ModelChangeEntry, provider="p", model_id="m"),
            self.entry(ThinkingLevelChangeEntry, thinking_level="off"),
        )


def commit(entries: Sequence[Entry] = (), *records: Record, decision: Decision | None = None) -> Step:
    return Step(entries=tuple(entries), records=tuple(records), decision=decision)


def given_input(number: int, entry_id: str, command: str | None = None) -> InputRecord:
    message = UserMessage(content="q", timestamp=1)
    return InputRecord(input_id=f"i{number}", entry_id=entry_id, way="steer", message=message, command_id=command)


def started(run: str, *starting: Entry) -> RunRecord:
    messages = tuple(StartingMessage(entry_id=entry.id, message=entry.message) for entry in starting if isinstance(entry, MessageEntry))
    return RunRecord(run_id=run, input_ids=(), starting=messages)


def planned(of: str, *results: str) -> CallsRecord:
    calls = [PlannedCall(call_id=f"c{at}", ordinal=at, of=of, result_entry_id=result) for at, result in enumerate(results)]
    return CallsRecord(calls=tuple(calls))


def settled(run: str) -> Step:
    return commit((), SettledRecord(run_id=run, outcome="done"))


def _run() -> History:
    """A new session, one turn with a call, a boundary with a decision."""
    by = Author("r")
    settings = by.settings()
    first, answer = by.user(), by.assistant()
    result, note, extra, last = by.result("c0"), by.note(), by.note(), by.assistant()
    return History(
        name="run",
        steps=(
            commit(settings),
            commit((), given_input(1, first.id, "k1"), started("r1", first)),
            commit([first]),
            BARRIER,
            commit([answer], planned(answer.id, result.id)),
            BARRIER,
            commit((), FinishedRecord(result_entry_id=result.id, message=UserMessage(content="f", timestamp=1))),
            commit([result]),
            commit([note, extra], decision=Decision(turn_entry_id=answer.id, continue_=True)),
            BARRIER,
            commit([last]),
            commit((), SettledRecord(run_id="r1", outcome="done")),
            SETTLE,
        ),
    )


def _before_file() -> History:
    """Much happens before the session has a file; the commit that lets it be made holds several entries."""
    by = Author("b")
    one, two, three = by.note(), by.note(), by.note()
    by.leaf = one.id
    four, first, five, six = by.note(), by.user(), by.note(), by.note()
    return History(
        name="before-file",
        steps=(
            commit([one]),
            BARRIER,
            commit([two, three], decision=Decision(turn_entry_id=None, continue_=False)),
            commit((), LeafRecord(id=one.id)),
            SETTLE,
            commit((), given_input(1, first.id, "k1")),
            commit([four, first]),
            commit([five]),
            BARRIER,
            commit([six], given_input(2, "b99")),
            commit((), FateRecord(input_id="i2", fate="cleared")),
            SETTLE,
        ),
    )


def _old_file() -> History:
    """A file of another program without last LF, no side file; batches, a fate, hand-overs."""
    old = Author("o")
    start = codec.line(new_header()) + codec.line(old.user()) + codec.line(old.assistant())
    by = Author("f", leaf=old.leaf)
    one, two, three, four, five, six = (by.note() for _ in range(6))
    return History(
        name="old-file",
        start=start[:-1],
        steps=(
            commit([one]),
            commit([two, three], given_input(1, "f98")),
            commit([four]),
            BARRIER,
            commit([five], FateRecord(input_id="i1", fate="cancelled")),
            SETTLE,
            commit((), LeafRecord(id=two.id)),
            commit([six]),
            SETTLE,
        ),
    )


def _queue() -> History:
    """Inputs wait, are delivered, cancelled; a failed turn is omitted and waits."""
    by = Author("q")
    first, answer = by.user(), by.assistant()
    omission, second, third, answer2 = by.omission(answer.id), by.user(), by.user(), by.assistant()
    return History(
        name="queue",
        steps=(
            commit([first], given_input(1, first.id, "k1"), started("r1", first)),
            BARRIER,
            commit((), given_input(2, second.id, "k2")),
            commit((), given_input(3, "q97"), given_input(4, third.id)),
            commit([answer]),
            commit([omission], WaitRecord(of=omission.id, kind="retry", attempt=1, due=5)),
            BARRIER,
            commit([second, third]),
            commit((), FateRecord(input_id="i3", fate="handled")),
            BARRIER,
            commit([answer2]),
            settled("r1"),
            SETTLE,
        ),
    )


def _rewritten() -> History:
    """The side file is rewritten whenever the session is idle; an input stays open."""
    by = Author("w")
    settings = by.settings()
    first, note, more, even, last = by.user(), by.note(), by.note(), by.note(), by.assistant()
    return History(
        name="rewritten",
        steps=(
            commit(settings),
            commit([first], given_input(1, "w96", "k1")),
            SETTLE,
            commit([note, more], given_input(2, "w95", "k2")),
            SETTLE,
            commit((), LeafRecord(id=first.id)),
            SETTLE,
            commit([even, last], FateRecord(input_id="i1", fate="cleared")),
            SETTLE,
        ),
    )


def _batches() -> History:
    """Batches behind batches without a barrier between, with decisions in an open run."""
    by = Author("t")
    first, *notes = by.user(), *(by.note() for _ in range(7))
    return History(
        name="batches",
        steps=(
            commit([first], started("r1", first)),
            commit(notes[0:2], decision=Decision(turn_entry_id=first.id, continue_=True)),
            commit(notes[2:3], given_input(1, "t94")),
            commit(notes[3:5]),
            BARRIER,
            commit(notes[5:7], decision=Decision(turn_entry_id=notes[4].id, continue_=False)),
            settled("r1"),
            SETTLE,
        ),
    )


HISTORIES = (_run(), _before_file(), _old_file(), _queue(), _rewritten(), _batches())
