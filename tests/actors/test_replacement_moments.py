"""A replacement that is cancelled, or whose conversation is closed, at any moment.

Whatever the moment, three things hold afterwards. A cancelled one leaves one whole session whose extensions have
heard of it, and the next prompt is answered. A closed one leaves nothing. And no file of a session stays open.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.host import InlineExtension, Limits, OpenOptions, SeatClosed
from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.extensions_std.providers.scripted import Hang, assistant
from tests.actors.replacing import put, sessions
from tests.actors.running import Running, handling, opened, said, simulate, virtual_world

FOLDER = Path("/sessions")


@attrs.define(eq=False)
class Lives:
    """Which generations were told of their beginning, and which of their end."""

    loaded: int = 0
    begun: list[int] = attrs.field(factory=list)
    ended: list[int] = attrs.field(factory=list)

    async def setup(self, api: Any) -> None:
        self.loaded += 1
        number = self.loaded

        async def start(*_: Any) -> None:
            self.begun.append(number)
            await trio.sleep(0.2)

        async def shutdown(*_: Any) -> None:
            self.ended.append(number)
            await trio.sleep(0.2)

        async def pause(*_: Any) -> None:
            await trio.sleep(0.2)

        api.on("session_start", start)
        api.on("session_shutdown", shutdown)
        for hook in ("session_before_switch", "session_before_fork", "resources_discover"):
            api.on(hook, pause)
        await trio.sleep(0.2)


@attrs.frozen
class Renewing:
    """Options that take their time."""

    def check(self, cwd: str) -> None:
        """Always good."""

    async def renewed(self, options: OpenOptions, _reason: str) -> OpenOptions:
        await trio.sleep(0.2)
        return options


@attrs.define(eq=False)
class _ActAt(trio.abc.Instrument):
    """Calls something when so many steps of tasks were made."""

    step: int
    act: Callable[[], None]

    def before_task_step(self, task: Any) -> None:
        self.step -= 1
        if self.step == 0:
            self.act()


async def _setup(_writer: Any) -> None:
    await trio.sleep(0.2)


OTHER = FOLDER / "other.jsonl"
OPERATIONS: dict[str, Callable[[Running], Any]] = {
    "new": lambda running: running.seat.new_session(setup=_setup),
    "resume": lambda running: running.seat.switch_session(str(OTHER)),
    "same": lambda running: running.seat.switch_session(str(running.seat.session_file)),
    "fork": lambda running: running.seat.clone(),
    "import": lambda running: running.seat.import_session("/elsewhere/other.jsonl"),
    "reload": lambda running: running.seat.reload(),
}
RUNNING = {name: act for name, act in OPERATIONS.items() if name != "reload"}


async def started(files: MemoryLogFiles, act: Callable[[Running], Any], is_busy: bool, lives: Lives) -> Any:
    script: list[Any] = [assistant("one"), [Hang()]]
    async with opened(script, lives.setup, world=virtual_world(files), services=Renewing(), **sessions(FOLDER)) as running:
        await running.seat.prompt("first")
        text = files.read(str(running.seat.session_file))
        put(running, OTHER, text)
        put(running, Path("/elsewhere/other.jsonl"), text)
        if is_busy:
            await running.seat.submit("second")
        return await act(running)


def cancelled_at(step: int, name: str, is_busy: bool) -> bool:
    """Whether the operation was cut off by a cancel at that step."""
    files, lives = MemoryLogFiles(), Lives()

    async def act(running: Running) -> bool:
        old = files.read(str(running.seat.session_file))
        path = str(running.seat.session_file)
        with trio.CancelScope() as scope:
            instrument = _ActAt(step, scope.cancel)
            trio.lowlevel.add_instrument(instrument)
            try:
                await OPERATIONS[name](running)
            finally:
                trio.lowlevel.remove_instrument(instrument)
        await running.seat.abort()
        await trio.sleep(60)
        assert files.open_handles == 0 and files.held_locks == ()
        assert files.read(path).startswith(old)
        assert lives.begun == [*lives.ended, lives.loaded]
        running.provider.set_responses([assistant("still here")])
        await running.seat.prompt("next")
        assert said(running.seat.context_messages)[-1] == ("assistant", "still here")
        assert running.errors() == []
        return scope.cancelled_caught

    cut: bool = simulate(started, files, act, is_busy, lives)
    assert files.open_handles == 0 and files.held_locks == ()
    assert sorted(lives.ended) == sorted(lives.begun)
    return cut


@pytest.mark.rule("SDK-23", "EXT-44", "EXT-52")
@pytest.mark.parametrize(("name", "is_busy"), [*[(name, False) for name in OPERATIONS], *[(name, True) for name in RUNNING]])
def test_a_cancel_at_any_step_leaves_one_whole_session(name: str, is_busy: bool) -> None:
    cuts = [cancelled_at(step, name, is_busy) for step in range(1, 120)]

    assert cuts[0] and not cuts[-1], "the steps reach from the first of the operation beyond its last"


def closed_at(step: int, name: str) -> tuple[bool, Lives]:
    """Whether the operation was refused because of a close at that step, and what extensions heard."""
    files, lives = MemoryLogFiles(), Lives()

    async def act(running: Running) -> bool:
        due, refused = trio.Event(), False

        async def close() -> None:
            await due.wait()
            began = trio.current_time()
            await running.seat.close()
            assert trio.current_time() - began < 5

        async with trio.open_nursery() as nursery:
            nursery.start_soon(close)
            instrument = _ActAt(step, due.set)
            trio.lowlevel.add_instrument(instrument)
            try:
                await OPERATIONS[name](running)
            except SeatClosed:
                refused = True
            finally:
                trio.lowlevel.remove_instrument(instrument)
                due.set()
        assert files.open_handles == 0 and files.held_locks == ()
        with pytest.raises(SeatClosed):
            await running.seat.prompt("next")
        assert running.seat._parts.host.generation.stale
        return refused

    refused = simulate(started, files, act, False, lives)
    return refused, lives


@pytest.mark.rule("SDK-22", "EXT-52")
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_close_at_any_step_leaves_nothing_and_says_goodbye_once(name: str) -> None:
    results = [closed_at(step, name) for step in range(1, 80)]

    assert results[0][0] and not results[-1][0]
    for _, lives in results:
        assert lives.ended == lives.begun


# -- steps that do not come to an end -------------------------------------------------------


@attrs.frozen
class Never:
    """Options that never come."""

    def check(self, cwd: str) -> None:
        """Always good."""

    async def renewed(self, _options: OpenOptions, _reason: str) -> OpenOptions:
        await trio.sleep_forever()
        raise AssertionError


@pytest.mark.parametrize("how", ["cancel", "close"])
def test_options_that_never_come_do_not_hold_the_conversation(how: str) -> None:
    async def act() -> None:
        async with opened([assistant("one")], services=Never(), **sessions(FOLDER)) as running:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(refused, running) if how == "close" else nursery.start_soon(running.seat.new_session)
                await trio.sleep(100)
                if how == "close":
                    await running.seat.close()
                else:
                    nursery.cancel_scope.cancel()
            assert trio.current_time() < 110
            if how == "cancel":
                await running.seat.prompt("next")

    async def refused(running: Running) -> None:
        with pytest.raises(SeatClosed):
            await running.seat.new_session()

    simulate(act)


def test_a_run_that_does_not_stop_does_not_keep_the_caller_from_giving_up() -> None:
    release = trio.Event

    async def act() -> None:
        over = release()

        async def ignores(*_: Any) -> None:
            with trio.CancelScope(shield=True):
                await over.wait()

        hooks = handling("turn_end", ignores)
        async with opened([assistant("one"), assistant("two")], hooks, limits=Limits(abort_grace_s=None)) as running:
            receipt = await running.seat.submit("go")
            with trio.move_on_after(5) as patience:
                await running.seat.new_session()
            assert patience.cancelled_caught and trio.current_time() < 6
            over.set()
            await receipt.wait()
            assert said(running.seat.context_messages)[0] == ("user", "go")
            await running.seat.prompt("next")

    simulate(act)


@pytest.mark.rule("EXT-40")
def test_an_opening_that_is_cancelled_leaves_nothing_open() -> None:
    files = MemoryLogFiles()

    async def never(*_: Any) -> None:
        await trio.sleep_forever()

    async def act() -> None:
        async with opened([], world=virtual_world(files), **sessions(FOLDER)) as running:
            more = (InlineExtension(name="x", setup=handling("session_start", never)),)
            with trio.move_on_after(1):
                await running.kernel.open(attrs.evolve(running.seat._parts.options, extensions=more))
            assert [seat.is_closed for seat in running.kernel._seats] == [False, True]

    simulate(act)
    assert files.open_handles == 0
