"""Events of a responses stream as normalised stream items (WIRE-90 to WIRE-96).

Theory of operation. A `ResponseReader` is fed parsed events and gives items. The server announces an
output item, sends pieces of it, and then the whole item, which wins. Events name the item by its
`output_index`; where a server leaves that out, by the item's id, and without one the item announced
last is meant. An item that was never announced begins and ends with its whole.

The stream is over at the terminal event. A good one closes what is still open, except that an answer
which wants tools run must have got every call in full: a call without its whole item fails the answer,
so it cannot run (WIRE-95). An error closes nothing (STR-15).

Grammar tools send plain text; their items are those of the JSON object `{"<property>": text}` it stands for.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from camshaft.actors.api import (
    NO_USAGE,
    Ended,
    Json,
    Model,
    Noted,
    StreamItem,
    TextDelta,
    TextEnded,
    TextStarted,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingSigned,
    ThinkingStarted,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
    at_tier,
    cost_of,
    dumps,
)
from camshaft.extensions_std.providers.constrained import UNKNOWN_TOOL_PROPERTY
from camshaft.extensions_std.providers.reported import billed, object_in, objects_in, text_in
from camshaft.extensions_std.providers.responses_calls import Call
from camshaft.extensions_std.providers.responses_items import (
    failure,
    index_of,
    is_removal,
    message_text,
    text_signature,
    thinking_text,
    usage_of,
)
from camshaft.extensions_std.providers.sse import SseEvent
from camshaft.extensions_std.providers.wire_api import json_of

NO_TERMINAL: Final = "OpenAI Responses stream ended before a terminal response event"
UNFINISHED_CALL: Final = "OpenAI Responses stream completed with an unfinished tool call"
NO_DETAILS: Final = "Unknown error (no error details in response)"
REMOVALS: Final = "openai_input_transformations"
"""Type of the diagnostic about reasoning that the server took out of the request (WIRE-96)."""

GOOD_STATUSES: Final = frozenset({"", "completed", "in_progress", "queued"})
"""Statuses of a response that is complete (WIRE-93); a server may leave it out."""

KINDS: Final[Mapping[str, str]] = {"reasoning": "thinking", "message": "text", "function_call": "call", "custom_tool_call": "call"}
"""Kind of output item to kind of block; other items are ignored."""

TEXT_KINDS: Final[Mapping[str, str]] = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.reasoning_summary_text.delta": "thinking",
    "response.reasoning_text.delta": "thinking",
}
"""Events that bring a piece of text, to the kind of the block it belongs to; refusals are text that is seen."""


@attrs.define(eq=False, kw_only=True)
class _Block:
    """A block being received."""

    index: int
    kind: str
    item: Mapping[str, Any]
    """As it was announced, later as it was finished."""
    is_whole: bool = False
    """Whether its whole item came."""
    call: Call | None = None
    """Of a block that is a call."""


@attrs.define(eq=False)
class ResponseReader:
    """See the header. `usage` is what is known so far."""

    _model: Model
    _bills: bool = False
    """Whether the server reports what it billed (MOD-14)."""
    _requested_tier: str | None = None
    _grammars: Mapping[str, str] = attrs.field(factory=dict)
    """Grammar tools, to the property that holds their text."""
    _diagnostics: Sequence[Mapping[str, Any]] = ()
    """About the request; told with the end."""
    usage: Usage = attrs.field(default=NO_USAGE, init=False)
    is_over: bool = attrs.field(default=False, init=False)
    _response_id: str = attrs.field(default="", init=False)
    _blocks: list[_Block] = attrs.field(factory=list, init=False)
    _by_key: dict[object, _Block] = attrs.field(factory=dict, init=False)
    """By output index, and by item id."""
    _ids_made: int = attrs.field(default=0, init=False)

    def parse(self, event: SseEvent) -> Json:
        """The event; None for a mark of the end, which not every server sends. Raises MalformedEvent."""
        if event.data.strip() == b"[DONE]":
            self.is_over = True
            return None
        return json_of(event)

    def read(self, event: Json) -> list[StreamItem]:
        """The items of one event, none for one that is no object; an `Ended` among them ends the stream."""
        if not isinstance(event, dict):
            return []
        kind = text_in(event, "type") or ("error" if isinstance(event.get("error"), dict) else "")
        step = _STEPS.get(kind)
        items: list[StreamItem] = []
        if step is not None:
            step(self, event, items)
        return items

    def finish(self) -> list[StreamItem]:
        """The end of a body without a terminal event."""
        return [self._failed(NO_TERMINAL)]

    def _failed(self, text: str, **fields: Any) -> Ended:
        return Ended("error", text, usage=self.usage, diagnostics=tuple(self._diagnostics) or None, **fields)

    # items of output

    def _created(self, event: Mapping[str, Any], items: list[StreamItem]) -> None:
        id = text_in(object_in(event, "response"), "id")
        if id and id != self._response_id:
            self._response_id = id
            items.append(Noted(response_id=id))

    def _done(self, event: Mapping[str, Any], items: list[StreamItem]) -> None:
        item = object_in(event, "item")
        kind = KINDS.get(text_in(item, "type"))
        block = self._block_of(event)
        if block is None or block.kind != kind:
            block = self._open(event, items)
        if block is None or block.is_whole:
            return
        block.is_whole = True
        if block.call is not None:
            self._end_call(block.index, block.call, item, items)
        elif block.kind == "text":
            items.append(TextEnded(block.index, message_text(item), text_signature(item)))
        else:
            items.append(ThinkingEnded(block.index, thinking_text(item), dumps(item).decode()))
        block.item = item

    def _open(self, event: Mapping[str, Any], items: list[StreamItem]) -> _Block | None:
        """Begins the block of an event's item; None if the item is of no kind that is shown."""
        item = object_in(event, "item")
        index, kind = len(self._blocks), KINDS.get(text_in(item, "type"))
        if kind is None:
            return None
        block = _Block(index=index, kind=kind, item=item)
        if kind == "call":
            block.call = self._begun_call(index, item, items)
        else:
            items.append(TextStarted(index) if kind == "text" else ThinkingStarted(index))
        self._blocks.append(block)
        for key in (index_of(event), text_in(item, "id")):
            if key not in (None, ""):
                self._by_key[key] = block
        return block

    def _block_of(self, event: Mapping[str, Any]) -> _Block | None:
        """The block that an event means; see the header."""
        index = index_of(event)
        if index is not None:
            return self._by_key.get(index)
        id = text_in(event, "item_id") or text_in(object_in(event, "item"), "id")
        if id:
            return self._by_key.get(id)
        return self._blocks[-1] if self._blocks else None

    def _growing(self, event: Mapping[str, Any], kind: str) -> _Block | None:
        block = self._block_of(event)
        return block if block is not None and block.kind == kind and not block.is_whole else None

    # texts and thinking

    def _delta(self, event: Mapping[str, Any], items: list[StreamItem]) -> None:
        block = self._block_of(event)
        if block is None or block.is_whole or block.kind != TEXT_KINDS[event["type"]]:
            return
        said = text_in(event, "delta")
        items.append(TextDelta(block.index, said) if block.kind == "text" else ThinkingDelta(block.index, said))

    def _part_done(self, event: Mapping[str, Any], items: list[StreamItem]) -> None:
        block = self._growing(event, "thinking")
        if block is not None:
            items.append(ThinkingDelta(block.index, "\n\n"))

    # tool calls

    def _begun_call(self, index: int, item: Mapping[str, Any], items: list[StreamItem]) -> Call:
        id, name = self._real_id(item), text_in(item, "name")
        held_by = self._grammars.get(name, UNKNOWN_TOOL_PROPERTY) if item.get("type") == "custom_tool_call" else None
        call = Call(id=id or self._made_id(item), name=name, is_real=bool(id), held_by=held_by)
        text = call.take(call.text_of(item))
        items.append(ToolCallStarted(index, call.id, name, call.shown, text or None))
        return call

    def _call_delta(self, event: Mapping[str, Any], items: list[StreamItem]) -> None:
        block = self._growing(event, "call")
        if block is not None and block.call is not None:
            items.append(ToolCallDelta(block.index, block.call.take(text_in(event, "delta"))))

    def _call_done(self, event: Mapping[str, Any], items: list[StreamItem]) -> None:
        """The missing tail, if the full text continues the pieces; otherwise it replaces them when the call ends."""
        block = self._growing(event, "call")
        if block is None or block.call is None:
            return
        tail = block.call.tail(event)
        if tail:
            items.append(ToolCallDelta(block.index, tail))

    def _end_call(self, index: int, call: Call, item: Mapping[str, Any], items: list[StreamItem]) -> None:
        call.id = call.id if call.is_real else self._real_id(item) or call.id
        closing, made = call.ended(item)
        if closing:
            items.append(ToolCallDelta(index, closing))
        items.append(ToolCallEnded(index, made))

    def _real_id(self, item: Mapping[str, Any]) -> str:
        """The id that the server gave a call; empty if it gave none, or that of another call."""
        call_id, item_id = text_in(item, "call_id"), text_in(item, "id")
        id = f"{call_id}|{item_id}" if call_id and item_id else call_id
        return "" if self._is_taken(id) else id

    def _made_id(self, item: Mapping[str, Any]) -> str:
        tail = f"|{text_in(item, 'id')}".rstrip("|")
        while True:
            self._ids_made += 1
            made = f"call_{self._ids_made}{tail}"
            if not self._is_taken(made):
                return made

    def _is_taken(self, id: str) -> bool:
        return any(block.call is not None and block.call.id == id for block in self._blocks)

    # ends

    def _terminal(self, event: Mapping[str, Any], items: list[StreamItem]) -> None:
        """`response.completed` and `response.incomplete` (WIRE-93)."""
        response = object_in(event, "response")
        self._settle(response, items)
        status = text_in(response, "status") or ("incomplete" if event.get("type") == "response.incomplete" else "")
        reason = text_in(object_in(response, "incomplete_details"), "reason")
        raw = f"{status}.{reason}" if reason else status or None
        calls = [(block.call, block.is_whole) for block in self._blocks if block.call is not None]
        unfinished = next((call for call, is_whole in calls if not is_whole), None)
        if status == "incomplete" and reason == "max_output_tokens":
            self._good("length", raw, items)
        elif status == "incomplete":
            text = f"Response incomplete: {reason}" if reason else "Response incomplete without a provider reason"
            items.append(self._failed(text, raw_stop_reason=raw))
        elif status not in GOOD_STATUSES:
            items.append(self._failed(failure(response, f"Response {status}"), raw_stop_reason=raw))
        elif unfinished is not None:
            items.append(self._failed(f"{UNFINISHED_CALL}: {unfinished.name} ({unfinished.id})", raw_stop_reason=raw))
        else:
            self._good("toolUse" if calls else "stop", raw, items)

    def _response_failed(self, event: Mapping[str, Any], items: list[StreamItem]) -> None:
        response = object_in(event, "response")
        self._settle(response, items)
        status = text_in(response, "status") or "failed"
        items.append(self._failed(failure(response, NO_DETAILS), raw_stop_reason=status))

    def _error(self, event: Mapping[str, Any], items: list[StreamItem]) -> None:
        """With the code, so that retry rules see it (WIRE-94); some servers wrap it all in an object."""
        inner = object_in(event, "error")
        code = text_in(event, "code") or text_in(inner, "code") or text_in(inner, "type")
        message = text_in(event, "message") or text_in(inner, "message") or dumps(event).decode()
        items.append(self._failed(f"Error Code {code}: {message}" if code else message))

    def _good(self, reason: Any, raw: str | None, items: list[StreamItem]) -> None:
        """Closes what is open, then ends."""
        for block in self._blocks:
            if block.is_whole:
                continue
            if block.call is not None:
                self._end_call(block.index, block.call, {}, items)
            elif block.kind == "text":
                items.append(TextEnded(block.index, None, text_signature(block.item)))
            else:
                items.append(ThinkingEnded(block.index))
        items.append(Ended(reason, usage=self.usage, raw_stop_reason=raw, diagnostics=tuple(self._diagnostics) or None))

    def _settle(self, response: Mapping[str, Any], items: list[StreamItem]) -> None:
        """What a whole response tells besides how it ended: usage, contents that came late, and what was removed."""
        self._created({"response": response}, items)
        listed = objects_in(response, "output")
        if not self._blocks:
            for index, item in enumerate(listed):
                self._done({"output_index": index, "item": item}, items)
        self._sign(listed, items)
        self._count(response)
        removed = [each for each in objects_in(response, "input_transformations") if is_removal(each)]
        if removed:
            self._diagnostics = [*self._diagnostics, {"type": REMOVALS, "details": {"transformations": removed}}]

    def _sign(self, listed: Sequence[Mapping[str, Any]], items: list[StreamItem]) -> None:
        """Encrypted reasoning that only the terminal event holds (WIRE-91)."""
        late = {text_in(item, "id"): item["encrypted_content"] for item in listed if item.get("encrypted_content")}
        for block in self._blocks:
            content = late.get(text_in(block.item, "id"))
            if block.kind == "thinking" and block.is_whole and content and not block.item.get("encrypted_content"):
                block.item = {**block.item, "encrypted_content": content}
                items.append(ThinkingSigned(block.index, dumps(block.item).decode()))

    def _count(self, response: Mapping[str, Any]) -> None:
        """Usage and its cost (WIRE-92, MOD-14, MOD-15)."""
        counted = usage_of(response)
        if counted is None:
            return
        tier = text_in(response, "service_tier") or self._requested_tier
        cost = at_tier(cost_of(self._model.cost, counted), tier, self._model.id)
        total = billed(response["usage"]) if self._bills else None
        if total is not None:
            cost = attrs.evolve(cost, total=total, total_from_provider=True)
        self.usage = attrs.evolve(counted, cost=cost)


_STEPS: Final[Mapping[str, Callable[[ResponseReader, Mapping[str, Any], list[StreamItem]], object]]] = {
    "response.created": ResponseReader._created,
    "response.output_item.added": ResponseReader._open,
    **dict.fromkeys(TEXT_KINDS, ResponseReader._delta),
    "response.reasoning_summary_part.done": ResponseReader._part_done,
    "response.function_call_arguments.delta": ResponseReader._call_delta,
    "response.function_call_arguments.done": ResponseReader._call_done,
    "response.custom_tool_call_input.delta": ResponseReader._call_delta,
    "response.custom_tool_call_input.done": ResponseReader._call_done,
    "response.output_item.done": ResponseReader._done,
    "response.completed": ResponseReader._terminal,
    "response.incomplete": ResponseReader._terminal,
    "response.failed": ResponseReader._response_failed,
    "error": ResponseReader._error,
}
"""What an event does (WIRE-90); any other is ignored."""
