"""The face for asyncio."""

import asyncio
import contextvars
import threading
from pathlib import Path
from typing import Any

import pytest
import trio

from camshaft.actors.actor import SelfWait
from camshaft.actors.embedding import AsyncioKernel, AsyncioSeat
from camshaft.actors.host import KernelClosed, KernelMisuse, Limits, PromptRefused, SeatClosed
from camshaft.extensions_std.providers.scripted import assistant
from camshaft.kernel.messages import AssistantMessage, ToolResultMessage, text_of
from tests.embedding.faces import CALLING, LIMIT_S, Holding, in_asyncio, options

QUICK = Limits(abort_grace_s=0.05)
WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


async def texts(seat: AsyncioSeat) -> list[str]:
    return await seat.call(lambda inner: [text_of(each.content) for each in inner.context_messages if isinstance(each, AssistantMessage)])


async def results(seat: AsyncioSeat) -> list[str]:
    return await seat.call(lambda inner: [text_of(each.content) for each in inner.context_messages if isinstance(each, ToolResultMessage)])


def test_an_asyncio_program_prompts_and_reads() -> None:
    async def program() -> list[str]:
        async with AsyncioKernel() as kernel:
            seat = await kernel.open(options([assistant("hello")]))
            receipt = await seat.submit("hi")
            await seat.wait(receipt)
            return await texts(seat)

    assert in_asyncio(program) == ["hello"]


def test_the_errors_are_those_of_the_trio_face() -> None:
    async def program() -> None:
        async with AsyncioKernel() as kernel:
            seat = await kernel.open(options([]))
            with pytest.raises(PromptRefused):
                await seat.prompt("hi", streaming_behavior="never")  # type: ignore[arg-type]  # a wrong value on purpose
            await seat.close()
            with pytest.raises(SeatClosed):
                await seat.prompt("hi")
            with pytest.raises(SeatClosed):
                async with seat.watch():
                    pass
        with pytest.raises(KernelClosed):
            await seat.prompt("hi")
        await kernel.close()

    in_asyncio(program)


def test_cancelling_a_prompt_ends_the_wait_and_not_the_run() -> None:
    async def program() -> None:
        holding = Holding()
        async with AsyncioKernel() as kernel:
            seat = await kernel.open(options(CALLING, holding.tool()))
            waiting = asyncio.create_task(seat.prompt("hi"))
            await holding.wait_begun()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert not holding.ended.is_set()
            await seat.call(lambda _seat: holding.go_on.set())
            await seat.wait_idle()
            assert (await texts(seat))[-1] == "done"

    in_asyncio(program)


def test_a_time_limit_of_the_host_is_a_time_limit() -> None:
    async def program() -> None:
        async with AsyncioKernel(limits=QUICK) as kernel:
            seat = await kernel.open(options(CALLING, Holding().tool()))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await seat.prompt("hi")
            await seat.abort()
            assert await seat.call(lambda inner: inner.is_idle)

    in_asyncio(program)


def test_a_cancelled_compaction_is_over_when_the_caller_goes_on() -> None:
    async def program() -> None:
        async with AsyncioKernel() as kernel:
            seat = await kernel.open(options([assistant("hello")]))
            ended = []

            async def slow(_seat: object) -> None:
                try:
                    await trio.sleep_forever()
                finally:
                    ended.append(True)

            call = asyncio.create_task(seat.call(slow))
            await asyncio.sleep(0.01)  # real time: asyncio has no virtual clock
            call.cancel()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert ended == [True]

    in_asyncio(program)


def test_a_cancelled_open_leaves_no_conversation_open() -> None:
    async def program() -> None:
        async with AsyncioKernel() as kernel:
            for ticks in range(40):
                opening = asyncio.create_task(kernel.open(options([])))
                for _ in range(ticks):
                    await asyncio.sleep(0.00005)  # real time: asyncio has no virtual clock
                was_done = opening.done()
                opening.cancel()
                given = await asyncio.gather(opening, return_exceptions=True)
                if was_done:
                    assert isinstance(given[0], AsyncioSeat)
                    await given[0].close()
                else:
                    assert isinstance(given[0], asyncio.CancelledError)
            assert await kernel.call(lambda inner: [seat for seat in inner._seats if not seat.is_closed]) == []

    in_asyncio(program)


def test_a_watch_is_an_async_iterator_and_a_cancelled_wait_loses_nothing() -> None:
    async def program() -> tuple[list[str], list[str]]:
        async with AsyncioKernel() as kernel:
            seat = await kernel.open(options([assistant("a"), assistant("b"), assistant("c")]))
            found: list[str] = []
            async with seat.watch() as watch:
                prompts = asyncio.create_task(_three(seat))
                try:
                    while True:
                        taking = asyncio.ensure_future(watch.__anext__())
                        done, _ = await asyncio.wait([taking], timeout=0.0002)
                        if not done:
                            taking.cancel()
                        [item] = await asyncio.gather(taking, return_exceptions=True)
                        if isinstance(item, StopAsyncIteration):
                            raise item
                        if isinstance(item, asyncio.CancelledError):
                            continue
                        found += [entry.id for entry in item.entries]  # type: ignore[union-attr]  # no gap comes here
                except StopAsyncIteration:
                    pass
                await prompts
            return found, await seat.call(lambda inner: [entry.id for entry in inner.state.tree.entries()])

    found, stored = in_asyncio(program)
    assert found == stored[-len(found) :] and len(found) >= 6


async def _three(seat: AsyncioSeat) -> None:
    for _ in range(3):
        await seat.prompt("hi")
        await asyncio.sleep(0.005)  # real time: asyncio has no virtual clock
    await seat.close()


def test_a_loop_that_stands_still_does_not_slow_a_run() -> None:
    async def program() -> None:
        async with AsyncioKernel() as kernel:
            seat = await kernel.open(options([assistant(f"{number}") for number in range(200)]))
            done = threading.Event()

            async def many(inner: Any) -> None:
                for _ in range(200):
                    await inner.prompt("hi")
                done.set()

            async with seat.watch() as watch:
                runs = asyncio.create_task(seat.call(many))
                await asyncio.sleep(0)  # real time: asyncio has no virtual clock
                assert done.wait(LIMIT_S)  # the loop is blocked here
                await runs
                await seat.close()
                items = [item async for item in watch]
            assert any([hasattr(item, "snapshot") for item in items]), "what was too much is a gap"
            assert len(watch.snapshot.entries) >= 400

    in_asyncio(program)


def test_an_asyncio_tool_runs_in_the_hosts_loop_with_the_callers_context() -> None:
    async def program() -> None:
        heard: list[object] = []
        seats: list[AsyncioSeat] = []

        async def work() -> str:
            """Does it."""
            await asyncio.sleep(0.001)  # real time: asyncio has no virtual clock
            heard.extend([asyncio.get_running_loop() is loop, WHO.get()])
            with pytest.raises(SelfWait):
                await seats[0].wait_idle()
            return "worked"

        loop = asyncio.get_running_loop()
        async with AsyncioKernel() as kernel:
            seats.append(await kernel.open(options(CALLING, kernel.on_loop(work))))
            WHO.set("ada")
            await seats[0].prompt("hi")
            assert await results(seats[0]) == ["worked"]
        assert heard == [True, "ada"]

    in_asyncio(program)


def test_an_abort_cancels_an_asyncio_tool() -> None:
    async def program() -> None:
        begun, cancelled = asyncio.Event(), []

        async def work() -> str:
            """Does it."""
            begun.set()
            try:
                await asyncio.sleep(3600)  # real time: asyncio has no virtual clock
            except asyncio.CancelledError:
                cancelled.append(True)
                raise
            return ""

        async with AsyncioKernel(limits=QUICK) as kernel:
            seat = await kernel.open(options(CALLING, kernel.on_loop(work)))
            await seat.submit("hi")
            await begun.wait()
            await seat.abort()
            assert cancelled == [True]

    in_asyncio(program)


@pytest.mark.parametrize("what", ["raises", "cancels itself", "raises a group"])
def test_what_an_asyncio_tool_raises_is_an_error_result(what: str) -> None:
    async def program() -> list[str]:
        async def work() -> str:
            """Does it."""
            if what == "raises":
                raise LookupError("no such thing")
            if what == "raises a group":
                raise ExceptionGroup("of a task group", [LookupError("no such thing")])
            raise asyncio.CancelledError

        async with AsyncioKernel() as kernel:
            seat = await kernel.open(options(CALLING, kernel.on_loop(work)))
            await seat.prompt("hi")
            assert (await texts(seat))[-1] == "done"
            return await results(seat)

    [shown] = in_asyncio(program)
    assert {"raises": "no such thing", "cancels itself": "was cancelled", "raises a group": "no such thing"}[what] in shown


def test_leaving_by_cancellation_closes_at_once_and_stores_the_aborted_turn(tmp_path: Path) -> None:
    holding = Holding()

    async def program() -> None:
        async with AsyncioKernel() as kernel:
            seat = await kernel.open(options(CALLING, holding.tool(), folder=tmp_path))
            await seat.prompt("hi")

    async def around() -> None:
        task = asyncio.create_task(program())
        await holding.wait_begun()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    in_asyncio(around)
    assert holding.ended.is_set()
    [file] = tmp_path.glob("*.jsonl")
    assert '"toolResult"' in file.read_text("utf-8")


def test_a_loop_that_is_closed_early_leaves_a_kernel_that_can_be_closed() -> None:
    holding = Holding()
    loop = asyncio.new_event_loop()
    kernel = AsyncioKernel()

    async def program() -> AsyncioSeat:
        await kernel.start()
        seat = await kernel.open(options(CALLING, holding.tool(), kernel.on_loop(_never)))
        loop.prompting = asyncio.ensure_future(seat.prompt("hi"))  # type: ignore[attr-defined]  # what an early end leaves behind is kept quiet
        await holding.wait_begun()
        return seat

    seat = loop.run_until_complete(program())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()

    async def later() -> None:
        await seat.call(lambda _seat: holding.go_on.set())
        await seat.wait_idle()
        assert (await texts(seat))[-1] == "done"
        await kernel.close()

    in_asyncio(later)
    del loop.prompting  # type: ignore[attr-defined]  # what an early end leaves behind is kept quiet


async def _never() -> str:
    """Nothing."""
    await asyncio.sleep(3600)  # real time: asyncio has no virtual clock
    return ""


def test_a_tool_whose_loop_is_closed_is_an_error_result() -> None:
    loop = asyncio.new_event_loop()
    kernel = AsyncioKernel(limits=QUICK)
    begun = threading.Event()

    async def work() -> str:
        """Does it."""
        begun.set()
        await asyncio.sleep(3600)  # real time: asyncio has no virtual clock
        return ""

    async def program() -> AsyncioSeat:
        await kernel.start()
        seat = await kernel.open(options(CALLING, kernel.on_loop(work)))
        await seat.submit("hi")
        await asyncio.to_thread(begun.wait, LIMIT_S)
        return seat

    seat = loop.run_until_complete(program())
    tasks = asyncio.all_tasks(loop)
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()

    async def later() -> list[str]:
        await seat.wait_idle()
        answer = await results(seat)
        await kernel.close()
        return answer

    assert "loop that does this was closed" in in_asyncio(later)[0]
    for task in tasks:
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # what an early end leaves behind is kept quiet


def test_on_loop_before_the_start_says_what_to_do() -> None:
    with pytest.raises(KernelMisuse, match="async with"):
        AsyncioKernel().on_loop(_never)


@pytest.mark.slow
def test_two_thousand_calls_at_once_are_answered() -> None:
    async def program() -> None:
        async with AsyncioKernel() as kernel:
            seat = await kernel.open(options([]))
            names = await asyncio.gather(*[seat.call(lambda _seat, each=number: each) for number in range(2000)])  # type: ignore[misc]  # the type of a lambda with a default
            assert names == list(range(2000))

    in_asyncio(program)
