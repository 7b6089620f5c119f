"""Gives the log of an idle session back after what was appended to it while idle.

A run gives it back when it settles; an append between runs takes lease and files again, and
without this they would stay until the next run. Several appends of one moment share one rest.
"""

import trio

from camshaft.actors.actor import Failure, guard
from camshaft.actors.event_stream import EventStream
from camshaft.actors.session import SessionActor
from camshaft.kernel import shapes
from camshaft.kernel.events import DiagnosticEvent
from camshaft.kernel.state import Activity


@shapes.define(eq=False)
class Rest:
    """The rest of one session; its task exists only while there is something to give back."""

    _session: SessionActor
    _stream: EventStream
    _nursery: trio.Nursery
    error: Exception | None = None
    """Why the log could not be given back; raised when the conversation is closed, because nobody waited for it."""
    _is_due: bool = False

    def soon(self) -> None:
        """Settles the log at the next opportunity, if the session is idle then. Returns at once."""
        if not self._is_due and self._is_idle:
            self._is_due = True
            self._nursery.start_soon(self._settle)

    @property
    def _is_idle(self) -> bool:
        return self._session.state.live.activity is Activity.IDLE

    async def _settle(self) -> None:
        self._is_due = False
        if not self._is_idle or self._session.log.sealed is not None:
            return
        outcome = await guard(self._session.log.settle)
        if isinstance(outcome, Failure):
            self.error = outcome.error
            self._stream.publish(DiagnosticEvent(source="session", message=f"the session could not be put to rest: {outcome.text}"))
        elif self._is_idle:
            self._session.rest()
