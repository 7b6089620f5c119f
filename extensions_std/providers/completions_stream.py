"""Chunks of a chat-completions stream as normalised stream items (WIRE-70 to WIRE-78).

Theory of operation. A `ChunkReader` is fed parsed chunks and gives items; `finish` gives those of the
end of the body. There is at most one thinking and one text block, and one block a tool call; all
stay open until the body ends, because a server may continue any of them (STR-14). So `finish` closes
every block in order and then says how it ended; an error inside the stream closes nothing (STR-15).

Tool calls. A piece belongs to the call of its index, else to that of its id, else it is a new call.
Ids may come late, twice, or never: a call starts with the id it brings if no other call has it, else
with `call_<n>`; a real id that comes later replaces a made-up one (WIRE-74). Grammar tools come as
plain text; their items are those of the JSON object `{"<property>": text}` it stands for.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from camshaft.actors.api import (
    EMPTY,
    NO_USAGE,
    Ended,
    FrozenDict,
    Json,
    Model,
    Noted,
    StreamItem,
    TextDelta,
    TextEnded,
    TextStarted,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingStarted,
    ToolCall,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
    cost_of,
    dumps,
    final_arguments,
)
from camshaft.extensions_std.providers.completions_render import REASONING_FIELDS
from camshaft.extensions_std.providers.constrained import UNKNOWN_TOOL_PROPERTY
from camshaft.extensions_std.providers.reported import billed, count_of, object_in
from camshaft.extensions_std.providers.sse import SseEvent
from camshaft.extensions_std.providers.wire_api import json_of

STOP_REASONS: Final[Mapping[str, str]] = {
    "stop": "stop",
    "end": "stop",
    "length": "length",
    "tool_calls": "toolUse",
    "function_call": "toolUse",
}
"""Finish reason to stop reason; any other is an error (WIRE-76)."""

NO_FINISH_REASON: Final = "Stream ended without finish_reason"
MERGED_DETAILS: Final[Mapping[str, str]] = {"reasoning.text": "text", "reasoning.summary": "summary"}
"""Kinds of `reasoning_details` whose neighbours merge, and the field that holds their text (WIRE-72)."""


@attrs.define(eq=False)
class _Call:
    """A tool call being received."""

    index: int
    """Of its block."""
    id: str
    is_real: bool
    """Whether the server gave the id."""
    name: str
    held_by: str | None = None
    """Of a grammar tool: the property that holds its text."""
    pieces: list[str] = attrs.field(factory=list)


@attrs.define(eq=False)
class ChunkReader:
    """See the header. `usage` is what is known so far."""

    _model: Model
    _bills: bool = False
    """Whether the server reports what it billed (MOD-14)."""
    _infers_finish: bool = False
    """Whether a missing finish reason is fine (WIRE-77)."""
    _grammars: Mapping[str, str] = attrs.field(factory=dict)
    """Grammar tools, to the property that holds their text."""
    usage: Usage = attrs.field(default=NO_USAGE, init=False)
    is_over: bool = attrs.field(default=False, init=False)
    _finish_reason: str | None = attrs.field(default=None, init=False)
    _response_id: str | None = attrs.field(default=None, init=False)
    _response_model: str | None = attrs.field(default=None, init=False)
    _blocks: list[str | _Call] = attrs.field(factory=list, init=False)
    """`text`, `thinking` or a call, in order of opening."""
    _thinking_field: str | None = attrs.field(default=None, init=False)
    _details: list[dict[str, Any]] = attrs.field(factory=list, init=False)
    _by_index: dict[int, _Call] = attrs.field(factory=dict, init=False)
    _ids_made: int = attrs.field(default=0, init=False)

    def parse(self, event: SseEvent) -> Json:
        """The chunk of an event; None for the mark of the end (WIRE-70). Raises MalformedEvent (WIRE-78)."""
        if event.data.strip() == b"[DONE]":
            self.is_over = True
            return None
        return json_of(event)

    def read(self, chunk: Json) -> list[StreamItem]:
        """The items of one chunk, none for one that is no object; an `Ended` among them ends the stream."""
        if not isinstance(chunk, dict):
            return []
        error = chunk.get("error")
        if error:
            return [Ended("error", _error_text(error), usage=self.usage)]
        items: list[StreamItem] = self._noted(chunk)
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        counted = self._counted(chunk.get("usage")) or (isinstance(choice, dict) and self._counted(choice.get("usage")))
        if counted:
            items.append(Noted(usage=self.usage))
        if isinstance(choice, dict):
            reason = choice.get("finish_reason")
            if isinstance(reason, str) and reason:
                self._finish_reason = reason
            delta = choice.get("delta")
            if isinstance(delta, dict):
                self._delta(delta, items)
        return items

    def finish(self) -> list[StreamItem]:
        """The items of the end of the body: every block's end, then how it ended."""
        items: list[StreamItem] = []
        if self._details and "thinking" not in self._blocks:
            items.append(self._open_thinking())
        for index, block in enumerate(self._blocks):
            if isinstance(block, _Call):
                self._end_call(block, items)
            elif block == "text":
                items.append(TextEnded(index))
            else:
                signature = dumps(self._details).decode() if self._details else self._thinking_field
                items.append(ThinkingEnded(index, thinking_signature=signature))
        items.append(self._ended())
        return items

    def failed(self, text: str) -> Ended:
        """The end of a stream that broke with this text."""
        return Ended("error", text, usage=self.usage)

    def _ended(self) -> Ended:
        reason = self._finish_reason
        if reason is not None:
            stop = STOP_REASONS.get(reason)
            if stop is None:
                return Ended("error", f"Provider finish_reason: {reason}", usage=self.usage, raw_stop_reason=reason)
            return Ended(stop, usage=self.usage, raw_stop_reason=reason)
        if not self._infers_finish:
            return self.failed(NO_FINISH_REASON)
        has_call = any(isinstance(block, _Call) for block in self._blocks)
        return Ended("toolUse" if has_call else "stop", usage=self.usage)

    def _noted(self, chunk: Mapping[str, Any]) -> list[StreamItem]:
        """The id of the response, and the model that serves it if it is another, once each (WIRE-70)."""
        response_id, model = chunk.get("id"), chunk.get("model")
        new_id = response_id if self._response_id is None and isinstance(response_id, str) and response_id else None
        is_other = isinstance(model, str) and model and model != self._model.id
        new_model = model if self._response_model is None and is_other else None
        if new_id is None and new_model is None:
            return []
        self._response_id = self._response_id or new_id
        self._response_model = self._response_model or new_model
        return [Noted(response_id=new_id, response_model=new_model)]

    # deltas (WIRE-71)

    def _delta(self, delta: Mapping[str, Any], items: list[StreamItem]) -> None:
        details = delta.get("reasoning_details")
        if isinstance(details, list):
            self._collect([each for each in details if isinstance(each, dict)], items)
        field = next((name for name in REASONING_FIELDS if isinstance(delta.get(name), str) and delta[name]), None)
        if field is not None:
            self._thinking_field = self._thinking_field or field
            if "thinking" not in self._blocks:
                items.append(self._open_thinking())
            items.append(ThinkingDelta(self._blocks.index("thinking"), delta[field]))
        content = delta.get("content")
        if isinstance(content, str) and content:
            if "text" not in self._blocks:
                self._blocks.append("text")
                items.append(TextStarted(len(self._blocks) - 1))
            items.append(TextDelta(self._blocks.index("text"), content))
        calls = delta.get("tool_calls")
        for piece in calls if isinstance(calls, list) else ():
            if isinstance(piece, dict):
                self._piece(piece, items)

    def _open_thinking(self) -> ThinkingStarted:
        self._blocks.append("thinking")
        return ThinkingStarted(len(self._blocks) - 1, thinking_signature=self._thinking_field)

    def _collect(self, details: list[dict[str, Any]], items: list[StreamItem]) -> None:
        """Keeps entries for the signature; neighbours of the same kind of text become one (WIRE-72)."""
        for entry in details:
            kind = entry.get("type")
            if not isinstance(kind, str) or not kind.startswith("reasoning."):
                continue
            if "thinking" not in self._blocks:
                items.append(self._open_thinking())
            held_by = MERGED_DETAILS.get(kind)
            last = self._details[-1] if self._details else None
            if held_by and last and last.get("type") == kind and isinstance(entry.get(held_by), str):
                known = {name: value for name, value in entry.items() if value is not None}
                self._details[-1] = {**last, **known, held_by: f"{last.get(held_by) or ''}{entry[held_by]}"}
            else:
                self._details.append(entry)

    # tool calls (WIRE-73, WIRE-74)

    def _piece(self, piece: Mapping[str, Any], items: list[StreamItem]) -> None:
        is_custom = isinstance(piece.get("custom"), dict)
        body = piece.get("custom") if is_custom else piece.get("function")
        body = body if isinstance(body, dict) else {}
        name = body.get("name") if isinstance(body.get("name"), str) else ""
        call = self._call_of(piece)
        if call is None:
            held_by = self._grammars.get(name or "", UNKNOWN_TOOL_PROPERTY) if is_custom else None
            call = self._open_call(piece, name or "", held_by, items)
        self._learn(call, piece, name or "")
        said = body.get("input" if is_custom else "arguments")
        self._grow(call, said if isinstance(said, str) else "", items)

    def _grow(self, call: _Call, said: str, items: list[StreamItem]) -> None:
        if call.held_by is not None and said:
            opening = "" if call.pieces else f'{{{json.dumps(call.held_by, ensure_ascii=False)}:"'
            said = opening + json.dumps(said, ensure_ascii=False)[1:-1]
        if said:
            call.pieces.append(said)
        items.append(ToolCallDelta(call.index, said))

    def _call_of(self, piece: Mapping[str, Any]) -> _Call | None:
        index, id = piece.get("index"), piece.get("id")
        by_index = self._by_index.get(index) if isinstance(index, int) else None
        if by_index is not None:
            return by_index
        found = next((call for call in self._calls() if call.is_real and call.id == id), None) if isinstance(id, str) and id else None
        if found is not None and isinstance(index, int):
            self._by_index[index] = found
        return found

    def _open_call(self, piece: Mapping[str, Any], name: str, held_by: str | None, items: list[StreamItem]) -> _Call:
        id = piece.get("id")
        is_real = isinstance(id, str) and bool(id) and not self._is_taken(str(id))
        call = _Call(index=len(self._blocks), id=str(id) if is_real else self._made_id(), is_real=is_real, name=name, held_by=held_by)
        self._blocks.append(call)
        index = piece.get("index")
        if isinstance(index, int):
            self._by_index[index] = call
        items.append(ToolCallStarted(call.index, call.id, call.name, EMPTY if held_by is None else FrozenDict({held_by: ""})))
        return call

    def _learn(self, call: _Call, piece: Mapping[str, Any], name: str) -> None:
        """What comes late: a real id instead of a made-up one, a name instead of none."""
        id = piece.get("id")
        if not call.is_real and isinstance(id, str) and id and not self._is_taken(id):
            call.id, call.is_real = id, True
        call.name = call.name or name

    def _end_call(self, call: _Call, items: list[StreamItem]) -> None:
        if call.held_by is not None:
            closing = '"}' if call.pieces else f'{{{json.dumps(call.held_by, ensure_ascii=False)}:""}}'
            call.pieces.append(closing)
            items.append(ToolCallDelta(call.index, closing))
        arguments, error = final_arguments("".join(call.pieces))
        made = ToolCall(id=call.id, name=call.name, arguments=arguments, arguments_error=error)
        items.append(ToolCallEnded(call.index, made))

    def _calls(self) -> list[_Call]:
        return [block for block in self._blocks if isinstance(block, _Call)]

    def _is_taken(self, id: str) -> bool:
        return any(call.id == id for call in self._calls())

    def _made_id(self) -> str:
        while True:
            self._ids_made += 1
            id = f"call_{self._ids_made}"
            if not self._is_taken(id):
                return id

    # usage (WIRE-75)

    def _counted(self, usage: object) -> bool:
        if not isinstance(usage, dict):
            return False
        details = object_in(usage, "prompt_tokens_details")
        cached = count_of(details.get("cached_tokens"), usage.get("prompt_cache_hit_tokens"), usage.get("cached_tokens"))
        written = count_of(details.get("cache_write_tokens"))
        fresh = max(0, count_of(usage.get("prompt_tokens")) - cached - written)
        output = count_of(usage.get("completion_tokens"))
        reasoning = count_of(object_in(usage, "completion_tokens_details").get("reasoning_tokens"), usage.get("reasoning_tokens"))
        counted = Usage(
            input=fresh,
            output=output,
            cache_read=cached,
            cache_write=written,
            reasoning=reasoning,
            total_tokens=fresh + output + cached + written,
        )
        cost = cost_of(self._model.cost, counted)
        total = billed(usage) if self._bills else None
        if total is not None:
            cost = attrs.evolve(cost, total=total, total_from_provider=True)
        self.usage = attrs.evolve(counted, cost=cost)
        return True


def _error_text(error: object) -> str:
    """The server's own words; what lies behind them follows on a new line (WIRE-78)."""
    if not isinstance(error, dict):
        return str(error)
    said = error.get("message")
    text = said if isinstance(said, str) and said else dumps(error).decode()
    raw = object_in(error, "metadata").get("raw")
    if isinstance(raw, str) and raw and raw not in text:
        return f"{text}\n{raw}"
    return text
