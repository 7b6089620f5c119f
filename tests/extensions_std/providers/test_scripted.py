"""The scripted provider does what its script says, the same in every run."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from camshaft.actors.api import Emit, ModelRequest, RequestHooks, RequestOptions, Signal
from camshaft.extensions_std.providers.scripted import (
    EXHAUSTED,
    Call,
    Drop,
    Fail,
    Hang,
    OpenGate,
    ScriptedProvider,
    Sleep,
    WaitGate,
    assistant,
    text,
    text_items,
    thinking,
    tool_call,
    tool_call_items,
)
from camshaft.kernel.messages import AssistantMessage, SystemMessage, TextBlock, ToolCall, Usage, UserMessage
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.stream import Ended, Started, TextDelta, TextStarted, ToolCallEnded, ToolCallStarted
from tests.extensions_std.providers.asking import AskSignal, ask


def _provider(*steps: object, **fields: object) -> ScriptedProvider:
    provider = ScriptedProvider(**fields)  # type: ignore[arg-type]  # what a test gives
    provider.set_responses(steps)  # type: ignore[arg-type]  # what a test gives
    return provider


async def test_message_streams_block_by_block_and_comes_out_as_scripted() -> None:
    content = (
        thinking("Let me look at this for a while"),
        text("Reading the file now, from the first line to the last"),
        tool_call("read", {"path": "a"}, id="c1"),
    )
    provider = _provider(assistant(content, stop_reason="toolUse", usage=Usage(input=7, output=3, total_tokens=10)))

    asked = await ask(provider)

    assert asked.message == AssistantMessage(
        content=content,
        api="faux",
        provider="faux",
        model="faux-1",
        usage=Usage(input=7, output=3, total_tokens=10),
        stop_reason="toolUse",
        timestamp=1,
    )
    assert len([item for item in asked.items if isinstance(item, TextDelta)]) > 1


async def test_same_seed_gives_the_same_items() -> None:
    steps = (assistant("a text that is cut into several pieces by chance"), assistant(tool_call("read", {"path": "a" * 50})))

    runs = [[(await ask(provider)).items for _ in steps] for provider in (_provider(*steps, seed=4), _provider(*steps, seed=4))]

    assert runs[0] == runs[1]


async def test_functions_answer_when_their_turn_comes() -> None:
    async def later(request: ModelRequest) -> AssistantMessage:
        await trio.lowlevel.checkpoint()
        return assistant(f"async {request.model.id}")

    provider = _provider(lambda request: assistant(f"sync {len(request.messages)}"), later)

    said = [_text_of((await ask(provider)).message) for _ in range(2)]

    assert said == ["sync 1", "async faux-1"]


async def test_function_that_raises_fails_the_request() -> None:
    def broken(_request: ModelRequest) -> AssistantMessage:
        raise ValueError("broken script")

    provider = _provider(broken)

    with pytest.raises(ValueError, match="broken script"):
        await ask(provider)
    assert provider.requests[0].outcome == "raised"


async def test_empty_queue_is_an_error_that_the_test_can_see() -> None:
    provider = _provider()

    asked = await ask(provider)

    assert asked.items == [Ended("error", EXHAUSTED, usage=Usage())]
    with pytest.raises(AssertionError, match="1 of 1 requests found no scripted response"):
        provider.assert_exhausted()


def test_step_that_nobody_requested_is_seen() -> None:
    with pytest.raises(AssertionError, match="1 scripted responses were not requested"):
        _provider(assistant("left")).assert_exhausted()


async def test_actions_are_played_as_they_stand() -> None:
    heard: list[str] = []
    items = [Started(), *text_items(0, "\ud83d", "\ude00"), *tool_call_items(1, "c1", "read", '{"a', '": 1}'), Ended("toolUse")]
    provider = _provider([*items[:2], Call(lambda: heard.append("here")), *items[2:]])

    asked = await ask(provider)

    assert asked.items == items
    assert heard == ["here"]
    assert asked.message is not None
    assert asked.message.content == (TextBlock(text="😀"), ToolCall(id="c1", name="read", arguments=FrozenDict({"a": 1})))


async def test_blocks_may_interleave() -> None:
    items = [Started(), TextStarted(0), ToolCallStarted(1, "c1", "read"), TextDelta(0, "late"), ToolCallEnded(1), Ended("toolUse")]

    asked = await ask(_provider(items))

    assert _text_of(asked.message) == "late"


async def test_dropped_connection_has_no_terminal_item() -> None:
    provider = _provider([Started(), Drop(), Ended("stop")])

    asked = await ask(provider)

    assert asked.items == [Started()]
    assert provider.requests[0].outcome == "dropped"


async def test_failure_has_its_status_in_front() -> None:
    asked = await ask(_provider([Fail("slow down", 429)]))

    assert asked.items == [Ended("error", "429 slow down")]


async def test_gate_holds_the_stream_until_it_is_opened(autojump_clock: MockClock) -> None:
    provider = _provider([Started(), WaitGate("go"), Ended("stop")], [Sleep(5), OpenGate("go"), Started(), Ended("stop")])
    ended: list[float] = []

    async def timed() -> None:
        await ask(provider)
        ended.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(timed)
        nursery.start_soon(timed)

    assert ended == [5, 5]


@pytest.mark.parametrize("abort_after", range(1, 6))
async def test_abort_keeps_what_was_sent(abort_after: int, autojump_clock: MockClock) -> None:
    provider = _provider(assistant("0123456789" * 20), pause_s=0.003)

    asked = await ask(provider, abort_after=abort_after)

    assert asked.items[-1] == Ended("aborted", "Request was aborted", usage=asked.items[-1].usage)  # type: ignore[union-attr]  # an Ended
    assert len(asked.items) == abort_after + 1
    assert provider.requests[0].outcome == "aborted"


async def test_hang_ends_with_the_abort() -> None:
    asked = await ask(_provider([Started(), Hang()]), abort_after=1)

    assert asked.message is not None
    assert asked.message.stop_reason == "aborted"


async def test_live_step_has_full_control_at_the_pace_of_the_provider(autojump_clock: MockClock) -> None:
    async def live(request: ModelRequest, signal: Signal, emit: Emit) -> None:
        await emit(Started())
        await emit(Ended("length" if not signal.cancelled and request.messages else "stop"))

    asked = await ask(_provider(live, pause_s=0.003))

    assert asked.message is not None
    assert asked.message.stop_reason == "length"
    assert trio.current_time() == pytest.approx(0.006)


async def test_tokens_per_second_sets_the_time_of_an_answer(autojump_clock: MockClock) -> None:
    await ask(_provider(assistant("x" * 400), tokens_per_second=10))

    assert trio.current_time() == pytest.approx(10)


async def test_message_time_is_that_of_the_clock_at_the_end(autojump_clock: MockClock) -> None:
    provider = _provider(assistant("x"), pause_s=1, clock=lambda: round(trio.current_time() * 1000))

    asked = await ask(provider)

    assert asked.message is not None
    assert asked.message.timestamp == 4000


async def test_usage_is_estimated_and_a_session_reads_its_cache() -> None:
    provider = _provider(assistant("x" * 8), assistant("x" * 8), assistant("x"))
    hello, more = UserMessage(content="a" * 35, timestamp=1), UserMessage(content="b" * 33, timestamp=2)
    options = RequestOptions(session_id="s")

    first = await ask(provider, (hello,), options=options)
    second = await ask(provider, (hello, more), options=options)
    alone = await ask(provider, (hello,))

    assert _usage_of(first.message) == (0, 2, 0, 10)
    assert _usage_of(second.message) == (0, 2, 10, 10)
    assert _usage_of(alone.message) == (10, 1, 0, 0)


async def test_requests_are_recorded_without_secrets() -> None:
    provider = _provider(assistant("ok"))
    system = SystemMessage(content="be brief", timestamp=0)
    options = RequestOptions(session_id="s", headers=FrozenDict({"Authorization": "Bearer canary", "X-Team": "red"}))

    await ask(provider, (system, UserMessage(content="hi", timestamp=1)), options=options)

    record = provider.requests[0]
    assert record.messages == (system, UserMessage(content="hi", timestamp=1))
    assert record.options.headers == {"Authorization": "<hidden>", "X-Team": "red"}
    assert (record.number, record.outcome) == (0, "stop")
    assert "canary" not in repr(provider.requests)


async def test_hooks_are_called_before_the_first_item() -> None:
    seen: list[Any] = []

    async def on_payload(payload: Any) -> Any:
        await trio.lowlevel.checkpoint()
        seen.append(payload["messages"][0]["content"])
        return {"model": "other"}

    async def on_response(status: int, _headers: Mapping[str, str]) -> None:
        await trio.lowlevel.checkpoint()
        seen.append(status)

    async def emit(item: object) -> None:
        await trio.lowlevel.checkpoint()
        seen.append(type(item))

    provider = _provider([Started(), Ended("stop")])
    request = ModelRequest(
        model=provider.models[0],
        thinking_level="off",
        messages=(UserMessage(content="hi", timestamp=1),),
        hooks=RequestHooks(on_payload=on_payload, on_response=on_response),
    )
    await provider.stream(request, AskSignal(), emit)

    assert seen == ["hi", 200, Started, Ended]
    assert provider.requests[0].payload == {"model": "other"}


NO_STEPS: list[tuple[Any, str]] = [
    ("Hello", "write a list of steps, for example [assistant('hello')]"),
    (assistant("Hello"), "write a list of steps, for example [assistant('hello')]"),
    (["Hello"], "a step is 'Hello'; write assistant('Hello')"),
    ([TextBlock(text="Hello")], "; write assistant(TextBlock("),
    ([Fail("busy")], "; write a list of actions, [Fail("),
    ([RuntimeError("busy")], "; write [Fail('busy')]"),
    ([[Started(), "Hello"]], "a list of actions holds 'Hello'; expected stream items, Sleep, Fail, Hang and the like"),
    ([AssistantMessage], "expected assistant(...), a function of the request, or a list of actions"),
]


@pytest.mark.parametrize(("steps", "told"), NO_STEPS, ids=[told for _, told in NO_STEPS])
@pytest.mark.parametrize("add", [ScriptedProvider.set_responses, ScriptedProvider.append_responses])
def test_what_is_no_step_is_refused_with_what_to_write_instead(add: Callable[..., None], steps: Any, told: str) -> None:
    with pytest.raises(TypeError) as caught:
        add(ScriptedProvider(), steps)

    assert told in str(caught.value)


def test_a_failure_is_made_of_a_text() -> None:
    with pytest.raises(TypeError, match=r"Fail\(RuntimeError\('busy'\)\) has no text; write Fail\('busy'\)"):
        Fail(RuntimeError("busy"))  # type: ignore[arg-type]  # the mistake


async def test_cancelled_scope_leaves_the_request_recorded_as_cancelled() -> None:
    provider = _provider([Started(), Hang()])

    with trio.CancelScope() as scope:
        scope.cancel()
        await ask(provider, signal=AskSignal())

    assert provider.requests[0].outcome == "cancelled"


def _text_of(message: AssistantMessage | None) -> str:
    assert message is not None
    return "".join([block.text for block in message.content if isinstance(block, TextBlock)])


def _usage_of(message: AssistantMessage | None) -> tuple[int, int, int, int]:
    assert message is not None
    usage = message.usage
    return usage.input, usage.output, usage.cache_read, usage.cache_write
