"""What keeps an extension from holding or hurting a conversation: clocks, strikes, closed gates, leaving, the watchdog."""

import logging
from typing import Any

import pytest
import trio

from camshaft.actors.host import Limits, WatchedUi
from camshaft.extensions_std.providers.scripted import Hang, assistant, tool_call
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


def test_a_handler_that_outlives_its_run_is_ended_by_the_abort_of_that_run() -> None:
    async def hangs(_event: Any, _ctx: Any) -> None:
        await trio.sleep_forever()

    def setup(api: Any) -> None:
        api.on("session_info_changed", hangs)
        api.on("agent_start", lambda *_: api.set_session_name("name"))

    async def aborted() -> tuple[bool, list[tuple[str, str, str]]]:
        async with opened([assistant("done")], setup, tools=[tool(execute)], limits=Limits(abort_grace_s=30)) as running:
            running.provider.set_responses([[Hang()]])
            await running.seat.submit("go")
            await trio.sleep(1)
            await running.seat.abort()
            idle = running.seat.is_idle
            await trio.sleep(60)
            return idle, reported(running)
        raise AssertionError

    text = "the handler was ended by force, because an abort was requested and it did not stop"
    assert simulate(aborted) == (True, [("<inline:x0>", "session_info_changed", text)])


@pytest.mark.rule("A27", "LOOP-71")
def test_an_abort_leaves_a_handler_behind_that_ignores_it_and_the_next_prompt_is_answered() -> None:
    async def stubborn(_event: Any, _ctx: Any) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(1000)

    def setup(api: Any) -> None:
        unsubscribe: list[Any] = []

        async def once(event: Any, ctx: Any) -> None:
            unsubscribe.pop()()
            await stubborn(event, ctx)

        unsubscribe.append(api.on("turn_start", once))

    async def aborted() -> tuple[float, tuple[str, ...], list[tuple[str | None, str]]]:
        async with opened([assistant("done")], setup, limits=Limits(abort_grace_s=1)) as running:
            await running.seat.submit("go")
            await trio.sleep(1)
            begun = trio.current_time()
            await running.seat.abort()
            took, left = trio.current_time() - begun, running.kernel.abandoned
            await running.seat.prompt("again")
            return took, left, said(running.seat.context_messages)[-2:]
        raise AssertionError

    left = ("turn_start handler of <inline:x0>",)
    assert simulate(aborted) == (3.0, left, [("user", "again"), ("assistant", "done")])


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
