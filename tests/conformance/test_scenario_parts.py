"""The parts of the scenario runner that need no kernel run: paths, briefs, templates, limits, list edits, filters."""

from typing import Any

import attrs
import pytest

from camshaft.kernel.entries import CustomEntry, MessageEntry
from camshaft.kernel.hook_events import AgentBeforeSettleEvent, ToolCallEvent
from camshaft.kernel.messages import TextBlock, UserMessage
from camshaft.kernel.thawed import thawed
from tests.conformance.scenario import message_ops, wire_paths
from tests.conformance.scenario.briefs import brief
from tests.conformance.scenario.limits import Limits
from tests.conformance.scenario.recorder import Recorder
from tests.conformance.scenario.templates import Sources, resolve, select
from tests.conformance.scenario.trace import last_assistant_text

CALL = ToolCallEvent(tool_name="echo", tool_call_id="t1", input={"path": {"inner": [1, 2]}})
HELLO = UserMessage(content=(TextBlock(text="hello"),), timestamp=1)

BRIEFS: list[tuple[dict[str, Any], list[Any]]] = [
    (
        {"role": "system", "content": "", "sections": {"a": "1", "b": None}, "toolsAdded": [{"name": "t"}]},
        ["system", "", ["a"], ["b"], ["t"], []],
    ),
    (
        {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image", "mimeType": "image/png"}]},
        ["user", "x\n[image image/png]"],
    ),
    (
        {"role": "assistant", "stopReason": "error", "content": [{"type": "thinking", "thinking": "h"}], "errorMessage": "no"},
        ["assistant", "error", ["thinking", "h"], ["errorMessage", "no"]],
    ),
    (
        {"role": "assistant", "stopReason": "toolUse", "content": [{"type": "toolCall", "id": "i", "name": "n", "arguments": {}}]},
        ["assistant", "toolUse", ["toolCall", "i", "n", {}]],
    ),
    ({"role": "toolResult", "toolCallId": "i", "toolName": "n", "isError": False, "content": []}, ["toolResult", "i", "n", False, ""]),
    ({"role": "custom", "customType": "k", "content": "c"}, ["custom", "k", "c"]),
    ({"role": "compactionSummary", "summary": "s"}, ["compactionSummary", "s"]),
    ({"role": "bashExecution", "command": "c", "output": "o"}, ["bashExecution", "c", "o", None, False]),
    ({"role": "invented"}, ["invented"]),
]


@pytest.mark.parametrize(("message", "short"), BRIEFS)
def test_a_message_has_a_brief_form(message: dict[str, Any], short: list[Any]) -> None:
    assert brief(message) == short


@pytest.mark.parametrize(
    ("path", "found"),
    [("toolCallId", "t1"), ("input.path.inner.1", 2), ("input.path.none.deep", None), ("type", "tool_call"), ("nothing", None)],
)
def test_a_wire_path_leads_into_an_event(path: str, found: object) -> None:
    assert wire_paths.get(CALL, path) == found


def test_a_path_reaches_an_attribute_whose_name_python_reserves() -> None:
    event = AgentBeforeSettleEvent(outcome="completed", entries=(), continue_=True, context=None)  # type: ignore[arg-type]  # not looked at

    assert wire_paths.get(event, "continue") is True


def test_edits_go_to_mappings_lists_and_thawed_attributes() -> None:
    target = {"input": {"x": 1, "list": [1, 2]}}
    message = thawed(HELLO)

    wire_paths.put(target, "input.x", 5)
    wire_paths.delete(target, "input.list.0")
    wire_paths.put(message, "content.0.text", "bye")

    assert target == {"input": {"x": 5, "list": [2]}}
    assert wire_paths.wire(message)["content"] == [{"type": "text", "text": "bye"}]


def test_an_edit_of_nothing_says_where_the_path_ends() -> None:
    with pytest.raises(LookupError, match="nothing lies at 'input.deep'"):
        wire_paths.put(CALL, "input.deep.x", 1)


def test_an_absent_value_equals_null_in_a_condition() -> None:
    assert wire_paths.matches({"toolName": "echo", "parentToolCallId": None}, CALL)
    assert not wire_paths.matches({"toolName": "other"}, CALL)


def test_translating_keys_leaves_values_alone_that_belong_to_others() -> None:
    written = {"customType": "k", "details": {"myKey": 1}, "usage": {"cacheRead": 1}, "list": [{"mimeType": "m"}]}

    assert wire_paths.snaked(written) == {
        "custom_type": "k",
        "details": {"myKey": 1},
        "usage": {"cache_read": 1},
        "list": [{"mime_type": "m"}],
    }


ENTRIES = [
    MessageEntry(id="a1", parent_id=None, timestamp="t", message=HELLO),
    CustomEntry(id="b2", parent_id="a1", timestamp="t", custom_type="k"),
    MessageEntry(id="c3", parent_id="b2", timestamp="t", message=HELLO),
]


@pytest.mark.parametrize(
    ("selector", "id"),
    [({"role": "user"}, "a1"), ({"role": "user", "nth": -1}, "c3"), ({"type": "custom"}, "b2"), ({"customType": "k", "nth": 1}, "b2")],
)
def test_a_selector_names_an_entry(selector: dict[str, Any], id: str) -> None:
    assert select(ENTRIES, selector) == id


def test_a_selector_that_fits_nothing_says_so() -> None:
    with pytest.raises(LookupError, match="0 of 3 entries fit"):
        select(ENTRIES, {"role": "assistant"})


def test_templates_are_replaced_at_any_depth() -> None:
    sources = Sources(event=CALL, arguments={"x": 3}, variables={"v": 4}, entries=lambda: ENTRIES, model=lambda name: f"<{name}>")
    written = {"a": [{"$ev": "toolName"}, {"$arg": "x"}, {"$var": "v"}], "b": {"$repeat": "ab", "n": 2}, "c": {"$model": "p/m"}}

    assert resolve(written, sources) == {"a": ["echo", 3, 4], "b": "abab", "c": "<p/m>"}


def test_a_handler_counts_matching_events_only() -> None:
    limits = Limits.of({"when": {"toolName": "echo"}, "nth": [2, 3], "times": 1})
    other = attrs.evolve(CALL, tool_name="other")

    assert [limits.allow(event) for event in (CALL, other, CALL, CALL)] == [False, False, True, False]


def test_returned_messages_are_the_same_objects_where_nothing_was_replaced() -> None:
    first, second = thawed(HELLO), thawed(attrs.evolve(HELLO, content="keep"))

    edited = message_ops.returned([first, second], [{"op": "replaceText", "find": "hello", "with": "bye"}])

    assert edited[1] is second
    assert edited[0]["content"] == [{"type": "text", "text": "bye"}]
    assert wire_paths.wire(first)["content"] == [{"type": "text", "text": "hello"}]


def test_message_lists_are_edited_in_place() -> None:
    messages = [thawed(HELLO), thawed(HELLO)]

    message_ops.edit(
        messages,
        [{"op": "keepLast", "n": 1}, {"op": "prepend", "message": {"role": "user"}}, {"op": "drop", "match": {"timestamp": 1}}],
    )

    assert messages == [{"role": "user"}]


def test_only_the_wanted_records_are_kept_until_the_trace_is_complete() -> None:
    recorder = Recorder(only=frozenset({"session:agent_settled", "tool:end"}))

    for record in (
        {"ch": "session", "event": "agent_settled"},
        {"ch": "session", "event": "turn_end"},
        {"ch": "tool", "at": "end"},
        {"ch": "tool", "at": "start"},
        {"ch": "driver", "step": 1},
    ):
        recorder.record(record)
    recorder.close()
    recorder.record({"ch": "driver", "step": 2})

    assert recorder.events == [
        {"ch": "session", "event": "agent_settled"},
        {"ch": "tool", "at": "end"},
        {"ch": "driver", "step": 1},
    ]


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], None),
        ([{"role": "assistant", "stopReason": "stop", "content": [{"type": "text", "text": " hi "}]}], "hi"),
        (
            [
                {"role": "assistant", "stopReason": "stop", "content": [{"type": "text", "text": "first"}]},
                {"role": "assistant", "stopReason": "error", "content": []},
            ],
            "first",
        ),
        ([{"role": "assistant", "stopReason": "aborted", "content": [{"type": "text", "text": "half"}]}], "half"),
    ],
)
def test_the_last_assistant_text_skips_failures_without_text(messages: list[dict[str, Any]], said: str | None) -> None:
    assert last_assistant_text(messages) == said
