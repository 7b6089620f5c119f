"""The tree: positions, paths, labels and the name, from a file, from memory, and mixed."""

from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camshaft.kernel.entries import Entry, LabelEntry, SessionInfoEntry
from camshaft.kernel.kinds import kind_of
from camshaft.kernel.session_file import TANGLED
from camshaft.kernel.tree import Tree, tree_of
from tests.kernel.made import STEPS, TIME, Step, entries_of, file_of, label, opened, user


def in_two_parts(entries: Sequence[Entry], cut: int) -> Tree:
    """The first entries from a file, the others appended."""
    return tree_of(opened(file_of(entries[:cut])).image, entries[cut:])


def paths(tree: Tree) -> list[list[str]]:
    return [[tree.id_at(each) for each in tree.branch(position)] for position in range(tree.length)]


def facts(tree: Tree) -> tuple[object, ...]:
    return (
        list(tree.entries()),
        paths(tree),
        [tree.depth(position) for position in range(tree.length)],
        [tree.parent(position) for position in range(tree.length)],
        [[entry.target_id, entry.label] for entry in tree.labels()],
        tree.name,
        tree.outline().roots,
        [tree.outline().children(position) for position in range(tree.length)],
        [tree.kinds(tree.branch(position)) for position in range(tree.length)],
    )


@given(STEPS, st.integers(0, 40))
def test_it_does_not_matter_how_much_of_a_session_was_in_the_file(steps: list[Step], cut: int) -> None:
    entries = entries_of(steps)

    assert facts(in_two_parts(entries, min(cut, len(entries)))) == facts(tree_of(entries=entries))


@given(STEPS)
def test_positions_ids_and_kinds_fit_together(steps: list[Step]) -> None:
    entries = entries_of(steps)
    tree = in_two_parts(entries, len(entries) // 2)

    assert [tree.position(entry.id) for entry in entries] == list(range(len(entries)))
    assert [tree.id_at(position) for position in range(tree.length)] == [entry.id for entry in entries]
    assert [tree.kind(position) for position in range(tree.length)] == [kind_of(entry) for entry in entries]
    assert tree.position("nothing of the kind") is None


@given(STEPS)
def test_labels_and_name_are_those_of_the_last_entries_in_the_file(steps: list[Step]) -> None:
    entries = entries_of(steps)
    tree = tree_of(entries=entries)
    last = {entry.target_id: entry.label or None for entry in entries if isinstance(entry, LabelEntry)}
    names = [entry.name for entry in entries if isinstance(entry, SessionInfoEntry)]

    assert {entry.id: tree.label(entry.id) for entry in entries} == {entry.id: last.get(entry.id) for entry in entries}
    assert tree.name == ((names or [None])[-1] or None)


def test_appending_leaves_the_former_tree_as_it_was() -> None:
    one = tree_of(entries=[user("a", None)])

    two = one.append(label("b", "a", "a", "x"))

    assert (one.length, one.label("a")) == (1, None)
    assert (two.length, two.label("a")) == (2, "x")


@pytest.mark.rule("SES-32")
@pytest.mark.parametrize("text", ["", None])
def test_a_label_without_text_clears_the_label(text: str | None) -> None:
    tree = tree_of(entries=[user("a", None), label("b", "a", "a", "x"), label("c", "b", "a", text)])

    assert (tree.label("a"), tree.labels()) == (None, ())


def test_a_label_of_something_that_does_not_exist_is_not_listed() -> None:
    assert tree_of(entries=[label("b", None, "gone", "x")]).labels() == ()


@pytest.mark.rule("SES-62")
def test_a_name_is_trimmed_and_an_empty_one_clears_it() -> None:
    named = tree_of(entries=[SessionInfoEntry(id="a", parent_id=None, timestamp=TIME, name="  Demo ")])

    assert named.name == "Demo"
    assert named.append(SessionInfoEntry(id="b", parent_id="a", timestamp=TIME, name=" ")).name is None


@pytest.mark.rule("SES-40")
def test_a_path_into_a_cycle_stops_at_the_first_repeated_entry() -> None:
    tree = tree_of(opened(file_of([user("a", "c"), user("b", "a"), user("c", "b"), user("d", "a")])).image)

    assert paths(tree) == [["b", "c", "a"], ["c", "a", "b"], ["a", "b", "c"], ["b", "c", "a", "d"]]
    assert tree.depth(3) == TANGLED
    assert paths(tree.append(user("e", "d")))[4] == ["b", "c", "a", "d", "e"]


@pytest.mark.rule("SES-21")
def test_of_entries_with_the_same_id_the_later_one_counts() -> None:
    tree = tree_of(opened(file_of([user("a", None), user("b", "a", "one"), user("c", "b"), user("b", None, "two")])).image)

    assert paths(tree)[2] == ["b", "c"]
    assert tree.position("b") == 3


@pytest.mark.rule("SES-42")
def test_children_are_sorted_by_time_and_roots_stay_in_file_order() -> None:
    at = [f"2026-03-01T09:00:0{second}.000Z" for second in (3, 2, 1, 0)]
    entries = [user("a", None), user("b", "a"), user("c", "a"), user("z", "gone")]

    outline = tree_of(entries=[attrs.evolve(entry, timestamp=moment) for entry, moment in zip(entries, at)]).outline()

    assert (outline.roots, outline.children(0), outline.children(1)) == ((0, 3), (2, 1), ())
