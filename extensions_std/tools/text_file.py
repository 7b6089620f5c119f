"""A text file as lines whose bytes are kept, so that what an edit does not touch stays as it was (TOOL-82, TOOL-83).

Theory of operation. The file is split at CRLF, CR and LF. Each line keeps the bytes of its
content and of its ending; its text is the UTF-8 reading of the content, a bad sequence as
U+FFFD. The text of the file is that of its lines, each with its ending as one newline; a
position in it is a line and a number of characters, and has a place in the bytes even
between two bad sequences. A byte-order mark stands before all of it and is no text.
"""

import codecs
import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import attrs

_LINE: Final = re.compile(rb"([^\r\n]*)(\r\n|\r|\n|\Z)")

_CHARACTER: Final = re.compile(
    rb"[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}"
    rb"|\xe0[\xa0-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]|\xed[\x80-\x9f]|\xf0[\x90-\xbf][\x80-\xbf]?|[\xf1-\xf3][\x80-\xbf]{1,2}"
    rb"|\xf4[\x80-\x8f][\x80-\xbf]?|[\x80-\xff]"
)
"""One character of UTF-8, or else one bad sequence: as long as it could have become a character (the Unicode practice)."""


@attrs.frozen
class Line:
    """One line of the file."""

    content: bytes
    ending: bytes
    """CRLF, CR, LF; empty only for what stands behind the last of them."""
    text: str
    """The content as text."""

    def cut_at(self, characters: int) -> int:
        """The number of bytes the first `characters` characters take."""
        if len(self.text) == len(self.content):
            return characters
        matches = _CHARACTER.finditer(self.content)
        return sum([len(next(matches).group()) for _ in range(characters)])


@attrs.frozen(kw_only=True)
class Replacement:
    """New text, with LF for each line end, in place of a range of the file's text."""

    start: int
    end: int
    text: str


@attrs.frozen(kw_only=True)
class TextFile:
    """The file, taken apart; `text_file` makes it."""

    mark: bytes
    """The byte-order mark, or nothing."""
    lines: Sequence[Line]
    """The last one has no ending."""
    text: str
    """What is matched and compared: LF for each line end, without the mark."""
    starts: Sequence[int]
    """Where each line begins in `text`."""

    def line_at(self, position: int) -> int:
        """Index of the line that holds this position of the text."""
        return bisect_right(self.starts, position) - 1

    def replaced(self, replacements: Sequence[Replacement]) -> bytes:
        """The bytes of the file with the replacements made; they are sorted and do not overlap.

        A line end of new text is written as that of the line where the range starts (TOOL-83).
        """
        parts = [self.mark]
        position = 0
        for each in replacements:
            parts.append(self._bytes(position, each.start))
            parts.append(utf8_lines(each.text, self._ending(self.line_at(each.start))))
            position = each.end
        parts.append(self._bytes(position, len(self.text)))
        return _joined(parts)

    def _ending(self, line: int) -> bytes:
        """The ending of the line; of the last one, that of the line before; LF if there is none."""
        return self.lines[line].ending or (self.lines[line - 1].ending if line else b"\n")

    def _bytes(self, start: int, end: int) -> bytes:
        """What the file has for this range of its text."""
        first, last = self.line_at(start), self.line_at(end)
        cut, stop = self.lines[first].cut_at(start - self.starts[first]), self.lines[last].cut_at(end - self.starts[last])
        if first == last:
            return self.lines[first].content[cut:stop]
        whole = [part for line in self.lines[first + 1 : last] for part in (line.content, line.ending)]
        return b"".join([self.lines[first].content[cut:], self.lines[first].ending, *whole, self.lines[last].content[:stop]])


def text_file(content: bytes) -> TextFile:
    """The file with these bytes. O(size)."""
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    lines = []
    for found in _LINE.finditer(content, len(mark)):
        lines.append(Line(found[1], found[2], found[1].decode("utf-8", "replace")))
        if not found[2]:
            break
    starts = [0, *accumulate([len(line.text) + 1 for line in lines[:-1]])]
    return TextFile(mark=mark, lines=lines, text="\n".join([line.text for line in lines]), starts=starts)


def unified_newlines(text: str) -> str:
    """The text with LF for CRLF and CR."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def utf8_lines(text: str, ending: bytes) -> bytes:
    """The text in UTF-8 with `ending` for each LF. Surrogate pairs are joined, lone surrogates become U+FFFD."""
    try:
        encoded = text.encode("utf-8")
    except UnicodeEncodeError:
        encoded = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8")
    return encoded if ending == b"\n" else encoded.replace(b"\n", ending)


def _joined(parts: Sequence[bytes]) -> bytes:
    """The parts in a row. A CR that ended a line does not merge with the LF that ends the next one: it becomes CRLF."""
    done: list[bytes] = []
    for part in parts:
        if part.startswith(b"\n") and done and done[-1].endswith(b"\r"):
            done.append(b"\n")
        if part:
            done.append(part)
    return b"".join(done)
