"""Why a request is routed, by whom it was answered before, which state and which selection a branch has."""

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camshaft.kernel.entries import CustomEntry, Entry, ModelChangeEntry, SessionHeader
from camshaft.kernel.messages import CustomMessage, UserMessage
from camshaft.kernel.models import VIRTUAL_API, Model
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.projection import Projection, extend, project
from camshaft.kernel.routing import (
    STATE_TYPE,
    FailedAnswer,
    RouterStates,
    failed_of,
    implied_model,
    is_news,
    last_answer,
    model_to_record,
    previous_of,
    reason_of,
    state_data,
)
from camshaft.kernel.run_data import Last, Run
from camshaft.kernel.settings import Settings
from camshaft.kernel.state import SessionState, initial
from camshaft.kernel.tree import Tree, tree_of
from tests.kernel.made import TIME, assistant, compaction, file_of, opened, said, user

BEST = Model(id="best", provider="auto", api=VIRTUAL_API)
KNOWN = {("acme", "m"): Model(id="m", provider="acme", api="x")}


def find(provider: str, model_id: str) -> Model | None:
    return KNOWN.get((provider, model_id))


def message(**fields: Any) -> Any:
    return assistant("a", None, **fields).message


SPOKEN = UserMessage(content="go", timestamp=1)
ANSWER = message(thinking_level="low")
FAILURE = message(stop_reason="error", error_message="503")
UNROUTED = message(api=VIRTUAL_API, provider="auto", model="best", stop_reason="error", error_message="no route")


def run(last: Any = None, **fields: Any) -> Run:
    return Run(id="r", last=None if last is None else Last(message=last, entry_id="l"), **fields)


@pytest.mark.rule("VM-7")
@pytest.mark.parametrize(
    ("asking", "messages", "reason"),
    [
        pytest.param(run(), [SPOKEN], "user", id="a first prompt"),
        pytest.param(run(ANSWER), [SPOKEN, ANSWER], "continuation", id="nobody spoke"),
        pytest.param(
            run(ANSWER),
            [ANSWER, SPOKEN, CustomMessage(custom_type="n", content="note", display=True, timestamp=1)],
            "user",
            id="somebody spoke",
        ),
        pytest.param(run(), [], "continuation", id="nothing at all"),
        pytest.param(run(FAILURE, omitted="l", attempt=1), [SPOKEN], "retry", id="after a retry was announced"),
        pytest.param(run(FAILURE, omitted="l", job="recovery"), [SPOKEN], "retry", id="after an overflow was recovered from"),
        pytest.param(run(FAILURE, omitted="l"), [SPOKEN], "user", id="after the retry was called off"),
        pytest.param(run(ANSWER, omitted="k", attempt=1), [SPOKEN], "user", id="after the retry was answered"),
    ],
)
def test_a_request_has_its_reason(asking: Run, messages: Any, reason: str) -> None:
    assert reason_of(asking, messages) == reason


@pytest.mark.rule("VM-6", "VM-9")
def test_only_a_known_physical_model_answered_before() -> None:
    assert previous_of([ANSWER, SPOKEN, UNROUTED, FAILURE], find) == previous_of([ANSWER], find)
    found = previous_of([ANSWER], find)
    assert found is not None
    assert (found.model, found.thinking_level) == (KNOWN["acme", "m"], "low")
    assert previous_of([ANSWER, message(model="gone")], find) is None
    assert previous_of([UNROUTED], find) is None


@pytest.mark.rule("VM-6", "VM-9", "RTY-12")
def test_only_a_retry_of_a_known_physical_model_has_a_failure() -> None:
    retry: dict[str, Any] = {"omitted": "l", "attempt": 1}

    assert failed_of(run(FAILURE, **retry), find) == FailedAnswer(model=KNOWN["acme", "m"], message=FAILURE)
    assert failed_of(run(FAILURE), find) is None
    assert failed_of(run(UNROUTED, **retry), find) is None
    assert failed_of(run(attrs.evolve(FAILURE, model="gone"), **retry), find) is None


@pytest.mark.rule("VM-15")
def test_the_last_message_of_a_physical_model_is_the_last_answer_failed_or_not() -> None:
    assert last_answer([ANSWER, FAILURE, UNROUTED, SPOKEN]) is FAILURE
    assert last_answer([UNROUTED, SPOKEN]) is None


OBJECT = FrozenDict({"n": 1})


@pytest.mark.rule("VM-12")
@pytest.mark.parametrize(
    ("given_state", "before", "news"),
    [
        (None, OBJECT, False),
        (OBJECT, OBJECT, False),
        ({"n": 1}, OBJECT, True),
        ((), (1,), True),
        ("a", "a", False),
        ("a", None, True),
        (1, 1.0, False),
        (1, True, True),
        (False, 0, True),
        (True, True, False),
        (0.5, 0.25, True),
    ],
)
def test_a_state_is_news_by_identity_and_if_it_has_none_by_value(given_state: Any, before: Any, news: bool) -> None:
    assert is_news(given_state, before) is news


# -- states on a branch ----------------------------------------------------------------------


def state(entry_id: str, parent: str | None, value: Any, model: Model = BEST, **fields: Any) -> CustomEntry:
    data = state_data(model, value)
    return CustomEntry(id=entry_id, parent_id=parent, timestamp=TIME, **{"custom_type": STATE_TYPE, "data": data, **fields})


def branch_of(*entries: Entry) -> Projection:
    tree = tree_of(entries=list(entries))
    return project(tree, tree.length - 1)


@pytest.mark.rule("VM-12", "SES-31")
def test_the_latest_state_of_the_model_counts_also_from_before_a_compaction() -> None:
    other = attrs.evolve(BEST, id="other")
    entries: list[Entry] = [user("u", None), state("s", "u", 1), state("t", "s", 2, other), assistant("a", "t"), compaction("c", "a", "a")]

    assert RouterStates().latest(branch_of(*entries), BEST) == 1
    assert RouterStates().latest(branch_of(*entries), other) == 2
    assert RouterStates().latest(branch_of(*entries[:1]), BEST) is None
    assert RouterStates().latest(project(tree_of(entries=[]), None), BEST) is None


@pytest.mark.parametrize("data", [None, "text", FrozenDict({"provider": "auto"}), FrozenDict({"provider": "auto", "modelId": "best"})])
def test_a_state_entry_that_says_nothing_gives_none(data: Any) -> None:
    assert RouterStates().latest(branch_of(state("s", None, 1, data=data)), BEST) is None


def naive(projection: Projection) -> Any:
    """The last state on the branch, looked for by decoding everything."""
    found = None
    for index in range(len(projection.path)):
        entry = projection.tree.entry(projection.path[index])
        if isinstance(entry, CustomEntry) and entry.custom_type == STATE_TYPE and isinstance(entry.data, FrozenDict):
            found = entry.data.get("state")
    return found


@given(
    st.lists(st.tuples(st.sampled_from(["state", "user", "assistant", "look", "move"]), st.integers(0, 100)), max_size=40), st.booleans()
)
def test_what_was_looked_at_before_makes_no_difference(steps: list[tuple[str, int]], from_file: bool) -> None:
    """The states of one object that looks at branches as they grow, are left and come back, and of a fresh look."""
    states, entries = RouterStates(), list[Entry]()
    start = opened(file_of([user("root", None), state("first", "root", "old")])).image if from_file else None
    tree: Tree = tree_of(start) if start is not None else tree_of(entries=[])
    projection = project(tree, tree.length - 1 if tree.length else None)
    for number, (what, choice) in enumerate(steps):
        parent = None if projection.leaf is None else tree.id_at(projection.leaf)
        if what == "look":
            assert states.latest(projection, BEST) == naive(projection)
        elif what == "move":
            projection = project(tree, choice % tree.length) if tree.length else projection
        else:
            made: dict[str, Entry] = {
                "state": state(f"e{number}", parent, number),
                "user": user(f"e{number}", parent),
                "assistant": assistant(f"e{number}", parent),
            }
            entries.append(made[what])
            tree = tree.append(made[what])
            projection = extend(projection, tree, tree.length - 1)

    assert states.latest(projection, BEST) == naive(projection)


# -- selection -----------------------------------------------------------------------------------


def chose(entry_id: str, parent: str | None, provider: str, model_id: str) -> ModelChangeEntry:
    return ModelChangeEntry(id=entry_id, parent_id=parent, timestamp=TIME, provider=provider, model_id=model_id)


def left_with(*entries: Entry, selected: Model | None = None) -> SessionState:
    tree = tree_of(entries=list(entries))
    made = initial(SessionHeader(id="s", timestamp=TIME, cwd="/"), tree, tree.length - 1 if entries else None, (), Settings())
    return attrs.evolve(made, selection=attrs.evolve(made.selection, model=selected))


ROUTED = [chose("o", None, "auto", "best"), user("u", "o"), assistant("a", "u")]
UNANSWERED = [chose("o", None, "auto", "best"), user("u", "o"), said("a", "u", UNROUTED)]
PHYSICAL = [chose("o", None, "acme", "other"), user("u", "o"), assistant("a", "u")]


def registered(key: tuple[str, str]) -> bool:
    return key == ("auto", "best")


def unregistered(_key: tuple[str, str]) -> bool:
    return False


@pytest.mark.rule("VM-16", "VM-9", "CTX-2")
@pytest.mark.parametrize(
    ("entries", "is_virtual", "implied"),
    [
        pytest.param([], registered, None, id="an empty branch"),
        pytest.param(ROUTED, registered, ("auto", "best"), id="registered"),
        pytest.param(ROUTED, unregistered, ("acme", "m"), id="not registered, answered"),
        pytest.param(UNANSWERED, unregistered, ("auto", "best"), id="not registered, routing failed"),
        pytest.param(PHYSICAL, registered, ("acme", "m"), id="who answered last"),
        pytest.param(PHYSICAL[:2], registered, ("acme", "other"), id="who was selected last"),
        pytest.param([user("u", None), assistant("a", "u")], registered, ("acme", "m"), id="nobody was selected"),
    ],
)
def test_a_branch_implies_a_selection(entries: list[Entry], is_virtual: Any, implied: Any) -> None:
    assert implied_model(left_with(*entries), is_virtual) == implied


M = KNOWN["acme", "m"]
OTHER = Model(id="other", provider="acme", api="x")


@pytest.mark.rule("VM-16", "SES-24")
@pytest.mark.parametrize(
    ("entries", "selected", "recorded"),
    [
        pytest.param(ROUTED, BEST, None, id="as the branch says"),
        pytest.param(PHYSICAL, BEST, ("auto", "best"), id="now a virtual one"),
        pytest.param(ROUTED, M, ("acme", "m"), id="no virtual one any more"),
        pytest.param(PHYSICAL, OTHER, None, id="both physical: the answer names it"),
        pytest.param([], BEST, None, id="a branch that says nothing"),
        pytest.param(ROUTED, None, None, id="no model"),
    ],
)
def test_a_run_records_a_selection_that_the_branch_does_not_imply_if_either_is_virtual(
    entries: list[Entry], selected: Model | None, recorded: Any
) -> None:
    assert model_to_record(left_with(*entries, selected=selected), registered) == recorded
