"""Handlers watch and change a request at the places the specification names."""

from collections.abc import Mapping
from typing import Any

import pytest
import trio

from camshaft.actors.api import ModelRequest, RequestHooks, RequestOptions
from camshaft.extensions_std.providers.transport import TransportLimits
from camshaft.kernel.codec import loads
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.stream import Ended
from tests.extensions_std.providers.asking import HELLO, AskSignal, FakeHttp, FakeResponse, completions, local_model

DONE = FakeResponse(body=(b'data: {"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n',))


async def _asked(http: FakeHttp, hooks: RequestHooks, **options: Any) -> Ended:
    items: list[Any] = []

    async def emit(item: object) -> None:
        await trio.lowlevel.checkpoint()
        items.append(item)

    model = local_model(headers=FrozenDict({"X-Team": "blue", "X-Kept": "1"}))
    request = ModelRequest(model=model, thinking_level="off", messages=HELLO, options=RequestOptions(**options), hooks=hooks)
    provider = completions(http, model, headers={"X-Own": "o"}, limits=TransportLimits(max_retries=1))
    await provider.stream(request, AskSignal(), emit)
    ended: Ended = items[-1]
    return ended


async def test_header_handlers_see_own_headers_and_have_the_last_word() -> None:
    seen: list[Mapping[str, object]] = []

    async def on_headers(headers: FrozenDict) -> FrozenDict:
        await trio.lowlevel.checkpoint()
        seen.append(headers)
        return FrozenDict({"x-team": "red", "X-Own": None, "User-Agent": "mine", "authorization": None})

    http = FakeHttp([DONE])
    await _asked(http, RequestHooks(on_headers=on_headers), headers=FrozenDict({"x-team": "green"}))

    assert seen == [{"x-team": "green", "X-Kept": "1", "X-Own": "o"}]
    assert dict(http.requests[0].headers) == {
        "user-agent": "mine",
        "accept": "application/json",
        "content-type": "application/json",
        "x-team": "red",
    }


async def test_payload_handlers_replace_the_body_which_still_streams() -> None:
    async def on_payload(payload: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return {"model": payload["model"], "stream": False}

    http = FakeHttp([DONE])
    await _asked(http, RequestHooks(on_payload=on_payload))

    assert loads(http.requests[0].body) == {"model": "m", "stream": True}


async def test_every_response_is_seen_also_one_that_is_retried(autojump_clock: object) -> None:
    seen: list[int] = []

    async def on_response(status: int, _headers: Mapping[str, str]) -> None:
        await trio.lowlevel.checkpoint()
        seen.append(status)

    ended = await _asked(FakeHttp([FakeResponse(status=429), DONE]), RequestHooks(on_response=on_response))

    assert seen == [429, 200]
    assert ended.stop_reason == "stop"


async def test_stream_events_are_seen_before_they_are_normalised() -> None:
    seen: list[Any] = []

    async def on_stream_event(event: Any) -> None:
        await trio.lowlevel.checkpoint()
        seen.append(event)

    await _asked(FakeHttp([DONE]), RequestHooks(on_stream_event=on_stream_event))

    assert seen == [{"choices": ({"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"},)}]


async def test_handler_that_raises_fails_the_request() -> None:
    async def on_response(_status: int, _headers: Mapping[str, str]) -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError("broken handler")

    with pytest.RaisesGroup(pytest.RaisesExc(ValueError, match="broken handler")):
        await _asked(FakeHttp([DONE]), RequestHooks(on_response=on_response))
