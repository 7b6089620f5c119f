"""Scenarios whose host calls come through a face: from a plain thread, or from an asyncio loop.

A scenario runs where it always runs, on Trio and virtual time, but in the thread of a face, and each operation of
the driver leaves that thread, is called through the face, and comes back. Virtual time stands still while a call is
on its way: whoever is on the way is not asleep, and a clock that jumps would say so.
"""

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import attrs
import trio
from trio.testing import MockClock

from camshaft.actors.actor import guard_now
from camshaft.actors.embedding import AsyncioSeat, BlockingSeat
from camshaft.actors.portal import Job, Portal
from tests.conformance.scenario.driver import VIRTUAL_RUN_S, play_scenario
from tests.conformance.scenario.world import fresh_folders

Send = Callable[[Callable[[], Any]], "Future[Any]"]
"""Makes a call of a face from outside of Trio."""

OWN: Final = frozenset({"request_abort", "commands"})
"""What the scenarios call inside a listener, and in reads; no face may be called there."""


@attrs.define(eq=False)
class Crossing:
    """The way through a face; counts who is on it."""

    face: Any
    send: Send
    under_way: int = 0
    calls: int = 0
    _left: trio.Event = attrs.field(factory=trio.Event)
    """Set when a call or an answer has left."""

    def faced(self, seat: Any) -> Any:
        return FacedSeat(seat, self.face(seat), self)

    async def arrived(self) -> None:
        while self.under_way:
            await trio.lowlevel.checkpoint()

    async def cross(self, call: Callable[[], Any]) -> Any:
        done, token = trio.Event(), trio.lowlevel.current_trio_token()
        self.calls += 1
        self.leave()  # until the job begins
        future = self.send(call)
        future.add_done_callback(lambda _future: guard_now(token.run_sync_soon, done.set))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_awake, done)
            await done.wait()
            nursery.cancel_scope.cancel()
        self.under_way -= 1  # since the job ended
        return future.result()

    def leave(self) -> None:
        self.under_way += 1
        self._left.set()

    async def _keep_awake(self, done: trio.Event) -> None:
        while not done.is_set():
            if self.under_way:
                await trio.lowlevel.checkpoint()
            else:
                self._left = trio.Event() if self._left.is_set() else self._left
                await self._left.wait()


@attrs.define(eq=False)
class MarkedPortal(Portal):
    """Notes when a call has arrived in Trio, and when its answer leaves."""

    crossing: Crossing | None = None

    def send(self, job: Job) -> None:
        if self.crossing is not None:
            job.call = functools.partial(self._marked, self.crossing, job.call)
        super().send(job)

    async def _marked(self, crossing: Crossing, call: Callable[[], Any]) -> Any:
        crossing.under_way -= 1
        try:
            answer = call()
            return await answer if inspect.isawaitable(answer) else answer
        finally:
            crossing.leave()


@attrs.frozen(eq=False)
class FacedSeat:
    """A seat whose operations are called through a face; what is only read is the seat's own."""

    _seat: Any
    _face: Any
    _crossing: Crossing

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._seat, name)
        if name in OWN or not callable(own) or not hasattr(type(self._face), name):
            return own
        return lambda *args, **kwargs: self._crossing.cross(functools.partial(getattr(self._face, name), *args, **kwargs))


@contextmanager
def threads() -> Iterator[Send]:
    """Each call from a thread of a pool, with the context variables of whoever asked."""
    with ThreadPoolExecutor(16) as pool:
        yield lambda call: pool.submit(contextvars.copy_context().run, call)


@contextmanager
def loop() -> Iterator[Send]:
    """Each call from a task of one asyncio loop."""
    running = asyncio.new_event_loop()
    thread = threading.Thread(target=running.run_forever)
    thread.start()
    try:
        yield lambda call: asyncio.run_coroutine_threadsafe(call(), running)
    finally:
        running.call_soon_threadsafe(running.stop)
        thread.join()
        running.close()


FACES: Final[Mapping[str, tuple[Any, Any]]] = {"blocking": (BlockingSeat, threads), "asyncio": (AsyncioSeat, loop)}


def run_through(kind: str, scenario: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """The trace of a scenario whose operations come through a face, and how many of them did."""
    seat_type, host = FACES[kind]
    portal = MarkedPortal(clock=MockClock(autojump_threshold=0))
    with host() as send, fresh_folders() as folders:
        portal.start()
        try:
            crossing = Crossing(functools.partial(seat_type, portal), send)
            playing = functools.partial(play_scenario, scenario, folders, VIRTUAL_RUN_S, crossing)
            trace: dict[str, Any] = portal.call(functools.partial(_marking, portal, crossing, playing))
        finally:
            portal.crossing = None
            portal.close()
    return trace, crossing.calls


async def _marking(portal: MarkedPortal, crossing: Crossing, playing: Callable[[], Any]) -> Any:
    portal.crossing = crossing
    return await playing()
