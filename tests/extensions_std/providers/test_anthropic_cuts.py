"""Every recorded reply of the Anthropic API, cut at every byte, split at every byte, dropped and aborted at every item."""

import json
from collections.abc import Sequence
from typing import Final

import pytest
from trio.testing import MockClock

from camshaft.actors.ports.http import HttpFailed
from camshaft.extensions_std.providers.anthropic_stream import NO_END, NO_STOP_REASON, EventReader
from camshaft.extensions_std.providers.sse import SseEvent, SseParser
from camshaft.extensions_std.providers.wire_api import MalformedEvent
from camshaft.kernel.messages import AssistantMessage, Block, TextBlock, ThinkingBlock, ToolCall
from camshaft.kernel.models import Model
from camshaft.kernel.stream import Ended, Partial, Started, StreamItem, Violation, begin, fold
from tests.conformance.recorded import DATA
from tests.conformance.run_wire import reply_of
from tests.extensions_std.providers.asking import Asked, FakeHttp, FakeResponse, Wait, anthropic, ask

CASES: Final = json.loads((DATA / "wire" / "streams-anthropic.json").read_text("utf-8"))["cases"]
REPLIES: Final = {case["name"]: reply_of(case["responses"][-1]) for case in CASES}
BODIES: Final = {name: b"".join(map(bytes, reply.body)) for name, reply in REPLIES.items() if reply.status == 200}  # type: ignore[arg-type]  # no pauses
NAMES: Final = sorted(BODIES)
MODEL: Final = Model(id="claude-x", provider="anthropic", api="anthropic-messages")


def _folded(partial: Partial, items: Sequence[StreamItem]) -> Partial:
    for item in items:
        step = fold(partial, item)
        assert not isinstance(step, Violation), step.text
        partial = step
        if partial.ended is not None:
            break
    return partial


def _read(*pieces: bytes) -> AssistantMessage:
    """The message of a body that comes in these pieces and then ends."""
    parser, reader = SseParser(), EventReader(MODEL)
    partial = _folded(begin(MODEL.api, MODEL.provider, MODEL.id, 1), [Started()])
    for piece in pieces:
        for event in parser.feed(piece):
            partial = _after(partial, reader, event)
            if partial.ended is not None:
                return partial.message
    for event in parser.finish():
        partial = _after(partial, reader, event)
    return partial.message if partial.ended is not None else _folded(partial, reader.finish()).message


def _after(partial: Partial, reader: EventReader, event: SseEvent) -> Partial:
    if partial.ended is not None:
        return partial
    try:
        parsed = reader.parse(event)
    except MalformedEvent as error:
        return _folded(partial, [Ended("error", str(error), usage=reader.usage)])
    partial = partial if parsed is None else _folded(partial, reader.read(parsed))
    return _folded(partial, reader.finish()) if reader.is_over and partial.ended is None else partial


def _begins(part: Block, whole: Block) -> bool:
    """Whether a block is the beginning of another."""
    match part, whole:
        case TextBlock(), TextBlock():
            return whole.text.startswith(part.text)
        case ThinkingBlock(), ThinkingBlock():
            return whole.thinking.startswith(part.thinking)
        case ToolCall(), ToolCall():
            return (part.id, part.name) == (whole.id, whole.name)
    return False


def _said(message: AssistantMessage) -> int:
    """How much a message says: characters of its texts, and blocks."""
    texts = [getattr(block, "text", "") + getattr(block, "thinking", "") for block in message.content]
    return sum(map(len, texts)) + len(message.content)


@pytest.mark.slow
@pytest.mark.rule("STR-35")
@pytest.mark.parametrize("name", NAMES)
def test_reply_cut_at_any_byte_ends_in_a_message_that_keeps_what_came(name: str) -> None:
    body = BODIES[name]
    whole = _read(body)
    said = 0

    for at in range(len(body)):
        message = _read(body[:at])

        assert message.stop_reason != "pending"
        assert message.stop_reason == whole.stop_reason or message.error_message
        assert len(message.content) <= len(whole.content)
        assert all(map(_begins, message.content, whole.content))
        assert said <= _said(message), f"what came before byte {at} was lost"
        said = _said(message)


@pytest.mark.slow
@pytest.mark.rule("WIRE-7")
@pytest.mark.parametrize("name", NAMES)
def test_reply_is_read_the_same_wherever_it_is_split(name: str) -> None:
    body = BODIES[name]
    whole = _read(body)

    assert _read(*[body[at : at + 1] for at in range(len(body))]) == whole
    assert all(_read(body[:at], body[at:]) == whole for at in range(len(body)))


@pytest.mark.rule("WIRE-55")
def test_cut_reply_says_what_is_missing() -> None:
    body = BODIES["an-text"]

    texts = [str(_read(body[:at]).error_message) for at in range(body.index(b'{"type":"message_stop"}'))]

    assert {text for text in texts if not text.startswith("Could not parse Anthropic SSE event ")} == {NO_STOP_REASON, NO_END}
    assert _read(body[: body.index(b"event: message_stop")]).error_message == NO_END
    assert _read(b"event: ping\ndata: {}\n\n").error_message == NO_STOP_REASON


def _events_of(body: bytes) -> list[bytes]:
    lines = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return [event + b"\n\n" for event in lines.split(b"\n\n") if event]


@pytest.mark.slow
@pytest.mark.rule("STR-35")
@pytest.mark.parametrize("name", NAMES)
async def test_connection_that_breaks_at_any_event_loses_nothing(name: str) -> None:
    events = _events_of(BODIES[name])
    whole = (await ask(anthropic(FakeHttp([FakeResponse(body=events)])))).items

    for at in range(len(events)):
        broken = await ask(anthropic(FakeHttp([FakeResponse(body=[*events[:at], HttpFailed("broken", "cut")])])))

        assert broken.items[:-1] == whole[: len(broken.items) - 1]
        assert broken.items[-1] == whole[-1] or _ended(broken).error_message == "terminated: cut"


@pytest.mark.slow
@pytest.mark.rule("STR-33")
@pytest.mark.parametrize("name", NAMES)
async def test_abort_at_any_item_keeps_content_and_usage_and_ends_once(name: str, autojump_clock: MockClock) -> None:
    pieces = [piece for event in _events_of(BODIES[name]) for piece in (event, Wait(1))]
    whole = (await ask(anthropic(FakeHttp([FakeResponse(body=pieces)])))).items

    for at in range(1, len(whole)):
        aborted = await ask(anthropic(FakeHttp([FakeResponse(body=pieces)])), abort_after=at)

        before = _folded(begin(MODEL.api, MODEL.provider, MODEL.id, 1), aborted.items[:-1]).message
        assert aborted.items[:at] == whole[:at]
        assert (_ended(aborted).stop_reason, _ended(aborted).error_message) == ("aborted", "Request was aborted")
        assert aborted.message is not None
        assert (aborted.message.content, aborted.message.usage) == (before.content, before.usage)


def _ended(asked: Asked) -> Ended:
    last = asked.items[-1]
    assert isinstance(last, Ended)
    assert not any(isinstance(item, Ended) for item in asked.items[:-1])
    return last
