"""Events of OpenAI's responses, where the recorded streams do not show what they do (WIRE-90 to WIRE-96).

Longer than 400 lines because it goes through one table of the API's events, from the first to the last.
"""

import json
from functools import reduce
from typing import Any, Final

import pytest

from camshaft.extensions_std.providers.responses_stream import ResponseReader
from camshaft.extensions_std.providers.sse import SseEvent
from camshaft.extensions_std.providers.wire_api import MalformedEvent
from camshaft.kernel.messages import AssistantMessage, TextBlock, ThinkingBlock, ToolCall
from camshaft.kernel.models import Model, Rates
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.stream import Ended, Partial, Started, StreamItem, TextDelta, TextEnded, ThinkingDelta, ToolCallDelta, begin, fold

Event = dict[str, Any]

MODEL: Final = Model(id="gpt", provider="openai", api="openai-responses", cost=Rates(input=1, output=2))
COMPLETED: Final[Event] = {"type": "response.completed", "response": {"status": "completed"}}


def _added(item: Event, at: int | None = 0) -> Event:
    return _at({"type": "response.output_item.added", "item": item}, at)


def _done(item: Event, at: int | None = 0) -> Event:
    return _at({"type": "response.output_item.done", "item": item}, at)


def _event(kind: str, at: int | None = 0, **fields: Any) -> Event:
    return _at({"type": f"response.{kind}", **fields}, at)


def _at(event: Event, at: int | None) -> Event:
    return event if at is None else {**event, "output_index": at}


def _call(arguments: str = "", **fields: Any) -> Event:
    return {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "read", "arguments": arguments, **fields}


def _custom(text: str = "", **fields: Any) -> Event:
    return {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "patch", "input": text, **fields}


def _text(*texts: str, **fields: Any) -> Event:
    return {"type": "message", "id": "m", "content": [{"type": "output_text", "text": text} for text in texts], **fields}


def _items(*events: Any, **fields: Any) -> list[StreamItem]:
    """The items of events, up to the end; that of the body follows if they do not end."""
    reader, items = ResponseReader(MODEL, **fields), list[StreamItem]()
    for event in events:
        items += reader.read(event)
        if items and isinstance(items[-1], Ended):
            return items
    return [*items, *reader.finish()]


def _message(*events: Any, **fields: Any) -> AssistantMessage:
    return reduce(_step, [Started(), *_items(*events, **fields)], begin("a", "p", "m", 1)).message


def _step(partial: Partial, item: StreamItem) -> Partial:
    after = fold(partial, item)
    assert isinstance(after, Partial), after
    return after


def _end(message: AssistantMessage) -> tuple[Any, ...]:
    return message.stop_reason, message.error_message, message.raw_stop_reason


# -- texts and thinking ------------------------------------------------------------------


def test_refusal_is_text_that_is_seen() -> None:
    whole = {"type": "message", "id": "m", "phase": "final_answer", "content": [{"type": "refusal", "refusal": "I will not."}]}

    items = _items(_added(_text()), _event("refusal.delta", delta="I will"), _done(whole), COMPLETED)

    assert items[1:3] == [TextDelta(0, "I will"), TextEnded(0, "I will not.", '{"v":1,"id":"m","phase":"final_answer"}')]


def test_parts_of_a_text_are_joined_and_win_over_what_streamed() -> None:
    message = _message(_added(_text()), _event("output_text.delta", delta="other"), _done(_text("a", "b")), COMPLETED)

    assert message.content == (TextBlock(text="ab", text_signature='{"v":1,"id":"m"}'),)


def test_whole_text_without_parts_leaves_what_streamed() -> None:
    message = _message(_added(_text()), _event("output_text.delta", delta="kept"), _done({"type": "message"}), COMPLETED)

    assert message.content == (TextBlock(text="kept"),)


def test_summary_parts_are_set_apart_while_they_stream_and_in_the_end() -> None:
    item = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": text} for text in "ab"]}
    pieces = [
        event for text in "ab" for event in (_event("reasoning_summary_text.delta", delta=text), _event("reasoning_summary_part.done"))
    ]

    items, message = _items(_added(item), *pieces, _done(item), COMPLETED), _message(_added(item), *pieces, _done(item), COMPLETED)

    assert items[1:5] == [ThinkingDelta(0, delta) for delta in ("a", "\n\n", "b", "\n\n")]
    assert message.content == (ThinkingBlock(thinking="a\n\nb", thinking_signature=json.dumps(item, separators=(",", ":"))),)


@pytest.mark.parametrize("known", [None, "", "ENC0"])
def test_encrypted_content_that_only_the_end_tells_is_signed(known: str | None) -> None:
    item = {"type": "reasoning", "id": "rs", "summary": [], **({} if known is None else {"encrypted_content": known})}
    end = {"type": "response.completed", "response": {"output": [7, {**item, "encrypted_content": "ENC"}]}}

    (block,) = _message(_done(item), end).content

    assert isinstance(block, ThinkingBlock)
    assert json.loads(block.thinking_signature or "") == {**item, "encrypted_content": known or "ENC"}


def test_blocks_that_a_good_end_finds_open_are_closed() -> None:
    reasoning = {"type": "reasoning", "id": "rs"}
    pieces = [_event("reasoning_text.delta", delta="Hm"), _event("output_text.delta", 1, delta="Hello")]

    items = _items(_added(reasoning), _added(_text(), 1), *pieces, COMPLETED)

    assert [type(item).__name__ for item in items[-3:]] == ["ThinkingEnded", "TextEnded", "Ended"]
    assert items[-2] == TextEnded(1, None, '{"v":1,"id":"m"}')


def test_output_that_only_the_end_tells_is_the_answer() -> None:
    end = {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [_text("Hello"), _call("{}")]}}

    message = _message(end)

    assert [block.type for block in message.content] == ["text", "toolCall"]
    assert (message.stop_reason, message.response_id) == ("toolUse", "r")


def test_other_items_and_events_are_ignored() -> None:
    search = {"type": "web_search_call", "id": "ws"}

    message = _message(
        _added(search), _event("web_search_call.searching"), _done(search), _event("output_text.delta", delta="x"), COMPLETED
    )

    assert (message.content, message.stop_reason) == ((), "stop")


# -- routing -----------------------------------------------------------------------------


def test_events_without_an_index_go_by_the_items_id_and_else_to_the_last_item() -> None:
    first, second = _call(), _call(id="fc_2", call_id="d")
    pieces = [
        _event("function_call_arguments.delta", None, item_id="fc_1", delta='{"path":"1"}'),
        _event("function_call_arguments.delta", None, delta='{"path":"2"}'),
        _done({**first, "arguments": ""}, None),
        _done({**second, "arguments": ""}, None),
    ]

    message = _message(_added(first, None), _added(second, None), *pieces, COMPLETED)

    assert [(call.id, call.arguments["path"]) for call in message.tool_calls] == [("c|fc_1", "1"), ("d|fc_2", "2")]


def test_item_that_comes_whole_twice_is_one_block_and_pieces_after_it_are_dropped() -> None:
    message = _message(_done(_text("a")), _done(_text("b")), _event("output_text.delta", delta="c"), COMPLETED)

    assert [block.text for block in message.content if isinstance(block, TextBlock)] == ["a"]


def test_pieces_for_an_unknown_block_or_one_of_another_kind_are_dropped() -> None:
    pieces = [
        _event("output_text.delta", 5, delta="x"),
        _event("output_text.delta", None, item_id="nobody", delta="x"),
        _event("function_call_arguments.delta", delta="x"),
        _event("function_call_arguments.done", arguments="x"),
        _event("reasoning_text.delta", delta="x"),
        _event("reasoning_summary_part.done"),
    ]

    assert _message(*pieces, _added(_text()), *pieces[2:], _done(_text("a")), COMPLETED).content == (
        TextBlock(text="a", text_signature='{"v":1,"id":"m"}'),
    )


# -- tool calls --------------------------------------------------------------------------


def test_arguments_at_the_start_are_the_beginning_of_those_that_stream() -> None:
    pieces = [_event("function_call_arguments.delta", delta='th":"a"}'), _event("function_call_arguments.done", arguments='{"path":"a"}')]

    (call,) = _message(_added(_call('{"pa')), *pieces, _done(_call()), COMPLETED).tool_calls

    assert call == ToolCall(id="c|fc_1", name="read", arguments=FrozenDict({"path": "a"}))


def test_full_arguments_that_do_not_continue_the_streamed_ones_replace_them_without_a_delta() -> None:
    pieces = [_event("function_call_arguments.delta", delta='{"path":"a'), _event("function_call_arguments.done", arguments='{"path":"b"}')]
    events = [_added(_call()), *pieces, _done(_call()), COMPLETED]

    assert [item.delta for item in _items(*events) if isinstance(item, ToolCallDelta)] == ['{"path":"a']
    assert _message(*events).tool_calls[0].arguments == FrozenDict({"path": "b"})


def test_arguments_of_the_whole_item_win() -> None:
    pieces = [
        _event("function_call_arguments.delta", delta='{"path":"a"}'),
        _event("function_call_arguments.done", arguments='{"path":"a"}'),
    ]

    (call,) = _message(_added(_call()), *pieces, _done(_call('{"path":"c"}')), COMPLETED).tool_calls

    assert call.arguments == FrozenDict({"path": "c"})


@pytest.mark.parametrize(
    ("name", "held_by"),
    [("patch", 'bo"dy'), ("unknown", "input")],
)
def test_text_of_a_grammar_tool_is_told_as_pieces_of_the_json_it_stands_for(name: str, held_by: str) -> None:
    pieces = [
        _event("custom_tool_call_input.delta", delta='*** "x"\n'),
        _event("custom_tool_call_input.delta", delta="\\d"),
        _event("custom_tool_call_input.done", input='*** "x"\n\\d é'),
    ]
    events = [_added(_custom(name=name)), *pieces, _done(_custom('*** "x"\n\\d é', name=name)), COMPLETED]

    deltas = [item.delta for item in _items(*events, grammars={"patch": 'bo"dy'}) if isinstance(item, ToolCallDelta)]
    (call,) = _message(*events, grammars={"patch": 'bo"dy'}).tool_calls

    assert json.loads("".join(deltas)) == {held_by: '*** "x"\n\\d é'}
    assert call == ToolCall(id="c|ctc_1", name=name, arguments=FrozenDict({held_by: '*** "x"\n\\d é'}))


def test_grammar_call_shows_its_property_before_its_text() -> None:
    announced, begun = _message(_added(_custom())), _message(_added(_custom('a"')))

    assert announced.tool_calls[0].arguments == FrozenDict({"input": ""})
    assert begun.tool_calls[0].arguments == FrozenDict({"input": 'a"'})


def test_other_text_of_the_whole_grammar_call_wins() -> None:
    piece = _event("custom_tool_call_input.delta", delta="a")

    (call,) = _message(_added(_custom()), piece, _done(_custom("b")), COMPLETED).tool_calls

    assert call.arguments == FrozenDict({"input": "b"})


@pytest.mark.parametrize(
    ("items", "ids"),
    [
        ([{"call_id": ""}, {"call_id": 7}], ["call_1|fc_1", "call_2|fc_1"]),
        ([{"id": ""}, {"id": None}], ["c", "call_1"]),
        ([{}, {}], ["c|fc_1", "call_1|fc_1"]),
    ],
)
def test_calls_of_one_answer_never_share_an_id(items: list[Event], ids: list[str]) -> None:
    message = _message(*[_done(_call("{}", **fields), at) for at, fields in enumerate(items)], COMPLETED)

    assert [call.id for call in message.tool_calls] == ids


def test_id_and_name_that_come_late_are_taken() -> None:
    (call,) = _message(_added(_call(call_id="", name="")), _done(_call("{}")), COMPLETED).tool_calls

    assert (call.id, call.name) == ("c|fc_1", "read")


@pytest.mark.parametrize("status", ["completed", "in_progress", "queued", None])
def test_call_that_never_came_whole_fails_a_good_end(status: str | None) -> None:
    """WIRE-95: in a failed message nothing runs."""
    piece = _event("function_call_arguments.delta", delta='{"path":"a"}')

    message = _message(_added(_call()), piece, {"type": "response.completed", "response": {"status": status}})

    text = "OpenAI Responses stream completed with an unfinished tool call: read (c|fc_1)"
    assert _end(message) == ("error", text, status)


def test_call_cut_by_the_output_limit_ends_with_an_error_of_its_arguments() -> None:
    end = {"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}}

    message = _message(_added(_call()), _event("function_call_arguments.delta", delta='{"path":"a'), end)

    assert _end(message) == ("length", None, "incomplete.max_output_tokens")
    assert message.tool_calls[0].arguments == FrozenDict()
    assert (message.tool_calls[0].arguments_error or "").endswith('Received arguments:\n{"path":"a')


# -- ends --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "end"),
    [
        ({}, ("stop", None, None)),
        ({"status": "queued"}, ("stop", None, "queued")),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            ("error", "Response incomplete: content_filter", "incomplete.content_filter"),
        ),
        ({"status": "incomplete"}, ("error", "Response incomplete without a provider reason", "incomplete")),
        ({"status": "failed", "error": {"code": "c", "message": "m"}}, ("error", "c: m", "failed")),
        ({"status": "cancelled"}, ("error", "Response cancelled", "cancelled")),
        ({"status": "strange"}, ("error", "Response strange", "strange")),
    ],
)
def test_status_tells_how_an_answer_ended(response: Event, end: tuple[Any, ...]) -> None:
    assert _end(_message({"type": "response.completed", "response": response})) == end


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ({"error": {"code": "c", "message": "m"}}, "c: m"),
        ({"error": {"message": "m"}}, "m"),
        ({"incomplete_details": {"reason": "r"}}, "incomplete: r"),
        ({}, "Unknown error (no error details in response)"),
        (None, "Unknown error (no error details in response)"),
    ],
)
def test_failed_response_tells_why(response: Any, text: str) -> None:
    assert _message({"type": "response.failed", "response": response}).error_message == text


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ({"type": "error", "code": "rate_limit", "message": "slow"}, "Error Code rate_limit: slow"),
        ({"type": "error", "message": "slow"}, "slow"),
        ({"type": "error", "error": {"type": "server_error", "message": "oops"}}, "Error Code server_error: oops"),
        ({"error": {"message": "no type"}}, "no type"),
        ({"type": "error"}, '{"type":"error"}'),
    ],
)
def test_error_event_keeps_the_servers_words_and_its_code(event: Event, text: str) -> None:
    message = _message(_added(_text()), _event("output_text.delta", delta="par"), event)

    assert (message.error_message, message.content) == (text, (TextBlock(text="par"),))


def test_mark_of_the_end_without_a_terminal_event_is_waited_past_by_nobody() -> None:
    reader = ResponseReader(MODEL)

    assert reader.parse(SseEvent("", b" [DONE]")) is None
    assert reader.is_over
    assert reader.finish() == [Ended("error", "OpenAI Responses stream ended before a terminal response event", usage=reader.usage)]


def test_event_that_is_no_json_is_refused() -> None:
    with pytest.raises(MalformedEvent, match="malformed server-sent event JSON"):
        ResponseReader(MODEL).parse(SseEvent("", b"{oops"))


USAGE: Final[Event] = {"input_tokens": 1_000_000, "output_tokens": 1_000_000, "total_tokens": 2_000_001}


@pytest.mark.parametrize(
    ("told", "requested", "model", "total"),
    [
        (None, None, "gpt", 3),
        ("default", "flex", "gpt", 3),
        (None, "flex", "gpt", 1.5),
        ("priority", None, "gpt", 6),
        ("fast", "flex", "gpt", 6),
        ("priority", None, "gpt-5.5", 7.5),
    ],
)
def test_tier_of_the_response_else_of_the_request_scales_the_cost(
    told: str | None, requested: str | None, model: str, total: float
) -> None:
    """MOD-15."""
    reader = ResponseReader(Model(id=model, provider="openai", api="openai-responses", cost=MODEL.cost), requested_tier=requested)

    reader.read({"type": "response.completed", "response": {"usage": USAGE, "service_tier": told}})

    assert reader.usage.cost.total == pytest.approx(total)
    assert reader.usage.cost.input + reader.usage.cost.output == pytest.approx(total)
    assert reader.usage.total_tokens == 2_000_001


@pytest.mark.parametrize(("bills", "total"), [(True, 0.25), (False, 3)])
def test_billed_cost_counts_where_the_server_bills(bills: bool, total: float) -> None:
    """MOD-14."""
    reader = ResponseReader(MODEL, bills=bills)

    reader.read({"type": "response.completed", "response": {"usage": {**USAGE, "cost": 0.25, "is_byok": False}}})

    assert reader.usage.cost.total == pytest.approx(total)
    assert reader.usage.cost.total_from_provider is bills
    assert reader.usage.cost.output == pytest.approx(2)


def test_failed_response_keeps_its_usage() -> None:
    message = _message({"type": "response.failed", "response": {"usage": USAGE}})

    assert message.usage.input == 1_000_000


@pytest.mark.parametrize(
    "event",
    [
        None,
        7,
        [],
        {},
        {"type": 7},
        {"type": "response.created", "response": {"id": 7}},
        {"type": "response.output_item.added", "item": 7},
        {"type": "response.output_item.added", "output_index": [], "item": {"type": "message", "id": 7}},
        {"type": "response.output_item.added", "output_index": True, "item": {"type": [], "id": {}}},
        {"type": "response.output_item.added", "item": {"type": "function_call", "call_id": 7, "name": [], "arguments": {}}},
        {"type": "response.output_item.done", "output_index": 0, "item": {"type": "message", "content": [7, {"text": 7}]}},
        {"type": "response.output_item.done", "output_index": 9, "item": {"type": "reasoning", "summary": 7, "content": [None]}},
        {"type": "response.output_text.delta", "output_index": 0, "delta": 7},
        {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": 7},
        {"type": "error", "code": 7, "message": [], "error": 7},
        {"type": "response.failed", "response": {"error": {"code": 7, "message": {}}}},
        {
            "type": "response.completed",
            "response": {"output": 7, "usage": 7, "status": 7, "incomplete_details": 7, "input_transformations": 7},
        },
        {"type": "response.completed", "response": {"usage": {"input_tokens": "x", "input_tokens_details": 7, "output_tokens": -1}}},
        {"type": "response.completed", "response": {"output": [{"type": "reasoning", "id": [], "encrypted_content": 7}, None]}},
    ],
)
def test_event_of_a_wrong_shape_breaks_nothing(event: Any) -> None:
    message = _message(event, _added(_text(), 0), event, _done(_text("a"), 0), event, COMPLETED)

    assert message.stop_reason in ("stop", "toolUse", "error")
