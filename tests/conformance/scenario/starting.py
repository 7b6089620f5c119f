"""The seam of `Nursery.start`: what a started task tells whoever started it."""

from typing import Protocol, overload


class Starter(Protocol):
    """Takes the word that a task has started; Trio's own name for it is not exported to type checkers."""

    @overload
    def started(self) -> None: ...
    @overload
    def started(self, value: object) -> None: ...
    def started(self, value: object = None) -> None:
        """Lets the starter go on; it receives `value`."""
