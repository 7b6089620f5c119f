"""Replacing the session of a conversation, and loading its extensions anew (EXT-42, EXT-49).

The order of a replacement, exactly: handlers may refuse; the target is checked and made; what
runs is stopped and settles in the old session; `session_shutdown`; the interface forgets what
extensions put there; every old context is stale; extensions are loaded for the new session;
`setup` may write into it; `session_start` and `resources_discover`; `with_session`.

What can fail is done before anything ends: a target that cannot be opened leaves the old session as it
is. If the new cell still cannot be made, the old session goes on with a new generation of
extensions, and the error goes to the caller (EXT-44). At no moment is there no session.

One at a time: a second replacement meanwhile, also from a handler of the first, is refused. Here
is what can still be refused or given up; `session_change.py` has the rest.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs

from camshaft.actors.actor import Failure, guard, operation, refuse_self_wait
from camshaft.actors.assembly import effective_cwd
from camshaft.actors.cell import Cell
from camshaft.actors.contexts import ReplacedSessionContext
from camshaft.actors.errors import CommandRefused, SessionFileMissing
from camshaft.actors.exclusive import NAME as EXCLUSIVE
from camshaft.actors.logs.port import Log
from camshaft.actors.opening import MemorySession, NewSession, OpenSession, Surroundings, Target, open_log
from camshaft.actors.options import OpenOptions
from camshaft.actors.seat_parts import SeatParts
from camshaft.actors.session import loaded_state
from camshaft.actors.session_change import Changing, Reason, SessionChange, Setup, Swap
from camshaft.actors.session_fork import Source, write_fork
from camshaft.actors.session_transfer import import_session
from camshaft.kernel import shapes
from camshaft.kernel.entries import SessionHeader
from camshaft.kernel.errors import Rejection
from camshaft.kernel.forking import ForkPlan, ForkPosition, fork_plan
from camshaft.kernel.run import Operation, Verdict, admit
from camshaft.kernel.session_events import SessionBeforeForkEvent, SessionBeforeSwitchEvent
from camshaft.kernel.session_merges import Gate
from camshaft.kernel.state import Activity, SessionState

WithSession = Callable[[ReplacedSessionContext], Any]
"""Goes on in the new session; sync or async."""

RUNNING_TEXT: Final = "Wait for the current response to finish before reloading."
COMPACTING_TEXT: Final = "Wait for compaction to finish before reloading."
REPLACING_TEXT: Final = "The session is being replaced. Wait for that to finish."


@shapes.frozen(kw_only=True)
class Replaced:
    """How a replacement ended."""

    cancelled: bool
    """A handler refused; nothing changed."""
    selected_text: str | None = None
    """What the user wrote in the message a fork left out, for editing again (SES-76)."""


@shapes.define(eq=False)
class Replacement:
    """Replaces the cell of one seat."""

    _conversation: Changing
    change: SessionChange = attrs.field(init=False)
    _is_claimed: bool = False
    _count: int = 0

    def __attrs_post_init__(self) -> None:
        self.change = SessionChange(self._conversation)

    # -- operations ----------------------------------------------------------------------

    async def new_session(
        self, *, parent_session: str | None = None, setup: Setup | None = None, with_session: WithSession | None = None
    ) -> Replaced:
        """Goes on in a new session, kept where this one is. Raises CommandRefused, StorageError, SelfWait."""
        async with self._claimed(Operation.REPLACE, "new_session()"):
            if await self._refused("session_before_switch", SessionBeforeSwitchEvent(reason="new")):
                return Replaced(cancelled=True)
            await self.change.perform(attrs.evolve(self._opened("new", self._beside(parent_session)), setup=setup))
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
            await self.change.perform(self._opened("resume", OpenSession(path=path), cwd_override))
        return await self._ended(with_session)

    async def import_session(self, path: str, *, cwd_override: str | None = None) -> Replaced:
        """Copies a session file beside this one's and goes on there (SES-85). Raises as `switch_session`."""
        path = _absolute(path)
        async with self._claimed(Operation.REPLACE, "import_session()"):
            around = self._surroundings
            folder = os.path.dirname(self._parts.session.log.path or "") or around.folder
            target = os.path.join(folder, os.path.basename(path))
            if await self._refused("session_before_switch", SessionBeforeSwitchEvent(reason="resume", target_session_file=target)):
                return Replaced(cancelled=True)
            copied = await import_session(path, folder, around, require_cwd=cwd_override is None)
            await self.change.perform(self._opened("resume", copied, cwd_override))
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
            await self.change.perform(self._opened("fork", target))
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
            same = Swap(reason="reload", options=self._parts.options, opened=None, file=None, around=self._surroundings)
            await self.change.perform(same)

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
    async def _claimed(self, wish: Operation, what: str) -> AsyncIterator[None]:
        """One at a time. Waits for `agent_settled` to be over, not for the runs that follow.

        Whoever asks from `agent_settled` would wait for its own end.
        """
        self._require_free(what)
        while (flight := self._cell.flights.current) is not None and admit(wish, self._parts.state.live.activity) is Verdict.DEFER:
            await flight.changed.wait()
            self._require_free(what)
        self._is_claimed, self._count = True, self._count + 1
        self.change.operation = f"session replacement {self._count}"
        try:
            with operation(self.change.operation):
                yield
        finally:
            self._is_claimed = False

    def _require_free(self, what: str) -> None:
        """Raises SeatClosed, CommandRefused, SelfWait."""
        self._conversation.require_open()
        if self._is_claimed:
            raise CommandRefused(REPLACING_TEXT)
        flights, activity = self._cell.flights, self._parts.state.live.activity
        if flights.current is not None and activity is not Activity.IDLE:
            refuse_self_wait(f"run {flights.current.run_id}", what)
        if flights.exclusives.current is not None:
            refuse_self_wait(EXCLUSIVE, what)

    async def _refused(self, hook: str, event: SessionBeforeSwitchEvent | SessionBeforeForkEvent) -> bool:
        if not self._parts.host.has(hook):
            return False
        gate: Gate = await self._parts.host.dispatch(hook, Gate(event=event))
        self._conversation.require_open()
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

    def _opened(self, reason: Reason, target: Target, cwd_override: str | None = None) -> Swap:
        """The target, open and checked; closed again if anything about it is wrong."""
        parts, around = self._parts, self._surroundings
        options = attrs.evolve(
            parts.options,
            session=target,
            cwd=parts.base_prompt.cwd if cwd_override is None else cwd_override,
            override_cwd=cwd_override is not None,
        )
        log = parts.session.log
        if isinstance(target, OpenSession) and _same_file(target.path, log.path):
            if log.sealed is None:
                cwd = self._checked_cwd(options, parts.state, log)
                return Swap(reason=reason, options=attrs.evolve(options, cwd=cwd), opened=None, file=log.path, around=around)
            log.close()  # Nothing is written by it any more; what it holds keeps the file from being opened, and repaired.
        log, loaded = open_log(target, around)
        checked = False
        try:
            cwd = self._checked_cwd(options, loaded_state(loaded, options.settings), log)
            checked = True
        finally:
            if not checked:
                log.close()
        return Swap(reason=reason, options=attrs.evolve(options, cwd=cwd), opened=(log, loaded), file=log.path, around=around)

    def _checked_cwd(self, options: OpenOptions, state: SessionState, log: Log) -> str:
        """Where the conversation will run. Raises MissingWorkingDirectory, and what its settings are refused with."""
        cwd = effective_cwd(options, state, log)
        if options.services is not None:
            options.services.check(cwd)
        return cwd

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
