"""The lines of a session file, and the migration of old ones (SES-4 to SES-12).

Migration makes the bytes of the new file; a line that need not change, a malformed one
included, is the line that was there (SES-14, SES-15).
"""

from collections.abc import Callable, Iterator
from typing import Final

import attrs

from camshaft.kernel import codec, shapes
from camshaft.kernel.errors import MalformedJson
from camshaft.kernel.persistent import Json

VERSION: Final = 3
"""What this kernel writes."""


@shapes.frozen
class Diagnostic:
    """Something odd in a file that did not keep it from being opened."""

    line: int | None
    """From 1; None if it is not about one line."""
    why: str

    def __str__(self) -> str:
        return self.why if self.line is None else f"line {self.line}: {self.why}"


def lines_of(data: bytes, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Offset and bytes of each line from `start` on, without LF; no empty last one."""
    size = len(data)
    while start < size:
        end = data.find(b"\n", start)
        end = size if end < 0 else end
        yield start, data[start:end]
        start = end + 1


def header_line(data: bytes, diagnostics: list[Diagnostic]) -> tuple[dict[str, Json], int, int] | None:
    """The header, its line number, and where it begins; None if the first object is none."""
    for number, (start, line) in enumerate(lines_of(data), 1):
        value = object_of(line, number, diagnostics)
        if value is not None:
            sound = value.get("type") == "session" and isinstance(value.get("id"), str)
            return (value, number, start) if sound else None
    return None


def object_of(line: bytes, number: int, diagnostics: list[Diagnostic]) -> dict[str, Json] | None:
    """The JSON object of a line, or None with a diagnostic (a blank line needs none)."""
    try:
        value = codec.loads(line)
    except MalformedJson as error:
        if line.strip():
            diagnostics.append(Diagnostic(number, f"malformed line: {error}"))
        return None
    if isinstance(value, dict):
        return value
    diagnostics.append(Diagnostic(number, f"malformed line: a JSON object expected, got {type(value).__name__}"))
    return None


def version_of(value: Json) -> float | None:
    """The version as a number; absent means 1, a text that is a number counts; None if it is none (SES-12)."""
    if value is None:
        return 1
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        return None
    return int(value) if float(value).is_integer() else value


def migrated(data: bytes, header_start: int, version: float, new_id: Callable[[], str], diagnostics: list[Diagnostic]) -> bytes:
    """The bytes of the file in version 3 (SES-12); lines that need no change stay as they are."""
    done: list[bytes] = []
    chain = _Chain(new_id=new_id) if version < 2 else None
    for number, (start, line) in enumerate(lines_of(data), 1):
        value = object_of(line, number, [])
        if start == header_start:
            assert value is not None
            done.append(codec.dumps({**value, "version": VERSION}))
        elif start < header_start or value is None or value.get("type") == "session":
            done.append(line)
            if chain is not None and start > header_start and value is not None:
                chain.passed_over()
        else:
            changed = value if chain is None else chain.linked(value, number, diagnostics)
            changed = _renamed_role(changed)
            done.append(line if changed is value else codec.dumps(changed))
    return b"\n".join([*done, b""])


def _renamed_role(entry: dict[str, Json]) -> dict[str, Json]:
    """Version 3 calls the role `hookMessage` `custom`."""
    message = entry.get("message")
    if entry.get("type") != "message" or not isinstance(message, dict) or message.get("role") != "hookMessage":
        return entry
    return {**entry, "message": {**message, "role": "custom"}}


@shapes.define(eq=False)
class _Chain:
    """Version 2 gives every entry an id and a parent: the entry before it."""

    new_id: Callable[[], str]
    ids: list[str | None] = attrs.field(factory=list)
    """Of each line after the header that a kept index counts; None for a further header (SES-9)."""
    last: str | None = None
    taken: set[str] = attrs.field(factory=set)

    def linked(self, entry: dict[str, Json], number: int, diagnostics: list[Diagnostic]) -> dict[str, Json]:
        """The entry with its id, its parent, and a kept id in place of a kept index; its own one keeps nothing (SES-27)."""
        own = self.new_id()
        while own in self.taken:
            own = self.new_id()
        linked = {**entry, "id": own, "parentId": self.last}
        self.last = own
        self.taken.add(own)
        self.ids.append(own)
        kept = entry.get("firstKeptEntryIndex")
        if entry.get("type") == "compaction" and isinstance(kept, (int, float)) and not isinstance(kept, bool):
            del linked["firstKeptEntryIndex"]
            kept_id = self.ids[int(kept) - 1] if float(kept).is_integer() and 1 <= kept <= len(self.ids) else None
            if kept_id is not None:
                linked["firstKeptEntryId"] = kept_id
            else:
                diagnostics.append(Diagnostic(number, f"firstKeptEntryIndex {kept!r} is no earlier entry; nothing is kept"))
        return linked

    def passed_over(self) -> None:
        """A line that is no entry, though it has a place among the lines."""
        self.ids.append(None)
