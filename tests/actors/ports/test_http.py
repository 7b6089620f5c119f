"""The HTTP port over real sockets on the loopback interface."""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Final

import pytest
import trio

from camshaft.actors.ports.http import HttpFailed, HttpRequest, RealHttp
from tests.extensions_std.providers.sse_server import Reply, Silence, scripted_server


@asynccontextmanager
async def _http() -> AsyncGenerator[RealHttp, None]:
    http = RealHttp()
    try:
        yield http
    finally:
        with trio.CancelScope(shield=True):
            await http.aclose()


async def _read(http: RealHttp, request: HttpRequest) -> tuple[int, bytes]:
    async with http.stream(request) as response, aclosing(response.chunks()) as chunks:
        return response.status, b"".join([chunk async for chunk in chunks])


async def test_request_arrives_as_it_is_and_the_response_comes_back() -> None:
    async with scripted_server(Reply(status=201, body=(b"he", b"llo"))) as server, _http() as http:
        answer = await _read(http, HttpRequest(url=f"{server.base_url}/p?q=1", headers=(("X-A", "b"),), body=b"body"))

    received = server.requests[0]
    assert answer == (201, b"hello")
    assert (received.method, received.path, received.headers["x-a"], received.body) == ("POST", "/p?q=1", "b", b"body")


async def test_a_query_is_sent_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")

    async with scripted_server(Reply()) as server, _http() as http:
        await _read(http, HttpRequest(url=f"{server.base_url}/p?key=secret"))

    assert server.requests[0].path == "/p?key=secret"
    assert "secret" not in caplog.text


ASKING: Final = """
import sys
import trio
from camshaft.actors.ports.http import HttpRequest, RealHttp

async def ask():
    http = RealHttp()
    async with http.stream(HttpRequest(url=sys.argv[1])) as response:
        print(response.status)
    await http.aclose()

trio.run(ask)
"""


@pytest.mark.slow
async def test_a_proxy_gets_the_whole_url_of_an_unencrypted_request() -> None:
    async with scripted_server(Reply(status=201)) as proxy:
        environment = {**os.environ, "HTTP_PROXY": proxy.base_url, "http_proxy": proxy.base_url, "NO_PROXY": "", "no_proxy": ""}
        done = await trio.run_process(
            [sys.executable, "-c", ASKING, "http://model.invalid/p?beta=true"], env=environment, capture_stdout=True
        )

    assert done.stdout.split() == [b"201"]
    assert proxy.requests[0].path == "http://model.invalid/p?beta=true"


async def test_headers_are_there_before_the_body() -> None:
    async with (
        scripted_server(Reply(headers=(("X-B", "c"),), body=(b"x", Silence()))) as server,
        _http() as http,
        http.stream(HttpRequest(url=server.base_url)) as response,
    ):
        assert (response.status, response.headers["x-b"]) == (200, "c")


async def test_leaving_a_response_early_closes_its_connection() -> None:
    async with scripted_server(Reply(body=(b"x", Silence()))) as server, _http() as http:
        async with http.stream(HttpRequest(url=server.base_url)):
            pass

        with trio.fail_after(5):
            await server.disconnected.wait()


async def test_cancelled_request_closes_its_connection() -> None:
    async with scripted_server(Reply(status=0)) as server, _http() as http:
        arrived = server.received
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read, http, HttpRequest(url=server.base_url))
            await arrived.wait()
            nursery.cancel_scope.cancel()

        with trio.fail_after(5):
            await server.disconnected.wait()


async def test_many_responses_at_once_do_not_wait_for_each_other() -> None:
    async with scripted_server(Reply(body=(b"x", Silence()))) as server, _http() as http, trio.open_nursery() as nursery:
        for _ in range(120):
            nursery.start_soon(_read, http, HttpRequest(url=server.base_url))
        with trio.fail_after(10):
            while len(server.requests) < 120:
                await server.received.wait()
        nursery.cancel_scope.cancel()


async def test_cookies_do_not_carry_over() -> None:
    async with scripted_server(Reply(headers=(("set-cookie", "a=b; path=/"),), body=(b"x",))) as server, _http() as http:
        for _ in range(2):
            await _read(http, HttpRequest(url=server.base_url))

    assert ["cookie" in request.headers for request in server.requests] == [False, False]


@pytest.mark.slow
async def test_local_server_is_never_reached_through_a_proxy() -> None:
    proxy = "http://127.0.0.1:9"
    environment = {**os.environ, "ALL_PROXY": proxy, "HTTP_PROXY": proxy, "http_proxy": proxy, "NO_PROXY": "", "no_proxy": ""}

    async with scripted_server(Reply(body=(b"x",))) as server:
        done = await trio.run_process([sys.executable, "-c", ASKING, server.base_url], env=environment, capture_stdout=True)

    assert done.stdout.split() == [b"200"]


@pytest.mark.parametrize("url", ["no url", "ftp://host/x", "http://", "http://host:port/x", "http://[/x"])
async def test_url_that_cannot_be_asked_fails_as_invalid(url: str) -> None:
    async with _http() as http:
        with pytest.raises(HttpFailed, match=r"^Invalid request: the url or a header cannot be sent") as caught:
            await _read(http, HttpRequest(url=url))

    assert caught.value.kind == "invalid"


def test_repr_of_a_request_shows_no_secret() -> None:
    request = HttpRequest(url="http://u:canary@h/", headers=(("authorization", "canary"),), body=b"canary")

    assert "canary" not in repr(request)
