"""From one session of a conversation to the next: the part of a replacement that has no way back (EXT-42, EXT-44).

    stop what runs          a cancellation here leaves everything as it is
    shut the old cell down  shielded, bounded
    make the new cell       ended by a cancellation, a close, or what it raises: then the old session goes on
    arrive, set up          shielded, bounded; a close hurries it
    tell extensions         in a task of the seat: whoever waits for it may be cancelled, they hear of it all the same

So at every await there is one whole session, or it comes without anybody's help. A close waits
for `ended`, and closes what it finds then. What was opened for the new session and is not the
conversation's at the end is closed here.
"""

import math
from collections.abc import Callable
from typing import Any, Final, Literal, Protocol

import attrs
import trio

from camshaft.actors.actor import Cut, Failure, Outcome, Value, guard, guard_now, refuse_self_wait
from camshaft.actors.assembly import assembled, reassembled
from camshaft.actors.cell import Cell
from camshaft.actors.contexts import ReplacedSessionContext
from camshaft.actors.logs.port import Loaded, Log
from camshaft.actors.opening import Surroundings
from camshaft.actors.options import OpenOptions
from camshaft.actors.seat_parts import SeatParts
from camshaft.actors.selection import select_again, select_at_start
from camshaft.actors.session_writer import SessionWriter, borrowed_writer
from camshaft.kernel import shapes
from camshaft.kernel.events import DiagnosticEvent, SessionReplaced

Reason = Literal["new", "resume", "fork", "reload"]

Setup = Callable[[SessionWriter], Any]
"""Writes into the new session before its extensions hear of it; sync or async."""

SETUP_S: Final = 60.0
"""Time for `setup`: nobody can use the conversation meanwhile."""


class Changing(Protocol):
    """The conversation, as a change of its session needs it."""

    @property
    def cell(self) -> Cell:
        """The cell of now."""
        ...

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, or is being closed."""
        ...

    def require_open(self) -> None:
        """Raises SeatClosed after a close, CommandRefused between two sessions."""
        ...

    def take(self, parts: SeatParts) -> None:
        """From here on the conversation is about these parts."""
        ...

    def replaced_context(self, extension: str) -> ReplacedSessionContext:
        """A context of the cell of now, for what goes on after the change."""
        ...


@shapes.frozen(kw_only=True)
class Swap:
    """A replacement whose target is checked and open."""

    reason: Reason
    options: OpenOptions
    opened: tuple[Log, Loaded] | None
    """None: the same session again."""
    file: str | None
    """Of the target; what `session_shutdown` says."""
    around: Surroundings
    """Of the old session."""
    setup: Setup | None = None


@shapes.define(eq=False)
class _Telling:
    """What is told to extensions in a task of the seat."""

    done: trio.Event = attrs.field(factory=trio.Event)
    outcome: Outcome[None] | None = None

    async def tell(self, cell: Cell, reason: Reason, previous: str | None) -> None:
        """They are bound, and are asked for resources."""
        try:
            self.outcome = await guard(cell.start, reason, previous)
        finally:
            self.done.set()


@shapes.define(eq=False)
class SessionChange:
    """Changes the session of one conversation, or its extensions; one change at a time."""

    _conversation: Changing
    is_under_way: bool = False
    """The old session has ended and the new one is not there yet."""
    operation: str = ""
    """Name, among the operations of a chain, of what is under way."""
    _arrived: trio.Event = attrs.field(factory=trio.Event)
    """Set when there is a session again."""
    _hurried: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    """Of what a close does not wait for."""

    async def ended(self) -> None:
        """Returns when there is one session and no change under way. For a close: what takes long is ended."""
        if self.is_under_way:
            self._hurried.cancel()
            await self._arrived.wait()

    def refuse_self_wait(self, what: str) -> None:
        """Raises SelfWait in code that the change under way waits for; `what` is said to wait."""
        if self.is_under_way:
            refuse_self_wait(self.operation, what)

    async def perform(self, swap: Swap) -> None:
        """From stopping what runs to `resources_discover`. Raises what kept the new cell from being made, and what `setup` raised."""
        cell = self._conversation.cell
        told, outcomes = _Telling(), list[Outcome[Any]]()
        try:
            await cell.stop()
            self._conversation.require_open()
            await self._change(cell, swap, told, outcomes)
        finally:
            if swap.opened is not None and self._conversation.cell.parts.session.log is not swap.opened[0]:
                with trio.CancelScope(shield=True):
                    await guard(swap.opened[0].aclose)
        if self._conversation.is_closed:
            self._conversation.require_open()
        await told.done.wait()
        for outcome in (*outcomes, told.outcome):
            if isinstance(outcome, Failure):
                raise outcome.error

    async def _change(self, cell: Cell, swap: Swap, told: _Telling, outcomes: list[Outcome[Any]]) -> None:
        self.is_under_way, self._arrived = True, trio.Event()
        made: Outcome[SeatParts] | None = None
        try:
            with trio.CancelScope(shield=True):
                await cell.shut_down(swap.reason, swap.file)
            made = await self._in_time(math.inf, self._made, cell.parts, swap)
            outcomes.append(made)
        finally:
            with trio.CancelScope(shield=True):
                try:
                    await self._arrive(cell.parts, swap, made, told, outcomes)
                finally:
                    self.is_under_way = False
                    self._arrived.set()

    async def _in_time(self, limit_s: float, call: Callable[..., Any], *arguments: Any) -> Outcome[Any]:
        """The outcome; Cut after `limit_s`, and when the conversation is closed meanwhile."""
        self._hurried = trio.CancelScope(deadline=trio.current_time() + limit_s)
        if self._conversation.is_closed:
            self._hurried.cancel()
        return await guard(call, *arguments, scope=self._hurried)

    async def _made(self, old: SeatParts, swap: Swap) -> SeatParts:
        """The new cell. Its extensions are stale if it cannot be one."""
        options = await self._renewed(old, swap)
        if swap.reason == "reload" or options.cwd != old.base_prompt.cwd:
            old.ground.modules.clear()  # EXT-28
        if swap.opened is None:
            parts = await reassembled(old, options, None if swap.reason == "reload" else options.cwd)
        else:
            parts = await assembled(old.ground, options, *swap.opened, generation=old.host.generation.number + 1)
        selected = guard_now(select_again, parts, old.options) if swap.reason == "reload" else guard_now(select_at_start, parts)
        if isinstance(selected, Failure):
            parts.host.generation.stale = True
            raise selected.error
        return parts

    async def _renewed(self, old: SeatParts, swap: Swap) -> OpenOptions:
        """Options of now. A reload goes on with the old ones if they cannot be read (SET-5)."""
        services = swap.options.services
        if services is None:
            return swap.options
        renewed = await guard(services.renewed, swap.options, swap.reason)
        if isinstance(renewed, Failure):
            if swap.reason != "reload":
                raise renewed.error
            old.stream.publish(DiagnosticEvent(source="reload", message=f"settings stay as they were: {renewed.text}"))
            return swap.options
        options: OpenOptions = renewed.value  # type: ignore[union-attr]  # nothing cuts it
        return options

    async def _arrive(
        self, old: SeatParts, swap: Swap, made: Outcome[SeatParts] | None, told: _Telling, outcomes: list[Outcome[Any]]
    ) -> None:
        """The conversation is about what was made, or else about the old session with new extensions; they are told of it."""
        reason, previous = swap.reason, None if swap.reason == "reload" else old.session.log.path
        if isinstance(made, Value):
            if swap.opened is not None:
                await self._leave(old)
            self._enter(made.value, reason, previous)
            if swap.setup is not None:
                outcomes.append(await self._set_up(swap.setup, swap.around))
        elif not self._conversation.is_closed:
            reason, previous = "reload", None
            again = await reassembled(old, old.options)
            select_again(again, old.options)
            self._enter(again, reason, previous)
        if not self._conversation.is_closed:
            old.nursery.start_soon(told.tell, self._conversation.cell, reason, previous)

    async def _leave(self, old: SeatParts) -> None:
        closed = await guard(old.session.log.aclose)
        if isinstance(closed, Failure):
            old.stream.publish(DiagnosticEvent(source="session", message=f"the session that was left: {closed.text}"))

    def _enter(self, parts: SeatParts, reason: Reason, previous: str | None) -> None:
        """The conversation is about the new parts; hosts hear of it before extensions do."""
        self._conversation.take(parts)
        parts.rest.soon()
        parts.stream.publish(
            SessionReplaced(
                reason=reason, session_id=parts.state.header.id, session_file=parts.session.log.path, previous_session_file=previous
            )
        )
        for error in parts.host.load_errors:
            parts.stream.publish(DiagnosticEvent(source="extensions", message=f'Failed to load extension "{error.path}": {error.error}'))

    async def _set_up(self, setup: Setup, around: Surroundings) -> Outcome[Any]:
        """The session begins all the same if `setup` fails, or does not come to an end."""
        parts = self._conversation.cell.parts
        writer = borrowed_writer(parts.session, around, parts.stream)
        outcome = await self._in_time(SETUP_S, setup, writer)
        if not isinstance(outcome, Cut):
            return outcome
        return Failure(TimeoutError(f"setup of the new session took more than {SETUP_S:g} s and was ended"))
