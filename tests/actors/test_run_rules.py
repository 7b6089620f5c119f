"""Who may wait for whom, what a busy conversation takes, what becomes of messages sent at odd times, and crashes of the loop."""

import errno
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.actor import Failure, SelfWait, guard
from camshaft.actors.errors import StorageError
from camshaft.actors.event_stream import EventStream
from camshaft.actors.host import BUSY_TEXT, Limits, OpenSession, PromptRefused, Seat, SeatClosed, open_kernel
from camshaft.actors.simulation.log_files import Fault, MemoryLogFiles, Operation
from camshaft.extensions_std.providers.scripted import Hang, ScriptedProvider, assistant, tool_call
from camshaft.kernel.hook_events import CustomInput
from camshaft.kernel.messages import BashExecutionMessage
from camshaft.kernel.settings import RetrySettings, Settings
from camshaft.kernel.stream import Ended, Started, TextDelta, TextStarted
from tests.actors.running import NO_RETRY, Running, handling, opened, options, said, simulate, tool, virtual_world

OK = {"content": [{"type": "text", "text": "ok"}]}


def texts(running: Running) -> list[tuple[str | None, str]]:
    return said(running.seat.context_messages)


# -- waiting for oneself -----------------------------------------------------------------


@attrs.define
class Waits:
    """What each way of waiting for the run said, from inside it."""

    seat: Any = None
    first: Any = None
    said: dict[str, str] = attrs.field(factory=dict)

    async def at(self, here: str, place: str) -> None:
        """Tries them, if this is the place."""
        if here == place:
            await self.try_all()

    async def try_all(self) -> None:
        ways = {"wait_idle": self.seat.wait_idle, "abort": self.seat.abort, "prompt": self.first.wait, "close": self.seat.close}
        for name, way in ways.items():
            try:
                await way()
                self.said[name] = "returned"
            except SelfWait as refused:
                self.said[name] = str(refused).partition(",")[0]


@pytest.mark.rule("A31")
@pytest.mark.parametrize("place", ["handler", "tool", "nested task"])
def test_waiting_for_the_run_from_inside_it_is_refused_and_nothing_is_closed(place: str) -> None:
    async def waited() -> tuple[dict[str, str], bool]:
        waits = Waits()

        async def work(*_: Any) -> Any:
            await waits.at("tool", place)
            return OK

        async def handler(_event: Any, _ctx: Any) -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(waits.at, "nested task", place)
            await waits.at("handler", place)

        script = [assistant(tool_call("work")), assistant("done")]
        async with opened(script, handling("tool_call", handler), tools=[tool(work)]) as running:
            waits.seat = running.seat
            waits.first = await running.seat.submit("go")
            await waits.first.wait()
            await running.seat.prompt("next")
            return waits.said, running.count("agent_settled") == 2
        raise AssertionError

    found, settled_twice = simulate(waited)

    run = found["abort"].partition(" waits for ")[2]
    assert run.startswith("run token-")
    assert found == {
        "wait_idle": f"wait_idle() waits for {run}",
        "abort": f"abort() waits for {run}",
        "prompt": f"waiting for a prompt waits for {run}",
        "close": f"close() waits for {run}",
    }
    assert settled_twice, "the conversation goes on"


def test_a_command_may_wait_for_the_run_and_an_extension_may_wait_after_it_settled() -> None:
    async def waited() -> list[str]:
        seen: list[str] = []

        def setup(api: Any) -> None:
            async def wait(_arguments: str, ctx: Any) -> None:
                await ctx.wait_for_idle()
                seen.append(f"command at {trio.current_time():.0f}")

            async def settled(_event: Any, ctx: Any) -> None:
                await api_seat[0].wait_idle()
                seen.append(f"settled, idle {ctx.is_idle()}, signal {ctx.signal}")

            api.register_command("wait", wait)
            api.on("agent_settled", settled)

        async def work(*_: Any) -> Any:
            await trio.sleep(5)
            return OK

        api_seat: list[Any] = []
        async with opened([assistant(tool_call("work")), assistant("done")], setup, tools=[tool(work)]) as running:
            api_seat.append(running.seat)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(running.seat.prompt, "go")
                await trio.sleep(1)
                await running.seat.prompt("/wait")
        return seen

    assert simulate(waited) == ["settled, idle True, signal None", "command at 5"]


# -- what a busy conversation takes ----------------------------------------------------------


def test_a_prompt_while_busy_needs_a_way_and_is_delivered_once() -> None:
    async def busy() -> tuple[list[str], list[tuple[str | None, str]]]:
        seen: list[str] = []

        async def work(*_: Any) -> Any:
            await trio.sleep(5)
            return OK

        async with opened([assistant(tool_call("work")), assistant("done"), assistant("after")], tools=[tool(work)]) as running:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(running.seat.prompt, "go")
                await trio.sleep(1)
                with pytest.raises(PromptRefused) as caught:
                    await running.seat.prompt("now")
                seen.append(str(caught.value))
                steered = await running.seat.prompt("soon", streaming_behavior="steer")
                followed = await running.seat.prompt("later", streaming_behavior="followUp")
                seen += [steered.disposition, followed.disposition, str(running.seat.queue.steering), str(running.seat.queue.follow_up)]
            return seen, texts(running)
        raise AssertionError

    seen, found = simulate(busy)

    assert seen == [BUSY_TEXT, "queued", "queued", "('soon',)", "('later',)"]
    assert [text for role, text in found if role == "user"] == ["go", "soon", "later"]
    assert [text for role, text in found if role == "assistant"] == ["", "done", "after"]


@pytest.mark.rule("SDK-8", "SDK-23")
def test_cancelling_a_prompt_ends_the_wait_and_not_the_run() -> None:
    async def cancelled() -> tuple[bool, list[tuple[str | None, str]]]:
        async def work(*_: Any) -> Any:
            await trio.sleep(5)
            return OK

        async with opened([assistant(tool_call("work")), assistant("done")], tools=[tool(work)]) as running:
            with trio.move_on_after(1) as scope:
                await running.seat.prompt("go")
            await running.seat.wait_idle()
            return scope.cancelled_caught, texts(running)
        raise AssertionError

    assert simulate(cancelled) == (True, [("user", "go"), ("assistant", ""), ("toolResult", "ok"), ("assistant", "done")])


# -- messages sent at odd times ----------------------------------------------------------------


@pytest.mark.rule("LOOP-42")
def test_what_is_sent_from_agent_settled_runs_afterwards_one_after_the_other() -> None:
    async def deferred() -> tuple[list[str], list[tuple[str | None, str]], list[str]]:
        left = ["one", "two"]
        receipts: list[str] = []

        def setup(api: Any) -> None:
            async def settled(_event: Any, _ctx: Any) -> None:
                while left:
                    api.send_user_message(left.pop(0))
                if not receipts:
                    receipts.append((await seats[0].submit("from the host")).disposition)
                    api.send_message({"custom_type": "k", "content": "custom"}, trigger_turn=True)

            api.on("agent_settled", settled)

        seats: list[Any] = []
        async with opened([assistant(f"answer {number}") for number in range(6)], setup) as running:
            seats.append(running.seat)
            await running.seat.prompt("go")
            kinds = [each for each in running.types() if each in ("agent_start", "agent_settled")]
            return kinds, texts(running), receipts
        raise AssertionError

    kinds, found, receipts = simulate(deferred)

    assert kinds == ["agent_start", "agent_settled"] * 5
    assert [text for role, text in found if role in ("user", "custom")] == ["go", "one", "two", "from the host", "custom"]
    assert receipts == ["deferred"]


@pytest.mark.rule("EVT-51")
def test_what_is_sent_from_agent_before_settle_is_in_the_same_run() -> None:
    async def sent() -> tuple[list[str], list[tuple[str | None, str]]]:
        left = ["one"]

        def setup(api: Any) -> None:
            def before_settle(_event: Any, _ctx: Any) -> None:
                if left:
                    api.send_user_message(left.pop(), deliver_as="followUp")

            api.on("agent_before_settle", before_settle)

        async with opened([assistant("done"), assistant("more")], setup) as running:
            await running.seat.prompt("go")
            return [each for each in running.types() if each in ("agent_start", "agent_settled")], texts(running)
        raise AssertionError

    kinds, found = simulate(sent)

    assert kinds == ["agent_start", "agent_start", "agent_settled"]
    assert found == [("user", "go"), ("assistant", "done"), ("user", "one"), ("assistant", "more")]


def test_an_extension_that_always_triggers_another_run_ends_with_the_conversation() -> None:
    async def closed() -> tuple[float, int]:
        def setup(api: Any) -> None:
            def settled(_event: Any, _ctx: Any) -> None:
                api.send_message({"custom_type": "again", "content": "again"}, trigger_turn=True)

            api.on("agent_settled", settled)

        async def slowly(_request: Any) -> Any:
            await trio.sleep(1)
            return assistant("done")

        async with opened([slowly] * 100, setup) as running:
            await running.seat.submit("go")
            await trio.sleep(5.5)
            started = trio.current_time()
        return trio.current_time() - started, running.count("agent_settled")

    took_s, settled = simulate(closed)

    assert took_s < 1.5 and settled <= 7


@pytest.mark.rule("A16")
@pytest.mark.parametrize("refused", range(1, 9))
def test_a_message_whose_delivery_the_log_refused_is_delivered_by_the_next_run(refused: int) -> None:
    """Two steering messages are taken together; from their polling on one write of the log is refused."""

    async def broken() -> tuple[list[str], bool]:
        files = MemoryLogFiles()

        async def work(*_: Any) -> Any:
            await running.seat.steer("one")
            await running.seat.steer("two")
            written = 0

            def fault(operation: Operation) -> Fault | None:
                nonlocal written
                written += operation.kind == "write"
                return Fault(error=OSError(errno.ENOSPC, "disk full")) if operation.kind == "write" and written == refused else None

            files.fault = fault
            return OK

        settings = attrs.evolve(NO_RETRY, steering_mode="all")
        script = [assistant(tool_call("work")), *[assistant("more")] * 5]
        async with opened(script, files=files, tools=[tool(work)], settings=settings) as running:
            await guard(running.seat.prompt, "go")
            files.fault = None
            await running.seat.prompt("next")
            return [text for role, text in texts(running) if role == "user"], running.seat.state.has_pending_messages
        raise AssertionError

    found, waiting = simulate(broken)

    assert (sorted(found), waiting) == (["go", "next", "one", "two"], False)


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
            seat = Seat(attrs.evolve(running.seat._parts, stream=stream))
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


# -- several conversations -----------------------------------------------------------------------


def test_two_conversations_of_one_kernel_know_nothing_of_each_other() -> None:
    async def both() -> tuple[list[tuple[str | None, str]], list[tuple[str | None, str]], list[int]]:
        one, two = ScriptedProvider(), ScriptedProvider()
        one.set_responses([[Hang()]])
        two.set_responses([assistant("done")])
        heard: list[int] = []
        async with open_kernel(world=virtual_world()) as kernel:
            first, second = await kernel.open(options(one)), await kernel.open(options(two))
            first.subscribe(lambda _event: heard.append(1))
            second.subscribe(lambda _event: heard.append(2))
            await first.submit("go")
            await second.prompt("go")
            await first.abort()
            await first.close()
            with pytest.raises(SeatClosed):
                await first.prompt("more")
            two.set_responses([assistant("again")])
            await second.prompt("more")
            return said(first.context_messages), said(second.context_messages), sorted(set(heard))
        raise AssertionError

    assert simulate(both) == (
        [("user", "go"), ("assistant", "aborted: Request was aborted")],
        [("user", "go"), ("assistant", "done"), ("user", "more"), ("assistant", "again")],
        [1, 2],
    )


@pytest.mark.slow
def test_a_thousand_idle_conversations_have_no_task_of_their_own() -> None:
    async def idle() -> tuple[int, float]:
        provider = ScriptedProvider()
        async with open_kernel(world=virtual_world()) as kernel:
            before = trio.lowlevel.current_statistics().tasks_living
            for _ in range(1000):
                await kernel.open(options(provider))
            after = trio.lowlevel.current_statistics().tasks_living
            started = trio.current_time()
        return after - before, trio.current_time() - started

    assert simulate(idle) == (0, 0)


def test_what_the_block_raises_comes_out_as_it_is() -> None:
    async def raising(error: BaseException) -> None:
        async with opened([]):
            raise error

    for error in (ValueError("bad"), ExceptionGroup("own", [ValueError("bad")]), KeyboardInterrupt()):
        with pytest.raises(type(error)) as caught:
            simulate(raising, error)
        assert repr(caught.value) == repr(error)


def broken_sync_of_b(operation: Operation) -> Fault | None:
    is_hit = operation.kind == "sync" and operation.path.startswith("/s/b")
    return Fault(error=OSError(errno.EIO, "broken")) if is_hit else None


def test_a_log_that_cannot_be_closed_leaves_no_other_open() -> None:
    async def closed(files: MemoryLogFiles) -> None:
        provider = ScriptedProvider()
        async with open_kernel(world=virtual_world(files)) as kernel:
            seats = [await kernel.open(options(provider, session=OpenSession(path=f"/s/{name}.jsonl"))) for name in "abc"]
            provider.set_responses([assistant("done")] * 3)
            for seat in seats:
                await seat.prompt("go")
            for seat in seats:
                seat.set_session_name("not synced yet")
            files.fault = broken_sync_of_b

    files = MemoryLogFiles()

    with pytest.raises(StorageError, match=r"/s/b\.jsonl"):
        simulate(closed, files)

    assert (files.open_handles, files.held_locks) == (0, ())
