"""Mutable copies for handlers: what can be changed, what comes back, and that nothing changed means the same object."""

from typing import Any

import pytest

from camshaft.kernel.errors import CodecError
from camshaft.kernel.messages import AssistantMessage, TextBlock, ToolCall, ToolResultMessage, UserMessage
from camshaft.kernel.persistent import FrozenDict, freeze
from camshaft.kernel.thawed import Thawed, frozen, thawed

RESULT = ToolResultMessage(
    tool_call_id="c",
    tool_name="t",
    content=(TextBlock(text="x"),),
    details=freeze({"count": 1, "list": [1, {"deep": 1.5}], "flag": True}),
    is_error=False,
    timestamp=1,
)
ANSWER = AssistantMessage(
    content=(TextBlock(text="x"), ToolCall(id="c", name="t", arguments=freeze({"path": "a"}))),
    api="a",
    provider="p",
    model="m",
    stop_reason="toolUse",
    timestamp=1,
    extra=FrozenDict({"later": freeze({"x": [1]})}),
)


@pytest.mark.parametrize("record", [RESULT, ANSWER, UserMessage(content="text", timestamp=1)], ids=lambda each: type(each).__name__)
def test_an_untouched_copy_gives_the_record_itself(record: Any) -> None:
    copy = thawed(record)

    assert frozen(copy) is record
    assert (copy.role, copy.timestamp) == (record.role, record.timestamp)


def rename(copy: Any) -> None:
    copy.content[0].text = "y"


def add_a_block(copy: Any) -> None:
    copy.content.append(TextBlock(text="more"))


def add_a_block_as_dict(copy: Any) -> None:
    copy.content.append({"type": "text", "text": "more"})


def change_deep_details(copy: Any) -> None:
    copy.details["list"][1]["deep"] = 2


def make_one_true(copy: Any) -> None:
    copy.details["count"] = True


def make_deep_one_true(copy: Any) -> None:
    copy.details["list"][0] = True


def make_true_one(copy: Any) -> None:
    copy.details["flag"] = 1


def make_a_float_whole(copy: Any) -> None:
    copy.details["count"] = 1.0


@pytest.mark.parametrize(
    ("change", "path", "value"),
    [
        (rename, "content", (TextBlock(text="y"),)),
        (add_a_block, "content", (TextBlock(text="x"), TextBlock(text="more"))),
        (add_a_block_as_dict, "content", (TextBlock(text="x"), TextBlock(text="more"))),
        (change_deep_details, "details", {"count": 1, "list": (1, {"deep": 2}), "flag": True}),
        (make_one_true, "details", {"count": True, "list": (1, {"deep": 1.5}), "flag": True}),
        (make_deep_one_true, "details", {"count": 1, "list": (True, {"deep": 1.5}), "flag": True}),
        (make_true_one, "details", {"count": 1, "list": (1, {"deep": 1.5}), "flag": 1}),
        (make_a_float_whole, "details", {"count": 1.0, "list": (1, {"deep": 1.5}), "flag": True}),
    ],
)
def test_an_edit_at_any_depth_comes_back_frozen(change: Any, path: str, value: Any) -> None:
    copy = thawed(RESULT)

    change(copy)

    after = frozen(copy)
    assert after is not RESULT and repr(getattr(after, path)) == repr(freeze(value) if path == "details" else value)
    assert frozen(copy).tool_name == "t"


def test_unknown_fields_of_newer_files_stay_and_are_frozen() -> None:
    copy = thawed(ANSWER)
    copy.model = "other"
    copy.extra["later"]["x"].append(2)

    after = frozen(copy)

    assert after.extra == {"later": {"x": (1, 2)}}
    with pytest.raises(TypeError):
        after.extra["later"]["y"] = 1


def test_a_name_the_record_does_not_have_is_refused_with_those_it_has() -> None:
    copy = thawed(UserMessage(content="x", timestamp=1))

    with pytest.raises(AttributeError, match="UserMessage has no attribute 'contents'; it has content, timestamp"):
        copy.contents = "y"


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [("content", 3, "content"), ("timestamp", "now", "timestamp"), ("is_error", "yes", "is_error"), ("content", [3], "content[0]")],
)
def test_a_value_of_a_wrong_type_names_its_attribute(name: str, value: Any, part: str) -> None:
    copy = thawed(RESULT)
    setattr(copy, name, value)

    with pytest.raises(CodecError) as caught:
        frozen(copy)

    assert caught.value.path == part


def test_what_is_no_copy_passes() -> None:
    assert frozen("text") == "text"
    assert isinstance(thawed(RESULT), Thawed)
