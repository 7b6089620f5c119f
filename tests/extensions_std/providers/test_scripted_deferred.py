"""Answers that are fetched later (FAUX-9, STR-40, STR-41)."""

from typing import Any, Final

import pytest
import trio
from trio.testing import MockClock

from camshaft.actors.api import ModelRequest, RequestOptions, Signal
from camshaft.extensions_std.providers.scripted import Call, Hang, ScriptedProvider, assistant, tool_call
from camshaft.kernel.messages import AssistantMessage, Usage
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.stream import Ended, Started, StreamItem, ToolCallStarted
from tests.extensions_std.providers.asking import AskSignal, ask

LATER: Final = RequestOptions(deferred=True, session_id="s")


def _provider(*steps: Any, **fields: Any) -> ScriptedProvider:
    provider = ScriptedProvider(**fields)
    provider.set_responses(steps)
    return provider


async def _handle(provider: ScriptedProvider) -> FrozenDict:
    """Of a request that asks for one."""
    message = (await ask(provider, options=LATER)).message
    assert message is not None
    assert message.stop_reason == "deferred"
    assert (message.content, message.usage) == ((), Usage())
    assert message.deferred is not None
    return message.deferred


async def _fetch(provider: ScriptedProvider, handle: Any, *, wait_ms: int = 0, signal: Signal | None = None) -> list[StreamItem]:
    items: list[StreamItem] = []

    async def emit(item: StreamItem) -> None:
        await trio.lowlevel.checkpoint()
        items.append(item)

    request = ModelRequest(model=provider.models[0], thinking_level="off", messages=())
    await provider.fetch_deferred(request, handle, signal or AskSignal(), emit, wait_ms=wait_ms)
    return items


def _ended(items: list[StreamItem]) -> Ended:
    last = items[-1]
    assert isinstance(last, Ended)
    return last


@pytest.mark.rule("FAUX-9", "STR-40", "STR-41")
async def test_handle_comes_first_then_again_then_the_answer_and_the_same_answer_for_ever() -> None:
    made: list[int] = []

    def answer(request: ModelRequest) -> AssistantMessage:
        made.append(len(request.messages))
        return assistant([tool_call("read", {"path": "a"})], stop_reason="toolUse")

    provider = _provider(answer, pending_fetches=2, poll_after_ms=50)

    handle = await _handle(provider)
    fetched = [await _fetch(provider, handle) for _ in range(4)]

    assert handle == {"provider": "faux", "modelId": "faux-1", "api": "faux", "id": "deferred_1", "pollAfterMs": 50}
    assert fetched[0] == fetched[1] == [Started(), Ended("deferred", usage=Usage(), deferred=handle)]
    assert fetched[2] == fetched[3]
    assert _ended(fetched[2]).stop_reason == "toolUse"
    assert made == [1], "evaluated once, with the messages of the request that got the handle"
    assert (provider.state.call_count, provider.state.deferred_fetch_count, len(provider.requests)) == (1, 4, 1)


async def test_fetched_answer_has_the_usage_of_its_request_and_one_id_for_each_call() -> None:
    provider = _provider(assistant(tool_call("read")))
    handle = await _handle(provider)

    first, second = [await _fetch(provider, handle) for _ in range(2)]

    assert [item.id for item in (*first, *second) if isinstance(item, ToolCallStarted)] == ["call_1", "call_1"]
    assert _ended(first).usage == _ended(second).usage
    assert (_ended(first).usage or Usage()).cache_write > 0


async def test_time_of_the_answer_is_that_of_the_fetch_that_made_it(autojump_clock: MockClock) -> None:
    provider = _provider(assistant("x"), clock=lambda: round(trio.current_time() * 1000))
    handle = await _handle(provider)
    await trio.sleep(5)

    times = []
    for _ in range(2):
        times.append(_ended(await _fetch(provider, handle)).timestamp)
        await trio.sleep(5)

    assert times == [5000, 5000]


async def test_unknown_and_cancelled_handles_are_errors() -> None:
    provider = _provider(assistant("never"))
    handle, foreign = await _handle(provider), {"id": "elsewhere"}

    unknown = await _fetch(provider, foreign)
    await provider.cancel_deferred(provider.models[0], foreign)
    await provider.cancel_deferred(provider.models[0], handle)
    cancelled = await _fetch(provider, handle)

    assert unknown == [Ended("error", "Unknown faux deferred response: elsewhere")]
    assert cancelled == [Ended("error", "Faux deferred response was cancelled: deferred_1")]
    assert provider.state.cancelled_deferred == [foreign, handle]


async def test_wait_looks_again_until_it_is_over(autojump_clock: MockClock) -> None:
    provider = _provider(assistant("x"), pending_fetches=3, poll_after_ms=1000)
    handle = await _handle(provider)

    short = await _fetch(provider, handle, wait_ms=1500)
    long = await _fetch(provider, handle, wait_ms=60_000)

    assert _ended(short).stop_reason == "deferred"
    assert _ended(long).stop_reason == "stop"
    assert trio.current_time() == pytest.approx(2)
    assert provider.state.deferred_fetch_count == 2


async def test_abort_ends_the_wait_and_the_answer_can_be_fetched_all_the_same(autojump_clock: MockClock) -> None:
    provider, signal = _provider(assistant("x"), pending_fetches=1, poll_after_ms=1000), AskSignal()
    handle = await _handle(provider)
    signal.abort()

    aborted = await _fetch(provider, handle, wait_ms=5000, signal=signal)
    again = await _fetch(provider, handle)

    assert _ended(aborted).stop_reason == "aborted"
    assert _ended(again).stop_reason == "stop"


async def test_two_fetches_at_once_evaluate_the_step_once(autojump_clock: MockClock) -> None:
    made: list[int] = []

    async def slowly(_request: ModelRequest) -> AssistantMessage:
        await trio.sleep(1)
        made.append(1)
        return assistant("x")

    provider = _provider(slowly)
    handle = await _handle(provider)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(_fetch, provider, handle)

    assert made == [1]


async def test_step_that_raises_fails_the_fetch_and_is_tried_again_by_the_next() -> None:
    tries: list[int] = []

    def once_broken(_request: ModelRequest) -> AssistantMessage:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("broken")
        return assistant("mended")

    provider = _provider(once_broken)
    handle = await _handle(provider)

    with pytest.raises(ValueError, match="broken"):
        await _fetch(provider, handle)
    assert _ended(await _fetch(provider, handle)).stop_reason == "stop"


async def test_actions_may_be_deferred_too() -> None:
    heard: list[str] = []
    provider = _provider([Call(lambda: heard.append("here")), Started(), Hang()])
    handle = await _handle(provider)
    signal = AskSignal()
    signal.abort()

    aborted = await _fetch(provider, handle, signal=signal)

    assert heard == ["here"]
    assert _ended(aborted).stop_reason == "aborted"


async def test_without_a_step_a_deferred_request_fails_at_once() -> None:
    asked = await ask(_provider(), options=LATER)

    assert asked.message is not None
    assert asked.message.error_message == "No more faux responses queued"
