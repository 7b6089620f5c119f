"""What nothing else may run beside: a manual compaction, a tree navigation (CMP-18, CMP-60).

While it lasts the session is in the activity `compacting`: prompts are refused, appends are
not. It runs in its caller's task, so cancelling the caller ends it; an abort sets its signal.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import attrs
import trio

from camshaft.actors.actor import operation, refuse_self_wait
from camshaft.actors.errors import CommandRefused
from camshaft.actors.seat_parts import SeatParts
from camshaft.actors.signal import AbortSignal
from camshaft.kernel import shapes
from camshaft.kernel.commands import BecomeCompacting, BecomeIdle

NAME: Final = "compaction or navigation"
"""How it is called in a chain of operations."""
LEAVING_TEXT: Final = "The session is being left; nothing new begins in it. Wait for that to finish."


@shapes.frozen(eq=False)
class Exclusive:
    """One under way."""

    signal: AbortSignal
    done: trio.Event = attrs.field(factory=trio.Event)


@shapes.define(eq=False)
class Exclusives:
    """Those of one conversation: none or one."""

    _parts: SeatParts
    current: Exclusive | None = None
    is_leaving: bool = False
    """What runs is being stopped for good: nothing new begins, or stopping would never end."""

    def require_staying(self) -> None:
        """Raises CommandRefused while what runs is being stopped for good."""
        if self.is_leaving:
            raise CommandRefused(LEAVING_TEXT)

    @contextmanager
    def claimed(self) -> Iterator[AbortSignal]:
        """The session is this operation's; its signal. Raises CommandRefused unless the session is idle."""
        self.require_staying()
        self._parts.posted(BecomeCompacting())
        current = self.current = Exclusive(AbortSignal(self._parts.ground.limits.abort_grace_s))
        try:
            with operation(NAME):
                yield current.signal
        finally:
            self.current = None
            self._parts.posted(BecomeIdle())
            current.done.set()

    async def wait(self, what: str) -> None:
        """Returns when none is under way. Raises SelfWait from inside one; `what` is said to wait."""
        while self.current is not None:
            refuse_self_wait(NAME, what)
            await self.current.done.wait()

    async def end(self, at_once: bool) -> None:
        """Asks the one under way to stop and waits for its end; `at_once` without the grace."""
        if self.current is not None:
            stop = self.current.signal.force if at_once else self.current.signal.request
            stop()
            await self.wait("close()")
