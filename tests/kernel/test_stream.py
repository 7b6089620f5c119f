"""Stream items folded into messages: what each item does, what is refused, what snapshots keep, what it costs."""

import time
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camshaft.kernel.messages import AssistantMessage, TextBlock, ThinkingBlock, ToolCall, Usage
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.stream import (
    ABORTED,
    NO_TERMINAL,
    SILENT_FAILURE,
    Ended,
    Noted,
    Partial,
    Started,
    StreamItem,
    TextDelta,
    TextEnded,
    TextStarted,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingSigned,
    ThinkingStarted,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Violation,
    begin,
    event_of,
    finish,
    fold,
)

FRESH = begin("api", "provider", "model", 7)
TEXT: list[StreamItem] = [Started(), TextStarted(0)]
CALL: list[StreamItem] = [Started(), ToolCallStarted(0, "c1", "read")]


def folded(*items: StreamItem, start: Partial = FRESH) -> Partial:
    return reduce(_step, items, start)


def _step(partial: Partial, item: StreamItem) -> Partial:
    after = fold(partial, item)
    assert isinstance(after, Partial), after
    return after


def test_snapshot_before_the_end_is_pending_and_names_the_request() -> None:
    message = folded(Started(response_id="r", usage=Usage(input=3))).message

    assert message == AssistantMessage(
        content=(), api="api", provider="provider", model="model", stop_reason="pending", timestamp=7, response_id="r", usage=Usage(input=3)
    )


def test_blocks_may_interleave() -> None:
    partial = folded(
        Started(), TextStarted(0), TextDelta(0, "a"), ThinkingStarted(1), ThinkingDelta(1, "x"), TextDelta(0, "b"), ThinkingDelta(1, "y")
    )

    assert partial.message.content == (TextBlock(text="ab"), ThinkingBlock(thinking="xy"))


def test_snapshot_does_not_see_what_comes_later() -> None:
    early = folded(*TEXT, TextDelta(0, "a"))

    late = folded(TextDelta(0, "b"), TextEnded(0), start=early)

    assert early.message.content == (TextBlock(text="a"),)
    assert late.message.content == (TextBlock(text="ab"),)


def test_two_continuations_of_one_snapshot_do_not_mix() -> None:
    early = folded(*TEXT, TextDelta(0, "a"))

    left, right = folded(TextDelta(0, "b"), start=early), folded(TextDelta(0, "c"), start=early)

    assert [each.message.content for each in (left, right, early)] == [
        (TextBlock(text="ab"),),
        (TextBlock(text="ac"),),
        (TextBlock(text="a"),),
    ]


def test_older_snapshot_can_be_read_after_a_newer_one() -> None:
    early = folded(*TEXT, TextDelta(0, "a"))
    late = folded(TextDelta(0, "b"), start=early)

    assert late.message.content == (TextBlock(text="ab"),)
    assert early.message.content == (TextBlock(text="a"),)


def test_reading_a_snapshot_twice_gives_the_same_object() -> None:
    partial = folded(*TEXT, TextDelta(0, "a"))

    assert partial.message is partial.message


def test_end_of_a_block_wins_over_its_deltas() -> None:
    partial = folded(*TEXT, TextDelta(0, "draft"), TextEnded(0, "final", "sig"), ThinkingStarted(1), ThinkingEnded(1, "thought", "s2"))

    assert partial.message.content == (
        TextBlock(text="final", text_signature="sig"),
        ThinkingBlock(thinking="thought", thinking_signature="s2"),
    )


def test_redacted_thinking_is_complete_at_its_start() -> None:
    partial = folded(Started(), ThinkingStarted(0, "…", "sig", True), ThinkingEnded(0))

    assert partial.message.content == (ThinkingBlock(thinking="…", thinking_signature="sig", redacted=True),)


@pytest.mark.parametrize("kind", [(TextStarted(0), TextDelta), (ThinkingStarted(0), ThinkingDelta)])
def test_halves_of_a_surrogate_pair_in_two_deltas_become_one_character(kind: tuple[Any, Any]) -> None:
    """STR-28, also when a snapshot was read between the halves."""
    opened, delta = kind
    half = folded(Started(), opened, delta(0, "é\ud83d"))
    seen = half.message.content

    whole = folded(delta(0, "\ude00!"), start=half).message.content[0]

    assert [getattr(block, "text", None) or getattr(block, "thinking", None) for block in (*seen, whole)] == ["é\ud83d", "é😀!"]


def test_arguments_are_previewed_while_they_stream_and_strict_at_the_end() -> None:
    open_call = folded(*CALL, ToolCallDelta(0, '{"path":"a'))

    cut = folded(ToolCallEnded(0), start=open_call)

    assert open_call.message.tool_calls[0].arguments == {"path": "a"}
    assert cut.message.tool_calls[0].arguments == {}
    assert (cut.message.tool_calls[0].arguments_error or "").endswith('\n\nReceived arguments:\n{"path":"a')


def test_arguments_given_at_the_start_show_until_text_arrives_and_stand_without_any() -> None:
    begun = folded(Started(), ToolCallStarted(0, "c1", "patch", FrozenDict({"body": ""})), ToolCallDelta(0, ""))
    grown = folded(ToolCallDelta(0, '{"body":"a'), start=begun)

    shown = [_call(each).arguments for each in (begun, grown, folded(ToolCallEnded(0), start=begun))]

    assert shown == [{"body": ""}, {"body": "a"}, {"body": ""}]


def _call(partial: Partial) -> ToolCall:
    (call,) = partial.message.content
    assert isinstance(call, ToolCall)
    return call


def test_text_given_at_the_start_of_a_call_is_the_beginning_of_its_arguments() -> None:
    begun = folded(Started(), ToolCallStarted(0, "c1", "read", text='{"pa'))
    older, grown = begun, folded(ToolCallDelta(0, 'th":"a"}'), start=begun)

    assert older.message.tool_calls[0].arguments == FrozenDict()
    assert grown.message.tool_calls[0].arguments == FrozenDict({"path": "a"})
    assert folded(ToolCallEnded(0), start=grown).message.tool_calls[0].arguments == FrozenDict({"path": "a"})


def test_signature_that_comes_late_is_kept_before_and_after_the_end_of_the_thinking() -> None:
    open_block = folded(Started(), ThinkingStarted(0), ThinkingDelta(0, "Hm"), ThinkingSigned(0, "s1"))
    ended = folded(ThinkingEnded(0), TextStarted(1), TextDelta(1, "x"), start=open_block)
    signed = folded(ThinkingSigned(0, "s2"), TextDelta(1, "y"), start=ended)

    assert open_block.message.content == (ThinkingBlock(thinking="Hm", thinking_signature="s1"),)
    assert ended.message.content[0] == ThinkingBlock(thinking="Hm", thinking_signature="s1")
    assert signed.message.content == (ThinkingBlock(thinking="Hm", thinking_signature="s2"), TextBlock(text="xy"))
    assert event_of(signed, ThinkingSigned(0, "s2")) is None


def test_finished_call_of_the_provider_is_taken_as_it_is() -> None:
    call = ToolCall(id="c9", name="read", arguments=FrozenDict({"a": 1}), thought_signature="t")

    assert folded(*CALL, ToolCallDelta(0, "{"), ToolCallEnded(0, call)).message.tool_calls == (call,)


def test_call_left_open_by_a_successful_stream_is_parsed_strictly() -> None:
    message = folded(*CALL, ToolCallDelta(0, '{"a":1}'), Ended("toolUse")).message

    assert message.tool_calls[0].arguments == {"a": 1}


def test_aborted_message_keeps_what_was_received() -> None:
    """STR-33: content and usage; the preview of a call stays, nothing runs."""
    partial = folded(*CALL, Noted(usage=Usage(input=5)), ToolCallDelta(0, '{"a":"x'))

    message = finish(partial, ABORTED)

    assert (message.stop_reason, message.error_message, message.usage) == ("aborted", "Request was aborted", Usage(input=5))
    assert message.tool_calls[0].arguments == {"a": "x"}


def test_failure_before_the_start_gives_an_empty_message() -> None:
    message = finish(FRESH, NO_TERMINAL)

    assert (message.content, message.stop_reason, message.error_message) == (
        (),
        "error",
        "Provider stream ended without a terminal event",
    )


@pytest.mark.parametrize(("stop_reason", "text"), [("error", SILENT_FAILURE), ("aborted", "Request was aborted")])
def test_failure_always_has_a_text(stop_reason: str, text: str) -> None:
    assert folded(Ended(stop_reason, " ")).message.error_message == text


def test_end_keeps_what_was_known_and_adds_what_it_says() -> None:
    ended = Ended("stop", raw_stop_reason="end_turn", response_model="m2", end_turn=True, timestamp=3, diagnostics=({"type": "x"},))

    message = folded(Started(response_id="r"), Noted(provider_thinking_level="high"), ended).message

    assert message == AssistantMessage(
        content=(),
        api="api",
        provider="provider",
        model="model",
        stop_reason="stop",
        timestamp=3,
        response_id="r",
        response_model="m2",
        provider_thinking_level="high",
        raw_stop_reason="end_turn",
        end_turn=True,
        diagnostics=({"type": "x"},),
    )


VIOLATIONS: list[tuple[list[Any], Any, str]] = [
    ([], TextStarted(0), "before Started"),
    ([], TextDelta(0, "x"), "before Started"),
    ([], Ended("stop"), "before Started"),
    ([Started()], Started(), "a second time"),
    ([Started()], TextStarted(1), "next block has index 0"),
    ([Started()], TextDelta(0, "x"), "unknown block 0"),
    ([Started()], Ended("pending"), "pending"),
    (TEXT, TextStarted(0), "next block has index 1"),
    (TEXT, TextDelta(-1, "x"), "unknown block -1"),
    (TEXT, TextDelta(0, None), "no text"),  # type: ignore[arg-type]  # what an untyped provider may push
    (TEXT, ThinkingDelta(0, "x"), "is a TextBlock"),
    (TEXT, ToolCallEnded(0), "is a TextBlock"),
    ([*TEXT, TextEnded(0)], TextDelta(0, "x"), "has ended"),
    ([*TEXT, TextEnded(0)], TextEnded(0), "has ended"),
    (TEXT, ThinkingSigned(0, "s"), "is a TextBlock"),
    (TEXT, ThinkingSigned(1, "s"), "unknown block 1"),
    ([Started(), ThinkingStarted(0)], ThinkingSigned(0, None), "no text"),  # type: ignore[arg-type]  # likewise
    ([Started()], ToolCallStarted(0, "c", "read", text=7), "a text that is none"),  # type: ignore[arg-type]  # likewise
    (CALL, ToolCallEnded(0, {"id": "c1"}), "no ToolCall"),  # type: ignore[arg-type]  # likewise
    ([Started(), Ended("stop")], Ended("stop"), "after the stream ended"),
    ([Started(), Ended("stop")], TextStarted(0), "after the stream ended"),
    ([Started()], "text", "no stream item"),
]


@pytest.mark.parametrize(("before", "item", "why"), VIOLATIONS)
def test_item_that_breaks_the_protocol_is_refused_and_changes_nothing(before: list[Any], item: Any, why: str) -> None:
    """STR-36."""
    partial = folded(*before)
    message = partial.message

    refused = fold(partial, item)

    assert isinstance(refused, Violation)
    assert why in refused.text
    assert partial.message == message


def test_stream_goes_on_after_a_refused_item() -> None:
    partial = folded(*TEXT, TextDelta(0, "a"))
    fold(partial, TextDelta(9, "x"))

    assert folded(TextDelta(0, "b"), start=partial).message.content == (TextBlock(text="ab"),)


def test_events_tell_index_delta_and_the_finished_block() -> None:
    items: list[StreamItem] = [*TEXT, TextDelta(0, "a"), TextEnded(0), ToolCallStarted(1, "c1", "read"), ToolCallEnded(1), Ended("toolUse")]
    partial, told = FRESH, []
    for item in items:
        partial = folded(item, start=partial)
        event = event_of(partial, item)
        assert event is not None
        told.append((event.type, event.content_index, event.delta, event.content, event.tool_call, event.reason))
        assert event.partial is partial.message

    call = ToolCall(id="c1", name="read")
    assert told == [
        ("start", None, None, None, None, None),
        ("text_start", 0, None, None, None, None),
        ("text_delta", 0, "a", None, None, None),
        ("text_end", 0, None, "a", None, None),
        ("toolcall_start", 1, None, None, None, None),
        ("toolcall_end", 1, None, None, call, None),
        ("done", None, None, None, None, "toolUse"),
    ]


def test_noted_has_no_event_and_a_failure_is_an_error_event() -> None:
    failed = event_of(folded(ABORTED), ABORTED)

    assert event_of(folded(Noted()), Noted()) is None
    assert failed is not None
    assert (failed.type, failed.reason) == ("error", "aborted")


@given(text=st.text(st.characters(codec=None), max_size=60), cuts=st.lists(st.integers(0, 60)), reads=st.booleans())
def test_text_folded_in_pieces_equals_text_folded_whole(text: str, cuts: list[int], reads: bool) -> None:
    """Also where a cut parts a surrogate pair, and whether or not snapshots are read between."""
    units = text.encode("utf-16-le", "surrogatepass")
    places = sorted({0, len(units), *(2 * cut for cut in cuts if 2 * cut < len(units))})
    pieces = [units[a:b].decode("utf-16-le", "surrogatepass") for a, b in zip(places, places[1:], strict=False)]
    partial = folded(*TEXT)
    for piece in pieces:
        partial = folded(TextDelta(0, piece), start=partial)
        assert not reads or partial.message.content

    whole = folded(*TEXT, TextDelta(0, units.decode("utf-16-le", "surrogatepass")), TextEnded(0), Ended("stop"))

    assert folded(TextEnded(0), Ended("stop"), start=partial).message == whole.message


@pytest.mark.slow
def test_delta_costs_the_same_at_the_start_and_at_the_end_of_a_long_answer() -> None:
    """50,000 deltas, at most 2 µs of processor time each (best of five, so that a busy machine does not fail it)."""
    items = [TextDelta(0, "abcd")] * 50_000

    def cost_us(count: int) -> float:
        begun = time.process_time()
        folded(*items[:count], start=folded(*TEXT))
        return (time.process_time() - begun) / count * 1e6

    short, long = (min(cost_us(count) for _ in range(5)) for count in (5_000, 50_000))

    assert long < 2
    assert long < 3 * short


def test_text_given_at_the_start_stands_before_the_deltas() -> None:
    started = folded(Started(), TextStarted(0, text="pre \ud83d"))

    grown = folded(TextDelta(0, "\ude00 fix"), start=started)

    assert started.message.content == (TextBlock(text="pre \ud83d"),)
    assert grown.message.content == (TextBlock(text="pre 😀 fix"),)
    assert folded(TextEnded(0), start=grown).message.content == grown.message.content
