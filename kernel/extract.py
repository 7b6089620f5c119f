"""New session files out of old ones: branch extraction, fork copy, export (SES-79 to SES-86).

Entries that need no change are copied as the bytes they are in the source, so nothing that
we do not know gets lost and no body is decoded.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs

from camshaft.kernel import codec, shapes
from camshaft.kernel.entries import CompactionEntry, Entry, LabelEntry, OpaqueEntry, SessionHeader
from camshaft.kernel.errors import Rejection
from camshaft.kernel.kinds import ASSISTANT, COMPACTION, LABEL, USER, kind_of
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.session_file import read_session
from camshaft.kernel.tree import Tree

_FILE_WORTHY: Final = (USER, ASSISTANT)


@shapes.frozen(kw_only=True, eq=False)
class Extract:
    """The entries of a new session: some of a tree, some of them changed, and labels at the end."""

    tree: Tree
    positions: tuple[int, ...]
    changed: dict[int, Entry]
    """Entries that differ from the source, by position."""
    labels: tuple[LabelEntry, ...]
    """Appended after the others; the last one becomes the leaf (SES-81)."""

    @property
    def is_worth_a_file(self) -> bool:
        """Whether the new session is written at once (SES-82)."""
        return any(self.tree.kind(position) in _FILE_WORTHY for position in self.positions)

    def entries(self) -> Iterator[Entry]:
        """The entries in order."""
        for position in self.positions:
            yield self.changed.get(position) or self.tree.entry(position)
        yield from self.labels

    def lines(self) -> Iterator[bytes]:
        """The entries as lines with LF; unchanged ones byte for byte as in the source."""
        for position in self.positions:
            changed = self.changed.get(position)
            yield (stored_line(self.tree, position) if changed is None else codec.dumps(changed)) + b"\n"
        yield from map(codec.line, self.labels)


def is_worth_a_file(entry: Entry) -> bool:
    """Whether a session that holds this entry is written (SES-55): a message of the user or the assistant."""
    return kind_of(entry) in _FILE_WORTHY


def stored_line(tree: Tree, position: int) -> bytes:
    """The line of an entry without LF: from the file if it was read from one."""
    if tree.base is not None and position < tree.base_length:
        return tree.base.line(position)
    return codec.dumps(tree.entry(position))


def extract_branch(tree: Tree, leaf_id: str, new_id: Callable[[], str]) -> Extract | Rejection:
    """The branch of one entry as a session of its own (SES-79 to SES-81).

    Ids, times and content stay; label entries are left out and what hung below them moves
    up. The current labels of extracted entries are appended in the order of their targets,
    with ids from `new_id` (called again while an id is taken) and their old times.
    """
    leaf = tree.position(leaf_id)
    if leaf is None:
        return Rejection(f"Entry {leaf_id} not found")
    path = tree.branch(leaf)
    kinds = tree.kinds(path)
    kept = tuple([position for position, kind in zip(path, kinds) if kind != LABEL])
    changed = _changed(tree, path, kinds) if LABEL in kinds else {}
    return Extract(tree=tree, positions=kept, changed=changed, labels=_labels(tree, kept, new_id))


def fork_copy(data: bytes, path: str, header: SessionHeader, new_id: Callable[[], str]) -> bytes | Rejection:
    """All entries of the session in `data` behind another header (SES-83); older versions are migrated first (SES-84)."""
    read = read_session(data, path, new_id)
    if isinstance(read, Rejection):
        return Rejection(f"Cannot fork: source session file is empty or invalid: {path}")
    lines = [read.image.line(position) for position in range(len(read.image.ids))]
    return b"\n".join([codec.dumps(header), *lines, b""])


def exported(tree: Tree, leaf: int | None, header: SessionHeader) -> bytes:
    """The file of an export: `header`, and the branch of `leaf` as a plain chain, labels included (SES-86)."""
    lines = [codec.dumps(header)]
    above: int | None = None
    for position in () if leaf is None else tree.branch(leaf):
        if above is not None and tree.parent(position) == above:
            lines.append(stored_line(tree, position))
        else:
            lines.append(_line_under(tree, position, None if above is None else tree.id_at(above)))
        above = position
    return b"\n".join([*lines, b""])


def _line_under(tree: Tree, position: int, parent_id: str | None) -> bytes:
    entry = tree.entry(position)
    return stored_line(tree, position) if entry.parent_id == parent_id else codec.dumps(under(entry, parent_id))


def under(entry: Entry, parent_id: str | None) -> Entry:
    """The entry with another parent."""
    if isinstance(entry, OpaqueEntry):
        raw = FrozenDict({**entry.raw, "parentId": parent_id})
        return attrs.evolve(entry, parent_id=parent_id, raw=raw)
    extra = FrozenDict({key: item for key, item in entry.extra.items() if key != "parentId"})
    changed: Any = attrs.evolve(entry, parent_id=parent_id, extra=extra)
    moved: Entry = changed
    return moved


def _changed(tree: Tree, path: Any, kinds: bytes) -> dict[int, Entry]:
    """What has to change because labels on the path are left out: parents, and first kept entries (SES-80)."""
    changed: dict[int, Entry] = {}
    above: str | None = None
    skipped = False
    for index, position in enumerate(path):
        if kinds[index] == LABEL:
            skipped = True
            continue
        entry = tree.entry(position) if skipped or kinds[index] == COMPACTION else None
        if entry is not None and skipped:
            changed[position] = entry = under(entry, above)
        if isinstance(entry, CompactionEntry):
            moved = _with_first_kept(tree, entry, path, kinds)
            if moved is not entry:
                changed[position] = moved
        above = tree.id_at(position)
        skipped = False
    return changed


def _with_first_kept(tree: Tree, entry: CompactionEntry, path: Any, kinds: bytes) -> CompactionEntry:
    """The compaction, its first kept entry moved on if that was a label on the path."""
    position = tree.position(entry.first_kept_entry_id) if entry.first_kept_entry_id is not None else None
    if position is None or tree.kind(position) != LABEL or position not in path:
        return entry
    index = path.index(position)
    while index < len(kinds) and kinds[index] == LABEL:
        index += 1
    return attrs.evolve(entry, first_kept_entry_id=tree.id_at(path[index]) if index < len(kinds) else entry.id)


def _labels(tree: Tree, kept: tuple[int, ...], new_id: Callable[[], str]) -> tuple[LabelEntry, ...]:
    """The current labels of the extracted entries, chained below the last of them."""
    extracted = set(kept)
    above = tree.id_at(kept[-1]) if kept else None
    taken = {tree.id_at(position) for position in kept}
    done: list[LabelEntry] = []
    for label in tree.labels():
        if tree.position(label.target_id) not in extracted:
            continue
        own = new_id()
        while own in taken:
            own = new_id()
        taken.add(own)
        done.append(LabelEntry(id=own, parent_id=above, timestamp=label.timestamp, target_id=label.target_id, label=label.label))
        above = own
    return tuple(done)
