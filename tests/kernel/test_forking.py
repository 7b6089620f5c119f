"""What a fork or a clone is to hold."""

import pytest

from camshaft.kernel.entries import Entry
from camshaft.kernel.errors import Rejection
from camshaft.kernel.forking import ForkPlan, ForkPosition, fork_plan
from camshaft.kernel.messages import ImageBlock, TextBlock, UserMessage
from camshaft.kernel.tree import Tree, tree_of
from tests.kernel.made import assistant, label, said, user

BLOCKS = UserMessage(content=(TextBlock(text="a"), ImageBlock(data="x", mime_type="image/png"), TextBlock(text="b")), timestamp=1)


@pytest.fixture
def tree() -> Tree:
    entries: list[Entry] = [user("u", None, "first"), assistant("a", "u"), said("v", "a", BLOCKS), label("l", "v", "u", "x")]
    return tree_of(entries=entries)


def planned(tree: Tree, entry_id: str | None, position: ForkPosition) -> tuple[str | None, str | None]:
    plan = fork_plan(tree, entry_id, position)
    assert isinstance(plan, ForkPlan)
    assert plan.tree is tree
    return plan.leaf_id, plan.text


@pytest.mark.rule("SES-76")
def test_before_a_user_message_the_branch_ends_at_its_parent_and_its_text_is_handed_back(tree: Tree) -> None:
    assert planned(tree, "v", "before") == ("a", "ab")


@pytest.mark.rule("SES-77")
def test_before_the_first_message_nothing_is_left(tree: Tree) -> None:
    assert planned(tree, "u", "before") == (None, "first")


@pytest.mark.rule("SES-76")
@pytest.mark.parametrize("entry_id", ["u", "a", "v", "l"])
def test_at_any_entry_the_branch_ends_there_and_nothing_is_edited_again(tree: Tree, entry_id: str) -> None:
    assert planned(tree, entry_id, "at") == (entry_id, None)


@pytest.mark.rule("SES-76", "CTXT-9")
@pytest.mark.parametrize(("entry_id", "position"), [("a", "before"), ("l", "before"), ("none", "before"), ("none", "at"), ("", "at")])
def test_other_entries_are_refused(tree: Tree, entry_id: str, position: ForkPosition) -> None:
    assert fork_plan(tree, entry_id, position) == Rejection("Invalid entry ID for forking")


@pytest.mark.rule("SES-76", "RPC-56")
def test_a_clone_needs_a_leaf() -> None:
    assert fork_plan(tree_of(), None, "at") == Rejection("Cannot clone session: no current entry selected")
