"""What a fork or a clone of a session is to hold, decided before anything is written (SES-76, SES-77).

plan = fork_plan(tree, entry_id, "before")
if isinstance(plan, ForkPlan): ...  # plan.text goes back to the editor
"""

from typing import Final, Literal

from camshaft.kernel import shapes
from camshaft.kernel.entries import MessageEntry
from camshaft.kernel.errors import Rejection
from camshaft.kernel.kinds import USER
from camshaft.kernel.messages import UserMessage, text_of
from camshaft.kernel.tree import Tree

ForkPosition = Literal["before", "at"]
"""`before`: up to the parent of a user message, whose text is edited again. `at`: up to the entry itself."""

INVALID_FORK_TEXT: Final = "Invalid entry ID for forking"
NO_LEAF_TEXT: Final = "Cannot clone session: no current entry selected"


@shapes.frozen(kw_only=True, eq=False)
class ForkPlan:
    """The branch a new session is made of."""

    tree: Tree
    leaf_id: str | None
    """The last entry taken over; None: the new session is empty and only names its parent (SES-77)."""
    text: str | None = None
    """What the user wrote in the entry left out; None if none was."""


def fork_plan(tree: Tree, entry_id: str | None, position: ForkPosition = "before") -> ForkPlan | Rejection:
    """The plan of a fork at an entry, which may be on any branch (RPC-54).

    A clone is a fork `at` the leaf. Rejected: an unknown id, `before` an entry that is no user
    message, and no entry at all.
    """
    if entry_id is None:
        return Rejection(NO_LEAF_TEXT)
    found = tree.position(entry_id)
    if found is None:
        return Rejection(INVALID_FORK_TEXT)
    if position == "at":
        return ForkPlan(tree=tree, leaf_id=entry_id)
    entry = tree.entry(found) if tree.kind(found) == USER else None
    if not isinstance(entry, MessageEntry) or not isinstance(entry.message, UserMessage):
        return Rejection(INVALID_FORK_TEXT)
    parent = tree.parent(found)
    return ForkPlan(tree=tree, leaf_id=None if parent < 0 else tree.id_at(parent), text=text_of(entry.message.content, ""))
