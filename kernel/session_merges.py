"""How answers of handlers merge: session operations, the user's own commands, the host's decisions.

As `hook_merges.py`, which holds the rest; named by rows of `hooks.py`.
"""

from typing import Any, Literal

import attrs

from camshaft.kernel import shapes
from camshaft.kernel.hook_merges import Merged, Now
from camshaft.kernel.session_events import (
    CacheWarmingDecisionEvent,
    CacheWarmingDecisionResult,
    CancelResult,
    ProjectTrustEvent,
    ProjectTrustResult,
    ResourcesDiscoverEvent,
    ResourcesDiscoverResult,
    SessionBeforeCompactEvent,
    SessionBeforeCompactResult,
    SessionBeforeForkEvent,
    SessionBeforeSwitchEvent,
    SessionBeforeTreeEvent,
    SessionBeforeTreeResult,
    UserBashEvent,
    UserBashResult,
)

GateEvent = SessionBeforeSwitchEvent | SessionBeforeForkEvent | SessionBeforeCompactEvent | SessionBeforeTreeEvent
GateResult = CancelResult | SessionBeforeCompactResult | SessionBeforeTreeResult


@shapes.frozen(kw_only=True)
class Gate:
    """Subject of the four `session_before_*`: the event, and the latest result that said anything."""

    event: GateEvent
    result: Any = None
    """Of the row's result class, or None."""
    by: str | None = None
    """Path of the extension that gave it."""
    cancelled: bool = False


@shapes.frozen(kw_only=True)
class Discovery:
    """Subject of `resources_discover`: each path with the extension that named it, in order."""

    event: ResourcesDiscoverEvent
    skill_paths: tuple[tuple[str, str], ...] = ()
    """(extension path, path as given)."""
    prompt_paths: tuple[tuple[str, str], ...] = ()
    theme_paths: tuple[tuple[str, str], ...] = ()


@shapes.frozen(kw_only=True)
class UserBashPlan:
    """Subject of `user_bash`: how the command is to be run, or why it is not."""

    event: UserBashEvent
    answer: UserBashResult | None = None
    """None: run it here."""
    blocked: str | None = None
    """Text of the error; the command is neither executed nor recorded (UB-5)."""


@shapes.frozen(kw_only=True)
class WarmingPlan:
    """Subject of `cache_warming_decision`: what is proposed, and what is to be done."""

    event: CacheWarmingDecisionEvent
    action: Literal["warm", "stop"]


@shapes.frozen(kw_only=True)
class TrustPlan:
    """Subject of `project_trust`: the decision so far."""

    event: ProjectTrustEvent
    trusted: bool | None = None
    """None: nobody decided."""
    remember: bool = False
    by: str | None = None
    """Path of the extension that decided."""


def show_event(subject: Gate | Discovery | UserBashPlan | WarmingPlan | TrustPlan) -> Any:
    """Every handler is shown the same event."""
    return subject.event


def merge_before(subject: Gate, _event: GateEvent, result: GateResult | None, now: Now) -> Merged:
    """A result that says anything replaces the one before; `cancel` ends the dispatch (EVT-20)."""
    if result is None or result == type(result)():
        return Merged(subject=subject)
    cancelled = result.cancel is True
    return Merged(subject=attrs.evolve(subject, result=result, by=now.extension, cancelled=cancelled), stop=cancelled)


def close_before(subject: Gate, _event: GateEvent, _error: str, now: Now) -> Merged:
    """A gate that closes on failure: the session stays (EVT-21)."""
    return Merged(subject=attrs.evolve(subject, result=None, by=now.extension, cancelled=True), stop=True)


def merge_discovery(subject: Discovery, _event: ResourcesDiscoverEvent, result: ResourcesDiscoverResult | None, now: Now) -> Merged:
    """Paths of all handlers, one after the other."""
    if result is None:
        return Merged(subject=subject)
    added: dict[str, Any] = {
        name: (*getattr(subject, name), *[(now.extension, path) for path in getattr(result, name)])
        for name in ("skill_paths", "prompt_paths", "theme_paths")
    }
    return Merged(subject=attrs.evolve(subject, **added))


def merge_user_bash(plan: UserBashPlan, event: UserBashEvent, result: UserBashResult | None, now: Now) -> Merged:
    """The first answer wins; one that is not exactly one of the two forms blocks the command (UB-4)."""
    if result is None:
        return Merged(subject=plan)
    if (result.operations is None) == (result.result is None):
        wrong = "user_bash handler must return exactly one of operations and result"
    elif result.operations is not None and not callable(getattr(result.operations, "exec", None)):
        wrong = f"user_bash handler returned operations {result.operations!r}; expected an object with exec(command, cwd, ...)"
    else:
        return Merged(subject=attrs.evolve(plan, answer=result), stop=True)
    return attrs.evolve(block_user_bash(plan, event, wrong, now), complaints=(wrong,))


def block_user_bash(plan: UserBashPlan, _event: UserBashEvent, error: str, _now: Now) -> Merged:
    """A handler that fails blocks the command (UB-5)."""
    return Merged(subject=attrs.evolve(plan, blocked=error), stop=True)


def merge_cache_decision(
    plan: WarmingPlan, _event: CacheWarmingDecisionEvent, result: CacheWarmingDecisionResult | None, _now: Now
) -> Merged:
    """The last answer wins; every handler is shown what was proposed (CACHE-8)."""
    return Merged(subject=plan if result is None else attrs.evolve(plan, action=result.action))


def merge_trust(plan: TrustPlan, _event: ProjectTrustEvent, result: ProjectTrustResult | None, now: Now) -> Merged:
    """The first yes or no ends the dispatch; saying nothing is a mistake, being undecided is not (EXT-63)."""
    if result is None:
        return Merged(subject=plan, complaints=("project_trust handler returned nothing; expected trusted to be yes, no or undecided",))
    if result.trusted == "undecided":
        return Merged(subject=plan)
    decided = attrs.evolve(plan, trusted=result.trusted == "yes", remember=result.remember is True, by=now.extension)
    return Merged(subject=decided, stop=True)
