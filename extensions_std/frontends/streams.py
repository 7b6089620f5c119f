"""Standard output and standard error of a process that must keep them apart.

`take_output` moves the real standard output to a descriptor of its own and lets descriptor 1 lead to
standard error, for good: what extensions, libraries and child processes print cannot get between the records,
not even while the interpreter ends (RPC-17).

An `Output` writes in a thread, so that a reader who does not read stalls nothing but this output; who has to
wait, waits for it. A cancelled write is left to its thread, which ends with the process.
"""

import contextlib
import errno
import os
import select
import sys
from typing import Final

import attrs
import trio

IN: Final = 0
OUT: Final = 1
ERR: Final = 2
"""Descriptors."""

READ_BYTES: Final = 1024 * 1024
"""Read at most at a time."""
FULL: Final = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOBUFS)
"""What a descriptor that does not block, because another process made it so, says when it would."""
FULL_S: Final = 0.01
"""From there to the next attempt to write (RPC-90)."""

COLUMNS: Final = 80
"""Width of a terminal that does not tell."""


@attrs.define(eq=False)
class Output:
    """One descriptor, written in order."""

    fd: int
    is_terminal: bool = attrs.field(init=False)
    _lock: trio.Lock = attrs.field(factory=trio.Lock)
    _limiter: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(1))

    def __attrs_post_init__(self) -> None:
        self.is_terminal = os.isatty(self.fd)

    @property
    def columns(self) -> int:
        """Width of the terminal now; 80 where there is none."""
        try:
            return os.get_terminal_size(self.fd).columns or COLUMNS
        except OSError:
            return COLUMNS

    def is_terminal_of(self, other: "Output") -> bool:
        """Whether both are one terminal, where what is written to either stands below the other."""
        return self.is_terminal and other.is_terminal and os.fstat(self.fd).st_rdev == os.fstat(other.fd).st_rdev

    async def write(self, content: bytes | memoryview) -> None:
        """Returns when everything is written. Raises OSError, BrokenPipeError for one, when nobody can read it any more."""
        async with self._lock:
            await trio.to_thread.run_sync(_write_all, self.fd, content, abandon_on_cancel=True, limiter=self._limiter)


@attrs.define(eq=False)
class Input:
    """One descriptor, read in a thread, whatever it is: a pipe, a file, a terminal. A cancelled read is left to its thread."""

    fd: int
    _limiter: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(1))

    async def receive(self) -> bytes:
        """The next bytes; none at the end, also at that of a terminal that hung up."""
        return await trio.to_thread.run_sync(_read_some, self.fd, abandon_on_cancel=True, limiter=self._limiter)


def take_input() -> int:
    """Moves standard input away and gives its new descriptor; descriptor 0 is the null device from now on.

    What extensions and child processes read there is not what a client wrote (RPC-17, RPC-80).
    """
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        taken = os.dup(IN)
    except OSError:  # it is not open
        return nothing
    os.dup2(nothing, IN)
    os.close(nothing)
    return taken


def take_output() -> int:
    """Moves standard output away and gives its new descriptor; descriptor 1 is standard error from now on.

    A descriptor that is not open counts as the null device.
    """
    for fd in (OUT, ERR):
        try:
            os.fstat(fd)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), fd)
    sys.stdout.flush()
    taken = os.dup(OUT)
    os.dup2(ERR, OUT)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # it is the interpreter's own stream here
    return taken


def say(text: str) -> None:
    """A line on standard error; lost if nobody can read it."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def _write_all(fd: int, content: bytes | memoryview) -> None:
    rest = memoryview(content)
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except OSError as error:
            if error.errno not in FULL:
                raise
            select.select([], [], [], FULL_S)


def _read_some(fd: int) -> bytes:
    while True:
        try:
            return os.read(fd, READ_BYTES)
        except OSError as error:
            if error.errno == errno.EIO:  # a terminal that is gone
                return b""
            if error.errno not in FULL:
                raise
            select.select([fd], [], [])
