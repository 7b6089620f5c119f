"""From events and messages of a conversation to updates of the protocol.

One translator for each session of a connection, because the protocol wants what no single event has: ids of calls that
are unique in the session, every call ended, every text told once. A block is told while it streams in; what of a message
was not told then is told when the message is whole, so replaying a stored message is the same with nothing told before.

A call is announced when the model has written it, runs from `tool_execution_start`, and ends with its result. One that
never runs, because its answer failed or was aborted, ends as failed before the next answer, or when the run is over.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from camshaft.actors.api import (
    AssistantMessage,
    Block,
    Content,
    CustomMessage,
    ImageBlock,
    Json,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from camshaft.actors.host import (
    AgentSettled,
    AutoRetryStart,
    CompactionEnd,
    CompactionStart,
    Event,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    Notified,
    SessionInfoChanged,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from camshaft.extensions_std.frontends.acp.tool_calls import ShownCall, Tools, content_block, shown_call

Update = dict[str, Any]
"""The `update` of a `session/update`."""

_CHUNKS: Final[Mapping[str, str]] = {"text_delta": "agent_message_chunk", "thinking_delta": "agent_thought_chunk"}


@attrs.define(eq=False)
class Updates:
    """Translates what happens, in order."""

    _tools: Tools
    awaits_prompt: bool = False
    """The next message of the user is the prompt that the client sent, and shows already."""
    _open: dict[str, ShownCall] = attrs.field(factory=dict)
    """The calls that did not end, by the id their provider gave."""
    _running: list[str] = attrs.field(factory=list)
    """Those of them that were begun, oldest first."""
    _used: dict[str, int] = attrs.field(factory=dict)
    """How often an id was used."""
    _told: set[int] = attrs.field(factory=set)
    """The blocks of the answer that streams in of which something was told."""
    _half: str = ""
    """The first half of a character of the text that streams in."""

    @property
    def current_call(self) -> ShownCall | None:
        """The call that was begun last and did not end: what an extension asks now is about it."""
        return self._open[self._running[-1]] if self._running else None

    # -- events --------------------------------------------------------------------------

    def of_event(self, event: Event) -> list[Update]:
        """What the client is told of an event."""
        match event:
            case MessageUpdate():
                return self._of_delta(event)
            case MessageStart(message=AssistantMessage()):
                self._told.clear()
                return self.close_calls()
            case MessageEnd(message=message):
                return self.of_message(message)
            case ToolExecutionStart() | ToolExecutionUpdate() | ToolExecutionEnd():
                return self._of_call(event)
            case AgentSettled():
                return self.close_calls()
            case _:
                return _of_other(event)

    def _of_delta(self, event: MessageUpdate) -> list[Update]:
        told = event.assistant_message_event
        if told.content_index is None:
            return []
        if told.type == "toolcall_end" and told.tool_call is not None:
            self._told.add(told.content_index)
            return [self._announced(told.tool_call)]
        kind = _CHUNKS.get(told.type)
        if kind is None or not told.delta:
            half, self._half = self._half, ""
            return [_chunk("agent_message_chunk", "\ufffd")] if half and told.type in ("text_end", "thinking_end") else []
        self._told.add(told.content_index)
        text, self._half = self._half + told.delta, ""
        if "\ud800" <= text[-1] <= "\udbff":  # its second half is in the next delta
            text, self._half = text[:-1], text[-1]
        return [_chunk(kind, _whole(text))] if text else []

    def _of_call(self, event: ToolExecutionStart | ToolExecutionUpdate | ToolExecutionEnd) -> list[Update]:
        id = event.tool_call_id
        match event:
            case ToolExecutionStart():
                parent = self._open.get(event.parent_tool_call_id or "")
                call = self._open.get(id)
                before: list[Update] = []
                if call is None or call.raw_input != event.args:
                    kind = "tool_call" if call is None else "tool_call_update"
                    call = self._opened(id, event.tool_name, event.args, call, parent)
                    before = [{"sessionUpdate": kind, "status": "pending", **call.fields()}]
                self._running.append(id)
                return [*before, _progress(call, "in_progress")]
            case ToolExecutionUpdate():
                running = self._open.get(id)
                blocks = event.partial_result.content or ()
                return [] if running is None else [_progress(running, "in_progress", running.content(blocks))]
            case ToolExecutionEnd():
                return self._ended(id, event.result.content or (), event.result.details, is_error=event.is_error)

    # -- messages ------------------------------------------------------------------------

    def of_message(self, message: Message) -> list[Update]:
        """What the client was not told yet of a message that is whole."""
        match message:
            case UserMessage():
                if self.awaits_prompt:
                    self.awaits_prompt = False
                    return []
                return _chunks("user_message_chunk", message.content)
            case AssistantMessage():
                told = frozenset(self._told)
                self._told.clear()
                return [update for index, block in enumerate(message.content) if index not in told for update in self._of_block(block)]
            case ToolResultMessage():
                return self._ended(message.tool_call_id, message.content, message.details, is_error=message.is_error)
            case CustomMessage():
                return _chunks("agent_message_chunk", message.content) if message.display else []
        return []

    def _of_block(self, block: Block) -> list[Update]:
        match block:
            case TextBlock() if block.text:
                return [_chunk("agent_message_chunk", block.text)]
            case ThinkingBlock() if block.thinking:
                return [_chunk("agent_thought_chunk", block.thinking)]
            case ToolCall():
                return [self._announced(block)]
        return []

    # -- calls ---------------------------------------------------------------------------

    def _announced(self, call: ToolCall) -> Update:
        shown = self._opened(call.id, call.name, call.arguments, None, None)
        return {"sessionUpdate": "tool_call", "status": "pending", **shown.fields()}

    def _opened(self, id: str, name: str, arguments: Mapping[str, Any], known: ShownCall | None, parent: ShownCall | None) -> ShownCall:
        if known is None:
            times = self._used[id] = self._used.get(id, 0) + 1
            shown_id = id if times == 1 else f"{id}#{times}"
        else:
            shown_id = known.id
        shown = shown_call(shown_id, name, arguments, self._tools)
        self._open[id] = attrs.evolve(shown, parent_id=None if parent is None else parent.id)
        return self._open[id]

    def _ended(self, id: str, blocks: tuple[Block, ...], details: Json, *, is_error: bool) -> list[Update]:
        """Nothing for a call that ended before."""
        call = self._open.pop(id, None)
        if id in self._running:
            self._running.remove(id)
        if call is None:
            return []
        text = "".join([block.text for block in blocks if isinstance(block, TextBlock)])
        raw = {"text": text} if details is None else {"text": text, "details": details}
        content = call.content(blocks, is_error=is_error)
        return [{**_progress(call, "failed" if is_error else "completed", content), "rawOutput": raw}]

    def close_calls(self) -> list[Update]:
        """Ends what did not end: nothing will come of it any more."""
        left = [_progress(call, "failed") for call in self._open.values()]
        self._open.clear()
        self._running.clear()
        return left


def _progress(call: ShownCall, status: str, content: list[dict[str, Any]] | None = None) -> Update:
    update: Update = {"sessionUpdate": "tool_call_update", "toolCallId": call.id, "status": status}
    return update if content is None else {**update, "content": content}


def _chunk(kind: str, text: str) -> Update:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def _chunks(kind: str, content: Content) -> list[Update]:
    blocks = (TextBlock(text=content),) if isinstance(content, str) else content
    shown = [block for block in blocks if isinstance(block, TextBlock | ImageBlock)]
    return [{"sessionUpdate": kind, "content": content_block(block)} for block in shown]


def _whole(text: str) -> str:
    """The text with its pairs of halves as characters, and what has no other half as U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def note(text: str) -> Update:
    """Something people should know that is no part of the answer. The protocol has no place for it but among the thoughts."""
    return _chunk("agent_thought_chunk", f"\n[{text}]\n")


def _of_other(event: Event) -> list[Update]:
    match event:
        case SessionInfoChanged():
            return [{"sessionUpdate": "session_info_update", "title": event.name}]
        case Notified():
            return [note(event.message)]
        case AutoRetryStart():
            wait = f"{event.delay_ms / 1000:.1f} s"
            return [note(f"asking the model again in {wait}, {event.attempt} of {event.max_attempts}: {event.error_message}")]
        case CompactionStart():
            return [note("shortening the conversation")]
        case CompactionEnd():
            if event.error_message is not None:
                return [note(f"the conversation could not be shortened: {event.error_message}")]
            return [] if event.aborted else [note("the conversation was shortened")]
    return []
