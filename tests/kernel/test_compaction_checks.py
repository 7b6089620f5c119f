"""When the last answer, or the size of the context, asks for a compaction."""

from typing import Any

import attrs
import pytest

from camshaft.kernel.compaction_checks import Need, attempt, barren_after, due_before_request, due_between_turns, need
from camshaft.kernel.entries import Entry, SessionHeader
from camshaft.kernel.messages import ToolResultMessage, Usage
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.projection import project
from camshaft.kernel.run_data import Barren, Last, Run, View
from camshaft.kernel.settings import CompactionSettings, Settings
from camshaft.kernel.state import SessionState, initial
from camshaft.kernel.tree import tree_of
from tests.kernel.made import TIME, assistant, compaction, edit, said, user

MODEL = Model(id="m", provider="acme", api="x", context_window=5000, max_tokens=100)
LATER_MS = 2_000_000_000_000
SETTINGS = Settings(compaction=CompactionSettings(reserve_tokens=1000, keep_recent_tokens=2))


def used(tokens: int) -> Usage:
    return Usage(input=tokens, total_tokens=tokens)


def asked(*more: Entry, settings: Settings = SETTINGS, barren: Barren | None = None, **last: Any) -> tuple[Run, View]:
    """A run whose last answer, after a user's message and an answer, has these fields; then come `more` entries."""
    entries: list[Entry] = [user("u", None, "x" * 40), assistant("a", "u"), user("v", "a", "x" * 40)]
    entries += [assistant("l", "v", **{"timestamp": LATER_MS, **last}), *more]
    tree = tree_of(entries=entries)
    state: SessionState = initial(SessionHeader(id="s", timestamp=TIME, cwd="/"), tree, tree.length - 1, (), settings)
    state = attrs.evolve(state, selection=attrs.evolve(state.selection, model=MODEL))
    message: Any = getattr(entries[3], "message", None)
    return Run(id="r", last=Last(message=message, entry_id="l")), View(state=state, barren=barren)


OVERFLOW: dict[str, Any] = {"stop_reason": "error", "error_message": "prompt is too long"}
CUT: dict[str, Any] = {"stop_reason": "length", "usage": Usage(output=9, total_tokens=9)}
OFF = attrs.evolve(SETTINGS, compaction=attrs.evolve(SETTINGS.compaction, enabled=False))


@pytest.mark.rule("RTY-20", "RTY-21", "RTY-22", "RTY-23", "RTY-30", "CMP-11", "CMP-14", "CMP-16", "CMP-17", "CMP-53")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(asked(usage=used(4000)), Need.NOTHING, id="at the threshold"),
        pytest.param(asked(usage=used(4001)), Need.COMPACTION, id="above the threshold"),
        pytest.param(asked(usage=used(4001), settings=OFF), Need.NOTHING, id="switched off"),
        pytest.param(asked(usage=used(4001), timestamp=1), Need.COMPACTION, id="no compaction to be older than"),
        pytest.param(asked(compaction("k", "l", "v"), usage=used(4001), timestamp=1), Need.NOTHING, id="older than the compaction"),
        pytest.param(asked(usage=used(9000)), Need.COMPACTION, id="a silent overflow"),
        pytest.param(asked(**OVERFLOW), Need.RECOVERY, id="an overflow"),
        pytest.param(asked(**OVERFLOW, provider="other"), Need.NOTHING, id="of another model"),
        pytest.param(asked(edit("e", "l", "l"), **OVERFLOW), Need.NOTHING, id="that was taken out"),
        pytest.param(asked(edit("e", "l", "l", "x"), **OVERFLOW), Need.RECOVERY, id="whose content was edited"),
        pytest.param(asked(**CUT), Need.RECOVERY, id="cut with room left"),
        pytest.param(asked(edit("e", "l", "u", "x"), **CUT), Need.NOTHING, id="but edited since"),
        pytest.param(asked(stop_reason="length", usage=Usage(output=100, total_tokens=100)), Need.NOTHING, id="cut at the limit"),
        pytest.param(asked(stop_reason="aborted", usage=used(4001)), Need.NOTHING, id="aborted"),
        pytest.param(asked(stop_reason="error", error_message="bad key"), Need.NOTHING, id="another error"),
    ],
)
def test_the_last_answer_asks_for_what_it_shows(given: tuple[Run, View], expected: Need) -> None:
    assert need(*given) is expected


@pytest.mark.rule("CMP-14", "RTY-30")
def test_an_aborted_answer_counts_before_a_prompt() -> None:
    assert need(*asked(stop_reason="aborted", usage=used(4001)), before_prompt=True) is Need.COMPACTION


@pytest.mark.rule("RTY-24", "RTY-25")
@pytest.mark.parametrize(("reported", "expected"), [((), Need.BEYOND), (("l",), Need.NOTHING)])
def test_what_was_tried_is_told_once(reported: tuple[str, ...], expected: Need) -> None:
    run, view = asked(**OVERFLOW)

    assert need(attrs.evolve(run, tried=True, reported=reported), view) is expected


@pytest.mark.rule("RTY-31", "CMP-12")
@pytest.mark.parametrize(("window", "tokens", "due"), [(5000, 4001, True), (5000, 4000, False), (0, 4001, False)])
def test_between_turns_the_estimate_of_the_context_counts(window: int, tokens: int, due: bool) -> None:
    _, view = asked(usage=used(tokens))
    model = attrs.evolve(MODEL, context_window=window)
    state = attrs.evolve(view.state, selection=attrs.evolve(view.state.selection, model=model))

    assert due_between_turns(attrs.evolve(view, state=state)) is due


def selecting_virtual(view: View, answered: Model | None, window: int = 0) -> View:
    """The same, with a virtual model selected, and who answered last."""
    model = Model(id="best", provider="auto", api="pi-virtual", context_window=window)
    return attrs.evolve(view, state=attrs.evolve(view.state, selection=attrs.evolve(view.state.selection, model=model)), answered=answered)


@pytest.mark.rule("CMP-14", "VM-14", "RTY-31")
@pytest.mark.parametrize(("window", "due"), [(5000, True), (6000, False), (0, False)])
def test_for_a_virtual_model_the_window_of_the_routed_one_counts_before_the_request(window: int, due: bool) -> None:
    view = selecting_virtual(asked(usage=used(4001))[1], MODEL, 5000)

    assert not due_between_turns(view)
    assert due_before_request(view, attrs.evolve(MODEL, context_window=window)) is due


@pytest.mark.rule("VM-15", "RTY-22", "CMP-53")
@pytest.mark.parametrize(
    ("last", "answered", "window", "expected"),
    [
        pytest.param({"usage": used(4001)}, MODEL, 0, Need.COMPACTION, id="the window of who answered"),
        pytest.param({"usage": used(4001)}, MODEL, 100_000, Need.COMPACTION, id="and not the declared one"),
        pytest.param({"usage": used(4001)}, None, 5000, Need.COMPACTION, id="the declared one, if that is not known"),
        pytest.param({"usage": used(4001)}, None, 0, Need.NOTHING, id="none at all"),
        pytest.param(OVERFLOW, MODEL, 0, Need.RECOVERY, id="an overflow of a known model"),
        pytest.param(OVERFLOW, None, 0, Need.NOTHING, id="an overflow of an unknown one"),
        pytest.param({**OVERFLOW, "api": "pi-virtual", "provider": "auto", "model": "best"}, MODEL, 0, Need.NOTHING, id="of routing"),
    ],
)
def test_for_a_virtual_model_the_limits_of_who_answered_count(
    last: dict[str, Any], answered: Model | None, window: int, expected: Need
) -> None:
    run, view = asked(**last)

    assert need(run, selecting_virtual(view, answered, window)) is expected


@pytest.mark.rule("CMP-10", "VM-15")
def test_overrides_are_those_of_the_selected_model() -> None:
    overrides = FrozenDict({"auto/best": FrozenDict({"reserveTokens": 0}), "acme/m": FrozenDict({"reserveTokens": 4999})})
    settings = attrs.evolve(SETTINGS, compaction=attrs.evolve(SETTINGS.compaction, model_overrides=overrides))
    run, view = asked(usage=used(4001), settings=settings)

    assert need(run, selecting_virtual(view, MODEL)) is Need.NOTHING


def test_a_compaction_that_gained_nothing_is_not_repeated_until_the_context_has_grown() -> None:
    last = assistant("z", "w", usage=used(4001), timestamp=LATER_MS)
    kept: list[Entry] = [compaction("k", "l", "v"), user("w", "k", "x" * 40), last]
    run, view = asked(*kept)
    message: Any = last.message
    run = attrs.evolve(run, last=Last(message=message, entry_id="z"))

    found = [
        need(run, attrs.evolve(view, barren=barren)) for barren in (None, Barren(entry_id="k", tokens=22), Barren(entry_id="k", tokens=5))
    ]

    assert found == [Need.COMPACTION, Need.NOTHING, Need.COMPACTION]
    assert need(run, attrs.evolve(view, barren=Barren(entry_id="other", tokens=10_000))) is Need.COMPACTION


@pytest.mark.parametrize(("before", "barren"), [(20, False), (13, True), (5, True)])
def test_a_compaction_that_gains_less_than_a_tenth_is_remembered(before: int, barren: bool) -> None:
    tree = tree_of(entries=[user("u", None, "x" * 48), compaction("k", "u", "u")])

    found = barren_after(before, project(tree, 1))

    assert (found == Barren(entry_id="k", tokens=13)) is barren


@pytest.mark.rule("CMP-55")
def test_an_attempt_is_the_answer_with_its_results_up_to_the_next_answer() -> None:
    def result(own: str, parent: str) -> Entry:
        return said(own, parent, ToolResultMessage(tool_call_id="t", tool_name="n", is_error=False, timestamp=1))

    tree = tree_of(
        entries=[user("u", None), assistant("a", "u"), result("r", "a"), result("s", "r"), assistant("b", "s"), result("t", "b")]
    )

    assert attempt(project(tree, 5), "a") == ("a", "r", "s")
    assert attempt(project(tree, 5), "b") == ("b", "t")
