"""From a branch to the model context: a pure function of (tree, leaf), kept incrementally.

Theory of operation. A projection is described, not listed: the path of the leaf, which
compaction on it counts and what that one keeps, and the edits in force (CTX-1 to CTX-5).
Messages are made when somebody reads them, from the end if that is where the reader
starts; a message that needs no change is the very object of its entry, and one that had to
be made is remembered in the tree's cache, so identity is stable.

`project` looks at the whole branch, `extend` at one new entry: everything that is asked
for all the time (count, system state, settings, whether a position is on the branch) is a
field that `extend` carries on. Only a compaction, or an edit of a system message or of a
compaction in a hand-made file, makes `extend` look at the branch again.

Path indexes count from the root. Without a compaction every entry of the path is selected.
With one at index c the selection is c, then `kept` (indexes before c), then c+1 onwards.

Longer than 400 lines because `project` and `extend` are two ways to the same value and are
read side by side.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from camshaft.kernel import shapes
from camshaft.kernel.contribution import contribution, unedited
from camshaft.kernel.convert import model_message
from camshaft.kernel.entries import (
    CompactionEntry,
    ContextEditEntry,
    Entry,
    MessageEntry,
    ModelChangeEntry,
    ThinkingLevelChangeEntry,
)
from camshaft.kernel.kinds import (
    ASSISTANT,
    COMPACTION,
    CONTEXT_EDIT,
    MODEL,
    NOTHING,
    ONE_MESSAGE,
    OTHER_MESSAGE,
    SYSTEM,
    THINKING_LEVEL,
    kind_of,
)
from camshaft.kernel.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Message,
    ModelMessage,
    OpaqueMessage,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from camshaft.kernel.persistent import IdIndex, Vector, vector
from camshaft.kernel.prompt import SystemState, replay, replay_one
from camshaft.kernel.tree import Tree
from camshaft.kernel.view import View

_ALL_KINDS: Final = bytes(range(256))
_MAYBE_UNSENT: Final = (BashExecutionMessage, OpaqueMessage)


@shapes.frozen
class ContextEntry:
    """A selected entry and the messages it contributes, none if it is omitted (CTX-13)."""

    entry: Entry
    messages: tuple[Message, ...]
    position: int


@shapes.frozen
class Path:
    """Positions from the root to the leaf: as found, and as appended since."""

    found: Sequence[int]
    grown: "Vector[int]"

    def __len__(self) -> int:
        return len(self.found) + len(self.grown)

    def __getitem__(self, index: int) -> int:
        """The position at `index`, 0 ≤ index < len."""
        known = len(self.found)
        position: int = self.found[index] if index < known else self.grown[index - known]
        return position

    def append(self, position: int) -> "Path":
        """The path one entry further. O(1)."""
        return Path(self.found, self.grown.append(position))


@shapes.frozen(kw_only=True, eq=False)
class Projection:
    """The context of one leaf. Compared by identity."""

    tree: Tree
    leaf: int | None
    """Position of the last entry of the branch; None for the empty branch."""
    path: Path
    compaction_index: int = -1
    """Path index of the compaction that counts, the last one; -1 without."""
    kept: Sequence[int] = ()
    """Path indexes before the compaction that stay selected, ascending."""
    edits: IdIndex[ContextEditEntry] = IdIndex()
    """The last selected edit per target id (CTX-5)."""
    edited: bool = False
    """Whether any selected entry is a context edit (CMP-17)."""
    edit_index: int = -1
    """Path index of the last context edit on the whole branch; -1 without."""
    message_count: int = 0
    """How many messages there are."""
    unsent_count: int = 0
    """How many of them no model receives: excluded commands and unknown roles (MSG-38, CTX-30)."""
    thinking_level: str = "off"
    """As recorded on the whole branch (CTX-2)."""
    model: tuple[str, str] | None = None
    """Provider and model id as recorded on the whole branch: the last selection or answer (CTX-2)."""
    selected_model: tuple[str, str] | None = None
    """The last selection alone; a virtual model holds until the next one (CTX-2, SES-22)."""
    system: SystemState | None = None
    """What the system messages of the context replay to; None without any."""

    @property
    def length(self) -> int:
        """Number of entries on the branch."""
        return len(self.path)

    @property
    def selected_count(self) -> int:
        """Number of selected entries."""
        return len(self.path) if self.compaction_index < 0 else len(self.path) - self.compaction_index + len(self.kept)

    @property
    def compaction_position(self) -> int | None:
        """Position of the compaction that counts, or None."""
        return self.path[self.compaction_index] if self.compaction_index >= 0 else None

    @property
    def edit_position(self) -> int | None:
        """Position of the last context edit on the branch, or None."""
        return self.path[self.edit_index] if self.edit_index >= 0 else None

    @property
    def context_entries(self) -> View[ContextEntry]:
        """The selected entries in order, with what they contribute; `len` and the end are O(1)."""
        count = self.selected_count
        return View(lambda: map(self._context_entry, range(count)), lambda: map(self._context_entry, range(count - 1, -1, -1)), count)

    @property
    def messages(self) -> View[Message]:
        """The context messages; `len` is O(1), walking from the end touches only what it passes."""
        return View(self._messages, self._messages_backward, self.message_count)

    @property
    def llm_messages(self) -> View[ModelMessage]:
        """The messages as a model receives them; `len` is O(1), as for `messages`."""
        return View(
            lambda: self._converted(self._messages()),
            lambda: self._converted(self._messages_backward()),
            self.message_count - self.unsent_count,
        )

    @property
    def last_assistant(self) -> tuple[Entry, AssistantMessage] | None:
        """The last assistant message of the context and its entry, looked for from the end."""
        for each in reversed(self.context_entries):
            for message in reversed(each.messages):
                if isinstance(message, AssistantMessage):
                    return each.entry, message
        return None

    @property
    def runnable(self) -> bool:
        """Whether a request could be made (CTX-36): a non-system model message exists and the last one is not the assistant's."""
        for number, message in enumerate(reversed(self.llm_messages)):
            if number == 0 and isinstance(message, AssistantMessage):
                return False
            if not isinstance(message, SystemMessage):
                return True
        return False

    def entry_of(self, message: Message) -> Entry | None:
        """The entry that contributes this very object; looked for from the end, so recent ones are cheap (CTX-13)."""
        for each in reversed(self.context_entries):
            if any(message is own for own in each.messages):
                return each.entry
        return None

    def is_on_branch(self, position: int) -> bool:
        """Whether the entry at `position` is the leaf or one of its ancestors. O(1)."""
        return self.index_of(position) >= 0

    def index_of(self, position: int) -> int:
        """The path index of a position, -1 if it is not on the branch."""
        if not 0 <= position < self.tree.length:
            return -1
        depth = self.tree.depth(position)
        if depth < 0:
            return next((index for index in range(len(self.path)) if self.path[index] == position), -1)
        return depth if depth < len(self.path) and self.path[depth] == position else -1

    def is_selected(self, index: int) -> bool:
        """Whether the entry at a path index takes part in the context."""
        if index >= self.compaction_index:
            return True
        at = bisect_left(self.kept, index)
        return at < len(self.kept) and self.kept[at] == index

    def _context_entry(self, number: int) -> ContextEntry:
        """The selected entry with this number, from 0."""
        index = number
        if self.compaction_index >= 0:
            kept = len(self.kept)
            if number == 0:
                index = self.compaction_index
            elif number <= kept:
                index = self.kept[number - 1]
            else:
                index = self.compaction_index + number - kept
        position = self.path[index]
        entry = self.tree.entry(position)
        return ContextEntry(entry, contribution(self.tree, entry, self.edits.get(entry.id), number == 0), position)

    def _messages(self) -> Iterator[Message]:
        for number in range(self.selected_count):
            yield from self._context_entry(number).messages

    def _messages_backward(self) -> Iterator[Message]:
        for number in range(self.selected_count - 1, -1, -1):
            yield from reversed(self._context_entry(number).messages)

    def _converted(self, messages: Iterator[Message]) -> Iterator[ModelMessage]:
        cache = self.tree.derived
        for message in messages:
            if isinstance(message, (UserMessage, AssistantMessage, ToolResultMessage, SystemMessage)):
                yield message
                continue
            converted = cache.get(message)
            if converted is None:
                converted = model_message(message)
                if converted is None:
                    continue
                cache.put(converted, message)
            yield converted


def project(tree: Tree, leaf: int | None) -> Projection:
    """The context of a leaf from scratch. O(branch), mostly in C."""
    if leaf is None:
        return Projection(tree=tree, leaf=None, path=Path((), vector()))
    found = tree.branch(leaf)
    kinds = tree.kinds(found)
    at = kinds.rfind(COMPACTION)
    kept = _kept(tree, found, kinds, at)
    base = Projection(
        tree=tree,
        leaf=leaf,
        path=Path(found, vector()),
        compaction_index=at,
        kept=kept,
        edit_index=kinds.rfind(CONTEXT_EDIT),
        thinking_level=_thinking_level(tree, found, kinds),
        model=_model(tree, found, kinds),
        selected_model=_selected_model(tree, found, kinds),
    )
    edited = _with_edits(base, kinds)
    others = _indexes(edited, kinds, OTHER_MESSAGE)
    unsent = sum([_unsent(_contributed(edited, index)) for index in others])
    return attrs.evolve(edited, message_count=_count(edited, kinds), unsent_count=unsent, system=_system(edited, kinds))


def extend(projection: Projection, tree: Tree, position: int) -> Projection:
    """The context of `position`, an entry of `tree`, which has grown from the projection's tree.

    O(1) amortised if the entry is a child of the projection's leaf, except for the cases the
    header names; for any other entry the same as `project`.
    """
    parent = tree.parent(position)
    if parent != (-1 if projection.leaf is None else projection.leaf) or tree.depth(position) < 0:
        return project(tree, position)
    entry = tree.entry(position)
    kind = kind_of(entry)
    if kind == COMPACTION or (kind == CONTEXT_EDIT and _edits_state(projection, entry)):
        return project(tree, position)
    moved = attrs.evolve(projection, tree=tree, leaf=position, path=projection.path.append(position))
    if kind == NOTHING:
        return moved
    if isinstance(entry, ContextEditEntry):
        return _extended_by_edit(moved, entry)
    if isinstance(entry, ThinkingLevelChangeEntry):
        return attrs.evolve(moved, thinking_level=entry.thinking_level)
    if isinstance(entry, ModelChangeEntry):
        selected = (entry.provider, entry.model_id)
        return attrs.evolve(moved, model=selected, selected_model=selected)
    return _extended_by_messages(moved, entry)


# -- extend ------------------------------------------------------------------------------


def _edits_state(projection: Projection, entry: Entry) -> bool:
    """Whether an edit touches what the system state came from, which cannot be taken back incrementally."""
    assert isinstance(entry, ContextEditEntry)
    target = projection.tree.position(entry.target_id)
    if target is None:
        return False
    return projection.tree.kind(target) in (SYSTEM, COMPACTION) and projection.index_of(target) >= 0


def _extended_by_edit(moved: Projection, edit: ContextEditEntry) -> Projection:
    """The edit counts from now on; the number of messages changes with what its target contributes."""
    before = _of_target(moved, edit.target_id)
    edited = attrs.evolve(moved, edits=moved.edits.set(edit.target_id, edit), edited=True, edit_index=len(moved.path) - 1)
    after = _of_target(edited, edit.target_id)
    return attrs.evolve(
        edited,
        message_count=edited.message_count + len(after) - len(before),
        unsent_count=edited.unsent_count + _unsent(after) - _unsent(before),
    )


def _of_target(projection: Projection, target_id: str) -> tuple[Message, ...]:
    """What the entry with this id contributes."""
    position = projection.tree.position(target_id)
    index = -1 if position is None else projection.index_of(position)
    return _contributed(projection, index) if index >= 0 and projection.is_selected(index) else ()


def _contributed(projection: Projection, index: int) -> tuple[Message, ...]:
    """What the selected entry at a path index contributes."""
    entry = projection.tree.entry(projection.path[index])
    head = index == max(projection.compaction_index, 0)
    return contribution(projection.tree, entry, projection.edits.get(entry.id), head)


def _unsent(messages: Sequence[Message]) -> int:
    """How many of the messages no model receives."""
    return sum([isinstance(message, _MAYBE_UNSENT) and model_message(message) is None for message in messages])


def _extended_by_messages(moved: Projection, entry: Entry) -> Projection:
    messages = contribution(moved.tree, entry, moved.edits.get(entry.id), False)
    state = moved.system
    for message in messages:
        if isinstance(message, SystemMessage):
            state = replay_one(state, message)
    model = moved.model
    if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
        model = (entry.message.provider, entry.message.model)
    return attrs.evolve(
        moved,
        message_count=moved.message_count + len(messages),
        unsent_count=moved.unsent_count + _unsent(messages),
        system=state,
        model=model,
    )


# -- project -----------------------------------------------------------------------------


def _kept(tree: Tree, path: Sequence[int], kinds: bytes, at: int) -> Sequence[int]:
    """Path indexes that the compaction at index `at` keeps: from its first kept entry on, without system messages (CTX-3)."""
    if at < 0:
        return ()
    compaction = tree.entry(path[at])
    assert isinstance(compaction, CompactionEntry)
    kept_id = compaction.first_kept_entry_id
    position = tree.position(kept_id) if kept_id is not None else None
    if position is None:
        return ()
    first = tree.depth(position)
    if first < 0:
        first = next((index for index in range(at) if path[index] == position), at)
    if first >= at or path[first] != position:
        return ()
    if SYSTEM in kinds[first:at]:
        return tuple([index for index in range(first, at) if kinds[index] != SYSTEM])
    return range(first, at)


def _thinking_level(tree: Tree, path: Sequence[int], kinds: bytes) -> str:
    at = kinds.rfind(THINKING_LEVEL)
    if at < 0:
        return "off"
    entry = tree.entry(path[at])
    assert isinstance(entry, ThinkingLevelChangeEntry)
    return entry.thinking_level


def _model(tree: Tree, path: Sequence[int], kinds: bytes) -> tuple[str, str] | None:
    """The last selection or answer; a message of the assistant that cannot be read says nothing."""
    end = len(kinds)
    while end > 0:
        at = max(kinds.rfind(MODEL, 0, end), kinds.rfind(ASSISTANT, 0, end))
        if at < 0:
            return None
        entry = tree.entry(path[at])
        if isinstance(entry, ModelChangeEntry):
            return entry.provider, entry.model_id
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
            return entry.message.provider, entry.message.model
        end = at
    return None


def _selected_model(tree: Tree, path: Sequence[int], kinds: bytes) -> tuple[str, str] | None:
    at = kinds.rfind(MODEL)
    entry = tree.entry(path[at]) if at >= 0 else None
    return (entry.provider, entry.model_id) if isinstance(entry, ModelChangeEntry) else None


def _indexes(projection: Projection, kinds: bytes, kind: int) -> Iterator[int]:
    """Path indexes of the selected entries of one kind, ascending."""
    at = kinds.find(kind)
    while at >= 0:
        if projection.is_selected(at):
            yield at
        at = kinds.find(kind, at + 1)


def _with_edits(projection: Projection, kinds: bytes) -> Projection:
    last: dict[str, ContextEditEntry] = {}
    for index in _indexes(projection, kinds, CONTEXT_EDIT):
        entry = projection.tree.entry(projection.path[index])
        assert isinstance(entry, ContextEditEntry)
        last[entry.target_id] = entry
    return attrs.evolve(projection, edits=IdIndex((last,), {}), edited=True) if last else projection


def _count(projection: Projection, kinds: bytes) -> int:
    """Messages of the selection: one per entry of a kind that has one, minus what edits omit."""
    at = projection.compaction_index
    if at < 0:
        count = len(kinds) - _silent(kinds, 0, len(kinds))
    else:
        kept = projection.kept
        first = kept[0] if kept else at
        systems = kinds.count(SYSTEM, first, at)
        count = (at - first) - _silent(kinds, first, at) - systems
        count += (len(kinds) - at - 1) - _silent(kinds, at + 1, len(kinds))
        compaction = projection.tree.entry(projection.path[at])
        count += len(unedited(compaction))
    without = attrs.evolve(projection, edits=IdIndex())
    targets = projection.edits.keys() if projection.edited else iter(())
    return count - sum([len(_of_target(without, target)) - len(_of_target(projection, target)) for target in targets])


def _silent(kinds: bytes, start: int, end: int) -> int:
    """How many entries between two path indexes have no message of their own."""
    return len(kinds[start:end].translate(_ALL_KINDS, ONE_MESSAGE))


def _system(projection: Projection, kinds: bytes) -> SystemState | None:
    """The replay of the selection's system messages: those of the compaction, then those after it."""
    at = projection.compaction_index
    messages: list[Message] = []
    if at >= 0:
        messages += projection._context_entry(0).messages
    for index in _indexes(projection, kinds, SYSTEM):
        entry = projection.tree.entry(projection.path[index])
        messages += contribution(projection.tree, entry, projection.edits.get(entry.id), False)
    return replay(messages)
