"""A coroutine of asyncio that a task of Trio waits for: how tools of an asyncio host run in the host's loop.

Giving it up cancels its asyncio task and waits for it, KILL_AFTER_S at most: code that does not end when it is
cancelled is given up here as it is everywhere. A loop that is closed tells nobody; so whoever waits looks.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

import attrs
import trio

from camshaft.actors.actor import KILL_AFTER_S, guard, guard_now
from camshaft.kernel import shapes

T = TypeVar("T")

LOOP_LOOK_S: Final = 1.0
"""How often somebody who waits looks whether the loop was closed."""


@shapes.define(eq=False)
class OnLoop(Generic[T]):
    """A coroutine of asyncio that a task of Trio waits for."""

    _loop: asyncio.AbstractEventLoop
    _function: Callable[[], Awaitable[T]]
    _context: contextvars.Context = attrs.field(factory=contextvars.copy_context)
    _token: trio.lowlevel.TrioToken = attrs.field(factory=trio.lowlevel.current_trio_token)
    _done: trio.Event = attrs.field(factory=trio.Event)
    _task: asyncio.Task[T] | None = None

    async def result(self) -> T:
        """What it gives. Raises what it raises, RuntimeError if its loop or its task ends first."""
        self._post(self._begin)
        try:
            await self._ended()
        except trio.Cancelled:
            guard_now(self._post, self._cancel)  # a loop that was closed runs nothing that could be cancelled
            with trio.move_on_after(KILL_AFTER_S, shield=True):
                await guard(self._ended)
            raise
        if self._task is None or self._task.cancelled():
            raise RuntimeError("the asyncio task that does this was cancelled")
        return self._task.result()

    async def _ended(self) -> None:
        while not self._done.is_set():
            with trio.move_on_after(LOOP_LOOK_S):
                await self._done.wait()
            if not self._done.is_set() and self._loop.is_closed():
                raise RuntimeError("the asyncio loop that does this was closed")

    def _post(self, callback: Callable[[], object]) -> None:
        if self._loop.is_closed():
            raise RuntimeError("the asyncio loop that does this was closed")
        self._loop.call_soon_threadsafe(callback)

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._run(), context=self._context)
        self._task.add_done_callback(self._tell)

    async def _run(self) -> T:
        return await self._function()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _tell(self, _task: object) -> None:
        try:
            self._token.run_sync_soon(self._done.set)
        except trio.RunFinishedError:  # nobody waits
            pass
