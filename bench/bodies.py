"""Request bodies: what a request costs before a byte of it is sent."""

import statistics
import time
from typing import Any

from bench import sessions
from camshaft.actors.api import Model, ModelMessage, decode_message
from camshaft.extensions_std.providers.compat import completions_flags
from camshaft.extensions_std.providers.completions_body import CompletionsOptions, body_of
from camshaft.extensions_std.providers.completions_render import completions_form
from camshaft.extensions_std.providers.wire_transcript import Transcript

REPEATS = 20
"""Requests in a row, each with one message more; the median counts."""
MODEL = Model(id="made-up", provider="made-up", api="openai-completions", context_window=100_000_000)


def measure(count: int) -> dict[str, Any]:
    """The body for `count` messages, made from nothing, and again and again with one message more."""
    messages = [_model_message(raw) for raw in sessions.tool_conversation(count + REPEATS)]
    flags = completions_flags(MODEL)
    transcript = Transcript(MODEL, completions_form(MODEL, flags))
    spent = []
    size = 0
    for length in range(count, count + REPEATS + 1):
        begun = time.perf_counter()
        transcript.follow(messages[:length])
        size = len(body_of(MODEL, flags, transcript, CompletionsOptions()))
        spent.append((time.perf_counter() - begun) * 1000)
    again = statistics.median(spent[1:])
    return {"first_ms": spent[0], "again_ms": again, "ms_per_1000": again * 1000 / count, "mb": size / 1e6}


def _model_message(raw: dict[str, Any]) -> ModelMessage:
    message = decode_message(raw)
    assert isinstance(message, ModelMessage)
    return message
