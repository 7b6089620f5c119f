"""A session's tree as nested values, for showing it (RPC-36, SES-42)."""

import attrs

from camshaft.kernel import shapes
from camshaft.kernel.entries import Entry
from camshaft.kernel.tree import Tree


@shapes.frozen(kw_only=True, eq=False)
class TreeNode:
    """An entry and what is below it. Compared by identity: a session is as deep as it is long."""

    entry: Entry
    children: tuple["TreeNode", ...] = attrs.field(repr=False)
    """By entry time; equal times in file order."""
    label: str | None = None
    label_timestamp: str | None = None
    """When the label was set, as stored."""


def tree_nodes(tree: Tree) -> tuple[TreeNode, ...]:
    """The roots in file order, each with everything below it. O(entries), however deep."""
    outline = tree.outline()
    labels = {entry.target_id: entry for entry in tree.labels()}
    order: list[int] = []
    waiting = list(outline.roots)
    while waiting:
        order.append(waiting.pop())
        waiting.extend(outline.children(order[-1]))
    made: dict[int, TreeNode] = {}
    for position in reversed(order):
        entry = tree.entry(position)
        label = labels.get(entry.id)
        made[position] = TreeNode(
            entry=entry,
            children=tuple([made[child] for child in outline.children(position)]),
            label=tree.label(entry.id),
            label_timestamp=label.timestamp if label is not None and label.label else None,
        )
    return tuple([made[root] for root in outline.roots])
