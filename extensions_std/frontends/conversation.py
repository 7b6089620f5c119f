"""Running a job: one conversation opened, its prompts run in a mode, everything closed in order.

The same for a prompt in a folder and for the demo. What happens to signals stands in `interrupts.py`.
Faults that a person can do something about become one line on standard error and exit code 1.
"""

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import attrs
import trio

from camshaft.actors.api import AssistantMessage, Json, World
from camshaft.actors.host import CamshaftError, Event, Kernel, OpenOptions, PromptRefused, Seat, open_kernel
from camshaft.extensions_std.frontends import json_mode, print_mode
from camshaft.extensions_std.frontends.arguments import Mode
from camshaft.extensions_std.frontends.file_arguments import Prompt
from camshaft.extensions_std.frontends.interrupts import Interrupts
from camshaft.extensions_std.frontends.progress import Progress
from camshaft.extensions_std.frontends.reports import Retries, report_event, report_opening
from camshaft.extensions_std.frontends.streams import ERR, Input, Output, say

FLUSH_S: Final = 1.0
"""For the last lines of progress, to a terminal that may be stopped."""


@attrs.frozen(kw_only=True)
class Job:
    """What to run."""

    options: OpenOptions
    prompts: tuple[Prompt, ...] = ()
    mode: Mode = "text"
    is_live: bool = False
    """Whether progress is shown on standard error."""
    name: str | None = None
    """Name for the session."""
    watch: Callable[[Seat], object] | None = None
    """Called with the conversation before its first prompt."""
    unconfigured: str = ""
    """What to tell if there is no model."""
    continue_with: str = ""
    """The command that goes on with the session after an interrupt, if it is kept."""
    keep: Callable[[Sequence[str], Json], Awaitable[None]] | None = None
    """Keeps a value in the user's settings, where there are any."""
    opening: tuple[Event, ...] = ()
    """What happened while the conversation opened; set here."""


class StartupFailed(Exception):
    """The job cannot be put together; `faults` has one text each, none if they were told already."""

    def __init__(self, *faults: str) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


Prepare = Callable[[Kernel], Awaitable[Job]]
"""Puts a job together in the kernel it will run in. Raises StartupFailed."""


async def run_job(prepare: Prepare, world: World, out: Output, source: Input | None = None) -> int:
    """The exit code. Whatever happens, processes, files and tasks are closed when it returns.

    `source`: where the commands of a client come from, in RPC mode.
    """
    interrupts, opening = Interrupts(), _Opening()
    code = 1
    with interrupts.handling(), interrupts.everything:
        async with open_kernel(world=world) as kernel:
            with interrupts.work:
                if source is None:
                    code = await _in_kernel(prepare, kernel, out, opening)
                else:
                    code = await _over_rpc(prepare, kernel, (source, out), interrupts)
    if interrupts.code is None:
        return code
    if source is None:
        _tell_interrupted(opening.continue_with, opening.session_file)
    return interrupts.code


async def _over_rpc(prepare: Prepare, kernel: Kernel, streams: tuple[Input, Output], interrupts: Interrupts) -> int:
    source, sink = streams
    job = await _prepared(prepare, kernel)
    if job is None:
        return 1

    async def open_seat(options: OpenOptions) -> Seat | None:
        seat = await _opened(options, kernel)
        if seat is not None and seat.model is None:
            say(f"Warning: No models available. {job.unconfigured}")
        return seat

    from camshaft.extensions_std.frontends.rpc import mode as rpc_mode  # only where it is wanted: it has a class for each command

    ports = rpc_mode.Ports(
        source=source,
        sink=sink,
        name=job.name,
        keep=job.keep or _kept_nowhere,
        new_id=kernel.world.ids.session_id,
        ending=interrupts.end_in_order,
    )
    return await rpc_mode.run(job.options, open_seat, ports)


async def _kept_nowhere(_path: Sequence[str], _value: Json) -> None:
    """For settings that are no files."""


def _tell_interrupted(continue_with: str, session_file: str | None) -> None:
    is_kept = session_file is not None and os.path.exists(session_file)
    say(f"interrupted; continue with: {continue_with}" if is_kept and continue_with else "interrupted")


@attrs.define(eq=False)
class _Opening:
    """The events of the time in which the conversation opens, for a mode that tells them, and where its session is."""

    events: list[Event] = attrs.field(factory=list)
    session_file: str | None = None
    continue_with: str = ""
    """The command that goes on with it."""
    _is_over: bool = False

    def hear(self, event: Event) -> None:
        """Keeps an event of that time."""
        if not self._is_over:
            self.events.append(event)

    def end(self) -> None:
        """From here on others listen."""
        self._is_over = True


async def _prepared(prepare: Prepare, kernel: Kernel) -> Job | None:
    """The job; None if it cannot be put together, which is told."""
    try:
        return await prepare(kernel)
    except StartupFailed as error:
        for fault in error.faults:
            say(f"Error: {fault}")
    except (CamshaftError, OSError) as error:
        say(f"Error: {error}")
    return None


async def _opened(options: OpenOptions, kernel: Kernel) -> Seat | None:
    """The conversation; None if it cannot be opened or used, which is told."""
    try:
        seat = await kernel.open(options)
    except StartupFailed as error:
        for fault in error.faults:
            say(f"Error: {fault}")
    except (CamshaftError, OSError) as error:
        say(f"Error: {error}")
    else:
        return None if report_opening(seat, options) else seat
    return None


async def _in_kernel(prepare: Prepare, kernel: Kernel, out: Output, opening: _Opening) -> int:
    job = await _prepared(prepare, kernel)
    if job is None:
        return 1
    seat = await _opened(attrs.evolve(job.options, listeners=(*job.options.listeners, opening.hear)), kernel)
    if seat is None:
        return 1
    opening.end()
    job = attrs.evolve(job, opening=tuple(opening.events))
    seat.subscribe(report_event)
    opening.session_file, opening.continue_with = seat.session_file, job.continue_with
    if not job.is_live:
        seat.subscribe(Retries(seat).see)
    if job.name is not None:
        seat.set_session_name(job.name)
    if job.watch is not None:
        job.watch(seat)
    return await _with_progress(job, seat, out) if job.is_live else await _in_mode(job, seat, out, _nothing, _nowhere)


async def _with_progress(job: Job, seat: Seat, out: Output) -> int:
    errors = Output(ERR)
    progress = Progress(errors, started_s=trio.current_time(), is_answer_shown=job.mode == "text" and errors.is_terminal_of(out))
    seat.subscribe(progress.see)
    code = 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(progress.serve)
        try:
            code = await _in_mode(job, seat, out, progress.flush, progress.has_shown)
        finally:
            with trio.move_on_after(FLUSH_S, shield=True):
                await progress.flush()
            nursery.cancel_scope.cancel()
    return code


async def _in_mode(job: Job, seat: Seat, out: Output, before_answer: print_mode.Before, is_shown: print_mode.IsShown) -> int:
    """The exit code; what refused or ended a prompt is told here."""
    try:
        if job.mode == "json":
            return await json_mode.run(seat, job.prompts, out, unconfigured=job.unconfigured, opening=job.opening)
        if seat.model is None:
            say(job.unconfigured)
            return 1
        return await print_mode.run(seat, job.prompts, out, before_answer=before_answer, is_shown=is_shown)
    except BrokenPipeError:
        return 1  # nobody reads any more, so there is nobody to tell
    except (CamshaftError, OSError) as error:
        await before_answer()
        say(f"Error: {error}")
        if isinstance(error, PromptRefused) and not _is_configured(seat):
            say(job.unconfigured)
        return 1


def _is_configured(seat: Seat) -> bool:
    model = seat.model
    return model is not None and any([each.configured() for each in seat.providers if each.name == model.provider])


async def _nothing() -> None:
    await trio.lowlevel.checkpoint()


def _nowhere(_answer: AssistantMessage) -> bool:
    return False
