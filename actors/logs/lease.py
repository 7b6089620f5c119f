"""The single-writer lease of a session (SES-90): an advisory lock without expiry or token.

It ends with its holder, however that ends. A paused holder keeps it. Readers neither need
nor disturb it.
"""

from camshaft.actors.errors import SessionLocked, StorageError
from camshaft.actors.ports.log_files import LockHeld, LogFiles
from camshaft.kernel import shapes


@shapes.define(eq=False, kw_only=True)
class Lease:
    """The right to write one session; taken and given back many times."""

    files: LogFiles
    session: str
    lock: str
    holder: str
    """Names us to others."""
    handle: int | None = None

    @property
    def held(self) -> bool:
        """Whether we may write."""
        return self.handle is not None

    def take(self) -> None:
        """Does nothing if it is held. Raises SessionLocked, naming the holder, or StorageError."""
        if self.handle is not None:
            return
        try:
            self.handle = self.files.lock(self.lock, self.holder)
        except LockHeld as held:
            raise SessionLocked(self.session, held.holder or "unnamed") from None
        except OSError as error:
            raise StorageError(self.lock, f"cannot take the session's lock ({error})", "check the folder's permissions") from error

    def give_back(self) -> None:
        """Does nothing if it is not held. A lock file that cannot be removed stays; it locks nothing."""
        handle, self.handle = self.handle, None
        if handle is None:
            return
        try:
            self.files.unlock(self.lock, handle)
        except OSError:
            pass
