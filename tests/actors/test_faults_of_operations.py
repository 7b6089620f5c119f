"""Field faults of operations on sessions and their extensions: aborted compactions, contexts too large, reloads at a bad time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.lowlevel

from camshaft.actors.host import CommandRefused, PromptRefused
from camshaft.extensions_std.providers.scripted import Hang, assistant, tool_call
from camshaft.kernel.entries import CustomEntry
from tests.actors.compacting import WINDOW, answer, compactions, ends, entries, failed, talking
from tests.actors.replacing import sessions
from tests.actors.running import Running, handling, opened, said, simulate, tool


@pytest.mark.rule("A17")
@pytest.mark.parametrize("operation", ["compact", "navigate"])
def test_an_abort_answers_when_the_operation_is_over_and_nothing_of_it_comes_afterwards(operation: str) -> None:
    async def refused(running: Running, errors: list[str]) -> None:
        try:
            if operation == "compact":
                await running.seat.compact()
            else:
                target = next(entry.id for entry in entries(running) if entry.type == "message")
                await running.seat.navigate_tree(target, summarize=True)
        except CommandRefused as error:
            errors.append(str(error))

    async def aborted() -> tuple[list[str], bool, int, list[str], Any]:
        errors: list[str] = []
        async with talking([[Hang()], answer("fine")]) as running, trio.open_nursery() as nursery:
            before = len(entries(running))
            nursery.start_soon(refused, running, errors)
            await trio.sleep(1)
            with pytest.raises(PromptRefused) as meanwhile:
                await running.seat.prompt("go")
            errors.append(str(meanwhile.value))
            await running.seat.abort()
            idle, added = running.seat.is_idle, len(entries(running)) - before
            running.heard.clear()
            await trio.sleep(60)
            late = running.types()
            await running.seat.prompt("go")
            return errors, idle, added, late, said(running.seat.context_messages)[-1]
        raise AssertionError

    errors, idle, added, late, last = simulate(aborted)

    assert errors[0].startswith("Cannot submit a prompt while compaction is in progress.")
    assert (idle, added, late, last) == (True, 0, [], ("assistant", "fine"))


def forked(running: Running) -> str:
    return next(entry.id for entry in entries(running) if entry.type == "message")


@pytest.mark.rule("A25")
@pytest.mark.parametrize("way", ["navigation", "fork"])
def test_a_session_that_cannot_be_compacted_says_so_once_and_has_a_way_forward(way: str) -> None:
    overflow = failed("prompt is too long: 90000 tokens > 5000 maximum")

    async def stuck() -> tuple[list[Any], int, tuple[str | None, str]]:
        async with talking([overflow] * 3) as running:
            good = entries(running)[-1].id
            await running.seat.prompt("x" * 40_000)
            told, made = ends(running), len(compactions(running))
            if way == "navigation":
                await running.seat.navigate_tree(good)
            else:
                await running.seat.fork(good, position="at")
            running.provider.set_responses([answer("free")])
            await running.seat.prompt("go on")
            return told, made, said(running.seat.context_messages)[-1]
        raise AssertionError

    told, made, last = simulate(stuck)

    assert [(reason, retry, bool(text)) for reason, _, retry, text in told] == [("overflow", False, True)], told
    assert made == 0
    assert last == ("assistant", "free")


@pytest.mark.rule("A26")
def test_a_long_run_of_tools_is_compacted_in_time_without_any_usage() -> None:
    sizes: list[int] = []

    async def execute(*_: Any) -> Any:
        return {"content": [{"type": "text", "text": "y" * 2000}]}

    async def looping() -> tuple[int, list[str], str]:
        turns = iter([*[assistant(tool_call("work", {}, id=f"c{n}")) for n in range(20)], assistant("done")])

        def reply(request: Any) -> Any:
            is_turn = request.messages[0].role == "system" and bool(request.messages[0].tools_added)
            if is_turn:
                sizes.append(sum([len(str(getattr(message, "content", ""))) for message in request.messages[1:]]))
            return next(turns) if is_turn else assistant("S")

        async with talking([], said=(), tools=[tool(execute)]) as running:
            running.provider.set_responses([reply] * 100)
            await running.seat.prompt("go")
            reasons = [event.reason for event in running.heard if event.type == "compaction_end"]
            return running.count("agent_settled"), reasons, said(running.seat.context_messages)[-1][1]
        raise AssertionError

    settled, reasons, last = simulate(looping)

    assert (settled, last) == (1, "done")
    assert len(reasons) >= 2 and set(reasons) == {"threshold"}
    assert max(sizes) < 4 * WINDOW, "no request was larger than the window"


@pytest.mark.rule("A33")
def test_a_fork_starts_its_extensions_once_and_the_old_ones_hear_nothing_after_that(tmp_path: Path) -> None:
    heard: list[tuple[int, str]] = []
    made = 0

    def setup(api: Any) -> None:
        nonlocal made
        made += 1
        mine = made

        def start(event: Any, _ctx: Any) -> None:
            heard.append((mine, f"start {event.reason}"))
            api.append_entry("started", mine)

        api.on("session_start", start)
        for hook in ("session_shutdown", "turn_start", "agent_settled", "session_info_changed"):
            api.on(hook, lambda event, _ctx: heard.append((mine, event.type)))

    async def fork() -> list[Any]:
        async with opened([assistant("one"), assistant("two")], setup, **sessions(tmp_path)) as running:
            await running.seat.prompt("first")
            await running.seat.fork(entries(running)[-1].id, position="at")
            await running.seat.prompt("second")
            return [entry.data for entry in entries(running) if isinstance(entry, CustomEntry)]
        raise AssertionError

    entries_made = simulate(fork)

    assert entries_made == [1, 2], "one entry for each start"
    assert [what for mine, what in heard if mine == 2] == ["start fork", "turn_start", "agent_settled", "session_shutdown"]
    second = [mine for mine, _ in heard].index(2)
    assert 1 not in [mine for mine, _ in heard[second:]]


async def _reloaded(running: Running, outcomes: list[str]) -> None:
    try:
        await running.seat.reload()
        outcomes.append("reloaded")
    except CommandRefused as error:
        outcomes.append(str(error))


BUSY: dict[str, tuple[list[Any], Callable[[Running], Any], str]] = {
    "a run": ([[Hang()]], lambda running: running.seat.prompt("go"), "Wait for the current response to finish before reloading."),
    "a compaction": ([[Hang()]], lambda running: running.seat.compact(), "Wait for compaction to finish before reloading."),
    "a navigation": (
        [[Hang()]],
        lambda running: running.seat.navigate_tree(forked(running), summarize=True),
        "Wait for compaction to finish before reloading.",
    ),
    "nothing": ([], lambda running: running.seat.wait_idle(), "reloaded"),
}


@pytest.mark.rule("A33", "EXT-49")
@pytest.mark.parametrize("busy", BUSY)
def test_a_reload_meets_every_state(busy: str) -> None:
    script, act, text = BUSY[busy]
    starts: list[str] = []

    async def quietly(running: Running) -> None:
        try:
            await act(running)
        except CommandRefused:
            pass

    async def asked() -> list[str]:
        outcomes: list[str] = []
        async with talking(script, handling("session_start", lambda event, _ctx: starts.append(event.reason))) as running:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(quietly, running)
                await trio.sleep(1)
                await _reloaded(running, outcomes)
                await running.seat.abort()
            await _reloaded(running, outcomes)
        return outcomes

    outcomes = simulate(asked)

    assert outcomes == [text, "reloaded"]
    assert starts == ["startup", *["reload"] * outcomes.count("reloaded")]
