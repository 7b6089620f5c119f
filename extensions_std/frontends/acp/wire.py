"""Standard output, shared by all sessions of a connection: whole lines, one after another.

A client that reads nothing for STALL_S, or whose end of the pipe is closed, is gone. What is written then is lost.
"""

from collections.abc import Callable
from typing import Final, Protocol

import attrs
import trio

from camshaft.actors.host import STALL_S

SLICE_BYTES: Final = 64 * 1024
"""Written at a time: as much as a pipe holds. Whoever reads some of it in STALL_S is at work."""


class Sink(Protocol):
    """Where the bytes go."""

    async def write(self, content: bytes | memoryview) -> None:
        """Returns when it is written. Raises OSError when nobody can read it any more."""
        ...


@attrs.define(eq=False)
class Wire:
    """Writes for several writers."""

    _sink: Sink
    _gone: Callable[[], None]
    """Called once when nobody reads any more."""
    is_broken: bool = False
    at_work: list[Callable[[], None]] = attrs.field(factory=list)
    """Told whenever the client took something: that others wait for their turn is no fault of its own."""
    _lock: trio.Lock = attrs.field(factory=trio.Lock)

    async def write(self, lines: bytes) -> None:
        """Returns when they are written, or nobody reads any more."""
        async with self._lock:
            content = memoryview(lines)
            for start in range(0, len(lines), SLICE_BYTES):
                if self.is_broken:
                    return
                await self._write_slice(content[start : start + SLICE_BYTES])

    async def _write_slice(self, content: memoryview) -> None:
        try:
            with trio.fail_after(STALL_S):
                await self._sink.write(content)
        except (OSError, trio.TooSlowError):
            self.break_off()
        for tell in self.at_work:
            tell()

    def break_off(self) -> None:
        """Nobody reads any more."""
        if not self.is_broken:
            self.is_broken = True
            self._gone()
