"""What extensions run beside everything else: from the start of a session to its end, and nobody else's affair."""

from typing import Any

import pytest
import trio

from camshaft.actors.actor import KILL_AFTER_S
from camshaft.actors.generation import StaleContext
from camshaft.actors.oversight import TASKS_MAX, TooManyTasks
from camshaft.extensions_std.providers.scripted import assistant
from tests.actors.running import handling, opened, said, simulate


async def execute(*_: Any) -> None:
    """Ends at once."""


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
