"""Files that count how many are read at once, and cancel at a call."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import attrs
import trio

from camshaft.actors.ports.files import Files
from camshaft.actors.world import World, real_world

T = TypeVar("T")


@attrs.define(eq=False)
class CountingFiles:
    """The real files behind it."""

    real: Files
    now: int = 0
    most: int = 0
    calls: int = 0
    _cancel: tuple[int, trio.CancelScope] | None = None

    def cancel_at(self, call: int, scope: trio.CancelScope) -> None:
        """Cancels `scope` when call number `call` (from 1) begins."""
        self._cancel = (call, scope)

    async def digest(self, path: str, digest: Callable[[Iterator[bytes]], T]) -> T:
        self._count()
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await self.real.digest(path, digest)
        finally:
            self.now -= 1

    async def list_folder(self, path: str) -> Any:
        self._count()
        return await self.real.list_folder(path)

    def _count(self) -> None:
        self.calls += 1
        if self._cancel is not None and self.calls == self._cancel[0]:
            self._cancel[1].cancel()


def counted(files: CountingFiles) -> World:
    """A world with these files; only what listings and searches call is there."""
    port: Any = files
    return attrs.evolve(real_world(), files=port)
