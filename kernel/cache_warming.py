"""Keeping a provider's prompt cache warm: what may be warmed, when, whether it pays, and when it ends (CACHE-1 to CACHE-11).

Theory of operation. A provider forgets a cached prompt some time after its last use. So each real
request of the session begins a *warming*: shortly before the cache entry expires the request is
made again for one token, if that is likely to cost less than a prompt without the cache would. The
warming walks through four states:

    inactive    nothing is planned, and `reason` says why
    scheduled   a refresh is due at `due_s`
    deciding    it is due, and extensions are asked about the decision that the economics propose
    replaying   the request is being made again

TRANSITIONS has every pair of state and event that can happen; another one raises IllegalStep. What
may end a warming is looked at when something is due, and nobody needs to tell of it: another model,
other messages, a limit. The money decides last (`cache_economics.py`), and extensions may overrule it.

Times are seconds of the running clock, which every wait goes by. It stands still while the machine
sleeps and the provider's does not, so how long ago something was is asked of both clocks (`Instant`).
"""

import math
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, Literal

import attrs

from camshaft.kernel import shapes
from camshaft.kernel.beginnings import still_begins
from camshaft.kernel.cache_economics import Action, Phase, WarmingForecast, forecast, last_usage
from camshaft.kernel.errors import IllegalStep
from camshaft.kernel.models import Model, clamp_level
from camshaft.kernel.projection import Projection
from camshaft.kernel.settings import CacheWarmingMode

MARGIN_MIN_S: Final = 10.0
"""A refresh comes at least this long before the entry expires: the request has to reach the provider in time."""
MARGIN_SHARE: Final = 0.1
"""The same as a share of the lifetime; the larger of both counts."""
LIMITS_S: Final[Mapping[Phase, float]] = {"streaming": 3600.0, "idle": 1800.0}
"""How long after the real request it is refreshed at most: nobody may be there any more, and it costs money (CACHE-6)."""
WAITING: Final = "waiting for first request"
DISABLED: Final = "cache warming disabled"
NOT_CACHED: Final = "request disabled prompt caching"
NO_LIFETIME: Final = "cache lifetime unavailable"
NOT_SAFE: Final = "request cannot be replayed safely"
CHANGED: Final = "conversation context changed"
NO_ECONOMICS: Final = "cache economics unavailable"
SETTLED: Final = "agent run settled"
LIMIT_REACHED: Final[Mapping[Phase, str]] = {
    "streaming": "one-hour safety limit reached",
    "idle": "30-minute idle safety limit reached",
}
NOT_WORTH_IT: Final = "expected savings below threshold"
OVERRULED: Final = "stopped by extension"
TOO_LATE: Final = "cache refresh deadline missed"
OVER: Final = "inactive"
# The names above are the reasons of CACHE-11, word for word.


# -- what is known -----------------------------------------------------------------------


@shapes.frozen
class Instant:
    """A moment on both clocks."""

    running_s: float
    """Of the clock that waits go by."""
    wall_ms: int
    """Since the Unix epoch."""

    def since(self, earlier: "Instant") -> float:
        """Seconds since `earlier`, by the clock that says more: one may have stood still, the other may have been set back."""
        return max(self.running_s - earlier.running_s, (self.wall_ms - earlier.wall_ms) / 1000)


@shapes.frozen
class Lifetime:
    """How long the provider keeps a cache entry after its last use."""

    seconds: float

    @property
    def delay_s(self) -> float:
        """From a use to the refresh; whole milliseconds (CACHE-5)."""
        planned = min(self.seconds * (1 - MARGIN_SHARE), self.seconds - MARGIN_MIN_S)
        return max(1, math.floor(round(planned * 1000, 6))) / 1000

    @property
    def deadline_s(self) -> float:
        """From a use to when a refresh comes too late: half of what is left after the delay is over by then."""
        return self.delay_s + (self.seconds - self.delay_s) / 2


@shapes.frozen(kw_only=True, eq=False)
class Asked:
    """A real request of the session, as far as a warming depends on it."""

    model: Model
    thinking_level: str
    """As selected; what the model makes of it counts."""
    retention: str
    """`none`, `short` or `long` (STR-3)."""
    transcript: Projection
    """Of the session when it was made."""
    at: Instant


@shapes.frozen(kw_only=True, eq=False)
class View:
    """What else of the session counts, as it is now."""

    model: Model | None
    """The selected one."""
    transcript: Projection
    mode: CacheWarmingMode


def lifetime_of(model: Model, retention: str) -> Lifetime | None:
    """How long the model's provider keeps a prompt; None if that is not known, or too short to refresh in time."""
    seconds = model.prompt_cache.get(retention)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not MARGIN_MIN_S < seconds < math.inf:
        return None
    return Lifetime(float(seconds))


def refusal(asked: Asked, view: View) -> str | None:
    """Why the request is not kept warm, or None (CACHE-3, CACHE-4)."""
    if view.mode == "off":
        return DISABLED
    if asked.retention == "none":
        return NOT_CACHED
    if not _is_selected(asked, view):
        return CHANGED
    if lifetime_of(asked.model, asked.retention) is None:
        return NO_LIFETIME
    return NOT_SAFE if _has_budget(asked.model, asked.thinking_level) else None


def _is_selected(asked: Asked, view: View) -> bool:
    return view.model is not None and view.model.reference == asked.model.reference


def _has_budget(model: Model, level: str) -> bool:
    """Whether thinking takes a budget from the output limit, which a replay lowers, so that it would be another request."""
    is_adaptive = model.compat.get("forceAdaptiveThinking") is True
    return model.api == "anthropic-messages" and not is_adaptive and clamp_level(model, level) != "off"


# -- the machine -------------------------------------------------------------------------


class State(Enum):
    """Where a warming is."""

    INACTIVE = "inactive"
    SCHEDULED = "scheduled"
    DECIDING = "deciding"
    REPLAYING = "replaying"


@shapes.frozen(kw_only=True, eq=False)
class Held:
    """The request that is kept warm."""

    asked: Asked
    lifetime: Lifetime
    used: Instant
    """When the provider's cache entry was used last, as far as we know."""
    phase: Phase = "streaming"


@shapes.frozen(kw_only=True, eq=False)
class Warming:
    """The warming of one session."""

    state: State = State.INACTIVE
    reason: str = WAITING
    """Why nothing is planned; counts while INACTIVE."""
    held: Held | None = None
    """Set exactly while not INACTIVE."""
    decision: WarmingForecast | None = None
    """The last one that extensions were asked about, as it was proposed."""
    overruled: bool = False
    """They decided otherwise."""

    @property
    def due_s(self) -> float:
        """When the next refresh is due, on the running clock; not INACTIVE."""
        assert self.held is not None
        return self.held.used.running_s + self.held.lifetime.delay_s

    @property
    def deadline_s(self) -> float:
        """When it comes too late."""
        assert self.held is not None
        return self.held.used.running_s + self.held.lifetime.deadline_s


@shapes.frozen
class Requested:
    """The session makes a real request."""

    asked: Asked


@shapes.frozen
class RunSettled:
    """Its run has settled."""


@shapes.frozen
class Due:
    """The time of the refresh has come."""

    at: Instant


@shapes.frozen
class Decided:
    """Extensions were asked."""

    action: Action
    at: Instant


@shapes.frozen
class Replayed:
    """The replay has ended, well or not."""


@shapes.frozen
class Closed:
    """The session is left, or warming it failed."""


Event = Requested | RunSettled | Due | Decided | Replayed | Closed


def evolve(warming: Warming, event: Event, view: View) -> Warming:
    """The warming after `event`. Raises IllegalStep for what cannot happen in its state."""
    move = TRANSITIONS.get((warming.state, type(event)))
    if move is None:
        raise IllegalStep(f"{type(event).__name__} cannot happen while a cache warming is {warming.state.value}")
    return move(warming, event, view)


def _request(_warming: Warming, event: Requested, view: View) -> Warming:
    asked = event.asked
    reason, lifetime = refusal(asked, view), lifetime_of(asked.model, asked.retention)
    if reason is not None or lifetime is None:
        return Warming(reason=reason or NO_LIFETIME)
    return Warming(state=State.SCHEDULED, held=Held(asked=asked, lifetime=lifetime, used=asked.at))


def _settle(warming: Warming, _event: RunSettled, view: View) -> Warming:
    if view.mode != "idle":
        return Warming(reason=SETTLED if view.mode == "streaming" else DISABLED)
    assert warming.held is not None
    return attrs.evolve(warming, held=attrs.evolve(warming.held, phase="idle"))


def _due(warming: Warming, event: Due, view: View) -> Warming:
    ended = _obstacle(warming, event.at, view)
    if ended is not None:
        return Warming(reason=ended)
    return attrs.evolve(warming, state=State.DECIDING, decision=_proposed(warming, view), overruled=False)


def _decide(warming: Warming, event: Decided, view: View) -> Warming:
    """Handlers took their time: what holds is looked at once more."""
    ended = _obstacle(warming, event.at, view)
    if ended is not None:
        return Warming(reason=ended)
    assert warming.held is not None
    assert warming.decision is not None
    overruled = event.action != warming.decision.action
    if event.action == "warm":
        return attrs.evolve(warming, state=State.REPLAYING, overruled=overruled, held=attrs.evolve(warming.held, used=event.at))
    reason = NOT_WORTH_IT if warming.decision.economics_available else NO_ECONOMICS
    return Warming(reason=OVERRULED if overruled else reason, decision=warming.decision, overruled=overruled)


def _replay(warming: Warming, _event: Replayed, view: View) -> Warming:
    """A replay that failed is tried again when the next one is due (CACHE-9)."""
    ended = _invalid(warming, view)
    return attrs.evolve(warming, state=State.SCHEDULED) if ended is None else Warming(reason=ended)


def _close(_warming: Warming, _event: Closed, _view: View) -> Warming:
    return Warming(reason=OVER)


def _same(warming: Warming, _event: RunSettled, _view: View) -> Warming:
    return warming


Move = Callable[[Warming, Any, View], Warming]

TRANSITIONS: Final[Mapping[tuple[State, type[Event]], Move]] = {
    **{(state, Requested): _request for state in State},
    **{(state, Closed): _close for state in State},
    (State.INACTIVE, RunSettled): _same,
    (State.SCHEDULED, RunSettled): _settle,
    (State.DECIDING, RunSettled): _settle,
    (State.REPLAYING, RunSettled): _settle,
    (State.SCHEDULED, Due): _due,
    (State.DECIDING, Decided): _decide,
    (State.REPLAYING, Replayed): _replay,
}
"""The whole machine; a pair that is not here cannot happen."""


def _invalid(warming: Warming, view: View) -> str | None:
    """Why a replay would warm nothing that is still used, or None (CACHE-3)."""
    assert warming.held is not None
    asked = warming.held.asked
    if view.mode == "off":
        return DISABLED
    return None if _is_selected(asked, view) and still_begins(view.transcript, asked.transcript) else CHANGED


def _obstacle(warming: Warming, at: Instant, view: View) -> str | None:
    """Why the refresh that is due is not made, whatever it would save; or None (CACHE-5, CACHE-6)."""
    held = warming.held
    assert held is not None
    ended = _invalid(warming, view)
    if ended is not None:
        return ended
    if at.since(held.used) > held.lifetime.deadline_s:
        return TOO_LATE
    return LIMIT_REACHED[held.phase] if at.since(held.asked.at) >= LIMITS_S[held.phase] else None


def _proposed(warming: Warming, view: View) -> WarmingForecast:
    assert warming.held is not None
    return forecast(warming.held.asked.model.cost, last_usage(view.transcript), warming.held.phase)


# -- to be shown -------------------------------------------------------------------------


@shapes.frozen(kw_only=True)
class WarmingStatus:
    """What a frontend shows of the warming (CACHE-11)."""

    state: Literal["inactive", "scheduled", "refreshing"]
    reason: str | None = None
    """Why it is inactive, one of the texts of CACHE-11; None while it is not."""
    next_warm_at: int | None = None
    """When the refresh is due, ms since the Unix epoch; of one under way, when it was due, or began."""
    decision: WarmingForecast | None = None
    """While scheduled: what would be proposed now. Else the last proposal that extensions were asked about."""
    extension_override: bool | None = None
    """Whether they decided otherwise; None without a decision."""


def status_of(warming: Warming, view: View) -> WarmingStatus:
    """What is to be shown now: a refresh that would come to nothing is not shown as planned."""
    held = warming.held
    if held is None:
        reason = DISABLED if warming.reason == WAITING and view.mode == "off" else warming.reason
        override = None if warming.decision is None else warming.overruled
        return WarmingStatus(state="inactive", reason=reason, decision=warming.decision, extension_override=override)
    ended = _invalid(warming, view)
    if ended is not None:
        return WarmingStatus(state="inactive", reason=ended)
    scheduled = warming.state is State.SCHEDULED
    decision = _proposed(warming, view) if scheduled else warming.decision
    if scheduled and decision is not None and not decision.economics_available:
        return WarmingStatus(state="inactive", reason=NO_ECONOMICS)
    return WarmingStatus(
        state="scheduled" if scheduled else "refreshing",
        next_warm_at=held.used.wall_ms + (0 if warming.state is State.REPLAYING else round(held.lifetime.delay_s * 1000)),
        decision=decision,
        extension_override=warming.overruled and not scheduled,
    )
