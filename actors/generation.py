"""One loading of the extensions, and the errors of using what belongs to another one."""

from typing import Final, Protocol

from camshaft.actors.errors import CamshaftError
from camshaft.kernel import shapes

STALE: Final = (
    "This extension ctx is stale after session replacement or reload. "
    "Use the context that the new session hands to its handlers, commands and with_session callbacks."
)


class StaleContext(CamshaftError):
    """A context or an API object outlived its generation (ERR-2)."""

    def __init__(self) -> None:
        super().__init__(STALE)


class OnlyInCommands(CamshaftError):
    """A member that waits for the run was used where the run waits for the caller (CTXT-3)."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is only available in command handlers")


@shapes.define(eq=False)
class Generation:
    """One loading of the extensions; ended for good by the next one."""

    number: int
    stale: bool = False

    def check(self) -> None:
        """Raises StaleContext if this loading was replaced."""
        if self.stale:
            raise StaleContext

    def count(self) -> None:
        """As `check`: before there is a session nobody counts."""
        self.check()


class Checked(Protocol):
    """What says whether code may still act."""

    def check(self) -> None:
        """Raises if it may not."""
        ...

    def count(self) -> None:
        """As `check`, for an action that leaves something behind; raises as well if there were too many."""
        ...
