"""Replacing the session of a conversation, and loading its extensions anew (EXT-42, EXT-49).

The order of a replacement, exactly: handlers may refuse; the target is checked and made; what
runs is stopped and settles in the old session; `session_shutdown`; the interface forgets what
extensions put there; every old context is stale; extensions are loaded for the new session;
`setup` may write into it; `session_start` and `resources_discover`; `with_session`.

What can fail is done before anything ends: a target that cannot be opened leaves the old session as it
is. If the new cell still cannot be made, the old session goes on with a new generation of
extensions, and the error goes to the caller (EXT-44). At no moment is there no session.

One at a time: a second replacement meanwhile, also from a handler of the first, is refused.
From the end of the old session to the start of the new one a cancellation waits, because half
of a replacement is nothing a caller could use; every step of it is bounded.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, Protocol

import attrs
import trio

from camshaft.actors.actor import Failure, Outcome, guard, refuse_self_wait
from camshaft.actors.assembly import assembled, effective_cwd, reassembled
from camshaft.actors.cell import Cell
from camshaft.actors.contexts import ReplacedSessionContext
from camshaft.actors.errors import CommandRefused, SessionFileMissing
from camshaft.actors.logs.port import Loaded, Log
from camshaft.actors.opening import MemorySession, NewSession, OpenSession, Surroundings, Target, open_log
from camshaft.actors.options import OpenOptions
from camshaft.actors.seat_parts import SeatParts
from camshaft.actors.selection import select_again, select_at_start
from camshaft.actors.session import loaded_state
from camshaft.actors.session_fork import Source, write_fork
from camshaft.actors.session_transfer import import_session
from camshaft.actors.session_writer import SessionWriter, borrowed_writer
from camshaft.kernel.entries import SessionHeader
from camshaft.kernel.errors import Rejection
from camshaft.kernel.events import DiagnosticEvent, SessionReplaced
from camshaft.kernel.forking import ForkPlan, ForkPosition, fork_plan
from camshaft.kernel.run import Operation, Verdict, admit
from camshaft.kernel.session_events import SessionBeforeForkEvent, SessionBeforeSwitchEvent
from camshaft.kernel.session_merges import Gate
from camshaft.kernel.state import Activity

Reason = Literal["new", "resume", "fork", "reload"]

Setup = Callable[[SessionWriter], Any]
"""Writes into the new session before its extensions hear of it; sync or async."""
WithSession = Callable[[ReplacedSessionContext], Any]
"""Goes on in the new session; sync or async."""

SETUP_S: Final = 60.0
"""Time for `setup`: nobody can use the conversation meanwhile."""

RUNNING_TEXT: Final = "Wait for the current response to finish before reloading."
COMPACTING_TEXT: Final = "Wait for compaction to finish before reloading."
REPLACING_TEXT: Final = "The session is being replaced. Wait for that to finish."


@attrs.frozen(kw_only=True)
class Replaced:
    """How a replacement ended."""

    cancelled: bool
    """A handler refused; nothing changed."""
    selected_text: str | None = None
    """What the user wrote in the message a fork left out, for editing again (SES-76)."""


class Conversation(Protocol):
    """What a replacement needs of the seat."""

    @property
    def cell(self) -> Cell:
        """The cell of now."""
        ...

    def take(self, parts: SeatParts) -> None:
        """From here on the conversation is about these parts."""
        ...

    def replaced_context(self, extension: str) -> ReplacedSessionContext:
        """A context of the cell of now, for `with_session`."""
        ...


@attrs.frozen(kw_only=True)
class _Swap:
    """A replacement whose target is checked and open."""

    reason: Reason
    options: OpenOptions
    opened: tuple[Log, Loaded] | None
    """None: the same session again."""
    file: str | None
    setup: Setup | None = None


@attrs.define(eq=False)
class Replacement:
    """Replaces the cell of one seat."""

    _conversation: Conversation
    is_under_way: bool = False
    """The old session has ended and the new one is not there yet."""
    _is_claimed: bool = False

    # -- operations ----------------------------------------------------------------------

    async def new_session(
        self, *, parent_session: str | None = None, setup: Setup | None = None, with_session: WithSession | None = None
    ) -> Replaced:
        """Goes on in a new session, kept where this one is. Raises CommandRefused, StorageError, SelfWait."""
        async with self._claimed(Operation.REPLACE, "new_session()"):
            if await self._refused("session_before_switch", SessionBeforeSwitchEvent(reason="new")):
                return Replaced(cancelled=True)
            swap = self._opened("new", self._beside(parent_session))
            await self._swap(attrs.evolve(swap, setup=setup))
        return await self._ended(with_session)

    async def switch_session(
        self, path: str, *, cwd_override: str | None = None, create: bool = False, with_session: WithSession | None = None
    ) -> Replaced:
        """Goes on in the session file at `path`, relative to the process's working directory.

        Raises SessionFileMissing unless it may be created, MissingWorkingDirectory unless
        overridden, NotASession, SessionLocked and other StorageErrors; the old session is intact then.
        """
        path = _absolute(path)
        async with self._claimed(Operation.REPLACE, "switch_session()"):
            if await self._refused("session_before_switch", SessionBeforeSwitchEvent(reason="resume", target_session_file=path)):
                return Replaced(cancelled=True)
            if not create and self._parts.world.log_files.state(path) is None:
                raise SessionFileMissing(path)
            await self._swap(self._opened("resume", OpenSession(path=path), cwd_override))
        return await self._ended(with_session)

    async def import_session(self, path: str, *, cwd_override: str | None = None) -> Replaced:
        """Copies a session file beside this one's and goes on there (SES-85). Raises as `switch_session`."""
        path = _absolute(path)
        around = self._surroundings
        folder = os.path.dirname(self._parts.session.log.path or "") or around.folder
        async with self._claimed(Operation.REPLACE, "import_session()"):
            target = os.path.join(folder, os.path.basename(path))
            if await self._refused("session_before_switch", SessionBeforeSwitchEvent(reason="resume", target_session_file=target)):
                return Replaced(cancelled=True)
            copied = await import_session(path, folder, around, require_cwd=cwd_override is None)
            await self._swap(self._opened("resume", copied, cwd_override))
        return await self._ended(None)

    async def fork(self, entry_id: str, *, position: ForkPosition = "before", with_session: WithSession | None = None) -> Replaced:
        """Goes on in a new session that holds the branch up to an entry (SES-76 to SES-82).

        Raises CommandRefused for an entry that cannot be forked, or a session that was never
        saved; both after handlers were asked, the old session is intact.
        """
        if position not in ("before", "at"):
            raise CommandRefused(f"position {position!r}; expected 'before' or 'at'")
        async with self._claimed(Operation.REPLACE, "fork()"):
            if await self._refused("session_before_fork", SessionBeforeForkEvent(entry_id=entry_id, position=position)):
                return Replaced(cancelled=True)
            plan = fork_plan(self._parts.state.tree, entry_id, position)
            if isinstance(plan, Rejection):
                raise CommandRefused(plan.why)
            target = await self._forked(plan)
            await self._swap(self._opened("fork", target))
        return attrs.evolve(await self._ended(with_session), selected_text=plan.text)

    async def reload(self) -> None:
        """Loads extensions, settings and resources anew; the session stays (EXT-49).

        Raises CommandRefused while a response, a compaction or a navigation is under way.
        """
        async with self._claimed(Operation.RELOAD, "reload()"):
            verdict = admit(Operation.RELOAD, self._parts.state.live.activity)
            if verdict is Verdict.REFUSE:
                compacting = self._parts.state.live.activity is Activity.COMPACTING
                raise CommandRefused(COMPACTING_TEXT if compacting else RUNNING_TEXT)
            before = self._parts.options
            with trio.CancelScope(shield=True):
                await self._leave("reload", None)
                self._parts.ground.modules.clear()
                parts = await self._renewed_same()
                select_again(parts, before)
                self._enter(parts, "reload", None)
            await self._cell.start("reload")

    # -- the steps -----------------------------------------------------------------------

    @property
    def _cell(self) -> Cell:
        return self._conversation.cell

    @property
    def _parts(self) -> SeatParts:
        return self._cell.parts

    @property
    def _surroundings(self) -> Surroundings:
        options = self._parts.options
        return Surroundings(
            world=self._parts.world, cwd=self._parts.base_prompt.cwd, agent_dir=options.agent_dir, durability=options.durability
        )

    @asynccontextmanager
    async def _claimed(self, operation: Operation, what: str) -> AsyncIterator[None]:
        """One at a time. Waits for `agent_settled` to be over; whoever asks from there would wait for its own end."""
        if self._is_claimed:
            raise CommandRefused(REPLACING_TEXT)
        flight, activity = self._cell.flights.current, self._parts.state.live.activity
        if flight is not None and activity is not Activity.IDLE:
            refuse_self_wait(f"run {flight.run_id}", what)
        if flight is not None and admit(operation, activity) is Verdict.DEFER:
            await flight.done.wait()
        self._is_claimed = True
        try:
            yield
        finally:
            self._is_claimed = self.is_under_way = False

    async def _refused(self, hook: str, event: SessionBeforeSwitchEvent | SessionBeforeForkEvent) -> bool:
        if not self._parts.host.has(hook):
            return False
        gate: Gate = await self._parts.host.dispatch(hook, Gate(event=event))
        return gate.cancelled

    def _beside(self, parent_session: str | None) -> Target:
        """A new session where this one is: in its folder, or in memory."""
        path = self._parts.session.log.path
        if path is None:
            return MemorySession(header=self._surroundings.header(parent_session=parent_session))
        return NewSession(directory=os.path.dirname(path), parent_session=parent_session)

    async def _forked(self, plan: ForkPlan) -> Target:
        header: SessionHeader = self._parts.state.header
        fork = await write_fork(plan, Source(path=self._parts.session.log.path, header=header), self._surroundings)
        return fork.target

    def _opened(self, reason: Reason, target: Target, cwd_override: str | None = None) -> _Swap:
        """The target, open and checked; closed again if anything about it is wrong."""
        parts, around = self._parts, self._surroundings
        options = attrs.evolve(
            parts.options,
            session=target,
            cwd=parts.base_prompt.cwd if cwd_override is None else cwd_override,
            override_cwd=cwd_override is not None,
        )
        if isinstance(target, OpenSession) and _same_file(target.path, parts.session.log.path):
            return _Swap(reason=reason, options=options, opened=None, file=parts.session.log.path)
        log, loaded = open_log(target, around)
        checked = False
        try:
            cwd = effective_cwd(options, loaded_state(loaded, options.settings), log)
            if options.services is not None:
                options.services.check(cwd)
            checked = True
        finally:
            if not checked:
                log.close()
        return _Swap(reason=reason, options=attrs.evolve(options, cwd=cwd), opened=(log, loaded), file=log.path)

    async def _swap(self, swap: _Swap) -> None:
        """From stopping what runs to `resources_discover`; see the top."""
        old = self._parts
        with trio.CancelScope(shield=True):
            await self._leave(swap.reason, swap.file)
            made = await guard(self._made, swap)
            if isinstance(made, Failure):
                if swap.opened is not None:
                    await guard(swap.opened[0].aclose)
                again = await reassembled(old, old.options)
                select_again(again, old.options)
                self._enter(again, "reload", None)
            else:
                await self._close(old, swap)
                self._enter(made.value, swap.reason, old.session.log.path)  # type: ignore[union-attr]  # nothing cuts it
        if isinstance(made, Failure):
            await self._cell.start("reload")
            raise made.error
        outcome = None if swap.setup is None else await self._set_up(swap.setup)
        await self._cell.start(swap.reason, old.session.log.path)
        if isinstance(outcome, Failure):
            raise outcome.error

    async def _set_up(self, setup: Setup) -> Outcome[Any]:
        """The session begins all the same if `setup` fails, or does not come to an end."""
        writer = borrowed_writer(self._parts.session, self._surroundings, self._parts.stream)
        with trio.CancelScope(shield=True), trio.move_on_after(SETUP_S):
            return await guard(setup, writer)
        return Failure(TimeoutError(f"setup of the new session took more than {SETUP_S:g} s and was ended"))

    async def _leave(self, reason: Reason, file: str | None) -> None:
        """The old session settles and its extensions hear of the end; nothing of their generation works afterwards."""
        await self._cell.stop()
        self.is_under_way = True
        await self._cell.shut_down(reason, file)

    async def _made(self, swap: _Swap) -> SeatParts:
        old = self._parts
        options = swap.options
        if options.services is not None:
            options = await options.services.renewed(options, swap.reason)
        if options.cwd != old.base_prompt.cwd:
            old.ground.modules.clear()  # EXT-28
        if swap.opened is None:
            parts = await reassembled(old, options)
        else:
            parts = await assembled(old.ground, options, *swap.opened, generation=old.host.generation.number + 1)
        select_at_start(parts)
        return parts

    async def _renewed_same(self) -> SeatParts:
        """The same session with extensions and options of now; options that cannot be read stay as they were (SET-5)."""
        old = self._parts
        options = old.options
        if options.services is not None:
            renewed = await guard(options.services.renewed, options, "reload")
            if isinstance(renewed, Failure):
                old.stream.publish(DiagnosticEvent(source="reload", message=f"settings stay as they were: {renewed.text}"))
            else:
                options = renewed.value  # type: ignore[union-attr]  # nothing cuts it
        return await reassembled(old, options)

    async def _close(self, old: SeatParts, swap: _Swap) -> None:
        if swap.opened is None:
            return
        closed = await guard(old.session.log.aclose)
        if isinstance(closed, Failure):
            old.stream.publish(DiagnosticEvent(source="session", message=f"the session that was left: {closed.text}"))

    def _enter(self, parts: SeatParts, reason: Reason, previous: str | None) -> None:
        """The conversation is about the new parts; hosts hear of it before extensions do."""
        self._conversation.take(parts)
        self.is_under_way = False
        parts.stream.publish(
            SessionReplaced(
                reason=reason, session_id=parts.state.header.id, session_file=parts.session.log.path, previous_session_file=previous
            )
        )
        for error in parts.host.load_errors:
            parts.stream.publish(DiagnosticEvent(source="extensions", message=f'Failed to load extension "{error.path}": {error.error}'))

    async def _ended(self, with_session: WithSession | None) -> Replaced:
        if with_session is not None:
            await _called(with_session, self._conversation.replaced_context("<with_session>"))
        return Replaced(cancelled=False)


async def _called(function: Callable[[Any], Any | Awaitable[Any]], argument: Any) -> None:
    """Calls what the caller handed in; what it raises is the caller's."""
    outcome = await guard(function, argument)
    if isinstance(outcome, Failure):
        raise outcome.error


def _absolute(path: str) -> str:
    """As a user writes it: `~`, or relative to the process's working directory."""
    return os.path.abspath(os.path.expanduser(path))


def _same_file(path: str, other: str | None) -> bool:
    return other is not None and os.path.realpath(path) == os.path.realpath(other)
