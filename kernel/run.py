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
machines of their own, seen as one effect each. Rows of compaction stand here already; until
something can compact, `View.can_compact` is false, so that an overflow is reported (row 42)
and nothing else of them fires.

ADMISSION. What an operation does in each activity of the session. The steps a prompt passes
before it are `PROMPT_STEPS`, in order (LOOP-1).

Row numbers are stable names; a number left out is unused.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, Literal

import attrs

from camshaft.kernel import retries
from camshaft.kernel.errors import IllegalStep
from camshaft.kernel.messages import FAILED, AssistantMessage, Message, ToolResultMessage
from camshaft.kernel.prompt import PromptOptions
from camshaft.kernel.state import Activity, Queued, SessionState

OVERFLOW_TEXT: Final = "Context overflow recovery failed: Nothing to compact (session too small)"
"""Reported when an overflow cannot be recovered from (RTY-25)."""


class State(Enum):
    """Where a run is."""

    IDLE = "idle"
    PRECHECKING = "prechecking"
    PREPARING = "preparing"
    OPENING = "opening"
    TURN_OPENING = "turn_opening"
    POLLING = "polling"
    ASKING = "asking"
    FAILING_CALLS = "failing_calls"
    BATCHING = "batching"
    BOUNDING = "bounding"
    TURN_CLOSING = "turn_closing"
    DECIDING = "deciding"
    BETWEEN = "between"
    FAULTING = "faulting"
    CLOSING = "closing"
    CLOSED = "closed"
    RECOVERING = "recovering"
    WAITING = "waiting"
    COMPACTING = "compacting"
    REOPENING = "reopening"
    SETTLE_BOUNDING = "settle_bounding"
    SETTLING = "settling"
    AFTER = "after"


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

On = Literal["done", "message", "results", "lost", "sealed", "woke", "aborted", "cancelled", "raised", "-"]
"""What an effect came back with; `-`: the state has none."""


class Do(Enum):
    """Actions of rows; X: extension handlers, P: public event (agent loop spec, section 0)."""

    FLUSH_SHELL = "flush user-shell results"
    FLUSH_HELD = "flush held custom messages"
    PLAN_RUN = "post the run record"
    RECORD_SELECTION = "post model and level entries"
    UNCLAIM = "post unclaim"
    BECOME_ACTIVE = "signal on"
    AGENT_START = "XP agent_start"
    TURN_START = "XP turn_start"
    DELIVER_PENDING = "deliver pending"
    TAKE_STEERING = "take steering"
    TAKE_FOLLOW_UPS = "take follow-ups"
    RETRY_SUCCEEDED = "P auto_retry_end{true}"
    RETRY_CANCELLED = "P auto_retry_end{false, Retry cancelled}"
    RETRY_FAILED = "P auto_retry_end{false, error text}"
    PLAN_CALLS = "post the calls record"
    TURN_END = "P turn_end"
    REPORT_LIMIT = "report the continuation limit"
    AGENT_END_X = "X agent_end"
    AGENT_END_P = "P agent_end"
    RETRY_START = "P auto_retry_start"
    OMIT_FOR_RETRY = "post omissions and wait"
    OMIT_FOR_COMPACTION = "post omissions"
    REPORT_OVERFLOW = "P compaction_end{error}, X session_compact_failed"
    SETTLE = "flush, settle, XP agent_settled"
    RUN_DEFERRED = "run the next deferred prompt"
    RELEASE = "answer the waiters"


@attrs.frozen(kw_only=True)
class Pending:
    """A message the next turn starts with."""

    message: Message
    entry_id: str | None = None
    """Reserved id, if its input or the run record has one."""
    input: Queued | None = None
    """The queued input it delivers: its delivery is announced by `queue_update` (QUE-6)."""


@attrs.frozen(kw_only=True)
class Last:
    """The latest assistant message, as stored."""

    message: AssistantMessage
    entry_id: str


@attrs.frozen(kw_only=True)
class Run:
    """One session run: from an accepted input to `agent_settled`."""

    id: str
    input: Queued | None = None
    """What started it."""
    state: State = State.PRECHECKING
    low_level: int = 0
    turn: int = 0
    """From 0 in every low-level run (LOOP-26)."""
    pending: tuple[Pending, ...] = ()
    options: PromptOptions | None = None
    """Prompt options of this run, as handlers left them (PB-4)."""
    forced_prompt: str | None = None
    tools: tuple[str, ...] = ()
    """What the batch may execute: what was active when the request was prepared (LOOP-15)."""
    last: Last | None = None
    results: tuple[ToolResultMessage, ...] = ()
    result_ids: tuple[str, ...] = ()
    more: bool = False
    """The batch asks for another turn."""
    go: bool = False
    """An accepted continuation of the last boundary."""
    continued_by: str | None = None
    from_steer: bool = False
    attempt: int = 0
    """Retries made in a row (RTY-3)."""
    omitted: str | None = None
    """Entry id of the failed message that was taken out of the context."""
    tried: bool = False
    """An overflow recovery was tried since the last good response (RTY-23)."""
    reported: tuple[str, ...] = ()
    """Entry ids of overflows that were reported (RTY-24)."""
    job: Literal["overflow", "threshold"] | None = None
    extra: int = 0
    """Continuations that extensions asked for (BND-35)."""
    faults: int = 0
    """Faults of this low-level run."""
    added: tuple[Message, ...] = ()
    """What this low-level run added, as stored (LOOP-27)."""
    error: Exception | None = attrs.field(default=None, eq=False)
    """Raised to the caller when the run is over (LOOP-34)."""

    @property
    def outcome(self) -> str:
        """Outcome of the last turn (BND-4)."""
        reason = self.last.message.stop_reason if self.last is not None else "stop"
        return reason if reason in FAILED else "completed"


@attrs.frozen(kw_only=True)
class View:
    """The session as a guard sees it."""

    state: SessionState
    can_compact: bool = False
    continuations_max: int | None = None
    deferred: bool = False
    """A prompt waits until `agent_settled` was dispatched (LOOP-42)."""


Guard = Callable[[Run, View], bool]
Change = Callable[[Run], Run]


@attrs.frozen(kw_only=True)
class Row:
    """One transition."""

    number: int
    state: State
    on: On = "-"
    guards: tuple[Guard, ...] = ()
    does: tuple[Do, ...] = ()
    change: Change | None = None
    next: State | None = None
    """None: `below`, go on with the rows under this one."""
    rules: str
    resume: str
    """Where a run resumes if the process dies in this state."""


@attrs.frozen(kw_only=True)
class Step:
    """What the loop does next: the actions, then the changed run."""

    row: Row
    run: Run


# -- guards ------------------------------------------------------------------------------


def aborting(_run: Run, view: View) -> bool:
    """An abort was requested."""
    return view.state.live.aborting


def not_aborting(run: Run, view: View) -> bool:
    """No abort was requested."""
    return not aborting(run, view)


def first_turn(run: Run, _view: View) -> bool:
    """Turn 0 of a low-level run."""
    return run.turn == 0


def retried(run: Run, _view: View) -> bool:
    """The response answers a retry."""
    return run.attempt > 0


def err(run: Run, _view: View) -> bool:
    """The last response failed or was aborted."""
    return run.last is not None and run.last.message.stop_reason in FAILED


def good(run: Run, view: View) -> bool:
    """The last response did not fail."""
    return not err(run, view)


def was_aborted(run: Run, _view: View) -> bool:
    """The last response was aborted."""
    return run.last is not None and run.last.message.stop_reason == "aborted"


def failed(run: Run, _view: View) -> bool:
    """The last response is an error."""
    return run.last is not None and run.last.message.stop_reason == "error"


def calls(run: Run, _view: View) -> bool:
    """The last response has tool calls."""
    return run.last is not None and bool(run.last.message.tool_calls)


def truncated(run: Run, _view: View) -> bool:
    """The last response hit the output limit."""
    return run.last is not None and run.last.message.stop_reason == "length"


def more(run: Run, _view: View) -> bool:
    """The batch asks for another turn."""
    return run.more


def go(run: Run, _view: View) -> bool:
    """A boundary's continuation was accepted."""
    return run.go


def below_cap(run: Run, view: View) -> bool:
    """Another continuation is within the host's limit."""
    return view.continuations_max is None or run.extra < view.continuations_max


def steer(_run: Run, view: View) -> bool:
    """A steering message waits."""
    return bool(view.state.queues.steering)


def not_from_steer(run: Run, _view: View) -> bool:
    """The low-level run was not itself started from steering messages (LOOP-12)."""
    return not run.from_steer


def follow(_run: Run, view: View) -> bool:
    """A follow-up waits."""
    return bool(view.state.queues.follow_up)


def queued(_run: Run, view: View) -> bool:
    """Any message waits in a queue."""
    return view.state.queues.waiting


def not_queued(run: Run, view: View) -> bool:
    """No message waits in a queue."""
    return not queued(run, view)


def ends_assistant(_run: Run, view: View) -> bool:
    """The last context message is an assistant message."""
    messages = view.state.projection.messages
    return bool(messages) and isinstance(messages[-1], AssistantMessage)


def not_ends_assistant(run: Run, view: View) -> bool:
    """The last context message is not an assistant message."""
    return not ends_assistant(run, view)


def more_or_go(run: Run, _view: View) -> bool:
    """Something asks for another turn."""
    return run.more or run.go


def retryable(run: Run, view: View) -> bool:
    """RTY-1, with attempts left, and not already omitted."""
    settings, last = view.state.settings.retry, run.last
    if last is None or not settings.enabled or last.entry_id == run.omitted or run.attempt >= settings.max_retries:
        return False
    return retries.is_retryable(last.message) and not _overflow(run, view)


def recover(run: Run, view: View) -> bool:
    """An overflow that compacting can mend (RTY-22, RTY-23)."""
    return _recoverable(run, view) and view.can_compact and not run.tried


def beyond(run: Run, view: View) -> bool:
    """The same, but a recovery was tried or is impossible, and it was not reported before (RTY-24, RTY-25)."""
    if not _recoverable(run, view) or run.last is None or run.last.entry_id in run.reported:
        return False
    return run.tried or not view.can_compact


def due(run: Run, view: View) -> bool:
    """Compaction is due after the run: a silent overflow or the threshold (RTY-23, RTY-30)."""
    if not view.can_compact or was_aborted(run, view) or run.last is None or run.last.entry_id == run.omitted:
        return False
    model = view.state.selection.model
    window = 0 if model is None else model.context_window
    return retries.is_overflow(run.last.message, window) and not err(run, view)


def deferred(_run: Run, view: View) -> bool:
    """A prompt was deferred from `agent_settled`."""
    return view.deferred


def broken(run: Run, _view: View) -> bool:
    """This low-level run faulted before."""
    return run.faults > 0


def retry_waits(run: Run, _view: View) -> bool:
    """A retry was announced and not ended."""
    return run.attempt > 0 and run.error is not None


def wants_retry(run: Run, _view: View) -> bool:
    """The compaction was to be followed by a retry."""
    return run.job == "overflow"


def _overflow(run: Run, view: View) -> bool:
    model = view.state.selection.model
    window = 0 if model is None else model.context_window
    return run.last is not None and retries.is_overflow(run.last.message, window)


def _recoverable(run: Run, view: View) -> bool:
    """An overflow, or a truncated answer with room left, of the current model, still in the context (RTY-20 to RTY-22)."""
    model, last, state = view.state.selection.model, run.last, view.state
    if last is None or model is None or not state.settings.compaction.enabled or last.entry_id == run.omitted or calls(run, view):
        return False
    if (last.message.provider, last.message.model) != (model.provider, model.id):
        return False
    if last.message.stop_reason in ("stop", "aborted"):
        return False
    return _overflow(run, view) or retries.is_recoverable_length(last.message, model.max_tokens)


# -- changes -----------------------------------------------------------------------------


def _attempt_cleared(run: Run) -> Run:
    return attrs.evolve(run, attempt=0)


def _next_attempt(run: Run) -> Run:
    assert run.last is not None
    return attrs.evolve(run, attempt=run.attempt + 1, omitted=run.last.entry_id)


def _will_go_on(run: Run) -> Run:
    return attrs.evolve(run, more=True)


def _continued(run: Run) -> Run:
    return attrs.evolve(run, extra=run.extra + 1, go=False)


def _next_turn(run: Run) -> Run:
    return attrs.evolve(run, turn=run.turn + 1)


def _recovering(run: Run) -> Run:
    assert run.last is not None
    return attrs.evolve(run, tried=True, omitted=run.last.entry_id, job="overflow")


def _compacting(run: Run) -> Run:
    return attrs.evolve(run, job="threshold")


def _reported(run: Run) -> Run:
    assert run.last is not None
    return attrs.evolve(run, reported=(*run.reported, run.last.entry_id))


def _reopened(run: Run) -> Run:
    return attrs.evolve(run, low_level=run.low_level + 1, turn=0, added=(), faults=0, from_steer=False, go=False, more=False)


def _reopened_from_steering(run: Run) -> Run:
    return attrs.evolve(_reopened(run), from_steer=True)


def _faulted(run: Run) -> Run:
    return attrs.evolve(run, faults=run.faults + 1, added=(), results=(), result_ids=(), more=False, go=False)


def _stuck(run: Run) -> Run:
    fault = IllegalStep("the run was to go on, but its context ends with an answer and no message waits")
    return attrs.evolve(run, error=fault)


# -- the table ---------------------------------------------------------------------------

_S = State

TABLE: Final[tuple[Row, ...]] = (
    Row(number=4, state=_S.PRECHECKING, on="done", next=_S.PREPARING, rules="RTY-24, 25, 30, CMP-14a", resume="input queued"),
    Row(
        number=5,
        state=_S.PREPARING,
        on="done",
        does=(Do.FLUSH_SHELL, Do.FLUSH_HELD, Do.PLAN_RUN, Do.RECORD_SELECTION),
        next=_S.OPENING,
        rules="LOOP-7, 8, SES-24",
        resume="input queued, handlers run again",
    ),
    Row(
        number=6,
        state=_S.PREPARING,
        on="raised",
        does=(Do.UNCLAIM, Do.FLUSH_SHELL, Do.FLUSH_HELD, Do.RELEASE),
        next=_S.IDLE,
        rules="LOOP-9",
        resume="-",
    ),
    Row(
        number=7,
        state=_S.OPENING,
        on="done",
        does=(Do.BECOME_ACTIVE, Do.AGENT_START),
        next=_S.TURN_OPENING,
        rules="LOOP-10, 11, 13",
        resume="opening",
    ),
    Row(
        number=8,
        state=_S.TURN_OPENING,
        guards=(first_turn,),
        does=(Do.TURN_START, Do.DELIVER_PENDING),
        next=_S.POLLING,
        rules="LOOP-11",
        resume="missing starting messages, then on",
    ),
    Row(
        number=9,
        state=_S.TURN_OPENING,
        does=(Do.TURN_START, Do.DELIVER_PENDING),
        next=_S.ASKING,
        rules="LOOP-14",
        resume="missing messages, then on",
    ),
    Row(number=10, state=_S.POLLING, guards=(aborting,), next=_S.ASKING, rules="LOOP-68", resume="asking"),
    Row(
        number=11,
        state=_S.POLLING,
        guards=(steer, not_from_steer),
        does=(Do.TAKE_STEERING, Do.DELIVER_PENDING),
        next=_S.ASKING,
        rules="LOOP-12",
        resume="asking",
    ),
    Row(number=12, state=_S.POLLING, next=_S.ASKING, rules="LOOP-12", resume="asking"),
    Row(
        number=13,
        state=_S.ASKING,
        on="message",
        guards=(was_aborted, retried),
        does=(Do.RETRY_CANCELLED,),
        change=_attempt_cleared,
        rules="RTY-3, 7",
        resume="ask again",
    ),
    Row(
        number=14,
        state=_S.ASKING,
        on="message",
        guards=(good, retried),
        does=(Do.RETRY_SUCCEEDED,),
        change=_attempt_cleared,
        rules="RTY-3, 6",
        resume="ask again",
    ),
    Row(number=15, state=_S.ASKING, on="message", guards=(err,), next=_S.BOUNDING, rules="LOOP-17 to 21, 60", resume="bounding"),
    Row(
        number=16,
        state=_S.ASKING,
        on="message",
        guards=(calls, truncated),
        next=_S.FAILING_CALLS,
        rules="LOOP-23",
        resume="close open calls",
    ),
    Row(
        number=17,
        state=_S.ASKING,
        on="message",
        guards=(calls,),
        does=(Do.PLAN_CALLS,),
        next=_S.BATCHING,
        rules="LOOP-22",
        resume="K11a: calls never started",
    ),
    Row(number=18, state=_S.ASKING, on="message", next=_S.BOUNDING, rules="LOOP-22", resume="bounding"),
    Row(
        number=19,
        state=_S.FAILING_CALLS,
        on="results",
        change=_will_go_on,
        next=_S.BOUNDING,
        rules="LOOP-23",
        resume="close open calls",
    ),
    Row(number=20, state=_S.BATCHING, on="results", next=_S.BOUNDING, rules="TOOL-38 to 40, LOOP-61, 62", resume="K12, K13"),
    Row(number=21, state=_S.BATCHING, on="lost", next=_S.BOUNDING, rules="lost call", resume="K12"),
    Row(number=22, state=_S.BOUNDING, on="sealed", next=_S.TURN_CLOSING, rules="BND-5, 31, 40 to 43", resume="fold again"),
    Row(
        number=23,
        state=_S.TURN_CLOSING,
        does=(Do.TURN_END, Do.FLUSH_HELD),
        next=_S.DECIDING,
        rules="LOOP-24, 36, EVT-39, BND-38",
        resume="deciding",
    ),
    Row(number=24, state=_S.DECIDING, guards=(err,), next=_S.CLOSING, rules="LOOP-21, BND-33", resume="pure"),
    Row(number=25, state=_S.DECIDING, guards=(aborting, more_or_go), next=_S.BETWEEN, rules="LOOP-63, 64, 68", resume="pure"),
    Row(number=26, state=_S.DECIDING, guards=(aborting,), next=_S.CLOSING, rules="LOOP-64, 68", resume="pure"),
    Row(
        number=27,
        state=_S.DECIDING,
        guards=(more, steer),
        does=(Do.TAKE_STEERING,),
        next=_S.BETWEEN,
        rules="LOOP-25",
        resume="queue unchanged",
    ),
    Row(number=28, state=_S.DECIDING, guards=(more,), next=_S.BETWEEN, rules="LOOP-25", resume="pure"),
    Row(
        number=29,
        state=_S.DECIDING,
        guards=(steer,),
        does=(Do.TAKE_STEERING,),
        next=_S.BETWEEN,
        rules="LOOP-25",
        resume="queue unchanged",
    ),
    Row(
        number=30,
        state=_S.DECIDING,
        guards=(follow,),
        does=(Do.TAKE_FOLLOW_UPS,),
        next=_S.BETWEEN,
        rules="QUE-4",
        resume="queue unchanged",
    ),
    Row(
        number=31,
        state=_S.DECIDING,
        guards=(go, below_cap),
        change=_continued,
        next=_S.BETWEEN,
        rules="BND-32, 35, 36",
        resume="decision record",
    ),
    Row(number=32, state=_S.DECIDING, guards=(go,), does=(Do.REPORT_LIMIT,), next=_S.CLOSING, rules="BND-35", resume="pure"),
    Row(number=33, state=_S.DECIDING, next=_S.CLOSING, rules="LOOP-25", resume="pure"),
    Row(
        number=34,
        state=_S.BETWEEN,
        on="done",
        change=_next_turn,
        next=_S.TURN_OPENING,
        rules="LOOP-13, 14, RTY-31, BND-37",
        resume="recomputed",
    ),
    Row(number=35, state=_S.FAULTING, on="message", next=_S.BOUNDING, rules="LOOP-55", resume="-"),
    Row(number=36, state=_S.CLOSING, does=(Do.AGENT_END_X,), next=_S.CLOSED, rules="LOOP-27", resume="closed"),
    Row(number=37, state=_S.CLOSED, does=(Do.AGENT_END_P,), next=_S.RECOVERING, rules="RTY-5", resume="recovering"),
    Row(number=38, state=_S.RECOVERING, guards=(aborting,), next=_S.SETTLING, rules="LOOP-28", resume="pure"),
    Row(
        number=39,
        state=_S.RECOVERING,
        guards=(retryable,),
        does=(Do.RETRY_START, Do.OMIT_FOR_RETRY),
        change=_next_attempt,
        next=_S.WAITING,
        rules="RTY-1 to 4, 8, 9",
        resume="omissions present: waiting",
    ),
    Row(
        number=40,
        state=_S.RECOVERING,
        guards=(failed, retried),
        does=(Do.RETRY_FAILED,),
        change=_attempt_cleared,
        rules="RTY-6",
        resume="pure",
    ),
    Row(
        number=41,
        state=_S.RECOVERING,
        guards=(recover,),
        does=(Do.OMIT_FOR_COMPACTION,),
        change=_recovering,
        next=_S.COMPACTING,
        rules="RTY-20 to 23, 25",
        resume="omissions present: compacting",
    ),
    Row(
        number=42,
        state=_S.RECOVERING,
        guards=(beyond,),
        does=(Do.REPORT_OVERFLOW,),
        change=_reported,
        rules="RTY-24, 25, EVT-23",
        resume="pure",
    ),
    Row(
        number=43,
        state=_S.RECOVERING,
        guards=(due,),
        change=_compacting,
        next=_S.COMPACTING,
        rules="RTY-23, 30, 32, CMP-54",
        resume="recomputed",
    ),
    Row(number=44, state=_S.RECOVERING, guards=(queued,), next=_S.REOPENING, rules="LOOP-28(4), 30, 31", resume="pure"),
    Row(number=45, state=_S.RECOVERING, next=_S.SETTLE_BOUNDING, rules="LOOP-32", resume="pure"),
    Row(number=46, state=_S.WAITING, on="woke", next=_S.REOPENING, rules="RTY-2", resume="K16: waits the rest"),
    Row(
        number=47,
        state=_S.WAITING,
        on="aborted",
        does=(Do.RETRY_CANCELLED,),
        change=_attempt_cleared,
        next=_S.SETTLING,
        rules="LOOP-66",
        resume="settling",
    ),
    Row(
        number=48,
        state=_S.WAITING,
        on="cancelled",
        does=(Do.RETRY_CANCELLED,),
        change=_attempt_cleared,
        next=_S.RECOVERING,
        rules="LOOP-66",
        resume="recovering",
    ),
    Row(number=49, state=_S.COMPACTING, on="done", guards=(aborting,), next=_S.SETTLING, rules="LOOP-28, 67", resume="again"),
    Row(number=50, state=_S.COMPACTING, on="done", guards=(wants_retry,), next=_S.REOPENING, rules="T5", resume="again"),
    Row(number=51, state=_S.COMPACTING, on="done", guards=(queued,), next=_S.REOPENING, rules="RTY-32, QUE-17", resume="again"),
    Row(number=52, state=_S.COMPACTING, on="done", next=_S.SETTLE_BOUNDING, rules="RTY-26, LOOP-32", resume="again"),
    Row(
        number=53,
        state=_S.REOPENING,
        guards=(ends_assistant, steer),
        does=(Do.TAKE_STEERING,),
        change=_reopened_from_steering,
        next=_S.OPENING,
        rules="LOOP-12, 29",
        resume="queue unchanged",
    ),
    Row(
        number=54,
        state=_S.REOPENING,
        guards=(ends_assistant, follow),
        does=(Do.TAKE_FOLLOW_UPS,),
        change=_reopened,
        next=_S.OPENING,
        rules="LOOP-29",
        resume="queue unchanged",
    ),
    Row(
        number=55,
        state=_S.REOPENING,
        guards=(not_ends_assistant,),
        change=_reopened,
        next=_S.OPENING,
        rules="LOOP-29",
        resume="queue unchanged",
    ),
    Row(number=56, state=_S.REOPENING, change=_stuck, next=_S.SETTLING, rules="LOOP-29", resume="-"),
    Row(
        number=57,
        state=_S.SETTLE_BOUNDING,
        on="sealed",
        guards=(aborting,),
        next=_S.SETTLING,
        rules="LOOP-65, BND-38",
        resume="fold again",
    ),
    Row(
        number=58,
        state=_S.SETTLE_BOUNDING,
        on="sealed",
        guards=(go, below_cap),
        change=_continued,
        next=_S.REOPENING,
        rules="BND-23, 34, 35",
        resume="decision record",
    ),
    Row(
        number=59,
        state=_S.SETTLE_BOUNDING,
        on="sealed",
        guards=(go, not_queued),
        does=(Do.REPORT_LIMIT,),
        next=_S.SETTLING,
        rules="BND-35",
        resume="pure",
    ),
    Row(
        number=60,
        state=_S.SETTLE_BOUNDING,
        on="sealed",
        guards=(queued,),
        next=_S.REOPENING,
        rules="BND-7, 23, LOOP-28",
        resume="pure",
    ),
    Row(number=61, state=_S.SETTLE_BOUNDING, on="sealed", next=_S.SETTLING, rules="BND-31", resume="pure"),
    Row(
        number=62,
        state=_S.SETTLING,
        guards=(retry_waits,),
        does=(Do.RETRY_CANCELLED,),
        change=_attempt_cleared,
        rules="LOOP-33",
        resume="settling",
    ),
    Row(number=63, state=_S.SETTLING, does=(Do.SETTLE,), next=_S.AFTER, rules="LOOP-33, 40 to 42", resume="settling"),
    Row(
        number=64,
        state=_S.AFTER,
        guards=(deferred,),
        does=(Do.RUN_DEFERRED,),
        next=_S.AFTER,
        rules="LOOP-42",
        resume="inputs are queued records",
    ),
    Row(number=65, state=_S.AFTER, does=(Do.RELEASE,), next=_S.IDLE, rules="LOOP-34, 42", resume="-"),
)
"""The rows in order; the first of a state that fits is taken."""

_LOW_LEVEL: Final = frozenset(
    {
        _S.OPENING,
        _S.TURN_OPENING,
        _S.POLLING,
        _S.ASKING,
        _S.FAILING_CALLS,
        _S.BATCHING,
        _S.BOUNDING,
        _S.TURN_CLOSING,
        _S.DECIDING,
        _S.BETWEEN,
    }
)

REGIONS: Final[tuple[tuple[int, frozenset[State], State, str], ...]] = (
    (66, _LOW_LEVEL, _S.FAULTING, "LOOP-55, BND-42, failed append"),
    (67, frozenset(State) - _LOW_LEVEL - {_S.PREPARING, _S.PRECHECKING, _S.IDLE}, _S.SETTLING, "LOOP-34, BND-42, failed append"),
)
"""Where a raise in an effect or an action leads: number, states, next, rules. Row 68, the second
fault of a low-level run or a fault while faulting, leads to `settling` as well."""

_ROWS_OF: Final[Mapping[State, tuple[Row, ...]]] = {state: tuple([row for row in TABLE if row.state is state]) for state in State}


def step(run: Run, on: On, view: View, below: Row | None = None) -> Step:
    """The first row that fits, and the run after it. `below`: only rows under that one.

    The run's new state is that of the row; if the row goes on below, the state stays and the
    caller performs its actions, looks at the session again and calls once more.
    Raises IllegalStep if no row fits: the loop or the table is broken.
    """
    rows = _ROWS_OF[run.state]
    for row in rows if below is None else rows[rows.index(below) + 1 :]:
        if row.on == on and all([guard(run, view) for guard in row.guards]):
            changed = run if row.change is None else row.change(run)
            return Step(row=row, run=changed if row.next is None else attrs.evolve(changed, state=row.next))
    raise IllegalStep(f"no row of {run.state.value} fits {on!r}; run {run.id}, turn {run.turn}")


def raised(run: Run, error: Exception) -> Run:
    """The run after an effect or an action raised (rows 6 and 66 to 68)."""
    if run.state in (State.PREPARING, State.PRECHECKING):
        return attrs.evolve(run, error=error, state=State.PREPARING)
    if run.state in _LOW_LEVEL and not run.faults:
        return attrs.evolve(_faulted(run), error=error, state=State.FAULTING)
    return attrs.evolve(run, error=error, state=State.SETTLING)


# -- admission ---------------------------------------------------------------------------


class PromptStep(Enum):
    """The steps a prompt passes, in order (LOOP-1)."""

    DEFER = "agent_settled is being dispatched: defer the whole prompt"
    COMMAND = "an extension command runs at once"
    COMPACTING = "manual compaction or branch summary: error"
    INPUT = "input handlers may handle or transform"
    EXPAND = "skills and templates"
    QUEUE = "a run is active: queue as told, or error"
    MODEL = "a model and its key: error if missing"
    START = "claim the session and start"


PROMPT_STEPS: Final = tuple(PromptStep)


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


class Verdict(Enum):
    """What an operation does now."""

    NOW = "now"
    START = "start a run"
    QUEUE = "queue"
    QUEUE_IF_TOLD = "queue if a way is named, else error"
    HOLD = "hold until the turn or the run ends"
    DEFER = "after agent_settled was dispatched"
    REFUSE = "error"
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
    **_cells(Operation.ABORT, _V.NOTHING, _V.NOW, _V.NOW, _V.NOTHING, _V.NOW),
}
"""One cell an operation and activity (waits and gates)."""


def admit(operation: Operation, activity: Activity) -> Verdict:
    """What `operation` does in a session that is doing `activity`."""
    return ADMISSION[(operation, activity)]
