"""Where a navigation leads, what it leaves behind, and what is written down about it."""

import pytest

from camshaft.kernel.branch_summaries import (
    branch_content,
    branch_request,
    budget_of,
    destination,
    left_branch,
    stored_branch_summary,
)
from camshaft.kernel.entries import BranchSummaryEntry, CustomMessageEntry, Entry
from camshaft.kernel.messages import TextBlock, UserMessage
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.tree import tree_of
from tests.kernel.made import TIME, assistant, edit, said, user

TREE: list[Entry] = [
    user("u", None, "start"),
    assistant("a", "u", "s"),
    user("l", "a", "left"),
    assistant("m", "l", "more"),
    user("r", "a", "right"),
    user("other", None, "root"),
]


@pytest.mark.rule("CMP-61")
def test_a_users_message_is_given_back_for_editing_and_its_parent_becomes_the_leaf() -> None:
    blocks = (TextBlock(text="a"), TextBlock(text="b"))
    note = CustomMessageEntry(id="n", parent_id="u", timestamp=TIME, custom_type="k", content="note", display=True)

    entries: list[Entry] = [user("u", None, "start"), said("v", "u", UserMessage(content=blocks, timestamp=1)), note, assistant("a", "u")]
    found = [(place.leaf_id, place.editor_text) for place in map(destination, entries)]

    assert found == [(None, "start"), ("u", "ab"), ("u", "note"), ("a", None)]


@pytest.mark.rule("CMP-62")
@pytest.mark.parametrize(
    ("old", "target", "left", "ancestor"),
    [
        ("m", "r", ["l", "m"], "a"),
        ("a", "m", [], "a"),
        ("m", "a", ["l", "m"], "a"),
        ("r", "other", ["u", "a", "r"], None),
        (None, "m", [], None),
    ],
)
def test_what_lies_between_the_old_leaf_and_the_target_is_left_behind(
    old: str | None, target: str, left: list[str], ancestor: str | None
) -> None:
    tree = tree_of(entries=TREE)
    place = tree.position(target)
    assert place is not None

    found = left_branch(tree, None if old is None else tree.position(old), place)

    assert ([entry.id for entry in found.entries], found.common_ancestor_id) == (left, ancestor)


@pytest.mark.rule("CMP-64")
@pytest.mark.parametrize(("window", "reserve", "budget"), [(1000, 100, 900), (0, 16_384, 111_616), (50, 100, -50)])
def test_the_budget_is_the_window_without_the_reserve(window: int, reserve: int, budget: int) -> None:
    assert budget_of(window, reserve) == budget


@pytest.mark.rule("CMP-64")
@pytest.mark.parametrize(("size", "taken"), [(68, 2), (76, 1)])
def test_a_summary_that_no_longer_fits_is_taken_while_less_than_nine_tenths_are_used(size: int, taken: int) -> None:
    summary = BranchSummaryEntry(id="k", parent_id=None, timestamp=TIME, from_id="z", summary="s" * 40)
    entries: list[Entry] = [summary, user("u", "k", "x" * size)]

    found = branch_content(tree_of(entries=entries), entries, 20)

    assert len(found.messages) == taken


@pytest.mark.rule("CMP-65")
def test_an_omitted_message_is_not_summarised() -> None:
    entries: list[Entry] = [user("u", None, "gone"), user("v", "u", "there"), edit("e", "v", "u")]

    found = branch_content(tree_of(entries=entries), entries, 0)

    assert [message.role for message in found.messages] == ["user"]


@pytest.mark.rule("CMP-66")
def test_files_of_an_extensions_summary_are_not_taken_over() -> None:
    details = FrozenDict({"readFiles": ("f",), "modifiedFiles": ()})
    own = BranchSummaryEntry(id="o", parent_id=None, timestamp=TIME, from_id="z", summary="s", details=details)
    foreign = BranchSummaryEntry(id="f", parent_id="o", timestamp=TIME, from_id="z", summary="s", details=details, from_hook=True)

    found = [branch_content(tree_of(entries=[entry]), [entry], 0).file_ops.read for entry in (own, foreign)]

    assert found == [("f",), ()]


@pytest.mark.rule("CMP-67", "CMP-68")
def test_own_instructions_replace_the_default_ones_only_if_there_are_any() -> None:
    content = branch_content(tree_of(entries=TREE[:1]), TREE[:1], 0)

    prompts = [branch_request(content, "just this", True), branch_request(content, None, True), branch_request(content, "that", False)]

    assert [request.prompt.rpartition("</conversation>\n\n")[2][:14] for request in prompts if request is not None] == [
        "just this",
        "The conversati",
        "The conversati",
    ]
    assert prompts[2] is not None
    assert prompts[2].prompt.endswith("\n\nAdditional focus: that")


@pytest.mark.rule("CMP-68")
def test_a_branch_without_messages_is_stored_as_such_without_a_request() -> None:
    content = branch_content(tree_of(entries=[]), [], 0)

    assert branch_request(content) is None
    assert stored_branch_summary(content, None) == "No content to summarize"
