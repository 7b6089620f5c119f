"""Keeps extensions from holding or hurting a conversation: bounds, strikes, quarantine, tasks.

An async handler runs apart from the dispatch that waits for it, in limbo's nursery and under
bounds. An abort ends it in stages (signal.py); where the host sets a deadline, that ends it
too, and the clock stands still while it waits for a person. What does not end even then is
left behind by name, and nothing it does counts any more (standing.py). A sync handler cannot be
ended; a watchdog can name it (watchdog.py).

A failure is a strike: a handler that raised, returned a wrong type, ran out of time, or a task
that crashed. A handler that does well makes its own strikes good. Three in a row of one handler
put its extension into quarantine: its handlers, tools and commands are withdrawn and its calls
refused until the extensions are loaded anew. They are counted for each handler, because one
that always fails is not made better by another that never does, and an extension with many
handlers is not broken because each of them failed once. Its gates stay, closed: a guard that
is broken must not open what it guards (ERR-6).

Tasks of an extension live here as well, from `session_start` to the end of its generation
(EXT-23); one that crashes is reported and nobody else's affair (ERR-8).
"""

from collections.abc import Callable
from typing import Any, Final

import attrs
import trio

from camshaft.actors.actor import Abandoned, Bounds, Cut, Failure, Limbo, Value, apart, unless_exit
from camshaft.actors.errors import CamshaftError
from camshaft.actors.generation import Generation
from camshaft.actors.options import Limits
from camshaft.actors.registrations import Extension
from camshaft.actors.signal import AbortSignal
from camshaft.actors.standing import CALL, Lease, Standing
from camshaft.actors.watchdog import Watchdog
from camshaft.kernel import shapes

TASKS_MAX: Final = 100
"""Tasks of one extension at a time: each is meant to last; a flood of them is a mistake."""


class TooManyTasks(CamshaftError):
    """An extension has as many tasks as it may have."""


@shapes.frozen(eq=False)
class Task:
    """Something that an extension runs beside everything else."""

    event: str
    """What it is reported as: `task`, or `events:CHANNEL`."""
    what: object
    """What a crash is a strike of, and an end in peace makes good."""
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    crashed: Callable[[Extension, "Task", Failure], None]
    """Tells the host."""


@shapes.frozen
class Forced:
    """A handler was ended by force, or left behind; it gave no value."""

    text: str
    """Why, for people."""
    is_strike: bool
    """Not so if an abort ended it and it ended."""


@shapes.define(eq=False)
class Oversight:
    """Of all extensions of one generation."""

    limbo: Limbo
    limits: Limits
    _nursery: trio.Nursery
    _generation: Generation
    watchdog: Watchdog | None = None
    """Watches sync handlers; None: nobody does."""
    quarantined: list[Extension] = attrs.field(factory=list)
    """In the order in which they were."""
    interrupted: tuple[str, str] | None = None
    """Path and hook of the last handler that ended because whoever dispatched was cancelled."""
    _standings: dict[Extension, Standing] = attrs.field(factory=dict)
    _strikes: dict[Extension, dict[object, int]] = attrs.field(factory=dict)
    """Not made good yet, by what failed: a handler or the function of a task."""
    _tasks: dict[Bounds, Extension] = attrs.field(factory=dict)
    _ending: AbortSignal = attrs.field(factory=lambda: AbortSignal(None))
    """Of handlers that are part of no run: set with the end of the generation (EXT-48)."""
    _ended: trio.Event | None = None
    """While `end` waits: set with the last task."""

    # -- handlers ------------------------------------------------------------------------

    def standing(self, extension: Extension) -> Standing:
        """Of an extension; one for each."""
        found = self._standings.get(extension)
        if found is None:
            found = self._standings[extension] = Standing(extension.path, self._generation, self.limits.extension_actions_max)
        return found

    async def run(self, extension: Extension, hook: str, awaitable: Any, signal: AbortSignal | None) -> Value[Any] | Failure | Forced:
        """The outcome of an async handler that was called; `signal` is that of the run it is part of."""
        name = f"{hook} handler of {extension.path}"
        with (signal or self._ending).bounded() as bounds:
            lease = Lease(bounds, self.limits.hook_deadline_s)
            try:
                outcome = await self.limbo.run(name, _leased, lease, awaitable, bounds=bounds)
            except trio.Cancelled:
                self.interrupted = (extension.path, hook)
                raise
        if not isinstance(outcome, Cut | Abandoned):
            return outcome
        is_aborted = signal is not None and signal.cancelled
        limit_s = self.limits.hook_deadline_s
        why = "the kernel ends" if limit_s is None else f"it did not end within {limit_s:g} s"
        why = "an abort was requested and it did not stop" if is_aborted else why
        left = "; it ignores that and goes on, and nothing it does counts any more" if isinstance(outcome, Abandoned) else ""
        return Forced(f"the handler was ended by force, because {why}{left}", is_strike=bool(left) or not is_aborted)

    # -- strikes -------------------------------------------------------------------------

    @property
    def has_strikes(self) -> bool:
        """Whether anything failed that was not made good."""
        return bool(self._strikes)

    def made_good(self, extension: Extension, what: object) -> None:
        """It did well: its own strikes do not count any more."""
        strikes = self._strikes.get(extension)
        if strikes is not None and strikes.pop(what, None) is not None and not strikes:
            del self._strikes[extension]

    def strike(self, extension: Extension, what: object) -> str | None:
        """It failed; why the extension is quarantined from now on, if it is."""
        strikes = self._strikes.setdefault(extension, {})
        strikes[what] = strikes.get(what, 0) + 1
        limit, count = self.limits.strikes_max, strikes[what]
        standing = self.standing(extension)
        if limit is None or count < limit or standing.quarantined is not None:
            return None
        standing.quarantined = f"{count} failures in a row"
        self.quarantined.append(extension)
        for bounds in [each for each, owner in self._tasks.items() if owner is extension]:
            bounds.end_after(0)
        return standing.quarantined

    # -- tasks ---------------------------------------------------------------------------

    def start_task(self, extension: Extension, task: Task) -> None:
        """Runs it until it ends or the generation does. Raises TooManyTasks."""
        mine = sum([owner is extension for owner in self._tasks.values()])
        if mine >= TASKS_MAX:
            raise TooManyTasks(f'Extension "{extension.path}" has {mine} tasks; no more are started until one of them ends')
        bounds = Bounds()
        self._tasks[bounds] = extension
        self._nursery.start_soon(self._serve, extension, task, bounds)

    async def _serve(self, extension: Extension, task: Task, bounds: Bounds) -> None:
        CALL.set(None)
        try:
            with apart():
                outcome = await self.limbo.run(
                    f"{task.event} of {extension.path}", unless_exit, task.function, *task.arguments, bounds=bounds
                )
        finally:
            del self._tasks[bounds]
            if self._ended is not None and not self._tasks:
                self._ended.set()
        if isinstance(outcome, Value):
            self.made_good(extension, task.what)
        elif isinstance(outcome, Failure) and not self._generation.stale and self.standing(extension).quarantined is None:
            task.crashed(extension, task, outcome)

    async def end(self) -> None:
        """Cancels handlers and tasks; returns when the tasks ended or are left behind, at once if there are none.

        Whoever dispatched waits for a handler: that may be code which waits for this end.
        """
        self._ending.force()
        for bounds in tuple(self._tasks):
            bounds.end_after(0)
        if self._tasks:
            self._ended = trio.Event()
            await self._ended.wait()


async def _leased(lease: Lease, awaitable: Any) -> Any:
    CALL.set(lease)
    return await awaitable
