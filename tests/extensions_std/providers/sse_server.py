"""A scripted HTTP/1.1 server on the loopback interface: what a model server does, and what goes wrong with it.

A script is a list of `Reply`; each request takes the next one, the last is repeated. A reply's body is
a list of pieces, written one by one: bytes, `Pause(seconds)` or `Silence()` (nothing more until the client
leaves). It ends normally, is cut, or stays open. Requests are kept for assertions.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Literal

import attrs
import trio


@attrs.frozen
class Pause:
    """Nothing is written for that long."""

    seconds: float


@attrs.frozen
class Silence:
    """Nothing more is written until the client has closed the connection."""


@attrs.frozen(kw_only=True)
class Reply:
    """One scripted response; `status` 0 never answers."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", "text/event-stream"),)
    body: Sequence[bytes | Pause | Silence] = ()
    end: Literal["close", "cut", "hold"] = "close"


@attrs.frozen(kw_only=True)
class Received:
    """A request as it came over the wire."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@attrs.define(eq=False)
class ScriptedServer:
    """A running server."""

    replies: Sequence[Reply]
    choose: Callable[[Received], Reply] | None = None
    """Makes the reply to a request, instead of the script."""
    port: int = 0
    requests: list[Received] = attrs.field(factory=list)
    disconnected: trio.Event = attrs.field(factory=trio.Event)
    """Set when a client closed a connection whose response was not over."""
    received: trio.Event = attrs.field(factory=trio.Event)
    """Replaced at every request."""

    @property
    def base_url(self) -> str:
        """`http://HOST:PORT`, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answers one request of one connection, then closes it."""
        async with stream:
            try:
                request = await _request_of(stream)
            except trio.BrokenResourceError:
                return
            if request is None:
                return
            scripted = None if self.choose is not None else self.replies[min(len(self.requests), len(self.replies) - 1)]
            reply = scripted or self.choose(request)  # type: ignore[misc]  # one of the two is there
            self.requests.append(request)
            self.received.set()
            self.received = trio.Event()
            try:
                await self._answer(stream, reply)
            except trio.BrokenResourceError:
                self.disconnected.set()

    async def _answer(self, stream: trio.SocketStream, reply: Reply) -> None:
        if reply.status == 0:
            await self._until_closed(stream)
            return
        lines = [f"HTTP/1.1 {reply.status} Scripted", *[f"{name}: {value}" for name, value in reply.headers]]
        await stream.send_all("\r\n".join([*lines, "transfer-encoding: chunked", "connection: close", "", ""]).encode())
        for piece in reply.body:
            match piece:
                case Pause(seconds):
                    await trio.sleep(seconds)
                case Silence():
                    await self._until_closed(stream)
                    return
                case _ if piece:
                    await stream.send_all(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                    await trio.lowlevel.checkpoint()
        if reply.end == "close":
            await stream.send_all(b"0\r\n\r\n")
        elif reply.end == "hold":
            await self._until_closed(stream)

    async def _until_closed(self, stream: trio.SocketStream) -> None:
        while await stream.receive_some():
            pass
        self.disconnected.set()


@asynccontextmanager
async def scripted_server(*replies: Reply, choose: Callable[[Received], Reply] | None = None) -> AsyncGenerator[ScriptedServer, None]:
    """A server on a free port; leaving the context stops it and drops its connections."""
    server = ScriptedServer(replies, choose)
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    server.port = listeners[0].socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, server.serve, listeners)
        try:
            yield server
        finally:
            nursery.cancel_scope.cancel()


async def _request_of(stream: trio.SocketStream) -> Received | None:
    received = b""
    while b"\r\n\r\n" not in received:
        more = await stream.receive_some()
        if not more:
            return None
        received += more
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _version = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in [line.partition(":") for line in lines]}
    while len(body) < int(headers.get("content-length", 0)):
        body += await stream.receive_some()
    return Received(method=method, path=path, headers=headers, body=body)
