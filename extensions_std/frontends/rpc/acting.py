"""A command that is being handled: what it acts on, and its one answer (RPC-22, RPC-24)."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import attrs

from camshaft.actors.api import Json
from camshaft.actors.host import Failure, Seat, Value
from camshaft.extensions_std.frontends.rpc.records import NOTHING, failure, success

Keep = Callable[[Sequence[str], Json], Awaitable[None]]
"""Keeps a value in the user's settings file, by its path in there; returns when that was tried (RPC-43)."""


@attrs.define(eq=False)
class Acting:
    """One command; gives exactly one answer, whoever comes first."""

    seat: Seat
    keep: Keep
    command: str
    id: object
    """As the client gave it; NOTHING if it gave none."""
    _send: Callable[[dict[str, Any]], None]
    is_answered: bool = False

    def answer(self, result: object = NOTHING) -> None:
        """It did what it was asked."""
        self._say(success(self.id, self.command, result))

    def refuse(self, error: BaseException) -> None:
        """It did not."""
        self._say(failure(self.id, self.command, str(error) or type(error).__name__))

    def end(self, outcome: Value[Any] | Failure) -> None:
        """Answers with what its handler gave or raised, if that was not answered on the way."""
        if isinstance(outcome, Failure):
            self.refuse(outcome.error)
        else:
            self.answer(outcome.value)

    def _say(self, record: dict[str, Any]) -> None:
        if not self.is_answered:
            self.is_answered = True
            self._send(record)
