"""Names a sync handler that does not return. Nothing can end it; people should know which it is.

While it spins nothing else of the program runs, so it is told by a thread: through the logger
`camshaft`, which a program that configures nothing prints to standard error. When the handler
returns after all, a diagnostic says so as well. Off unless the host sets a limit: it is the
one thread beside those of `world.py` and `embedding.py`, and reads the real clock.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import attrs

from camshaft.kernel import shapes

LOOKS_PER_LIMIT: Final = 4
"""A handler is named at most a quarter of the limit too late."""


@shapes.define(eq=False)
class _Sight:
    """A call under way."""

    name: str
    begun_s: float
    told: bool = False


@shapes.define(eq=False)
class Watchdog:
    """Watches the calls of one kernel, which run one at a time."""

    limit_s: float
    _log: Callable[[str], None] = attrs.field(default=logging.getLogger("camshaft").error)
    _seen: _Sight | None = None
    _stopped: threading.Event = attrs.field(factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Watches from a thread of its own."""
        thread = threading.Thread(target=self._watch, name="camshaft watchdog", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join()

    def call(self, name: str, call: Callable[..., Any], *arguments: Any) -> tuple[Any, str | None]:
        """What `call(*arguments)` returns, and what to say if it took too long. A call within a call is part of it."""
        if self._seen is not None:
            return call(*arguments), None
        seen = self._seen = _Sight(name, time.monotonic())
        try:
            returned = call(*arguments)
        finally:
            self._seen = None
        return returned, f"{name} held everything up for {time.monotonic() - seen.begun_s:.1f} s" if seen.told else None

    def _watch(self) -> None:
        while not self._stopped.wait(self.limit_s / LOOKS_PER_LIMIT):
            seen = self._seen
            if seen is not None and not seen.told and time.monotonic() - seen.begun_s >= self.limit_s:
                seen.told = True
                self._log(f"{seen.name} has not returned for {self.limit_s:g} s; nothing else runs until it does")
