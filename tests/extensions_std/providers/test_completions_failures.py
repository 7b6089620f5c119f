"""Whatever a model server does, a request ends with one message that says what happened.

Servers here are real sockets on the loopback interface; where time matters, a fake port and a virtual clock.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from camshaft.actors.ports.http import HttpFailed, RealHttp
from camshaft.extensions_std.providers.http_errors import with_server
from camshaft.extensions_std.providers.transport import TransportLimits
from camshaft.kernel.messages import AssistantMessage, TextBlock
from camshaft.kernel.retries import is_retryable_text
from camshaft.kernel.stream import Ended, Started, TextDelta
from tests.extensions_std.providers.asking import Asked, AskSignal, FakeHttp, FakeResponse, Wait, ask, completions, local_model
from tests.extensions_std.providers.sse_server import Pause, Reply, ScriptedServer, Silence, scripted_server


def _event(delta: dict[str, object], finish: str | None = None) -> bytes:
    return f"data: {json.dumps({'id': 'r1', 'choices': [{'index': 0, 'delta': delta, 'finish_reason': finish}]})}\n\n".encode()


TEXT = _event({"content": "Hello"})
STOP = _event({}, "stop")
DONE = b"data: [DONE]\n\n"
USAGE = b'data: {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}\n\n'
GOOD = FakeResponse(body=(TEXT, STOP, DONE))


@asynccontextmanager
async def _http() -> AsyncGenerator[RealHttp, None]:
    http = RealHttp()
    try:
        yield http
    finally:
        with trio.CancelScope(shield=True):
            await http.aclose()


async def _asked(*replies: Reply, limits: TransportLimits | None = None) -> tuple[Asked, ScriptedServer]:
    async with scripted_server(*replies) as server, _http() as http:
        provider = completions(http, local_model(f"{server.base_url}/v1"), limits=limits or TransportLimits())
        with trio.fail_after(5):
            return await ask(provider), server


def _told(asked: Asked) -> tuple[str, str | None, str]:
    """Stop reason, error text and content of the final message."""
    message = asked.message
    assert isinstance(message, AssistantMessage)
    assert [type(item) for item in asked.items].count(Ended) == 1
    return message.stop_reason, message.error_message, "".join([block.text for block in message.content if isinstance(block, TextBlock)])


async def test_good_answer_is_read_to_its_done_mark() -> None:
    asked, server = await _asked(Reply(body=(TEXT, STOP, USAGE, DONE)))

    assert _told(asked) == ("stop", None, "Hello")
    assert server.requests[0].path == "/v1/chat/completions"
    assert asked.message is not None
    assert (asked.message.usage.input, asked.message.usage.output) == (7, 2)


async def test_done_mark_ends_the_stream_though_the_connection_stays_open() -> None:
    asked, _ = await _asked(Reply(body=(TEXT, STOP, DONE), end="hold"))

    assert _told(asked) == ("stop", None, "Hello")


async def test_cut_after_the_done_mark_changes_nothing() -> None:
    asked, _ = await _asked(Reply(body=(TEXT, STOP, DONE), end="cut"))

    assert _told(asked) == ("stop", None, "Hello")


async def test_missing_done_mark_is_no_error() -> None:
    asked, _ = await _asked(Reply(body=(TEXT, STOP)))

    assert _told(asked) == ("stop", None, "Hello")


async def test_missing_finish_reason_is_an_error_that_keeps_the_text() -> None:
    asked, _ = await _asked(Reply(body=(TEXT,)))

    assert _told(asked) == ("error", "Stream ended without finish_reason", "Hello")


async def test_cut_connection_is_an_error_that_is_retried() -> None:
    asked, _ = await _asked(Reply(body=(TEXT,), end="cut"))

    stop_reason, text, said = _told(asked)
    assert (stop_reason, said) == ("error", "Hello")
    assert text is not None
    assert text.startswith("terminated: RemoteProtocolError")
    assert is_retryable_text(text)


async def test_silent_server_is_left_after_the_idle_limit() -> None:
    asked, _ = await _asked(Reply(body=(TEXT, Silence())), limits=TransportLimits(idle_timeout_s=0.05))

    assert _told(asked) == ("error", "Request timed out.: ReadTimeout", "Hello")


async def test_server_that_never_answers_is_left_after_the_idle_limit() -> None:
    asked, _ = await _asked(Reply(status=0), limits=TransportLimits(idle_timeout_s=0.05))

    stop_reason, text, _ = _told(asked)
    assert (stop_reason, (text or "").partition(" (")[0]) == ("error", "Request timed out.: ReadTimeout")
    assert Started not in [type(item) for item in asked.items]


async def test_unreachable_server_names_the_low_level_cause() -> None:
    async with _http() as http:
        asked = await ask(completions(http, local_model("http://127.0.0.1:9/v1")))

    stop_reason, text, _ = _told(asked)
    assert stop_reason == "error"
    assert text is not None
    assert text.startswith("Connection error.: ConnectError")
    assert text.endswith("(provider local at http://127.0.0.1:9/v1)")
    assert is_retryable_text(text)


@pytest.mark.parametrize("url", ["https://me:secret@host:1/v1", "https://host:1/v1?key=secret", "https://host:1/v1#secret"])
def test_where_a_request_did_not_get_through_to_is_told_without_secrets(url: str) -> None:
    assert with_server("Connection error.", "local", url) == "Connection error. (provider local at https://host:1/v1)"


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (400, b'{"error": {"message": "bad", "code": 1}}', '400: {"message":"bad","code":1}'),
        (401, b'{"detail": "no"}', '401 {"detail":"no"}'),
        (429, b"slow down", "429 slow down"),
        (503, b"", "503 status code (no body)"),
        (302, b"", "302 status code (no body)"),
    ],
)
async def test_http_error_is_told_in_the_servers_words(status: int, body: bytes, text: str) -> None:
    asked, _ = await _asked(Reply(status=status, body=(body,)))

    assert _told(asked) == ("error", text, "")


async def test_error_body_that_breaks_off_is_told_as_far_as_it_came() -> None:
    asked, _ = await _asked(Reply(status=500, body=(b"half",), end="cut"))

    assert _told(asked) == ("error", "500 half", "")


@pytest.mark.parametrize("piece", [b"data: {\n\n", b"data: \xff\xfe\n\n"])
async def test_event_that_is_no_json_ends_the_stream(piece: bytes) -> None:
    asked, _ = await _asked(Reply(body=(TEXT, piece, STOP, DONE)))

    assert _told(asked) == ("error", "Error reading response: malformed server-sent event JSON.", "Hello")


@pytest.mark.parametrize("abort_after", [1, 2, 3])
async def test_abort_keeps_what_has_come_and_closes_the_connection(abort_after: int) -> None:
    async with scripted_server(Reply(body=(USAGE, TEXT, Pause(0.001), Silence()))) as server, _http() as http:
        with trio.fail_after(5):
            asked = await ask(completions(http, local_model(f"{server.base_url}/v1")), abort_after=abort_after)
            await server.disconnected.wait()

    assert _told(asked)[:2] == ("aborted", "Request was aborted")


async def test_abort_before_the_request_sends_nothing() -> None:
    http, signal = FakeHttp([GOOD]), AskSignal()
    signal.abort()

    asked = await ask(completions(http, local_model()), signal=signal)

    assert _told(asked) == ("aborted", "Request was aborted", "")
    assert http.requests == []


async def test_keep_alives_without_content_end_within_the_progress_limit(autojump_clock: MockClock) -> None:
    keep_alives = [piece for _ in range(100) for piece in (Wait(10), b": keep-alive\n\n", USAGE)]
    http = FakeHttp([FakeResponse(body=(TEXT, *keep_alives))])

    asked = await ask(completions(http, local_model()))

    assert _told(asked) == ("error", "Request timed out.: no content for 300 s, though the server kept the connection open", "Hello")
    assert trio.current_time() == pytest.approx(300)
    assert asked.message is not None
    assert asked.message.usage.input == 7


async def test_slow_content_is_no_failure(autojump_clock: MockClock) -> None:
    slow = [piece for _ in range(5) for piece in (Wait(299), TEXT)]

    asked = await ask(completions(FakeHttp([FakeResponse(body=(*slow, STOP, DONE))]), local_model()))

    assert _told(asked) == ("stop", None, "Hello" * 5)


async def test_time_a_consumer_takes_is_not_the_servers(autojump_clock: MockClock) -> None:
    provider = completions(FakeHttp([GOOD]), local_model())
    items = []

    async def emit(item: object) -> None:
        items.append(item)
        await trio.sleep(1000)

    await provider.stream(_request(provider), AskSignal(), emit)

    assert items[-1] == Ended("stop", raw_stop_reason="stop", usage=items[-1].usage)  # type: ignore[attr-defined]  # it is an Ended
    assert TextDelta(0, "Hello") in items


async def test_refused_request_is_retried_after_the_servers_delay(autojump_clock: MockClock) -> None:
    http = FakeHttp([FakeResponse(status=429, headers={"retry-after": "7"}), GOOD])

    asked = await ask(completions(http, local_model(), limits=TransportLimits(max_retries=1)))

    assert _told(asked) == ("stop", None, "Hello")
    assert trio.current_time() == pytest.approx(7)


async def test_delay_beyond_the_cap_fails_at_once(autojump_clock: MockClock) -> None:
    http = FakeHttp([FakeResponse(status=429, headers={"retry-after": "61"}, body=(b"busy",)), GOOD])

    asked = await ask(completions(http, local_model(), limits=TransportLimits(max_retries=1)))

    assert _told(asked) == ("error", "Server requested 61s retry delay (max: 60s). 429 busy", "")
    assert trio.current_time() == 0


async def test_network_failures_are_retried_with_growing_delays_until_none_is_left(autojump_clock: MockClock) -> None:
    http = FakeHttp([HttpFailed("connect", "refused")])

    asked = await ask(completions(http, local_model(), limits=TransportLimits(max_retries=5)))

    assert _told(asked) == ("error", "Connection error.: refused (provider local at http://model.test/v1)", "")
    assert len(http.requests) == 6
    assert 0.75 * 15.5 <= trio.current_time() <= 15.5


async def test_started_stream_is_never_retried() -> None:
    http = FakeHttp([FakeResponse(body=(TEXT, HttpFailed("broken", "cut")))])

    asked = await ask(completions(http, local_model(), limits=TransportLimits(max_retries=5)))

    assert _told(asked) == ("error", "terminated: cut", "Hello")
    assert len(http.requests) == 1


async def test_key_with_a_line_end_fails_without_being_shown() -> None:
    async with scripted_server(Reply()) as server, _http() as http:
        asked = await ask(completions(http, local_model(f"{server.base_url}/v1"), key="sk-canary\nsecret"))

    stop_reason, text, _ = _told(asked)
    assert stop_reason == "error"
    assert text is not None
    assert text.startswith("Invalid request: ")
    assert "canary" not in text
    assert not is_retryable_text(text)


def _request(provider: object) -> object:
    from camshaft.actors.api import ModelRequest, RequestOptions

    model = local_model()
    return ModelRequest(model=model, thinking_level="off", messages=(), options=RequestOptions())
