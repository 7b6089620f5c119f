"""Keeps the provider's prompt cache of one session warm: the timer, the question to extensions, the replay (CACHE-1 to CACHE-12).

Every rule is in `kernel/cache_warming.py`; here time passes and requests are made. There is one
task at most, and only while a refresh is planned or under way. It belongs to one real request: the
next one, or the end of the session, cancels it in a step without a checkpoint, so nobody ever waits
for a refresh; what a cancelled one still comes back with counts for nothing. Nobody is told of a
failure but by a diagnostic, and only if it is ours: a request that fails is tried again or not.

Waits are Trio's, in the kernel's nursery: they end with its block. If the process dies, a replay
that was under way is not in the session; what it cost is known to the provider alone.
"""

from collections.abc import Mapping
from typing import Final

import attrs
import trio

from camshaft.actors.actor import Failure, apart, guard, guard_now, is_part_of, operation
from camshaft.actors.providers import ModelRequest, RequestOptions
from camshaft.actors.request_hooks import request_hooks
from camshaft.actors.seat_parts import SeatParts
from camshaft.actors.signal import AbortSignal
from camshaft.actors.summaries import unseen_answer
from camshaft.kernel import shapes
from camshaft.kernel.cache_economics import Action
from camshaft.kernel.cache_warming import (
    Asked,
    Closed,
    Decided,
    Due,
    Event,
    Instant,
    Replayed,
    Requested,
    RunSettled,
    State,
    View,
    Warming,
    WarmingStatus,
    evolve,
    status_of,
)
from camshaft.kernel.commands import AppendUsage
from camshaft.kernel.events import DiagnosticEvent
from camshaft.kernel.messages import FAILED, AssistantMessage
from camshaft.kernel.session_merges import WarmingPlan

RETENTION_VARIABLE: Final = "CAMSHAFT_CACHE_RETENTION"
"""`long` asks for long-lived cache entries in every request of a session (STR-3)."""
KIND: Final = "cache_warm"
"""Of the `usage` entries that replays leave (SES-26)."""
OVERRIDE_NOTE: Final = "extension override"
HANDLERS_END_S: Final = 3.0
"""How long before the deadline of a refresh its handlers are ended: one that ignores that is given up after two seconds."""
SLOW_TEXT: Final = "the handler was ended by force, because the cache refresh could not wait for it any longer"

_NAME: Final = "cache refresh"
"""How it is called among what would not end, and in a chain of operations."""


def default_retention(environment: Mapping[str, str]) -> str | None:
    """What requests of a session ask the provider's prompt cache for, unless they say otherwise; None leaves it to the adapter."""
    return "long" if environment.get(RETENTION_VARIABLE) == "long" else None


@shapes.define(eq=False)
class _Refreshes:
    """Those of one real request."""

    request: ModelRequest
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    signal: AbortSignal = attrs.field(factory=lambda: AbortSignal(None))
    """Of their replays."""

    def cancel(self) -> None:
        """Ends them; returns at once."""
        self.signal.force()
        self.scope.cancel()


@shapes.define(eq=False)
class CacheWarming:
    """The cache warming of one session."""

    _parts: SeatParts
    _warming: Warming = Warming()
    _current: _Refreshes | None = None
    """Set exactly while something is planned or under way."""
    _running: list[_Refreshes] = attrs.field(factory=list)
    """Whose tasks have not ended yet, cancelled ones included."""
    _ended: trio.Event | None = None
    """While somebody waits for those: set with the last one."""
    _is_over: bool = False

    @property
    def status(self) -> WarmingStatus:
        """What is to be shown of it now."""
        return status_of(self._warming, self._view)

    @property
    def options(self) -> RequestOptions:
        """The options of a request of this session: whose cache it uses, and for how long."""
        return RequestOptions(
            session_id=self._parts.state.header.id,
            cache_retention=default_retention(self._parts.world.environment),
        )

    def requested(self, request: ModelRequest) -> None:
        """A request is about to be made; one of the session itself takes the place of the one that is kept warm (CACHE-3)."""
        if self._is_over or request.options.session_id != self._parts.state.header.id:
            return
        asked = Asked(
            model=request.model,
            thinking_level=request.thinking_level,
            retention=request.options.cache_retention or "short",
            transcript=self._parts.state.projection,
            at=self._now(),
        )
        self._move(Requested(asked))
        self._cancel()
        if self._warming.state is State.SCHEDULED:
            self._current = _Refreshes(request)
            self._running.append(self._current)
            self._parts.nursery.start_soon(self._serve, self._current)

    def settled(self) -> None:
        """The run has settled; what is due from now on is decided as of an idle session, or never (CACHE-6)."""
        self._move(RunSettled())
        if self._warming.state is State.INACTIVE:
            self._cancel()

    async def end(self) -> None:
        """The session is left: nothing is planned any more, and nothing runs. Bounded; returns at once inside a refresh itself."""
        self._is_over = True
        self._move(Closed())
        self._cancel()
        if self._running and not is_part_of(self._operation):
            self._ended = trio.Event()
            await self._ended.wait()

    # -- the task ------------------------------------------------------------------------

    async def _serve(self, mine: _Refreshes) -> None:
        try:
            with mine.scope, apart(), operation(self._operation):
                outcome = await guard(self._refresh, mine)
                if isinstance(outcome, Failure) and self._current is mine:
                    self._give_up(f"the prompt cache is not kept warm any more: {outcome.text}")
        finally:
            if self._current is mine:
                self._current = None
            self._running.remove(mine)
            if self._ended is not None and not self._running:
                self._ended.set()

    async def _refresh(self, mine: _Refreshes) -> None:
        """Until nothing is planned. After each wait the request may be another one's: a cancellation is felt at the next wait only."""
        while self._is_at(State.SCHEDULED, mine):
            await trio.sleep_until(self._warming.due_s)
            if not self._is_at(State.SCHEDULED, mine):
                return
            self._move(Due(self._now()))
            if not self._is_at(State.DECIDING, mine):
                return
            action = await self._asked()
            if not self._is_at(State.DECIDING, mine):
                return
            self._move(Decided(action, self._now()))
            if not self._is_at(State.REPLAYING, mine):
                return
            answer = await self._replayed(mine)
            if not self._is_at(State.REPLAYING, mine):
                return
            self._move(Replayed())
            if self._is_at(State.SCHEDULED, mine) and answer is not None and answer.stop_reason not in FAILED:
                self._record(mine, answer)

    def _is_at(self, state: State, mine: _Refreshes) -> bool:
        return self._current is mine and self._warming.state is state

    async def _asked(self) -> Action:
        """What extensions make of the decision; who does not answer in time is ended by force, and what was said before stands."""
        host, proposed = self._parts.host, self._warming.decision
        assert proposed is not None
        plan = WarmingPlan(event=proposed.event, action=proposed.action)
        if not host.has("cache_warming_decision"):
            return plan.action
        shown = [plan]
        with trio.move_on_at(self._warming.deadline_s - HANDLERS_END_S) as patience:
            outcome = await guard(host.dispatch, "cache_warming_decision", plan, shown.append)
            if isinstance(outcome, Failure):
                host.report_failure("<runtime>", "cache_warming_decision", outcome)
            else:
                shown.append(outcome.value)  # type: ignore[union-attr]  # no scope, no Cut
        if patience.cancelled_caught:
            path, hook = host.oversight.interrupted or ("<runtime>", "cache_warming_decision")
            host.report(path, hook, SLOW_TEXT)
        return shown[-1].action

    async def _replayed(self, mine: _Refreshes) -> AssistantMessage | None:
        """The answer to the same request for one token (CACHE-1); None if it did not come before the cache entry expires."""
        held, request = self._warming.held, mine.request
        assert held is not None
        options = attrs.evolve(request.options, max_tokens=1, max_retries=0, disable_continuation=True)
        replay = attrs.evolve(request, options=options, hooks=request_hooks(self._parts.host, request.model))
        with trio.move_on_after(held.lifetime.seconds):
            return await unseen_answer(self._parts, _NAME, replay, mine.signal)
        return None

    def _record(self, mine: _Refreshes, answer: AssistantMessage) -> None:
        """What it cost, as a `usage` entry (CACHE-10)."""
        model = mine.request.model
        note = OVERRIDE_NOTE if self._warming.overruled else None
        name = answer.response_model or model.id
        entry = AppendUsage(kind=KIND, provider=model.provider, model=name, usage=answer.usage, note=note)
        outcome = guard_now(self._parts.posted, entry)
        if isinstance(outcome, Failure):
            self._give_up(f"the prompt cache is not kept warm any more, because its cost could not be stored: {outcome.text}")

    def _give_up(self, text: str) -> None:
        self._move(Closed())
        self._parts.stream.publish(DiagnosticEvent(source="cache_warming", message=text))

    # -- what the machine is told --------------------------------------------------------

    def _move(self, event: Event) -> None:
        self._warming = evolve(self._warming, event, self._view)

    def _cancel(self) -> None:
        current, self._current = self._current, None
        if current is not None:
            current.cancel()

    @property
    def _operation(self) -> str:
        return f"{_NAME} of session {self._parts.state.header.id}"

    @property
    def _view(self) -> View:
        state = self._parts.state
        return View(model=state.selection.model, transcript=state.projection, mode=state.settings.cache_warming)

    def _now(self) -> Instant:
        return Instant(trio.current_time(), self._parts.session.now_ms())
