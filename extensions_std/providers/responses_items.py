"""What single events, output items and whole responses say, read with doubt: a server may send any shape."""

from collections.abc import Mapping
from typing import Any

from camshaft.actors.api import Usage, dumps
from camshaft.extensions_std.providers.reported import count_of, object_in, text_in
from camshaft.extensions_std.providers.responses_render import PHASES


def index_of(event: Mapping[str, Any]) -> int | None:
    """Which output item an event means; None if it does not say."""
    index = event.get("output_index")
    return index if isinstance(index, int) and not isinstance(index, bool) else None


def _texts(parts: object, *fields: str) -> list[str]:
    """The texts of content parts; empty if there are none."""
    listed = parts if isinstance(parts, list) else ()
    return [part[field] for part in listed if isinstance(part, dict) for field in fields if isinstance(part.get(field), str)]


def message_text(item: Mapping[str, Any]) -> str | None:
    """The text of a whole message, refusals too; None if it holds none, then what streamed stands."""
    texts = _texts(item.get("content"), "text", "refusal")
    return "".join(texts) if texts else None


def thinking_text(item: Mapping[str, Any]) -> str | None:
    """The summaries of a whole reasoning item, else its contents, else None: then what streamed stands (WIRE-91)."""
    texts = _texts(item.get("summary"), "text") or _texts(item.get("content"), "text")
    return "\n\n".join(texts) if texts else None


def text_signature(item: Mapping[str, Any]) -> str | None:
    """What a text needs to be sent back as the item it was (WIRE-85)."""
    id, phase = text_in(item, "id"), text_in(item, "phase")
    if not id:
        return None
    return dumps({"v": 1, "id": id, **({"phase": phase} if phase in PHASES else {})}).decode()


def failure(response: Mapping[str, Any], otherwise: str) -> str:
    """Why a response failed (WIRE-94)."""
    error = object_in(response, "error")
    told = [each for each in (text_in(error, "code"), text_in(error, "message")) if each]
    reason = text_in(object_in(response, "incomplete_details"), "reason")
    return ": ".join(told) or (f"incomplete: {reason}" if reason else otherwise)


def is_removal(change: Mapping[str, Any]) -> bool:
    """Whether reasoning was removed that a later turn may need (WIRE-96)."""
    return (change.get("type"), change.get("action")) == ("reasoning", "removed") and change.get("reason") != "turn_boundary"


def usage_of(response: Mapping[str, Any]) -> Usage | None:
    """What a response used, without its cost; None if it does not say (WIRE-92)."""
    usage = response.get("usage")
    if not isinstance(usage, dict):
        return None
    details = object_in(usage, "input_tokens_details")
    cached, written = count_of(details.get("cached_tokens")), count_of(details.get("cache_write_tokens"))
    fresh, output = max(0, count_of(usage.get("input_tokens")) - cached - written), count_of(usage.get("output_tokens"))
    return Usage(
        input=fresh,
        output=output,
        cache_read=cached,
        cache_write=written,
        reasoning=count_of(object_in(usage, "output_tokens_details").get("reasoning_tokens")),
        total_tokens=count_of(usage.get("total_tokens"), fresh + output + cached + written),
    )
