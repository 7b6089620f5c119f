"""The file mutation queue: who changes the same file waits for the one before (TOOL-54).

Theory of operation. A line of waiters for each real path that is being changed; the first of
a line has the file. Finding the real path takes a thread, and two requests must not overtake
each other there: `_arrivals` lets one at a time look it up and join its line. A line is
removed with its last member, so the queue holds only files in use.

Cancelled at any await, a waiter leaves its line and the next one moves up.
"""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import attrs
import trio

from camshaft.kernel import shapes


@shapes.define(eq=False)
class MutationQueue:
    """One queue for everybody who changes files of one computer."""

    _real_path: Callable[[str], Awaitable[str]]
    """The path with all links resolved; a missing end stays as it is."""
    _arrivals: trio.Lock = attrs.field(factory=trio.Lock)
    _lines: dict[str, deque[trio.Event]] = attrs.field(factory=dict)

    @asynccontextmanager
    async def holding(self, path: str) -> AsyncIterator[None]:
        """Inside, nobody else who asks this queue changes the file, through whatever link. In order of request.

        Raises OSError if the path cannot be looked up.
        """
        async with self._arrivals:
            real_path = await self._real_path(path)
            turn = self._join(real_path)
        try:
            await turn.wait()
            yield
        finally:
            self._leave(real_path, turn)

    @property
    def files_in_use(self) -> int:
        """How many files are held or waited for."""
        return len(self._lines)

    def _join(self, real_path: str) -> trio.Event:
        line = self._lines.setdefault(real_path, deque())
        turn = trio.Event()
        line.append(turn)
        line[0].set()
        return turn

    def _leave(self, real_path: str, turn: trio.Event) -> None:
        line = self._lines[real_path]
        line.remove(turn)
        if line:
            line[0].set()
        else:
            del self._lines[real_path]
