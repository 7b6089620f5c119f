"""Replacing sessions while the disk refuses, and over and over: nothing is damaged, nothing stays behind."""

import errno
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.errors import SessionSealed, StorageError
from camshaft.actors.host import ChildOptions, ExtensionSource
from camshaft.actors.simulation.log_files import Fault, MemoryLogFiles, Operation
from camshaft.extensions_std.providers.scripted import Hang, assistant
from tests.actors.replacing import put, sessions
from tests.actors.running import Running, opened, said, simulate, virtual_world
from tests.actors.test_replacement_moments import FOLDER, OPERATIONS, OTHER, RUNNING, Lives

FULL = OSError(errno.ENOSPC, "full")


@attrs.define
class Filling:
    """A disk that refuses one change, number `at` from when it is `armed`, or that and all after it."""

    at: int
    is_lasting: bool
    armed: bool = False
    count: int = 0

    def __call__(self, _operation: Operation) -> Fault | None:
        if not self.armed:
            return None
        self.count += 1
        place = self.count - 1
        return Fault(error=FULL) if place == self.at or (self.is_lasting and place > self.at) else None

    def over(self) -> bool:
        """Whether there was no such change; from here on the disk has room."""
        self.armed = False
        return self.count <= self.at


def every_fault(attempt: Callable[[Filling], Any]) -> int:
    """One attempt for each change that the disk may refuse; how many there are."""
    for at in range(60):
        for is_lasting in (False, True):
            disk = Filling(at, is_lasting)
            simulate(attempt, disk)
        if disk.count <= at:
            return at
    raise AssertionError("more changes than expected")


@pytest.mark.rule("EXT-44", "SES-54")
@pytest.mark.parametrize(("name", "is_busy"), [*[(name, False) for name in OPERATIONS], *[(name, True) for name in RUNNING]])
def test_a_full_disk_at_any_step_damages_no_session_and_the_conversation_goes_on(name: str, is_busy: bool) -> None:
    async def attempt(disk: Filling) -> None:
        files, lives = MemoryLogFiles(disk), Lives()
        more = {**sessions(FOLDER), "durability": "commit"}
        await replaced(files, lives, disk, more)
        assert files.open_handles == 0 and files.held_locks == ()
        assert sorted(lives.begun) == sorted(lives.ended)

    async def replaced(files: MemoryLogFiles, lives: Lives, disk: Filling, more: Any) -> None:
        script: list[Any] = [assistant("one"), [Hang()]]
        async with opened(script, lives.setup, world=virtual_world(files), **more) as running:
            await running.seat.prompt("first")
            path = str(running.seat.session_file)
            put(running, OTHER, files.read(path))
            put(running, Path("/elsewhere/other.jsonl"), files.read(path))
            if is_busy:
                await running.seat.submit("second")
                await trio.sleep(1)
            before = files.read(path)
            disk.armed = True
            try:
                await OPERATIONS[name](running)
            except StorageError:
                assert running.seat.session_file == path
            await trio.sleep(10)
            disk.over()
            await running.seat.abort()
            assert files.read(path).startswith(before)
            running.provider.set_responses([assistant("still here")])
            try:
                await running.seat.prompt("next")
            except SessionSealed:
                await running.seat.switch_session(str(running.seat.session_file))
                await running.seat.prompt("next")
            assert said(running.seat.context_messages)[-1] == ("assistant", "still here")

    every_fault(attempt)


@pytest.mark.rule("SES-54")
def test_a_full_disk_at_any_step_of_a_kept_child_is_its_own_affair() -> None:
    async def attempt(disk: Filling) -> None:
        files = MemoryLogFiles(disk)
        more = {**sessions(FOLDER), "durability": "commit"}
        async with opened([assistant("one"), assistant("two"), assistant("three")], world=virtual_world(files), **more) as running:
            await running.seat.prompt("first")
            await trio.sleep(1)
            disk.armed = True
            try:
                async with running.seat.open_child(ChildOptions(is_kept=True)) as child:
                    await child.prompt("part of it")
            except StorageError:
                pass
            disk.over()
            await running.seat.prompt("next")
            await trio.sleep(1)
            assert said(running.seat.context_messages)[-2] == ("user", "next")
            assert [seat for seat in running.kernel._seats if not seat.is_closed] == [running.seat]
            assert files.open_handles == 0 and files.held_locks == ()

    assert every_fault(attempt) > 10


@pytest.mark.rule("SDK-17", "SES-54")
def test_a_sealed_session_is_opened_again_by_switching_to_it() -> None:
    broken: list[Fault] = []
    files = MemoryLogFiles(lambda operation: broken[0] if broken and operation.kind == "sync" else None)

    async def act() -> None:
        more = {**sessions(FOLDER), "durability": "commit"}
        async with opened([assistant(text) for text in ("one", "two", "three")], world=virtual_world(files), **more) as running:
            await running.seat.prompt("first")
            path = str(running.seat.session_file)
            broken.append(Fault(error=FULL))
            with pytest.raises(SessionSealed):
                await running.seat.prompt("second")
            broken.clear()
            with pytest.raises(SessionSealed):
                await running.seat.prompt("again")
            await running.seat.switch_session(path)
            await running.seat.prompt("third")
            assert said(running.seat.context_messages)[-1][0] == "assistant"
            assert files.held_locks == ()

    simulate(act)


# -- over and over ----------------------------------------------------------------------

LIVING = (
    "Cell", "SeatParts", "ExtensionHost", "ExtensionAPI", "ExtensionContext", "Oversight", "Generation", "SessionActor", "JsonlLog",
    "ProviderRegistry", "McpRegistrations", "Rest", "Flights", "Unit", "Task", "CancelScope", "Nursery", "AbortSignal", "Bounds",
)  # fmt: skip
"""What a session and a generation are made of, and what must not be left of those that ended."""

EXTENSION = """
import trio

def setup(api):
    async def start(event, ctx):
        ctx.start_task(trio.sleep_forever)
        ctx.ui.set_status("x", "on")

    api.on("session_start", start)
    api.on("session_shutdown", lambda event, ctx: None)
    api.events.on("channel", lambda data: None)
    api.register_mcp_server("server", {"command": "x"})
    api.register_command("go", lambda arguments, ctx: None)
"""


@pytest.mark.rule("EXT-46", "EXT-48")
def test_two_hundred_replacements_leave_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "long_lived.py").write_text(EXTENSION)

    async def rounds(running: Running, count: int) -> dict[str, int]:
        first = running.seat.session_file
        assert first is not None
        for number in range(count):
            leaf = running.seat.state.leaf_id
            assert leaf is not None
            match number % 5:
                case 0:
                    await running.seat.fork(leaf, position="at")
                case 1:
                    await running.seat.new_session()
                case 2:
                    await running.seat.reload()
                case _:
                    await running.seat.switch_session(first)
            if number % 10 == 4:
                running.provider.set_responses([assistant("answer")])
                await running.seat.prompt("go on")
        await trio.sleep(1)
        running.heard.clear()
        running.provider.requests.clear()
        gc.collect()
        kinds = [type(each).__name__ for each in gc.get_objects()]
        return {
            **{kind: kinds.count(kind) for kind in LIVING},
            "tasks": trio.lowlevel.current_statistics().tasks_living,
            "modules": len(sys.modules),
            "subscriptions": len(running.seat._parts.ground.bus._subscriptions),
        }

    files = MemoryLogFiles()

    async def act() -> None:
        sources = (ExtensionSource(path=f"{tmp_path}/long_lived.py"),)
        async with opened([assistant("one")], world=virtual_world(files), sources=sources, **sessions(FOLDER)) as running:
            await running.seat.prompt("first")
            assert running.seat.load_errors == ()
            before, after = await rounds(running, 10), await rounds(running, 200)
            grown = {kind: (before[kind], count) for kind, count in after.items() if count > before[kind] + 5}
            assert grown == {}
            assert running.errors() == []
            assert files.open_handles == 0 and files.held_locks == ()

    simulate(act)
    assert files.open_handles == 0
