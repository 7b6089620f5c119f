"""The wire beneath an adapter, scripted in the process (FAUX-26)."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from camshaft.actors.api import HttpFailed, HttpRequest
from camshaft.extensions_std.providers.scripted import assistant, text, thinking, tool_call
from camshaft.extensions_std.providers.scripted_http import (
    Cut,
    HttpAnswer,
    Pause,
    ScriptedHttp,
    Silence,
    json_answer,
    split_at,
    split_every,
    with_pauses,
)
from camshaft.extensions_std.providers.scripted_wire import STREAMS, completions_stream, wire_stream
from camshaft.extensions_std.providers.sse import SseParser
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from camshaft.extensions_std.providers.wire_provider import WireProvider
from camshaft.kernel.messages import AssistantMessage, TextBlock, ThinkingBlock, ToolCall, Usage
from camshaft.kernel.models import Model
from tests.extensions_std.providers.asking import AskSignal, ask

REQUEST = HttpRequest(url="http://model.test/v1", idle_timeout_s=300)

CALLING = assistant(
    [thinking("Let me see what there is."), text("Reading 😀 it."), tool_call("read", {"path": "ä" * 20}, id="c1|fc_9")],
    stop_reason="toolUse",
    usage=Usage(input=7, output=5, cache_read=2, cache_write=1, total_tokens=15),
)


def _provider(http: ScriptedHttp, api: str) -> WireProvider:
    model = Model(id="scripted", provider="local", api=api, base_url="http://model.test/v1", reasoning=True)
    return WireProvider(name="local", models=(model,), apis=WIRE_APIS, http=http)


async def _read(http: ScriptedHttp, request: HttpRequest = REQUEST) -> tuple[int, bytes]:
    async with http.stream(request) as response:
        return response.status, b"".join([chunk async for chunk in response.chunks()])


def _said(message: AssistantMessage | None) -> list[Any]:
    """Content without what only one API knows."""
    assert message is not None
    said: list[Any] = []
    for block in message.content:
        match block:
            case TextBlock():
                said.append(block.text)
            case ThinkingBlock():
                said.append(("thinks", block.thinking))
            case ToolCall():
                said.append((block.id.partition("|")[0], block.name, block.arguments))
    return said


@pytest.mark.rule("FAUX-26")
@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("api", sorted(WIRE_APIS))
async def test_adapter_reads_what_the_message_says_however_it_is_split(api: str, size: int) -> None:
    http = ScriptedHttp([HttpAnswer(body=split_every(wire_stream(api, CALLING), size))])

    message = (await ask(_provider(http, api))).message

    assert _said(message)[:2] == [("thinks", "Let me see what there is."), "Reading 😀 it."]
    assert _said(message)[2][1:] == ("read", {"path": "ä" * 20})
    assert message is not None
    assert (message.stop_reason, message.error_message) == ("toolUse", None)
    usage = message.usage
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == (7, 5, 2, 1)
    http.assert_exhausted()


@pytest.mark.parametrize("api", sorted(WIRE_APIS))
@pytest.mark.parametrize(("step", "ended"), [(assistant("cut", stop_reason="length"), "length"), (assistant("x"), "stop")])
async def test_stop_reasons_arrive(api: str, step: AssistantMessage, ended: str) -> None:
    message = (await ask(_provider(ScriptedHttp([HttpAnswer(body=wire_stream(api, step))]), api))).message

    assert message is not None
    assert (message.stop_reason, _said(message)) == (ended, _said(step))


@pytest.mark.parametrize("api", sorted(WIRE_APIS))
async def test_an_error_inside_a_stream_arrives(api: str) -> None:
    step = assistant("half", stop_reason="error", error_message="overloaded_error")

    message = (await ask(_provider(ScriptedHttp([HttpAnswer(body=wire_stream(api, step))]), api))).message

    assert message is not None
    assert message.stop_reason == "error"
    assert "overloaded_error" in (message.error_message or "")
    assert _said(message) == ["half"]


@pytest.mark.parametrize("api", sorted(STREAMS))
def test_every_stream_is_events_that_end(api: str) -> None:
    parser = SseParser()

    events = parser.feed(wire_stream(api, CALLING))

    assert len(events) > 10
    assert parser.finish() == []


@pytest.mark.parametrize("api", sorted(STREAMS))
def test_what_no_server_says_is_refused(api: str) -> None:
    with pytest.raises(ValueError, match="stop_reason is 'aborted'; a server says stop, length, toolUse or error"):
        wire_stream(api, assistant("x", stop_reason="aborted"))
    with pytest.raises(ValueError, match="api is 'other'; expected one of"):
        wire_stream("other", assistant("x"))


async def test_answers_are_taken_in_order_by_the_requests_they_are_for() -> None:
    http = ScriptedHttp(
        [
            HttpAnswer(body=b"models", test=lambda request: request.method == "GET", repeats=True),
            HttpAnswer(body=b"one", headers={}),
            json_answer(429, b'{"error": {}}', {"retry-after": "1"}),
        ]
    )

    read = [await _read(http, request) for request in (REQUEST, HttpRequest(method="GET", url="http://x"), REQUEST)]

    assert read == [(200, b"one"), (200, b"models"), (429, b'{"error": {}}')]
    assert [request.method for request in http.requests] == ["POST", "GET", "POST"]
    http.assert_exhausted()


async def test_request_without_an_answer_fails_to_connect_and_is_told() -> None:
    http = ScriptedHttp([HttpAnswer(body=b"never", test=lambda _request: False)])

    with pytest.raises(HttpFailed, match="no scripted HTTP answer is left"):
        await _read(http)
    with pytest.raises(AssertionError, match="1 scripted HTTP answers were not requested; 1 of 1 HTTP requests found no scripted answer"):
        http.assert_exhausted()


BROKEN: list[tuple[Any, str, float]] = [
    (HttpFailed("connect", "refused"), "Connection error.: refused", 0),
    (HttpAnswer(body=(b"a", Cut())), "terminated: RemoteProtocolError", 0),
    (HttpAnswer(body=(b"a", Silence())), "Request timed out.: ReadTimeout", 300),
    (HttpAnswer(body=(b"a", Pause(200), Pause(200), b"b")), "Request timed out.: ReadTimeout", 300),
    (HttpAnswer(delay_s=400), "Request timed out.: ReadTimeout", 300),
]


@pytest.mark.parametrize(("answer", "told", "after_s"), BROKEN)
async def test_connections_break_as_real_ones_do(answer: Any, told: str, after_s: float, autojump_clock: MockClock) -> None:
    with pytest.raises(HttpFailed, match=told):
        await _read(ScriptedHttp([answer]))

    assert trio.current_time() == pytest.approx(after_s)


async def test_pauses_below_the_limit_take_their_time(autojump_clock: MockClock) -> None:
    body = with_pauses(split_at(b"abcdef", 2, 4), 200)

    assert await _read(ScriptedHttp([HttpAnswer(body=body)])) == (200, b"abcdef")
    assert trio.current_time() == pytest.approx(600)


async def test_aborted_request_leaves_its_response(autojump_clock: MockClock) -> None:
    pieces = split_every(completions_stream(assistant("0123456789" * 9)), 40)
    http = ScriptedHttp([HttpAnswer(body=(*pieces[:8], Silence()))])

    asked = await ask(_provider(http, "openai-completions"), abort_after=3, signal=None)

    assert asked.message is not None
    assert asked.message.stop_reason == "aborted"
    assert http.left_count == 1


@pytest.mark.parametrize("body", ["text", [b"a", "text"], [None]])
def test_a_body_is_made_of_bytes(body: Any) -> None:
    with pytest.raises(TypeError, match="expected bytes, Pause, Silence or Cut"):
        HttpAnswer(body=body)


def test_what_is_no_answer_is_refused() -> None:
    with pytest.raises(TypeError, match="an answer is b'a'; expected HttpAnswer"):
        ScriptedHttp([b"a"])  # type: ignore[list-item]  # the mistake


def test_pieces_are_of_at_least_one_byte() -> None:
    with pytest.raises(ValueError, match="size is 0; expected at least 1"):
        split_every(b"a", 0)


async def test_a_signal_set_before_sends_nothing() -> None:
    signal, http = AskSignal(), ScriptedHttp()
    signal.abort()

    await ask(_provider(http, "openai-completions"), signal=signal)

    assert http.requests == []
