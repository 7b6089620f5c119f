"""Something happens at any step of a timer, a decision or a replay; and extensions that mean no good.

Whatever the moment: a prompt is answered at once, a close leaves no task, and what is stored are replays that ended in time.
"""

from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.host import Kernel, Limits, OpenOptions
from camshaft.actors.providers import ModelRequest
from camshaft.extensions_std.providers.scripted import assistant, tool_call
from camshaft.kernel.stream import Ended, Started
from tests.actors.running import NO_RETRY, Running, handling, options, said, simulate, tool
from tests.actors.warming import LARGE, MODEL, REPLAY, answer, reason, replays, stored, tasks, warmed

STEPS = range(1, 60)
"""More than a refresh has, from the timer to the entry."""


@attrs.define(eq=False)
class _At(trio.abc.Instrument):
    """Sets an event when so many steps of tasks were made."""

    step: int
    due: trio.Event = attrs.field(factory=trio.Event)

    def before_task_step(self, _task: Any) -> None:
        self.step -= 1
        if self.step == 0:
            self.due.set()


async def decides(*_: Any) -> dict[str, str]:
    await trio.sleep(0.1)
    return {"action": "warm"}


async def replays_slowly(_request: Any) -> Any:
    await trio.sleep(0.1)
    return REPLAY


async def prompts(running: Running) -> None:
    begun = trio.current_time()
    await running.seat.prompt("again")
    assert trio.current_time() == begun
    assert said(running.seat.context_messages)[-1] == ("assistant", "two")


async def aborts(running: Running) -> None:
    begun = trio.current_time()
    await running.seat.submit("again")
    await running.seat.abort()
    assert trio.current_time() == begun


ACTS: dict[str, Callable[[Running], Any]] = {
    "prompt": prompts,
    "abort": aborts,
    "close": lambda running: running.seat.close(),
    "new": lambda running: running.seat.new_session(),
    "reload": lambda running: running.seat.reload(),
    "model": lambda running: running.seat.set_model("faux/other"),
}
ENDS = {"close", "new", "reload"}


async def acted(name: str, step: int) -> tuple[int, int, bool]:
    """How many replays were begun before it and stored after all, and whether it came in the middle of a refresh."""
    async with warmed([answer()], handling("cache_warming_decision", decides)) as running:
        own = tasks()
        await running.seat.prompt("go")

        def reply(request: Any) -> Any:
            return replays_slowly(request) if request.options.max_tokens == 1 else answer("two")

        running.provider.set_responses([reply] * 9)
        await trio.sleep(269.99)
        instrument = _At(step)
        trio.lowlevel.add_instrument(instrument)
        await instrument.due.wait()
        trio.lowlevel.remove_instrument(instrument)
        amid, begun, before = running.seat.cache_warming.state == "refreshing", len(replays(running)), len(stored(running))
        await ACTS[name](running)
        after = len(stored(running)) if name not in ENDS else before
        if name in ENDS:
            await trio.testing.wait_all_tasks_blocked()
            assert tasks() == own
        await trio.sleep(0.5)
        assert running.errors() == []
        assert [event for event in running.heard if event.type == "diagnostic"] == []
        if name in ("close", "new", "reload", "model"):
            made = len(replays(running))
            await trio.sleep(1000)
            assert (len(replays(running)), reason(running) is not None) == (made, True)
        assert all(entry.note is None for entry in stored(running))
        return begun, after, amid
    raise AssertionError


@pytest.mark.slow
@pytest.mark.rule("CACHE-3", "CACHE-10", "CACHE-12")
@pytest.mark.parametrize("name", ACTS)
def test_what_happens_at_any_step_of_a_refresh_does_not_wait_for_it(name: str) -> None:
    found = [simulate(acted, name, step) for step in STEPS]

    assert {amid for _, _, amid in found} == {True, False}, "the steps reach into the refresh, and beyond it"
    assert {begun for begun, _, _ in found} >= {0, 1}, "before the replay, and during it"
    assert all(after <= begun for begun, after, _ in found)


@pytest.mark.rule("CACHE-3")
def test_a_request_at_the_moment_when_a_refresh_is_due_takes_its_place() -> None:
    async def whole() -> tuple[int, float]:
        async with warmed([answer()]) as running:
            await running.seat.prompt("go")
            request = requested(running)
            await trio.sleep(270)
            running.seat.cell.flights.warming.requested(request)
            await trio.sleep(100)
            assert stored(running) == []
            await trio.sleep(200)
            return len(stored(running)), replays(running)[-1]
        raise AssertionError

    assert {simulate(whole) for _ in range(20)} == {(1, 540)}, "whichever of both tasks Trio runs first"


def test_a_request_after_the_end_is_not_kept_warm() -> None:
    async def whole() -> Any:
        async with warmed([answer()]) as running:
            await running.seat.prompt("go")
            await running.seat.close()
            running.seat.cell.flights.warming.requested(requested(running))
            await trio.sleep(1000)
            return reason(running), replays(running)
        raise AssertionError

    assert simulate(whole) == ("inactive", [])


def requested(running: Running) -> ModelRequest:
    """A request as the loop makes it."""
    made = running.provider.requests[0]
    return ModelRequest(model=made.model, thinking_level=made.thinking_level, messages=made.messages, options=made.options)


def test_a_handler_is_no_part_of_the_run_that_is_kept_warm() -> None:
    async def whole() -> Any:
        seats: list[Any] = []

        async def aborting(*_: Any) -> None:
            await seats[0].abort()

        async def work(*_: Any) -> str:
            await trio.sleep(1000)
            return "done"

        calls = assistant([tool_call("work", id="c1")], usage=LARGE, stop_reason="toolUse")
        script, limits = [calls], Limits(abort_grace_s=1)
        async with warmed(script, handling("cache_warming_decision", aborting), tools=(tool(work),), limits=limits) as running:
            seats.append(running.seat)
            await running.seat.prompt("go")
            return trio.current_time(), running.errors()
        raise AssertionError

    assert simulate(whole) == (271, [])


# -- extensions that mean no good --------------------------------------------------------


class Odd(BaseException):
    """What no library should raise."""


def hostile(what: str) -> Callable[[Any], None]:
    async def handler(_event: Any, ctx: Any) -> Any:
        match what:
            case "an odd exception":
                raise Odd("odd")
            case "an exit":
                raise SystemExit(3)
            case "junk":
                return {"action": "burn"}
            case "a wait for idleness":
                await ctx.wait_idle()
            case "a flood":
                ctx.session.get_entries()
                return [{"action": "warm"}] * 1000
            case "a foreign cancellation":
                with trio.CancelScope() as scope:
                    scope.cancel()
                    await trio.sleep(1)
                raise KeyError("x")
        return None

    return handling("cache_warming_decision", handler)


@pytest.mark.rule("CACHE-8", "ERR-5")
@pytest.mark.parametrize("what", ["an odd exception", "an exit", "junk", "a wait for idleness", "a flood", "a foreign cancellation"])
def test_a_handler_that_misbehaves_changes_nothing_but_is_reported(what: str) -> None:
    async def whole() -> Any:
        async with warmed([answer()], hostile(what)) as running:
            await running.seat.prompt("go")
            await trio.sleep(300)
            return replays(running), len(stored(running)), len(running.errors())
        raise AssertionError

    assert simulate(whole) == ([270], 1, 1)


@pytest.mark.parametrize("what", ["close", "new", "reload", "prompt", "model"])
def test_a_handler_may_do_what_ends_the_warming_it_is_asked_about(what: str) -> None:
    async def whole() -> Any:
        seats, ended = list[Any](), list[float]()

        async def handler(*_: Any) -> None:
            seat = seats[0]
            if what == "prompt":
                await seat.prompt("from the handler")
            elif what == "model":
                await seat.set_model("faux/other")
            elif what == "close":
                await seat.close()
            elif what == "new":
                await seat.new_session()
            else:
                await seat.reload()
            ended.append(trio.current_time())

        async with warmed([answer(), answer("two")], handling("cache_warming_decision", handler)) as running:
            own = tasks()
            seats.append(running.seat)
            await running.seat.prompt("go")
            await trio.sleep(290)
            assert stored(running) == []
            assert ended == ([270] if what in ("close", "model") else [])  # the others end the refresh, and its handlers with it
            if what == "close":
                assert (running.seat.is_closed, tasks()) == (True, own)
            elif what != "model":
                running.provider.set_responses([answer("still here")])
                await running.seat.prompt("next")
                assert said(running.seat.context_messages)[-1] == ("assistant", "still here")
        return trio.current_time()

    assert simulate(whole) < 300


def test_a_hook_of_the_replay_that_hangs_ends_with_the_cache_entry() -> None:
    async def whole() -> Any:
        async def hangs(*_: Any) -> None:
            if seen:
                await trio.sleep_forever()
            seen.append(1)

        seen: list[int] = []
        async with warmed([answer(), answer("two")], handling("after_provider_response", hangs)) as running:
            await running.seat.prompt("go")
            await trio.sleep(600)
            assert reason(running) == "cache refresh deadline missed"
            seen.clear()
            running.provider.set_responses([answer("two")])
            await running.seat.prompt("again")
            return said(running.seat.context_messages)[-1]
        raise AssertionError

    assert simulate(whole) == ("assistant", "two")


def test_a_replay_that_is_given_up_says_nothing_any_more() -> None:
    async def late(_request: Any, signal: Any, emit: Any) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(50)
            cancelled.append(signal.cancelled)
            for item in items:
                await emit(item)

    items, cancelled = [Started(), Ended(stop_reason="stop")], list[bool]()

    async def whole() -> Any:
        async with warmed([answer(), late, answer("two")]) as running:
            await running.seat.prompt("go")
            await trio.sleep(271)
            await running.seat.prompt("again")
            await trio.sleep(100)
            return stored(running), running.errors(), running.count("message_start"), cancelled
        raise AssertionError

    assert simulate(whole) == ([], [], 5, [True])


# -- many sessions -----------------------------------------------------------------------


@pytest.mark.rule("CACHE-12")
def test_sessions_that_are_not_warmed_cost_no_task() -> None:
    async def whole() -> list[int]:
        counts = []
        async with warmed([], mode="off") as running:
            for number in range(50):
                seat = await another(running.kernel, running)
                running.provider.set_responses([answer(str(number))])
                await seat.prompt("go")
                await trio.testing.wait_all_tasks_blocked()
                counts.append(tasks())
        return counts

    counts = simulate(whole)
    assert len(set(counts)) == 1


async def another(kernel: Kernel, running: Running) -> Any:
    given: OpenOptions = options(running.provider, model=MODEL.reference, settings=attrs.evolve(NO_RETRY, cache_warming="off"))
    return await kernel.open(given)
