"""When a prompt cache is kept warm, and whether it pays: every pair of state and event, every reason."""

from itertools import product
from typing import Any, get_args

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camshaft.kernel.cache_economics import forecast
from camshaft.kernel.cache_warming import (
    TRANSITIONS,
    Asked,
    Closed,
    Decided,
    Due,
    Event,
    Instant,
    Lifetime,
    Replayed,
    Requested,
    RunSettled,
    State,
    View,
    Warming,
    WarmingStatus,
    evolve,
    lifetime_of,
    refusal,
    status_of,
)
from camshaft.kernel.entries import Entry
from camshaft.kernel.errors import IllegalStep
from camshaft.kernel.messages import Usage
from camshaft.kernel.models import Model, Rates
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.projection import Projection, project
from camshaft.kernel.tree import tree_of
from tests.kernel.made import assistant, compaction, edit, user

RATES = Rates(input=3, output=15, cache_read=0.3, cache_write=3.75)
"""USD per million tokens, of the examples of CACHE-7."""
MODEL = Model(id="m", provider="p", api="x", cost=RATES, prompt_cache=FrozenDict({"short": 300, "long": 3600}))
LARGE = Usage(input=1, cache_read=400_000, cache_write=99_999)
"""Of a prompt that is worth warming, also in an idle session."""


def branch(*entries: Entry) -> Projection:
    tree = tree_of(entries=entries)
    return project(tree, tree.length - 1 if entries else None)


TALK: tuple[Entry, ...] = (user("u", None), assistant("a", "u", usage=LARGE))
BEFORE, AFTER = branch(TALK[0]), branch(*TALK)


def at(seconds: float) -> Instant:
    return Instant(seconds, 1_000_000 + round(seconds * 1000))


def asked(**changes: Any) -> Asked:
    given: dict[str, Any] = {"model": MODEL, "thinking_level": "off", "retention": "short", "transcript": BEFORE, "at": at(0)}
    return Asked(**{**given, **changes})


def view(**changes: Any) -> View:
    given: dict[str, Any] = {"model": MODEL, "transcript": AFTER, "mode": "idle"}
    return View(**{**given, **changes})


def walked(*events: Event, now: View | None = None) -> Warming:
    warming = Warming()
    for event in events:
        warming = evolve(warming, event, now or view())
    return warming


REQUEST, SETTLE = Requested(asked()), RunSettled()
PATHS: dict[State, tuple[Event, ...]] = {
    State.INACTIVE: (),
    State.SCHEDULED: (REQUEST,),
    State.DECIDING: (REQUEST, Due(at(270))),
    State.REPLAYING: (REQUEST, Due(at(270)), Decided("warm", at(270))),
}
"""How each state is reached."""
NEXT: dict[tuple[State, type[Event]], State] = {
    **{(state, Requested): State.SCHEDULED for state in State},
    **{(state, Closed): State.INACTIVE for state in State},
    **{(state, RunSettled): state for state in State},
    (State.SCHEDULED, Due): State.DECIDING,
    (State.DECIDING, Decided): State.REPLAYING,
    (State.REPLAYING, Replayed): State.SCHEDULED,
}
"""Where each event leads, if nothing is in the way."""
EVENTS: dict[type[Event], Event] = {
    Requested: REQUEST,
    RunSettled: SETTLE,
    Due: Due(at(270)),
    Decided: Decided("warm", at(270)),
    Replayed: Replayed(),
    Closed: Closed(),
}


# -- the table ---------------------------------------------------------------------------


def test_every_state_can_be_reached_and_every_event_is_known() -> None:
    assert {state: walked(*path).state for state, path in PATHS.items()} == {state: state for state in State}
    assert set(EVENTS) == set(get_args(Event))
    assert set(TRANSITIONS) == set(NEXT)


@pytest.mark.parametrize(("state", "kind"), list(product(State, EVENTS)))
def test_an_event_leads_on_or_cannot_happen(state: State, kind: type[Event]) -> None:
    warming, event = walked(*PATHS[state]), EVENTS[kind]
    if (state, kind) not in NEXT:
        with pytest.raises(IllegalStep, match=kind.__name__):
            evolve(warming, event, view())
        return

    after = evolve(warming, event, view())

    assert after.state is NEXT[state, kind]
    assert (after.held is None) == (after.state is State.INACTIVE)


# -- what is warmed ----------------------------------------------------------------------

THINKING: dict[str, Any] = {"api": "anthropic-messages", "reasoning": True}
REFUSED: dict[str, tuple[Asked, View, str | None]] = {
    "as usual": (asked(), view(), None),
    "long": (asked(retention="long"), view(), None),
    "switched off": (asked(), view(mode="off"), "cache warming disabled"),
    "switched off, and more": (asked(retention="none"), view(mode="off"), "cache warming disabled"),
    "not cached": (asked(retention="none"), view(), "request disabled prompt caching"),
    "no lifetime": (asked(model=attrs.evolve(MODEL, prompt_cache=FrozenDict())), view(), "cache lifetime unavailable"),
    "none for that retention": (
        asked(model=attrs.evolve(MODEL, prompt_cache=FrozenDict({"long": 3600})), retention="short"),
        view(),
        "cache lifetime unavailable",
    ),
    "too short": (asked(model=attrs.evolve(MODEL, prompt_cache=FrozenDict({"short": 10}))), view(), "cache lifetime unavailable"),
    "budget thinking": (
        asked(model=attrs.evolve(MODEL, **THINKING), thinking_level="low"),
        view(),
        "request cannot be replayed safely",
    ),
    "no thinking": (asked(model=attrs.evolve(MODEL, **THINKING)), view(), None),
    "thinking that cannot be off": (
        asked(model=attrs.evolve(MODEL, **THINKING, thinking_level_map=FrozenDict({"off": None}))),
        view(),
        "request cannot be replayed safely",
    ),
    "adaptive thinking": (
        asked(model=attrs.evolve(MODEL, **THINKING, compat=FrozenDict({"forceAdaptiveThinking": True})), thinking_level="low"),
        view(),
        None,
    ),
    "thinking elsewhere": (asked(model=attrs.evolve(MODEL, api="openai-responses", reasoning=True), thinking_level="high"), view(), None),
    "another model": (asked(model=attrs.evolve(MODEL, id="routed")), view(), "conversation context changed"),
    "no model": (asked(), view(model=None), "conversation context changed"),
    "another record of the same model": (asked(), view(model=attrs.evolve(MODEL, name="New")), None),
}


@pytest.mark.rule("CACHE-2", "CACHE-3", "CACHE-4")
@pytest.mark.parametrize("case", REFUSED)
def test_a_request_is_kept_warm_or_there_is_a_reason(case: str) -> None:
    request, now, reason = REFUSED[case]

    warming = evolve(Warming(), Requested(request), now)

    assert refusal(request, now) == reason
    assert (warming.state, warming.reason if reason else None) == (State.INACTIVE if reason else State.SCHEDULED, reason)


@pytest.mark.parametrize("seconds", [0, -1, 10, 9.9, float("inf"), float("nan"), True, "300", None, [300]])
def test_a_lifetime_that_is_none_is_unknown(seconds: Any) -> None:
    assert lifetime_of(attrs.evolve(MODEL, prompt_cache=FrozenDict({"short": seconds})), "short") is None


def test_a_request_that_is_not_kept_ends_the_warming_before_it() -> None:
    assert walked(REQUEST, Requested(asked(retention="none"))).reason == "request disabled prompt caching"


# -- when --------------------------------------------------------------------------------


@pytest.mark.rule("CACHE-5")
@pytest.mark.parametrize(
    ("lifetime", "delay", "deadline"),
    [
        (300, 270, 285),
        (60, 50, 55),
        (3600, 3240, 3420),
        (100, 90, 95),
        (10.0001, 0.001, 5.00055),
        (11, 1, 6),
        (123.4567, 111.111, 117.28385),
    ],
)
def test_the_delay_leaves_a_margin_and_half_of_it_is_the_deadline(lifetime: float, delay: float, deadline: float) -> None:
    found = Lifetime(lifetime)

    assert found.delay_s == delay
    assert found.deadline_s == pytest.approx(deadline)


@given(st.floats(min_value=10, max_value=1e7, exclude_min=True))
def test_a_refresh_is_due_before_its_deadline_and_that_before_the_end(lifetime: float) -> None:
    found = Lifetime(lifetime)

    assert 0 < found.delay_s < found.deadline_s < lifetime


@pytest.mark.rule("CACHE-5")
@pytest.mark.parametrize(
    ("moment", "reason"),
    [(at(285), None), (at(285.001), "cache refresh deadline missed"), (Instant(270, 1_000_000 + 285_001), "cache refresh deadline missed")],
    ids=["in time", "late", "after a sleep of the machine"],
)
def test_a_refresh_that_comes_too_late_ends_the_warming(moment: Instant, reason: str | None) -> None:
    due = walked(REQUEST, Due(moment))
    decided = walked(REQUEST, Due(at(270)), Decided("warm", moment))

    assert [(each.state is State.INACTIVE, each.reason if reason else None) for each in (due, decided)] == [
        (reason is not None, reason)
    ] * 2


def test_a_wall_clock_that_was_set_back_changes_nothing() -> None:
    assert walked(REQUEST, Due(Instant(270, 0))).state is State.DECIDING
    assert walked(REQUEST, Due(Instant(286, 0))).reason == "cache refresh deadline missed"


LIMITS = [
    ("streaming", 3599, None),
    ("streaming", 3600, "one-hour safety limit reached"),
    ("idle", 1799, None),
    ("idle", 1800, "30-minute idle safety limit reached"),
]


@pytest.mark.rule("CACHE-6")
@pytest.mark.parametrize(("phase", "seconds", "reason"), LIMITS)
def test_a_request_is_kept_warm_for_so_long_whatever_was_refreshed_meanwhile(phase: str, seconds: float, reason: str | None) -> None:
    warming = walked(REQUEST, *([SETTLE] if phase == "idle" else []))
    moment = 0
    while moment + 270 < seconds:
        moment += 270
        for event in (Due(at(moment)), Decided("warm", at(moment)), Replayed()):
            warming = evolve(warming, event, view())

    after = evolve(warming, Due(at(seconds)), view())

    assert (after.state, after.reason if reason else None) == (State.INACTIVE if reason else State.DECIDING, reason)


@pytest.mark.rule("CACHE-6")
@pytest.mark.parametrize("state", [State.SCHEDULED, State.DECIDING, State.REPLAYING])
@pytest.mark.parametrize(("mode", "reason"), [("idle", None), ("streaming", "agent run settled"), ("off", "cache warming disabled")])
def test_a_run_that_settles_ends_the_warming_or_makes_it_idle(state: State, mode: Any, reason: str | None) -> None:
    after = evolve(walked(*PATHS[state]), SETTLE, view(mode=mode))

    if reason is not None:
        assert (after.state, after.reason) == (State.INACTIVE, reason)
        return
    assert after.held is not None
    assert (after.state, after.held.phase) == (state, "idle")


# -- what extensions say -----------------------------------------------------------------

SMALL = view(transcript=branch(TALK[0], assistant("a", "u", usage=Usage(input=10))))
UNKNOWN = view(transcript=BEFORE)
ANSWERS: list[tuple[View, Any, State, str | None, bool]] = [
    (view(), "warm", State.REPLAYING, None, False),
    (view(), "stop", State.INACTIVE, "stopped by extension", True),
    (SMALL, "stop", State.INACTIVE, "expected savings below threshold", False),
    (SMALL, "warm", State.REPLAYING, None, True),
    (UNKNOWN, "stop", State.INACTIVE, "cache economics unavailable", False),
    (UNKNOWN, "warm", State.REPLAYING, None, True),
]


@pytest.mark.rule("CACHE-8", "CACHE-9", "CACHE-11")
@pytest.mark.parametrize(("now", "action", "state", "reason", "overruled"), ANSWERS)
def test_extensions_have_the_last_word(now: View, action: Any, state: State, reason: str | None, overruled: bool) -> None:
    after = walked(REQUEST, Due(at(270)), Decided(action, at(271)), now=now)

    assert (after.state, after.reason if reason else None, after.overruled) == (state, reason, overruled)
    assert after.decision is not None
    assert status_of(after, now).extension_override is overruled


@pytest.mark.rule("CACHE-9")
def test_after_a_refresh_the_next_one_is_due_after_the_same_delay() -> None:
    warming = walked(REQUEST, Due(at(270)), Decided("warm", at(272)), Replayed())

    assert (warming.state, warming.due_s, warming.deadline_s) == (State.SCHEDULED, 542, 557)


# -- what makes it worthless -------------------------------------------------------------

CHANGES: dict[str, tuple[View, str | None]] = {
    "nothing": (view(), None),
    "more messages": (view(transcript=branch(*TALK, user("v", "a"))), None),
    "another model": (view(model=attrs.evolve(MODEL, id="other")), "conversation context changed"),
    "no model": (view(model=None), "conversation context changed"),
    "a compaction": (view(transcript=branch(*TALK, compaction("c", "a", "u"))), "conversation context changed"),
    "an edit": (view(transcript=branch(*TALK, edit("e", "a", "u", "other"))), "conversation context changed"),
    "an edit of what came later": (view(transcript=branch(*TALK, edit("e", "a", "a"))), None),
    "another branch": (view(transcript=branch(user("w", None))), "conversation context changed"),
    "the root": (view(transcript=branch()), "conversation context changed"),
    "switched off": (view(mode="off"), "cache warming disabled"),
}


@pytest.mark.rule("CACHE-3", "CACHE-10")
@pytest.mark.parametrize("case", CHANGES)
@pytest.mark.parametrize("state", [State.SCHEDULED, State.DECIDING, State.REPLAYING])
def test_a_changed_session_ends_the_warming_at_the_next_step(case: str, state: State) -> None:
    now, reason = CHANGES[case]
    step: dict[State, Event] = {State.SCHEDULED: Due(at(270)), State.DECIDING: Decided("warm", at(270)), State.REPLAYING: Replayed()}

    after = evolve(walked(*PATHS[state]), step[state], now)

    assert (after.state is State.INACTIVE, after.reason if reason else None) == (reason is not None, reason)
    if reason is not None:
        assert status_of(walked(*PATHS[state]), now) == WarmingStatus(state="inactive", reason=reason)


# -- what is shown -----------------------------------------------------------------------


@pytest.mark.rule("CACHE-11")
def test_the_status_of_each_state() -> None:
    waiting = status_of(Warming(), view())
    off = status_of(Warming(), view(mode="off"))
    scheduled, deciding, replaying = [status_of(walked(*PATHS[state]), view()) for state in list(State)[1:]]
    closed = status_of(walked(REQUEST, Closed()), view())

    assert (waiting, off, closed) == (
        WarmingStatus(state="inactive", reason="waiting for first request"),
        WarmingStatus(state="inactive", reason="cache warming disabled"),
        WarmingStatus(state="inactive", reason="inactive"),
    )
    assert [(each.state, each.reason, each.next_warm_at) for each in (scheduled, deciding, replaying)] == [
        ("scheduled", None, 1_270_000),
        ("refreshing", None, 1_270_000),
        ("refreshing", None, 1_270_000),
    ]
    assert [each.decision for each in (scheduled, deciding, replaying)] == [forecast(RATES, LARGE, "streaming")] * 3


@pytest.mark.rule("CACHE-11")
def test_a_refresh_is_shown_as_planned_while_there_is_anything_to_reckon_with() -> None:
    small, unknown = status_of(walked(REQUEST), SMALL), status_of(walked(REQUEST), UNKNOWN)

    assert (small.state, small.decision and small.decision.action) == ("scheduled", "stop")
    assert unknown == WarmingStatus(state="inactive", reason="cache economics unavailable")
