"""The scripted provider under attack: cancelled and aborted at every step, badly used, and shared."""

from collections.abc import Callable
from typing import Any, Final

import attrs
import pytest
import trio
from trio.testing import MockClock

from camshaft.actors.api import ModelRequest, RequestHooks, RequestOptions, text_of
from camshaft.actors.host import RetrySettings, Seat, Settings
from camshaft.extensions_std.testing import (
    Call,
    Drop,
    Hang,
    Malformed,
    OpenGate,
    ScriptedProvider,
    Sleep,
    Step,
    WaitGate,
    assistant,
    rehearse,
    text,
    text_items,
    tool_call,
)
from camshaft.kernel.events import MessageEnd
from camshaft.kernel.messages import AssistantMessage, UserMessage
from camshaft.kernel.stream import Ended, Started, StreamItem
from tests.extensions_std.providers.asking import AskSignal, ask

STEPS_MAX: Final = 400
"""More steps than any of the requests takes."""
HANGS_S: Final = 1000
"""Who waits longer hangs."""


async def _slow(_request: ModelRequest) -> AssistantMessage:
    await trio.sleep(1)
    return assistant("slow")


async def _live(_request: ModelRequest, _signal: Any, emit: Any) -> None:
    await emit(Started())
    await trio.sleep(1)
    await emit(Ended("stop"))


PLAYED: dict[str, Any] = {
    "message": assistant([text("a text of some pieces, more than two of them, or three"), tool_call("read", {"path": "a"})]),
    "actions": [Started(), *text_items(0, "a", "b"), Sleep(1), OpenGate("g"), WaitGate("g"), Call(trio.lowlevel.checkpoint), Ended("stop")],
    "closed gate": [Started(), *text_items(0, "a"), WaitGate("never")],
    "hang": [Started(), *text_items(0, "a"), Hang()],
    "drop": [Started(), Malformed(1), Drop()],
    "function": _slow,
    "live": _live,
}


@attrs.define(eq=False)
class _At(trio.abc.Instrument):
    """Does something before the n-th step of any task."""

    number: int
    act: Callable[[], None]
    seen: int = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.seen += 1
        if self.seen == self.number:
            self.act()

    @property
    def is_reached(self) -> bool:
        return self.seen >= self.number


def _request(provider: ScriptedProvider, **options: Any) -> ModelRequest:
    async def hook(given: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return given

    async def heard(*_given: Any) -> None:
        await trio.lowlevel.checkpoint()

    hooks = RequestHooks(on_headers=hook, on_payload=hook, on_response=heard, on_stream_event=heard)
    messages = (UserMessage(content="hi", timestamp=1),)
    return ModelRequest(model=provider.models[0], thinking_level="off", messages=messages, options=RequestOptions(**options), hooks=hooks)


@attrs.define(eq=False)
class _Attempt:
    """A request that is cancelled or aborted at one step, and another one after it."""

    provider: ScriptedProvider
    items: list[StreamItem] = attrs.field(factory=list)
    returned: bool = False
    is_reached: bool = False
    after: AssistantMessage | None = None

    async def play(self, number: int, way: str) -> None:
        scope, signal = trio.CancelScope(), AskSignal()
        at = _At(number, scope.cancel if way == "cancel" else signal.abort)

        async def emit(item: StreamItem) -> None:
            await trio.lowlevel.checkpoint()
            self.items.append(item)

        trio.lowlevel.add_instrument(at)
        with trio.move_on_after(HANGS_S), scope:
            await self.provider.stream(_request(self.provider), signal, emit)
            self.returned = True
        trio.lowlevel.remove_instrument(at)
        self.is_reached = at.is_reached
        self.after = (await ask(self.provider)).message


@pytest.mark.slow
@pytest.mark.rule("FAUX-8", "FAUX-24")
@pytest.mark.parametrize("way", ["cancel", "abort"])
@pytest.mark.parametrize("name", list(PLAYED))
def test_at_every_step_a_request_can_end_and_leaves_a_provider_that_works(name: str, way: str) -> None:
    for number in range(1, STEPS_MAX):
        attempt = _Attempt(ScriptedProvider())
        attempt.provider.set_responses([PLAYED[name], assistant("next")])

        trio.run(attempt.play, number, way, clock=MockClock(autojump_threshold=0))

        ends = [index for index, item in enumerate(attempt.items) if isinstance(item, Ended)]
        assert ends in ([], [len(attempt.items) - 1]), "one end, and nothing after it"
        if attempt.returned and name != "drop":
            assert ends, "whoever is not cancelled has an end"
        record = attempt.provider.requests[0]
        assert record.outcome in ("cancelled", "aborted", "stop", "dropped"), record.outcome
        assert attempt.after is not None
        assert text_of(attempt.after.content) == "next"
        if not attempt.is_reached:
            return
    pytest.fail(f"more than {STEPS_MAX} steps")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, 40))
def test_at_every_step_a_fetch_can_be_cancelled_and_the_answer_is_there_afterwards(number: int) -> None:
    provider, made = ScriptedProvider(), list[int]()

    async def slowly(_request: ModelRequest) -> AssistantMessage:
        await trio.sleep(1)
        made.append(1)
        return assistant("fetched", stop_reason="stop")

    provider.set_responses([slowly])
    items: list[StreamItem] = []

    async def emit(item: StreamItem) -> None:
        await trio.lowlevel.checkpoint()
        items.append(item)

    async def play() -> None:
        handle = (await ask(provider, options=RequestOptions(deferred=True))).message
        assert handle is not None
        assert handle.deferred is not None
        scope = trio.CancelScope()
        at = _At(number, scope.cancel)
        trio.lowlevel.add_instrument(at)
        with scope:
            await provider.fetch_deferred(_request(provider), handle.deferred, AskSignal(), emit)
        trio.lowlevel.remove_instrument(at)
        items.clear()
        await provider.fetch_deferred(_request(provider), handle.deferred, AskSignal(), emit)

    trio.run(play, clock=MockClock(autojump_threshold=0))

    assert isinstance(items[-1], Ended)
    assert items[-1].stop_reason == "stop"
    assert made == [1]


def test_gate_that_nobody_opens_fails_the_test_and_can_be_aborted() -> None:
    script: list[Step] = [[Started(), WaitGate("never")]]

    async def scene(seat: Seat) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(seat.prompt, "Hi.")
            await trio.sleep(5)
            await seat.abort()

    with pytest.raises(AssertionError, match="did not end within 604800 s"):
        rehearse(script=script, prompts=["Hi."], jumping=True)
    assert [request.outcome for request in rehearse(script=script, scene=scene, jumping=True).requests] == ["aborted"]


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (lambda request: 1 / 0, "division by zero"),
        (lambda request: "hello", "answered 'hello'; expected assistant('hello')"),
        ([Started(), Call(lambda: [].pop())], "pop from empty list"),
    ],
)
def test_broken_script_fails_the_request_and_not_the_session(step: Any, told: str) -> None:
    no_retry = Settings(retry=RetrySettings(enabled=False))
    model = ScriptedProvider()

    played = rehearse(provider=model, script=[step, assistant("Still here.")], prompts=["Hi.", "And now?"], settings=no_retry)

    answers = [event.message for event in played.events if isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage)]
    assert told in (answers[0].error_message or "")
    assert played.requests[0].outcome == "raised"


def test_wrong_sleeps_and_blocks_are_refused_where_they_are_written() -> None:
    with pytest.raises(TypeError, match=r"Sleep\('1'\); expected seconds"):
        Sleep("1")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(TypeError, match="Sleep\\(-1\\); expected seconds"):
        Sleep(-1)
    with pytest.raises(ValueError, match="stop_reason is 'tool_use'; expected one of stop, length, toolUse"):
        assistant("x", stop_reason="tool_use")
    with pytest.raises(TypeError, match="the content of a message holds None; expected a text, or blocks"):
        assistant([None])  # type: ignore[list-item]  # the mistake
    with pytest.raises(TypeError, match="the content of a message holds 5"):
        assistant(5)  # type: ignore[arg-type]  # the mistake
