"""Runs a program for an extension, and says how it ended (API-25).

Theory of operation. The process port runs, stops and reaps; here the output is kept up to a
limit and the end is told in the numbers of a shell. A program that is to stop, because of its
signal, the time or too much output, is asked to with TERM, and after TERM_GRACE_S made to.
Nothing raises for what a program does or because it does not exist: an extension sees `code`.
"""

import codecs
from collections.abc import Mapping
from typing import Final

import attrs
import trio

from camshaft.actors.ports.processes import ProcessCommand, ProcessEnd, Processes
from camshaft.actors.signal import AbortSignal
from camshaft.kernel import shapes
from camshaft.kernel.tools import Signal

OUTPUT_BYTES_MAX: Final = 256 * 1024 * 1024
"""Output kept of one program unless it is said otherwise, both streams together."""
TERM_GRACE_S: Final = 5.0
"""Time between asking a program to end and ending it."""
TERMINATED: Final = 128 + 15
KILLED: Final = 128 + 9
NOT_STARTED: Final = 1


@shapes.frozen(kw_only=True)
class ExecResult:
    """How a program ended (API-25)."""

    stdout: str
    stderr: str
    """Also why the program could not be started."""
    code: int
    """Exit code; 128 + n if signal n ended it, 1 if it could not be started."""
    killed: bool
    """Whether it was told to stop: by its signal, the time, or too much output."""
    truncated: bool
    """Whether there was more output than was allowed; what is here was cut exactly at the limit."""


@shapes.frozen(kw_only=True)
class Program:
    """A program to run, and its limits."""

    arguments: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str] = attrs.field(repr=False)
    timeout_ms: float | None = None
    term_grace_s: float = TERM_GRACE_S
    output_bytes_max: int = OUTPUT_BYTES_MAX
    signal: Signal | None = None


async def run_program(processes: Processes, program: Program) -> ExecResult:
    """The end of the program. Cancelled, it leaves nothing running."""
    kept = _Kept(room=program.output_bytes_max)
    command = ProcessCommand(
        arguments=program.arguments,
        cwd=program.cwd,
        environment=program.environment,
        timeout_s=None if program.timeout_ms is None else program.timeout_ms / 1000,
        term_grace_s=program.term_grace_s,
    )
    ends: list[ProcessEnd] = []
    async with trio.open_nursery() as nursery:
        if program.signal is not None:
            nursery.start_soon(_pass_on, program.signal, kept.stop)
        try:
            ends.append(await processes.run(command, kept.take_output, on_errors=kept.take_error, signal=kept.stop))
        except OSError as error:
            kept.errors += str(error).encode()
        nursery.cancel_scope.cancel()
    return _result(kept, ends[0] if ends else None)


@shapes.define(eq=False)
class _Kept:
    """What is kept of a program's output."""

    room: int
    """Bytes that may still be kept."""
    output: bytearray = attrs.field(factory=bytearray)
    errors: bytearray = attrs.field(factory=bytearray)
    stop: AbortSignal = attrs.field(factory=AbortSignal)
    is_full: bool = False
    """Whether there was more than there was room for."""

    async def take_output(self, chunk: bytes) -> None:
        self._take(self.output, chunk)

    async def take_error(self, chunk: bytes) -> None:
        self._take(self.errors, chunk)

    def _take(self, kept: bytearray, chunk: bytes) -> None:
        kept += chunk[: self.room]
        if len(chunk) > self.room:
            self.is_full = True
            self.stop.request()
        self.room = max(0, self.room - len(chunk))


def _result(kept: _Kept, end: ProcessEnd | None) -> ExecResult:
    stdout, stderr = _text(kept.output, kept.is_full), _text(kept.errors, kept.is_full)
    if end is None:
        return ExecResult(stdout=stdout, stderr=stderr, code=NOT_STARTED, killed=False, truncated=False)
    code = KILLED if end.exit_code is None else end.exit_code
    if kept.is_full and code == 0:
        code = TERMINATED  # It ended well by itself, but what it said is not all here.
    return ExecResult(stdout=stdout, stderr=stderr, code=code, killed=kept.is_full or end.why != "exited", truncated=kept.is_full)


def _text(kept: bytearray, is_cut: bool) -> str:
    """The bytes as text; a character that a cut left incomplete is dropped."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(kept), final=not is_cut)


async def _pass_on(signal: Signal, stop: AbortSignal) -> None:
    await signal.wait()
    stop.request()
