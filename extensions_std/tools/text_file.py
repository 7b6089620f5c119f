"""A text file whose bytes are kept, so that what an edit does not touch stays as it was (TOOL-82, TOOL-83).

Theory of operation. `text` is what is matched and compared: UTF-8, each line end (CRLF, CR, LF)
as LF, each bad sequence as U+FFFD, without the byte-order mark. A *spot* is a character of it
that stands for other bytes than its own UTF-8: a line end that is no LF, a bad sequence. The
bytes of a range are therefore those of its text, spots replaced. Most files have no spots.
"""

import codecs
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

import attrs

_LINE_END: Final = re.compile(r"\r\n|\r")
_BYTE_LINE: Final = re.compile(rb"[^\n]*\n|[^\n]+")

_CHARACTER: Final = re.compile(
    rb"(?:[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2})"
    rb"|(\xe0[\xa0-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]|\xed[\x80-\x9f]|\xf0[\x90-\xbf][\x80-\xbf]?|[\xf1-\xf3][\x80-\xbf]{1,2}"
    rb"|\xf4[\x80-\x8f][\x80-\xbf]?|[\x80-\xff])"
)
"""One character of UTF-8, or else (the group) one bad sequence: as long as it could have become one (the Unicode practice)."""


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
    text: str
    spot_places: Sequence[int]
    """Where in `text` the spots are, rising."""
    spot_bytes: Sequence[bytes]
    """What each of them is in the file."""

    def replaced(self, replacements: Sequence[Replacement]) -> bytes:
        """The bytes of the file with the replacements made; they are sorted and do not overlap.

        A line end of new text is written as that of the line where the range starts (TOOL-83).
        """
        parts = [self.mark]
        position = 0
        for each in replacements:
            parts.append(self._bytes(position, each.start))
            parts.append(utf8_lines(each.text, self._ending(each.start)))
            position = each.end
        parts.append(self._bytes(position, len(self.text)))
        return _joined(parts)

    def replaced_text(self, replacements: Sequence[Replacement]) -> str:
        """`text` with the same replacements made."""
        parts = []
        position = 0
        for each in replacements:
            parts += [self.text[position : each.start], each.text]
            position = each.end
        return "".join([*parts, self.text[position:]])

    def _bytes(self, start: int, end: int) -> bytes:
        """What the file has for this range of its text."""
        parts = []
        first, last = bisect_left(self.spot_places, start), bisect_left(self.spot_places, end)
        for place, stands_for in zip(self.spot_places[first:last], self.spot_bytes[first:last]):
            parts += [self.text[start:place].encode("utf-8"), stands_for]
            start = place + 1
        return b"".join([*parts, self.text[start:end].encode("utf-8")])

    def _ending(self, position: int) -> bytes:
        """The ending of the line that holds the position; of the last one, that of the line before; LF if there is none.

        A lone CR ends a line only in a file without any LF (TOOL-83).
        """
        for end in (self._line_feed(position, forwards=True), self._line_feed(position, forwards=False), self.text.find("\n")):
            if end >= 0:
                return self._bytes(end, end + 1)
        return b"\n"

    def _line_feed(self, position: int, *, forwards: bool) -> int:
        """Where the next line end with an LF is, from the position on or before it; -1 if there is none."""
        end = self.text.find("\n", position) if forwards else self.text.rfind("\n", 0, position)
        spot = bisect_left(self.spot_places, end)
        while end >= 0 and spot < len(self.spot_places) and self.spot_places[spot] == end and self.spot_bytes[spot] == b"\r":
            end = self.text.find("\n", end + 1) if forwards else self.text.rfind("\n", 0, end)
            spot = bisect_left(self.spot_places, end)
        return end


def text_file(content: bytes) -> TextFile:
    """The file with these bytes. O(size)."""
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    body = content[len(mark) :]
    try:
        raw, bad = body.decode("utf-8"), list[bytes]()
    except UnicodeDecodeError:
        raw, bad = body.decode("utf-8", "replace"), list(_bad_sequences(body))
    spots = sorted([*_line_end_spots(raw), *_bad_spots(raw, bad)])
    text = unified_newlines(raw)
    return TextFile(mark=mark, text=text, spot_places=[place for place, _ in spots], spot_bytes=[found for _, found in spots])


def line_starts(text: str) -> list[int]:
    """Where each line of the text begins. O(size)."""
    return [0, *accumulate([len(line) + 1 for line in text.split("\n")[:-1]])]


def unified_newlines(text: str) -> str:
    """The text with LF for CRLF and CR."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def utf8_lines(text: str, ending: bytes) -> bytes:
    """The text in UTF-8 with `ending` for each LF. Surrogate pairs are joined, lone surrogates become U+FFFD."""
    try:
        encoded = text.encode("utf-8")
    except UnicodeEncodeError:
        encoded = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8")
    return encoded if ending == b"\n" else encoded.replace(b"\n", ending)


def _line_end_spots(raw: str) -> Iterator[tuple[int, bytes]]:
    """Line ends that are no LF, by their place in the text with unified line ends."""
    joined = 0
    for found in _LINE_END.finditer(raw):
        yield found.start() - joined, found.group().encode("ascii")
        joined += len(found.group()) - 1


def _bad_spots(raw: str, bad: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    """Bad sequences, likewise. A U+FFFD that the file itself has is in `bad` too, as its own bytes."""
    if bad:
        text = unified_newlines(raw)
        place = -1
        for sequence in bad:
            place = text.index("\ufffd", place + 1)
            yield place, sequence


def _bad_sequences(content: bytes) -> Iterator[bytes]:
    """The bytes of each U+FFFD of the content's text, in order. Only lines with bad bytes are looked at closely."""
    for line in _BYTE_LINE.finditer(content):
        if not line.group().isascii():
            for found in _CHARACTER.finditer(line.group()):
                if found[1] or found.group() == b"\xef\xbf\xbd":
                    yield found.group()


def _joined(parts: Sequence[bytes]) -> bytes:
    """The parts in a row. A CR that ended a line does not merge with the LF that ends the next one: it becomes CRLF."""
    done: list[bytes] = []
    for part in parts:
        if part.startswith(b"\n") and done and done[-1].endswith(b"\r"):
            done.append(b"\n")
        if part:
            done.append(part)
    return b"".join(done)
