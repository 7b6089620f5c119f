"""Events of the Anthropic API as normalised stream items (WIRE-51 to WIRE-56).

Theory of operation. Blocks are opened, grown and closed by the server's own index, which is not ours:
kinds of blocks that this program does not know are skipped with all that belongs to them. What comes
for a block that is not open, or is of another kind, is ignored.

Three things of a reply say together how it ended: whether its message began, a stop reason, and the
mark of the end, which is missed only where the message began. A reason that nobody knows ends the stream at once; a refusal waits for the
mark, because the usage comes with it. A block that was never closed keeps what it got.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from camshaft.actors.api import (
    EMPTY,
    NO_USAGE,
    Ended,
    FrozenDict,
    Json,
    MalformedJson,
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
    cost_of,
    freeze,
    loads,
    repaired,
)
from camshaft.extensions_std.providers.sse import SseEvent
from camshaft.extensions_std.providers.wire_api import MalformedEvent

STOP_REASONS: Final[Mapping[str, str]] = {
    "end_turn": "stop",
    "pause_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "toolUse",
    "refusal": "error",
    "sensitive": "error",
}
"""The API's stop reason to ours; any other is an error at once (WIRE-54)."""

REFUSED: Final = "The model refused to complete the request"
REDACTED: Final = "[Reasoning redacted]"
NO_STOP_REASON: Final = "Anthropic stream ended without a stop reason"
NO_END: Final = "Anthropic stream ended before message_stop"

TOKENS_MAX: Final = 2**53
"""A larger counter is none: nothing can be counted with it any more."""

SHOWN_MAX: Final = 4000
"""Characters of an unreadable event that its error tells, twice: as data, and as lines."""


@attrs.define(eq=False)
class _Open:
    """A block that grows."""

    index: int
    """Ours."""
    takes: str
    """Type of the deltas that belong to it."""
    signature: str = ""
    """Of a thinking block, as far as it came."""


@attrs.define(eq=False)
class EventReader:
    """See the header. `usage` is what is known so far."""

    _model: Model
    usage: Usage = attrs.field(default=NO_USAGE, init=False)
    is_over: bool = attrs.field(default=False, init=False)
    _name: str = attrs.field(default="", init=False)
    """Of the event parsed last."""
    _has_started: bool = attrs.field(default=False, init=False)
    _stop_reason: str | None = attrs.field(default=None, init=False)
    """The server's word; the last one counts."""
    _error: str | None = attrs.field(default=None, init=False)
    """Why the stop reason is a failure."""
    _open: dict[int | None, _Open] = attrs.field(factory=dict, init=False)
    """By the server's index."""
    _count: int = attrs.field(default=0, init=False)
    """Blocks so far."""
    _call_ids: set[str] = attrs.field(factory=set, init=False)

    def parse(self, event: SseEvent) -> Json:
        """The data of an event of a known name, None for any other (WIRE-51). Raises MalformedEvent."""
        if event.name == "error":
            raise MalformedEvent(event.data.decode("utf-8", "replace"))
        if event.name not in _READ:
            return None
        self._name = event.name
        try:
            return loads(event.data)
        except MalformedJson as error:
            return self._repaired(event, str(error))

    def _repaired(self, event: SseEvent, why: str) -> Json:
        text = event.data.decode("utf-8", "replace")
        try:
            return loads(repaired(text).encode("utf-8", "surrogatepass"))
        except MalformedJson:
            lines = "\\n".join([f"event: {event.name}", *[f"data: {line}" for line in text.split("\n")]])
            shown = f"data={_shown(text)}; raw={_shown(lines)}"
            raise MalformedEvent(f"Could not parse Anthropic SSE event {event.name}: {why}; {shown}") from None

    def read(self, event: Json) -> list[StreamItem]:
        """The items of one event; an `Ended` among them ends the stream."""
        if not isinstance(event, dict):
            return []
        kind = event.get("type")
        step = _READ.get(kind if isinstance(kind, str) else self._name)
        if step is None:
            return []
        return step(self, event)

    def finish(self) -> list[StreamItem]:
        """How the reply ended: with the mark, or with the body (WIRE-55)."""
        if self._has_started and not self.is_over:
            return [Ended("error", NO_END, usage=self.usage, raw_stop_reason=self._stop_reason)]
        if self._stop_reason is None:
            return [Ended("error", NO_STOP_REASON, usage=self.usage)]
        return [Ended(STOP_REASONS[self._stop_reason], self._error, usage=self.usage, raw_stop_reason=self._stop_reason)]

    # events (WIRE-52)

    def _message_started(self, event: Mapping[str, Any]) -> list[StreamItem]:
        message, self._has_started = _object(event, "message"), True
        self._counted(_object(message, "usage"))
        id, model = message.get("id"), message.get("model")
        is_other = isinstance(model, str) and model != self._model.id
        return [Noted(usage=self.usage, response_id=id if isinstance(id, str) else None, response_model=model if is_other else None)]

    def _block_started(self, event: Mapping[str, Any]) -> list[StreamItem]:
        block, at = _object(event, "content_block"), self._count
        opened: StreamItem
        signature = ""
        match block.get("type"):
            case "text":
                opened, takes = TextStarted(at, text=_text(block, "text")), "text_delta"
            case "thinking":
                signature, takes = _text(block, "signature"), "thinking_delta"
                opened = ThinkingStarted(at, thinking=_text(block, "thinking"), thinking_signature=signature)
            case "redacted_thinking":
                opened, takes = ThinkingStarted(at, thinking=REDACTED, thinking_signature=_text(block, "data"), redacted=True), ""
            case "tool_use":
                given = block.get("input")
                arguments = freeze(given) if isinstance(given, dict) else EMPTY
                opened, takes = ToolCallStarted(at, self._call_id(block), _text(block, "name"), FrozenDict(arguments)), "input_json_delta"
            case _:
                self._open.pop(_index(event), None)
                return []
        self._open[_index(event)] = _Open(at, takes, signature)
        self._count += 1
        return [opened]

    def _block_grew(self, event: Mapping[str, Any]) -> list[StreamItem]:
        delta, block = _object(event, "delta"), self._open.get(_index(event))
        kind = delta.get("type")
        if block is None or (kind != block.takes and (kind, block.takes) != ("signature_delta", "thinking_delta")):
            return []
        match kind:
            case "text_delta" if isinstance(delta.get("text"), str):
                return [TextDelta(block.index, delta["text"])]
            case "thinking_delta" if isinstance(delta.get("thinking"), str):
                return [ThinkingDelta(block.index, delta["thinking"])]
            case "signature_delta" if isinstance(delta.get("signature"), str):
                block.signature += delta["signature"]
                return [ThinkingSigned(block.index, block.signature)]
            case "input_json_delta" if isinstance(delta.get("partial_json"), str):
                return [ToolCallDelta(block.index, delta["partial_json"])]
        return []

    def _block_stopped(self, event: Mapping[str, Any]) -> list[StreamItem]:
        block = self._open.pop(_index(event), None)
        if block is None:
            return []
        match block.takes:
            case "text_delta":
                return [TextEnded(block.index)]
            case "input_json_delta":
                return [ToolCallEnded(block.index)]
        return [ThinkingEnded(block.index)]

    def _message_grew(self, event: Mapping[str, Any]) -> list[StreamItem]:
        delta = _object(event, "delta")
        reason = delta.get("stop_reason")
        if isinstance(reason, str) and reason:
            self._stop_reason, self._error = reason, _error_of(reason, delta)
            if reason not in STOP_REASONS:
                return [Ended("error", self._error, usage=self.usage, raw_stop_reason=reason)]
        self._counted(_object(event, "usage"))
        return [Noted(usage=self.usage)]

    def _message_stopped(self, event: Mapping[str, Any]) -> list[StreamItem]:
        self.is_over = True
        return []

    def _call_id(self, block: Mapping[str, Any]) -> str:
        """The server's id, or one of ours if it gave none or gave it twice: results are matched by it."""
        given = _text(block, "id")
        number = len(self._call_ids)
        while not given or given in self._call_ids:
            number += 1
            given = f"call_{number}"
        self._call_ids.add(given)
        return given

    # usage (WIRE-53)

    def _counted(self, usage: Mapping[str, Any]) -> None:
        """Takes the counters that are there; they are totals, not increments."""
        known = self.usage
        read = _count(usage, "cache_read_input_tokens", known.cache_read)
        written = _count(usage, "cache_creation_input_tokens", known.cache_write)
        fresh, output = _count(usage, "input_tokens", known.input), _count(usage, "output_tokens", known.output)
        reasoning = _count(_object(usage, "output_tokens_details"), "thinking_tokens", known.reasoning or 0)
        counted = Usage(
            input=fresh,
            output=output,
            cache_read=read,
            cache_write=written,
            cache_write1h=_count(_object(usage, "cache_creation"), "ephemeral_1h_input_tokens", known.cache_write1h or 0),
            reasoning=reasoning or known.reasoning,
            total_tokens=fresh + output + read + written,
        )
        self.usage = attrs.evolve(counted, cost=cost_of(self._model.cost, counted))


_READ: Final[Mapping[str, Callable[[EventReader, Mapping[str, Any]], list[StreamItem]]]] = {
    "message_start": EventReader._message_started,
    "message_delta": EventReader._message_grew,
    "message_stop": EventReader._message_stopped,
    "content_block_start": EventReader._block_started,
    "content_block_delta": EventReader._block_grew,
    "content_block_stop": EventReader._block_stopped,
}
"""The events that are read; all others are ignored, future ones too."""


def _error_of(reason: str, delta: Mapping[str, Any]) -> str | None:
    """Why a stop reason is a failure, None for one that is none."""
    if STOP_REASONS.get(reason, "error") != "error":
        return None
    if reason == "refusal":
        return _text(_object(delta, "stop_details"), "explanation") or REFUSED
    return f"Provider stopped with: {reason}" if reason in STOP_REASONS else f"Unhandled stop reason: {reason}"


def _shown(text: str) -> str:
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}... [truncated {len(text) - SHOWN_MAX} chars]"


def _index(event: Mapping[str, Any]) -> int | None:
    index = event.get("index")
    return index if isinstance(index, int) else None


def _text(holder: Mapping[str, Any], name: str) -> str:
    found = holder.get(name)
    return found if isinstance(found, str) else ""


def _count(holder: Mapping[str, Any], name: str, known: int) -> int:
    found = holder.get(name)
    is_count = isinstance(found, (int, float)) and not isinstance(found, bool) and 0 <= found <= TOKENS_MAX
    return int(found) if is_count and found is not None else known


def _object(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = holder.get(name)
    return found if isinstance(found, dict) else {}
