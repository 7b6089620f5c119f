"""Messages and tools in a request of the Anthropic API, rule by rule: what the recorded vectors leave open."""

import json
from collections.abc import Sequence
from typing import Any, Final

import pytest

from camshaft.kernel.messages import (
    AssistantMessage,
    Block,
    ImageBlock,
    ModelMessage,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolDeclaration,
    ToolResultMessage,
    UserMessage,
)
from camshaft.kernel.persistent import FrozenDict, freeze
from tests.extensions_std.providers.anthropic_asking import sent
from tests.extensions_std.providers.asking import HELLO

IMAGE: Final = ImageBlock(data="aW1n", mime_type="image/png")
SENT_IMAGE: Final = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aW1n"}}
EPHEMERAL: Final = {"type": "ephemeral"}
CALL: Final = ToolCall(id="c1", name="read", arguments=FrozenDict({"path": "a"}))
SENT_CALL: Final = {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}}
READ: Final = ToolDeclaration(name="read", description="d", parameters=freeze({"type": "object"}))


async def wire(*messages: ModelMessage, **model: Any) -> list[dict[str, Any]]:
    """The messages of a request without cache marks."""
    body, _ = await sent(messages, options={"cache_retention": "none"}, **model)
    listed: list[dict[str, Any]] = body["messages"]
    return listed


def user(text: str) -> UserMessage:
    """What a person says."""
    return UserMessage(content=text, timestamp=1)


def answer(*blocks: Block, model: str = "claude-x", stop_reason: str = "stop") -> AssistantMessage:
    """An answer of the model that is asked, or of another."""
    return AssistantMessage(
        content=blocks, api="anthropic-messages", provider="anthropic", model=model, stop_reason=stop_reason, timestamp=1
    )


def result(*blocks: Block, id: str = "c1", is_error: bool = False) -> ToolResultMessage:
    """The result of a call."""
    return ToolResultMessage(tool_call_id=id, tool_name="read", content=blocks, is_error=is_error, timestamp=1)


ANSWERS: Final = [
    (ThinkingBlock(thinking="T", thinking_signature="S"), {"type": "thinking", "thinking": "T", "signature": "S"}),
    (ThinkingBlock(thinking="", thinking_signature="S"), {"type": "thinking", "thinking": "", "signature": "S"}),
    (ThinkingBlock(thinking="[..]", thinking_signature="D", redacted=True), {"type": "redacted_thinking", "data": "D"}),
    (ThinkingBlock(thinking="unsigned"), {"type": "text", "text": "unsigned"}),
    (TextBlock(text=" a "), {"type": "text", "text": " a "}),
    (CALL, SENT_CALL),
]
SILENT: Final = [
    TextBlock(text=" \n"),
    TextBlock(text="\ud800"),
    ThinkingBlock(thinking="  "),
    ThinkingBlock(thinking="[..]", thinking_signature="", redacted=True),
]


@pytest.mark.rule("WIRE-43")
@pytest.mark.parametrize(("block", "written"), ANSWERS)
async def test_block_of_an_own_answer_is_replayed(block: Block, written: dict[str, Any]) -> None:
    assert (await wire(user("go"), answer(block)))[1] == {"role": "assistant", "content": [written]}


@pytest.mark.rule("WIRE-43")
@pytest.mark.parametrize("block", SILENT)
async def test_answer_that_says_nothing_is_not_sent(block: Block) -> None:
    assert await wire(user("go"), answer(block), user("on")) == [{"role": "user", "content": "go"}, {"role": "user", "content": "on"}]


@pytest.mark.rule("WIRE-43")
async def test_blank_unsigned_thinking_has_no_empty_signature_either() -> None:
    blocks = (ThinkingBlock(thinking=" "), ThinkingBlock(thinking="t"))

    messages = await wire(user("go"), answer(*blocks), compat=FrozenDict({"allowEmptySignature": True}))

    assert messages[1]["content"] == [{"type": "thinking", "thinking": "t", "signature": ""}]


RESULTS: Final = [
    (result(TextBlock(text="a"), IMAGE), [{"type": "text", "text": "a"}, SENT_IMAGE]),
    (result(IMAGE), [{"type": "text", "text": "(see attached image)"}, SENT_IMAGE]),
    (result(TextBlock(text=" "), IMAGE), [{"type": "text", "text": "(see attached image)"}, SENT_IMAGE]),
    (result(TextBlock(text=""), TextBlock(text="b")), "\nb"),
    (result(), ""),
]


@pytest.mark.rule("WIRE-44")
@pytest.mark.parametrize(("message", "content"), RESULTS)
async def test_result_is_one_text_or_with_images_a_list(message: ToolResultMessage, content: Any) -> None:
    last = (await wire(user("go"), answer(CALL), message, input=("text", "image")))[-1]

    assert last == {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": content, "is_error": False}]}


@pytest.mark.rule("WIRE-45")
async def test_images_of_an_error_follow_all_results() -> None:
    second = ToolCall(id="c2", name="read")

    last = (await wire(user("go"), answer(CALL, second), result(IMAGE, is_error=True), result(id="c2"), input=("text", "image")))[-1]

    assert last["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "(image attached after the tool results)", "is_error": True},
        {"type": "tool_result", "tool_use_id": "c2", "content": "", "is_error": False},
        {"type": "text", "text": "Images from the error result of tool call c1 (read):"},
        SENT_IMAGE,
    ]


async def test_image_of_a_kind_that_the_api_does_not_take_is_told_of() -> None:
    odd = ImageBlock(data="aW1n", mime_type="image/bmp")
    note = {"type": "text", "text": "(image omitted: image/bmp is not supported)"}

    messages = await wire(UserMessage(content=(odd, IMAGE), timestamp=1), answer(CALL), result(odd, is_error=True), input=("text", "image"))

    assert messages[0]["content"] == [note, SENT_IMAGE]
    assert messages[-1]["content"][0]["content"] == note["text"]


@pytest.mark.rule("WIRE-57")
async def test_system_message_in_place_stands_before_the_next_answer_that_is_sent() -> None:
    told = SystemMessage(content="", sections=FrozenDict({"a": "A", "b": None}), timestamp=1)
    empty = SystemMessage(content="", timestamp=1)

    messages = await wire(
        user("1"),
        told,
        user("2"),
        answer(TextBlock(text=" ")),
        empty,
        user("3"),
        answer(TextBlock(text="x")),
        user("4"),
        compat=FrozenDict({"supportsMidConvoSystemMessages": True}),
    )

    text = 'Updated system prompt section "a":\n\nA\n\nRemoved system prompt section "b".'
    assert [message["content"] for message in messages] == [
        "1",
        "2",
        "3",
        [{"type": "text", "text": text}],
        [{"type": "text", "text": "x"}],
        "4",
    ]
    assert [message["role"] for message in messages] == ["user", "user", "user", "system", "assistant", "user"]


@pytest.mark.rule("WIRE-19b")
async def test_no_two_calls_of_a_request_share_an_id() -> None:
    long = "x" * 70
    turns = [turn for _ in range(2) for turn in (answer(ToolCall(id=long, name="read"), model="other"), result(id=long))]

    messages = await wire(user("go"), *turns)

    ids = [block.get("id") or block.get("tool_use_id") for message in messages[1:] for block in message["content"]]
    assert ids == ["x" * 64, "x" * 64, "x" * 38 + "_2", "x" * 38 + "_2"]


@pytest.mark.rule("WIRE-19b")
@pytest.mark.parametrize(("id", "written"), [("", "_"), ("a|b", "a_b"), ("\ud800é", "__")])
async def test_foreign_id_is_made_of_what_the_api_takes(id: str, written: str) -> None:
    messages = await wire(user("go"), answer(ToolCall(id=id, name="read"), model="other"), result(id=id))

    assert messages[1]["content"][0]["id"] == messages[2]["content"][0]["tool_use_id"] == written


LAST: Final = [
    ((user("go"), answer(CALL), result(TextBlock(text="r"))), {"cache_control": EPHEMERAL}),
    ((user("go"), answer(TextBlock(text="done"))), {}),
]


@pytest.mark.rule("WIRE-50")
@pytest.mark.parametrize(("messages", "mark"), LAST)
async def test_only_a_last_message_that_is_no_answer_bears_the_mark(messages: Sequence[ModelMessage], mark: dict[str, Any]) -> None:
    body, _ = await sent(messages)

    assert {"cache_control": body["messages"][-1]["content"][-1].get("cache_control")} == {"cache_control": None, **mark}
    assert json.dumps(body["messages"]).count("cache_control") == len(mark)


@pytest.mark.rule("WIRE-50")
async def test_long_retention_is_short_where_it_is_not_supported() -> None:
    body, _ = await sent(options={"cache_retention": "long"}, compat=FrozenDict({"supportsLongCacheRetention": False}))

    assert body["messages"][0]["content"][0]["cache_control"] == EPHEMERAL


SCHEMAS: Final[list[tuple[dict[str, Any], bool]]] = [
    ({"type": "string", "format": "date"}, True),
    ({"type": "string", "format": "color"}, False),
    ({"type": "array", "items": {"type": "string"}, "minItems": 1}, True),
    ({"type": "array", "items": {"type": "string"}, "minItems": 2}, False),
    ({"type": "integer", "multipleOf": 2}, False),
    ({"type": "string", "minLength": 2}, True),
]


@pytest.mark.rule("WIRE-36", "WIRE-46")
@pytest.mark.parametrize(("schema", "is_strict"), SCHEMAS)
async def test_tool_is_strict_if_its_schema_can_be(schema: dict[str, Any], is_strict: bool) -> None:
    wish = freeze({"type": "json_schema", "strict": "prefer"})
    parameters = freeze({"type": "object", "title": "T", "properties": {"a": schema}, "required": ["a"]})
    tool = ToolDeclaration(name="t", description="", parameters=parameters, constrained_sampling=wish)

    body, _ = await sent(
        (SystemMessage(content="", tools_added=(tool,), timestamp=0), *HELLO), compat=FrozenDict({"supportsStrictTools": True})
    )

    assert body["tools"][0].get("strict", False) is is_strict
    assert "title" not in body["tools"][0]["input_schema"]
    assert body["tools"][0]["input_schema"]["properties"]["a"] == schema


async def test_tool_with_a_schema_of_a_wrong_shape_is_sent_with_an_empty_one() -> None:
    tool = ToolDeclaration(name="t", description="", parameters=freeze({"properties": 7, "required": "a"}))

    body, _ = await sent((SystemMessage(content="", tools_added=(tool,), timestamp=0), *HELLO))

    assert body["tools"][0]["input_schema"] == {"type": "object", "properties": {}, "required": []}


@pytest.mark.rule("WIRE-41")
async def test_empty_prompt_is_not_sent() -> None:
    body, _ = await sent((SystemMessage(content="", tools_added=(READ,), timestamp=0), *HELLO))

    assert "system" not in body
