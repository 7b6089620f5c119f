"""What a host or a frontend can see: the public events, on one page (P channel).

Each class is one record of the wire of JSON mode and RPC: `type` is its name there, the
fields are the snake_case forms. Events arrive in the order in which things became true:
an event about an entry comes after the entry is in the log.
"""

from typing import ClassVar, Literal

import attrs

from camshaft.kernel import shapes
from camshaft.kernel.compaction import CompactionResult
from camshaft.kernel.dialogs import Dialog, Ending, UiValue
from camshaft.kernel.entries import Entry
from camshaft.kernel.messages import AssistantMessage, Message, ToolResultMessage
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.stream import AssistantMessageEvent, Partial
from camshaft.kernel.tools import ToolResult

SummarySource = Literal["compaction", "branchSummary"]
"""What a summary is made for."""


@shapes.frozen(kw_only=True)
class AgentStart:
    """A low-level run begins: the first one, a retry, late queued messages or a settle continuation."""

    type: ClassVar[str] = "agent_start"


@shapes.frozen(kw_only=True)
class AgentEnd:
    """A low-level run ended; not yet idle."""

    type: ClassVar[str] = "agent_end"
    messages: tuple[Message, ...]
    """What this low-level run itself added, as stored (LOOP-27)."""
    will_retry: bool


@shapes.frozen(kw_only=True)
class AgentSettled:
    """The session run is over and the session idle; exactly one per session run."""

    type: ClassVar[str] = "agent_settled"
    aborted: bool
    """Whether an abort was requested during the run, even if every turn completed (LOOP-33)."""


@shapes.frozen(kw_only=True)
class BashExecutionUpdate:
    """A command that a person runs printed something (RPC-76)."""

    type: ClassVar[str] = "bash_execution_update"
    delta: str
    """Cleaned: no control sequences, line ends as LF; never empty."""
    id: str | None = None
    """The id of the client's command that ran it."""


@shapes.frozen(kw_only=True)
class TurnStart:
    """A turn begins, before its messages."""

    type: ClassVar[str] = "turn_start"


@shapes.frozen(kw_only=True)
class TurnEnd:
    """A turn ended; its boundary is committed."""

    type: ClassVar[str] = "turn_end"
    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...]


@shapes.frozen(kw_only=True)
class MessageStart:
    """A message begins; an assistant message is partial (`pending`) here."""

    type: ClassVar[str] = "message_start"
    message: Message


@shapes.frozen(kw_only=True)
class MessageUpdate:
    """A block event of the streaming assistant message."""

    type: ClassVar[str] = "message_update"
    partial: Partial
    assistant_message_event: AssistantMessageEvent

    @property
    def message(self) -> AssistantMessage:
        """The message so far: an immutable snapshot, built when read."""
        return self.partial.message


@shapes.frozen(kw_only=True)
class MessageEnd:
    """The message is final and in the log (LOOP-19)."""

    type: ClassVar[str] = "message_end"
    message: Message


@shapes.frozen(kw_only=True)
class ToolExecutionStart:
    """A call begins, also an unknown, invalid or blocked one. `args` are those of the model (LOOP-46)."""

    type: ClassVar[str] = "tool_execution_start"
    tool_call_id: str
    tool_name: str
    args: FrozenDict
    parent_tool_call_id: str | None = None


@shapes.frozen(kw_only=True)
class ToolExecutionUpdate:
    """A partial result of a running call."""

    type: ClassVar[str] = "tool_execution_update"
    tool_call_id: str
    tool_name: str
    args: FrozenDict
    partial_result: ToolResult
    parent_tool_call_id: str | None = None


@shapes.frozen(kw_only=True)
class ToolExecutionEnd:
    """A call ended; in completion order."""

    type: ClassVar[str] = "tool_execution_end"
    tool_call_id: str
    tool_name: str
    result: ToolResult
    is_error: bool
    duration_ms: int | None = None
    """Set iff `execute` ran (TOOL-8)."""
    parent_tool_call_id: str | None = None


@shapes.frozen(kw_only=True)
class QueueUpdate:
    """The texts of the user messages that wait (QUE-6)."""

    type: ClassVar[str] = "queue_update"
    steering: tuple[str, ...]
    follow_up: tuple[str, ...]


@shapes.frozen(kw_only=True)
class EntryAppended:
    """An entry that is no ordinary message was appended (LOOP-47)."""

    type: ClassVar[str] = "entry_appended"
    entry: Entry


@shapes.frozen(kw_only=True)
class AutoRetryStart:
    """A failed response will be asked for again after a wait."""

    type: ClassVar[str] = "auto_retry_start"
    attempt: int
    """From 1."""
    max_attempts: int
    delay_ms: int
    error_message: str


@shapes.frozen(kw_only=True)
class AutoRetryEnd:
    """Retrying is over: a response succeeded, attempts ran out, or it was cancelled."""

    type: ClassVar[str] = "auto_retry_end"
    success: bool
    attempt: int
    final_error: str | None = None


@shapes.frozen(kw_only=True)
class CompactionStart:
    """A compaction begins."""

    type: ClassVar[str] = "compaction_start"
    reason: str


@shapes.frozen(kw_only=True)
class CompactionEnd:
    """A compaction ended, or could not begin."""

    type: ClassVar[str] = "compaction_end"
    reason: str
    result: CompactionResult | None = None
    """None on failure."""
    aborted: bool
    will_retry: bool
    """The last request is repeated now; false on failure (EVT-23)."""
    error_message: str | None = None
    """None when aborted."""


@shapes.frozen(kw_only=True)
class SummarizationRetryScheduled:
    """A summary request failed and will be repeated (RTY-15)."""

    type: ClassVar[str] = "summarization_retry_scheduled"
    attempt: int
    max_attempts: int
    delay_ms: int
    error_message: str


@shapes.frozen(kw_only=True)
class SummarizationRetryAttemptStart:
    """A summary request is repeated now."""

    type: ClassVar[str] = "summarization_retry_attempt_start"
    source: SummarySource
    reason: str | None = None
    """Of a compaction."""


@shapes.frozen(kw_only=True)
class SummarizationRetryFinished:
    """No summary request is repeated any more, whatever came of the last one."""

    type: ClassVar[str] = "summarization_retry_finished"


@shapes.frozen(kw_only=True)
class SessionInfoChanged:
    """The session has another name; absent when cleared."""

    type: ClassVar[str] = "session_info_changed"
    name: str | None = None


@shapes.frozen(kw_only=True)
class SessionReplaced:
    """The conversation goes on in another session, or with its extensions loaded anew: what was shown is to be read again."""

    type: ClassVar[str] = "session_replaced"
    reason: Literal["new", "resume", "fork", "reload"]
    """`reload`: the same session."""
    session_id: str
    session_file: str | None = None
    """Whether it exists yet or not; None in memory."""
    previous_session_file: str | None = None


@shapes.frozen(kw_only=True)
class ThinkingLevelChanged:
    """The effective thinking level changed."""

    type: ClassVar[str] = "thinking_level_changed"
    level: str


@shapes.frozen(kw_only=True)
class ExtensionErrorEvent:
    """An extension failed; nothing else is affected (ERR-1, ERR-5)."""

    type: ClassVar[str] = "extension_error"
    extension_path: str
    event: str
    """The hook; else `command`, `events:CHANNEL`, `execute` (a tool returned no result), or the action that failed later."""
    error: str
    error_type: str | None = None
    """Class of the exception; None if nothing was raised."""
    place: str | None = None
    """`FILE, line N` of the extension's own code that raised; None if none of it did."""
    stack: str | None = attrs.field(default=None, repr=False)
    """The traceback; None if nothing was raised."""


@shapes.frozen(kw_only=True)
class DialogOpened:
    """An extension asks a person; `Seat.dialogs` has it until it is closed. Only where a UI is bound, as the next four."""

    type: ClassVar[str] = "dialog_opened"
    dialog: Dialog


@shapes.frozen(kw_only=True)
class DialogClosed:
    """A dialog is open no longer; whoever shows it takes it away."""

    type: ClassVar[str] = "dialog_closed"
    id: str
    ending: Ending


@shapes.frozen(kw_only=True)
class Notified:
    """An extension says something to people, once; it is not kept."""

    type: ClassVar[str] = "notified"
    message: str
    level: str
    """`info`, `warning` or `error`."""
    extension: str
    """Its path."""


@shapes.frozen(kw_only=True)
class UiChanged:
    """An extension shows something else, or nothing any more; `Seat.ui` has all that is shown."""

    type: ClassVar[str] = "ui_changed"
    part: str
    """`status`, `widget`, `title`, `editor_text`, `working_message`, `working_visible` or `hidden_thinking_label`."""
    key: str | None = None
    """Of the status line or widget."""
    value: UiValue = None
    """None: cleared."""


@shapes.frozen(kw_only=True)
class UiReset:
    """The extensions were replaced, and with them everything they showed (UI-7)."""

    type: ClassVar[str] = "ui_reset"


@shapes.frozen(kw_only=True)
class DiagnosticEvent:
    """Something a host should know that changed no behaviour: a damaged line, a foreign writer, a restart."""

    type: ClassVar[str] = "diagnostic"
    source: str
    message: str


Event = (
    AgentStart
    | AgentEnd
    | AgentSettled
    | TurnStart
    | TurnEnd
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
    | QueueUpdate
    | EntryAppended
    | AutoRetryStart
    | AutoRetryEnd
    | BashExecutionUpdate
    | CompactionStart
    | CompactionEnd
    | SummarizationRetryScheduled
    | SummarizationRetryAttemptStart
    | SummarizationRetryFinished
    | SessionInfoChanged
    | SessionReplaced
    | ThinkingLevelChanged
    | ExtensionErrorEvent
    | DialogOpened
    | DialogClosed
    | Notified
    | UiChanged
    | UiReset
    | DiagnosticEvent
)
