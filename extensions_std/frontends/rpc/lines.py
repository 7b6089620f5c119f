"""Lines of bytes, and the JSON in them (RPC-1 to RPC-10).

Only LF ends a line: what other conventions take for a line end is content. A line may be of any length and may come
in pieces of any size; a piece is looked at once, so that a long line costs in proportion to its length.
"""

from typing import Final

import attrs

from camshaft.actors.api import Json, loads
from camshaft.actors.host import MalformedJson

BOM: Final = b"\xef\xbb\xbf"


@attrs.define(eq=False)
class Lines:
    """Splits what comes in."""

    _begun: list[bytes] = attrs.field(factory=list)
    """Pieces of the line that has no end yet."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` ends, without their LF."""
        *ended, rest = chunk.split(b"\n")
        if ended:
            ended[0] = b"".join([*self._begun, ended[0]])
            self._begun.clear()
        if rest:
            self._begun.append(rest)
        return ended

    def rest(self) -> bytes:
        """What came after the last LF; to be taken when nothing follows (RPC-8)."""
        rest = b"".join(self._begun)
        self._begun.clear()
        return rest


def value_of(line: bytes) -> Json:
    """The JSON value of a line. Raises MalformedJson.

    One CR at its end does not count; invalid UTF-8 reads as U+FFFD; a byte-order mark is no JSON (RPC-3, RPC-5, RPC-10).
    """
    if line.startswith(BOM):
        raise MalformedJson("it begins with a byte-order mark")
    return loads(line.removesuffix(b"\r"))
