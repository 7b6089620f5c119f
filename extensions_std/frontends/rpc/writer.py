"""The one writer of standard output: events and answers in the order in which they became true (RPC-89, RPC-90).

Answers stand between the events in the follower's queue, so that what became true first is read first. A client that
does not read holds a run up at its next step; one that takes nothing for long, or lets far too much pile up, counts as
gone, and so does one whose end of the pipe is closed.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

import attrs
import trio

from camshaft.actors.host import STALL_S, Event, Follower, FollowerStalled
from camshaft.extensions_std.frontends.rpc.records import event_record, line_of

SLICE_BYTES: Final = 64 * 1024
"""Written at a time: as much as a pipe holds. Whoever reads some of it in STALL_S is at work."""
WAITING_MAX: Final = 100_000
"""Events and answers that wait for a client; one that lets more pile up does not read."""
UNWRITTEN_MAX: Final = 50_000
"""Of these, before further commands wait until there are less."""
UNWRITTEN_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes of answers that wait, before further commands do."""


class Sink(Protocol):
    """Where the bytes go."""

    async def write(self, content: bytes | memoryview) -> None:
        """Returns when it is written. Raises OSError when nobody can read it any more."""
        ...


@attrs.define(eq=False)
class Writer:
    """Writes what the follower is given."""

    follower: Follower[bytes]
    _out: Sink
    _new_id: Callable[[], str]
    _gone: Callable[[], None]
    """Called once when nobody reads any more."""
    is_broken: bool = False
    _answers_bytes: int = 0
    """Of answers that are not written yet."""
    _wrote: trio.Event = attrs.field(factory=trio.Event)
    """Set when something was written, and when nobody reads any more; then there is another one."""
    _finished: trio.Event = attrs.field(factory=trio.Event)
    _patience: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    """Around the wait of `drain`."""

    def send(self, record: dict[str, Any]) -> None:
        """Puts an answer behind the events so far."""
        line = line_of(record)
        self._answers_bytes += len(line)
        self.follower.put(line)
        self.check()

    def check(self) -> None:
        """Gives a client up that lets everything pile up; to be called when something was put."""
        if self.follower.waiting > WAITING_MAX:
            self._break()

    async def wait_for_room(self) -> None:
        """Returns when answers have room, or nobody reads any more."""
        while self._is_full and not self.is_broken:
            await self._wrote.wait()

    @property
    def _is_full(self) -> bool:
        return self._answers_bytes > UNWRITTEN_BYTES_MAX or self.follower.waiting > UNWRITTEN_MAX

    async def serve(self) -> None:
        """Until the follower is closed and everything is written, or nobody reads any more."""
        try:
            async for item in self.follower:
                await self._write(item)
        except (OSError, FollowerStalled):
            self._break()
        self._finished.set()

    async def drain(self) -> None:
        """From here on nothing is put; returns when the rest is written, or nobody took any of it for STALL_S."""
        self.follower.close()
        self._renew()
        with self._patience:
            await self._finished.wait()

    async def _write(self, item: Event | bytes) -> None:
        """Writes an item, and what waits behind it, as far as it fits into a slice."""
        lines, size, answers = list[bytes](), 0, 0
        while True:
            lines.append(self._line(item))
            size += len(lines[-1])
            answers += len(item) if isinstance(item, bytes) else 0
            if size >= SLICE_BYTES or not self.follower.waiting:
                break
            item = await anext(self.follower)
        content = memoryview(b"".join(lines))
        for start in range(0, size, SLICE_BYTES):
            await self._out.write(content[start : start + SLICE_BYTES])
            self.follower.progress()
            self._renew()
        self._answers_bytes -= answers
        self._tell_wrote()

    def _line(self, item: Event | bytes) -> bytes:
        if isinstance(item, bytes):
            return item
        record = event_record(item, self._new_id)
        return b"" if record is None else line_of(record)

    def _renew(self) -> None:
        self._patience.deadline = trio.current_time() + STALL_S

    def _break(self) -> None:
        if not self.is_broken:
            self.is_broken = True
            self._tell_wrote()
            self._gone()

    def _tell_wrote(self) -> None:
        self._wrote.set()
        self._wrote = trio.Event()
