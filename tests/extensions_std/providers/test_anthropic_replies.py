"""Events of the Anthropic API read as items, rule by rule: what the recorded vectors leave open."""

from typing import Any, Final

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from camshaft.extensions_std.providers.anthropic_stream import EventReader
from camshaft.extensions_std.providers.http_errors import anthropic_error
from camshaft.kernel.messages import AssistantMessage, Block, TextBlock, ThinkingBlock, ToolCall
from camshaft.kernel.models import Model, Rates
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.stream import Ended, Started, StreamItem, TextDelta, Violation, begin, fold
from tests.extensions_std.providers.anthropic_asking import PING, START, STOP, block, delta, end, raw, stop
from tests.extensions_std.providers.asking import Asked, FakeHttp, FakeResponse, Wait, anthropic, ask


async def read(*events: dict[str, Any] | bytes) -> Asked:
    """The answer that these events give."""
    body = b"".join([event if isinstance(event, bytes) else raw(event) for event in events])
    return await ask(anthropic(FakeHttp([FakeResponse(body=(body,))])))


async def message_of(*events: dict[str, Any] | bytes) -> AssistantMessage:
    """The message that these events give."""
    message = (await read(*events)).message
    assert message is not None
    return message


REDACTED: Final = ThinkingBlock(thinking="[Reasoning redacted]", thinking_signature="D", redacted=True)
CONTENTS: Final[list[tuple[list[dict[str, Any]], tuple[Block, ...]]]] = [
    ([block(0, type="redacted_thinking", data="D"), stop(0)], (REDACTED,)),
    (
        [
            block(0, type="thinking", thinking="a", signature="s"),
            delta(0, type="thinking_delta", thinking="b"),
            delta(0, type="signature_delta", signature="1"),
            delta(0, type="signature_delta", signature="2"),
            stop(0),
        ],
        (ThinkingBlock(thinking="ab", thinking_signature="s12"),),
    ),
    (
        [block(0, type="thinking", thinking=""), delta(0, type="signature_delta", signature="S")],
        (ThinkingBlock(thinking="", thinking_signature="S"),),
    ),
    (
        [
            block(0, type="server_tool_use", id="x", name="web", input={}),
            delta(0, type="input_json_delta", partial_json="{"),
            stop(0),
            block(1, type="text", text="t"),
            stop(1),
        ],
        (TextBlock(text="t"),),
    ),
    (
        [
            block(0, type="text", text="a"),
            delta(0, type="thinking_delta", thinking="b"),
            delta(0, type="citations_delta", citation={}),
            stop(0),
        ],
        (TextBlock(text="a"),),
    ),
    ([block(0, type="text", text="a"), stop(0), delta(0, type="text_delta", text="late"), stop(0)], (TextBlock(text="a"),)),
    ([block(5, type="text", text="a"), stop(5), block(5, type="text", text="b"), stop(5)], (TextBlock(text="a"), TextBlock(text="b"))),
    (
        [block(0, type="tool_use", id="t", name="read", input={"path": "a"}), stop(0)],
        (ToolCall(id="t", name="read", arguments=FrozenDict({"path": "a"})),),
    ),
    (
        [block(0, type="tool_use", id="t", name="read", input={"path": "a"})],
        (ToolCall(id="t", name="read", arguments=FrozenDict({"path": "a"})),),
    ),
    (
        [block(0, type="tool_use", id="t", name="read", input={"path": "a"}), delta(0, type="input_json_delta", partial_json=""), stop(0)],
        (ToolCall(id="t", name="read", arguments=FrozenDict({"path": "a"})),),
    ),
    ([block(0, type="tool_use", id="t", name="read", input="odd"), stop(0)], (ToolCall(id="t", name="read"),)),
    (
        [block(0, type="tool_use", name="a"), block(1, type="tool_use", id="t", name="b"), block(2, type="tool_use", id="t", name="c")],
        (ToolCall(id="call_1", name="a"), ToolCall(id="t", name="b"), ToolCall(id="call_3", name="c")),
    ),
    (
        [{"type": "content_block_start", "content_block": {"type": "text", "text": "no index"}}, {"type": "content_block_stop"}],
        (TextBlock(text="no index"),),
    ),
    ([delta(0, type="text_delta", text="nowhere"), stop(7)], ()),
]


@pytest.mark.rule("WIRE-52", "WIRE-56")
@pytest.mark.parametrize(("events", "content"), CONTENTS)
async def test_blocks_of_a_reply(events: list[dict[str, Any]], content: tuple[Block, ...]) -> None:
    message = await message_of(START, *events, end(), STOP)

    assert message.content == content
    assert (message.stop_reason, message.response_id, message.response_model) == ("stop", "m", None)


@pytest.mark.rule("STR-33")
async def test_signature_of_a_thinking_that_was_cut_is_kept() -> None:
    message = await message_of(START, block(0, type="thinking", thinking="t"), delta(0, type="signature_delta", signature="S"))

    assert message.content == (ThinkingBlock(thinking="t", thinking_signature="S"),)


ENDS: Final = [
    (end("refusal", stop_details={"explanation": "No."}), "error", "No."),
    (end("refusal", stop_details={"explanation": None}), "error", "The model refused to complete the request"),
    (end("sensitive"), "error", "Provider stopped with: sensitive"),
    (end("strange"), "error", "Unhandled stop reason: strange"),
    (end("stop_sequence"), "stop", None),
    (end("max_tokens"), "length", None),
    (end("tool_use"), "toolUse", None),
]


@pytest.mark.rule("WIRE-54")
@pytest.mark.parametrize(("event", "stop_reason", "error"), ENDS)
async def test_stop_reason_tells_how_a_reply_ended(event: dict[str, Any], stop_reason: str, error: str | None) -> None:
    message = await message_of(START, block(0, type="text", text="x"), event, STOP)

    assert (message.stop_reason, message.error_message, message.raw_stop_reason) == (stop_reason, error, event["delta"]["stop_reason"])
    assert message.content == (TextBlock(text="x"),)


@pytest.mark.rule("WIRE-54")
async def test_good_end_after_a_refusal_has_no_error() -> None:
    message = await message_of(START, end("refusal"), end("end_turn"), STOP)

    assert (message.stop_reason, message.error_message) == ("stop", None)


@pytest.mark.rule("WIRE-55")
async def test_reply_whose_end_was_cut_is_no_good_reply() -> None:
    cut = await message_of(START, end())
    silent = await message_of(START, STOP)

    assert (cut.error_message, cut.raw_stop_reason) == ("Anthropic stream ended before message_stop", "end_turn")
    assert silent.error_message == "Anthropic stream ended without a stop reason"
    assert cut.usage.input == silent.usage.input == 3


@pytest.mark.rule("WIRE-55")
async def test_reply_without_a_beginning_is_judged_by_its_stop_reason() -> None:
    told = await message_of(block(0, type="text", text="x"), end())
    silent = await message_of(block(0, type="text", text="x"))

    assert (told.stop_reason, told.error_message) == ("stop", None)
    assert silent.error_message == "Anthropic stream ended without a stop reason"


@pytest.mark.rule("WIRE-52", "MOD-13")
async def test_thinking_is_a_part_of_the_output() -> None:
    spent = {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 5}, "cache_creation": {"ephemeral_1h_input_tokens": 2}}

    usage = (await message_of(START, {**end(), "usage": {**spent, "cache_creation_input_tokens": 4, "input_tokens": True}}, STOP)).usage

    assert (usage.input, usage.output, usage.reasoning, usage.cache_write, usage.cache_write1h, usage.total_tokens) == (3, 9, 5, 4, 2, 16)


@pytest.mark.rule("WIRE-52")
async def test_model_that_answers_in_place_of_another_is_named() -> None:
    message = await message_of({"type": "message_start", "message": {"id": "m", "model": "claude-y"}}, end(), STOP)

    assert (message.model, message.response_model) == ("claude-x", "claude-y")


@pytest.mark.rule("WIRE-51")
async def test_event_with_slips_in_its_text_is_repaired() -> None:
    odd = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\tb\\d"}}\n\n'

    message = await message_of(START, block(0, type="text", text=""), odd, end(), STOP)

    assert message.content == (TextBlock(text="a\tb\\d"),)


@pytest.mark.rule("WIRE-51")
async def test_event_that_cannot_be_read_is_told_with_its_lines() -> None:
    message = await message_of(START, b"event: message_delta\ndata: {\ndata: oops\n\n")

    assert message.error_message is not None
    assert message.error_message.startswith("Could not parse Anthropic SSE event message_delta: ")
    assert message.error_message.endswith("; data={\noops; raw=event: message_delta\\ndata: {\\ndata: oops")


async def test_very_long_event_that_cannot_be_read_is_told_in_part() -> None:
    message = await message_of(START, b"event: message_delta\ndata: {" + b"x" * 100_000 + b"\n\n")

    assert message.error_message is not None
    assert len(message.error_message) < 10_000
    assert "... [truncated 96001 chars]" in message.error_message


@pytest.mark.rule("WIRE-51")
async def test_unknown_events_are_ignored() -> None:
    message = await message_of(START, b"event: future\ndata: no json\n\n", block(0, type="text", text="x"), PING, end(), STOP)

    assert (message.stop_reason, message.content) == ("stop", (TextBlock(text="x"),))


@pytest.mark.rule("STR-35")
async def test_pings_alone_end_within_the_bound(autojump_clock: MockClock) -> None:
    text = raw(START, block(0, type="text", text="Hello"))
    pings = [piece for _ in range(1000) for piece in (Wait(10), PING)]

    asked = await ask(anthropic(FakeHttp([FakeResponse(body=(text, *pings))])))

    assert asked.message is not None
    assert (asked.message.stop_reason, asked.message.content) == ("error", (TextBlock(text="Hello"),))
    assert "no content for 300 s" in (asked.message.error_message or "")
    assert asked.message.usage.input == 3
    assert trio.current_time() == pytest.approx(300)


@pytest.mark.rule("STR-35")
async def test_reply_is_complete_though_the_connection_stays_open(autojump_clock: MockClock) -> None:
    asked = await ask(anthropic(FakeHttp([FakeResponse(body=(raw(START, end(), STOP), Wait(1000), PING))])))

    assert isinstance(asked.items[-1], Ended)
    assert asked.items[-1].stop_reason == "stop"
    assert trio.current_time() == 0


ERRORS: Final = [
    (b'{"message": "top"}', "400 top"),
    (b'{"error": {"message": "in"}, "n": "\xc3\xa9"}', '400 {"error":{"message":"in"},"n":"\xe9"}'),
    (b'{"message": {"odd": 1}}', '400 {"message":{"odd":1}}'),
    (b'"text"', '400 "text"'),
    (b"<html>", "400 <html>"),
    (b" ", "400 status code (no body)"),
    (b'{"x": "' + b"y" * 9000 + b'"}', '400 {"x":"' + "y" * 9000 + '"}'),
]


@pytest.mark.rule("WIRE-24")
@pytest.mark.parametrize(("body", "text"), ERRORS)
def test_http_error_is_told_in_the_servers_words(body: bytes, text: str) -> None:
    assert anthropic_error(400, body) == text


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.just(1e400), st.just(10**400), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=4,
)
TYPES = st.sampled_from(["text", "thinking", "redacted_thinking", "tool_use", "other"])
DELTAS = st.sampled_from(["text_delta", "thinking_delta", "signature_delta", "input_json_delta", "other"])
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        name: st.one_of(VALUES, st.just("x")) for name in ("text", "thinking", "signature", "data", "id", "name", "input", "partial_json")
    },
)
BLOCKS = st.builds(lambda kind, fields: {"type": kind, **fields}, st.one_of(TYPES, VALUES), FIELDS)
GROWTHS = st.builds(lambda kind, fields: {"type": kind, **fields}, st.one_of(DELTAS, VALUES), FIELDS)
INDICES = st.one_of(st.integers(0, 2), VALUES)
COUNTERS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation")
USAGES = st.one_of(VALUES, st.fixed_dictionaries({}, optional=dict.fromkeys(COUNTERS, VALUES)))
EVENTS = st.one_of(
    VALUES,
    st.builds(
        lambda at, content: {"type": "content_block_start", "index": at, "content_block": content}, INDICES, st.one_of(BLOCKS, VALUES)
    ),
    st.builds(lambda at, content: {"type": "content_block_delta", "index": at, "delta": content}, INDICES, st.one_of(GROWTHS, VALUES)),
    st.builds(lambda at: {"type": "content_block_stop", "index": at}, INDICES),
    st.builds(lambda usage: {"type": "message_start", "message": {"usage": usage}}, USAGES),
    st.builds(lambda value: {"type": "message_start", "message": value}, VALUES),
    st.builds(lambda value, usage: {"type": "message_delta", "delta": value, "usage": usage}, VALUES, USAGES),
)


@pytest.mark.slow
@settings(max_examples=500)
@given(st.lists(EVENTS, max_size=12))
def test_whatever_a_server_sends_gives_a_message(events: list[Any]) -> None:
    reader, items = EventReader(Model(id="m", provider="p", api="anthropic-messages", cost=Rates(input=1))), list[StreamItem]([Started()])
    for event in events:
        items += reader.read(event)
    items += reader.finish()

    partial = begin("a", "p", "m", 1)
    for item in items:
        folded = fold(partial, item)
        if partial.ended is None:
            assert not isinstance(folded, Violation), folded.text
            partial = folded

    assert partial.message.stop_reason in ("stop", "length", "toolUse", "error")


async def test_delta_without_text_grows_nothing_but_is_seen() -> None:
    asked = await read(START, block(0, type="text", text=""), delta(0, type="text_delta", text=""), end(), STOP)

    assert TextDelta(0, "") in asked.items
