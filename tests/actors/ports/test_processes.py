"""Real processes on a real clock: how they end, and that nothing of them is left.

Scripts announce that they are ready by printing; tests wait for the text, not for time.
"""

from pathlib import Path
from typing import Final

import attrs
import pytest
import trio

from camshaft.actors.ports.processes import ProcessCommand, ProcessEnd, RealProcesses
from tests.extensions_std.tools.calls import MARK, Switch, arrived, end_all, gone, open_handles, running

TREE: Final = "(sleep 60 & bash -c 'sleep 60 & echo ready; sleep 60') & sleep 60 & (trap '' TERM HUP INT; sleep 60); wait"
"""Shells and sleeps, some in the background, one that ignores polite signals."""


@attrs.define(eq=False)
class Sink:
    """Keeps output, and tells when a text has come."""

    output: bytearray = attrs.field(factory=bytearray)
    _waits: list[tuple[bytes, trio.Event]] = attrs.field(factory=list)

    async def take(self, chunk: bytes) -> None:
        self.output += chunk
        for wanted, event in self._waits:
            if wanted in self.output:
                event.set()
        await trio.lowlevel.checkpoint()

    async def wait_for(self, wanted: bytes) -> None:
        event = trio.Event()
        self._waits.append((wanted, event))
        if wanted not in self.output:
            await event.wait()


def shell(script: str, folder: Path, timeout_s: float | None = None) -> ProcessCommand:
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", MARK: str(folder)}
    return ProcessCommand(arguments=("/bin/bash", "-c", script), cwd=str(folder), environment=environment, timeout_s=timeout_s)


async def test_output_and_errors_come_in_one_stream_and_the_code_is_known(tmp_path: Path) -> None:
    sink = Sink()

    end = await RealProcesses().run(shell("echo out; echo err >&2; exit 3", tmp_path), sink.take)

    assert (end.why, end.exit_code, bytes(sink.output)) == ("exited", 3, b"out\nerr\n")


async def test_errors_go_apart_if_asked(tmp_path: Path) -> None:
    output, errors = Sink(), Sink()

    await RealProcesses().run(shell("echo out; echo err >&2", tmp_path), output.take, on_errors=errors.take)

    assert (bytes(output.output), bytes(errors.output)) == (b"out\n", b"err\n")


async def test_a_program_ended_by_a_signal_has_128_and_its_number(tmp_path: Path) -> None:
    end = await RealProcesses().run(shell("kill -TERM $$", tmp_path), Sink().take)

    assert (end.why, end.exit_code) == ("exited", 143)


async def test_a_program_that_does_not_exist_is_an_os_error_and_leaves_no_handle(tmp_path: Path) -> None:
    before = open_handles()

    with pytest.raises(FileNotFoundError):
        await RealProcesses().run(ProcessCommand(arguments=("/no/such",), cwd=str(tmp_path), environment={}), Sink().take)

    assert open_handles() == before


async def test_a_command_with_a_nul_is_refused_as_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="null byte"):
        await RealProcesses().run(shell("echo a\0b", tmp_path), Sink().take)


@pytest.mark.rule("TOOL-74")
async def test_an_abort_kills_the_whole_tree(tmp_path: Path) -> None:
    sink, switch, ends = Sink(), Switch(), list[ProcessEnd]()

    async def run() -> None:
        ends.append(await RealProcesses().run(shell(TREE, tmp_path), sink.take, signal=switch))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await sink.wait_for(b"ready")
        switch.give()

    assert [(end.why, end.exit_code) for end in ends] == [("aborted", None)]
    assert await gone(tmp_path), running(tmp_path)


@pytest.mark.rule("TOOL-73")
async def test_the_time_limit_kills_the_whole_tree(tmp_path: Path) -> None:
    sink = Sink()

    end = await RealProcesses().run(shell(TREE, tmp_path, timeout_s=0.2), sink.take)

    assert (end.why, end.exit_code) == ("timeout", None)
    assert await gone(tmp_path), running(tmp_path)


async def test_a_cancelled_scope_kills_the_whole_tree_and_closes_the_pipe(tmp_path: Path) -> None:
    before, sink = open_handles(), Sink()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(RealProcesses().run, shell(TREE, tmp_path), sink.take)
        await sink.wait_for(b"ready")
        nursery.cancel_scope.cancel()

    assert await gone(tmp_path), running(tmp_path)
    assert open_handles() <= before


@pytest.mark.rule("TOOL-74")
async def test_a_program_that_ignores_polite_signals_ends_all_the_same(tmp_path: Path) -> None:
    sink, switch = Sink(), Switch()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            lambda: RealProcesses().run(shell("trap '' TERM; echo ready; sleep 60; echo no", tmp_path), sink.take, signal=switch)
        )
        await sink.wait_for(b"ready")
        switch.give()

    assert b"no" not in sink.output
    assert await gone(tmp_path), running(tmp_path)


@pytest.mark.rule("TOOL-75")
async def test_a_background_child_that_keeps_the_pipe_does_not_hold_the_call_and_lives_on(tmp_path: Path) -> None:
    sink = Sink()
    started_s = trio.current_time()

    end = await RealProcesses().run(shell("echo now; sleep 30 & exit 0", tmp_path), sink.take)

    assert (end.why, end.exit_code, bytes(sink.output)) == ("exited", 0, b"now\n")
    assert trio.current_time() - started_s < 5
    assert await arrived(tmp_path, 1)
    end_all(tmp_path)


@pytest.mark.slow
@pytest.mark.rule("TOOL-75")
async def test_each_late_output_keeps_the_call_open_a_little_longer(tmp_path: Path) -> None:
    sink = Sink()

    await RealProcesses().run(shell("(for i in 1 2 3 4 5 6; do sleep 0.03; echo late $i; done) & echo early", tmp_path), sink.take)

    assert bytes(sink.output) == b"early\n" + b"".join([b"late %d\n" % number for number in range(1, 7)])


@pytest.mark.slow
@pytest.mark.rule("TOOL-73")
async def test_a_child_that_prints_for_ever_is_ended_by_the_time_limit_and_the_exit_is_told(tmp_path: Path) -> None:
    end = await RealProcesses().run(shell("(while :; do echo x; sleep 0.02; done) & exit 4", tmp_path, timeout_s=0.6), Sink().take)

    assert (end.why, end.exit_code) == ("timeout", 4)
    assert end.exited_after_s is not None and end.exited_after_s < 0.6
    assert await gone(tmp_path), running(tmp_path)


async def test_a_sink_that_fails_ends_the_program_with_its_error(tmp_path: Path) -> None:
    async def full(_chunk: bytes) -> None:
        await trio.lowlevel.checkpoint()
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        await RealProcesses().run(shell("while :; do echo x; done", tmp_path), full)

    assert await gone(tmp_path), running(tmp_path)


async def test_a_slow_sink_makes_the_program_wait(tmp_path: Path) -> None:
    gate, taken = trio.Event(), list[int]()

    async def slow(chunk: bytes) -> None:
        taken.append(len(chunk))
        await gate.wait()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(RealProcesses().run, shell("head -c 10000000 /dev/zero; touch done", tmp_path), slow)
        with trio.move_on_after(0.2):
            await trio.sleep_forever()
        waited = not await trio.Path(tmp_path / "done").exists()
        gate.set()

    assert waited and len(taken) > 1
    assert sum(taken) == 10_000_000


async def test_fifty_commands_at_once_all_end(tmp_path: Path) -> None:
    processes, codes = RealProcesses(), list[int | None]()

    async def one(number: int) -> None:
        codes.append((await processes.run(shell(f"exit {number}", tmp_path), Sink().take)).exit_code)

    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(one, number)

    assert sorted(codes, key=str) == sorted(range(50), key=str)


async def test_the_first_program_that_can_be_run_is_found(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    processes = RealProcesses()

    assert await processes.find_program(("/no/such", "tool"), str(tmp_path)) == str(tmp_path / "tool")
    assert await processes.find_program(("no-such-program",), str(tmp_path)) is None


class _Canceller(trio.abc.Instrument):
    """Cancels a scope before the step with a given number."""

    def __init__(self, scope: trio.CancelScope, at: int) -> None:
        self.scope, self.at, self.count = scope, at, 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += 1
        if self.count == self.at:
            self.scope.cancel()


@pytest.mark.slow
async def test_a_cancel_at_any_step_leaves_no_process_no_handle_and_no_thread(tmp_path: Path) -> None:
    script = "sleep 60 & echo ready; sleep 0.02; echo more; (sleep 0.02; echo late) & exit 0"
    before = open_handles()
    cancelled = 0

    for at in range(1, 200):
        sink = Sink()
        with trio.CancelScope() as scope:
            canceller = _Canceller(scope, at)
            trio.lowlevel.add_instrument(canceller)
            try:
                await RealProcesses().run(shell(script, tmp_path, timeout_s=5), sink.take)
            finally:
                trio.lowlevel.remove_instrument(canceller)
        if not scope.cancelled_caught:
            break
        cancelled += 1
        assert await gone(tmp_path), (at, running(tmp_path))
        assert open_handles() <= before, at
    else:
        pytest.fail("the run never got through")

    end_all(tmp_path)
    assert cancelled > 5
    assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == 0
