"""The seal of a session: broken once, nothing is written any more."""

from camshaft.actors.errors import SessionSealed
from camshaft.kernel import shapes


@shapes.define(eq=False)
class Seal:
    """Shared by all that write one session."""

    path: str
    reason: str | None = None
    """Why nothing may be written; the first reason stays."""

    def broken(self, reason: str) -> SessionSealed:
        """Seals the session; returns the error to raise."""
        if self.reason is None:
            self.reason = reason
        return SessionSealed(self.path, self.reason)

    def check(self) -> None:
        """Raises SessionSealed if the session is sealed."""
        if self.reason is not None:
            raise SessionSealed(self.path, self.reason)
