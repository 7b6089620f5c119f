"""Reading a session file from one bytes object (SES-4 to SES-14).

Theory of operation. The file is split at LF and nothing else. Of each line only the
envelope is decoded: type, id, parent, time, role. What is kept is the bytes object and,
per entry, its offset, id, parent position, depth and kind; a body is decoded when somebody
reads it. Lines whose envelope the fast decoder refuses go through the decoder that loses
nothing; what that refuses too is malformed: kept in the file, no part of the session.

A file of an older version is migrated first: the result is the bytes of the new file, in
which every line that did not have to change is the line that was there, malformed ones
included. Nothing here writes; the caller does what `SessionFile` says is due.
"""

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from weakref import WeakValueDictionary

import attrs

from camshaft.kernel import codec, shapes
from camshaft.kernel.entries import Entry, LabelEntry, SessionHeader, SessionInfoEntry
from camshaft.kernel.errors import MalformedJson, Rejection
from camshaft.kernel.kinds import NOTHING, OTHER_MESSAGE, ROLE_KINDS, kind_of
from camshaft.kernel.migration import VERSION, header_line, migrated, object_of, version_of
from camshaft.kernel.migration import Diagnostic as Diagnostic
from camshaft.kernel.persistent import FrozenDict, Json, freeze

TANGLED: Final = -1
"""Depth of an entry whose ancestors form a cycle."""

CACHED_MAX: Final = 16_384
"""Decoded entries kept per file: the context of a long session, about 30 MB."""

_LAZY: Final = frozenset({"custom", "usage"})
"""Types whose body cannot change a projection, a label or the name: never decoded at load."""


@shapes.frozen(kw_only=True, eq=False)
class SessionImage:
    """The entries of a session file as they were read; never changes. Compared by identity."""

    data: bytes
    offsets: Sequence[int]
    """Where the line of each entry begins."""
    ids: Sequence[str]
    parents: Sequence[int]
    """Parent position, -1 for a root."""
    depths: Sequence[int]
    in_order: bool
    """Whether every parent comes before its children; only a damaged file is not so."""
    kinds: bytes
    index: dict[str, int]
    """Position by id, of duplicates the later; never changed after loading."""
    labels: dict[str, LabelEntry]
    """The last label entry per target; never changed after loading."""
    info: SessionInfoEntry | None
    """The last one."""
    _recent: dict[int, Entry] = attrs.field(factory=dict, repr=False)
    _alive: "WeakValueDictionary[int, Entry]" = attrs.field(factory=WeakValueDictionary, repr=False)

    def entry(self, position: int) -> Entry:
        """The entry at `position`; the same object as long as it is cached or anybody holds it."""
        found = self._recent.get(position)
        if found is not None:
            return found
        found = self._alive.get(position)
        if found is None:
            found = self._decoded(position)
            self._alive[position] = found
        if len(self._recent) >= CACHED_MAX:
            for old in list(self._recent)[: CACHED_MAX // 2]:
                del self._recent[old]
        self._recent[position] = found
        return found

    def line(self, position: int) -> bytes:
        """The line of the entry as it is in the file, without its LF."""
        start = self.offsets[position]
        end = self.data.find(b"\n", start)
        return self.data[start : end if end >= 0 else len(self.data)]

    def _decoded(self, position: int) -> Entry:
        line = self.line(position)
        try:
            value = codec.loads(line)
        except MalformedJson:
            # A fault in a part that the envelope skipped: the entry keeps its place in the tree.
            return _unreadable(line)
        return codec.decode_entry(value)


@shapes.frozen(kw_only=True, eq=False)
class SessionFile:
    """A session file that was accepted, and what has to be done to it."""

    header: SessionHeader
    image: SessionImage
    diagnostics: tuple[Diagnostic, ...]
    rewritten: bytes | None
    """The whole new file, to be put in place of the old one at once (SES-12, SES-14); None if it stays."""
    lacks_newline: bool
    """Whether a LF has to be appended before anything else (SES-8); never with `rewritten`."""

    @property
    def leaf(self) -> int | None:
        """The position of the last entry (SES-36)."""
        return len(self.image.ids) - 1 if self.image.ids else None


def read_session(data: bytes, path: str, new_id: Callable[[], str]) -> SessionFile | Rejection:
    """The session in `data`, the content of the file `path` (used in texts only), or why it is none (SES-7).

    `new_id` makes entry ids; it is called only for files of version 1, again while an id is
    taken already. An empty file is refused like any other that has no header; what SES-16
    wants done with it is the caller's part. O(bytes).
    """
    refused = Rejection(f"Session file is not a valid camshaft session: {path}")
    diagnostics: list[Diagnostic] = []
    head = header_line(data, diagnostics)
    if head is None:
        return refused
    raw, number, start = head
    version = version_of(raw.get("version"))
    if version is None:
        return refused
    if version < VERSION:
        found: list[Diagnostic] = []
        data = migrated(data, start, version, new_id, found)
        diagnostics.clear()
        head = header_line(data, diagnostics)
        assert head is not None
        raw, number, start = head
        diagnostics += found
    elif version > VERSION:
        diagnostics.append(Diagnostic(number, f"version {version} is newer than {VERSION}; read as it is"))
    return SessionFile(
        header=header_of(raw),
        image=_scanned(data, start, number, diagnostics),
        diagnostics=tuple(diagnostics),
        rewritten=data if version < VERSION else None,
        lacks_newline=version >= VERSION and not data.endswith(b"\n"),
    )


def read_entries(data: bytes) -> tuple[SessionImage, tuple[Diagnostic, ...]]:
    """The entries in lines that have no header, such as the tail another program wrote; parents may stand before it."""
    diagnostics: list[Diagnostic] = []
    return _scanned(data, 0, 0, diagnostics, is_tail=True), tuple(diagnostics)


def header_of(raw: Mapping[str, Json]) -> SessionHeader:
    """The header of an object with a text `id`; known fields of a wrong type stay in `extra` as they are."""
    fields = {"version": int, "timestamp": str, "cwd": str, "parentSession": str}
    odd = {key: freeze(raw[key]) for key, cls in fields.items() if key in raw and type(raw[key]) is not cls}
    sound = {key: value for key, value in raw.items() if key not in odd}
    header = codec.decode_header({"timestamp": "", **sound, "version": version_of(raw.get("version")) or 1})
    return attrs.evolve(header, extra=FrozenDict({**header.extra, **odd})) if odd else header


def _unreadable(line: bytes) -> Entry:
    envelope = codec.decode_envelope(line)
    raw = {"type": envelope.type, "id": envelope.id, "parentId": envelope.parentId, "timestamp": envelope.timestamp}
    return codec.decode_opaque(raw)


# -- scan --------------------------------------------------------------------------------


@shapes.define(eq=False)
class _Scan:
    """The columns of an image while they grow."""

    offsets: "array[int]" = attrs.field(factory=lambda: array("q"))
    ids: list[str] = attrs.field(factory=list)
    above: list[str | None] = attrs.field(factory=list)
    kinds: bytearray = attrs.field(factory=bytearray)
    bodies: dict[int, Entry] = attrs.field(factory=dict)
    """What had to be decoded to know its kind, by position."""


def _scanned(data: bytes, start: int, number: int, diagnostics: list[Diagnostic], *, is_tail: bool = False) -> SessionImage:
    """The image of the lines after the one at `start`, whose number is `number` (0: `start` is the first entry)."""
    if number:
        start = data.find(b"\n", start) + 1 or len(data)
    scan = _Scan()
    _scan_lines(data, start, number, scan, diagnostics)
    index = dict(zip(scan.ids, range(len(scan.ids)), strict=True))
    if len(index) < len(scan.ids):
        _note_duplicates(scan.ids, index, diagnostics)
    parents = _parents(scan, index, [] if is_tail else diagnostics)
    depths = _depths(parents)
    if depths is None and _cut_own_parents(parents, scan.ids, diagnostics):
        depths = _depths(parents)
    bodies = scan.bodies.values()
    infos = [entry for entry in bodies if isinstance(entry, SessionInfoEntry)]
    return SessionImage(
        data=data,
        offsets=scan.offsets,
        ids=scan.ids,
        parents=parents,
        depths=_depths_out_of_order(parents, scan.ids, diagnostics) if depths is None else depths,
        in_order=depths is not None,
        kinds=bytes(scan.kinds),
        index=index,
        labels={entry.target_id: entry for entry in bodies if isinstance(entry, LabelEntry)},
        info=infos[-1] if infos else None,
        recent=dict(list(scan.bodies.items())[-CACHED_MAX // 2 :]),
        alive=WeakValueDictionary(scan.bodies),
    )


def _scan_lines(data: bytes, start: int, number: int, scan: _Scan, diagnostics: list[Diagnostic]) -> None:
    """Fills the columns. The one hot loop of opening: 1 µs per line, so it is written flat."""
    view, find, size = memoryview(data), data.find, len(data)
    decode, faults, kinds_of_roles = codec.decode_envelope, codec.ENVELOPE_FAULTS, ROLE_KINDS
    suspicious = 2 * codec.DEPTH_MAX  # bytes; the envelope skips what is nested in a line, so it does not see how deeply
    offsets, ids, above, kinds = scan.offsets.append, scan.ids.append, scan.above.append, scan.kinds.append
    while start < size:
        number += 1
        end = find(b"\n", start)
        if end < 0:
            end = size
        try:
            if end - start > suspicious and codec.may_be_deep(data[start:end]):
                raise RecursionError
            envelope = decode(view[start:end])
        except faults:
            _scan_odd_line(data[start:end], start, number, scan, diagnostics)
            start = end + 1
            continue
        name = envelope.type
        if name == "message":
            message = envelope.message
            code = NOTHING if message is None else kinds_of_roles.get(message.role, OTHER_MESSAGE)
        elif name in _LAZY:
            code = NOTHING
        else:
            _scan_odd_line(data[start:end], start, number, scan, diagnostics)
            start = end + 1
            continue
        ids(envelope.id)
        above(envelope.parentId)
        kinds(code)
        offsets(start)
        start = end + 1


def _scan_odd_line(line: bytes, start: int, number: int, scan: _Scan, diagnostics: list[Diagnostic]) -> None:
    """A line that the envelope cannot judge: decoded in full."""
    value = object_of(line, number, diagnostics)
    if value is None:
        return
    if value.get("type") == "session":
        diagnostics.append(Diagnostic(number, "another header; ignored"))
        return
    if not isinstance(value.get("id"), str):
        diagnostics.append(Diagnostic(number, "malformed line: an entry needs a text `id`"))
        return
    entry = codec.decode_entry(value)
    kind = kind_of(entry)
    if kind == NOTHING and entry.type in codec.ENTRIES and type(entry) is not codec.ENTRIES[entry.type]:
        diagnostics.append(Diagnostic(number, f"{entry.type} entry {entry.id!r} cannot be read; it contributes nothing"))
    scan.bodies[len(scan.ids)] = entry
    scan.ids.append(entry.id)
    scan.above.append(entry.parent_id)
    scan.kinds.append(kind)
    scan.offsets.append(start)


def _note_duplicates(ids: list[str], index: dict[str, int], diagnostics: list[Diagnostic]) -> None:
    twice = [entry_id for position, entry_id in enumerate(ids) if index[entry_id] != position]
    diagnostics.extend([Diagnostic(None, f"entry id {entry_id!r} occurs again later; the later entry counts") for entry_id in twice])


def _parents(scan: _Scan, index: dict[str, int], diagnostics: list[Diagnostic]) -> "array[int]":
    """Parent positions; a missing parent makes a root."""
    get: Callable[[Any, int], int] = index.get
    parents = array("q", [get(parent, -1) for parent in scan.above])
    if parents.count(-1) > scan.above.count(None):
        for position, parent in enumerate(scan.above):
            if parents[position] < 0 and parent is not None:
                diagnostics.append(Diagnostic(None, f"entry {scan.ids[position]!r}: parent {parent!r} is missing; its path ends there"))
    return parents


def _cut_own_parents(parents: "array[int]", ids: list[str], diagnostics: list[Diagnostic]) -> bool:
    """Makes roots of entries that are their own parents; whether there were any."""
    own = [position for position, parent in enumerate(parents) if parent == position]
    for position in own:
        parents[position] = -1
        diagnostics.append(Diagnostic(None, f"entry {ids[position]!r} is its own parent; it counts as a root"))
    return bool(own)


def _depths(parents: "array[int]") -> Sequence[int] | None:
    """Number of ancestors per entry; None if some parent does not come before its child."""
    count = len(parents)
    if parents == array("q", range(-1, count - 1)):
        return range(count)
    depths = array("q")
    grow = depths.append
    for position, parent in enumerate(parents):
        if parent >= position:
            return None
        grow(depths[parent] + 1 if parent >= 0 else 0)
    return depths


def _depths_out_of_order(parents: "array[int]", ids: list[str], diagnostics: list[Diagnostic]) -> Sequence[int]:
    """Number of ancestors where a child comes before its parent; TANGLED if they form a cycle."""
    unknown = -2
    depths = array("q", [unknown]) * len(parents)
    for first in range(len(parents)):
        walked: list[int] = []
        on_walk: set[int] = set()
        at = first
        while at >= 0 and depths[at] == unknown and at not in on_walk:
            walked.append(at)
            on_walk.add(at)
            at = parents[at]
        cyclic = at in on_walk
        if cyclic:
            diagnostics.append(Diagnostic(None, f"entry {ids[at]!r} is its own ancestor; paths stop at the first repeated entry"))
        depth = -1 if at < 0 else depths[at]
        tangled = cyclic or (at >= 0 and depth == TANGLED)
        for position in reversed(walked):
            depth = TANGLED if tangled else depth + 1
            depths[position] = depth
    return depths
