"""Recorded streams of OpenAI's responses, cut and cancelled wherever that can happen."""

import json
from collections.abc import Sequence
from typing import Any, Final

import pytest
import trio
from trio.testing import MockClock

from camshaft.actors.ports.http import HttpFailed
from camshaft.extensions_std.providers.transport import TransportLimits
from camshaft.kernel.messages import FAILED, AssistantMessage, TextBlock, ThinkingBlock, ToolCall
from camshaft.kernel.models import Model
from tests.conformance.recorded import DATA
from tests.extensions_std.providers.asking import Asked, FakeHttp, FakeResponse, Wait, ask, completions

MODEL: Final = Model(id="gpt-r", provider="openai", api="openai-responses", base_url="http://model.test/v1", reasoning=True)

ENDS: Final = (b'"type":"response.completed"', b'"type":"response.incomplete"', b'"type":"response.failed"', b'"type":"error"')


def _streams() -> list[Any]:
    """Every body of a recorded stream, once."""
    cases = json.loads((DATA / "wire" / "streams-responses.json").read_text("utf-8"))["cases"]
    bodies: dict[bytes, str] = {}
    for case in cases:
        for reply in case["responses"]:
            pieces = [piece if isinstance(piece, str) else piece.get("text", "") for piece in reply.get("body", ())]
            raw = "".join(pieces).encode()
            if reply["status"] == 200 and raw:
                bodies.setdefault(raw, case["name"])
    return [pytest.param(raw, id=name) for raw, name in bodies.items()]


async def _ask(*body: bytes | Wait | HttpFailed, abort_after: int | None = None) -> Asked:
    return await ask(
        completions(FakeHttp([FakeResponse(body=body)]), MODEL, limits=TransportLimits(progress_timeout_s=None)), abort_after=abort_after
    )


def _message(asked: Asked) -> AssistantMessage:
    assert asked.message is not None
    return asked.message


def _shown(message: AssistantMessage) -> list[str]:
    """What a reader sees of each block."""
    return [_seen(block) for block in message.content]


def _seen(block: object) -> str:
    match block:
        case TextBlock(text=text):
            return text
        case ThinkingBlock(thinking=thinking):
            return thinking
        case ToolCall(id=id, name=name):
            return f"{name} {id}"
    raise AssertionError(block)


def _events(raw: bytes) -> list[bytes]:
    return [event + b"\n\n" for event in raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n\n") if event.strip()]


@pytest.mark.slow
@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("raw", _streams())
async def test_body_that_ends_anywhere_ends_in_a_message_with_what_came(raw: bytes, step: int) -> None:
    """STR-35. A cut stream is an error, so no call of it runs; one that got its terminal event is as good as whole."""
    whole = _message(await _ask(raw))
    blocks = 0

    for at in range(0, len(raw), step):
        message = _message(await _ask(raw[:at]))

        assert message == whole or (message.stop_reason == "error" and message.error_message), at
        assert len(message.content) >= blocks, at
        assert _is_beginning(_shown(message), _shown(whole)), at
        blocks = len(message.content)


@pytest.mark.slow
@pytest.mark.parametrize("raw", _streams())
async def test_connection_that_breaks_between_events_fails_unless_the_end_was_told(raw: bytes) -> None:
    whole, events = _message(await _ask(raw)), _events(raw)

    for count in range(len(events) + 1):
        message = _message(await _ask(b"".join(events[:count]), HttpFailed("broken", "cut")))
        was_told = any(mark in event.replace(b" ", b"") for event in events[:count] for mark in ENDS)

        assert (message.stop_reason, message.error_message) == (
            (whole.stop_reason, whole.error_message) if was_told or message == whole else ("error", message.error_message)
        )
        assert message.error_message or message.stop_reason not in FAILED


@pytest.mark.slow
@pytest.mark.parametrize("raw", _streams())
async def test_cancelled_after_any_item_the_answer_keeps_what_came(raw: bytes) -> None:
    """STR-33."""
    pieces = [piece for event in _events(raw) for piece in (event, Wait(0))]
    whole = await _ask(*pieces)

    for count in range(1, len(whole.items)):
        message = _message(await _ask(*pieces, abort_after=count))

        assert message == _message(whole) or (message.stop_reason, message.error_message) == ("aborted", "Request was aborted"), count
        assert _is_beginning(_shown(message), _shown(_message(whole))), count
    assert _message(await _ask(*pieces, abort_after=1)).stop_reason == "aborted" or len(_events(raw)) == 1


def _is_beginning(part: Sequence[str], whole: Sequence[str]) -> bool:
    return len(part) <= len(whole) and all(now.strip() in full or full in now for now, full in zip(part, whole, strict=False))


async def test_progress_without_content_ends_within_the_limit(autojump_clock: MockClock) -> None:
    created = b'data: {"type":"response.created","response":{"id":"r","status":"in_progress"}}\n\n'
    working = b'data: {"type":"response.in_progress","response":{"id":"r","status":"in_progress"}}\n\n'
    body = (created, *[piece for _ in range(100) for piece in (Wait(10), working)])

    message = _message(await ask(completions(FakeHttp([FakeResponse(body=body)]), MODEL)))

    assert trio.current_time() == pytest.approx(300)
    assert (message.stop_reason, message.response_id) == ("error", "r")
    assert message.error_message == "Request timed out.: no content for 300 s, though the server kept the connection open"
