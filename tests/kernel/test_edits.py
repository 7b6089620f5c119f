"""Which context edits are accepted, and in which form."""

from typing import Any

import pytest

from camshaft.kernel.edits import checked_replacement
from camshaft.kernel.entries import CustomEntry, CustomMessageEntry, Entry, Replacement
from camshaft.kernel.errors import Rejection
from camshaft.kernel.messages import TextBlock, ToolResultMessage
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.projection import project
from camshaft.kernel.tree import tree_of
from tests.kernel.made import TIME, assistant, compaction, edit, said, system, user

ENTRIES: list[Entry] = [
    user("user", None),
    assistant("assistant", "user"),
    said("result", "assistant", ToolResultMessage(tool_call_id="t", tool_name="n", is_error=False, timestamp=1)),
    CustomMessageEntry(id="note", parent_id="result", timestamp=TIME, custom_type="k", content="c", display=True),
    said("system", "note", system("x")),
    CustomEntry(id="state", parent_id="system", timestamp=TIME, custom_type="k"),
    compaction("compaction", "state", "state"),
    edit("edit", "compaction", "user"),
    user("elsewhere", "user"),
]
TREE = tree_of(entries=ENTRIES)
BAD = "Context edit replacement must be null or contain string/array content"


def checked(target: str, replacement: Any) -> Replacement | None | Rejection:
    return checked_replacement(TREE, project(TREE, 7), target, replacement)


@pytest.mark.rule("SES-48")
@pytest.mark.parametrize("replacement", [{}, {"content": None}, {"content": 5}, {"content": {}}, {"content": ["x"]}, "text", 5, [], True])
def test_a_replacement_without_content_is_refused_before_the_target_is_looked_at(replacement: Any) -> None:
    assert checked("nothing", replacement) == Rejection(BAD)


@pytest.mark.rule("SES-49", "BND-25")
@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("nothing", "Entry nothing not found"),
        ("elsewhere", "Entry elsewhere is not on the active branch"),
        ("system", "Entry system does not contribute editable model content"),
        ("state", "Entry state does not contribute editable model content"),
        ("compaction", "Entry compaction does not contribute editable model content"),
        ("edit", "Entry edit does not contribute editable model content"),
    ],
)
@pytest.mark.parametrize("replacement", [None, {"content": "x"}])
def test_a_target_that_cannot_be_edited_is_refused(target: str, why: str, replacement: Any) -> None:
    assert checked(target, replacement) == Rejection(why)


@pytest.mark.rule("SES-50", "BND-26")
@pytest.mark.parametrize("target", ["assistant", "result"])
def test_a_text_becomes_a_block_alone_where_content_is_a_list(target: str) -> None:
    assert checked(target, {"content": "x", "more": 1}) == Replacement(content=(TextBlock(text="x"),))


@pytest.mark.rule("SES-50", "BND-26")
@pytest.mark.parametrize(
    ("target", "content", "stored"),
    [
        ("user", "x", "x"),
        ("note", "x", "x"),
        ("assistant", [{"type": "text", "text": "x"}], (TextBlock(text="x"),)),
        ("result", [{"type": "text", "text": "x"}], (TextBlock(text="x"),)),
    ],
)
def test_content_of_the_right_form_stays_with_the_other_fields(target: str, content: Any, stored: Any) -> None:
    assert checked(target, {"content": content, "more": 1}) == Replacement(content=stored, extra=FrozenDict({"more": 1}))


@pytest.mark.rule("SES-51", "BND-25")
@pytest.mark.parametrize("target", ["user", "assistant", "result", "note"])
def test_what_is_omitted_or_summarised_may_be_edited_again(target: str) -> None:
    assert checked(target, None) is None
    assert checked(target, Replacement(content=())) == Replacement(content=())
