"""What ends the warming of a prompt cache, and that nobody ever waits for it."""

from collections.abc import Callable
from typing import Any

import pytest
import trio

from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.extensions_std.providers.scripted import Drop, Fail, Hang, assistant
from camshaft.kernel.commands import AppendContextEdit
from camshaft.kernel.entries import MessageEntry
from tests.actors.running import Running, said, simulate
from tests.actors.warming import REPLAY, after, answer, reason, replays, stored, tasks, warmed


def raises(*_: Any) -> None:
    raise ValueError("broken")


# -- what ends it ------------------------------------------------------------------------


async def compacts(running: Running) -> None:
    running.provider.set_responses([answer("two"), assistant("summary"), assistant("summary"), *[REPLAY] * 9])
    await running.seat.prompt("again")
    await running.seat.compact()


async def selects(running: Running) -> None:
    await running.seat.set_model("faux/other")


def first_message(running: Running) -> str:
    """The id of what the user said first."""
    messages = [entry for entry in running.seat.state.tree.entries() if isinstance(entry, MessageEntry)]
    return next(entry.id for entry in messages if entry.message.role == "user")


async def edits(running: Running) -> None:
    running.seat.cell.parts.session.post(AppendContextEdit(target_id=first_message(running), replacement=None))


async def goes_back(running: Running) -> None:
    await running.seat.navigate_tree(first_message(running))


CHANGES = {"compaction": compacts, "another model": selects, "an edit": edits, "another branch": goes_back}


@pytest.mark.rule("CACHE-3", "CACHE-10")
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_conversation_is_not_warmed(change: str) -> None:
    async def whole() -> Any:
        async with warmed([answer()]) as running:
            await running.seat.prompt("go")
            await CHANGES[change](running)
            at_once = reason(running)
            await trio.sleep(1000)
            return at_once, reason(running), replays(running)
        raise AssertionError

    assert simulate(whole) == ("conversation context changed", "conversation context changed", [])


@pytest.mark.rule("CACHE-10")
@pytest.mark.parametrize("change", [name for name in CHANGES if name != "compaction"])
def test_a_replay_that_ends_after_a_change_leaves_nothing(change: str) -> None:
    async def whole() -> Any:
        async with warmed([answer()]) as running:
            running.provider.set_responses([answer(), slow])
            await running.seat.prompt("go")
            await trio.sleep(272)
            assert running.seat.cache_warming.state == "refreshing"
            await CHANGES[change](running)
            await trio.sleep(1000)
            return replays(running), stored(running), reason(running)
        raise AssertionError

    async def slow(_request: Any) -> Any:
        await trio.sleep(5)
        return REPLAY

    assert simulate(whole) == ([270], [], "conversation context changed")


LEAVING: dict[str, Callable[[Running], Any]] = {
    "new": lambda running: running.seat.new_session(),
    "reload": lambda running: running.seat.reload(),
    "close": lambda running: running.seat.close(),
}


@pytest.mark.rule("CACHE-12")
@pytest.mark.parametrize("when", [10, 271])
@pytest.mark.parametrize("how", LEAVING)
def test_a_session_that_is_left_is_not_warmed(how: str, when: float) -> None:
    async def whole() -> Any:
        async with warmed([answer(), [Hang()]]) as running:
            before = tasks()
            await running.seat.prompt("go")
            await trio.sleep(when)
            begun = trio.current_time()
            await LEAVING[how](running)
            await trio.testing.wait_all_tasks_blocked()
            assert (trio.current_time() - begun, tasks()) == (0, before)
            left = reason(running)
            await trio.sleep(1000)
            return replays(running), stored(running), left
        raise AssertionError

    left = "inactive" if how == "close" else "waiting for first request"
    assert simulate(whole) == ([270] if when > 270 else [], [], left)


@pytest.mark.rule("CACHE-12")
def test_the_end_of_the_kernel_ends_it() -> None:
    async def whole() -> float:
        async with warmed([answer()]) as running:
            await running.seat.prompt("go")
        return trio.current_time()

    assert simulate(whole) == 0


@pytest.mark.rule("CACHE-3")
def test_a_real_request_takes_the_place_of_the_one_before() -> None:
    async def whole() -> Any:
        async with warmed([answer(), answer("two")]) as running:
            await running.seat.prompt("go")
            await trio.sleep(200)
            await running.seat.prompt("again")
            await trio.sleep(280)
            return replays(running), said(running.provider.requests[-1].messages)
        raise AssertionError

    assert simulate(whole) == ([470], [("user", "go"), ("assistant", "one"), ("user", "again")])


# -- nobody waits for it -----------------------------------------------------------------


async def ignores(_request: Any, _signal: Any, _emit: Any) -> None:
    with trio.CancelScope(shield=True):
        await trio.sleep(10_000)


@pytest.mark.rule("CACHE-1", "CACHE-3")
@pytest.mark.parametrize("replay", [[Hang()], ignores], ids=["cooperative", "stubborn"])
def test_a_replay_holds_up_neither_a_prompt_nor_an_abort_nor_a_close_for_long(replay: Any) -> None:
    async def whole() -> Any:
        async with warmed([answer(), replay, answer("two"), [Hang()]]) as running:
            await running.seat.prompt("go")
            await trio.sleep(271)
            assert running.seat.cache_warming.state == "refreshing"
            await running.seat.prompt("again")
            assert trio.current_time() == 271
            assert said(running.seat.context_messages)[-1] == ("assistant", "two")
            await running.seat.submit("third")
            await running.seat.abort()
            assert trio.current_time() == 271
            assert stored(running) == []
            await running.seat.close()
            return trio.current_time() - 271
        raise AssertionError

    assert simulate(whole) <= 2


@pytest.mark.rule("CACHE-1")
@pytest.mark.parametrize("failing", [[Fail("overloaded", 529)], [Drop()], raises, ignores, [Hang()]])
def test_a_replay_that_fails_leaves_nothing_and_hurts_nobody(failing: Any) -> None:
    async def step(request: Any, signal: Any, emit: Any) -> None:
        raise ValueError("broken")

    def look(running: Running) -> Any:
        assert running.errors() == []
        assert [event for event in running.heard if event.type == "diagnostic"] == []
        return replays(running), len(stored(running))

    found = after(541, answer(), step if failing is raises else failing, look=look)

    hangs = failing in (ignores, [Hang()])
    assert found == (([270], 0) if hangs else ([270, 540], 1))


def test_a_replay_that_hangs_ends_with_the_cache_entry() -> None:
    found = after(600, answer(), [Hang()], look=lambda running: (reason(running), running.provider.requests[-1].outcome))

    assert found == ("cache refresh deadline missed", "cancelled")


def test_a_log_that_refuses_the_cost_ends_the_warming_and_says_so() -> None:
    async def whole() -> Any:
        files = MemoryLogFiles()
        async with warmed([answer()], files=files) as running:
            await running.seat.prompt("go")
            await trio.sleep(100)
            running.seat.cell.parts.session.log.close()
            await trio.sleep(1000)
            return replays(running), reason(running), [event.source for event in running.heard if event.type == "diagnostic"]
        raise AssertionError

    assert simulate(whole) == ([270], "inactive", ["cache_warming"])
