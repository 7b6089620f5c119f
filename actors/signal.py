"""The abort of a run: a cooperative request first, an end by force after a grace.

*Ask*: the flag is set and everybody who waits for it is woken. After the grace the scopes of
what still runs are *cancelled* (tools then kill their process groups), and what does not end
even then is *abandoned* (actor.py). Without a grace the first stage never ends (LOOP-61).
Code that starts after the request gets the same grace from its start.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import attrs
import trio

from camshaft.actors.actor import Bounds
from camshaft.kernel import shapes
from camshaft.kernel.tools import Signal

ABORT_GRACE_S: Final = 10.0
"""Default of the first stage: long enough for a tool to tidy up, short enough for a person to wait (LOOP-71)."""


@shapes.define(eq=False)
class AbortSignal:
    """The signal of one run; handlers, tools and adapters see `cancelled` and `wait()`."""

    grace_s: float | None = ABORT_GRACE_S
    """Seconds; None waits for ever, which is the reference's behaviour."""
    cancelled: bool = False
    _requested: trio.Event = attrs.field(factory=trio.Event)
    _running: dict[int, Bounds] = attrs.field(factory=dict)
    _children: "list[AbortSignal]" = attrs.field(factory=list)

    async def wait(self) -> None:
        """Returns when an abort is requested, at once if it was."""
        await self._requested.wait()

    def request(self) -> None:
        """Ask everybody to stop; start the grace of what runs. Idempotent."""
        if self.cancelled:
            return
        self.cancelled = True
        self._requested.set()
        if self.grace_s is not None:
            for bounds in self._running.values():
                bounds.end_after(self.grace_s)
        for child in self._children:
            child.request()

    def force(self) -> None:
        """End by force what runs and whatever starts from now on: the hosting scope was cancelled (LOOP-71)."""
        self.grace_s = 0
        self.request()
        for bounds in self._running.values():
            bounds.end_after(0)
        for child in self._children:
            child.force()

    @contextmanager
    def child(self) -> Iterator["AbortSignal"]:
        """A signal for a part of the work: set with this one, or alone."""
        made = AbortSignal(self.grace_s)
        self._children.append(made)
        if self.cancelled:
            made.request()
        try:
            yield made
        finally:
            self._children.remove(made)

    @contextmanager
    def bounded(self) -> Iterator[Bounds]:
        """Bounds for one piece of foreign code, ended by the stages of this signal."""
        bounds = Bounds()
        if self.cancelled and self.grace_s is not None:
            bounds.end_after(self.grace_s)
        self._running[id(bounds)] = bounds
        try:
            yield bounds
        finally:
            del self._running[id(bounds)]


@asynccontextmanager
async def followed(asked: Signal | None, grace_s: float | None) -> AsyncIterator[AbortSignal]:
    """A signal for the block, set with the one that somebody gave, of whatever kind that is."""
    made = AbortSignal(grace_s)
    async with trio.open_nursery() as nursery:
        if asked is not None:
            nursery.start_soon(_follow, asked, made)
        yield made
        nursery.cancel_scope.cancel()


async def _follow(asked: Signal, signal: AbortSignal) -> None:
    await asked.wait()
    signal.request()
