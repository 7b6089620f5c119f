"""Which context edits may be appended, and in which form (SES-48 to SES-51, BND-25, BND-26)."""

from collections.abc import Mapping
from typing import Final

from camshaft.kernel import codec
from camshaft.kernel.entries import CustomMessageEntry, Entry, MessageEntry, Replacement
from camshaft.kernel.errors import CodecError, Rejection
from camshaft.kernel.messages import blocks_of
from camshaft.kernel.persistent import Json, NotJson
from camshaft.kernel.projection import Projection
from camshaft.kernel.tree import Tree

EDITABLE_ROLES: Final = ("user", "assistant", "toolResult")
"""Roles of message entries whose content an edit may replace or omit."""

_BAD_REPLACEMENT: Final = Rejection("Context edit replacement must be null or contain string/array content")


def checked_replacement(
    tree: Tree, projection: Projection, target_id: str, replacement: Replacement | Mapping[str, Json] | None
) -> Replacement | None | Rejection:
    """The replacement as it is to be stored (None omits the target), or why the edit is refused.

    The replacement's shape is looked at first, then the target: it must exist, be on the
    branch of the projection, and contribute content that can be edited. It need not be in
    the context any more, and may have been edited before. A text that becomes a block
    leaves other fields of the replacement behind.
    """
    read = _read(replacement)
    if isinstance(read, Rejection):
        return read
    position = tree.position(target_id)
    if position is None:
        return Rejection(f"Entry {target_id} not found")
    if not projection.is_on_branch(position):
        return Rejection(f"Entry {target_id} is not on the active branch")
    entry = tree.entry(position)
    if not is_editable(entry):
        return Rejection(f"Entry {target_id} does not contribute editable model content")
    if read is None or not _wants_blocks(entry):
        return read
    return Replacement(content=blocks_of(read.content)) if isinstance(read.content, str) else read


def is_editable(entry: Entry) -> bool:
    """Whether an edit may target this entry (SES-49)."""
    if isinstance(entry, MessageEntry):
        return entry.message.role in EDITABLE_ROLES
    return isinstance(entry, CustomMessageEntry)


def _read(replacement: Replacement | Mapping[str, Json] | None) -> Replacement | None | Rejection:
    if replacement is None or isinstance(replacement, Replacement):
        return replacement
    if not isinstance(replacement, Mapping) or not isinstance(replacement.get("content"), (str, list, tuple)):
        return _BAD_REPLACEMENT
    try:
        return codec.wire(Replacement, replacement)
    except (CodecError, NotJson):
        return _BAD_REPLACEMENT


def _wants_blocks(entry: Entry) -> bool:
    """Messages whose content is always a list (SES-50)."""
    return isinstance(entry, MessageEntry) and entry.message.role in ("assistant", "toolResult")
