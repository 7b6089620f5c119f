"""A run, the states it can be in, and what a row of its table is made of."""

from collections.abc import Callable
from enum import Enum
from typing import Literal

import attrs

from camshaft.kernel import shapes
from camshaft.kernel.messages import FAILED, AssistantMessage, Message, ToolResultMessage
from camshaft.kernel.models import Model
from camshaft.kernel.prompt import PromptOptions
from camshaft.kernel.state import Queued, SessionState


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


On = Literal["done", "message", "results", "lost", "sealed", "woke", "aborted", "cancelled", "raised", "-"]
"""What an effect came back with; `-`: the state has none."""


class Do(Enum):
    """Actions of rows; X: extension handlers, P: public event."""

    FLUSH_SHELL = "flush user-shell results"
    FLUSH_HELD = "flush held custom messages"
    PLAN_RUN = "post the run record"
    RECORD_SELECTION = "post a level entry if the branch says another level"
    GIVE_UP_TOOLS = "give up recorded tools that nobody registered"
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


@shapes.frozen(kw_only=True)
class Pending:
    """A message the next turn starts with."""

    message: Message
    entry_id: str | None = None
    """Reserved id, if its input or the run record has one."""
    input: Queued | None = None
    """The queued input it delivers: its delivery is announced by `queue_update` (QUE-6)."""


@shapes.frozen(kw_only=True)
class Last:
    """The latest assistant message, as stored."""

    message: AssistantMessage
    entry_id: str
    retry_after_ms: int | None = None
    """The wait that the server asked for, if it failed (WIRE-22)."""


@shapes.frozen(kw_only=True)
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
    job: Literal["recovery", "keep"] | None = None
    """The compaction under way: `recovery` is followed by the request that failed, unless it fails itself; `keep` by nothing."""
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


@shapes.frozen(kw_only=True)
class Barren:
    """A compaction that gained nothing; it is not repeated for the same input."""

    entry_id: str
    tokens: int
    """Estimate of the context that it left."""


@shapes.frozen(kw_only=True)
class View:
    """The session as a guard sees it."""

    state: SessionState
    barren: Barren | None = None
    """The last compaction, if it gained nothing."""
    continuations_max: int | None = None
    deferred: bool = False
    """A prompt waits until `agent_settled` was dispatched (LOOP-42)."""
    answered: Model | None = None
    """If the selected model is virtual: the physical one that answered last, as far as it is known."""

    @property
    def limiting(self) -> Model | None:
        """The model whose window and output limit count: what answered last for a virtual one, else the selected one (VM-15)."""
        return self.state.selection.model if self.answered is None else self.answered


Guard = Callable[[Run, View], bool]
Change = Callable[[Run], Run]


@shapes.frozen
class Row:
    """One transition."""

    number: int
    """A stable name."""
    state: State
    on: On
    guards: tuple[Guard, ...]
    """All of them must hold."""
    does: tuple[Do, ...]
    """In this order, each to its end."""
    next: State | None
    """None: `below`, go on with the rows under this one."""
    rules: str
    """The rules behind the row."""
    resume: str
    """Where a run resumes if the process dies in this state."""
    change: Change | None = None
