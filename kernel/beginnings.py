"""Whether one context begins with another one, of the same session at an earlier time (CACHE-3)."""

from typing import Final

from camshaft.kernel.entries import ContextEditEntry
from camshaft.kernel.kinds import CONTEXT_EDIT, LABEL, MODEL, NOTHING, SESSION_INFO, THINKING_LEVEL
from camshaft.kernel.projection import Projection


def still_begins(now: Projection, then: Projection) -> bool:
    """Whether the context `now` begins with exactly the messages of `then`. O(entries since)."""
    known = then.length
    while known and then.tree.kind(then.path[known - 1]) in _SILENT:
        known -= 1
    if now.length < known or now.compaction_index != then.compaction_index:
        return False
    if known and now.tree.id_at(now.path[known - 1]) != then.tree.id_at(then.path[known - 1]):
        return False
    if now.edit_index < known:
        return True
    return not any(_edits_known(now, index, known) for index in range(known, now.length))


_SILENT: Final = frozenset({NOTHING, LABEL, SESSION_INFO, THINKING_LEVEL, MODEL})
"""Kinds of entries that no message comes from and that change none."""


def _edits_known(now: Projection, index: int, known: int) -> bool:
    """Whether the entry at a path index edits a message among the first `known` entries."""
    position = now.path[index]
    if now.tree.kind(position) != CONTEXT_EDIT:
        return False
    edit = now.tree.entry(position)
    assert isinstance(edit, ContextEditEntry)
    target = now.tree.position(edit.target_id)
    at = -1 if target is None else now.index_of(target)
    return 0 <= at < known and now.is_selected(at)
