"""Whether an extension may still act: its generation, its quarantine, and the call it is in.

Every API object and context asks before anything else. Three things end what code may do. Its
*generation* is over: for good, for all extensions (EXT-46). Its extension is *quarantined*: it
failed too often. Its *call* was ended by force: a handler that goes on after its deadline or
its abort acts for nobody any more. The call is known by the task, wherever the handler keeps
its context, and tasks and threads that a handler starts are part of its call.
"""

from contextvars import ContextVar
from typing import Final

import trio

from camshaft.actors.actor import Bounds
from camshaft.actors.errors import CamshaftError
from camshaft.actors.generation import Generation
from camshaft.kernel import shapes

WINDOW_S: Final = 1.0
"""Actions of an extension are counted within windows of this length."""


class ExtensionQuarantined(CamshaftError):
    """An extension that failed too often wants to act; it does nothing until it is loaded anew."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f'Extension "{path}" is quarantined ({why}); reload the extensions to use it again.')


class CallEnded(CamshaftError):
    """A handler that was ended by force goes on and wants to act; nothing it does counts any more."""

    def __init__(self) -> None:
        super().__init__("This handler was ended by force; it can do nothing any more. A handler has to end when it is cancelled.")


class TooManyActions(CamshaftError):
    """An extension acted too often within a second; this action was not done."""

    def __init__(self, path: str, limit: int) -> None:
        super().__init__(
            f'Extension "{path}" did {limit} actions within a second; more are refused until it is over (Limits.extension_actions_max)'
        )


@shapes.define(eq=False)
class Lease:
    """One call of an async handler: when it is ended by force, and whether it was. The clock can be stopped."""

    bounds: Bounds
    _limit_s: float | None
    _left_s: float = 0.0
    _since: float = 0.0
    _stopped: int = 0

    def __attrs_post_init__(self) -> None:
        if self._limit_s is not None:
            self._left_s = self._limit_s
            self._run()

    @property
    def is_over(self) -> bool:
        """Whether it was ended by force."""
        return self.bounds.scope.cancel_called

    def stop_clock(self) -> None:
        """The handler waits for a person: that does not count."""
        self._stopped += 1
        if self._stopped == 1 and self._limit_s is not None:
            self._left_s -= trio.current_time() - self._since
            self.bounds.limit(None)

    def start_clock(self) -> None:
        """The person answered; with other dialogs open the clock stays stopped."""
        self._stopped -= 1
        if self._stopped == 0 and self._limit_s is not None and not self.is_over:
            self._run()

    def _run(self) -> None:
        self._since = trio.current_time()
        self.bounds.limit(self._since + self._left_s)


CALL: Final[ContextVar[Lease | None]] = ContextVar("camshaft_handler_call", default=None)
"""The call that this task is part of."""


@shapes.define(eq=False)
class Standing:
    """Of one extension in one generation."""

    path: str
    generation: Generation
    _actions_max: int | None = None
    """Within a second; None: any number."""
    quarantined: str | None = None
    """Why it may not act; None: it may."""
    _window_at: float = -1.0
    _acted: int = 0

    @property
    def is_good(self) -> bool:
        """Whether the extension, apart from what it is just doing, may act."""
        return self.quarantined is None and not self.generation.stale

    def check(self) -> None:
        """Raises StaleContext, ExtensionQuarantined or CallEnded if this code may not act."""
        self.generation.check()
        if self.quarantined is not None:
            raise ExtensionQuarantined(self.path, self.quarantined)
        call = CALL.get()
        if call is not None and call.is_over:
            raise CallEnded

    def count(self) -> None:
        """Checks, and counts an action that leaves something behind. Raises TooManyActions as well."""
        self.check()
        if self._actions_max is None:
            return
        now = trio.current_time()
        if now - self._window_at >= WINDOW_S or self._window_at < 0:
            self._window_at, self._acted = now, 0
        if self._acted >= self._actions_max:
            raise TooManyActions(self.path, self._actions_max)
        self._acted += 1
