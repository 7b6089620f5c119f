"""The life of a run, and what is allowed when: two tables.

TABLE. A run is always in one state. A state may have an effect (asking the model, running a
batch, folding a boundary, sleeping), which the agent loop performs; its outcome, the run and
the session *as it is then* choose the first row of the state that fits. A row names actions,
performed one after the other, a change of the run, and the next state. States without effect
choose at once, but only after the actions of the row before, so their guards see what
handlers did meanwhile. A row marked `below` goes on with the rows under it, never from the
top: row 40 clears `attempt`, and row 39 above it would retry for ever.

What can never happen, and why: queues are not polled once an abort is requested, because
every row that takes from one has a guard or a row above it that excludes `aborting`
(LOOP-68); a run cannot end without `agent_settled`, because every path from `opening` leads
to row 63 and raising leads there too (rows 66 to 68); a low-level run faults at most once,
because row 68 ends the run the second time.

What the table does not show: the tool pipeline, the boundary fold and the stream fold are
machines of their own, seen as one effect each. When the context is compacted is decided by
`compaction_checks.py`: rows 41 to 43 ask it after a low-level run, the effects `prechecking`
and `between` ask it before a prompt and between turns. Routing the request of a virtual model,
and a compaction because the routed model is too small, are the first part of the effect
`asking` (VM-6, VM-14); routing that fails is a raise there (row 66). One moment lies outside the table: a
manual compaction is no part of a run, it ends the run first (ADMISSION).

ADMISSION. What an operation does in each activity of the session. The steps a prompt passes
before it are `PROMPT_STEPS`, in order (LOOP-1).

Row numbers are stable names; a number left out is unused.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

import attrs

from camshaft.kernel.errors import IllegalStep
from camshaft.kernel.run_data import Do, On, Row, Run, State, View
from camshaft.kernel.run_guards import (
    aborting,
    attempt_cleared,
    below_cap,
    beyond,
    calls,
    compacting,
    continued,
    deferred,
    due,
    ends_assistant,
    err,
    failed,
    faulted,
    first_turn,
    follow,
    go,
    good,
    more,
    more_or_go,
    next_attempt,
    next_turn,
    not_ends_assistant,
    not_from_steer,
    not_queued,
    queued,
    recover,
    recovering,
    reopened,
    reopened_from_steering,
    reported,
    retried,
    retry_waits,
    retryable,
    steer,
    stuck,
    truncated,
    wants_retry,
    was_aborted,
    will_go_on,
)
from camshaft.kernel.state import Activity

EFFECTS: Final = frozenset(
    {
        State.PRECHECKING,
        State.PREPARING,
        State.OPENING,
        State.ASKING,
        State.FAILING_CALLS,
        State.BATCHING,
        State.BOUNDING,
        State.BETWEEN,
        State.FAULTING,
        State.WAITING,
        State.COMPACTING,
        State.SETTLE_BOUNDING,
    }
)
"""States whose entering starts an effect; it has the state's name."""

S, D = State, Do

# fmt: off
TABLE: Final[tuple[Row, ...]] = (
    # number, state, on, guards, actions, next, rules, where a run resumes that died in the state, change of the run
    Row(4, S.PRECHECKING, "done", (), (), S.PREPARING, "RTY-24, 25, 30, CMP-14a", "input queued"),

    Row(5, S.PREPARING, "done", (), (D.FLUSH_SHELL, D.FLUSH_HELD, D.PLAN_RUN, D.RECORD_SELECTION, D.GIVE_UP_TOOLS),
        S.OPENING, "LOOP-7, 8, SES-24, VM-16, EXPO-7", "input queued, handlers run again"),
    Row(6, S.PREPARING, "raised", (), (D.UNCLAIM, D.FLUSH_SHELL, D.FLUSH_HELD, D.RELEASE), S.IDLE, "LOOP-9", "-"),

    Row(7, S.OPENING, "done", (), (D.BECOME_ACTIVE, D.AGENT_START), S.TURN_OPENING, "LOOP-10, 11, 13", "opening"),

    Row(8, S.TURN_OPENING, "-", (first_turn,), (D.TURN_START, D.DELIVER_PENDING),
        S.POLLING, "LOOP-11", "missing starting messages, then on"),
    Row(9, S.TURN_OPENING, "-", (), (D.TURN_START, D.DELIVER_PENDING), S.ASKING, "LOOP-14", "missing messages, then on"),

    Row(10, S.POLLING, "-", (aborting,), (), S.ASKING, "LOOP-68", "asking"),
    Row(11, S.POLLING, "-", (steer, not_from_steer), (D.TAKE_STEERING, D.DELIVER_PENDING), S.ASKING, "LOOP-12", "asking"),
    Row(12, S.POLLING, "-", (), (), S.ASKING, "LOOP-12", "asking"),

    Row(13, S.ASKING, "message", (was_aborted, retried), (D.RETRY_CANCELLED,), None, "RTY-3, 7", "ask again", attempt_cleared),
    Row(14, S.ASKING, "message", (good, retried), (D.RETRY_SUCCEEDED,), None, "RTY-3, 6", "ask again", attempt_cleared),
    Row(15, S.ASKING, "message", (err,), (), S.BOUNDING, "LOOP-17 to 21, 60", "bounding"),
    Row(16, S.ASKING, "message", (calls, truncated), (), S.FAILING_CALLS, "LOOP-23", "close open calls"),
    Row(17, S.ASKING, "message", (calls,), (D.PLAN_CALLS,), S.BATCHING, "LOOP-22", "K11a: calls never started"),
    Row(18, S.ASKING, "message", (), (), S.BOUNDING, "LOOP-22", "bounding"),

    Row(19, S.FAILING_CALLS, "results", (), (), S.BOUNDING, "LOOP-23", "close open calls", will_go_on),

    Row(20, S.BATCHING, "results", (), (), S.BOUNDING, "TOOL-38 to 40, LOOP-61, 62", "K12, K13"),
    Row(21, S.BATCHING, "lost", (), (), S.BOUNDING, "lost call", "K12"),

    Row(22, S.BOUNDING, "sealed", (), (), S.TURN_CLOSING, "BND-5, 31, 40 to 43", "fold again"),

    Row(23, S.TURN_CLOSING, "-", (), (D.TURN_END, D.FLUSH_HELD), S.DECIDING, "LOOP-24, 36, EVT-39, BND-38", "deciding"),

    Row(24, S.DECIDING, "-", (err,), (), S.CLOSING, "LOOP-21, BND-33", "pure"),
    Row(25, S.DECIDING, "-", (aborting, more_or_go), (), S.BETWEEN, "LOOP-63, 64, 68", "pure"),
    Row(26, S.DECIDING, "-", (aborting,), (), S.CLOSING, "LOOP-64, 68", "pure"),
    Row(27, S.DECIDING, "-", (more, steer), (D.TAKE_STEERING,), S.BETWEEN, "LOOP-25", "queue unchanged"),
    Row(28, S.DECIDING, "-", (more,), (), S.BETWEEN, "LOOP-25", "pure"),
    Row(29, S.DECIDING, "-", (steer,), (D.TAKE_STEERING,), S.BETWEEN, "LOOP-25", "queue unchanged"),
    Row(30, S.DECIDING, "-", (follow,), (D.TAKE_FOLLOW_UPS,), S.BETWEEN, "QUE-4", "queue unchanged"),
    Row(31, S.DECIDING, "-", (go, below_cap), (), S.BETWEEN, "BND-32, 35, 36", "decision record", continued),
    Row(32, S.DECIDING, "-", (go,), (D.REPORT_LIMIT,), S.CLOSING, "BND-35", "pure"),
    Row(33, S.DECIDING, "-", (), (), S.CLOSING, "LOOP-25", "pure"),

    Row(34, S.BETWEEN, "done", (), (), S.TURN_OPENING, "LOOP-13, 14, RTY-31, BND-37", "recomputed", next_turn),

    Row(35, S.FAULTING, "message", (), (), S.BOUNDING, "LOOP-55", "-"),

    Row(36, S.CLOSING, "-", (), (D.AGENT_END_X,), S.CLOSED, "LOOP-27", "closed"),

    Row(37, S.CLOSED, "-", (), (D.AGENT_END_P,), S.RECOVERING, "RTY-5", "recovering"),

    Row(38, S.RECOVERING, "-", (aborting,), (), S.SETTLING, "LOOP-28", "pure"),
    Row(39, S.RECOVERING, "-", (retryable,), (D.RETRY_START, D.OMIT_FOR_RETRY),
        S.WAITING, "RTY-1 to 4, 8, 9", "omissions present: waiting", next_attempt),
    Row(40, S.RECOVERING, "-", (failed, retried), (D.RETRY_FAILED,), None, "RTY-6", "pure", attempt_cleared),
    Row(41, S.RECOVERING, "-", (recover,), (D.OMIT_FOR_COMPACTION,),
        S.COMPACTING, "RTY-20 to 23, 25", "omissions present: compacting", recovering),
    Row(42, S.RECOVERING, "-", (beyond,), (D.REPORT_OVERFLOW,), None, "RTY-24, 25, EVT-23", "pure", reported),
    Row(43, S.RECOVERING, "-", (due,), (), S.COMPACTING, "RTY-23, 30, 32, CMP-54", "recomputed", compacting),
    Row(44, S.RECOVERING, "-", (queued,), (), S.REOPENING, "LOOP-28(4), 30, 31", "pure"),
    Row(45, S.RECOVERING, "-", (), (), S.SETTLE_BOUNDING, "LOOP-32", "pure"),

    Row(46, S.WAITING, "woke", (), (), S.REOPENING, "RTY-2", "K16: waits the rest"),
    Row(47, S.WAITING, "aborted", (), (D.RETRY_CANCELLED,), S.SETTLING, "LOOP-66", "settling", attempt_cleared),
    Row(48, S.WAITING, "cancelled", (), (D.RETRY_CANCELLED,), S.RECOVERING, "LOOP-66", "recovering", attempt_cleared),

    Row(49, S.COMPACTING, "done", (aborting,), (), S.SETTLING, "LOOP-28, 67", "again"),
    Row(50, S.COMPACTING, "done", (wants_retry,), (), S.REOPENING, "T5", "again"),
    Row(51, S.COMPACTING, "done", (queued,), (), S.REOPENING, "RTY-32, QUE-17", "again"),
    Row(52, S.COMPACTING, "done", (), (), S.SETTLE_BOUNDING, "RTY-26, LOOP-32", "again"),

    Row(53, S.REOPENING, "-", (ends_assistant, steer), (D.TAKE_STEERING,),
        S.OPENING, "LOOP-12, 29", "queue unchanged", reopened_from_steering),
    Row(54, S.REOPENING, "-", (ends_assistant, follow), (D.TAKE_FOLLOW_UPS,), S.OPENING, "LOOP-29", "queue unchanged", reopened),
    Row(55, S.REOPENING, "-", (not_ends_assistant,), (), S.OPENING, "LOOP-29", "queue unchanged", reopened),
    Row(56, S.REOPENING, "-", (), (), S.SETTLING, "LOOP-29", "-", stuck),

    Row(57, S.SETTLE_BOUNDING, "sealed", (aborting,), (), S.SETTLING, "LOOP-65, BND-38", "fold again"),
    Row(58, S.SETTLE_BOUNDING, "sealed", (go, below_cap), (), S.REOPENING, "BND-23, 34, 35", "decision record", continued),
    Row(59, S.SETTLE_BOUNDING, "sealed", (go, not_queued), (D.REPORT_LIMIT,), S.SETTLING, "BND-35", "pure"),
    Row(60, S.SETTLE_BOUNDING, "sealed", (queued,), (), S.REOPENING, "BND-7, 23, LOOP-28", "pure"),
    Row(61, S.SETTLE_BOUNDING, "sealed", (), (), S.SETTLING, "BND-31", "pure"),

    Row(62, S.SETTLING, "-", (retry_waits,), (D.RETRY_CANCELLED,), None, "LOOP-33", "settling", attempt_cleared),
    Row(63, S.SETTLING, "-", (), (D.SETTLE,), S.AFTER, "LOOP-33, 40 to 42", "settling"),

    Row(64, S.AFTER, "-", (deferred,), (D.RUN_DEFERRED,), S.AFTER, "LOOP-42", "inputs are queued records"),
    Row(65, S.AFTER, "-", (), (D.RELEASE,), S.IDLE, "LOOP-34, 42", "-"),
)
# fmt: on
"""The rows in order; the first of a state that fits is taken."""

_LOW_LEVEL: Final = frozenset(
    {
        S.OPENING,
        S.TURN_OPENING,
        S.POLLING,
        S.ASKING,
        S.FAILING_CALLS,
        S.BATCHING,
        S.BOUNDING,
        S.TURN_CLOSING,
        S.DECIDING,
        S.BETWEEN,
    }
)

_ENDS: Final = frozenset({State.SETTLING, State.AFTER})

REGIONS: Final[tuple[tuple[int, frozenset[State], State, str], ...]] = (
    (66, _LOW_LEVEL, S.FAULTING, "LOOP-55, VM-9, BND-42, failed append"),
    (67, frozenset(State) - _LOW_LEVEL - {S.PREPARING, S.PRECHECKING, S.IDLE}, S.SETTLING, "LOOP-34, BND-42, failed append"),
)
"""Where a raise in an effect or an action leads: number, states, next, rules. Row 68, the second
fault of a low-level run or a fault while faulting, leads to `settling` as well."""

_ROWS_OF: Final[Mapping[State, tuple[Row, ...]]] = {state: tuple([row for row in TABLE if row.state is state]) for state in State}


def chosen(run: Run, on: On, view: View, below: Row | None = None) -> Row:
    """The first row that fits; with `below`, of those under that one. The caller performs its actions, then takes `moved`.

    Raises IllegalStep if no row fits: the loop or the table is broken.
    """
    rows = _ROWS_OF[run.state]
    for row in rows if below is None else rows[rows.index(below) + 1 :]:
        if row.on == on and all([guard(run, view) for guard in row.guards]):
            return row
    raise IllegalStep(f"no row of {run.state.value} fits {on!r}; run {run.id}, turn {run.turn}")


def moved(run: Run, row: Row) -> Run:
    """The run, as the actions of `row` left it, after the row: changed, and in the next state if the row has one."""
    changed = run if row.change is None else row.change(run)
    return changed if row.next is None else attrs.evolve(changed, state=row.next)


def raised(run: Run, error: Exception) -> Run:
    """The run after an effect or an action raised (rows 6 and 66 to 68).

    What ends a run is not tried twice, because a log that refused once refuses again: a second raise
    while un-starting and a raise in `settling` lead to `after`, one in `after` to `idle`.
    """
    if run.state in _ENDS or (run.state is State.PREPARING and run.error is not None):
        return attrs.evolve(run, error=run.error or error, state=State.IDLE if run.state is State.AFTER else State.AFTER)
    if run.state in (State.PREPARING, State.PRECHECKING):
        return attrs.evolve(run, error=error, state=State.PREPARING)
    if run.state in _LOW_LEVEL and not run.faults:
        return attrs.evolve(faulted(run), error=error, state=State.FAULTING)
    return attrs.evolve(run, error=error, state=State.SETTLING)


# -- admission ---------------------------------------------------------------------------


class PromptStep(Enum):
    """The steps a prompt may pass (LOOP-1)."""

    POSITION = "the session does not stand where the client believes: error"
    DEFER = "agent_settled is being dispatched: defer the whole prompt"
    COMMAND = "an extension command runs at once"
    COMPACTING = "manual compaction or branch summary: error"
    INPUT = "input handlers may handle or transform"
    EXPAND = "skills and templates"
    QUEUE = "a run is active: queue as told, or error"
    MODEL = "a model and its key: error if missing"
    START = "claim the session and start"


PROMPT_STEPS: Final = (
    PromptStep.POSITION,
    PromptStep.DEFER,
    PromptStep.COMMAND,
    PromptStep.COMPACTING,
    PromptStep.INPUT,
    PromptStep.EXPAND,
    PromptStep.POSITION,  # once more: handlers took their time
    PromptStep.QUEUE,
    PromptStep.MODEL,
    PromptStep.START,
)
"""The steps in their order."""


class Operation(Enum):
    """What somebody may ask of a session."""

    PROMPT = "prompt"
    STEER = "steer, follow_up"
    COMMAND = "extension command"
    APPEND = "append, label, name, tools, level, model"
    CUSTOM_QUIET = "custom message without trigger"
    CUSTOM_TRIGGER = "custom message with trigger"
    SHELL = "result of a user command"
    ABORT = "abort"
    COMPACT = "manual compaction"
    NAVIGATE = "tree navigation"
    RELOAD = "reload"
    REPLACE = "new session, resume, fork, import"


class Verdict(Enum):
    """What an operation does now."""

    NOW = "now"
    START = "start a run"
    QUEUE = "queue"
    QUEUE_IF_TOLD = "queue if a way is named, else error"
    HOLD = "hold until the turn or the run ends"
    DEFER = "after agent_settled was dispatched"
    REFUSE = "error"
    END_RUN = "end the run, then now"
    NOTHING = "no-op"


def _cells(operation: Operation, *verdicts: Verdict) -> dict[tuple[Operation, Activity], Verdict]:
    order = (Activity.IDLE, Activity.START, Activity.RUN, Activity.SETTLED, Activity.COMPACTING)
    return {(operation, activity): verdict for activity, verdict in zip(order, verdicts, strict=True)}


_V = Verdict

ADMISSION: Final[Mapping[tuple[Operation, Activity], Verdict]] = {
    #                                   idle      start             run               settled   compacting
    **_cells(Operation.PROMPT, _V.START, _V.QUEUE_IF_TOLD, _V.QUEUE_IF_TOLD, _V.DEFER, _V.REFUSE),
    **_cells(Operation.STEER, _V.QUEUE, _V.QUEUE, _V.QUEUE, _V.QUEUE, _V.QUEUE),
    **_cells(Operation.COMMAND, _V.NOW, _V.NOW, _V.NOW, _V.NOW, _V.NOW),
    **_cells(Operation.APPEND, _V.NOW, _V.NOW, _V.NOW, _V.NOW, _V.NOW),
    **_cells(Operation.CUSTOM_QUIET, _V.NOW, _V.HOLD, _V.HOLD, _V.NOW, _V.NOW),
    **_cells(Operation.CUSTOM_TRIGGER, _V.START, _V.QUEUE, _V.QUEUE, _V.DEFER, _V.REFUSE),
    **_cells(Operation.SHELL, _V.NOW, _V.HOLD, _V.HOLD, _V.NOW, _V.NOW),
    **_cells(Operation.RELOAD, _V.NOW, _V.REFUSE, _V.REFUSE, _V.DEFER, _V.REFUSE),
    **_cells(Operation.REPLACE, _V.NOW, _V.END_RUN, _V.END_RUN, _V.DEFER, _V.END_RUN),
    **_cells(Operation.ABORT, _V.NOTHING, _V.NOW, _V.NOW, _V.NOTHING, _V.NOW),
    **_cells(Operation.COMPACT, _V.NOW, _V.END_RUN, _V.END_RUN, _V.END_RUN, _V.REFUSE),
    **_cells(Operation.NAVIGATE, _V.NOW, _V.REFUSE, _V.REFUSE, _V.REFUSE, _V.REFUSE),
}
"""One cell an operation and activity."""


def admit(operation: Operation, activity: Activity) -> Verdict:
    """What `operation` does in a session that is doing `activity`."""
    return ADMISSION[(operation, activity)]
