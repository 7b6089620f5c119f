"""Restarts what crashes: rest-for-one over a table of children, with a bounded intensity.

Children start in the order of the table and end in reverse. When one crashes, those after it
are cancelled too, it is asked whether it can start again (`restart` repairs what it left), and
it and the rest are started anew. More than `RESTARTS_MAX` crashes within `RESTART_WINDOW_S`
escalate: the crash is raised to the owner, because a child that keeps dying is not repaired
by starting it once more. Children that return are done; nothing here knows what they do.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import trio

from camshaft.actors.actor import Failure, guard
from camshaft.kernel import shapes

RESTARTS_MAX: Final = 3
"""Crashes within the window before escalation."""

RESTART_WINDOW_S: Final = 60.0
"""The window, in seconds."""


@shapes.frozen(kw_only=True)
class ChildSpec:
    """One row of a supervisor's table."""

    name: str
    start: Callable[[], Awaitable[None]]
    restart: Callable[[Exception], bool]
    """Repairs what a crash left; False: do not start it again."""


class RestartLimit(RuntimeError):
    """A child crashed too often; the cause is its last crash."""

    def __init__(self, name: str, count: int) -> None:
        super().__init__(f"{name} crashed {count} times within {RESTART_WINDOW_S:.0f} s; it is not started again")


async def supervise(children: Sequence[ChildSpec]) -> None:
    """Runs the children until all have returned. Raises RestartLimit when one keeps crashing."""
    if not children:
        return
    limit: RestartLimit | None = None
    try:
        await _level(children, 0, deque())
    except* RestartLimit as group:
        limit = _first(group)
    if limit is not None:  # raised in the clause itself, some releases of Python put it into a group of its own
        raise limit from limit.__cause__


async def _level(children: Sequence[ChildSpec], index: int, crashes: deque[float]) -> None:
    """Child `index`, with all later ones beneath it: when it crashes they end with it, when they crash it goes on."""
    spec = children[index]
    while True:
        async with trio.open_nursery() as nursery:
            if index + 1 < len(children):
                nursery.start_soon(_level, children, index + 1, crashes)
            outcome = await guard(spec.start)
            if isinstance(outcome, Failure):
                nursery.cancel_scope.cancel()
        if not isinstance(outcome, Failure):
            return
        _count(crashes, spec.name, outcome.error)
        if not spec.restart(outcome.error):
            return


def _count(crashes: deque[float], name: str, error: Exception) -> None:
    now = trio.current_time()
    crashes.append(now)
    while crashes[0] < now - RESTART_WINDOW_S:
        crashes.popleft()
    if len(crashes) > RESTARTS_MAX:
        raise RestartLimit(name, len(crashes)) from error


def _first(group: BaseExceptionGroup[RestartLimit]) -> RestartLimit:
    found = group.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found
