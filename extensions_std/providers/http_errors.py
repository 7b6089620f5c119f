"""HTTP failures of model servers: their text, and whether to try again (WIRE-20 to WIRE-24)."""

import math
import random
from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import attrs

from camshaft.actors.api import HttpFailed, HttpResponse, MalformedJson, dumps, loads

RETRIED_STATUSES: Final = frozenset({408, 409, 429})
"""Besides all from 500 on (WIRE-20)."""

RETRY_FIRST_S: Final = 0.5
RETRY_MAX_S: Final = 8.0
"""Delays double from the first to the largest (WIRE-21)."""
RETRY_JITTER: Final = 0.25
"""Largest share by which a delay is reduced at random."""

JSON_MAX: Final = 4000
"""Characters of an error's JSON that are told (WIRE-24)."""

ERROR_BODY_MAX_BYTES: Final = 1024 * 1024
"""How much of an error's body is read: far more than any server says, and bounded."""

HIDDEN: Final = "<hidden>"


def completions_error(status: int, body: bytes) -> str:
    """The text of an HTTP error of chat completions (WIRE-24); the server's own words, never empty."""
    error = _openai_error(body)
    return f"{status}: {error.told}" if error.has_message or error.is_cut else f"{status} {error.told}"


def responses_error(status: int, body: bytes, provider: str) -> str:
    """The text of an HTTP error of OpenAI's responses (WIRE-24); the server's own words, never empty."""
    error = _openai_error(body)
    head = f"{'OpenAI' if provider == 'openai' else provider} API error ({status}): "
    return f"{head}{error.told}" if error.has_message or error.is_cut else f"{head}{status} {error.told}"


def anthropic_error(status: int, body: bytes) -> str:
    """The text of an HTTP error of Anthropic's API (WIRE-24); the server's own words, uncut, never empty."""
    text = body.decode("utf-8", "replace")
    if not text.strip():
        return f"{status} status code (no body)"
    try:
        value = loads(body)
    except MalformedJson:
        return f"{status} {text}"
    message = value.get("message") if isinstance(value, dict) else None
    return f"{status} {message}" if isinstance(message, str) and message else f"{status} {dumps(value).decode()}"


def openai_plain_error(status: int, body: bytes) -> str:
    """The same in few words: its message alone, if it has one (WIRE-21)."""
    error = _openai_error(body)
    return f"{status} {error.message or error.told}"


@attrs.frozen
class _OpenAiError:
    """What the body of a failed response says."""

    told: str
    """All of it, as far as it is told."""
    message: str = ""
    has_message: bool = False
    is_cut: bool = False


def _openai_error(body: bytes) -> _OpenAiError:
    text = body.decode("utf-8", "replace")
    if not text.strip():
        return _OpenAiError("status code (no body)")
    try:
        value = loads(body)
    except MalformedJson:
        return _OpenAiError(text)
    error = value.get("error") if isinstance(value, dict) else None
    told = error if error is not None else value
    shown = dumps(told).decode()
    if not isinstance(told, dict):
        return _OpenAiError(shown)
    message = told.get("message")
    said = message if isinstance(message, str) else ""
    if len(shown) > JSON_MAX:
        cut = f"{shown[:JSON_MAX]}... [truncated {len(shown) - JSON_MAX} chars]"
        return _OpenAiError(cut, said, bool(message), is_cut=True)
    return _OpenAiError(shown, said, bool(message))


async def error_body(response: HttpResponse) -> bytes:
    """The body of a failed response, as far as it is read at all; a broken one counts as it came."""
    parts: list[bytes] = []
    size = 0
    try:
        async with aclosing(response.chunks()) as chunks:
            async for chunk in chunks:
                parts.append(chunk)
                size += len(chunk)
                if size >= ERROR_BODY_MAX_BYTES:
                    break
    except HttpFailed:
        pass
    return b"".join(parts)[:ERROR_BODY_MAX_BYTES]


def is_retried(status: int | None, headers: Mapping[str, str]) -> bool:
    """Whether a failure before the body started is tried again; status None is a network failure (WIRE-20)."""
    wish = headers.get("x-should-retry")
    if wish in ("true", "false"):
        return wish == "true"
    return status is None or status in RETRIED_STATUSES or status >= 500


def server_delay_s(headers: Mapping[str, str], *, now_s: float) -> float | None:
    """The delay that the server asks for, or None; `now_s` is the wall clock, for dates (WIRE-21)."""
    precise = _number(headers.get("retry-after-ms"))
    if precise is not None:
        return max(0.0, precise / 1000)
    given = headers.get("retry-after")
    seconds = _number(given)
    if seconds is not None:
        return max(0.0, seconds)
    if given is None:
        return None
    try:
        at = parsedate_to_datetime(given)
    except ValueError:
        return None
    stamp = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max(0.0, stamp.timestamp() - now_s)


def own_delay_s(attempt: int, chance: random.Random) -> float:
    """The delay before the attempt after number `attempt`, counted from 0, if the server names none."""
    longest: float = min(RETRY_FIRST_S * 2**attempt, RETRY_MAX_S)
    return longest * (1 - RETRY_JITTER * chance.random())


def too_long(delay_s: float, max_s: float, text: str) -> str:
    """Error text if the server asks for a longer delay than is accepted."""
    return f"Server requested {math.ceil(delay_s)}s retry delay (max: {max_s:g}s). {text}"


def without_secrets(text: str, secrets: tuple[str, ...]) -> str:
    """`text` with every secret hidden: servers and proxies may echo a key."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text


def with_server(text: str, provider: str, base_url: str) -> str:
    """Why a request did not get through, and where to: of the url only what cannot hold a secret."""
    parts = urlsplit(base_url)
    shown = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    return f"{text} (provider {provider} at {shown})"


def _number(text: Any) -> float | None:
    try:
        value = float(text)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None
