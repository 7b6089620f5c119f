"""Output of a command as plain text while it comes: no colours, no cursor moves, no control characters (RPC-75).

A sequence may be cut between two pieces. What may be the beginning of one waits, so that no half of it is ever shown.
"""

import re
from typing import Final

from camshaft.kernel import shapes

WAITING_MAX: Final = 4096
"""Longest beginning of a sequence that waits for its end; a longer one is no sequence, and is shown without its control characters."""

_SEQUENCE: Final = re.compile(
    r"(?P<whole>(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor moves
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # titles, links
    r"|\x1b[PX^_][^\x1b]*\x1b\\"  # strings for the terminal
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b[0-OQ-WYZ\\`-~])"
    r"|(?P<begun>(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*\x1b?|\x1b[PX^_][^\x1b]*\x1b?|\x1b[ -/]*)\Z)"
)
_JUNK: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufff9-\ufffb\ud800-\udfff]")


@shapes.frozen(kw_only=True)
class PlainPiece:
    """A piece of output, cleaned."""

    text: str
    waiting: str = ""
    """What is looked at again together with the next piece."""


def plain_piece(waiting: str, piece: str, *, is_last: bool = False) -> PlainPiece:
    """The next piece, cleaned; `waiting` is what the one before left. Cleaned in pieces gives what the whole gives. O(size)."""
    text = waiting + piece
    begun = next((found.start() for found in _SEQUENCE.finditer(text) if found["begun"] is not None), len(text))
    if len(text) - begun > WAITING_MAX:
        begun = len(text)
    plain = _JUNK.sub("", _SEQUENCE.sub(_keep_begun, text[:begun]))
    return PlainPiece(text=plain, waiting="" if is_last else text[begun:])


def _keep_begun(found: re.Match[str]) -> str:
    """A whole sequence goes; one that is only begun, and did not wait, is no sequence."""
    return found["begun"] or ""
