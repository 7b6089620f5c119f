"""Request bodies: what a request costs before a byte of it is sent."""

import statistics
import time
from typing import Any

from bench import sessions
from camshaft.actors.api import Model, ModelMessage, ModelRequest, RequestOptions, decode_message
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS

REPEATS = 20
"""Requests in a row, each with one message more; the median counts."""


def measure(count: int, api: str) -> dict[str, Any]:
    """The body for `count` messages, made from nothing, and again and again with one message more."""
    messages = [_model_message(raw) for raw in sessions.tool_conversation(count + REPEATS)]
    model = Model(id="made-up", provider="made-up", api=api, context_window=100_000_000)
    conversation = WIRE_APIS[api].begin(model)
    spent = []
    size = 0
    for length in range(count, count + REPEATS + 1):
        request = ModelRequest(model=model, thinking_level="off", messages=messages[:length], options=RequestOptions(session_id="bench"))
        begun = time.perf_counter()
        conversation.follow(request.messages)
        size = len(conversation.body(request))
        spent.append((time.perf_counter() - begun) * 1000)
    again = statistics.median(spent[1:])
    return {"first_ms": spent[0], "again_ms": again, "ms_per_1000": again * 1000 / count, "mb": size / 1e6}


def _model_message(raw: dict[str, Any]) -> ModelMessage:
    message = decode_message(raw)
    assert isinstance(message, ModelMessage)
    return message
