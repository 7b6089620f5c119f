"""Several conversations in one kernel, and what comes out of its block."""

import errno

import pytest
import trio

from camshaft.actors.errors import StorageError
from camshaft.actors.host import OpenSession, SeatClosed, open_kernel
from camshaft.actors.simulation.log_files import Fault, MemoryLogFiles, Operation
from camshaft.extensions_std.providers.scripted import Hang, ScriptedProvider, assistant
from tests.actors.running import handling, opened, options, said, simulate, virtual_world

# -- several conversations -----------------------------------------------------------------------


def test_two_conversations_of_one_kernel_know_nothing_of_each_other() -> None:
    async def both() -> tuple[list[tuple[str | None, str]], list[tuple[str | None, str]], list[int]]:
        one, two = ScriptedProvider(), ScriptedProvider()
        one.set_responses([[Hang()]])
        two.set_responses([assistant("done")])
        heard: list[int] = []
        async with open_kernel(world=virtual_world()) as kernel:
            first, second = await kernel.open(options(one)), await kernel.open(options(two))
            first.subscribe(lambda _event: heard.append(1))
            second.subscribe(lambda _event: heard.append(2))
            await first.submit("go")
            await second.prompt("go")
            await first.abort()
            await first.close()
            with pytest.raises(SeatClosed):
                await first.prompt("more")
            two.set_responses([assistant("again")])
            await second.prompt("more")
            return said(first.context_messages), said(second.context_messages), sorted(set(heard))
        raise AssertionError

    assert simulate(both) == (
        [("user", "go"), ("assistant", "aborted: Request was aborted")],
        [("user", "go"), ("assistant", "done"), ("user", "more"), ("assistant", "again")],
        [1, 2],
    )


@pytest.mark.slow
def test_a_thousand_idle_conversations_have_no_task_of_their_own() -> None:
    async def idle() -> tuple[int, float]:
        provider = ScriptedProvider()
        async with open_kernel(world=virtual_world()) as kernel:
            before = trio.lowlevel.current_statistics().tasks_living
            for _ in range(1000):
                await kernel.open(options(provider))
            after = trio.lowlevel.current_statistics().tasks_living
            started = trio.current_time()
        return after - before, trio.current_time() - started

    assert simulate(idle) == (0, 0)


def test_what_the_block_raises_comes_out_as_it_is() -> None:
    async def raising(error: BaseException) -> None:
        async with opened([]):
            raise error

    for error in (ValueError("bad"), ExceptionGroup("own", [ValueError("bad")]), KeyboardInterrupt()):
        with pytest.raises(type(error)) as caught:
            simulate(raising, error)
        assert repr(caught.value) == repr(error)


def test_an_interrupt_while_the_block_closes_ends_it_at_once() -> None:
    def interrupted(_event: object, _ctx: object) -> None:
        raise KeyboardInterrupt

    async def closing() -> None:
        async with opened([], handling("session_shutdown", interrupted)):
            pass

    with pytest.raises(KeyboardInterrupt):
        simulate(closing)


def broken_sync_of_b(operation: Operation) -> Fault | None:
    is_hit = operation.kind == "sync" and operation.path.startswith("/s/b")
    return Fault(error=OSError(errno.EIO, "broken")) if is_hit else None


def test_a_log_that_cannot_be_closed_leaves_no_other_open() -> None:
    async def closed(files: MemoryLogFiles) -> None:
        provider = ScriptedProvider()
        async with open_kernel(world=virtual_world(files)) as kernel:
            seats = [await kernel.open(options(provider, session=OpenSession(path=f"/s/{name}.jsonl"))) for name in "abc"]
            provider.set_responses([assistant("done")] * 3)
            for seat in seats:
                await seat.prompt("go")
            for seat in seats:
                seat.set_session_name("not synced yet")
            files.fault = broken_sync_of_b

    files = MemoryLogFiles()

    with pytest.raises(StorageError, match=r"/s/b\.jsonl"):
        simulate(closed, files)

    assert (files.open_handles, files.held_locks) == (0, ())
