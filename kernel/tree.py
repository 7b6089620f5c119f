"""The session tree: an immutable value of positions, parents and depths.

Theory of operation. Every entry has a position, its index in the session in file order.
What was in the file when it was opened is the *base*, a SessionImage that never changes;
what was appended since is a persistent tail. `append` shares everything with the former
tree, so a preview of drafts is a tree that is thrown away.

Parents are positions, -1 for a root: no parent id, an unknown one, or the entry's own
(SES-42). The depth of a root is 0, and an entry is on the branch of a leaf exactly if the
path of that leaf has it at its depth. Only a damaged file has parent cycles; the entries
that lead into one have depth TANGLED, and their path stops at the first repeated entry
(SES-40). An id that occurs twice means the later entry (SES-21).

Labels and the session name are of the whole session, not of a branch (SES-53), and are
kept up to date by `append`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import attrs

from camshaft.kernel import shapes
from camshaft.kernel.entries import Entry, LabelEntry, SessionInfoEntry
from camshaft.kernel.kinds import kind_of
from camshaft.kernel.messages import BLANKS
from camshaft.kernel.persistent import IdIndex, Vector, index_of, vector
from camshaft.kernel.session_file import TANGLED, SessionImage

DERIVED_MAX: Final = 4096
"""Derived values kept per session; a context that is not compacted has a few hundred."""


@shapes.frozen
class Node:
    """One entry of the tail."""

    entry: Entry
    parent: int
    depth: int


@shapes.define(eq=False)
class DerivedCache:
    """Values computed from immutable objects, found again by the identity of those objects.

    A cache, no state: forgetting any of it changes nothing but object identity and time.
    Each value keeps its sources alive, so an identity cannot be reused while it is listed.
    """

    _known: dict[tuple[int, ...], tuple[tuple[object, ...], Any]] = attrs.field(factory=dict)

    def get(self, *sources: object) -> Any:
        """The value put for exactly these objects, or None."""
        found = self._known.get(tuple([id(source) for source in sources]))
        return None if found is None else found[1]

    def put(self, value: Any, *sources: object) -> None:
        """Remembers `value` for these objects; the older half goes when there are too many."""
        if len(self._known) >= DERIVED_MAX:
            for key in list(self._known)[: DERIVED_MAX // 2]:
                del self._known[key]
        self._known[tuple([id(source) for source in sources])] = (sources, value)


@shapes.frozen(kw_only=True, eq=False)
class Outline:
    """Who is below whom (SES-42): positions, children by entry time, roots in file order."""

    roots: tuple[int, ...]
    _children: dict[int, tuple[int, ...]]

    def children(self, position: int) -> tuple[int, ...]:
        """The entries whose parent is `position`, by time; equal times in file order."""
        return self._children.get(position, ())


@shapes.frozen(kw_only=True, eq=False)
class Tree:
    """All entries of a session. Compared by identity."""

    base: SessionImage | None
    tail: "Vector[Node]"
    index: IdIndex[int]
    label_entries: IdIndex[LabelEntry]
    """The last label entry of each target; one without text clears the label."""
    name: str | None
    """The session's name, or None (SES-62)."""
    derived: DerivedCache
    """Shared by all trees that grew from the same beginning."""
    base_length: int

    @property
    def length(self) -> int:
        """How many entries there are; the next one gets this position."""
        return self.base_length + len(self.tail)

    def entry(self, position: int) -> Entry:
        """The entry at `position` (0 ≤ position < length). Decoded on first use if it is in the base."""
        if position < self.base_length:
            assert self.base is not None
            return self.base.entry(position)
        node: Node = self.tail[position - self.base_length]
        return node.entry

    def id_at(self, position: int) -> str:
        """The id of the entry at `position`, without decoding it."""
        if position < self.base_length:
            assert self.base is not None
            return self.base.ids[position]
        node: Node = self.tail[position - self.base_length]
        return node.entry.id

    def parent(self, position: int) -> int:
        """The parent's position; -1 for a root."""
        if position < self.base_length:
            assert self.base is not None
            return self.base.parents[position]
        node: Node = self.tail[position - self.base_length]
        return node.parent

    def depth(self, position: int) -> int:
        """Number of ancestors; TANGLED if the ancestors form a cycle."""
        if position < self.base_length:
            assert self.base is not None
            return self.base.depths[position]
        node: Node = self.tail[position - self.base_length]
        return node.depth

    def kind(self, position: int) -> int:
        """The kind (kinds.py) of the entry at `position`, without decoding it."""
        if position < self.base_length:
            assert self.base is not None
            return self.base.kinds[position]
        return kind_of(self.entry(position))

    def position(self, entry_id: str) -> int | None:
        """Where the entry with this id is, or None; of duplicates the later one."""
        return self.index.get(entry_id)

    def append(self, entry: Entry) -> "Tree":
        """A tree with `entry` at the next position. O(1) amortised; checks nothing."""
        position = self.length
        parent = -1 if entry.parent_id is None else self.index.get(entry.parent_id)
        above = -1 if parent is None else parent
        if above < 0:
            depth = 0
        else:
            depth = self.depth(above)
            depth = depth if depth == TANGLED else depth + 1
        labels = self.label_entries.set(entry.target_id, entry) if isinstance(entry, LabelEntry) else self.label_entries
        return Tree(
            base=self.base,
            tail=self.tail.append(Node(entry, above, depth)),
            index=self.index.set(entry.id, position),
            label_entries=labels,
            name=_name_of(entry) if isinstance(entry, SessionInfoEntry) else self.name,
            derived=self.derived,
            base_length=self.base_length,
        )

    def label(self, entry_id: str) -> str | None:
        """The current label of an entry, or None (SES-32)."""
        found = self.label_entries.get(entry_id)
        return (found.label or None) if found is not None else None

    def labels(self) -> tuple[LabelEntry, ...]:
        """The entries that give the current labels, in the order of their targets. O(labels)."""
        current = []
        for target in self.label_entries.keys():  # noqa: SIM118 - an IdIndex is no dict
            entry = self.label_entries.get(target)
            position = self.position(target)
            if entry is not None and entry.label and position is not None:
                current.append((position, entry))
        return tuple([entry for _, entry in sorted(current, key=lambda pair: pair[0])])

    def branch(self, position: int) -> Sequence[int]:
        """The path from its root to `position`, as positions (SES-39). O(branch); O(1) while nothing has branched."""
        depth = self.depth(position)
        if depth == position and (self.base is None or self.base.in_order):
            # So many ancestors only fit if every earlier entry is one of them.
            return range(position + 1)
        return tuple(self._climbed(position, depth))

    def entries(self) -> Iterator[Entry]:
        """All entries in file order, decoded one by one."""
        return map(self.entry, range(self.length))

    def outline(self) -> Outline:
        """The tree from above. O(entries)."""
        below: dict[int, list[int]] = {}
        for position in range(self.length):
            below.setdefault(self.parent(position), []).append(position)
        roots = tuple(below.pop(-1, ()))
        children = {parent: tuple(sorted(found, key=self.timestamp)) for parent, found in below.items()}
        return Outline(roots=roots, children=children)

    def timestamp(self, position: int) -> str:
        """The entry's time as stored."""
        return self.entry(position).timestamp

    def kinds(self, path: Sequence[int]) -> bytes:
        """The kinds of the entries at these positions. O(path), in C as far as it lies in the base."""
        base = self.base.kinds if self.base is not None else b""
        if isinstance(path, range) and path.start == 0 and path.step == 1:
            return base[: len(path)] + bytes([kind_of(self.entry(position)) for position in range(len(base), len(path))])
        if not path or max(path) < len(base):
            return bytes(map(base.__getitem__, path))
        return bytes(map(self.kind, path))

    def _climbed(self, position: int, depth: int) -> list[int]:
        """The path of an entry, root first."""
        path: list[int] = []
        seen: set[int] = set()
        while position >= self.base_length and position not in seen:
            path.append(position)
            if depth == TANGLED:
                seen.add(position)
            position = self.parent(position)
        parents = self.base.parents if self.base is not None else ()
        if depth == TANGLED:
            while position >= 0 and position not in seen:
                seen.add(position)
                path.append(position)
                position = parents[position]
        else:
            while position >= 0:
                path.append(position)
                position = parents[position]
        path.reverse()
        return path


def tree_of(image: SessionImage | None = None, entries: Iterable[Entry] = ()) -> Tree:
    """The tree of an opened file and of what was appended to it, or of entries alone."""
    tree = Tree(
        base=image,
        tail=vector(),
        index=index_of(image.index if image is not None else {}),
        label_entries=index_of(image.labels if image is not None else {}),
        name=_name_of(image.info) if image is not None and image.info is not None else None,
        derived=DerivedCache(),
        base_length=len(image.ids) if image is not None else 0,
    )
    for entry in entries:
        tree = tree.append(entry)
    return tree


def _name_of(entry: SessionInfoEntry) -> str | None:
    return (entry.name or "").strip(BLANKS) or None
