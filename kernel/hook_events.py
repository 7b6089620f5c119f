"""What handlers are given and what they may return: one event class a hook, one result class where results count.

An event that says the same to handlers and to hosts has one class, in `events.py`.
"""

from typing import Any, ClassVar, Literal

import attrs

from camshaft.kernel import shapes
from camshaft.kernel.boundary import BoundaryContext
from camshaft.kernel.entries import Draft
from camshaft.kernel.messages import AssistantMessage, Block, Content, ImageBlock, Message, ToolResultMessage, Usage
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import EMPTY, FrozenDict, Json


@shapes.frozen(kw_only=True)
class SessionStartEvent:
    """A session is bound to its extensions (EXT-41)."""

    type: ClassVar[str] = "session_start"
    reason: str
    """`startup`, `reload`, `new`, `resume` (also by an import) or `fork` (also by a clone)."""
    previous_session_file: str | None = None
    """The session that was left for this one; None at the start, after a reload, and for one in memory."""


@shapes.frozen(kw_only=True)
class SessionShutdownEvent:
    """The session is about to be left; once per `session_start` (EXT-52)."""

    type: ClassVar[str] = "session_shutdown"
    reason: str
    """`quit`, `reload`, `new`, `resume` (also by an import) or `fork` (also by a clone)."""
    target_session_file: str | None = None
    """The session that is gone to; None at the end, before a reload, and for one in memory."""


@shapes.frozen(kw_only=True)
class SessionCompactFailedEvent:
    """A compaction failed, was aborted, or could not begin."""

    type: ClassVar[str] = "session_compact_failed"
    reason: str
    error_message: str | None = None
    aborted: bool
    will_retry: bool
    from_extension: bool


@shapes.frozen(kw_only=True)
class InputEvent:
    """A text arrived, before expansion (IN-1)."""

    type: ClassVar[str] = "input"
    text: str
    images: tuple[ImageBlock, ...] | None = None
    source: str
    streaming_behavior: str | None = None
    """How it would be queued; None while idle (LOOP-3)."""


@shapes.frozen(kw_only=True)
class InputResult:
    """`continue`, `transform` (needs `text`) or `handled` (IN-2)."""

    action: str | None = None
    text: str | None = None
    images: tuple[ImageBlock, ...] | None = None


@shapes.frozen(kw_only=True)
class CustomInput:
    """A message an extension sends: a custom message without its time."""

    custom_type: str
    content: Content | None = None
    """None becomes an empty list (QUE-12)."""
    display: bool | None = None
    details: Json = None


@shapes.frozen(kw_only=True)
class BeforeAgentStartEvent:
    """A run is about to start. `system_prompt_options` is a thawed copy to edit in place."""

    type: ClassVar[str] = "before_agent_start"
    message_type: Literal["user", "custom"]
    prompt: str | None = None
    images: tuple[ImageBlock, ...] | None = None
    message: Message | None = None
    system_prompt: str
    system_prompt_options: Any
    """A `Thawed` copy of PromptOptions."""


@shapes.frozen(kw_only=True)
class BeforeAgentStartResult:
    """A message to add to the starting messages, a forced prompt for this run (PB-5)."""

    message: CustomInput | None = None
    system_prompt: str | None = None


@shapes.frozen(kw_only=True)
class AgentEndEvent:
    """A low-level run ended; no sign that the session is idle."""

    type: ClassVar[str] = "agent_end"
    messages: tuple[Message, ...]


@shapes.frozen(kw_only=True)
class TurnStartEvent:
    """A turn begins, before its messages."""

    type: ClassVar[str] = "turn_start"
    turn_index: int
    """From 0 in every low-level run (LOOP-26)."""
    timestamp: int


@shapes.frozen(kw_only=True)
class TurnEndEvent:
    """The actionable boundary after a turn; its messages are in the session (BND-1)."""

    type: ClassVar[str] = "turn_end"
    turn_index: int
    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...]
    message_entry_id: str
    tool_result_entry_ids: tuple[str, ...]
    outcome: str
    entries: tuple[Draft, ...]
    continue_: bool
    context: BoundaryContext


@shapes.frozen(kw_only=True)
class AgentBeforeSettleEvent:
    """The actionable boundary before the run settles (BND-1)."""

    type: ClassVar[str] = "agent_before_settle"
    outcome: str
    entries: tuple[Draft, ...]
    continue_: bool
    context: BoundaryContext


@shapes.frozen(kw_only=True)
class ContextEvent:
    """The messages of the next request without system messages: a list of thawed copies to edit or replace."""

    type: ClassVar[str] = "context"
    messages: list[Any]
    handed: tuple[Any, ...] = attrs.field(default=(), repr=False)
    """The copies as they were handed out, in their order, so that edits of the list itself show."""


@shapes.frozen(kw_only=True)
class ContextWithSystemEvent:
    """The whole transcript of the next request: a list of thawed copies to edit or replace."""

    type: ClassVar[str] = "context_with_system"
    messages: list[Any]


@shapes.frozen(kw_only=True)
class ContextResult:
    """The messages to send: thawed ones, message objects, or dicts with their fields."""

    messages: object = None


@shapes.frozen(kw_only=True)
class MessageEndResult:
    """The message to store instead, of the same role: a thawed one, a message object, or a dict with its fields."""

    message: object = None


@shapes.frozen(kw_only=True)
class ToolCallEvent:
    """A validated call before it runs. `input` is a private dict to edit in place (TOOL-18)."""

    type: ClassVar[str] = "tool_call"
    tool_name: str
    tool_call_id: str
    input: dict[str, Any]
    parent_tool_call_id: str | None = None


@shapes.frozen(kw_only=True)
class ToolCallResult:
    """Block the call, or replace its input (TOOL-18 to TOOL-20)."""

    block: bool | None = None
    reason: str | None = None
    terminate: bool | None = None
    input: FrozenDict | None = None


@shapes.frozen(kw_only=True)
class ToolResultEvent:
    """An executed call's result before it is final (TOOL-30)."""

    type: ClassVar[str] = "tool_result"
    tool_name: str
    tool_call_id: str
    input: FrozenDict
    content: tuple[Block, ...] | None = None
    details: Json = None
    structured_content: Json = None
    is_error: bool
    usage: Usage | None = None
    parent_tool_call_id: str | None = None
    extra: FrozenDict = EMPTY
    """Fields that are null and not missing, by their JSON names."""


@shapes.frozen(kw_only=True)
class ToolResultPatch:
    """What to change; None keeps (EVT-37)."""

    content: tuple[Block, ...] | None = None
    details: Json = None
    structured_content: Json = None
    is_error: bool | None = None
    usage: Usage | None = None
    terminate: bool | None = None
    """Without effect: what a batch does next is its tools' to say (TOOL-33). Accepted, so that a tool's result can be returned whole."""


@shapes.frozen(kw_only=True)
class BeforeProviderHeadersEvent:
    """A request's own headers, a private dict to edit in place: a text sets, None removes (WIRE-102)."""

    type: ClassVar[str] = "before_provider_headers"
    headers: dict[str, str | None]


@shapes.frozen(kw_only=True)
class BeforeProviderRequestEvent:
    """A request's body before it is sent, a private copy to edit in place or to replace by returning another (WIRE-103)."""

    type: ClassVar[str] = "before_provider_request"
    payload: Any


@shapes.frozen(kw_only=True)
class AfterProviderResponseEvent:
    """The head of a response, whatever its status; its body is not read yet (WIRE-106)."""

    type: ClassVar[str] = "after_provider_response"
    status: int
    headers: FrozenDict
    """Names in lower case."""


@shapes.frozen(kw_only=True)
class ProviderStreamEvent:
    """One parsed event of the provider, before it is normalised (WIRE-107)."""

    type: ClassVar[str] = "provider_stream_event"
    provider: str
    api: str
    model: str
    data: Json


@shapes.frozen(kw_only=True)
class ModelSelectEvent:
    """Another model was selected."""

    type: ClassVar[str] = "model_select"
    model: Model
    previous_model: Model | None = None
    source: str


@shapes.frozen(kw_only=True)
class ThinkingLevelSelectEvent:
    """The effective thinking level changed."""

    type: ClassVar[str] = "thinking_level_select"
    level: str
    previous_level: str
