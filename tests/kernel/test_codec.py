"""The codec: difficult input, strict fields, and that nothing read is lost when it is written."""

import json
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camshaft.kernel import codec
from camshaft.kernel.entries import (
    BranchSummaryEntry,
    ContextEditDraft,
    ContextEditEntry,
    CustomMessageDraft,
    CustomMessageEntry,
    Draft,
    MessageEntry,
    OpaqueEntry,
)
from camshaft.kernel.errors import CodecError
from camshaft.kernel.messages import (
    AssistantMessage,
    Cost,
    CustomMessage,
    OpaqueBlock,
    OpaqueMessage,
    SystemMessage,
    TextBlock,
    ToolCall,
    ToolDeclaration,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from camshaft.kernel.persistent import FrozenDict
from tests.kernel.made import TIME

USAGE = {
    "input": 1,
    "output": 2,
    "cacheRead": 0,
    "cacheWrite": 0,
    "totalTokens": 3,
    "cost": {"input": 0, "output": 0.5, "cacheRead": 0, "cacheWrite": 0, "total": 0.5},
}
ASSISTANT = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "", "thinkingSignature": "s"},
        {"type": "text", "text": "Reading."},
        {"type": "toolCall", "id": "t", "name": "read", "arguments": {"path": "a", "deep": [1, {"x": None}]}},
    ],
    "api": "x",
    "provider": "acme",
    "model": "m",
    "usage": USAGE,
    "stopReason": "toolUse",
    "timestamp": 1,
}
MESSAGES: list[dict[str, Any]] = [
    ASSISTANT,
    {"role": "user", "content": "text", "timestamp": 1},
    {
        "role": "user",
        "content": [{"type": "text", "text": "a"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}],
        "timestamp": 1,
    },
    {"role": "system", "content": "", "sections": {"b": "B", "a": None}, "toolsRemoved": [{"name": "x"}], "timestamp": 1},
    {"role": "toolResult", "toolCallId": "t", "toolName": "read", "content": [], "details": {}, "isError": False, "timestamp": 1},
    {"role": "bashExecution", "command": "ls", "output": "", "cancelled": False, "truncated": False, "timestamp": 1},
    {"role": "custom", "customType": "k", "content": "c", "display": True, "timestamp": 1},
    {"role": "compactionSummary", "summary": "s", "tokensBefore": 1, "timestamp": 1},
    {"role": "branchSummary", "summary": "s", "fromId": None, "timestamp": 1},
    {"role": "of the future", "anything": [1, 2]},
]
BASE = {"id": "e", "parentId": None, "timestamp": TIME}
ENTRIES: list[dict[str, Any]] = [
    *[{"type": "message", **BASE, "message": message} for message in MESSAGES],
    {"type": "model_change", **BASE, "provider": "p", "modelId": "m"},
    {"type": "thinking_level_change", **BASE, "thinkingLevel": "odd"},
    {"type": "usage", **BASE, "kind": "cache_warm", "provider": "p", "model": "m", "usage": USAGE},
    {"type": "compaction", **BASE, "summary": "s", "firstKeptEntryId": "e", "tokensBefore": 1, "systemMessage": MESSAGES[3]},
    {"type": "branch_summary", **BASE, "fromId": "root", "summary": "s", "fromHook": False},
    {"type": "custom", **BASE, "customType": "k", "data": {"n": 1}},
    {"type": "custom_message", **BASE, "customType": "k", "content": "c", "display": False},
    {"type": "context_edit", **BASE, "targetId": "x", "replacement": None},
    {"type": "context_edit", **BASE, "targetId": "x", "replacement": {"content": []}},
    {"type": "label", **BASE, "targetId": "x", "label": "l"},
    {"type": "label", **BASE, "targetId": "x"},
    {"type": "session_info", **BASE, "name": "n"},
    {"type": "of the future", **BASE, "anything": {"x": [1]}},
    {"type": "message", **BASE},
]
KNOWN: frozenset[str] = frozenset(
    {codec.camel(field.name) for cls in [*codec.ENTRIES.values(), *codec.MESSAGES.values()] for field in attrs.fields(cls)}
    | {
        "type",
        "role",
    }
)
UNKNOWN = st.text(min_size=1).filter(lambda name: name not in KNOWN)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def plain(value: Any) -> Any:
    """As the standard library reads what the codec writes."""
    return json.loads(codec.dumps(value))


def holds(written: Any, read: Any) -> bool:
    """Whether everything that was read was written; defaults of counters may have joined it."""
    if isinstance(written, dict) and isinstance(read, dict):
        return all(key in written and holds(written[key], item) for key, item in read.items())
    if isinstance(written, list) and isinstance(read, list):
        return len(written) == len(read) and all(map(holds, written, read))
    return bool(written == read)


# -- round trips -------------------------------------------------------------------------


@pytest.mark.rule("MSG-1", "MSG-3")
@pytest.mark.parametrize("raw", ENTRIES)
def test_an_entry_is_written_as_it_was_read(raw: dict[str, Any]) -> None:
    assert plain(codec.decode_entry(raw)) == raw


@given(st.sampled_from(ENTRIES), st.dictionaries(UNKNOWN, JSON, max_size=3))
def test_unknown_fields_survive(raw: dict[str, Any], unknown: dict[str, Any]) -> None:
    outer = {**unknown, **raw}
    inner = {**raw, "message": {**raw["message"], **unknown}} if isinstance(raw.get("message"), dict) else outer

    assert plain(codec.decode_entry(outer)) == outer
    assert plain(codec.decode_entry(inner)) == inner


@given(st.sampled_from(ENTRIES), st.data())
def test_any_value_in_any_field_is_read_and_written_back(raw: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(raw.keys() - {"id"})))
    changed = {**raw, name: data.draw(JSON)}

    written = plain(codec.decode_entry(changed))

    assert holds(written, changed)
    assert plain(codec.decode_entry(written)) == written


@given(st.sampled_from(MESSAGES), st.data())
def test_any_value_in_any_field_of_a_message_is_read_and_written_back(raw: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(raw)))
    changed = {**raw, name: data.draw(JSON)}

    written = plain(codec.decode_message(changed))

    assert holds(written, changed)
    assert plain(codec.decode_message(written)) == written


@pytest.mark.rule("MSG-3")
@pytest.mark.parametrize("name", ["errorMessage", "responseId", "deferred", "diagnostics", "durationMs", "endTurn"])
def test_an_explicit_null_of_an_optional_field_stays_a_null(name: str) -> None:
    message = codec.decode_message({**ASSISTANT, name: None})

    assert isinstance(message, AssistantMessage)
    assert getattr(message, codec.snake(name)) is None
    assert plain(message) == {**ASSISTANT, name: None}
    assert name not in plain(codec.decode_message(ASSISTANT))


def test_key_order_of_objects_is_kept() -> None:
    message = codec.decode_message(MESSAGES[3])

    assert isinstance(message, SystemMessage)
    assert message.sections is not None
    assert list(message.sections) == ["b", "a"]


# -- wrong types -------------------------------------------------------------------------


@pytest.mark.rule("MSG-41")
@pytest.mark.parametrize(
    "wrong",
    [
        {"timestamp": "1"},
        {"timestamp": 1.5},
        {"timestamp": True},
        {"provider": 5},
        {"content": {}},
        {"content": [{"type": "text", "text": 5}]},
        {"content": [{"text": "no type"}]},
        {"content": ["text"]},
        {"usage": {**USAGE, "input": "1"}},
        {"usage": []},
        {"stopReason": None},
        {"errorMessage": 1},
        {"endTurn": 1},
        {"deferred": []},
    ],
)
def test_a_wrong_type_makes_a_message_opaque_and_keeps_it(wrong: dict[str, Any]) -> None:
    raw = {**ASSISTANT, **wrong}

    message = codec.decode_message(raw)

    assert isinstance(message, OpaqueMessage)
    assert message.role == "assistant"
    assert plain(message) == raw


@pytest.mark.parametrize("raw", [{}, {"role": 5}, {"role": None, "content": "x"}])
def test_a_message_without_a_role_is_opaque(raw: dict[str, Any]) -> None:
    assert codec.decode_message(raw) == OpaqueMessage(role=None, raw=FrozenDict(raw))


def test_a_strict_reader_names_the_field() -> None:
    with pytest.raises(CodecError, match=r"content\[0\]\.text: expected a text, got 5"):
        codec.decode_message_strictly({"role": "user", "content": [{"type": "text", "text": 5}], "timestamp": 1})
    with pytest.raises(CodecError, match="timestamp: expected a value; it is missing"):
        codec.decode_message_strictly({"role": "user", "content": ""})
    with pytest.raises(CodecError, match="role: expected a text"):
        codec.decode_message_strictly({"role": 5})


def test_a_whole_float_reads_as_an_integer() -> None:
    message = codec.decode_message({"role": "user", "content": "", "timestamp": 5.0})

    assert (type(message.timestamp), message.timestamp) == (int, 5)


@pytest.mark.rule("MSG-41", "MSG-44")
@pytest.mark.parametrize(
    ("raw", "content"),
    [
        ({"role": "user", "timestamp": 1}, ()),
        ({"role": "user", "content": None, "timestamp": 1}, ()),
        ({"role": "custom", "customType": "k", "content": None, "display": True, "timestamp": 1}, ()),
        ({"role": "system", "content": None, "timestamp": 1}, ""),
        (
            {"role": "toolResult", "toolCallId": "t", "toolName": "n", "content": "x", "isError": False, "timestamp": 1},
            (TextBlock(text="x"),),
        ),
        ({**ASSISTANT, "content": "x"}, (TextBlock(text="x"),)),
    ],
)
def test_missing_and_plain_content_is_read_harmlessly(raw: dict[str, Any], content: object) -> None:
    message = codec.decode_message(raw)

    assert isinstance(message, UserMessage | AssistantMessage | SystemMessage | ToolResultMessage | CustomMessage)
    assert message.content == content
    assert plain(message) == {"content": [], **raw} if "content" not in raw else raw


def test_an_unknown_block_is_kept() -> None:
    message = codec.decode_message({**ASSISTANT, "content": [{"type": "video", "data": "x"}]})

    assert isinstance(message, AssistantMessage)
    assert message.content == (OpaqueBlock(type="video", raw=FrozenDict({"type": "video", "data": "x"})),)


def test_an_entry_without_a_parent_is_a_root() -> None:
    entry = codec.decode_entry({"type": "message", "id": "e", "timestamp": TIME, "message": MESSAGES[1]})

    assert isinstance(entry, MessageEntry)
    assert entry.parent_id is None


def test_a_body_that_cannot_be_read_is_a_mere_node() -> None:
    raw = {"type": "context_edit", "id": "e", "parentId": "p", "timestamp": TIME, "targetId": "x"}

    entry = codec.decode_entry(raw)

    assert entry == OpaqueEntry(type="context_edit", id="e", parent_id="p", timestamp=TIME, raw=FrozenDict(raw))


def test_a_custom_message_entry_without_content_has_none() -> None:
    entry = codec.decode_entry({"type": "custom_message", **BASE, "customType": "k", "content": None})

    assert isinstance(entry, CustomMessageEntry)
    assert (entry.content, entry.display) == ((), None)


def test_a_null_that_a_required_field_may_have_is_written_as_null() -> None:
    edit = ContextEditEntry(id="e", parent_id=None, timestamp=TIME, target_id="x", replacement=None)
    summary = BranchSummaryEntry(id="e", parent_id=None, timestamp=TIME, from_id=None, summary="s")

    assert (plain(edit)["replacement"], plain(edit)["parentId"], plain(summary)["fromId"]) == (None, None, None)


# -- python names ------------------------------------------------------------------------


def test_a_dict_with_python_names_is_read() -> None:
    result = codec.python(ToolCall, {"id": "t", "name": "read", "arguments": {"a": [1]}, "thought_signature": "s"})

    assert result == ToolCall(id="t", name="read", arguments=FrozenDict({"a": (1,)}), thought_signature="s")


def test_an_unknown_python_name_is_refused_by_name() -> None:
    with pytest.raises(CodecError, match="thoughtSignature: expected no such field"):
        codec.python(ToolCall, {"id": "t", "name": "read", "thoughtSignature": "s"})


def test_a_null_for_an_optional_python_name_is_nothing() -> None:
    assert codec.python(Usage, {"input": 1, "reasoning": None}) == Usage(input=1)
    assert codec.python(Cost, {"total": 1}) == Cost(total=1)


def test_values_of_our_classes_pass() -> None:
    block = TextBlock(text="x")

    assert codec.python(UserMessage, {"content": (block,), "timestamp": 1}).content == (block,)
    assert codec.python(TextBlock, block) is block


def draft(raw: object) -> Draft:
    return codec.PYTHON.structure(raw, Draft)  # type: ignore[arg-type]  # a union is no class to the type checker


@pytest.mark.rule("BND-29")
@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        ({"type": "custom_message", "custom_type": "k", "display": True}, "content: expected a value; it is missing"),
        ({"type": "custom_message", "custom_type": "k", "content": "x"}, "display: expected a value; it is missing"),
        ({"type": "context_edit", "target_id": "x"}, "replacement: expected a value; it is missing"),
        ({"type": "odd"}, "type: expected one of custom"),
        ({"custom_type": "k"}, "type: expected one of custom"),
        ("text", "expected an object"),
    ],
)
def test_a_bad_draft_is_refused_with_the_field(raw: object, fault: str) -> None:
    with pytest.raises(CodecError, match=fault):
        draft(raw)


def test_drafts_are_read_by_type() -> None:
    edit = {"type": "context_edit", "target_id": "x", "replacement": None}
    note = {"type": "custom_message", "custom_type": "k", "content": "c", "display": True}

    assert [type(draft(raw)) for raw in (edit, note)] == [ContextEditDraft, CustomMessageDraft]


def test_a_tool_declaration_keeps_what_is_not_known() -> None:
    raw = {"name": "read", "description": "d", "parameters": {"type": "object"}, "constrainedSampling": False, "more": [1]}

    assert plain(codec.wire(ToolDeclaration, raw)) == raw


@pytest.mark.parametrize(
    ("python", "wire"), [("tool_call_id", "toolCallId"), ("continue_", "continue"), ("cache_write1h", "cacheWrite1h"), ("id", "id")]
)
def test_names_have_two_spellings(python: str, wire: str) -> None:
    assert codec.camel(python) == wire
    assert codec.snake(wire) == python.rstrip("_")
