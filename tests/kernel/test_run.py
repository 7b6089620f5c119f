"""The run table: it is whole, everything it names can be performed, and what must never happen cannot be reached.

The guards look at a dozen facts; POINTS is their product, so every row choice there is, is made here.
"""

from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import attrs
import pytest

from camshaft.actors import agent_loop
from camshaft.kernel.entries import SessionHeader
from camshaft.kernel.errors import IllegalStep
from camshaft.kernel.messages import AssistantMessage, TextBlock, ToolCall, UserMessage
from camshaft.kernel.persistent import EMPTY
from camshaft.kernel.run import ADMISSION, EFFECTS, PROMPT_STEPS, TABLE, Operation, PromptStep, Verdict, admit, chosen, moved, raised
from camshaft.kernel.run_data import Do, Last, Row, Run, State, View
from camshaft.kernel.settings import Settings
from camshaft.kernel.state import Activity, Live, Queued, Queues, SessionState, initial
from camshaft.kernel.tree import tree_of
from tests.kernel.made import TIME, assistant, user

HEADER = SessionHeader(id="s", timestamp=TIME, cwd="/")


def answer(reason: Any, *, calling: bool = False, error: str | None = None) -> AssistantMessage:
    call = (ToolCall(id="c", name="t", arguments=EMPTY),) if calling else ()
    return AssistantMessage(
        content=(TextBlock(text="x"), *call), api="a", provider="p", model="m", stop_reason=reason, error_message=error, timestamp=1
    )


ANSWERS = [
    answer("stop"),
    answer("toolUse", calling=True),
    answer("length", calling=True),
    answer("error", error="529 overloaded_error"),
    answer("error", error="bad key"),
    answer("aborted", error="Request was aborted"),
]


def queued(name: str) -> Queued:
    return Queued(input_id=name, entry_id=f"e-{name}", way="steer", message=UserMessage(content=name, timestamp=1))


def session(*, steering: bool = False, follow_up: bool = False, aborting: bool = False, answered: bool = False) -> SessionState:
    entries = [user("u", None), assistant("a", "u")][: 1 + answered]
    state = initial(HEADER, tree_of(entries=entries), len(entries) - 1, (), Settings())
    queues = Queues(steering=(queued("s"),) * steering, follow_up=(queued("f"),) * follow_up)
    return attrs.evolve(state, queues=queues, live=Live(activity=Activity.RUN, run_id="r", aborting=aborting))


def points() -> Iterator[tuple[Run, View]]:
    """Every combination of what guards look at."""
    flags = [False, True]
    views = [
        View(state=session(steering=steering, follow_up=follow_up, aborting=aborting), continuations_max=5, deferred=aborting)
        for steering, follow_up, aborting in product(flags, flags, flags)
    ]
    for last, (more, go), attempt, from_steer, extra in product(ANSWERS, product(flags, flags), (0, 3), flags, (0, 5)):
        run = Run(id="r", last=Last(message=last, entry_id="a"), more=more, go=go, attempt=attempt, from_steer=from_steer, extra=extra)
        yield from [(run, view) for view in views]


POINTS = list(points())
CELLS = sorted({(row.state, row.on) for row in TABLE}, key=str)


def rows_of(state: State, on: str) -> list[Row]:
    return [row for row in TABLE if (row.state, row.on) == (state, on)]


# -- the table is whole ------------------------------------------------------------------


@pytest.mark.parametrize(("state", "on"), CELLS, ids=str)
def test_the_last_row_of_a_state_and_outcome_always_fits_and_goes_somewhere(state: State, on: Any) -> None:
    last = rows_of(state, on)[-1]

    assert last.guards == ()
    assert last.next is not None


def test_row_numbers_are_unique_and_rise() -> None:
    assert all(before.number < after.number for before, after in pairwise(TABLE))


def test_a_state_has_outcomes_of_its_effect_or_is_left_at_once() -> None:
    without_effect = {row.state for row in TABLE if row.on == "-"}
    with_effect = {row.state for row in TABLE if row.on != "-"}

    assert with_effect == EFFECTS
    assert without_effect == set(State) - EFFECTS - {State.IDLE}


def test_every_effect_and_action_has_its_performer() -> None:
    assert set(agent_loop._EFFECTS) == EFFECTS
    assert set(agent_loop._ACTIONS) == set(Do)


def test_every_action_is_named_by_a_row() -> None:
    assert {action for row in TABLE for action in row.does} == set(Do)


def test_every_state_is_reached_and_leads_to_the_end() -> None:
    by_raising = {(state, raised(Run(id="r", state=state), ValueError()).state) for state in State if state is not State.IDLE}
    edges = {(row.state, row.next) for row in TABLE if row.next is not None} | by_raising

    assert reached(edges, State.PRECHECKING) == set(State)
    assert reached({(after, before) for before, after in edges}, State.IDLE) == set(State)


def reached(edges: set[tuple[State, State]], start: State) -> set[State]:
    found = {start}
    while new := {after for before, after in edges if before in found} - found:
        found |= new
    return found


# -- choosing ----------------------------------------------------------------------------


@pytest.mark.parametrize(("state", "on"), CELLS, ids=str)
def test_a_row_fits_at_every_point_and_below_a_row_only_lower_ones_do(state: State, on: Any) -> None:
    for run, view in POINTS:
        run = attrs.evolve(run, state=state)
        row = chosen(run, on, view)
        while row.next is None:
            lower = chosen(moved(run, row), on, view, row)
            assert lower.number > row.number
            row = lower


@pytest.mark.slow
@pytest.mark.rule("LOOP-68")
def test_no_queue_is_polled_while_an_abort_is_requested() -> None:
    """REOPENING is the exception in the table; a run gets there only through rows that exclude an abort, or from WAITING,
    which an abort ends with another outcome."""
    taking = {Do.TAKE_STEERING, Do.TAKE_FOLLOW_UPS}
    aborting = [(run, view) for run, view in POINTS if view.state.live.aborting]
    rows = [
        chosen(attrs.evolve(run, state=state), on, view)
        for state, on in CELLS
        for run, view in aborting
        if state not in (State.REOPENING, State.WAITING)
    ]

    assert [row.number for row in rows if taking & set(row.does) or row.next is State.REOPENING] == []


def test_an_outcome_without_a_row_is_an_illegal_step() -> None:
    run, view = POINTS[0]

    with pytest.raises(IllegalStep, match="no row of asking fits 'woke'; run r, turn 0"):
        chosen(attrs.evolve(run, state=State.ASKING), "woke", view)


PATHS = [
    ("a good answer", State.ASKING, "message", {}, {}, [18]),
    ("calls", State.ASKING, "message", {"last": ANSWERS[1]}, {}, [17]),
    ("truncated calls", State.ASKING, "message", {"last": ANSWERS[2]}, {}, [16]),
    ("a failed answer", State.ASKING, "message", {"last": ANSWERS[3]}, {}, [15]),
    ("a good answer to a retry", State.ASKING, "message", {"attempt": 1}, {}, [14, 18]),
    ("an aborted answer to a retry", State.ASKING, "message", {"last": ANSWERS[5], "attempt": 1}, {}, [13, 15]),
    ("retryable", State.RECOVERING, "-", {"last": ANSWERS[3]}, {}, [39]),
    ("not retryable", State.RECOVERING, "-", {"last": ANSWERS[4]}, {}, [45]),
    ("attempts used up", State.RECOVERING, "-", {"last": ANSWERS[3], "attempt": 3}, {}, [40, 45]),
    ("attempts used up, queued", State.RECOVERING, "-", {"last": ANSWERS[3], "attempt": 3}, {"steering": True}, [40, 44]),
    ("aborted before a retry", State.RECOVERING, "-", {"last": ANSWERS[3]}, {"aborting": True}, [38]),
    ("more work before steering", State.DECIDING, "-", {"more": True}, {"steering": True}, [27]),
    ("steering before follow-ups", State.DECIDING, "-", {}, {"steering": True, "follow_up": True}, [29]),
    ("follow-ups", State.DECIDING, "-", {}, {"follow_up": True}, [30]),
    ("queues before a continuation", State.DECIDING, "-", {"go": True}, {"follow_up": True}, [30]),
    ("a continuation", State.DECIDING, "-", {"go": True}, {}, [31]),
    ("one continuation too many", State.DECIDING, "-", {"go": True, "extra": 5}, {}, [32]),
    ("a failed turn asks for nothing", State.DECIDING, "-", {"go": True, "last": ANSWERS[4]}, {"steering": True}, [24]),
    ("an aborted turn with results", State.DECIDING, "-", {"more": True}, {"aborting": True, "steering": True}, [25]),
    ("an aborted turn without", State.DECIDING, "-", {}, {"aborting": True, "steering": True}, [26]),
    ("settling continues after an error", State.SETTLE_BOUNDING, "sealed", {"go": True, "last": ANSWERS[4]}, {}, [58]),
    ("settling does not after an abort", State.SETTLE_BOUNDING, "sealed", {"go": True}, {"aborting": True}, [57]),
    ("the limit yields to a queue", State.SETTLE_BOUNDING, "sealed", {"go": True, "extra": 5}, {"steering": True}, [60]),
    ("the limit", State.SETTLE_BOUNDING, "sealed", {"go": True, "extra": 5}, {}, [59]),
    ("steering starts a run of its own", State.REOPENING, "-", {}, {"steering": True, "answered": True}, [53]),
    ("a continuation as it is", State.REOPENING, "-", {}, {"steering": True}, [55]),
    ("nothing to go on with", State.REOPENING, "-", {}, {"answered": True}, [56]),
]


@pytest.mark.parametrize(("state", "on", "of_run", "of_session", "numbers"), [path[1:] for path in PATHS], ids=[path[0] for path in PATHS])
def test_the_rows_that_are_taken(state: State, on: Any, of_run: Any, of_session: Any, numbers: list[int]) -> None:
    message = of_run.get("last", ANSWERS[0])
    run = attrs.evolve(Run(id="r", state=state), **{**of_run, "last": Last(message=message, entry_id="a")})
    view = View(state=session(**of_session), continuations_max=5)

    rows = [chosen(run, on, view)]
    while rows[-1].next is None:
        run = moved(run, rows[-1])
        rows.append(chosen(run, on, view, rows[-1]))

    assert [row.number for row in rows] == numbers


# -- raising -----------------------------------------------------------------------------

LOW_LEVEL = [
    *[State.OPENING, State.TURN_OPENING, State.POLLING, State.ASKING, State.FAILING_CALLS],
    *[State.BATCHING, State.BOUNDING, State.TURN_CLOSING, State.DECIDING, State.BETWEEN],
]
BETWEEN_RUNS = [
    *[State.FAULTING, State.CLOSING, State.CLOSED, State.RECOVERING, State.WAITING],
    *[State.COMPACTING, State.REOPENING, State.SETTLE_BOUNDING],
]
AFTER_RAISE: dict[tuple[State, bool], State] = {
    **{(state, False): State.FAULTING for state in LOW_LEVEL},
    **{(state, True): State.SETTLING for state in LOW_LEVEL},
    **{(state, again): State.SETTLING for state in BETWEEN_RUNS for again in (False, True)},
    (State.PRECHECKING, False): State.PREPARING,
    (State.PRECHECKING, True): State.PREPARING,
    (State.PREPARING, False): State.PREPARING,
    (State.PREPARING, True): State.AFTER,
    (State.SETTLING, False): State.AFTER,
    (State.SETTLING, True): State.AFTER,
    (State.AFTER, False): State.IDLE,
    (State.AFTER, True): State.IDLE,
}


def test_every_state_that_can_raise_is_listed() -> None:
    assert set(AFTER_RAISE) == set(product(set(State) - {State.IDLE}, (False, True)))


@pytest.mark.rule("LOOP-55", "LOOP-34")
@pytest.mark.parametrize(("state", "again"), AFTER_RAISE)
def test_where_a_raise_leads_the_first_time_and_again(state: State, again: bool) -> None:
    error, before = ValueError("now"), ValueError("before")
    run = Run(id="r", state=state, faults=int(again), error=before if again else None)

    after = raised(run, error)

    ends = state in (State.SETTLING, State.AFTER) or (state is State.PREPARING and again)
    assert after.state is AFTER_RAISE[state, again]
    assert after.error is (before if ends and again else error), "what ends a run keeps its first error"


def test_raising_always_ends() -> None:
    def steps(state: State) -> int:
        run, count = Run(id="r", state=state), 0
        while run.state is not State.IDLE:
            run, count = raised(run, ValueError()), count + 1
        return count

    assert max([steps(state) for state in State]) == 4


# -- admission ---------------------------------------------------------------------------


def test_admission_has_every_cell_and_prompt_steps_their_order() -> None:
    assert set(ADMISSION) == set(product(Operation, Activity))
    steps = [step.name for step in PROMPT_STEPS if step is not PromptStep.POSITION]
    assert steps == ["DEFER", "COMMAND", "COMPACTING", "INPUT", "EXPAND", "QUEUE", "MODEL", "START"]
    assert set(PROMPT_STEPS) == set(PromptStep)


@pytest.mark.parametrize("activity", Activity)
@pytest.mark.parametrize("operation", Operation)
def test_admit_reads_the_table_and_never_starts_a_run_but_while_idle(operation: Operation, activity: Activity) -> None:
    verdict = admit(operation, activity)

    assert verdict is ADMISSION[operation, activity]
    assert (verdict is Verdict.START) <= (activity is Activity.IDLE)
    assert (verdict is Verdict.DEFER) <= (activity is Activity.SETTLED)
