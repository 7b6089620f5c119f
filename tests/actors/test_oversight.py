"""What keeps an extension from holding or hurting a conversation: clocks, strikes, closed gates, tasks, the watchdog."""

import logging
from typing import Any

import pytest
import trio

from camshaft.actors.actor import KILL_AFTER_S
from camshaft.actors.generation import StaleContext
from camshaft.actors.host import Limits, WatchedUi
from camshaft.actors.oversight import TASKS_MAX, TooManyTasks
from camshaft.extensions_std.providers.scripted import assistant, tool_call
from camshaft.kernel.hook_events import ToolCallResult
from tests.actors.running import Running, handling, opened, results, said, simulate, tool

OK = {"content": [{"type": "text", "text": "ok"}]}


async def execute(*_: Any) -> Any:
    return OK


def fails(*_: Any) -> Any:
    raise ValueError("bad")


# -- the clock ---------------------------------------------------------------------------


@pytest.mark.parametrize(("works_s", "errors"), [(2.0, 0), (3.0, 1)])
def test_the_clock_of_a_handler_stands_still_while_it_waits_for_people(works_s: float, errors: int) -> None:
    async def ask(_event: Any, ctx: Any) -> None:
        await trio.sleep(works_s)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ctx.ui.confirm, "First?")
            nursery.start_soon(ctx.ui.confirm, "Second?")
        await trio.sleep(works_s)

    async def asked() -> int:
        limits = Limits(hook_deadline_s=5)
        async with opened([assistant("done")], handling("agent_start", ask), ui=WatchedUi(), limits=limits) as running:
            await running.seat.submit("go")
            await trio.sleep(works_s + 100)
            first, second = running.seat.dialogs
            running.seat.answer_dialog(first.id, True)
            await trio.sleep(100)
            running.seat.answer_dialog(second.id, True)
            await running.seat.wait_idle()
            return len(running.errors())
        raise AssertionError

    assert simulate(asked) == errors


def test_without_a_deadline_a_handler_may_take_as_long_as_it_likes() -> None:
    async def slow(_event: Any, _ctx: Any) -> None:
        await trio.sleep(80_000)

    async def asked() -> tuple[float, int]:
        async with opened([assistant("done")], handling("agent_start", slow)) as running:
            begun = trio.current_time()
            await running.seat.prompt("go")
            return trio.current_time() - begun, len(running.errors())
        raise AssertionError

    assert simulate(asked) == (80_000, 0)


@pytest.mark.rule("SDK-25", "BND-35")
def test_a_job_without_a_user_has_bounds_that_can_be_set_all_the_same() -> None:
    assert Limits.unattended() == Limits(continuations_max=50, hook_deadline_s=60, watchdog_s=30)
    assert Limits.unattended(hook_deadline_s=5, watchdog_s=None) == Limits(continuations_max=50, hook_deadline_s=5)
    assert (Limits().hook_deadline_s, Limits().continuations_max, Limits().watchdog_s) == (None, None, None)


# -- strikes -----------------------------------------------------------------------------


async def prompted(count: int, *setups: Any, limits: Limits | None = None) -> tuple[tuple[str, ...], int]:
    """The quarantined extensions and the number of errors after so many prompts."""
    async with opened([assistant("done")] * count, *setups, limits=limits) as running:
        for _ in range(count):
            await running.seat.prompt("go")
        return running.seat.quarantined, len(running.errors())
    raise AssertionError


def test_a_handler_that_does_well_makes_its_failures_good() -> None:
    calls: list[int] = []

    def sometimes(_event: Any, _ctx: Any) -> None:
        calls.append(1)
        if len(calls) % 3:
            raise ValueError("bad")

    assert simulate(prompted, 9, handling("agent_start", sometimes)) == ((), 6)


def test_a_handler_that_does_well_does_not_make_the_failures_of_another_good() -> None:
    def setup(api: Any) -> None:
        api.on("agent_start", fails)
        api.on("agent_end", lambda *_: None)

    assert simulate(prompted, 5, setup) == (("<inline:x0>",), 4)


def test_an_extension_that_is_withdrawn_takes_no_other_with_it() -> None:
    heard: list[str] = []

    def setup(api: Any) -> None:
        api.on("agent_start", fails)
        api.register_tool({"name": "theirs", "description": "d", "parameters": {"type": "object"}, "execute": execute})
        api.register_command("theirs", lambda *_: heard.append("command"))
        api.events.on("channel", lambda _value: heard.append("bus"))

    def other(api: Any) -> None:
        api.on("agent_start", lambda *_: heard.append("other"))
        api.on("agent_end", lambda *_: api.events.emit("channel"))

    async def withdrawn() -> tuple[list[str], list[str], bool]:
        async with opened([assistant("done")] * 4, setup, other) as running:
            for _ in range(3):
                await running.seat.prompt("go")
            before = [*heard]
            await running.seat.prompt("/theirs")
            return before, [command.name for command in running.seat.commands()], "theirs" in running.seat.tools
        raise AssertionError

    assert simulate(withdrawn) == (["other", "bus", "other", "bus", "other"], [], False)
    assert heard[5:] == ["other"]


def test_handlers_that_fail_once_each_do_not_make_an_extension_a_broken_one() -> None:
    def setup(api: Any) -> None:
        for hook in ("agent_start", "turn_start", "turn_end", "agent_end", "agent_settled"):
            api.on(hook, fails)

    assert simulate(prompted, 2, setup) == ((), 10)
    assert simulate(prompted, 3, setup) == (("<inline:x0>",), 12)


def test_strikes_can_be_without_a_limit() -> None:
    async def ran() -> tuple[tuple[str, ...], int]:
        return await prompted(6, handling("agent_start", fails), limits=Limits(strikes_max=None))

    assert simulate(ran) == ((), 6)


@pytest.mark.rule("LOOP-71")
def test_a_handler_that_is_ended_by_an_abort_has_no_strike() -> None:
    async def hangs(_event: Any, _ctx: Any) -> None:
        await trio.sleep_forever()

    async def aborted() -> tuple[tuple[str, ...], list[str]]:
        async with opened([assistant("done")] * 4, handling("agent_start", hangs), limits=Limits(abort_grace_s=1)) as running:
            for _ in range(4):
                await running.seat.submit("go")
                await trio.sleep(1)
                await running.seat.abort()
            return running.seat.quarantined, sorted({text for _, _, text in running.errors()})
        raise AssertionError

    assert simulate(aborted) == ((), ["the handler was ended by force, because an abort was requested and it did not stop"])


# -- gates -------------------------------------------------------------------------------


@pytest.mark.rule("ERR-6", "EVT-33")
def test_a_gate_whose_extension_is_withdrawn_stays_closed() -> None:
    def setup(api: Any) -> None:
        api.on("tool_call", lambda *_: ToolCallResult(block=False))
        api.on("agent_start", fails)

    async def called() -> list[tuple[str, str, bool]]:
        script = [assistant(tool_call("work", id=f"c{number // 2}")) if number % 2 == 0 else assistant("done") for number in range(8)]
        async with opened(script, setup, tools=[tool(execute)]) as running:
            for _ in range(4):
                await running.seat.prompt("go")
            return results(running.seat.context_messages)
        raise AssertionError

    blocked = 'Extension "<inline:x0>" is quarantined (3 failures in a row); reload the extensions to use it again.'
    assert simulate(called) == [("c0", "ok", False), ("c1", "ok", False), ("c2", blocked, True), ("c3", blocked, True)]


@pytest.mark.rule("EVT-21", "ERR-6")
def test_a_handler_that_fails_closed_stays_closed() -> None:
    async def asked() -> tuple[list[Any], tuple[str, ...]]:
        async with opened([], handling("input", fails, fail_closed=True)) as running:
            dispositions = [(await running.seat.prompt("go")).disposition for _ in range(5)]
            return dispositions, running.seat.quarantined
        raise AssertionError

    assert simulate(asked) == (["handled"] * 5, ("<inline:x0>",))


@pytest.mark.rule("EVT-21")
def test_a_handler_that_fails_closed_closes_when_it_runs_out_of_time() -> None:
    async def hangs(_event: Any, _ctx: Any) -> None:
        await trio.sleep_forever()

    async def asked() -> str:
        async with opened([], handling("input", hangs, fail_closed=True), limits=Limits(hook_deadline_s=1)) as running:
            return (await running.seat.prompt("go")).disposition
        raise AssertionError

    assert simulate(asked) == "handled"


# -- tasks -------------------------------------------------------------------------------


def starting(*tasks: Any, also: Any = None) -> Any:
    """A setup that starts tasks when the session starts."""

    def setup(api: Any) -> None:
        def start(_event: Any, ctx: Any) -> None:
            for task in tasks:
                ctx.start_task(task, api, ctx)

        api.on("session_start", start)
        if also is not None:
            api.on("session_shutdown", also)

    return setup


@pytest.mark.rule("EXT-23", "EXT-48")
def test_a_task_runs_beside_everything_and_is_cancelled_after_the_shutdown_handlers() -> None:
    told: list[str] = []

    async def ticks(api: Any, _ctx: Any) -> None:
        try:
            while True:
                api.append_entry("tick")
                await trio.sleep(10)
        finally:
            told.append("task ended")

    async def leaving(_event: Any, _ctx: Any) -> None:
        await trio.sleep(1)
        told.append("shutdown handled")

    async def ran() -> tuple[int, list[Any]]:
        async with opened([], starting(ticks, also=leaving)) as running:
            await trio.sleep(35)
            ticked = [entry for entry in running.seat.state.tree.entries() if getattr(entry, "custom_type", None) == "tick"]
            await running.seat.close()
            return len(ticked), running.errors()
        raise AssertionError

    assert simulate(ran) == (4, [])
    assert told == ["shutdown handled", "task ended"]


@pytest.mark.rule("ERR-8", "A28")
def test_a_task_that_crashes_is_reported_and_nobody_elses_affair() -> None:
    async def crashes(_api: Any, _ctx: Any) -> None:
        await trio.sleep(1)
        raise ExceptionGroup("one", [ValueError("bad")])

    async def ran() -> tuple[list[tuple[str, str, str]], list[tuple[str | None, str]]]:
        async with opened([assistant("done")], starting(crashes)) as running:
            await trio.sleep(2)
            await running.seat.prompt("go")
            return running.errors(), said(running.seat.context_messages)
        raise AssertionError

    assert simulate(ran) == ([("<inline:x0>", "task", "bad")], [("user", "go"), ("assistant", "done")])


@pytest.mark.rule("A28", "ERR-2")
def test_a_task_that_will_not_end_is_left_behind_and_its_context_is_stale() -> None:
    stale: list[str] = []

    async def stubborn(api: Any, ctx: Any) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(3600)
        for use in (ctx.is_idle, lambda: api.append_entry("late"), lambda: ctx.start_task(execute)):
            with pytest.raises(StaleContext) as caught:
                use()
            stale.append(type(caught.value).__name__)
        raise ValueError("bad")

    async def ran() -> tuple[float, tuple[str, ...], list[Any]]:
        async with opened([], starting(stubborn)) as running:
            await trio.sleep(1)
            begun = trio.current_time()
            await running.seat.close()
            return trio.current_time() - begun, running.kernel.abandoned, running.errors()
        raise AssertionError

    assert simulate(ran) == (KILL_AFTER_S, ("task of <inline:x0>",), [])
    assert stale == ["StaleContext"] * 3


@pytest.mark.rule("EXT-48", "API-27")
def test_an_async_listener_of_the_bus_ends_with_its_generation() -> None:
    ended: list[str] = []

    async def listens(_value: Any) -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append("listener")

    def setup(api: Any) -> None:
        api.events.on("channel", listens)
        api.on("session_start", lambda *_: api.events.emit("channel"))

    async def ran() -> tuple[list[Any], int]:
        async with opened([], setup) as running:
            await running.seat.close()
            return running.errors(), len(running.kernel._nursery.child_tasks)
        raise AssertionError

    assert simulate(ran) == ([], 0)
    assert ended == ["listener"]


def test_tasks_without_end_are_refused_at_a_limit() -> None:
    refused: list[str] = []

    def start(_event: Any, ctx: Any) -> None:
        for _ in range(TASKS_MAX):
            ctx.start_task(trio.sleep_forever)
        with pytest.raises(TooManyTasks) as caught:
            ctx.start_task(trio.sleep_forever)
        refused.append(str(caught.value))

    async def ran() -> int:
        async with opened([], handling("session_start", start)) as running:
            await running.seat.close()
            return len(running.kernel._nursery.child_tasks)
        raise AssertionError

    assert simulate(ran) == 0
    assert refused == ['Extension "<inline:x0>" has 100 tasks; no more are started until one of them ends']


# -- leaving -----------------------------------------------------------------------------


@pytest.mark.rule("RPC-95", "EXT-52")
@pytest.mark.parametrize("hook", ["session_shutdown", "session_info_changed"])
def test_leaving_waits_for_no_handler_longer_than_it_may_and_says_which_it_was(hook: str) -> None:
    async def hangs(_event: Any, _ctx: Any) -> None:
        await trio.sleep_forever()

    async def left() -> tuple[float, list[tuple[str, str, str]], int]:
        async with opened([], handling(hook, hangs)) as running:
            running.seat.set_session_name("name")
            begun = trio.current_time()
            await running.seat.close()
            return trio.current_time() - begun, reported(running), len(running.kernel._nursery.child_tasks)
        raise AssertionError

    said_ = "the handler was ended by force, because it did not end within 5 s"
    assert simulate(left) == (5.0, [("<inline:x0>", hook, said_)], 0)


def reported(running: Running) -> list[tuple[str, str, str]]:
    return [(each.extension_path, each.event, each.error) for each in running.seat.errors]


# -- the watchdog ------------------------------------------------------------------------


def test_a_handler_that_spins_is_named_while_it_spins_and_again_afterwards(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "camshaft")

    def spins(_event: Any, _ctx: Any) -> None:
        while not caplog.records:
            pass

    async def ran() -> list[str]:
        async with opened([assistant("done")], handling("agent_start", spins), limits=Limits(watchdog_s=0.01)) as running:
            await running.seat.prompt("go")
            return [each.message for each in running.seat.diagnostics]
        raise AssertionError

    messages = simulate(ran)

    name = "agent_start handler of <inline:x0>"
    assert [record.getMessage() for record in caplog.records] == [f"{name} has not returned for 0.01 s; nothing else runs until it does"]
    assert len(messages) == 1
    assert messages[0].startswith(f"{name} held everything up for 0.")
