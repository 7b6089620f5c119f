"""Runs under way: starting them, who waits for them, asking them to stop.

A run started from a deferred prompt flies inside the run that is settling; the outer one is
current again when it lands. Every flight lands: the loop runs under supervision, and a loop
that crashed is started once more at `settling`, so that the run ends with an error in order.
"""

from collections.abc import Callable
from typing import Literal

import attrs
import trio

from camshaft.actors.actor import operation, refuse_self_wait
from camshaft.actors.agent_loop import AgentLoop, Conversation
from camshaft.actors.cache_warming import CacheWarming
from camshaft.actors.compactions import Compactions
from camshaft.actors.exclusive import Exclusives
from camshaft.actors.routing import Routing
from camshaft.actors.seat_parts import SeatParts, input_of
from camshaft.actors.signal import AbortSignal
from camshaft.actors.supervision import ChildSpec, supervise
from camshaft.actors.tool_executor import ToolExecutor
from camshaft.kernel import shapes
from camshaft.kernel.commands import BecomeIdle, ClaimRun, RequestAbort
from camshaft.kernel.events import DiagnosticEvent
from camshaft.kernel.messages import Message
from camshaft.kernel.run import Operation, Verdict, admit
from camshaft.kernel.run_data import Run, State
from camshaft.kernel.state import Queued

Disposition = Literal["handled", "queued", "started", "deferred"]


@shapes.define(eq=False)
class Flight:
    """A run under way and who waits for it."""

    run_id: str
    loop: AgentLoop
    done: trio.Event = attrs.field(factory=trio.Event)
    changed: trio.Event = attrs.field(factory=trio.Event)
    """Set when it is done or another run begins inside it; then there is another one of these to wait for."""
    error: Exception | None = None


@shapes.frozen(kw_only=True)
class Receipt:
    """What became of an input (SDK-8)."""

    disposition: Disposition
    input_id: str | None = None
    entry_id: str | None = None
    """Id its entry has, or will have when it is delivered."""
    run_id: str | None = None
    is_repeated: bool = False
    """The command was given before: this is what became of it then, and nothing was done now."""
    _flight: Flight | None = attrs.field(default=None, repr=False)

    async def wait(self) -> None:
        """Returns when the run it started has settled, deferred runs included. Raises what ended the run abnormally.

        Returns at once if it started none. Raises SelfWait from inside that run.
        """
        if self._flight is None:
            return
        refuse_self_wait(f"run {self._flight.run_id}", "waiting for a prompt")
        await self._flight.done.wait()
        if self._flight.error is not None:
            raise self._flight.error


@shapes.define(eq=False)
class Flights:
    """The runs of one conversation."""

    _parts: SeatParts
    _executor: ToolExecutor
    _conversation: Conversation
    compactions: Compactions
    exclusives: Exclusives
    warming: CacheWarming
    current: Flight | None = None
    """The innermost run under way; None when idle."""
    _routing: Routing = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._routing = Routing(self._parts)

    def start(
        self,
        way: Literal["prompt", "custom"],
        message: Message,
        command_id: str | None = None,
        preflight: Callable[[Disposition], object] | None = None,
    ) -> Receipt:
        """Claims the session and starts the run, without a checkpoint in between (LOOP-6). Raises CommandRefused.

        `preflight` is told `started` once the run is prepared, before its first event (LOOP-7).
        """
        self.exclusives.require_staying()
        parts = self._parts
        run_id = parts.world.ids.token()
        commit = self._parts.posted(ClaimRun(way=way, message=message, run_id=run_id, command_id=command_id))
        record = input_of(commit)
        item = Queued(input_id=record.input_id, entry_id=record.entry_id, way=way, message=message, command_id=command_id)
        loop = AgentLoop(
            run=Run(id=run_id, input=item),
            signal=AbortSignal(parts.ground.limits.abort_grace_s),
            session=parts.session,
            host=parts.host,
            stream=parts.stream,
            executor=self._executor,
            limbo=parts.limbo,
            conversation=self._conversation,
            compactions=self.compactions,
            routing=self._routing,
            warming=self.warming,
            when_prepared=None if preflight is None else lambda: preflight("started"),
        )
        outer, self.current = self.current, Flight(run_id, loop)
        if outer is not None:
            outer.changed.set()
            outer.changed = trio.Event()
        parts.nursery.start_soon(self._fly, self.current, outer)
        return Receipt(disposition="started", input_id=item.input_id, entry_id=item.entry_id, run_id=run_id, flight=self.current)

    async def _fly(self, flight: Flight, outer: Flight | None) -> None:
        """Runs the loop under supervision; whoever waits is answered, whatever happens."""
        try:
            with operation(f"run {flight.run_id}"):
                await supervise((ChildSpec(name="agent_loop", start=flight.loop.serve, restart=self._close_crashed),))
            flight.error = flight.loop.run.error
        finally:
            self.compactions.earlier = flight.loop.run
            if self.current is flight:
                self.current = outer if outer is not None and not outer.done.is_set() else None
            flight.done.set()
            flight.changed.set()

    def _close_crashed(self, error: Exception) -> bool:
        """The loop crashed: once more from `settling`, so that the run ends in order; then no more."""
        flight = self.current
        assert flight is not None
        self._parts.stream.publish(DiagnosticEvent(source="agent_loop", message=f"the agent loop crashed: {error!r}"))
        if flight.loop.run.state in (State.SETTLING, State.AFTER):
            self._parts.session.post(BecomeIdle())
            flight.loop.run = attrs.evolve(flight.loop.run, state=State.IDLE, error=flight.loop.run.error or error)
            return False
        flight.loop.run = attrs.evolve(flight.loop.run, state=State.SETTLING, error=error)
        return True

    def request_abort(self) -> None:
        """Asks the active run to stop, or the compaction or navigation under way; returns at once."""
        if admit(Operation.ABORT, self._parts.state.live.activity) is not Verdict.NOW:
            return
        if self.exclusives.current is not None:
            self.exclusives.current.signal.request()
        if self.current is None:
            return
        self._parts.posted(RequestAbort())
        self.current.loop.signal.request()

    def abort_compaction(self) -> None:
        """Asks the compaction or navigation under way to stop; a run that it belongs to goes on."""
        self.compactions.abort()
        if self.exclusives.current is not None:
            self.exclusives.current.signal.request()

    async def abort(self) -> None:
        """Asks the active run to stop and waits until it has settled. Raises SelfWait from inside it."""
        flight = self.current
        self.request_abort()
        if flight is not None:
            refuse_self_wait(f"run {flight.run_id}", "abort()")
        await self.wait_idle()

    def cancel_retry(self) -> None:
        """Ends a retry wait without aborting the run (LOOP-66)."""
        if self.current is not None:
            self.current.loop.retry_cancelled.set()

    async def wait_idle(self) -> None:
        """Returns when nothing is under way and no run is deferred; at once if so. Raises SelfWait from inside it."""
        while not self._parts.state.is_idle:
            if self.current is not None:
                refuse_self_wait(f"run {self.current.run_id}", "wait_idle()")
                await self.current.done.wait()
            elif self.exclusives.current is not None:
                await self.exclusives.wait("wait_idle()")
            else:
                return

    async def end(self, flight: Flight, at_once: bool) -> None:
        """Asks a run to stop and waits for its end; one that is settling as well, which an abort leaves alone."""
        self.request_abort()
        flight.loop.signal.request()
        if at_once:
            flight.loop.signal.force()
        await flight.done.wait()
