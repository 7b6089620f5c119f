"""Who may wait for whom, what a busy conversation takes, and what becomes of messages sent at odd times."""

import errno
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.actor import SelfWait, guard
from camshaft.actors.host import BUSY_TEXT, PromptRefused
from camshaft.actors.simulation.log_files import Fault, MemoryLogFiles, Operation
from camshaft.extensions_std.providers.scripted import assistant, tool_call
from tests.actors.running import NO_RETRY, Running, handling, opened, said, simulate, tool

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
