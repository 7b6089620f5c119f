"""Output of a command while it comes: bounded in memory, complete in a spill file once it is long (TOOL-53, TOOL-76, TOOL-77).

Theory of operation. Kept in memory are the first and the last HALF_BYTES of the output, and
counters. From them come the tail for the model (the last piece is far longer than its limit),
the text for programs, and, until the limits are passed, the whole output. From then on all
raw bytes go to the spill file, in pieces of SPILL_BYTES or whenever SPILL_S have gone by, in a
thread: the reader of the pipe waits for it, and so does a command that prints faster than the
disk writes. A disk that refuses costs the file, not the command.
"""

import codecs
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import attrs
import trio

from camshaft.actors.ports.files import Files, PrivateFile
from camshaft.actors.world import World
from camshaft.kernel import shapes
from camshaft.kernel.truncate import LINES_MAX, OUTPUT_BYTES_MAX, Truncation, size_of, truncate_tail

HALF_BYTES: Final = 512 * 1024
"""Each of the two ends of a long output that programs get (TOOL-77)."""

WINDOW_BYTES: Final = 4 * OUTPUT_BYTES_MAX
"""End of the output the tail is taken from: longer than the tail by more than one line of it could be."""

SPILL_BYTES: Final = 64 * 1024
"""One write to the spill file; a thread costs more than this many bytes."""

SPILL_S: Final = 0.1
"""Longest time output waits for more before it is written, while output comes."""


OpenSpill = Callable[[], Awaitable[PrivateFile]]
"""Makes the spill file, when it is needed. Raises OSError."""


@shapes.frozen(kw_only=True)
class ProgramOutput:
    """What programs get of the output."""

    text: str
    truncated: bool
    """Whether the middle was left out."""


def spill_opener(world: World, environment: Mapping[str, str], prefix: str, files: Files | None = None) -> OpenSpill:
    """Makes `<prefix>-<16 hex>.log` in the temporary folder that the environment names (TOOL-53)."""

    async def open_spill() -> PrivateFile:
        folder = environment.get("TMPDIR") or environment.get("TEMP") or environment.get("TMP") or "/tmp"
        return await (files or world.files).create_private(f"{folder.rstrip('/')}/{prefix}-{world.ids.token()}.log")

    return open_spill


@shapes.define(eq=False)
class CapturedOutput:
    """Takes chunks of bytes, gives texts. Whoever made it closes it."""

    _open_spill: OpenSpill
    spill_path: str | None = None
    """Set once the output passed a limit and the file was made."""
    spill_error: OSError | None = None
    """Why the spill file is missing or ends early."""
    _head: bytearray = attrs.field(factory=bytearray)
    _rest: bytearray = attrs.field(factory=bytearray)
    _raw_size: int = 0
    _size: int = 0
    """Bytes of the output as text, where a bad byte counts as U+FFFD."""
    _newlines: int = 0
    _line_size: int = 0
    _line_before_size: int = 0
    _decoder: codecs.IncrementalDecoder = attrs.field(factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"))
    _unspilled: bytearray = attrs.field(factory=bytearray)
    _spill: PrivateFile | None = None
    _spilled_s: float = -math.inf

    async def add(self, chunk: bytes) -> None:
        """The next piece. Cancelled, it has taken the piece all the same; the spill file may lack it until `finish`."""
        self._keep(chunk)
        self._count(self._decoder.decode(chunk))
        if self.spill_error is None:
            self._unspilled += chunk
            now = trio.current_time()
            if self._over_limit() and (len(self._unspilled) >= SPILL_BYTES or now - self._spilled_s >= SPILL_S):
                await self._write_spill()
                self._spilled_s = now

    async def finish(self) -> None:
        """No more output comes: the counters and the spill file are complete."""
        self._count(self._decoder.decode(b"", final=True))
        if self._over_limit() and self.spill_error is None:
            await self._write_spill()

    def close(self) -> None:
        """Gives the handle of the spill file back; the file stays. Harmless twice."""
        if self._spill is not None:
            self._spill.close()
            self._spill = None

    @property
    def last_line_size(self) -> int:
        """Bytes of the last line, without its newline."""
        return self._line_size or self._line_before_size

    def tail(self) -> Truncation:
        """What the model gets of the output so far; the record counts all of it."""
        cut = truncate_tail(self._end(WINDOW_BYTES))
        if self._raw_size <= WINDOW_BYTES:
            return cut
        return attrs.evolve(cut, total_lines=self._newlines + (self._line_size > 0), total_bytes=self._size)

    def for_programs(self) -> ProgramOutput:
        """All of the output, or both its ends with a mark between them."""
        omitted = self._raw_size - 2 * HALF_BYTES
        if omitted <= 0:
            return ProgramOutput(text=bytes(self._head + self._rest).decode("utf-8", "replace"), truncated=False)
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._head))
        return ProgramOutput(text=f"{head}\n\n[... {omitted} bytes left out ...]\n\n{self._end(HALF_BYTES)}", truncated=True)

    def _keep(self, chunk: bytes) -> None:
        self._raw_size += len(chunk)
        room = HALF_BYTES - len(self._head)
        self._head += chunk[:room]
        self._rest += chunk[room:]
        if len(self._rest) > 2 * HALF_BYTES:
            del self._rest[:-HALF_BYTES]

    def _count(self, text: str) -> None:
        self._size += size_of(text)
        lines = text.split("\n")
        self._newlines += len(lines) - 1
        if len(lines) > 1:
            self._line_before_size = size_of(lines[-2]) + (self._line_size if len(lines) == 2 else 0)
            self._line_size = 0
        self._line_size += size_of(lines[-1])

    def _over_limit(self) -> bool:
        return self._size > OUTPUT_BYTES_MAX or self._newlines + (self._line_size > 0) > LINES_MAX

    def _end(self, size_bytes: int) -> str:
        """The last bytes as text; a character that the cut halves is left out."""
        raw = bytes(self._rest[-size_bytes:])
        if len(raw) < size_bytes:
            raw = bytes(self._head[len(raw) - size_bytes :]) + raw
        if len(raw) < self._raw_size:
            start = 0
            while start < min(3, len(raw)) and raw[start] & 0xC0 == 0x80:
                start += 1
            raw = raw[start:]
        return raw.decode("utf-8", "replace")

    async def _write_spill(self) -> None:
        try:
            if self._spill is None:
                self._spill = await self._open_spill()
                self.spill_path = self._spill.path
            written = len(self._unspilled)
            if written:
                await self._spill.write(bytes(self._unspilled))
                del self._unspilled[:written]
        except OSError as error:
            self.spill_error = error
            self._unspilled.clear()
