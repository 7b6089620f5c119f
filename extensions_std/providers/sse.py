"""A server-sent event parser on raw bytes (WIRE-7).

Lines end with LF, CRLF or a lone CR, and with nothing else: `str.splitlines` would also cut at
U+2028 and U+0085, which may stand raw inside a JSON text. Chunks may split anywhere, between CR and
LF and inside a character too, because nothing is decoded here: an event's data goes to the JSON
parser as bytes. Every byte is looked at once; pieces of an unfinished line are joined when it ends.
"""

import re
from typing import Final

import attrs

LINE_MAX_BYTES: Final = 16 * 1024 * 1024
"""Longest line, and longest data of one event. A server sends a whole tool call in one line at
most; output limits keep that far below, and a server that never ends its line must not fill memory."""

_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class SseOverflow(Exception):
    """A line or an event is longer than LINE_MAX_BYTES."""


@attrs.frozen
class SseEvent:
    """One event."""

    name: str
    """Of the `event` field; empty if there was none."""
    data: bytes
    """The `data` lines, joined with LF."""


@attrs.define(eq=False)
class SseParser:
    """Feed it bytes, it gives back the events they complete."""

    line_max_bytes: int = LINE_MAX_BYTES
    _pieces: list[bytes] = attrs.field(factory=list, init=False)
    """Of the line that has not ended yet."""
    _pieces_size: int = attrs.field(default=0, init=False)
    _after_cr: bool = attrs.field(default=False, init=False)
    """The last byte was a CR: a LF that follows belongs to it."""
    _at_start: bool = attrs.field(default=True, init=False)
    _name: bytes = attrs.field(default=b"", init=False)
    _lines: list[bytes] = attrs.field(factory=list, init=False)
    _lines_size: int = attrs.field(default=0, init=False)

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that end in `chunk`. O(bytes). Raises SseOverflow."""
        if not chunk:
            return []
        if self._after_cr:
            self._after_cr = False
            if chunk[0] == 0x0A:
                chunk = chunk[1:]
        if b"\r" in chunk:
            lines = _LINE_END.split(chunk)
            self._after_cr = chunk.endswith(b"\r")
        else:
            lines = chunk.split(b"\n")
        rest = lines.pop()
        done: list[SseEvent] = []
        for line in lines:
            self._line(self._whole(line), done)
        if rest:
            self._keep(rest)
        return done

    def finish(self) -> list[SseEvent]:
        """The event that the end of the body completes, if any: a last line or blank line may be missing."""
        done: list[SseEvent] = []
        if self._pieces:
            self._line(self._whole(b""), done)
        self._dispatch(done)
        return done

    def _keep(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._pieces_size += len(piece)
        self._check(self._pieces_size, "line")

    def _whole(self, tail: bytes) -> bytes:
        if not self._pieces:
            return tail
        line = b"".join([*self._pieces, tail])
        self._pieces = []
        self._pieces_size = 0
        return line

    def _line(self, line: bytes, done: list[SseEvent]) -> None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            self._dispatch(done)
            return
        field, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if field == b"data":
            self._lines.append(value)
            self._lines_size += len(value)
            self._check(self._lines_size, "event")
        elif field == b"event":
            self._name = value

    def _dispatch(self, done: list[SseEvent]) -> None:
        if self._lines:
            done.append(SseEvent(self._name.decode("utf-8", "replace"), b"\n".join(self._lines)))
            self._lines = []
            self._lines_size = 0
        self._name = b""

    def _check(self, size: int, what: str) -> None:
        if size > self.line_max_bytes:
            raise SseOverflow(f"server-sent {what} is longer than {self.line_max_bytes} bytes; the server is broken or not an event stream")
