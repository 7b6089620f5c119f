"""What can be asked of a session: one frozen class each, in the imperative.

`state.decide` answers each with a Commit or a Rejection. A command holds only what deciding
needs; times and fresh ids come from the world, as Stamps.
"""

from collections.abc import Mapping
from typing import Literal

from camshaft.kernel import shapes
from camshaft.kernel.entries import CompactionDraft, Entry, Replacement
from camshaft.kernel.messages import BashExecutionMessage, CustomMessage, Message, Usage
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import EMPTY, FrozenDict, Json
from camshaft.kernel.records import Decision, PlannedCall, StartingMessage, WaitRecord, Way
from camshaft.kernel.settings import QueueMode, Settings

QueueName = Literal["steer", "followUp"]


@shapes.frozen(kw_only=True)
class AppendMessage:
    """Append a message of the conversation; `entry_id` was reserved for it, if given."""

    message: Message
    entry_id: str | None = None


@shapes.frozen(kw_only=True)
class AppendCustomMessage:
    """Append a message of an extension."""

    message: CustomMessage
    entry_id: str | None = None


@shapes.frozen(kw_only=True)
class AppendCustom:
    """Append state of an extension (API-14)."""

    custom_type: str
    data: Json = None
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class AppendUsage:
    """Append model work outside the conversation (SES-26); an empty note is none."""

    kind: str
    provider: str
    model: str
    usage: Usage
    note: str | None = None


@shapes.frozen(kw_only=True)
class AppendContextEdit:
    """Append a change of what another entry of the branch contributes; None omits it (SES-48 to SES-51)."""

    target_id: str
    replacement: Replacement | Mapping[str, Json] | None


@shapes.frozen(kw_only=True)
class AppendCompaction:
    """Append a compaction; a draft that keeps nothing gets its own id as the first kept one (SES-27)."""

    draft: CompactionDraft
    tokens_before: int
    from_hook: bool | None = None
    """True: an extension supplied the summary (SES-29)."""


@shapes.frozen(kw_only=True)
class AppendBranchSummary:
    """Go to another entry, or to none, and append there what happened on the branch that is left (SES-30)."""

    entry_id: str | None
    summary: str
    label: str | None = None
    """Labels the summary, in the same commit (CMP-71)."""
    details: Json = None
    usage: Usage | None = None
    from_hook: bool | None = None
    """True: an extension supplied the summary (SES-29)."""
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class SetLabel:
    """Label an entry of any branch; None clears (SES-52)."""

    target_id: str
    label: str | None


@shapes.frozen(kw_only=True)
class SetName:
    """Name the session; empty clears (SES-33)."""

    name: str


@shapes.frozen(kw_only=True)
class RecordSelection:
    """Append what the branch implies otherwise (SES-24)."""

    model: tuple[str, str] | None = None
    """(provider, model id)."""
    thinking_level: str | None = None


@shapes.frozen(kw_only=True)
class OmitEntries:
    """Take entries out of the context, because their response is asked for again (RTY-4)."""

    entry_ids: tuple[str, ...]
    wait: WaitRecord | None = None
    """Completed with the id of the first omission."""


@shapes.frozen(kw_only=True)
class CommitBatch:
    """Append these entries and a boundary's decision together; they were sealed against this state."""

    entries: tuple[Entry, ...]
    decision: Decision | None


@shapes.frozen(kw_only=True)
class Enqueue:
    """Queue an input."""

    way: Way
    message: Message
    command_id: str | None = None


@shapes.frozen(kw_only=True)
class ClaimRun:
    """Accept an input and start a run with it: the session is busy from here (LOOP-6)."""

    way: Way
    message: Message
    run_id: str
    command_id: str | None = None


@shapes.frozen(kw_only=True)
class Unclaim:
    """The run could not be prepared: un-start it, its input is cancelled (LOOP-9)."""

    input_id: str


@shapes.frozen(kw_only=True)
class PlanRun:
    """The starting messages are settled; `nextTurn` messages among them are consumed (LOOP-8, IN-6)."""

    run_id: str
    input_ids: tuple[str, ...]
    starting: tuple[StartingMessage, ...]


@shapes.frozen(kw_only=True)
class Take:
    """Poll a queue per its mode (QUE-2)."""

    queue: QueueName


@shapes.frozen(kw_only=True)
class AnnounceDelivery:
    """A taken message is about to be delivered: it no longer counts as queued (QUE-6)."""

    input_id: str


@shapes.frozen(kw_only=True)
class ClearQueues:
    """Empty both queues; taken messages are neither returned nor removed (QUE-14)."""


@shapes.frozen(kw_only=True)
class Hold:
    """Keep a context-only custom message, or a user command's result, until its time."""

    message: CustomMessage | BashExecutionMessage


@shapes.frozen(kw_only=True)
class FlushHeld:
    """Append what is held, in order."""

    kind: Literal["custom", "shell"]


@shapes.frozen(kw_only=True)
class PlanCalls:
    """A batch of calls is about to start."""

    calls: tuple[PlannedCall, ...]


@shapes.frozen(kw_only=True)
class FinishCall:
    """A call of the batch ended; its message is appended when the batch is closed."""

    result_entry_id: str
    message: Message


@shapes.frozen(kw_only=True)
class BecomeActive:
    """`agent_start`: the run is under way and has a signal."""


@shapes.frozen(kw_only=True)
class RequestAbort:
    """Set the abort flag of the run; nothing while idle."""


@shapes.frozen(kw_only=True)
class BecomeSettled:
    """The run is over; readers see idle, claims are deferred. What was taken and not delivered is queued again."""

    outcome: str | None
    """None writes no record: the log refused it."""


@shapes.frozen(kw_only=True)
class BecomeIdle:
    """`agent_settled` was dispatched."""


@shapes.frozen(kw_only=True)
class BecomeCompacting:
    """A manual compaction or a navigation begins; only from idle. `BecomeIdle` ends it."""


@shapes.frozen(kw_only=True)
class SelectModel:
    """Use another model; recorded for the session (API-22)."""

    model: Model
    thinking_level: str
    record: bool = True
    """False: the selection of a resumed session, which its entries already hold."""


@shapes.frozen(kw_only=True)
class SelectLevel:
    """Use another thinking level; recorded."""

    thinking_level: str


@shapes.frozen(kw_only=True)
class SelectTools:
    """Replace the active set."""

    active_tools: tuple[str, ...]
    awaited: tuple[str, ...] | None = None
    """Tools to activate when they are registered; None: as they are while the set stays the same, else none (EXPO-7)."""


@shapes.frozen(kw_only=True)
class SetQueueMode:
    """Change how a queue is polled, from the next poll on (QUE-1)."""

    queue: QueueName
    mode: QueueMode


@shapes.frozen(kw_only=True)
class UseSettings:
    """Go on under these settings; the modes of the queues stay as they were set."""

    settings: Settings


@shapes.frozen(kw_only=True)
class MoveLeaf:
    """Go to another entry, or to none, without writing to the session file (SES-37, SES-38).

    With a label, the label is written there, which makes the move durable (CMP-71).
    """

    entry_id: str | None
    label: str | None = None
    label_target: str | None = None
    """The entry that is labelled."""


AppendSummary = AppendUsage | AppendContextEdit | AppendCompaction | AppendBranchSummary
"""What sums up or changes what other entries say."""

Append = AppendMessage | AppendCustomMessage | AppendCustom | AppendSummary | SetLabel | SetName | RecordSelection
"""What adds entries and does nothing else."""

Command = (
    AppendMessage
    | AppendCustomMessage
    | AppendCustom
    | AppendUsage
    | AppendContextEdit
    | AppendCompaction
    | AppendBranchSummary
    | SetLabel
    | SetName
    | RecordSelection
    | OmitEntries
    | CommitBatch
    | Enqueue
    | ClaimRun
    | Unclaim
    | PlanRun
    | Take
    | AnnounceDelivery
    | ClearQueues
    | Hold
    | FlushHeld
    | PlanCalls
    | FinishCall
    | BecomeActive
    | RequestAbort
    | BecomeSettled
    | BecomeIdle
    | BecomeCompacting
    | SelectModel
    | SelectLevel
    | SelectTools
    | SetQueueMode
    | MoveLeaf
    | UseSettings
)
