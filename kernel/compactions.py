"""Which compactions may be appended, and in which form (SES-27, SES-28, BND-28)."""

from camshaft.kernel.clock import iso
from camshaft.kernel.commands import AppendCompaction
from camshaft.kernel.entries import CompactionEntry
from camshaft.kernel.errors import Rejection
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.projection import Projection


def compaction_entry(command: AppendCompaction, projection: Projection, entry_id: str, at_ms: int) -> CompactionEntry | Rejection:
    """The compaction as the next entry of the projection's branch, or why it is refused.

    It holds the prompt and tools as they are there, so that reading it needs nothing before
    it. One that keeps nothing names itself as the first kept entry. An entry that is not on
    the branch cannot be kept from; a file that says so is still read, and keeps nothing.
    A null that was written out in the draft is not stored beside the id that replaces it.
    """
    draft, tree = command.draft, projection.tree
    kept = draft.first_kept_entry_id
    position = None if kept is None else tree.position(kept)
    if kept is not None and (position is None or not projection.is_on_branch(position)):
        return Rejection(f"Entry {kept} is not on the active branch; first_kept_entry_id names an entry of it, or is None")
    system = projection.system
    return CompactionEntry(
        id=entry_id,
        parent_id=None if projection.leaf is None else tree.id_at(projection.leaf),
        timestamp=iso(at_ms),
        summary=draft.summary,
        first_kept_entry_id=entry_id if kept is None else kept,
        tokens_before=command.tokens_before,
        details=draft.details,
        usage=draft.usage,
        from_hook=command.from_hook,
        system_message=None if system is None else system.as_message(timestamp=at_ms),
        extra=FrozenDict({name: item for name, item in draft.extra.items() if name != "firstKeptEntryId"}),
    )
