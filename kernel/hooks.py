"""The hook table: what extensions can handle, and what their answers do.

A dispatch is a fold: a *subject* is shown to one handler after the other as an event, and
what a handler did becomes the next subject. `HOOKS` has one row a hook; the dispatcher of the
extension host reads it and knows no hook by name. A row says

    event      the class a handler is given; frozen but for the parts named mutable in EVT-8,
               which are thawed copies and frozen again after each handler
    result     the class a handler may return; None: what it returns is ignored
    show       subject -> event
    merge      subject, the event after the handler, its result, the session now -> Merged
    on_raise   what a failing handler does to the subject; it is always reported (LOOP-49)
    fail_closed  whether `on(..., fail_closed=True)` is allowed (EVT-21)
    awaited    False: the producer does not wait (EVT-6)

A handler that raises contributes nothing, its edits are discarded (EVT-29), except for
`before_agent_start`, whose edits stay. Adding a hook is adding a row, its cells in the test,
and its place in the loop or the seat.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Literal, TypeVar

import attrs

from camshaft.kernel import boundary, codec
from camshaft.kernel.boundary import BoundaryContext, BoundaryResult, Proposal
from camshaft.kernel.entries import Draft
from camshaft.kernel.errors import CodecError
from camshaft.kernel.messages import (
    AssistantMessage,
    Block,
    Content,
    ImageBlock,
    Message,
    SystemMessage,
    ToolResultMessage,
    Usage,
    UserMessage,
    blocks_of,
    text_of,
)
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import FrozenDict, Json, NotJson, freeze, thaw
from camshaft.kernel.prompt import PromptOptions, collapse, prompt_text
from camshaft.kernel.state import SessionState
from camshaft.kernel.stream import AssistantMessageEvent, Partial
from camshaft.kernel.thawed import Thawed, frozen, thawed
from camshaft.kernel.tools import ToolResult

S = TypeVar("S")

SECTION_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")
"""Names of prompt sections an extension may set (PB-3)."""


class HandedOut(list[Any]):
    """The list a `context` handler gets; remembers what was handed out, so that edits of the list itself show."""

    def __init__(self, items: list[Any]) -> None:
        super().__init__(items)
        self.handed: Final = tuple(items)


# -- events ------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class SessionStartEvent:
    """A session is bound to its extensions (EXT-41)."""

    type: ClassVar[str] = "session_start"
    reason: str
    previous_session_file: str | None = None


@attrs.frozen(kw_only=True)
class SessionShutdownEvent:
    """The session is about to be left; once per `session_start` (EXT-52)."""

    type: ClassVar[str] = "session_shutdown"
    reason: str
    target_session_file: str | None = None


@attrs.frozen(kw_only=True)
class SessionInfoChangedEvent:
    """The session has another name; absent when cleared."""

    type: ClassVar[str] = "session_info_changed"
    name: str | None = None


@attrs.frozen(kw_only=True)
class SessionCompactFailedEvent:
    """A compaction failed, was aborted, or could not begin."""

    type: ClassVar[str] = "session_compact_failed"
    reason: str
    error_message: str | None = None
    aborted: bool
    will_retry: bool
    from_extension: bool


@attrs.frozen(kw_only=True)
class InputEvent:
    """A text arrived, before expansion (IN-1)."""

    type: ClassVar[str] = "input"
    text: str
    images: tuple[ImageBlock, ...] | None = None
    source: str
    streaming_behavior: str | None = None
    """How it would be queued; None while idle (LOOP-3)."""


@attrs.frozen(kw_only=True)
class InputResult:
    """`continue`, `transform` (needs `text`) or `handled` (IN-2)."""

    action: str | None = None
    text: str | None = None
    images: tuple[ImageBlock, ...] | None = None


@attrs.frozen(kw_only=True)
class CustomInput:
    """A message an extension sends: a custom message without its time."""

    custom_type: str
    content: Content | None = None
    """None becomes an empty list (QUE-12)."""
    display: bool | None = None
    details: Json = None


@attrs.frozen(kw_only=True)
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


@attrs.frozen(kw_only=True)
class BeforeAgentStartResult:
    """A message to add to the starting messages, a forced prompt for this run (PB-5)."""

    message: CustomInput | None = None
    system_prompt: str | None = None


@attrs.frozen(kw_only=True)
class AgentStartEvent:
    """A low-level run begins."""

    type: ClassVar[str] = "agent_start"


@attrs.frozen(kw_only=True)
class AgentEndEvent:
    """A low-level run ended; no sign that the session is idle."""

    type: ClassVar[str] = "agent_end"
    messages: tuple[Message, ...]


@attrs.frozen(kw_only=True)
class AgentSettledEvent:
    """The run is over; the session reads idle."""

    type: ClassVar[str] = "agent_settled"
    aborted: bool


@attrs.frozen(kw_only=True)
class TurnStartEvent:
    """A turn begins, before its messages."""

    type: ClassVar[str] = "turn_start"
    turn_index: int
    """From 0 in every low-level run (LOOP-26)."""
    timestamp: int


@attrs.frozen(kw_only=True)
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


@attrs.frozen(kw_only=True)
class AgentBeforeSettleEvent:
    """The actionable boundary before the run settles (BND-1)."""

    type: ClassVar[str] = "agent_before_settle"
    outcome: str
    entries: tuple[Draft, ...]
    continue_: bool
    context: BoundaryContext


@attrs.frozen(kw_only=True)
class ContextEvent:
    """The messages of the next request without system messages: a list of thawed copies to edit or replace."""

    type: ClassVar[str] = "context"
    messages: HandedOut


@attrs.frozen(kw_only=True)
class ContextWithSystemEvent:
    """The whole transcript of the next request: a list of thawed copies to edit or replace."""

    type: ClassVar[str] = "context_with_system"
    messages: list[Any]


@attrs.frozen(kw_only=True)
class ContextResult:
    """The messages to send: thawed ones, message objects, or dicts with their fields."""

    messages: object = None


@attrs.frozen(kw_only=True)
class MessageStartEvent:
    """A message begins; not yet in the session."""

    type: ClassVar[str] = "message_start"
    message: Message


@attrs.frozen(kw_only=True)
class MessageUpdateEvent:
    """A block event of the streaming message."""

    type: ClassVar[str] = "message_update"
    partial: Partial
    assistant_message_event: AssistantMessageEvent

    @property
    def message(self) -> AssistantMessage:
        """The message so far, built when read."""
        return self.partial.message


@attrs.frozen(kw_only=True)
class MessageEndEvent:
    """A message is final, not yet in the session; a handler may replace it (EVT-32)."""

    type: ClassVar[str] = "message_end"
    message: Message


@attrs.frozen(kw_only=True)
class MessageEndResult:
    """The message to store instead; same role."""

    message: Message | None = None


@attrs.frozen(kw_only=True)
class ToolExecutionStartEvent:
    """A call begins; first thing for every call."""

    type: ClassVar[str] = "tool_execution_start"
    tool_call_id: str
    tool_name: str
    args: FrozenDict
    parent_tool_call_id: str | None = None


@attrs.frozen(kw_only=True)
class ToolExecutionUpdateEvent:
    """A partial result of a running call."""

    type: ClassVar[str] = "tool_execution_update"
    tool_call_id: str
    tool_name: str
    args: FrozenDict
    partial_result: ToolResult
    parent_tool_call_id: str | None = None


@attrs.frozen(kw_only=True)
class ToolExecutionEndEvent:
    """A call ended, in completion order."""

    type: ClassVar[str] = "tool_execution_end"
    tool_call_id: str
    tool_name: str
    result: ToolResult
    is_error: bool
    duration_ms: int | None = None
    parent_tool_call_id: str | None = None


@attrs.frozen(kw_only=True)
class ToolCallEvent:
    """A validated call before it runs. `input` is a private dict to edit in place (TOOL-18)."""

    type: ClassVar[str] = "tool_call"
    tool_name: str
    tool_call_id: str
    input: dict[str, Any]
    parent_tool_call_id: str | None = None


@attrs.frozen(kw_only=True)
class ToolCallResult:
    """Block the call, or replace its input (TOOL-18 to TOOL-20)."""

    block: bool | None = None
    reason: str | None = None
    terminate: bool | None = None
    input: FrozenDict | None = None


@attrs.frozen(kw_only=True)
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


@attrs.frozen(kw_only=True)
class ToolResultPatch:
    """What to change; None keeps (EVT-37)."""

    content: tuple[Block, ...] | None = None
    details: Json = None
    structured_content: Json = None
    is_error: bool | None = None
    usage: Usage | None = None


@attrs.frozen(kw_only=True)
class BeforeProviderHeadersEvent:
    """A request's own headers, a private dict to edit in place: a text sets, None removes (WIRE-102)."""

    type: ClassVar[str] = "before_provider_headers"
    headers: dict[str, str | None]


@attrs.frozen(kw_only=True)
class BeforeProviderRequestEvent:
    """A request's body before it is sent, a private copy to edit in place or to replace by returning another (WIRE-103)."""

    type: ClassVar[str] = "before_provider_request"
    payload: Any


@attrs.frozen(kw_only=True)
class AfterProviderResponseEvent:
    """The head of a response, whatever its status; its body is not read yet (WIRE-106)."""

    type: ClassVar[str] = "after_provider_response"
    status: int
    headers: FrozenDict
    """Names in lower case."""


@attrs.frozen(kw_only=True)
class ProviderStreamEvent:
    """One parsed event of the provider, before it is normalised (WIRE-107)."""

    type: ClassVar[str] = "provider_stream_event"
    provider: str
    api: str
    model: str
    data: Json


@attrs.frozen(kw_only=True)
class ModelSelectEvent:
    """Another model was selected."""

    type: ClassVar[str] = "model_select"
    model: Model
    previous_model: Model | None = None
    source: str


@attrs.frozen(kw_only=True)
class ThinkingLevelSelectEvent:
    """The effective thinking level changed."""

    type: ClassVar[str] = "thinking_level_select"
    level: str
    previous_level: str


# -- subjects that are more than their event ---------------------------------------------


@attrs.frozen(kw_only=True)
class StartPlan:
    """Subject of `before_agent_start`: what the run will start with."""

    message: UserMessage | Message
    prompt: str | None
    images: tuple[ImageBlock, ...] | None
    options: PromptOptions
    forced: str | None = None
    """A prompt text forced for this run (PB-5)."""
    added: tuple[CustomInput, ...] = ()
    """Messages of handlers, in handler order."""


@attrs.frozen(kw_only=True)
class InputPlan:
    """Subject of `input`."""

    event: InputEvent
    handled: bool = False


@attrs.frozen(kw_only=True)
class CallGate:
    """Subject of `tool_call`: the input that will run, or why it will not."""

    tool_name: str
    tool_call_id: str
    parent_tool_call_id: str | None
    input: FrozenDict
    blocked: str | None = None
    """Text of the error result; None: not blocked."""
    terminate: bool = False


@attrs.frozen(kw_only=True)
class TurnSubject:
    """Subject of `turn_end`: the proposal and the turn it is about."""

    proposal: Proposal
    turn_index: int
    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...]
    message_entry_id: str
    tool_result_entry_ids: tuple[str, ...]
    outcome: str


@attrs.frozen(kw_only=True)
class SettleSubject:
    """Subject of `agent_before_settle`."""

    proposal: Proposal
    outcome: str


# -- rows --------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Merged:
    """The subject after one handler."""

    subject: Any
    stop: bool = False
    """True ends the dispatch."""
    complaints: tuple[str, ...] = ()
    """Errors to report against the handler's extension."""


@attrs.frozen(kw_only=True)
class Now:
    """What a merge may look at besides subject and answer."""

    state: SessionState
    at_ms: int
    extension: str
    """Path of the extension whose handler answered."""


Show = Callable[[Any], Any]
Merge = Callable[[Any, Any, Any, Now], Merged]


def _itself(subject: Any) -> Any:
    return subject


def _kept(subject: Any, _event: Any, _result: Any, _now: Now) -> Merged:
    return Merged(subject=subject)


@attrs.frozen(kw_only=True)
class Hook:
    """One row of the table."""

    name: str
    event: type[Any]
    result: type[Any] | None = None
    show: Show = _itself
    merge: Merge = _kept
    on_raise: Merge = _kept
    """As `merge`, with the error text in place of the result."""
    on_cut: Merge | None = None
    """What a handler does that was ended by force; None: as `on_raise` (LOOP-71)."""
    fail_closed: Merge | None = None
    """What a raise does when the handler asked for it; None: not allowed."""
    awaited: bool = True


def _merge_input(plan: InputPlan, _event: InputEvent, result: InputResult | None, _now: Now) -> Merged:
    if result is None:
        return Merged(subject=plan)
    if result.action == "handled":
        return Merged(subject=attrs.evolve(plan, handled=True), stop=True)
    if result.action != "transform":
        return Merged(subject=plan)
    if result.text is None:
        return Merged(subject=plan, complaints=("input handler returned a transform without text",))
    images = plan.event.images if result.images is None else result.images
    return Merged(subject=attrs.evolve(plan, event=attrs.evolve(plan.event, text=result.text, images=images)))


def _close_input(plan: InputPlan, _event: InputEvent, _error: str, _now: Now) -> Merged:
    return Merged(subject=attrs.evolve(plan, handled=True), stop=True)


def prompt_parts(message: UserMessage) -> tuple[str, tuple[ImageBlock, ...] | None]:
    """The text of a prompt and its images, None without any, as `before_agent_start` shows them."""
    images = tuple([block for block in blocks_of(message.content) if isinstance(block, ImageBlock)])
    return text_of(message.content), images or None


def _show_start(plan: StartPlan) -> BeforeAgentStartEvent:
    user = isinstance(plan.message, UserMessage)
    return BeforeAgentStartEvent(
        message_type="user" if user else "custom",
        prompt=plan.prompt if user else None,
        images=plan.images if user else None,
        message=None if user else plan.message,
        system_prompt=plan.forced if plan.forced is not None else prompt_text(plan.options),
        system_prompt_options=thawed(plan.options),
    )


def _edited_start(plan: StartPlan, event: BeforeAgentStartEvent) -> tuple[StartPlan, tuple[str, ...]]:
    """The plan with the edited options; a badly named section is dropped alone (PB-3)."""
    try:
        options: PromptOptions = frozen(event.system_prompt_options)
    except CodecError as error:
        return plan, (f"system_prompt_options.{error}",)
    if options is plan.options:
        return plan, ()
    bad = [name for name in options.sections if not SECTION_NAME.fullmatch(name) or name == "preamble"]
    if bad:
        good = FrozenDict({name: text for name, text in options.sections.items() if name not in bad})
        options = attrs.evolve(options, sections=good)
    return attrs.evolve(plan, options=options), tuple([f"Invalid system prompt section name: {name}" for name in bad])


def _merge_start(plan: StartPlan, event: BeforeAgentStartEvent, result: BeforeAgentStartResult | None, _now: Now) -> Merged:
    plan, complaints = _edited_start(plan, event)
    if result is not None and result.message is not None:
        plan = attrs.evolve(plan, added=(*plan.added, result.message))
    if result is not None and result.system_prompt is not None:
        plan = attrs.evolve(plan, forced=result.system_prompt)
    return Merged(subject=plan, complaints=complaints)


def _failed_start(plan: StartPlan, event: BeforeAgentStartEvent, _error: str, _now: Now) -> Merged:
    plan, complaints = _edited_start(plan, event)
    return Merged(subject=plan, complaints=complaints)


def _show_context(transcript: tuple[Message, ...]) -> ContextEvent:
    shown = [thawed(message) for message in transcript if not isinstance(message, SystemMessage)]
    return ContextEvent(messages=HandedOut(shown))


def _merge_context(transcript: tuple[Message, ...], event: ContextEvent, result: ContextResult | None, now: Now) -> Merged:
    """A list of the objects that were shown, in their order, leaves system messages where they are; any other
    list gets one head with the replayed prompt and tools (EVT-28)."""
    shown = event.messages.handed
    returned = event.messages if result is None or result.messages is None else result.messages
    if not isinstance(returned, (list, tuple)):
        return Merged(subject=transcript, complaints=(f"context handler returned {returned!r} for messages, not a list",))
    try:
        messages = [_message(item) for item in returned]
    except CodecError as error:
        return Merged(subject=transcript, complaints=(f"context handler: messages{error}",))
    if len(returned) == len(shown) and all(item is handed for item, handed in zip(returned, shown, strict=True)):
        edited = iter(messages)
        kept = [message if isinstance(message, SystemMessage) else next(edited) for message in transcript]
        return Merged(subject=tuple(kept))
    systems = [message for message in transcript if isinstance(message, SystemMessage)]
    head = [message for message in collapse(systems) if isinstance(message, SystemMessage)]
    return Merged(subject=(*head, *messages))


def _message(item: object) -> Message:
    if isinstance(item, Thawed):
        message: Message = frozen(item)
        return message
    return codec.PYTHON.structure(item, Message)  # type: ignore[arg-type]  # a union is a type form, which cattrs takes


def _show_transcript(transcript: tuple[Message, ...]) -> ContextWithSystemEvent:
    return ContextWithSystemEvent(messages=[thawed(message) for message in transcript])


def _merge_transcript(transcript: tuple[Message, ...], event: ContextWithSystemEvent, result: ContextResult | None, _now: Now) -> Merged:
    returned = event.messages if result is None or result.messages is None else result.messages
    if not isinstance(returned, (list, tuple)):
        return Merged(subject=transcript, complaints=(f"context_with_system handler returned {returned!r} for messages, not a list",))
    try:
        messages = tuple([_message(item) for item in returned])
    except CodecError as error:
        return Merged(subject=transcript, complaints=(f"context_with_system handler: messages{error}",))
    had = bool(transcript) and isinstance(transcript[0], SystemMessage)
    lost = had and not (messages and isinstance(messages[0], SystemMessage))
    warning = "Handler removed the leading system message; the request is sent without prompt and tools"
    return Merged(subject=messages, complaints=(warning,) if lost else ())


def _merge_message_end(subject: MessageEndEvent, _event: MessageEndEvent, result: MessageEndResult | None, _now: Now) -> Merged:
    if result is None or result.message is None:
        return Merged(subject=subject)
    if result.message.role != subject.message.role:
        return Merged(subject=subject, complaints=("message_end handlers must return a message with the same role",))
    if isinstance(result.message, AssistantMessage) and result.message.stop_reason == "pending":
        return Merged(subject=subject, complaints=("message_end handlers must not return a message with stop reason pending",))
    return Merged(subject=attrs.evolve(subject, message=result.message))


def _show_gate(gate: CallGate) -> ToolCallEvent:
    return ToolCallEvent(
        tool_name=gate.tool_name,
        tool_call_id=gate.tool_call_id,
        input=thaw(gate.input),
        parent_tool_call_id=gate.parent_tool_call_id,
    )


def _merge_gate(gate: CallGate, event: ToolCallEvent, result: ToolCallResult | None, _now: Now) -> Merged:
    try:
        edited = freeze(event.input, "input") if result is None or result.input is None else result.input
    except TypeError as error:
        return _blocked_gate(gate, event, str(error), _now)
    gate = attrs.evolve(gate, input=edited)
    if result is None or result.block is not True:
        return Merged(subject=gate)
    blocked = attrs.evolve(gate, blocked=result.reason or "Tool execution was blocked", terminate=result.terminate is True)
    return Merged(subject=blocked, stop=True)


def _blocked_gate(gate: CallGate, _event: ToolCallEvent, error: str, _now: Now) -> Merged:
    return Merged(subject=attrs.evolve(gate, blocked=error), stop=True)


def _merge_tool_result(subject: ToolResultEvent, _event: ToolResultEvent, result: ToolResultPatch | None, _now: Now) -> Merged:
    if result is None:
        return Merged(subject=subject)
    changes: dict[str, Any] = {
        name: value
        for name in ("content", "details", "structured_content", "is_error", "usage")
        if (value := getattr(result, name)) is not None
    }
    if "content" in changes and "structured_content" not in changes:
        changes["structured_content"] = None
    return Merged(subject=attrs.evolve(subject, **changes))


def _show_headers(headers: FrozenDict) -> BeforeProviderHeadersEvent:
    return BeforeProviderHeadersEvent(headers=dict(headers))


def _merge_headers(headers: FrozenDict, event: BeforeProviderHeadersEvent, _result: object, _now: Now) -> Merged:
    wrong = [name for name, value in event.headers.items() if not isinstance(name, str) or not isinstance(value, (str, type(None)))]
    if wrong:
        return Merged(subject=headers, complaints=(f"headers[{wrong[0]!r}]: expected a text, or None to remove it",))
    return Merged(subject=FrozenDict(event.headers))


def _show_payload(payload: Json) -> BeforeProviderRequestEvent:
    return BeforeProviderRequestEvent(payload=thaw(payload))


def _merge_payload(payload: Json, event: BeforeProviderRequestEvent, result: object, _now: Now) -> Merged:
    try:
        return Merged(subject=freeze(event.payload if result is None else result, "payload"))
    except NotJson as error:
        return Merged(subject=payload, complaints=(str(error),))


def _show_turn(subject: TurnSubject) -> TurnEndEvent:
    proposal = subject.proposal
    return TurnEndEvent(
        turn_index=subject.turn_index,
        message=subject.message,
        tool_results=subject.tool_results,
        message_entry_id=subject.message_entry_id,
        tool_result_entry_ids=subject.tool_result_entry_ids,
        outcome=subject.outcome,
        entries=proposal.entries,  # type: ignore[arg-type]  # an invalid proposal shows what a handler returned (BND-22)
        continue_=proposal.continue_,
        context=proposal.context,
    )


def _show_settle(subject: SettleSubject) -> AgentBeforeSettleEvent:
    proposal = subject.proposal
    return AgentBeforeSettleEvent(
        outcome=subject.outcome,
        entries=proposal.entries,  # type: ignore[arg-type]  # an invalid proposal shows what a handler returned (BND-22)
        continue_=proposal.continue_,
        context=proposal.context,
    )


def _merge_boundary(subject: TurnSubject | SettleSubject, _event: object, result: BoundaryResult | None, now: Now) -> Merged:
    proposal, report = boundary.reduce(subject.proposal, result, now.state, now.at_ms, now.extension)
    return Merged(subject=attrs.evolve(subject, proposal=proposal), complaints=() if report is None else (report,))


def _cut_boundary(subject: TurnSubject | SettleSubject, _event: object, _error: str, _now: Now) -> Merged:
    """A fold that was cut commits nothing."""
    nothing = attrs.evolve(subject.proposal, entries=(), continue_=False, valid=True)
    return Merged(subject=attrs.evolve(subject, proposal=nothing), stop=True)


def _failed_boundary(subject: TurnSubject | SettleSubject, event: object, _error: str, now: Now) -> Merged:
    return _merge_boundary(subject, event, None, now)


_ROWS: Final = (
    Hook(name="session_start", event=SessionStartEvent),
    Hook(name="session_shutdown", event=SessionShutdownEvent),
    Hook(name="session_info_changed", event=SessionInfoChangedEvent, awaited=False),
    Hook(name="session_compact_failed", event=SessionCompactFailedEvent),
    Hook(
        name="input",
        event=InputEvent,
        result=InputResult,
        show=lambda plan: plan.event,
        merge=_merge_input,
        fail_closed=_close_input,
    ),
    Hook(
        name="before_agent_start",
        event=BeforeAgentStartEvent,
        result=BeforeAgentStartResult,
        show=_show_start,
        merge=_merge_start,
        on_raise=_failed_start,
    ),
    Hook(name="agent_start", event=AgentStartEvent),
    Hook(name="turn_start", event=TurnStartEvent),
    Hook(name="context", event=ContextEvent, result=ContextResult, show=_show_context, merge=_merge_context),
    Hook(
        name="context_with_system",
        event=ContextWithSystemEvent,
        result=ContextResult,
        show=_show_transcript,
        merge=_merge_transcript,
    ),
    Hook(
        name="before_provider_headers",
        event=BeforeProviderHeadersEvent,
        result=object,
        show=_show_headers,
        merge=_merge_headers,
        on_raise=_merge_headers,
    ),
    Hook(
        name="before_provider_request",
        event=BeforeProviderRequestEvent,
        result=object,
        show=_show_payload,
        merge=_merge_payload,
    ),
    Hook(name="after_provider_response", event=AfterProviderResponseEvent),
    Hook(name="provider_stream_event", event=ProviderStreamEvent),
    Hook(name="message_start", event=MessageStartEvent),
    Hook(name="message_update", event=MessageUpdateEvent),
    Hook(name="message_end", event=MessageEndEvent, result=MessageEndResult, merge=_merge_message_end),
    Hook(name="tool_execution_start", event=ToolExecutionStartEvent),
    Hook(
        name="tool_call",
        event=ToolCallEvent,
        result=ToolCallResult,
        show=_show_gate,
        merge=_merge_gate,
        on_raise=_blocked_gate,
    ),
    Hook(name="tool_execution_update", event=ToolExecutionUpdateEvent),
    Hook(name="tool_result", event=ToolResultEvent, result=ToolResultPatch, merge=_merge_tool_result),
    Hook(name="tool_execution_end", event=ToolExecutionEndEvent),
    Hook(
        name="turn_end",
        event=TurnEndEvent,
        result=BoundaryResult,
        show=_show_turn,
        merge=_merge_boundary,
        on_raise=_failed_boundary,
        on_cut=_cut_boundary,
    ),
    Hook(name="agent_end", event=AgentEndEvent),
    Hook(
        name="agent_before_settle",
        event=AgentBeforeSettleEvent,
        result=BoundaryResult,
        show=_show_settle,
        merge=_merge_boundary,
        on_raise=_failed_boundary,
        on_cut=_cut_boundary,
    ),
    Hook(name="agent_settled", event=AgentSettledEvent),
    Hook(name="model_select", event=ModelSelectEvent),
    Hook(name="thinking_level_select", event=ThinkingLevelSelectEvent, awaited=False),
)

HOOKS: Final[Mapping[str, Hook]] = {row.name: row for row in _ROWS}
"""The table, by hook name."""
