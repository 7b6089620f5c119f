"""What a listing shows of a session file, read without opening the session (SES-68, SES-71 to SES-73).

Of each line only a few fields are decoded. A line whose fast decoding fails is decoded in full,
so a file counts here as it does when it is opened; a file without a header at its beginning is
no session. Nothing raises: whatever stands in a file, the others are listed.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from camshaft.kernel import codec, shapes
from camshaft.kernel.clock import ms_of
from camshaft.kernel.errors import MalformedJson
from camshaft.kernel.messages import BLANKS
from camshaft.kernel.migration import object_of, version_of
from camshaft.kernel.persistent import Json

HEADER_BYTES_MAX: Final = 1024 * 1024
"""Where a header is looked for (SES-19): blank and broken lines may stand before it."""

TIME_MAX_MS: Final = 253_402_300_799_999
"""The end of the year 9999; a later time is none."""

NO_MESSAGES_TEXT: Final = "(no messages)"

_SPOKEN: Final = ("user", "assistant")
"""Roles whose text is shown, and whose times are activity."""


@shapes.frozen(kw_only=True)
class SessionHead:
    """What the first line of a session file says."""

    id: str
    cwd: str
    """Empty if it says none."""
    parent_session: str | None
    created_ms: int | None
    """Ms since the epoch; None if it says no time."""
    has_ids: bool
    """Whether an entry needs an id: not before version 2."""


@shapes.frozen(kw_only=True)
class SessionItem:
    """One session in a listing. Times are ms since the Unix epoch."""

    path: str
    id: str
    cwd: str
    """Empty if the session says none."""
    name: str | None
    parent_session: str | None
    created_ms: int | None
    """None if the session says no time."""
    modified_ms: int
    """The latest message of the user or the assistant; without one the creation; else the file's own time."""
    message_count: int
    """Message entries of any role, on all branches."""
    first_message: str
    """The first text of the user."""
    all_messages_text: str
    """All texts of user and assistant, joined with a space."""


def head_of(pieces: Iterable[bytes]) -> SessionHead | None:
    """The header of a session file given in pieces; None if there is none in its first MiB."""
    return _head(_lines(pieces, HEADER_BYTES_MAX))


def summary_of(pieces: Iterable[bytes], path: str, file_modified_ms: int) -> SessionItem | None:
    """The item of a session file given in pieces; None if it is no session. O(bytes)."""
    lines = _lines(pieces, HEADER_BYTES_MAX)
    head = _head(lines)
    if head is None:
        return None
    found = _Found()
    for line in lines:
        found.take(line, head.has_ids)
    modified_ms = found.modified_ms or head.created_ms
    return SessionItem(
        path=path,
        id=head.id,
        cwd=head.cwd,
        name=(found.name or "").strip(BLANKS) or None,
        parent_session=head.parent_session,
        created_ms=head.created_ms,
        modified_ms=file_modified_ms if modified_ms is None else modified_ms,
        message_count=found.messages,
        first_message=found.first or NO_MESSAGES_TEXT,
        all_messages_text=" ".join(found.texts),
    )


def _lines(pieces: Iterable[bytes], first_max: int) -> Iterator[bytes]:
    """The lines, without LF. Ends early if the first so many bytes have no line that is an object."""
    rest: list[bytes] = []
    read, begun = 0, False
    for piece in pieces:
        read += len(piece)
        *lines, last = piece.split(b"\n")
        if lines:
            lines[0] = b"".join([*rest, lines[0]])
            rest = []
            for line in lines:
                begun = begun or _object(line) is not None
                yield line
        rest.append(last)
        if not begun and read >= first_max:
            return
    yield b"".join(rest)


def _head(lines: Iterator[bytes]) -> SessionHead | None:
    for line in lines:
        value = _object(line)
        if value is None:
            continue
        version, own = version_of(value.get("version")), value.get("id")
        if value.get("type") != "session" or not isinstance(own, str) or version is None:
            return None
        cwd, parent, timestamp = value.get("cwd"), value.get("parentSession"), value.get("timestamp")
        return SessionHead(
            id=own,
            cwd=cwd if isinstance(cwd, str) else "",
            parent_session=parent if isinstance(parent, str) else None,
            created_ms=ms_of(timestamp) if isinstance(timestamp, str) else None,
            has_ids=version >= 2,
        )
    return None


def _object(line: bytes) -> dict[str, Json] | None:
    return object_of(line, 0, []) if line.strip() else None


@shapes.define
class _Found:
    """What the entries say, while they are read."""

    messages: int = 0
    name: str | None = None
    first: str = ""
    texts: list[str] = attrs.field(factory=list)
    modified_ms: int = 0

    def take(self, line: bytes, has_ids: bool) -> None:
        """Takes in one line."""
        if not line:
            return
        try:
            if codec.may_be_deep(line):
                raise RecursionError
            entry = codec.decode_listed(line)
            message = entry.message
            texts = codec.listed_texts(message.content) if message is not None and message.role in _SPOKEN else []
        except codec.ENVELOPE_FAULTS:
            self._take_odd(line, has_ids)
            return
        if has_ids and entry.id is None:
            return
        if entry.type == "message":
            self.messages += 1
            if message is not None and message.role in _SPOKEN:
                self._take_message(message.role, texts, message.timestamp, entry.timestamp)
        elif entry.type == "session_info":
            self.name = entry.name

    def _take_odd(self, line: bytes, has_ids: bool) -> None:
        """A line that the fast decoder refuses."""
        try:
            value: Any = codec.loads(line)
        except MalformedJson:
            return
        if not isinstance(value, dict) or (has_ids and not isinstance(value.get("id"), str)):
            return
        if value.get("type") == "message":
            self.messages += 1
            message = value.get("message")
            if isinstance(message, dict) and message.get("role") in _SPOKEN:
                self._take_message(message["role"], _texts(message.get("content")), message.get("timestamp"), value.get("timestamp"))
        elif value.get("type") == "session_info" and isinstance(value.get("name", ""), str):
            self.name = value.get("name")

    def _take_message(self, role: str, texts: list[str], at_ms: Any, timestamp: Any) -> None:
        if isinstance(at_ms, (int, float)) and not isinstance(at_ms, bool):
            self.modified_ms = max(self.modified_ms, int(at_ms) if at_ms <= TIME_MAX_MS else 0)
        elif isinstance(timestamp, str):
            self.modified_ms = max(self.modified_ms, ms_of(timestamp) or 0)
        text = " ".join(texts)
        if text:
            self.texts.append(text)
            if role == "user" and not self.first:
                self.first = text


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    found = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    return [text for text in found if isinstance(text, str)]
