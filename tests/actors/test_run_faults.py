"""Runs that meet every kind of bad tool, are aborted or cancelled at every moment.

Whatever happened, three things hold afterwards: exactly one `agent_settled`, a result for every call, and the next
prompt is answered. The tests walk one small run (an answer with two calls, their batch, a second answer) and try each
fault at each of its moments; how many moments there are is found by running it once undisturbed.
"""

from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.actor import KILL_AFTER_S
from camshaft.actors.host import Limits
from camshaft.actors.signal import ABORT_GRACE_S
from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.extensions_std.providers.scripted import assistant, tool_call
from camshaft.kernel.boundary import BoundaryResult
from tests.actors.running import Running, handling, opened, results, said, simulate, tool, unanswered
from tests.actors.small_run import OK, SCRIPT, next_prompt_is_answered, reopened, stored, works

# -- tools -------------------------------------------------------------------------------


async def raises(*_: Any) -> Any:
    raise ValueError("broken")


async def raises_two(*_: Any) -> Any:
    raise ExceptionGroup("both", [ValueError("one"), KeyError("two")])


async def gives_nothing(*_: Any) -> None:
    return None


async def gives_a_text(*_: Any) -> Any:
    return "ok"


async def gives_a_wrong_field(*_: Any) -> Any:
    return {"contents": []}


def is_not_async(*_: Any) -> Any:
    return OK


async def hangs(*_: Any) -> Any:
    await trio.sleep_forever()


async def shields(*_: Any) -> Any:
    with trio.CancelScope(shield=True):
        await trio.sleep(10_000)
    return OK


async def stops_when_asked(_id: str, _params: Any, signal: Any, *_: Any) -> Any:
    await signal.wait()
    return {"content": [{"type": "text", "text": "stopped"}], "is_error": True}


async def called(execute: Callable[..., Any]) -> tuple[list[tuple[str, str, bool]], bool]:
    script = [assistant(tool_call("work", id="a")), assistant("done"), assistant("again")]
    async with opened(script, tools=[tool(execute)]) as running:
        await running.seat.prompt("go")
        return results(stored(running)), await next_prompt_is_answered(running)
    raise AssertionError


@pytest.mark.rule("TOOL-25", "TOOL-27")
@pytest.mark.parametrize(
    ("execute", "text", "is_error"),
    [
        (works, "ok", False),
        (is_not_async, "ok", False),
        (raises, "broken", True),
        (raises_two, "both (2 sub-exceptions)", True),
        (gives_nothing, "Tool work returned no result; expected a result object with content", True),
        (gives_a_text, "Tool work returned no valid result object: ", True),
        (gives_a_wrong_field, "Tool work returned no valid result object: ", True),
    ],
)
def test_a_tool_that_misbehaves_gives_one_result_and_the_run_goes_on(execute: Any, text: str, is_error: bool) -> None:
    found, answered = simulate(called, execute)

    assert [(call_id, shown[: len(text)], error) for call_id, shown, error in found] == [("a", text, is_error)]
    assert answered


@pytest.mark.rule("TOOL-26")
@pytest.mark.parametrize("slow_handler", [False, True])
def test_a_flood_of_updates_ends_with_one_result(slow_handler: bool) -> None:
    async def floods(_id: str, _params: Any, _signal: Any, on_update: Any, _ctx: Any) -> Any:
        for number in range(10_000):
            on_update({"details": number})
        return OK

    async def slow(_event: Any, _ctx: Any) -> None:
        await trio.sleep(1)

    async def flooded() -> tuple[list[int], list[tuple[str, str, bool]]]:
        setups = [handling("tool_execution_update", slow)] if slow_handler else []
        async with opened([assistant(tool_call("work", id="a")), assistant("done")], *setups, tools=[tool(floods)]) as running:
            await running.seat.prompt("go")
            heard = [event.partial_result.details for event in running.heard if event.type == "tool_execution_update"]
            return heard, results(stored(running))
        raise AssertionError

    heard, found = simulate(flooded)

    assert heard == sorted(heard), "in order"
    assert (len(heard), heard[-1]) == ((16 if slow_handler else 10_000), 9_999), "slow handlers see the newest"
    assert found == [("a", "ok", False)]


@attrs.frozen
class Aborted:
    """What an abort two seconds into the batch leaves."""

    results: list[tuple[str, str, bool]]
    settled_s: float
    abandoned: tuple[str, ...]
    answered: bool


async def aborted_in(execute: Any, grace_s: float) -> Aborted:
    script = [assistant([tool_call("work", id="a")]), assistant("again")]
    async with opened(script, tools=[tool(execute)], limits=Limits(abort_grace_s=grace_s)) as running:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(running.seat.prompt, "go")
            await trio.sleep(2)
            await running.seat.abort()
        settled_s, abandoned = trio.current_time() - 2, running.kernel.abandoned
        assert running.count("agent_settled") == 1
        return Aborted(results(stored(running)), settled_s, abandoned, await next_prompt_is_answered(running))
    raise AssertionError


UNKNOWN = "The tool was interrupted and did not end; whether it had an effect is unknown"


@pytest.mark.rule("LOOP-61", "LOOP-71")
@pytest.mark.parametrize(
    ("execute", "expected"),
    [
        (stops_when_asked, Aborted([("a", "stopped", True)], 0, (), True)),
        (hangs, Aborted([("a", "Operation aborted", True)], ABORT_GRACE_S, (), True)),
        (shields, Aborted([("a", UNKNOWN, True)], ABORT_GRACE_S + KILL_AFTER_S, ("tool work (a)",), True)),
    ],
)
def test_an_abort_asks_then_cuts_then_gives_up(execute: Any, expected: Aborted) -> None:
    assert simulate(aborted_in, execute, ABORT_GRACE_S) == expected


@pytest.mark.rule("A13")
def test_one_bad_call_touches_none_of_its_siblings() -> None:
    async def each(call_id: str, *_: Any) -> Any:
        if call_id == "c7":
            raise ValueError("broken")
        with trio.CancelScope() as scope:
            if call_id == "c3":
                scope.cancel()
            await trio.sleep(1)
        if scope.cancelled_caught:
            raise RuntimeError("ended by itself")
        return OK

    async def batch() -> list[tuple[str, str, bool]]:
        calls = [tool_call("work", id=f"c{number}") for number in range(20)]
        async with opened([assistant(calls), assistant("done")], tools=[tool(each)]) as running:
            await running.seat.prompt("go")
            return results(stored(running))
        raise AssertionError

    wrong = {"c7": ("c7", "broken", True), "c3": ("c3", "ended by itself", True)}
    assert simulate(batch) == [wrong.get(f"c{number}", (f"c{number}", "ok", False)) for number in range(20)]


@pytest.mark.rule("A09", "LOOP-62", "TOOL-39")
def test_an_abort_in_a_sequential_batch_gives_three_kinds_of_results() -> None:
    async def each(call_id: str, params: Any, signal: Any, *rest: Any) -> Any:
        return await (stops_when_asked if call_id == "b" else works)(call_id, params, signal, *rest)

    async def batch() -> tuple[list[tuple[str, str, bool]], list[bool]]:
        calls = [tool_call("work", id=name) for name in "abcd"]
        async with opened([assistant(calls)], tools=[tool(each, execution_mode="sequential")]) as running:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(running.seat.prompt, "go")
                await trio.sleep(5)
                await running.seat.abort()
            timed = [event.duration_ms is not None for event in running.heard if event.type == "tool_execution_end"]
            return results(stored(running)), timed
        raise AssertionError

    expected = [("a", "ok", False), ("b", "stopped", True), ("c", "Operation aborted", True), ("d", "Operation aborted", True)]
    assert simulate(batch) == (expected, [True, True, False, False])


# -- aborts and cancels at every moment ------------------------------------------------------


async def disturbed(at: int, disturb: Callable[[Running], None], *setups: Any, files: MemoryLogFiles | None = None) -> Running:
    """The run, disturbed when its event number `at` is told; then one more prompt."""
    async with opened(SCRIPT, *setups, files=files, tools=[tool(works)]) as running:

        def listen(_event: Any) -> None:
            if len(running.heard) == at:
                disturb(running)

        unsubscribe = running.seat.subscribe(listen)
        await running.seat.prompt("go")
        unsubscribe()
        assert running.count("agent_settled") == 1
        assert unanswered(stored(running)) == []
        assert await next_prompt_is_answered(running)
        return running
    raise AssertionError


def undisturbed_events() -> int:
    running: Running = simulate(disturbed, 0, lambda _running: None)
    return running.types().index("agent_settled") + 1


EVENTS = range(1, 33)


def test_every_event_of_the_run_is_a_moment_of_these_tests() -> None:
    assert undisturbed_events() == EVENTS[-1]


@pytest.mark.rule("LOOP-60", "LOOP-61", "LOOP-62", "LOOP-63", "LOOP-65")
@pytest.mark.parametrize("at", EVENTS)
def test_an_abort_at_any_event_settles_once_and_answers_every_call(at: int) -> None:
    running: Running = simulate(disturbed, at, lambda each: each.seat.request_abort())

    settled = [event for event in running.heard if event.type == "agent_settled"]
    assert settled[0].aborted is (at < EVENTS[-1]), "an abort while idle is nothing"


@pytest.mark.parametrize("at", EVENTS[:-1])
def test_a_message_that_comes_at_any_event_is_delivered_once(at: int) -> None:
    def steer(running: Running) -> None:
        running.seat.send_user_message("meanwhile", (), "steer", False)

    running: Running = simulate(disturbed, at, steer)

    texts = [text for role, text in said(stored(running)) if role == "user"]
    assert sorted(texts) == ["go", "meanwhile", "next"]


async def cancelled_at(step: int, files: MemoryLogFiles) -> tuple[bool, int]:
    """The scope around the kernel is cancelled at the start of the step-th step of a task. Whether it was, and how
    often the run settled."""
    heard: list[str] = []
    with trio.CancelScope() as scope:
        instrument = _CancelAt(step, scope)
        async with opened(SCRIPT, files=files, tools=[tool(works)]) as running:
            running.seat.subscribe(lambda event: heard.append(event.type))
            trio.lowlevel.add_instrument(instrument)
            try:
                await running.seat.prompt("go")
            finally:
                trio.lowlevel.remove_instrument(instrument)
    return scope.cancelled_caught, heard.count("agent_settled")


@attrs.define(eq=False)
class _CancelAt(trio.abc.Instrument):
    """Cancels a scope when so many steps of tasks were made."""

    step: int
    scope: trio.CancelScope

    def before_task_step(self, task: Any) -> None:
        self.step -= 1
        if self.step == 0:
            self.scope.cancel()


STEPS = range(1, 36)


@pytest.mark.rule("SDK-23", "LOOP-71", "A19", "A20")
@pytest.mark.parametrize("step", STEPS)
def test_cancelling_the_scope_around_the_kernel_at_any_step_closes_in_order(step: int) -> None:
    files = MemoryLogFiles()

    cancelled, settled = simulate(cancelled_at, step, files)
    messages, found, answered = simulate(reopened, files)

    assert (settled, unanswered(messages), found, answered) == (1, [], (), True)
    assert files.open_handles == 0 and files.held_locks == ()
    assert cancelled or messages[-1].stop_reason == "stop"


def test_the_steps_reach_beyond_the_end_of_the_run() -> None:
    first, last = simulate(cancelled_at, STEPS[0], MemoryLogFiles()), simulate(cancelled_at, STEPS[-1], MemoryLogFiles())

    assert (first[0], last[0]) == (True, False)


# -- handlers ----------------------------------------------------------------------------------


async def hanging(_event: Any, _ctx: Any) -> None:
    await trio.sleep_forever()


@pytest.mark.rule("LOOP-71", "A27")
@pytest.mark.parametrize(
    "hook",
    [
        *["before_agent_start", "agent_start", "turn_start", "message_start", "message_end", "message_update", "context"],
        *["context_with_system", "tool_execution_start", "tool_call", "tool_result", "tool_execution_end", "turn_end", "agent_end"],
        *["agent_before_settle", "agent_settled"],
    ],
)
def test_leaving_the_kernel_ends_a_handler_that_hangs(hook: str) -> None:
    async def left() -> float:
        with trio.CancelScope() as scope:
            async with opened(SCRIPT, handling(hook, hanging), tools=[tool(works)]) as running:
                running.seat.subscribe(lambda _event: None)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(running.seat.prompt, "go")
                    await trio.sleep(1000)
                    scope.cancel()
        return trio.current_time() - 1000

    assert simulate(left) < 10


@pytest.mark.rule("LOOP-71", "BND-42")
@pytest.mark.parametrize("hook", ["turn_end", "agent_before_settle"])
def test_a_boundary_whose_handler_is_cut_commits_nothing(hook: str) -> None:
    def proposes(event: Any, _ctx: Any) -> BoundaryResult:
        return BoundaryResult(entries=(*event.entries, {"type": "custom", "custom_type": "note"}), continue_=True)

    async def cut() -> tuple[list[str], list[tuple[str, str, str]], bool]:
        setups = [handling(hook, proposes), handling(hook, hanging), handling(hook, proposes)]
        async with opened([assistant("done"), assistant("again")], *setups) as running:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(running.seat.prompt, "go")
                await trio.sleep(2)
                await running.seat.abort()
            kinds = [entry.type for entry in running.seat.state.tree.entries()]
            return kinds, running.errors(), running.count("agent_settled") == 1
        raise AssertionError

    kinds, errors, settled_once = simulate(cut)

    assert "custom" not in kinds
    assert errors == [("<inline:x1>", hook, "the handler was ended by force, because an abort was requested and it did not stop")]
    assert settled_once
