"""The face for plain threads."""

import contextvars
import os
import signal
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.actor import SelfWait
from camshaft.actors.embedding import BlockingKernel, BlockingSeat
from camshaft.actors.host import (
    CommandRefused,
    Gap,
    InlineExtension,
    InvalidOptions,
    KernelClosed,
    KernelMisuse,
    Limits,
    OpenOptions,
    PromptRefused,
    SeatClosed,
    WatchedUi,
)
from camshaft.extensions_std.providers.scripted import assistant
from camshaft.kernel.messages import AssistantMessage, text_of
from tests.embedding.faces import CALLING, LIMIT_S, Holding, options

QUICK = Limits(abort_grace_s=0.05)
WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


def texts(seat: BlockingSeat) -> list[str]:
    return seat.call(lambda inner: [text_of(each.content) for each in inner.context_messages if isinstance(each, AssistantMessage)])


def test_a_plain_thread_prompts_and_reads() -> None:
    with BlockingKernel() as kernel:
        seat = kernel.open(options([assistant("hello")]))
        receipt = seat.prompt("hi")

        assert receipt.disposition == "started"
        assert texts(seat) == ["hello"]
        assert seat.call(lambda inner: inner.is_idle)
        assert seat.statistics().session_file is None


def test_the_errors_are_those_of_the_trio_face_and_show_where_the_host_called(tmp_path: Path) -> None:
    with BlockingKernel() as kernel:
        with pytest.raises(InvalidOptions):
            kernel.open(OpenOptions(cwd=str(tmp_path), tools=("nobody-has-it", 5)))  # type: ignore[arg-type]  # a wrong value on purpose
        seat = kernel.open(options([]))
        with pytest.raises(PromptRefused) as refused:
            seat.prompt("hi", streaming_behavior="never")  # type: ignore[arg-type]  # a wrong value on purpose

        shown = "".join(traceback.format_exception(refused.value))
        assert "test_blocking.py" in shown and "seat.py" in shown
        with pytest.raises(CommandRefused):
            seat.set_label("nothing", "x")
        seat.close()
        with pytest.raises(SeatClosed):
            seat.prompt("hi")


def test_after_the_block_every_call_raises_kernel_closed() -> None:
    with BlockingKernel() as kernel:
        seat = kernel.open(options([]))

    with pytest.raises(KernelClosed):
        seat.prompt("hi")
    with pytest.raises(KernelClosed):
        kernel.open(options([]))
    kernel.close()
    with pytest.raises(KernelMisuse, match="once"):
        kernel.start()


def test_before_the_start_calls_say_what_is_missing() -> None:
    with pytest.raises(KernelClosed, match="start"):
        BlockingKernel().open(options([]))
    BlockingKernel().close()


def test_leaving_the_block_aborts_what_runs_and_stores_it(tmp_path: Path) -> None:
    holding = Holding()
    with BlockingKernel(limits=QUICK) as kernel:
        seat = kernel.open(options(CALLING, holding.tool(), folder=tmp_path))
        seat.submit("hi")
        assert holding.begun.wait(LIMIT_S)

    assert holding.ended.is_set()
    [file] = tmp_path.glob("*.jsonl")
    assert '"toolResult"' in file.read_text("utf-8")


def test_a_thread_that_waits_while_another_closes_gets_its_answer() -> None:
    holding = Holding()
    outcome: list[str] = []
    kernel = BlockingKernel(limits=QUICK).start()
    seat = kernel.open(options(CALLING, holding.tool()))

    def waits() -> None:
        try:
            outcome.append(seat.prompt("hi").disposition)
        except KernelClosed:
            outcome.append("closed")

    thread = threading.Thread(target=waits)
    thread.start()
    assert holding.begun.wait(LIMIT_S)
    kernel.close()
    thread.join(LIMIT_S)

    assert outcome == ["started"]


def test_an_interrupt_ends_the_wait_and_not_the_run() -> None:
    holding = Holding()
    with BlockingKernel() as kernel:
        seat = kernel.open(options(CALLING, holding.tool()))

        def interrupt() -> None:
            holding.begun.wait(LIMIT_S)
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Thread(target=interrupt)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            seat.prompt("hi")
        timer.join()

        assert not holding.ended.is_set()
        seat.call(lambda _seat: holding.go_on.set())
        seat.wait_idle()
        assert texts(seat)[-1] == "done"


def test_an_interrupt_that_leaves_the_block_closes_at_once() -> None:
    holding = Holding()

    def program() -> None:
        with BlockingKernel() as kernel:
            kernel.open(options(CALLING, holding.tool())).submit("hi")
            assert holding.begun.wait(LIMIT_S)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        program()

    assert holding.ended.is_set()


def test_a_watch_is_a_plain_iterator_that_ends_with_the_conversation() -> None:
    with BlockingKernel() as kernel:
        seat = kernel.open(options([assistant("hello")]))
        with seat.watch() as watch:
            seat.prompt("hi")
            seat.close()
            moments = list(watch)

    assert watch.snapshot.is_whole
    types = [moment.event.type for moment in moments]  # type: ignore[union-attr]  # no gap comes here
    assert types[0] == "agent_start" and "agent_settled" in types
    held = [entry.message.role for moment in moments for entry in moment.entries if entry.type == "message"]  # type: ignore[union-attr]  # no gap comes here
    assert held == ["system", "user", "assistant"]


def test_a_watch_that_outlives_its_kernel_ends() -> None:
    kernel = BlockingKernel().start()
    with kernel.open(options([])).watch() as watch:
        kernel.close()
        assert list(watch) == []
        assert list(watch) == []


def test_a_slow_watch_gets_a_gap_whose_snapshot_has_every_entry() -> None:
    with BlockingKernel() as kernel:
        seat = kernel.open(options([assistant("hello")]))
        with seat.watch() as watch:
            for number in range(1500):
                seat.set_session_name(f"name {number}")
            entries, gaps = list(watch.snapshot.entries), 0
            seat.append_entry("mark")
            for item in watch:
                if isinstance(item, Gap):
                    assert watch.snapshot is item.snapshot
                    gaps += 1
                    entries = [*([] if item.snapshot.is_whole else entries), *item.snapshot.entries]
                else:
                    entries += item.entries
                if entries and entries[-1].type == "custom":
                    break
        stored = seat.call(lambda inner: [entry.id for entry in inner.state.tree.entries()])

    assert [entry.id for entry in entries] == stored
    assert gaps == 1


def test_a_dialog_is_answered_from_another_thread() -> None:
    asked = []

    def setup(api: Any) -> None:
        async def ask(_event: Any, ctx: Any) -> None:
            asked.append(await ctx.ui.confirm("Sure?", "really"))

        api.on("agent_start", ask)

    with BlockingKernel() as kernel:
        given = options([assistant("hello")], mode="rpc", ui=WatchedUi())
        seat = kernel.open(attrs.evolve(given, extensions=(InlineExtension(name="asks", setup=setup),)))
        with seat.watch() as watch:
            seat.submit("hi")
            for item in watch:
                if item.event.type == "dialog_opened":  # type: ignore[union-attr]  # no gap comes here
                    assert seat.answer_dialog(item.event.dialog.id, True)  # type: ignore[union-attr]  # no gap comes here
                    assert not seat.answer_dialog(item.event.dialog.id, False)  # type: ignore[union-attr]  # no gap comes here
                    break
        seat.wait_idle()

    assert asked == [True]


def test_the_callers_context_variables_reach_the_tools_of_its_run() -> None:
    heard = []

    async def work() -> str:
        """Does it."""
        heard.append(WHO.get())
        return "worked"

    with BlockingKernel() as kernel:
        seat = kernel.open(options(CALLING, work))
        WHO.set("ada")
        seat.prompt("hi")

    assert heard == ["ada"]


def test_a_blocking_tool_runs_in_a_worker_and_may_use_the_face_but_not_wait_for_itself() -> None:
    seats: list[BlockingSeat] = []
    heard: list[object] = []

    def work(what: str = "") -> str:
        """Does it."""
        heard.append(threading.current_thread() is not kernel.portal._thread)
        heard.append(seats[0].call(lambda inner: inner.is_idle))
        try:
            seats[0].wait_idle()
        except SelfWait as error:
            heard.append(type(error))
        return "worked" + what

    with BlockingKernel() as kernel:
        seats.append(kernel.open(options(CALLING, kernel.in_worker(work))))
        seats[0].prompt("hi")

    assert heard == [True, False, SelfWait]


def test_a_listener_that_calls_the_face_is_refused_instead_of_hanging() -> None:
    with BlockingKernel() as kernel:
        seat = kernel.open(options([assistant("hello")]))
        unsubscribe = seat.subscribe(lambda _event: seat.wait_idle())
        seat.prompt("hi")
        told = seat.take_unreported_diagnostics()
        unsubscribe()

    assert "runs in the kernel's thread" in told[0].message
    with BlockingKernel() as other, pytest.raises(KernelMisuse):
        other.call(lambda _kernel: other.close())


def test_what_a_called_function_raises_reaches_the_caller_and_harms_nobody() -> None:
    def leaves(_kernel: object) -> None:
        raise SystemExit(3)

    async def fails(_kernel: object) -> None:
        await trio.lowlevel.checkpoint()
        raise ExceptionGroup("several", [LookupError("one")])

    with BlockingKernel() as kernel:
        with pytest.raises(SystemExit):
            kernel.call(leaves)
        with pytest.raises(LookupError):
            kernel.call(fails)
        assert kernel.call(lambda _kernel: 5) == 5


@pytest.mark.slow
def test_fifty_threads_use_one_kernel_at_once(tmp_path: Path) -> None:
    def one(number: int) -> list[str]:
        seat = kernel.open(options([assistant(f"a{number}"), assistant("b")], folder=tmp_path))
        with seat.watch() as watch:
            seat.prompt("hi")
            seat.prompt("again")
            seat.close()
            assert [item.event.type for item in watch].count("agent_settled") == 2  # type: ignore[union-attr]  # no gap comes here
        return seat.call(lambda inner: [text_of(each.content) for each in inner.context_messages if isinstance(each, AssistantMessage)])

    before = threading.active_count()
    with BlockingKernel() as kernel, ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(one, range(50)))

    assert answers == [[f"a{number}", "b"] for number in range(50)]
    assert threading.active_count() <= before + 40


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")  # that this is unwise is the point
def test_a_forked_process_is_refused_at_once() -> None:
    with BlockingKernel() as kernel:
        seat = kernel.open(options([]))
        child = os.fork()
        if child == 0:
            try:
                seat.prompt("hi")
            except KernelMisuse:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        seat.set_session_name("still here")
