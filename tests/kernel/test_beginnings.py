"""Whether a context still begins with what it was: beside a comparison of the messages themselves."""

import attrs
from hypothesis import given
from hypothesis import strategies as st

from camshaft.kernel.beginnings import still_begins
from camshaft.kernel.projection import project
from camshaft.kernel.tree import tree_of
from tests.kernel.made import STEPS, Step, assistant, entries_of, label, user


@given(STEPS, st.data())
def test_what_still_begins_with_the_messages_of_then_has_the_very_same_ones(steps: list[Step], data: st.DataObject) -> None:
    tree = tree_of(entries=entries_of(steps))
    leaves = st.one_of(st.none(), st.integers(0, tree.length - 1)) if tree.length else st.none()
    then, now = project(tree, data.draw(leaves)), project(tree, data.draw(leaves))

    if still_begins(now, then):
        before = list(then.messages)
        assert [id(each) for each in list(now.messages)[: len(before)]] == [id(each) for each in before]
    assert still_begins(then, then)


@given(STEPS)
def test_a_conversation_that_only_grows_still_begins_with_what_it_was(steps: list[Step]) -> None:
    entries = entries_of([attrs.evolve(step, above=0) for step in steps if step.kind not in ("edit", "compaction")])
    tree = tree_of(entries=entries)
    projections = [project(tree, position) for position in range(tree.length)]

    assert all(still_begins(projections[-1], each) for each in projections)


def test_going_back_over_what_says_nothing_changes_nothing() -> None:
    tree = tree_of(entries=[user("u", None), assistant("a", "u"), label("l", "a", "u", "x")])

    assert still_begins(project(tree, 1), project(tree, 2))
