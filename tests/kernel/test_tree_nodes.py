"""A session's tree as nested values."""

import sys

from camshaft.kernel.entries import CustomEntry, LabelEntry
from camshaft.kernel.tree import tree_of
from camshaft.kernel.tree_nodes import TreeNode, tree_nodes

TIME = "2026-01-01T00:00:0{}.000Z"


def entry(name: str, parent: str | None, second: int = 0) -> CustomEntry:
    return CustomEntry(id=name, parent_id=parent, timestamp=TIME.format(second), custom_type="k")


def shape(nodes: tuple[TreeNode, ...]) -> list[object]:
    return [[node.entry.id, shape(node.children)] if node.children else node.entry.id for node in nodes]


def test_children_stand_by_time_below_their_parents_and_every_root_is_there() -> None:
    tree = tree_of(entries=[entry("a", None), entry("b", "a", 3), entry("c", "a", 1), entry("d", "c", 2), entry("z", None)])

    assert shape(tree_nodes(tree)) == [["a", [["c", ["d"]], "b"]], "z"]


def test_a_label_stands_at_its_entry_with_its_time_until_it_is_cleared() -> None:
    labelled = LabelEntry(id="l", parent_id="a", timestamp=TIME.format(5), target_id="a", label="mark")
    cleared = LabelEntry(id="m", parent_id="l", timestamp=TIME.format(6), target_id="a", label=None)

    (with_label,) = tree_nodes(tree_of(entries=[entry("a", None), labelled]))
    (without,) = tree_nodes(tree_of(entries=[entry("a", None), labelled, cleared]))

    assert (with_label.label, with_label.label_timestamp) == ("mark", TIME.format(5))
    assert (without.label, without.label_timestamp) == (None, None)


def test_a_session_that_is_deeper_than_the_stack_is_no_problem() -> None:
    deep = 3 * sys.getrecursionlimit()

    (node,) = tree_nodes(tree_of(entries=[entry(str(each), str(each - 1) if each else None) for each in range(deep)]))

    depth = 1
    while node.children:
        (node,) = node.children
        depth += 1
    assert depth == deep
