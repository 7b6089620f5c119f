"""Child processes: one program at a time, in a session of its own, ended together with all it started.

Theory of operation. `run` starts the program as leader of a new session and process group,
standard input from the null device, standard output and standard error in one pipe (in two
if asked), and pumps what comes to the caller's sink. It is over when

* the program has exited and the pipe is at its end, or was quiet for QUIET_S since the last
  output or the exit, whichever came later: a background child that keeps the pipe open does
  not hold the call (TOOL-75). Such children are left alone;
* the time is up, or an abort was requested: the whole group gets KILL (TOOL-73, TOOL-74),
  after TERM and a grace if the command has one (API-25); meanwhile its output is still read;
* the caller's scope is cancelled, or the sink raises: KILL too.

Whatever happens, at whatever await, the pipe is closed and the program reaped before `run`
is left. It is reaped last, and through Trio's `wait` alone: until then its number, which is
that of the group, belongs to nobody else, so a KILL never meets strangers. (Where the system
has no process handles, an exit can only be noticed by reaping; there the group is killed after
the exit only if the pipe is still held.) Not reached: a process that left the group (`setsid`),
and a program that the operating system cannot end within REAP_S after KILL.
"""

import errno
import math
import os
import shutil
import signal as signals
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, Literal, Protocol

import attrs
import trio

from camshaft.kernel import shapes
from camshaft.kernel.tools import Signal

CHUNK_BYTES_MAX: Final = 64 * 1024
"""One read; as much as a pipe holds."""

QUIET_S: Final = 0.1
"""Silence after the exit that ends a call whose pipe is still held (TOOL-75)."""

REAP_S: Final = 5.0
"""Wait for a killed program. Longer takes only one stuck in the kernel, which nobody can end."""

THREADS_MAX: Final = 8
"""Searches for programs at the same time."""

Sink = Callable[[bytes], Awaitable[None]]
"""Takes each piece of output in order, never empty. While it waits, nothing is read, and a program that writes on waits too."""


@shapes.frozen(kw_only=True)
class ProcessCommand:
    """A program to run."""

    arguments: tuple[str, ...]
    """The program's path or name, and its arguments."""
    cwd: str
    environment: Mapping[str, str]
    """All of it; nothing is inherited."""
    timeout_s: float | None = None
    """None: no limit. Counted from the start of the program."""
    term_grace_s: float = 0
    """How long after a request to end (TERM) the program is ended by force (KILL); 0: at once."""


@shapes.frozen(kw_only=True)
class ProcessEnd:
    """How a program ended."""

    why: Literal["exited", "timeout", "aborted"]
    exit_code: int | None
    """128 + n if signal n ended it (TOOL-72); None if it had not exited when it was killed."""
    exited_after_s: float | None
    """Seconds from start to exit; None as above."""


class Processes(Protocol):
    """What tools need of the operating system's processes."""

    async def run(
        self, command: ProcessCommand, on_output: Sink, *, on_errors: Sink | None = None, signal: Signal | None = None
    ) -> ProcessEnd:
        """Runs to the end, an abort or the time limit. With `on_errors`, standard error goes there.

        Raises OSError if the program cannot be started. Cancelled or failing, it leaves no process, pipe or task.
        """
        ...

    async def find_program(self, names: Sequence[str], search_path: str) -> str | None:
        """The first of the names or paths that can be run, as a path; names are looked for in `search_path`."""
        ...


@shapes.define(eq=False)
class RealProcesses:
    """Processes of this computer. POSIX only: it needs sessions and process groups."""

    _threads: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(THREADS_MAX))

    async def run(
        self, command: ProcessCommand, on_output: Sink, *, on_errors: Sink | None = None, signal: Signal | None = None
    ) -> ProcessEnd:
        """As the port says."""
        output = _Pipe.opened(on_output)
        errors = _Pipe.opened(on_errors) if on_errors is not None else None
        pipes = [output] if errors is None else [output, errors]
        try:
            process = await _started(command, output, errors or output)
            return await _Child(process=process, pipes=pipes, term_grace_s=command.term_grace_s).attended(command.timeout_s, signal)
        finally:
            for pipe in pipes:
                pipe.close()

    async def find_program(self, names: Sequence[str], search_path: str) -> str | None:
        """As the port says."""
        return await trio.to_thread.run_sync(partial(_first_program, tuple(names), search_path), limiter=self._threads)


@shapes.define(eq=False)
class _Pipe:
    """One pipe from a child: our end is read without blocking, its end is closed once the child has it."""

    sink: Sink
    read_end: int
    write_end: int | None

    @classmethod
    def opened(cls, sink: Sink) -> "_Pipe":
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        return cls(sink, read_end, write_end)

    def hand_over(self) -> None:
        """Only the child holds the write end from here on; otherwise there would never be an end of file."""
        if self.write_end is not None:
            os.close(self.write_end)
            self.write_end = None

    def close(self) -> None:
        self.hand_over()
        os.close(self.read_end)

    def read_nowait(self) -> bytes | None:
        """What is there; empty at the end; None if there is nothing yet."""
        try:
            return os.read(self.read_end, CHUNK_BYTES_MAX)
        except BlockingIOError:
            return None


@shapes.define(eq=False)
class _Child:
    """A started program and what is known of it."""

    process: trio.Process
    pipes: list[_Pipe]
    started_s: float = attrs.field(factory=trio.current_time)
    exited_s: float | None = None
    """Trio's clock at the exit."""
    exited: trio.Event = attrs.field(factory=trio.Event)
    last_output_s: float = -math.inf
    waits: set[trio.CancelScope] = attrs.field(factory=set)
    """Waits for output; the exit gives them a deadline."""
    term_grace_s: float = 0
    stopped: Literal["timeout", "aborted"] | None = None
    """Why it was asked to end."""
    settled: bool = False

    async def attended(self, timeout_s: float | None, signal: Signal | None) -> ProcessEnd:
        """Pumps until the end and leaves nothing running. Raises what a sink raises, and Cancelled."""
        try:
            await self._watched(timeout_s, signal)
        finally:
            if not self.settled:
                _kill_group(self.process.pid)
            with trio.CancelScope(deadline=trio.current_time() + REAP_S, shield=True):
                await self.process.wait()
        return self._end()

    async def _watched(self, timeout_s: float | None, signal: Signal | None) -> None:
        failure: list[Exception] = []
        ended = False
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._note_exit)
            if signal is not None:
                nursery.start_soon(self._stop_when_aborted, signal, nursery.cancel_scope)
            if timeout_s is not None:
                nursery.start_soon(self._stop_after, timeout_s, nursery.cancel_scope)
            async with trio.open_nursery() as pumps:
                for pipe in self.pipes:
                    pumps.start_soon(self._pump, pipe, failure)
            await self.exited.wait()
            ended = True
            nursery.cancel_scope.cancel()
        if failure:
            raise failure[0]
        self.settled = ended

    async def _note_exit(self) -> None:
        await _exit_of(self.process)
        self.exited_s = trio.current_time()
        self.exited.set()
        for scope in self.waits:
            scope.deadline = self._quiet_until()

    async def _stop_when_aborted(self, signal: Signal, scope: trio.CancelScope) -> None:
        await signal.wait()
        await self._stop("aborted", scope)

    async def _stop_after(self, timeout_s: float, scope: trio.CancelScope) -> None:
        await trio.sleep(timeout_s)
        await self._stop("timeout", scope)

    async def _stop(self, why: Literal["timeout", "aborted"], scope: trio.CancelScope) -> None:
        """Asks the group to end, if there is a grace; what is left after it ends with the scope."""
        self.stopped = self.stopped or why
        if self.term_grace_s > 0:
            _signal_group(self.process.pid, signals.SIGTERM)
            await trio.sleep(self.term_grace_s)
        scope.cancel()

    async def _pump(self, pipe: _Pipe, failure: list[Exception]) -> None:
        """Reads until the end of the pipe, or quiet after the exit. A chunk that was read always reaches the sink."""
        while (chunk := await self._next_chunk(pipe)) is not None:
            self.last_output_s = trio.current_time()
            try:
                await pipe.sink(chunk)
            except OSError as error:
                # Out of the nursery as it came, and nothing more is read: the group is killed.
                failure.append(error)
                _kill_group(self.process.pid)
                return

    async def _next_chunk(self, pipe: _Pipe) -> bytes | None:
        while True:
            with trio.CancelScope(deadline=self._quiet_until()) as scope:
                self.waits.add(scope)
                try:
                    await trio.lowlevel.wait_readable(pipe.read_end)
                finally:
                    self.waits.discard(scope)
            # Also after the deadline: a busy loop may have come late to what was there in time.
            chunk = pipe.read_nowait()
            if chunk:
                return chunk
            if chunk is not None or scope.cancelled_caught:
                return None

    def _quiet_until(self) -> float:
        return math.inf if self.exited_s is None else max(self.exited_s, self.last_output_s) + QUIET_S

    def _end(self) -> ProcessEnd:
        by_itself = self.stopped is None or (self.settled and self.term_grace_s == 0)
        why = "exited" if by_itself or self.stopped is None else self.stopped
        if self.exited_s is None:
            return ProcessEnd(why=why, exit_code=None, exited_after_s=None)
        code = self.process.returncode
        assert code is not None, "an exit was seen, so the program was reaped"
        return ProcessEnd(why=why, exit_code=code if code >= 0 else 128 - code, exited_after_s=self.exited_s - self.started_s)


async def _exit_of(process: trio.Process) -> None:
    """Returns when the program has exited; where the system can tell, without reaping it."""
    handle = _process_handle(process.pid)
    if handle is None:
        await process.wait()
        return
    try:
        await trio.lowlevel.wait_readable(handle)
    finally:
        os.close(handle)


def _process_handle(number: int) -> int | None:
    """A handle that becomes readable at the exit; None where there is none, or no more."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(number)
    except OSError:
        return None


async def _started(command: ProcessCommand, output: _Pipe, errors: _Pipe) -> trio.Process:
    """The program, running; our copies of the write ends are closed, also if it cannot be started."""
    try:
        return await trio.lowlevel.open_process(
            list(command.arguments),
            stdin=subprocess.DEVNULL,
            stdout=output.write_end,
            stderr=errors.write_end,
            cwd=command.cwd,
            env=dict(command.environment),
            start_new_session=True,
        )
    except ValueError as error:
        raise OSError(errno.EINVAL, f"{error} in the command") from error  # A NUL, or a lone surrogate.
    finally:
        output.hand_over()
        errors.hand_over()


def _kill_group(leader: int) -> None:
    _signal_group(leader, signals.SIGKILL)


def _signal_group(leader: int, number: signals.Signals) -> None:
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        pass  # All of them ended by themselves.


def _first_program(names: tuple[str, ...], search_path: str) -> str | None:
    return next((found for name in names if (found := shutil.which(name, path=search_path))), None)
