"""RPC mode: one conversation for one client, from before it opens to the exit code (RPC-19, RPC-20, RPC-91 to RPC-97)."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import attrs
import trio

from camshaft.actors.host import DiagnosticEvent, DialogOpened, Event, Follower, OpenOptions, Seat, WatchedUi
from camshaft.extensions_std.frontends.rpc.acting import Keep
from camshaft.extensions_std.frontends.rpc.server import Server, Source
from camshaft.extensions_std.frontends.rpc.writer import Sink, Writer
from camshaft.extensions_std.frontends.streams import say

HOOKS_S: Final = 0.8
"""For shutdown hooks after the end of the input (RPC-95)."""
GRACE_S: Final = 0.3
"""For what runs to stop by itself after the end of the input."""
OPENING_S: Final = 5.0
"""For the conversation to open after the end of the input; what extensions ask is cancelled at once."""

Open = Callable[[OpenOptions], Awaitable[Seat | None]]
"""Opens the conversation and tells what is wrong; None if it cannot be used."""


@attrs.frozen(kw_only=True)
class Ports:
    """What RPC mode is connected to."""

    source: Source
    sink: Sink
    name: str | None = None
    """For the session, before the client can ask for it: no event tells of it."""
    keep: Keep
    new_id: Callable[[], str]
    ending: Callable[[], None]
    """Called when an orderly end begins: from here on a first signal adds nothing (RPC-94)."""


async def run(options: OpenOptions, open_seat: Open, ports: Ports) -> int:
    """The exit code: 0 after an orderly end, 1 if nobody read what was written, or the conversation could not be opened."""
    follower, ui = Follower[bytes](), WatchedUi()
    writer = Writer(follower, ports.sink, ports.new_id, lambda: server.gone())
    server = Server(ports.source, writer, ui, ports.keep)
    told, dialogs = _Told(), _News()

    def hear(event: Event) -> None:
        told.hear(event)
        writer.check()
        if isinstance(event, DialogOpened):
            dialogs.tell()

    options = attrs.evolve(
        options,
        ui=ui,
        followers=(*options.followers, follower),
        listeners=(*options.listeners, hear),
        on_shutdown=server.ask_end,
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.read)
        nursery.start_soon(writer.serve)
        seat = await _opened(partial(open_seat, options), server, ui, dialogs)
        code = 1
        if seat is not None:
            if ports.name is not None:
                follower.is_deaf = True
                seat.set_session_name(ports.name)
                follower.is_deaf = False
            code = await _served(seat, server, writer, ports)
        nursery.cancel_scope.cancel()
    return code


async def _opened(open_seat: Callable[[], Awaitable[Seat | None]], server: Server, ui: WatchedUi, dialogs: "_News") -> Seat | None:
    """The conversation; None if it cannot be used, or did not open in time after the end of the input."""
    seat: Seat | None = None
    async with trio.open_nursery() as nursery:

        async def hurry() -> None:
            await server.wait_read()
            nursery.cancel_scope.deadline = trio.current_time() + OPENING_S
            while True:  # nobody can answer any more
                for dialog in ui.dialogs:
                    ui.cancel(dialog.id)
                await dialogs.wait()

        nursery.start_soon(hurry)
        seat = await open_seat()
        nursery.cancel_scope.cancel()
    return seat


async def _served(seat: Seat, server: Server, writer: Writer, ports: Ports) -> int:
    if not server.is_end_asked:
        await server.serve(seat)
    ports.ending()
    if server.end == "gone":
        return 1
    seat.request_abort()
    await writer.drain()
    if server.end == "input":
        with trio.move_on_after(GRACE_S):
            await seat.abort()
        await seat.close(at_once=True, shutdown_s=HOOKS_S)
    return 1 if writer.is_broken else 0


@attrs.define(eq=False)
class _News:
    """Something happened since one began to wait."""

    _event: trio.Event = attrs.field(factory=trio.Event)

    def tell(self) -> None:
        """It did."""
        self._event.set()
        self._event = trio.Event()

    async def wait(self) -> None:
        """Until it does."""
        await self._event.wait()


@attrs.define(eq=False)
class _Told:
    """Diagnostics on standard error, each once for the process (RPC-18)."""

    _said: set[tuple[str, str]] = attrs.field(factory=set)

    def hear(self, event: Event) -> None:
        """A listener."""
        if isinstance(event, DiagnosticEvent) and (event.source, event.message) not in self._said:
            self._said.add((event.source, event.message))
            say(f"Warning: {event.source}: {event.message}")
