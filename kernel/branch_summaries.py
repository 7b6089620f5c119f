"""Going to another place in the tree: where that is, and what is written down about the branch that is left (CMP-60 to CMP-72).

The branch that is left is what lies between its leaf and the deepest entry it shares with the
target. Its messages are taken from the newest back, as far as they fit the window of the
model that summarises them.
"""

from collections.abc import Sequence
from typing import Final

from camshaft.kernel import shapes
from camshaft.kernel.contribution import contribution, unedited
from camshaft.kernel.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
)
from camshaft.kernel.estimates import estimate
from camshaft.kernel.messages import (
    BranchSummaryMessage,
    CompactionSummaryMessage,
    Message,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from camshaft.kernel.session_events import FileOperations
from camshaft.kernel.summaries import (
    SummaryRequest,
    conversation_text,
    file_lists,
    files_of_details,
    files_of_messages,
    focused,
    joined_files,
)
from camshaft.kernel.summary_texts import BRANCH_SUMMARY_PREAMBLE, BRANCH_SUMMARY_PROMPT, NO_BRANCH_CONTENT
from camshaft.kernel.tree import Tree

WINDOW_TOKENS: Final = 128_000
"""Assumed window of a model that does not tell its own."""

SUMMARY_USED_MAX: Final = 0.9
"""A summary that no longer fits is still taken while less than this part of the budget is used (CMP-64)."""


# -- where to ----------------------------------------------------------------------------


@shapes.frozen(kw_only=True)
class Destination:
    """Where a navigation leads (CMP-61)."""

    leaf_id: str | None
    """The new leaf; None: before every entry."""
    editor_text: str | None = None
    """Text of the user's message that was left, for editing."""


def destination(entry: Entry) -> Destination:
    """The leaf and the text for a target entry."""
    if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
        return Destination(leaf_id=entry.parent_id, editor_text=text_of(entry.message.content, ""))
    if isinstance(entry, CustomMessageEntry):
        return Destination(leaf_id=entry.parent_id, editor_text=text_of(entry.content, ""))
    return Destination(leaf_id=entry.id)


@shapes.frozen(kw_only=True)
class NavigationResult:
    """What a navigation did."""

    cancelled: bool
    """An extension or an abort stopped it; nothing has changed."""
    editor_text: str | None = None
    """Text of the message that was left, for editing (CMP-61)."""
    summary_entry: BranchSummaryEntry | None = None


@shapes.frozen(kw_only=True)
class LeftBranch:
    """What a navigation leaves behind (CMP-62)."""

    entries: tuple[Entry, ...] = ()
    """From below the common ancestor to the old leaf, in path order."""
    common_ancestor_id: str | None = None


def left_branch(tree: Tree, old_leaf: int | None, target: int) -> LeftBranch:
    """What lies between the old leaf and the target's branch. O(branch)."""
    if old_leaf is None:
        return LeftBranch()
    old, new = tree.branch(old_leaf), frozenset(tree.branch(target))
    shared = next((number for number in range(len(old), 0, -1) if old[number - 1] in new), 0)
    ancestor = tree.id_at(old[shared - 1]) if shared else None
    return LeftBranch(entries=tuple([tree.entry(position) for position in old[shared:]]), common_ancestor_id=ancestor)


# -- what is summarised ------------------------------------------------------------------


@shapes.frozen(kw_only=True)
class BranchContent:
    """What of a branch is summarised."""

    messages: tuple[Message, ...]
    total_tokens: int
    file_ops: FileOperations


def budget_of(context_window: int, reserve_tokens: int) -> int:
    """Tokens of messages that may be shown; 0 or less: no limit (CMP-64)."""
    return (context_window or WINDOW_TOKENS) - reserve_tokens


def branch_content(tree: Tree, entries: Sequence[Entry], budget: int) -> BranchContent:
    """The newest messages that fit the budget, and the files of the branch (CMP-64 to CMP-66)."""
    edits = {entry.target_id: entry for entry in entries if isinstance(entry, ContextEditEntry)}
    taken: list[Message] = []
    visited: list[Message] = []
    total = 0
    for entry in reversed(entries):
        message = _message(tree, entry, edits.get(entry.id))
        if message is None:
            continue
        visited.append(message)
        size = estimate(message)
        if budget > 0 and total + size > budget:
            if isinstance(entry, (CompactionEntry, BranchSummaryEntry)) and total < SUMMARY_USED_MAX * budget:
                taken.append(message)
                total += size
            break
        taken.append(message)
        total += size
    listed = [files_of_details(entry.details) for entry in entries if isinstance(entry, BranchSummaryEntry) and not entry.from_hook]
    return BranchContent(messages=tuple(reversed(taken)), total_tokens=total, file_ops=joined_files([*listed, files_of_messages(visited)]))


def _message(tree: Tree, entry: Entry, edit: ContextEditEntry | None) -> Message | None:
    """What an entry adds to the summarised conversation, if anything (CMP-65)."""
    if edit is not None and edit.replacement is None:
        return None
    if isinstance(entry, BranchSummaryEntry):
        return BranchSummaryMessage(summary=entry.summary, from_id=entry.from_id, timestamp=0)
    if isinstance(entry, CompactionEntry):
        found = unedited(entry)
        return next((message for message in found if isinstance(message, CompactionSummaryMessage)), None)
    if isinstance(entry, (MessageEntry, CustomMessageEntry)):
        message = next(iter(contribution(tree, entry, edit, False)), None)
        return None if isinstance(message, ToolResultMessage) else message
    return None


# -- the summary -------------------------------------------------------------------------


def branch_request(content: BranchContent, instructions: str | None = None, replace: bool = False) -> SummaryRequest | None:
    """The request for a branch; None if it holds no message (CMP-67, CMP-68)."""
    if not content.messages:
        return None
    asked = instructions if replace and instructions else focused(BRANCH_SUMMARY_PROMPT, instructions)
    prompt = f"<conversation>\n{conversation_text(content.messages)}\n</conversation>\n\n{asked}"
    return SummaryRequest(label="Branch summarization", prompt=prompt)


def stored_branch_summary(content: BranchContent, text: str | None) -> str:
    """What is stored for the answer to `branch_request`; None: no request was made (CMP-68)."""
    return NO_BRANCH_CONTENT if text is None else BRANCH_SUMMARY_PREAMBLE + text + file_lists(content.file_ops)
