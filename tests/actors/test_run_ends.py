"""How runs end that do not end well: crashes of the loop, failed preparations, aborts in odd places, retries."""

import errno
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.actor import Failure, guard
from camshaft.actors.event_stream import EventStream
from camshaft.actors.host import Limits, Seat
from camshaft.actors.simulation.log_files import Fault, MemoryLogFiles, Operation
from camshaft.extensions_std.providers.scripted import ScriptedProvider, assistant
from camshaft.kernel.hook_events import CustomInput
from camshaft.kernel.messages import BashExecutionMessage
from camshaft.kernel.settings import RetrySettings, Settings
from camshaft.kernel.stream import Ended, Started, TextDelta, TextStarted
from tests.actors.running import Running, handling, opened, said, simulate

OK = {"content": [{"type": "text", "text": "ok"}]}


def texts(running: Running) -> list[tuple[str | None, str]]:
    return said(running.seat.context_messages)


# -- crashes of the loop -------------------------------------------------------------------------


@attrs.define(eq=False)
class BrokenProvider:
    """A provider with a fault in a part that is no request."""

    broken: bool = False
    name: str = "faux"
    api: str = "faux"
    own: ScriptedProvider = attrs.field(factory=ScriptedProvider)

    @property
    def models(self) -> Any:
        return self.own.models

    def configured(self) -> bool:
        return True

    @property
    def stream(self) -> Any:
        if self.broken:
            raise RuntimeError("programming error")
        return self.own.stream

    def set_responses(self, steps: Any) -> None:
        self.own.set_responses(steps)


@pytest.mark.rule("LOOP-55")
def test_a_programming_error_in_the_loop_becomes_an_error_message_and_the_run_settles() -> None:
    async def crashed() -> tuple[list[tuple[str | None, str]], list[str], bool]:
        provider = BrokenProvider(broken=True)
        async with opened([assistant("done")], provider=provider) as running:
            await running.seat.prompt("go")
            kinds = running.types()
            provider.broken = False
            await running.seat.prompt("next")
            return texts(running), kinds, running.seat.is_idle
        raise AssertionError

    found, kinds, idle = simulate(crashed)

    assert found == [("user", "go"), ("assistant", "error: programming error"), ("user", "next"), ("assistant", "done")]
    assert kinds[-5:] == ["message_start", "message_end", "turn_end", "agent_end", "agent_settled"]
    assert idle


@attrs.define(eq=False)
class DyingStream:
    """An event stream that kills so many steps of the loop, which asks it between two steps, where nothing is guarded."""

    _own: EventStream
    left: int

    @property
    def is_full(self) -> bool:
        self.left -= 1
        if self.left >= 0:
            raise RuntimeError("impossible state")
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)


@pytest.mark.rule("LOOP-34")
@pytest.mark.parametrize(("times", "settled"), [(1, 1), (2, 0), (3, 0)])
def test_a_loop_that_dies_ends_its_run_with_one_error_and_leaves_the_session_idle(times: int, settled: int) -> None:
    async def crashed() -> tuple[str, int, list[str], bool, list[tuple[str | None, str]]]:
        async with opened([assistant("done")]) as running:
            stream: Any = DyingStream(running.seat._parts.stream, times)
            parts = running.seat._parts
            seat = Seat(attrs.evolve(parts, ground=attrs.evolve(parts.ground, stream=stream)))
            with pytest.raises(RuntimeError) as caught:
                await seat.prompt("go")
            settlings, idle = running.count("agent_settled"), seat.is_idle
            stream.left = 0
            await seat.prompt("next")
            told = [event.message for event in running.heard if event.type == "diagnostic"]
            return str(caught.value), settlings, told, idle, texts(running)
        raise AssertionError

    diagnostic = "the agent loop crashed: RuntimeError('impossible state')"
    assert simulate(crashed) == (
        "impossible state",
        settled,
        [diagnostic] * min(times, 2),
        True,
        [("user", "next"), ("assistant", "done")],
    )


@pytest.mark.rule("LOOP-9")
def test_a_run_that_cannot_be_prepared_was_never_started() -> None:
    async def refused() -> tuple[str, list[str], list[tuple[str | None, str]], list[str]]:
        files, faults = MemoryLogFiles(), [None, refuse_writes]

        def setup(api: Any) -> None:
            def start(_event: Any, _ctx: Any) -> None:
                seats[0].record_bash(BASH)
                seats[0].send_message(CustomInput(custom_type="k", content="quiet"), False, None)
                files.fault = faults.pop()

            api.on("before_agent_start", start)

        seats: list[Any] = []
        async with opened([assistant("done")], setup, files=files) as running:
            seats.append(running.seat)
            refused = await guard(running.seat.prompt, "go")
            assert isinstance(refused, Failure)
            kinds = running.types()
            files.fault = None
            await running.seat.prompt("next")
            return refused.text.partition(":")[0], kinds, texts(running), [m.type for m in running.heard if m.type == "agent_settled"]
        raise AssertionError

    text, kinds, found, settled = simulate(refused)

    assert text.startswith("cannot append")
    assert "agent_start" not in kinds and "agent_settled" not in kinds
    assert [role for role, _ in found].count("user") == 1
    assert settled == ["agent_settled"]


def refuse_writes(operation: Operation) -> Fault | None:
    return Fault(error=OSError(errno.ENOSPC, "disk full")) if operation.kind == "write" else None


BASH = BashExecutionMessage(command="ls", output="", cancelled=False, truncated=False, timestamp=1)


# -- aborts in odd places --------------------------------------------------------------------------


async def hanging(_event: Any, _ctx: Any) -> None:
    await trio.sleep_forever()


@pytest.mark.rule("LOOP-10", "LOOP-71")
def test_an_abort_while_a_run_is_prepared_ends_a_handler_that_hangs_and_asks_no_model() -> None:
    async def aborted() -> tuple[float, list[tuple[str | None, str]], int]:
        async with opened([assistant("never")], handling("before_agent_start", hanging)) as running:
            await running.seat.submit("go")
            await trio.sleep(1)
            await running.seat.abort()
            return trio.current_time(), texts(running), running.provider.state.call_count
        raise AssertionError

    assert simulate(aborted) == (11, [("user", "go"), ("assistant", "aborted: Request was aborted")], 0)


def test_a_provider_that_was_given_up_can_show_nothing_any_more() -> None:
    async def stubborn(_request: Any, _signal: Any, emit: Any) -> None:
        with trio.CancelScope(shield=True):
            for item in [Started(), TextStarted(0), TextDelta(0, "early")]:
                await emit(item)
            await trio.sleep(100)
            await emit(TextDelta(0, "late"))

    async def given_up() -> tuple[list[tuple[str | None, str]], str, tuple[str, ...], tuple[str, ...]]:
        async with opened([stubborn], limits=Limits(abort_grace_s=1)) as running:
            await running.seat.submit("go")
            await trio.sleep(1)
            await running.seat.abort()
            before = running.kernel.abandoned
            await trio.sleep(200)
            return texts(running), running.types()[-1], before, running.kernel.abandoned
        raise AssertionError

    found, last, before, after = simulate(given_up)

    assert found == [("user", "go"), ("assistant", "aborted: Request was aborted")]
    assert (last, before, after) == ("agent_settled", ("request to faux/faux-1",), ())


# -- retries ---------------------------------------------------------------------------------------


RETRYING = Settings(retry=RetrySettings(max_retries=2, base_delay_ms=1000), default_thinking_level="off")
OVERLOADED = [Ended("error", "529 overloaded_error")]


@pytest.mark.rule("LOOP-66", "RTY-2", "RTY-3")
@pytest.mark.parametrize(
    ("act", "expected"),
    [
        ("nothing", ([(True, None)], False, "stop")),
        ("cancel", ([(False, "Retry cancelled")], False, "error")),
        ("abort", ([(False, "Retry cancelled")], True, "error")),
    ],
)
def test_a_retry_wait_ends_by_itself_by_its_cancel_or_by_an_abort(act: str, expected: Any) -> None:
    async def retried() -> Any:
        async with opened([OVERLOADED, assistant("done")], settings=RETRYING) as running:
            running.seat.cancel_retry()
            await running.seat.submit("go")
            running.seat.cancel_retry()
            await trio.sleep(0.5)
            {"nothing": lambda: None, "cancel": running.seat.cancel_retry, "abort": running.seat.request_abort}[act]()
            await running.seat.wait_idle()
            ends = [(event.success, event.final_error) for event in running.heard if event.type == "auto_retry_end"]
            answers = [event.message.stop_reason for event in running.heard if event.type == "turn_end"]
            return ends, running.heard[-1].aborted, answers[-1]
        raise AssertionError

    assert simulate(retried) == expected, "a cancel while no retry is announced is nothing"


def test_a_retry_can_be_cancelled_from_a_listener_of_its_announcement() -> None:
    async def cancelled() -> tuple[list[str], float]:
        async with opened([OVERLOADED, assistant("never")], settings=RETRYING) as running:
            running.seat.subscribe(lambda event: running.seat.cancel_retry() if event.type == "auto_retry_start" else None)
            await running.seat.prompt("go")
            return [event.final_error for event in running.heard if event.type == "auto_retry_end"], trio.current_time()
        raise AssertionError

    assert simulate(cancelled) == (["Retry cancelled"], 0)
