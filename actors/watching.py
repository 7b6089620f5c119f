"""A frontend's view of a conversation: everything as it is now, then what happens, without a gap between.

Theory of operation. A `Watch` is a snapshot and a tail. Both are taken in one step without a checkpoint,
so nothing falls between them. The tail gives *moments*: an event, and the entries that reached the log
since the moment before; so a frontend gets every entry exactly once, with its id, whatever it does with
events. What is neither an entry nor an event is state, and stands in the snapshot (`design/event-stream.md`).

A watch never slows a run, in contrast to `Seat.follow`. One that is slow gets less: deltas of one block and
updates of one call that wait in a row become one when they are taken; and when more than WAITING_MAX
events wait, they are thrown away, and the next moment is a *gap*: it says how many were lost and carries
a new snapshot to go on from. A session that is replaced makes a gap too.

A cursor names how far a frontend got. With it a later watch, also of another process, gives the entries
since then instead of all.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import attrs
import trio

from camshaft.actors.event_stream import EventStream, Ongoing
from camshaft.actors.prompts import Position
from camshaft.actors.seat_parts import SeatParts
from camshaft.kernel import shapes
from camshaft.kernel.dialogs import Dialog, UiState
from camshaft.kernel.entries import Entry, SessionHeader
from camshaft.kernel.events import (
    BashExecutionUpdate,
    DiagnosticEvent,
    Event,
    ExtensionErrorEvent,
    MessageUpdate,
    SessionReplaced,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from camshaft.kernel.messages import AssistantMessage
from camshaft.kernel.state import Activity, SessionState
from camshaft.kernel.view import View

WAITING_MAX: Final = 1024
"""Events that may wait for a slow frontend before they are thrown away: some seconds of a fast stream."""

_JOINED: Final = frozenset({"text_delta", "thinking_delta", "toolcall_delta"})
"""Block events whose texts can be joined."""


@shapes.frozen(kw_only=True)
class Cursor:
    """How far a frontend got. Of a session, not of a process: it can be kept and used later."""

    session_id: str
    entry_id: str | None = None
    """The last entry it has, in order of the log; None: none."""
    stream: str = ""
    """The run of the program that counted."""
    count: int = 0
    """Events told in it so far."""


@shapes.frozen(kw_only=True)
class QueuedTexts:
    """The user messages that wait, oldest first (QUE-6)."""

    steering: tuple[str, ...] = ()
    follow_up: tuple[str, ...] = ()


@shapes.frozen(kw_only=True)
class OpenCall:
    """A tool call that runs."""

    start: ToolExecutionStart
    update: ToolExecutionUpdate | None = None
    """Its last update, if it gave one."""


@shapes.frozen(kw_only=True)
class Waiting:
    """A run waits before it asks the model again."""

    attempt: int
    due: int
    """Wall clock, ms since the Unix epoch."""


Phase = Literal["idle", "starting", "running", "compacting", "settled"]
"""What a session does; `settled` while handlers of `agent_settled` run, when it counts as idle already (LOOP-40)."""

_PHASES: Final[Mapping[Activity, Phase]] = {
    Activity.IDLE: "idle",
    Activity.START: "starting",
    Activity.RUN: "running",
    Activity.COMPACTING: "compacting",
    Activity.SETTLED: "settled",
}


@shapes.frozen(kw_only=True)
class Snapshot:
    """Everything a frontend has to know, at one moment."""

    cursor: Cursor
    header: SessionHeader
    session_file: str | None
    cwd: str
    name: str | None
    entries: Sequence[Entry] = attrs.field(repr=False)
    """Those after the cursor that was given, in order of the log; else all. A lazy view."""
    is_whole: bool
    """Whether `entries` are all there are: what a frontend has of the session is to be thrown away."""
    missed: int | None
    """Events that were told between the given cursor and now and are not repeated; None: nobody counted."""
    position: Position
    """Where the session stands; a prompt may be given on condition that it still does."""
    phase: Phase
    aborting: bool
    run_id: str | None
    message: AssistantMessage | None
    """The answer that streams in, as far as it is known."""
    calls: tuple[OpenCall, ...]
    """The tool calls that run, in order of their beginning."""
    queue: QueuedTexts
    wait: Waiting | None
    model: str | None
    """`provider/id` of the selected model."""
    thinking_level: str
    active_tools: tuple[str, ...]
    dialogs: tuple[Dialog, ...]
    """Questions that are open; the first answer wins."""
    ui: UiState
    errors: tuple[ExtensionErrorEvent, ...]
    """The last ones, oldest first."""
    diagnostics: tuple[DiagnosticEvent, ...]


@shapes.frozen(kw_only=True)
class Moment:
    """Something happened."""

    cursor: Cursor
    """How far a frontend is that has taken this."""
    event: Event
    entries: tuple[Entry, ...]
    """Those that are in the log since the moment before."""
    position: Position
    """Where the session stands now."""


@shapes.frozen(kw_only=True)
class Gap:
    """Events were lost, or the conversation goes on in another session: go on from this snapshot."""

    snapshot: Snapshot
    missed: int
    """Events thrown away; 0 after a replacement."""
    replaced: SessionReplaced | None = None
    """Why everything is new, if the session was replaced or its extensions loaded anew."""


@shapes.define(eq=False)
class Watch:
    """An async iterator of moments and gaps, with the snapshot they go on from. See the header."""

    _parts: Callable[[], SeatParts]
    """Of the session that the conversation is about."""
    _stream: EventStream
    snapshot: Snapshot = attrs.field(init=False)
    """As it was when the watch began, or at the last gap."""
    _events: deque[Event] = attrs.field(factory=deque, init=False)
    _missed: int = attrs.field(default=0, init=False)
    _taken: int = attrs.field(default=0, init=False)
    """Events of the stream up to the last moment."""
    _seen: int = attrs.field(default=0, init=False)
    """Entries of the log that were handed out."""
    _changed: trio.Event = attrs.field(factory=trio.Event, init=False)
    _closed: bool = attrs.field(default=False, init=False)

    def go_on(self, after: Cursor | None) -> None:
        """Takes a snapshot; what waits is in it."""
        self._events.clear()
        self.snapshot = snapshot_of(self._parts(), after)
        self._taken, self._seen = self._stream.count, self._state.tree.length

    def put(self, event: Event) -> None:
        """Keeps an event; never waits. Too many are thrown away."""
        self._events.append(event)
        if len(self._events) > WAITING_MAX:
            self._missed += len(self._events)
            self._events.clear()
        self._changed.set()

    def close(self) -> None:
        """No event follows; what waits can still be taken."""
        self._closed = True
        self._changed.set()

    @property
    def has_waiting(self) -> bool:
        """Whether the next moment is there already."""
        return bool(self._events) or self._missed > 0

    def __aiter__(self) -> "Watch":
        return self

    async def __anext__(self) -> Moment | Gap:
        """The next moment; ends when the conversation closes."""
        while not self._events and not self._missed:
            if self._closed:
                raise StopAsyncIteration
            self._changed = trio.Event()
            await self._changed.wait()
        if self._missed:
            return self._gap(None)
        event = self._events.popleft()
        self._taken += 1
        if isinstance(event, SessionReplaced):
            return self._gap(event)
        while self._events and (joined := merged(event, self._events[0])) is not None:
            event = joined
            self._events.popleft()
            self._taken += 1
        entries = self._new_entries()
        return Moment(cursor=self._cursor(), event=event, entries=entries, position=Position(leaf_id=self._state.leaf_id))

    def _gap(self, replaced: SessionReplaced | None) -> Gap:
        missed, self._missed = self._missed, 0
        self.go_on(None if replaced is not None else self._cursor())
        return Gap(snapshot=self.snapshot, missed=missed, replaced=replaced)

    @property
    def _state(self) -> SessionState:
        return self._parts().state

    def _cursor(self) -> Cursor:
        return _cursor(self._state, self._stream, self._seen, self._taken)

    def _new_entries(self) -> tuple[Entry, ...]:
        tree = self._state.tree
        new = tuple([tree.entry(position) for position in range(self._seen, tree.length)])
        self._seen = tree.length
        return new


def snapshot_of(parts: SeatParts, after: Cursor | None) -> Snapshot:
    """The conversation as it is now, with the entries after a cursor; with all of them for none, or an unknown one."""
    state, stream, desk = parts.state, parts.stream, parts.ground.desk
    known = None
    if after is not None and after.session_id == state.header.id:
        known = -1 if after.entry_id is None else state.tree.position(after.entry_id)
    counted = after is not None and known is not None and after.stream == stream.id
    wait = state.work.wait
    return Snapshot(
        cursor=_cursor(state, stream, state.tree.length, stream.count),
        header=state.header,
        session_file=parts.session.log.path,
        cwd=parts.base_prompt.cwd,
        name=state.tree.name,
        entries=_later(state, 0 if known is None else known + 1),
        is_whole=known is None,
        missed=stream.count - after.count if counted and after is not None else None,
        position=Position(leaf_id=state.leaf_id),
        phase=_PHASES[state.live.activity],
        aborting=state.live.aborting,
        run_id=state.live.run_id,
        message=None if stream.ongoing.partial is None else stream.ongoing.partial.message,
        calls=_calls(stream.ongoing),
        queue=QueuedTexts(steering=state.pending_texts("steer"), follow_up=state.pending_texts("followUp")),
        wait=None if wait is None else Waiting(attempt=wait.attempt, due=wait.due),
        model=None if state.selection.model is None else state.selection.model.reference,
        thinking_level=state.selection.thinking_level,
        active_tools=state.selection.active_tools,
        dialogs=desk.dialogs,
        ui=desk.state,
        errors=tuple(parts.host.errors),
        diagnostics=(*parts.found, *stream.diagnostics),
    )


def _cursor(state: SessionState, stream: EventStream, seen: int, taken: int) -> Cursor:
    last = state.tree.id_at(seen - 1) if 0 < seen <= state.tree.length else None
    return Cursor(session_id=state.header.id, entry_id=last, stream=stream.id, count=taken)


def _later(state: SessionState, start: int) -> Sequence[Entry]:
    tree, end = state.tree, state.tree.length
    return View(lambda: map(tree.entry, range(start, end)), lambda: map(tree.entry, range(end - 1, start - 1, -1)), end - start)


def merged(event: Event, following: Event) -> Event | None:
    """One event that says as much as both, or None if there is none."""
    match event, following:
        case MessageUpdate(), MessageUpdate():
            told, more = event.assistant_message_event, following.assistant_message_event
            if told.type not in _JOINED or (told.type, told.content_index) != (more.type, more.content_index):
                return None
            return attrs.evolve(following, assistant_message_event=attrs.evolve(more, delta=(told.delta or "") + (more.delta or "")))
        case ToolExecutionUpdate(), ToolExecutionUpdate() if event.tool_call_id == following.tool_call_id:
            return following
        case BashExecutionUpdate(), BashExecutionUpdate() if event.id == following.id:
            return attrs.evolve(following, delta=event.delta + following.delta)
    return None


def _calls(ongoing: Ongoing) -> tuple[OpenCall, ...]:
    """The calls that run, as the stream knows them."""
    return tuple([OpenCall(start=start, update=ongoing.updates.get(call_id)) for call_id, start in ongoing.calls.items()])
