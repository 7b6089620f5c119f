"""Requests of the Anthropic API as a server gets them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from camshaft.actors.api import RequestOptions
from camshaft.kernel.messages import ModelMessage
from tests.extensions_std.providers.asking import HELLO, FakeHttp, FakeResponse, anthropic, ask

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
