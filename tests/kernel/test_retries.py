"""Which responses are retried, which overflowed, and how long a retry waits."""

from typing import Any

import attrs
import pytest

from camshaft.kernel.messages import AssistantMessage, Usage
from camshaft.kernel.retries import is_overflow, is_recoverable_length, is_retryable, is_retryable_text, retry_delay_ms

FAILED = AssistantMessage(content=(), api="a", provider="acme", model="m", stop_reason="error", timestamp=0)


def message(text: str | None = None, **changes: Any) -> AssistantMessage:
    return attrs.evolve(FAILED, error_message=text, **changes)


RETRYABLE = [
    "overloaded_error",
    "529 Overloaded",
    "HTTP 503",
    "Rate limit reached",
    "service is temporarily unavailable",
    "Connection error.: connect ECONNREFUSED 1.2.3.4:443",
    "Request timed out.",
    "Provider stream ended without a terminal event",
    "RemoteProtocolError: Server disconnected without sending a response.",
    "ReadError",
]
FINAL = [
    "",
    "invalid api key",
    "took 500ms",
    "429 insufficient_quota",
    "rate limit: billing hard limit reached",
    '{"code": "1308", "message": "overloaded"}',
    "myECONNRESETx",
]


@pytest.mark.parametrize("text", RETRYABLE)
def test_passing_trouble_is_retried(text: str) -> None:
    assert is_retryable_text(text)


@pytest.mark.parametrize("text", FINAL)
def test_everything_else_fails_fast(text: str) -> None:
    assert not is_retryable_text(text)


def test_longer_code_is_another_code() -> None:
    assert is_retryable_text('{"code": 13080, "message": "overloaded"}')


def test_overflow_is_never_retried() -> None:
    overflow = message("503: prompt is too long")

    assert is_overflow(overflow)
    assert not is_retryable(overflow)


@pytest.mark.parametrize("stop_reason", ["stop", "aborted", "length", "toolUse"])
def test_only_a_failed_message_is_retried(stop_reason: str) -> None:
    assert is_retryable(message("overloaded"))
    assert not is_retryable(message("overloaded", stop_reason=stop_reason))


OVERFLOWS = [
    ("413 Request Entity Too Large", "acme"),
    ("My Provider API error (413): x", "acme"),
    ("400 status code (no body)", "cerebras"),
    ("413 (no body)", "cerebras"),
    ("input token count (5) exceeds the maximum", "acme"),
    ("PROMPT TOO LONG; exceeded max context length by 4 tokens", "ollama"),
]
NO_OVERFLOWS = [
    ("400 status code (no body)", "acme"),
    ("4130 x", "acme"),
    ("error 413", "acme"),
    ("Throttling error: too many tokens", "acme"),
    ("rate limit: 400 (no body)", "cerebras"),
    ("input token count\nexceeds the maximum", "acme"),
]


@pytest.mark.parametrize(("text", "provider"), OVERFLOWS)
def test_words_of_an_overflow_are_known(text: str, provider: str) -> None:
    assert is_overflow(message(text, provider=provider))


@pytest.mark.parametrize(("text", "provider"), NO_OVERFLOWS)
def test_words_that_only_look_alike_are_no_overflow(text: str, provider: str) -> None:
    assert not is_overflow(message(text, provider=provider))


SILENT = [("stop", 1001, 5, 1000, True), ("stop", 1000, 5, 1000, False), ("length", 990, 0, 1000, True), ("length", 990, 1, 1000, False)]


@pytest.mark.parametrize(("stop_reason", "used", "output", "window", "expected"), SILENT)
def test_numbers_show_a_silent_overflow(stop_reason: str, used: int, output: int, window: int, expected: bool) -> None:
    given = message(stop_reason=stop_reason, usage=Usage(input=used - 10, cache_read=10, output=output))

    assert is_overflow(given, window) is expected
    assert not is_overflow(given)
    assert not is_overflow(given, 0)


@pytest.mark.parametrize(("output", "output_max", "expected"), [(50, 100, True), (100, 100, False), (50, 0, False)])
def test_length_stop_below_the_models_limit_is_recoverable(output: int, output_max: int, expected: bool) -> None:
    assert is_recoverable_length(message(stop_reason="length", usage=Usage(output=output)), output_max) is expected


def test_delay_doubles_up_to_its_cap_whatever_the_attempt() -> None:
    assert [retry_delay_ms(2000, attempt) for attempt in (1, 2, 3, 6, 10**9)] == [2000, 4000, 8000, 60000, 60000]
