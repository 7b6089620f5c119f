"""What handlers' answers do: the subjects of dispatches, how they are shown, how results merge into them.

Every function here is pure and named by rows of `hooks.py`. `show_*` makes the event of a
subject, `merge_*` the next subject from an answer, `failed_*`, `blocked_*`, `cut_*` and
`close_*` the next subject when there is none.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from camshaft.kernel import boundary, codec, shapes
from camshaft.kernel.boundary import BoundaryResult, Proposal
from camshaft.kernel.errors import CodecError
from camshaft.kernel.events import MessageEnd
from camshaft.kernel.hook_events import (
    AgentBeforeSettleEvent,
    BeforeAgentStartEvent,
    BeforeAgentStartResult,
    BeforeProviderHeadersEvent,
    BeforeProviderRequestEvent,
    ContextEvent,
    ContextResult,
    ContextWithSystemEvent,
    CustomInput,
    InputEvent,
    InputResult,
    MessageEndResult,
    ToolCallEvent,
    ToolCallResult,
    ToolResultEvent,
    ToolResultPatch,
    TurnEndEvent,
)
from camshaft.kernel.messages import (
    AssistantMessage,
    ImageBlock,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
    blocks_of,
    text_of,
)
from camshaft.kernel.persistent import FrozenDict, Json, NotJson, freeze, thaw
from camshaft.kernel.prompt import PromptOptions, collapse, prompt_text
from camshaft.kernel.state import SessionState
from camshaft.kernel.thawed import Thawed, frozen, thawed

SECTION_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")
"""Names of prompt sections an extension may set (PB-3)."""


@shapes.frozen(kw_only=True)
class StartPlan:
    """Subject of `before_agent_start`: what the run will start with."""

    message: UserMessage | Message
    prompt: str | None
    images: tuple[ImageBlock, ...] | None
    options: PromptOptions
    added: tuple[CustomInput, ...] = ()
    """Messages of handlers, in handler order."""


@shapes.frozen(kw_only=True)
class InputPlan:
    """Subject of `input`."""

    event: InputEvent
    handled: bool = False


@shapes.frozen(kw_only=True)
class CallGate:
    """Subject of `tool_call`: the input that will run, or why it will not."""

    tool_name: str
    tool_call_id: str
    parent_tool_call_id: str | None
    input: FrozenDict
    blocked: str | None = None
    """Text of the error result; None: not blocked."""
    terminate: bool = False
    raised: bool = False
    """A handler blocked the call by raising; its text is the result even after an abort."""


@shapes.frozen(kw_only=True)
class TurnSubject:
    """Subject of `turn_end`: the proposal and the turn it is about."""

    proposal: Proposal
    turn_index: int
    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...]
    message_entry_id: str
    tool_result_entry_ids: tuple[str, ...]
    outcome: str


@shapes.frozen(kw_only=True)
class SettleSubject:
    """Subject of `agent_before_settle`."""

    proposal: Proposal
    outcome: str


# -- merging -----------------------------------------------------------------------------


@shapes.frozen(kw_only=True)
class Merged:
    """The subject after one handler."""

    subject: Any
    stop: bool = False
    """True ends the dispatch."""
    complaints: tuple[str, ...] = ()
    """Errors to report against the handler's extension."""


@shapes.frozen(kw_only=True)
class Now:
    """What a merge may look at besides subject and answer."""

    state: SessionState
    at_ms: int
    extension: str
    """Path of the extension whose handler answered."""


Show = Callable[[Any], Any]
Merge = Callable[[Any, Any, Any, Now], Merged]


def itself(subject: Any) -> Any:
    """The subject is its own event."""
    return subject


def kept(subject: Any, _event: Any, _result: Any, _now: Now) -> Merged:
    """Nothing a handler does changes the subject."""
    return Merged(subject=subject)


def merge_input(plan: InputPlan, _event: InputEvent, result: InputResult | None, _now: Now) -> Merged:
    """`handled` ends the dispatch, `transform` changes what later handlers and the run see (IN-2)."""
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


def close_input(plan: InputPlan, _event: InputEvent, _error: str, _now: Now) -> Merged:
    """A gate that closes on failure: nothing is sent (EVT-21)."""
    return Merged(subject=attrs.evolve(plan, handled=True), stop=True)


def prompt_parts(message: UserMessage) -> tuple[str, tuple[ImageBlock, ...] | None]:
    """The text of a prompt and its images, None without any, as `before_agent_start` shows them."""
    images = tuple([block for block in blocks_of(message.content) if isinstance(block, ImageBlock)])
    return text_of(message.content), images or None


def show_start(plan: StartPlan) -> BeforeAgentStartEvent:
    """Prompt and images of a user message, or the custom message; the options as a thawed copy."""
    user = isinstance(plan.message, UserMessage)
    return BeforeAgentStartEvent(
        message_type="user" if user else "custom",
        prompt=plan.prompt if user else None,
        images=plan.images if user else None,
        message=None if user else plan.message,
        system_prompt=prompt_text(plan.options),
        system_prompt_options=thawed(plan.options),
    )


def edited_start(plan: StartPlan, event: BeforeAgentStartEvent) -> tuple[StartPlan, tuple[str, ...]]:
    """The plan with the edited options; a badly named section, or one that is no text, is dropped alone (PB-3)."""
    try:
        options: PromptOptions = frozen(event.system_prompt_options)
    except CodecError as error:
        return plan, (f"system_prompt_options.{error}",)
    if options is plan.options:
        return plan, ()
    bad: dict[str, str] = {}
    for name, text in options.sections.items():
        if not SECTION_NAME.fullmatch(name) or name == "preamble":
            bad[name] = f"Invalid system prompt section name: {name}"
        elif not isinstance(text, str):
            bad[name] = f"system_prompt_options.sections[{name!r}] is no text: {type(text).__name__}"
    good = FrozenDict({name: text for name, text in options.sections.items() if name not in bad}) if bad else options.sections
    return attrs.evolve(plan, options=attrs.evolve(options, sections=good)), tuple(bad.values())


def merge_start(plan: StartPlan, event: BeforeAgentStartEvent, result: BeforeAgentStartResult | None, _now: Now) -> Merged:
    """Edits of the options, a message to add, a forced prompt (PB-4, PB-5, PB-7)."""
    plan, complaints = edited_start(plan, event)
    if result is not None and result.message is not None:
        plan = attrs.evolve(plan, added=(*plan.added, result.message))
    if result is not None and result.system_prompt is not None:
        plan = attrs.evolve(plan, options=attrs.evolve(plan.options, force_system_prompt=result.system_prompt))
    return Merged(subject=plan, complaints=complaints)


def failed_start(plan: StartPlan, event: BeforeAgentStartEvent, _error: str, _now: Now) -> Merged:
    """Edits made before the raise stay (PB-3)."""
    plan, complaints = edited_start(plan, event)
    return Merged(subject=plan, complaints=complaints)


def show_context(transcript: tuple[Message, ...]) -> ContextEvent:
    """Every message but system ones, as thawed copies (EVT-28)."""
    shown = [thawed(message) for message in transcript if not isinstance(message, SystemMessage)]
    return ContextEvent(messages=shown, handed=tuple(shown))


def merge_context(transcript: tuple[Message, ...], event: ContextEvent, result: ContextResult | None, now: Now) -> Merged:
    """A list of the objects that were shown, in their order, leaves system messages where they are; any other
    list gets one head with the replayed prompt and tools (EVT-28)."""
    shown = event.handed
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


def show_transcript(transcript: tuple[Message, ...]) -> ContextWithSystemEvent:
    """Every message, as thawed copies."""
    return ContextWithSystemEvent(messages=[thawed(message) for message in transcript])


def merge_transcript(transcript: tuple[Message, ...], event: ContextWithSystemEvent, result: ContextResult | None, _now: Now) -> Merged:
    """Sent as returned; losing the leading system message is reported (EVT-30)."""
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


def merge_message_end(subject: MessageEnd, _event: MessageEnd, result: MessageEndResult | None, _now: Now) -> Merged:
    """A replacement of the same role that is final (EVT-32, LOOP-20)."""
    if result is None or result.message is None:
        return Merged(subject=subject)
    given = result.message
    role = given.get("role") if isinstance(given, Mapping) else getattr(given, "role", None)
    if role != subject.message.role:
        return Merged(subject=subject, complaints=("message_end handlers must return a message with the same role",))
    try:
        message = _message(given)
    except CodecError as error:
        return Merged(subject=subject, complaints=(f"message_end handler: message{error}",))
    if isinstance(message, AssistantMessage) and message.stop_reason == "pending":
        return Merged(subject=subject, complaints=("message_end handlers must not return a message with stop reason pending",))
    return Merged(subject=attrs.evolve(subject, message=message))


def show_gate(gate: CallGate) -> ToolCallEvent:
    """The input as a private dict."""
    return ToolCallEvent(
        tool_name=gate.tool_name,
        tool_call_id=gate.tool_call_id,
        input=thaw(gate.input),
        parent_tool_call_id=gate.parent_tool_call_id,
    )


def merge_gate(gate: CallGate, event: ToolCallEvent, result: ToolCallResult | None, _now: Now) -> Merged:
    """Edits of the input count; the first block ends the dispatch (TOOL-18 to TOOL-20). Raises NotJson for edits that are not JSON."""
    edited = freeze(event.input, "input") if result is None or result.input is None else result.input
    gate = attrs.evolve(gate, input=edited)
    if result is None or result.block is not True:
        return Merged(subject=gate)
    blocked = attrs.evolve(gate, blocked=result.reason or "Tool execution was blocked", terminate=result.terminate is True)
    return Merged(subject=blocked, stop=True)


def blocked_gate(gate: CallGate, _event: ToolCallEvent, error: str, _now: Now) -> Merged:
    """A handler that raises blocks the call (TOOL-21)."""
    return Merged(subject=attrs.evolve(gate, blocked=error, raised=True), stop=True)


def merge_tool_result(subject: ToolResultEvent, _event: ToolResultEvent, result: ToolResultPatch | None, _now: Now) -> Merged:
    """Fields that are given replace; new content drops old structured content (EVT-37)."""
    if result is None:
        return Merged(subject=subject)
    changes: dict[str, Any] = {
        name: value
        for name in ("content", "details", "structured_content", "is_error", "usage")
        if (value := getattr(result, name)) is not None
    }
    if "content" in changes and "structured_content" not in changes:
        changes["structured_content"] = None
    if changes and subject.extra:
        changes["extra"] = FrozenDict({name: None for name in subject.extra if codec.snake(name) not in changes})
    return Merged(subject=attrs.evolve(subject, **changes))


def show_headers(headers: FrozenDict) -> BeforeProviderHeadersEvent:
    """The headers as a private dict."""
    return BeforeProviderHeadersEvent(headers=dict(headers))


def merge_headers(headers: FrozenDict, event: BeforeProviderHeadersEvent, _result: object, _now: Now) -> Merged:
    """Edits in place count, also those of a handler that raises (WIRE-102)."""
    wrong = [name for name, value in event.headers.items() if not isinstance(name, str) or not isinstance(value, (str, type(None)))]
    if wrong:
        return Merged(subject=headers, complaints=(f"headers[{wrong[0]!r}]: expected a text, or None to remove it",))
    return Merged(subject=FrozenDict(event.headers))


def show_payload(payload: Json) -> BeforeProviderRequestEvent:
    """The body as a private copy."""
    return BeforeProviderRequestEvent(payload=thaw(payload))


def merge_payload(payload: Json, event: BeforeProviderRequestEvent, result: object, _now: Now) -> Merged:
    """A returned body replaces; without one the edited copy counts (WIRE-103)."""
    try:
        return Merged(subject=freeze(event.payload if result is None else result, "payload"))
    except NotJson as error:
        return Merged(subject=payload, complaints=(str(error),))


def show_turn(subject: TurnSubject) -> TurnEndEvent:
    """The turn and the proposal so far (BND-1)."""
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


def show_settle(subject: SettleSubject) -> AgentBeforeSettleEvent:
    """The outcome and the proposal so far (BND-1)."""
    proposal = subject.proposal
    return AgentBeforeSettleEvent(
        outcome=subject.outcome,
        entries=proposal.entries,  # type: ignore[arg-type]  # an invalid proposal shows what a handler returned (BND-22)
        continue_=proposal.continue_,
        context=proposal.context,
    )


def merge_boundary(subject: TurnSubject | SettleSubject, _event: object, result: BoundaryResult | None, now: Now) -> Merged:
    """One step of the boundary fold."""
    proposal, report = boundary.reduce(subject.proposal, result, now.state, now.at_ms, now.extension)
    return Merged(subject=attrs.evolve(subject, proposal=proposal), complaints=() if report is None else (report,))


def cut_boundary(subject: TurnSubject | SettleSubject, _event: object, _error: str, _now: Now) -> Merged:
    """A fold that was cut commits nothing."""
    nothing = attrs.evolve(subject.proposal, entries=(), continue_=False, valid=True)
    return Merged(subject=attrs.evolve(subject, proposal=nothing), stop=True)


def failed_boundary(subject: TurnSubject | SettleSubject, event: object, _error: str, now: Now) -> Merged:
    """Nothing changes, but the preview is rebuilt (BND-3, BND-12)."""
    return merge_boundary(subject, event, None, now)
