"""Which failed responses are tried again, which overflowed the context, and how long to wait.

Theory of operation. Providers say these things in words only, so three tables of words decide
(WIRE-25, WIRE-26, WIRE-29; this file is their one place). They are matched without regard to
case and, unless a row says otherwise, anywhere in the text. A word that forbids a retry wins
over one that allows it, and an overflow is never retried: it goes to compaction first
(WIRE-28). A text in no table fails fast.
"""

import re
from typing import Final

from camshaft.kernel.messages import AssistantMessage

OVERFLOW: Final = (
    r"prompt (?:is )?too long",
    r"prompt exceeds max length",
    r"request_too_large",
    r"input is too long for requested model",
    r"exceeds the context window",
    r"exceeds (?:the )?(?:model'?s )?maximum context length(?: of [\d,]+ tokens?|\s*\([\d,]+\))",
    r"context window exceeded",
    r"input token count.*exceeds the maximum",
    r"maximum prompt length is \d+",
    r"reduce the length of the messages",
    r"maximum context length is \d+ tokens",
    r"exceeds (?:the )?maximum allowed input length of [\d,]+ tokens?",
    r"input \(\d+ tokens\) is longer than the model'?s context length \(\d+ tokens\)",
    r"exceeds the limit of \d+",
    r"exceeds the available context size",
    r"greater than the context length",
    r"context window exceeds limit",
    r"exceeded model token limit",
    r"too large for model with \d+ maximum context length",
    r"prompt has [\d,]+ tokens?, but the configured context size is [\d,]+ tokens?",
    r"model_context_window_exceeded",
    r"prompt too long; exceeded (?:max )?context length",
    r"range of input length should be",
    r"context[ _]length[ _]exceeded",
    r"too many tokens",
    r"token limit exceeded",
    r"\A(?:413(?:\s|:|\Z)|[a-z0-9_ -]+ API error \(413\):)",
)
"""Texts of a context overflow, in the order of WIRE-25."""

OVERFLOW_WITHOUT_BODY: Final = r"\A4(?:00|13)\s*(?:status code)?\s*\(no body\)"
"""Item 28: one provider answers an overflow with an empty body."""

OVERFLOW_WITHOUT_BODY_PROVIDER: Final = "cerebras"

NO_OVERFLOW: Final = (r"\A(?:throttling error|service unavailable):", r"rate limit", r"too many requests")
"""Win over every row above (WIRE-26)."""

NOT_RETRYABLE: Final = (
    r"GoUsageLimitError",
    r"FreeUsageLimitError",
    r"Monthly usage limit reached",
    r"available balance",
    r"insufficient_quota",
    r"out of budget",
    r"quota exceeded",
    r"billing",
    r"subscription_sharing_usage_limit_exceeded",
    r"subscription_sharing_workplace_individual_usage_limit_exceeded",
    r'"code"\s*:\s*"?1308(?!\d)',
)

RETRYABLE: Final = (
    # load and status
    r"overloaded|server_busy|servers are currently busy|currently experiencing high demand|model is at capacity",
    r"rate.?limit|too many requests",
    r"(?<![a-z0-9])(?:429|500|502|503|504|520|524)(?![a-z0-9])",
    r"service.?(?:is.?)?(?:temporarily.?)?unavailable|server.?error|internal.?error",
    # gateways
    r"provider.?returned.?(?:an.?)?error|exceeded request buffer limit while retrying upstream",
    r"unable to forward upstream|upstream.?request.?failed|upstream_stream_read_error|stream was interrupted",
    r"http/?2 stream failed",
    # network
    r"network.?error|connection.?(?:error|refused|lost|closed)|connection reset by peer|other side closed",
    r"fetch failed|request to \S+ failed, reason:|getaddrinfo|ENOTFOUND|EAI_AGAIN",
    r"(?<![a-z0-9_])(?:ECONNRESET|ECONNABORTED|ECONNREFUSED|ETIMEDOUT|EPIPE)(?![a-z0-9_])",
    r"upstream.?connect|reset before headers|socket hang up|socket connection was closed",
    r"time out|timed out|timeout|terminated",
    # websocket
    r"websocket.?(?:closed|error|connection.?limit.?reached)",
    # cut streams
    r"ended without|stream ended before message_stop|stream ended before a terminal response event",
    r"http2 request did not get a response|stream disconnected before completion",
    r"cut short after the reply had begun|pending stream has been canceled",
    # advice
    r"retry delay|you can retry your request|try your request again|please retry your request|ResourceExhausted",
    r"subscription_sharing_usage_unavailable|subscription_sharing_user_unavailable",
    # our own transport
    r"ConnectError|ReadError|WriteError|RemoteProtocolError|LocalProtocolError|PoolTimeout|BrokenResourceError",
    r"all connection attempts failed|server disconnected|peer closed connection|incomplete chunked read",
    r"broken pipe|network is unreachable|no route to host|unexpected eof|UNEXPECTED_EOF",
    r"name or service not known|nodename nor servname|temporary failure in name resolution",
)

DELAY_MAX_MS: Final = 60_000
"""Longest wait before a retry, unless the settings say otherwise (`retry.maxAgentDelayMs`)."""

DOUBLINGS_MAX: Final = 40
"""A base of 1 ms doubled so often is 35 years: no cap is above that, and the number stays small."""

SILENT_LENGTH_PART: Final = 0.99
"""An input filling this part of the window leaves no room to answer (WIRE-27)."""


def _any_of(*rows: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{row})" for row in rows), re.IGNORECASE)


_OVERFLOW: Final = _any_of(*OVERFLOW)
_OVERFLOW_WITHOUT_BODY: Final = _any_of(OVERFLOW_WITHOUT_BODY)
_NO_OVERFLOW: Final = _any_of(*NO_OVERFLOW)
_NOT_RETRYABLE: Final = _any_of(*NOT_RETRYABLE)
_RETRYABLE: Final = _any_of(*RETRYABLE)


def is_retryable_text(text: str) -> bool:
    """Whether an error text promises that another try may succeed (WIRE-29)."""
    return not _NOT_RETRYABLE.search(text) and _RETRYABLE.search(text) is not None


def is_retryable(message: AssistantMessage, context_window: int | None = None) -> bool:
    """Whether the message is worth another try: a failure, no overflow, with a retryable text (RTY-1)."""
    text = _error_text(message)
    return text is not None and not is_overflow(message, context_window) and is_retryable_text(text)


def is_overflow(message: AssistantMessage, context_window: int | None = None) -> bool:
    """Whether the context was too long: by the error text, or silently by the numbers (WIRE-25 to WIRE-27).

    Without a window, None or 0, only the text can tell.
    """
    text = _error_text(message)
    if text is not None:
        return _is_overflow_text(text, message.provider)
    if not context_window or context_window < 0:
        return False
    used = message.usage.input + message.usage.cache_read
    if message.stop_reason == "stop":
        return used > context_window
    return message.stop_reason == "length" and message.usage.output == 0 and used >= SILENT_LENGTH_PART * context_window


def is_recoverable_length(message: AssistantMessage, output_max: int) -> bool:
    """Whether the answer stopped for length before the model's own limit `output_max`, in tokens (RTY-21)."""
    return message.stop_reason == "length" and output_max > 0 and message.usage.output < output_max


def retry_delay_ms(base_ms: float, attempt: int, delay_max_ms: float = DELAY_MAX_MS) -> float:
    """Milliseconds to wait before retry number `attempt`, counted from 1: doubling, capped, no jitter (RTY-2)."""
    doublings = min(max(attempt - 1, 0), DOUBLINGS_MAX)
    return min(base_ms * (1 << doublings), delay_max_ms)


def _error_text(message: AssistantMessage) -> str | None:
    return message.error_message or None if message.stop_reason == "error" else None


def _is_overflow_text(text: str, provider: str) -> bool:
    if _NO_OVERFLOW.search(text):
        return False
    if provider == OVERFLOW_WITHOUT_BODY_PROVIDER and _OVERFLOW_WITHOUT_BODY.search(text):
        return True
    return _OVERFLOW.search(text) is not None
