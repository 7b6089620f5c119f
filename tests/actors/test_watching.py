"""What a frontend knows that comes at any moment, leaves, comes back, or is slow: the same as the session."""

import random
from typing import Any

import pytest
import trio

from camshaft.actors.host import Cursor, Gap, Moment, SeatClosed, Snapshot, ToolExecutionUpdate, Watch
from camshaft.actors.watching import WAITING_MAX
from camshaft.extensions_std.providers.scripted import Hang, assistant, tool_call
from camshaft.kernel.entries import Entry
from camshaft.kernel.events import MessageUpdate
from camshaft.kernel.stream import Ended, Started, TextDelta, TextStarted
from tests.actors.running import Running, opened, simulate, tool


class Frontend:
    """Keeps what it is told, as any frontend would."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.cursor: Cursor | None = None
        self.gaps = 0
        self.texts = ""

    def start(self, snapshot: Snapshot) -> None:
        if snapshot.is_whole:
            self.entries = []
        self.entries += snapshot.entries
        self.cursor = snapshot.cursor

    def take(self, item: Moment | Gap) -> None:
        if isinstance(item, Gap):
            self.gaps += 1
            self.start(item.snapshot)
            return
        self.entries += item.entries
        self.cursor = item.cursor
        if isinstance(item.event, MessageUpdate) and item.event.assistant_message_event.type == "text_delta":
            self.texts += item.event.assistant_message_event.delta or ""

    async def watch(self, running: Running) -> None:
        with running.seat.watch(self.cursor) as watch:
            self.start(watch.snapshot)
            async for item in watch:
                self.take(item)


def log_of(running: Running) -> list[Entry]:
    return list(running.seat.state.tree.entries())


async def taken(watch: Watch) -> list[Any]:
    """All that waits."""
    items: list[Any] = []
    with trio.move_on_after(1):
        while True:
            items.append(await anext(watch))
    return items


def script(rounds: int) -> list[Any]:
    steps: list[Any] = []
    for number in range(rounds):
        steps += [assistant(tool_call("work", {}, id=f"c{number}")), assistant(f"answer {number}")]
    return steps


def working(seconds: float) -> Any:
    """A tool that tells of itself and then takes its time."""

    async def work(_id: str, _params: Any, _signal: Any, on_update: Any, _ctx: Any) -> Any:
        on_update({"content": [{"type": "text", "text": "half"}]})
        await trio.sleep(seconds)
        return {"content": [{"type": "text", "text": "done"}]}

    return tool(work)


@pytest.mark.parametrize("seed", range(30))
def test_a_frontend_that_comes_and_goes_at_random_knows_what_the_session_knows(seed: int) -> None:
    chance = random.Random(seed)

    async def run() -> tuple[Frontend, list[Entry]]:
        frontend = Frontend()
        async with opened(script(4), tools=[working(0.02)]) as running:
            async with trio.open_nursery() as nursery:

                async def work() -> None:
                    for number in range(4):
                        await running.seat.prompt(f"prompt {number}")
                        await trio.sleep(0.02)
                    nursery.cancel_scope.cancel()

                nursery.start_soon(work)
                while True:
                    with trio.move_on_after(chance.random() * 0.05):
                        await frontend.watch(running)
                    await trio.sleep(chance.random() * 0.02)
            with running.seat.watch(frontend.cursor) as watch:
                frontend.start(watch.snapshot)
            return frontend, log_of(running)
        raise AssertionError

    frontend, log = simulate(run)

    assert not any(entry.message.is_error for entry in log if entry.type == "message" and entry.message.role == "toolResult")
    assert [entry.id for entry in frontend.entries] == [entry.id for entry in log]
    assert frontend.gaps == 0


def test_the_snapshot_has_what_is_under_way() -> None:
    async def run() -> tuple[Snapshot, Snapshot]:
        asked: list[Any] = [assistant(tool_call("work", {"path": "x"}, id="c1")), [Started(), TextStarted(0), TextDelta(0, "so f"), Hang()]]
        async with opened(asked, tools=[working(10)]) as running:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(running.seat.prompt, "go")
                await trio.sleep(5)
                await running.seat.steer("look here")
                with running.seat.watch() as watch:
                    calling = watch.snapshot
                await trio.sleep(10)
                with running.seat.watch() as watch:
                    answering = watch.snapshot
                await running.seat.abort()
            return calling, answering
        raise AssertionError

    calling, answering = simulate(run)

    (call,) = calling.calls
    assert (calling.phase, call.start.tool_call_id, dict(call.start.args)) == ("running", "c1", {"path": "x"})
    assert isinstance(call.update, ToolExecutionUpdate)
    assert calling.queue.steering == ("look here",)
    assert (calling.message, answering.calls) == (None, ())
    assert answering.message is not None
    assert [block.text for block in answering.message.content if block.type == "text"] == ["so f"]


def test_a_frontend_that_takes_nothing_slows_nobody_and_gets_one_gap() -> None:
    pieces: list[Any] = [Started(), TextStarted(0), *[TextDelta(0, "x") for _ in range(3 * WAITING_MAX)]]

    async def run() -> tuple[list[Any], list[Entry], float]:
        async with opened([[*pieces, Ended("stop")]]) as running:
            with running.seat.watch() as watch:
                await running.seat.prompt("go")
                spent = trio.current_time()
                items = await taken(watch)
            return items, log_of(running), spent
        raise AssertionError

    items, log, spent = simulate(run)

    gaps = [item for item in items if isinstance(item, Gap)]
    assert [len(gaps), isinstance(items[0], Gap)] == [1, True]
    assert gaps[0].missed > WAITING_MAX
    assert gaps[0].snapshot.entries[-1].id == log[-1].id
    assert spent < 1


def test_deltas_that_wait_become_one() -> None:
    pieces: list[Any] = [Started(), TextStarted(0), *[TextDelta(0, str(number)) for number in range(10)]]

    async def run() -> list[Any]:
        async with opened([[*pieces, Ended("stop")]]) as running:
            with running.seat.watch() as watch:
                await running.seat.prompt("go")
                return await taken(watch)
        raise AssertionError

    told = [item.event.assistant_message_event for item in simulate(run) if isinstance(item.event, MessageUpdate)]

    assert [each.delta for each in told if each.type == "text_delta"] == ["0123456789"]


def test_a_cursor_of_the_same_process_says_how_many_events_were_missed() -> None:
    async def run() -> tuple[Snapshot, int]:
        async with opened([assistant("a"), assistant("b")]) as running:
            with running.seat.watch() as watch:
                cursor = watch.snapshot.cursor
            before = len(running.heard)
            await running.seat.prompt("one")
            with running.seat.watch(cursor) as watch:
                return watch.snapshot, len(running.heard) - before
        raise AssertionError

    snapshot, told = simulate(run)

    assert (snapshot.is_whole, snapshot.missed) == (False, told)


def test_a_foreign_cursor_gives_the_whole_session() -> None:
    async def run() -> Snapshot:
        async with opened([assistant("a")]) as running:
            await running.seat.prompt("one")
            with running.seat.watch(Cursor(session_id="another", entry_id="00000000")) as watch:
                return watch.snapshot
        raise AssertionError

    snapshot = simulate(run)

    assert (snapshot.is_whole, snapshot.missed) == (True, None)
    assert len(snapshot.entries) > 2


def test_another_session_makes_a_gap_that_says_so() -> None:
    async def run() -> tuple[Gap, str]:
        async with opened([assistant("a")]) as running:
            await running.seat.prompt("one")
            with running.seat.watch() as watch:
                await running.seat.new_session()
                async for item in watch:
                    if isinstance(item, Gap):
                        return item, running.seat.state.header.id
        raise AssertionError

    gap, session_id = simulate(run)

    assert gap.replaced is not None
    assert (gap.replaced.reason, gap.snapshot.header.id, gap.snapshot.is_whole, gap.missed) == ("new", session_id, True, 0)


def test_a_watch_ends_when_the_conversation_closes_and_none_begins_after_it() -> None:
    async def run() -> int:
        async with opened([]) as running:
            with running.seat.watch() as watch:
                await running.seat.close()
                items = [item async for item in watch]
            with pytest.raises(SeatClosed), running.seat.watch():
                raise AssertionError
            return len(items)
        raise AssertionError

    assert simulate(run) >= 0


def test_where_the_session_stands_is_told_with_every_moment() -> None:
    async def run() -> tuple[list[str | None], str | None]:
        async with opened([assistant("a")]) as running:
            with running.seat.watch() as watch:
                await running.seat.prompt("one")
                items = await taken(watch)
            return [item.position.leaf_id for item in items], running.seat.state.leaf_id
        raise AssertionError

    positions, leaf = simulate(run)

    assert positions[-1] == leaf
