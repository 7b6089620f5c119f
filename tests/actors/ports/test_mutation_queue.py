"""The mutation queue: order, links, cancels."""

from contextlib import suppress
from pathlib import Path

import pytest
import trio
import trio.testing

from camshaft.actors.ports.files import RealFiles
from camshaft.actors.ports.mutation_queue import MutationQueue


async def as_it_is(path: str) -> str:
    await trio.lowlevel.checkpoint()
    return path


@pytest.mark.rule("TOOL-54")
async def test_waiters_of_one_file_get_it_in_the_order_of_their_requests(autojump_clock: trio.testing.MockClock) -> None:
    queue, order = MutationQueue(as_it_is), list[int]()

    async def change(number: int) -> None:
        async with queue.holding("/a"):
            await trio.sleep(10 - number)
            order.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(change, number)
            await trio.testing.wait_all_tasks_blocked()

    assert order == list(range(8))
    assert queue.files_in_use == 0


@pytest.mark.rule("TOOL-54")
async def test_different_files_are_changed_at_the_same_time(autojump_clock: trio.testing.MockClock) -> None:
    queue = MutationQueue(as_it_is)

    async def change(path: str) -> None:
        async with queue.holding(path):
            await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        for path in ("/a", "/b", "/c"):
            nursery.start_soon(change, path)

    assert trio.current_time() - 1 < 0.001


@pytest.mark.rule("TOOL-54")
async def test_a_failure_gives_the_file_to_the_next() -> None:
    queue = MutationQueue(as_it_is)

    with suppress(OSError):
        async with queue.holding("/a"):
            raise OSError("disk")
    async with queue.holding("/a"):
        held = queue.files_in_use

    assert (held, queue.files_in_use) == (1, 0)


async def test_a_waiter_that_is_cancelled_leaves_the_line(autojump_clock: trio.testing.MockClock) -> None:
    queue, order = MutationQueue(as_it_is), list[str]()

    async def change(name: str, cancel_after_s: float) -> None:
        with trio.move_on_after(cancel_after_s):
            async with queue.holding("/a"):
                await trio.sleep(5)
                order.append(name)

    async with trio.open_nursery() as nursery:
        for name, cancel_after_s in (("first", 99), ("gives up", 2), ("is interrupted", 7), ("last", 99)):
            nursery.start_soon(change, name, cancel_after_s)
            await trio.testing.wait_all_tasks_blocked()

    assert order == ["first", "last"]
    assert queue.files_in_use == 0


@pytest.mark.rule("TOOL-54")
async def test_a_link_and_its_target_are_one_file_also_before_it_exists(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    files, inside = RealFiles(), list[str]()

    async def change(path: Path, name: str) -> None:
        async with files.changing(str(path)):
            inside.append(f"{name} in")
            await trio.testing.wait_all_tasks_blocked(0.01)
            inside.append(f"{name} out")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(change, tmp_path / "link" / "new.txt", "link")
        nursery.start_soon(change, tmp_path / "folder" / "new.txt", "target")

    assert inside in (["link in", "link out", "target in", "target out"], ["target in", "target out", "link in", "link out"])
