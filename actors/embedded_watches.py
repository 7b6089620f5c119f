"""What a watch of another thread, or of asyncio, is made of: batches of moments that cross from the kernel's thread.

A watch takes what waits when it has handed out what it took, at most BATCH_MAX items; so what a slow reader gets is
still joined, and in the worst case thrown away, in the kernel's thread. A wait that is given up loses nothing.
"""

import functools
from contextlib import AbstractContextManager
from typing import Final

import attrs

from camshaft.actors.errors import KernelClosed
from camshaft.actors.portal import Portal
from camshaft.actors.watching import Gap, Moment, Snapshot, Watch
from camshaft.kernel import shapes

BATCH_MAX: Final = 64
"""Items that cross at once."""


def entered(block: AbstractContextManager[Watch]) -> Watch:
    """The watch that a block gives, to be called in the kernel's thread."""
    watch = block.__enter__()
    watch.snapshot = _whole(watch.snapshot)
    return watch


def _whole(snapshot: Snapshot) -> Snapshot:
    """With its entries read, in the kernel's thread, because what reads them on the way has caches for one thread."""
    return attrs.evolve(snapshot, entries=tuple(snapshot.entries))


async def _batch(watch: Watch) -> list[Moment | Gap]:
    """The next items, at least one; none if the watch came to its end."""
    items: list[Moment | Gap] = []
    try:
        items.append(await watch.__anext__())
        while watch.has_waiting and len(items) < BATCH_MAX:
            items.append(await watch.__anext__())  # which does not wait now
    except StopAsyncIteration:
        pass
    return [attrs.evolve(item, snapshot=_whole(item.snapshot)) if isinstance(item, Gap) else item for item in items]


@shapes.define(eq=False)
class Taken:
    """What was taken out of a watch and not handed out."""

    watch: Watch
    snapshot: Snapshot
    _items: list[Moment | Gap] = attrs.field(factory=list)
    """The last one first."""

    def keep(self, items: list[Moment | Gap]) -> None:
        """Puts a batch where nothing is left."""
        self._items = items[::-1]

    def next(self) -> Moment | Gap | None:
        """The next one, if there is one."""
        if not self._items:
            return None
        item = self._items.pop()
        if isinstance(item, Gap):
            self.snapshot = item.snapshot
        return item


@shapes.frozen(eq=False)
class BlockingWatch:
    """A watch for plain threads: `for item in watch` blocks until something happens, and ends when the conversation closes."""

    _portal: Portal
    _taken: Taken

    @property
    def snapshot(self) -> Snapshot:
        """As it was when the watch began, or at the last gap that was taken."""
        return self._taken.snapshot

    def __iter__(self) -> "BlockingWatch":
        return self

    def __next__(self) -> Moment | Gap:
        """The next moment. An exception while it blocks loses none."""
        item = self._taken.next()
        if item is not None:
            return item
        try:
            self._taken.keep(self._portal.call(functools.partial(_batch, self._taken.watch), self._taken.keep))
        except KernelClosed:
            raise StopIteration from None
        item = self._taken.next()
        if item is None:
            raise StopIteration
        return item


@shapes.frozen(eq=False)
class AsyncioWatch:
    """A watch for asyncio: `async for item in watch` ends when the conversation closes. A slow loop never slows a run."""

    _portal: Portal
    _taken: Taken

    @property
    def snapshot(self) -> Snapshot:
        """As it was when the watch began, or at the last gap that was taken."""
        return self._taken.snapshot

    def __aiter__(self) -> "AsyncioWatch":
        return self

    async def __anext__(self) -> Moment | Gap:
        """The next moment. Cancelling the wait loses none."""
        item = self._taken.next()
        if item is not None:
            return item
        try:
            self._taken.keep(await self._portal.acall(functools.partial(_batch, self._taken.watch), self._taken.keep))
        except KernelClosed:
            raise StopAsyncIteration from None
        item = self._taken.next()
        if item is None:
            raise StopAsyncIteration
        return item
