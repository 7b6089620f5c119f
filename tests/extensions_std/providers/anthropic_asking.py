"""Requests of the Anthropic API as a server gets them, and events of its replies."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from camshaft.actors.api import RequestOptions
from camshaft.kernel.messages import ModelMessage
from tests.extensions_std.providers.asking import HELLO, FakeHttp, FakeResponse, anthropic, ask

START: Final = {"type": "message_start", "message": {"id": "m", "model": "claude-x", "usage": {"input_tokens": 3, "output_tokens": 1}}}
STOP: Final = {"type": "message_stop"}
PING: Final = b"event: ping\ndata: {}\n\n"


def end(reason: str = "end_turn", **fields: Any) -> dict[str, Any]:
    """The event that tells the stop reason."""
    return {"type": "message_delta", "delta": {"stop_reason": reason, **fields}}


def block(index: int, **content: Any) -> dict[str, Any]:
    """The start of a block."""
    return {"type": "content_block_start", "index": index, "content_block": content}


def delta(index: int, **content: Any) -> dict[str, Any]:
    """More of a block."""
    return {"type": "content_block_delta", "index": index, "delta": content}


def stop(index: int) -> dict[str, Any]:
    """The end of a block."""
    return {"type": "content_block_stop", "index": index}


def raw(*events: dict[str, Any]) -> bytes:
    """Events as bytes."""
    return b"".join([f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events])


STOPPED: Final = FakeResponse(
    body=(
        b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n',
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    )
)
"""A complete reply that says nothing."""


async def sent(
    messages: Sequence[ModelMessage] = HELLO, *, level: str = "off", options: Mapping[str, Any] | None = None, **model: Any
) -> tuple[dict[str, Any], dict[str, str]]:
    """Body and headers of the request for these messages."""
    http = FakeHttp([STOPPED])
    await ask(anthropic(http, **model), messages, level=level, options=RequestOptions(**(options or {})))
    return json.loads(http.requests[0].body), dict(http.requests[0].headers)
