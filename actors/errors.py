"""What can go wrong where the kernel meets the world: one base, one class for each reaction.

Every message says what happened, with which value, what was expected, and what to do next.
"""


class CamshaftError(Exception):
    """Base of the operating faults that the actors raise."""


class InvalidOptions(CamshaftError):
    """A session or conversation cannot be opened with these options; the text names option, value and expectation."""


class KernelMisuse(CamshaftError):
    """The kernel was used in a way that cannot work; the text shows how it is meant."""


class KernelClosed(CamshaftError):
    """The kernel behind a face of `embedding` is not open, or was closed while the call was under way."""


class CommandRefused(CamshaftError):
    """The session refused what was asked; the text says why. Nothing has changed."""


class StorageError(CamshaftError):
    """The store could not do what was asked; unless it says *sealed*, nothing has changed."""

    def __init__(self, path: str, what: str, advice: str) -> None:
        super().__init__(f"{what}: {path!r}; {advice}")
        self.path = path
        self.what = what
        self.advice = advice


class SessionLocked(StorageError):
    """Another writer holds the session (SES-90). `holder` names it: process id, host, since when."""

    def __init__(self, path: str, holder: str) -> None:
        super().__init__(path, f"session is in use by another writer ({holder})", "close it there, or open the session read-only")
        self.holder = holder


class SessionSealed(StorageError):
    """The session can be read but not written any more, because an earlier write left it unsure; `reason` says which."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, f"session is sealed ({reason})", "open it again; opening repairs what can be repaired")
        self.reason = reason


class SessionChanged(StorageError):
    """While the session was idle another process wrote it; nothing was appended."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "another process wrote the session while it was idle here", "open it again, then decide again")


class SessionGone(StorageError):
    """The side file says that the session file held more than is there now (A01); nothing was written."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(path, what, "put the session file back, or remove its side file (.work) to go on with what is there")


class SessionExists(StorageError):
    """A new session cannot be created because a file of its name is there already (SES-57)."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "session file already exists", "choose another name, or open the file that is there")


class NotASession(StorageError):
    """A file that is no session; its bytes stay as they are (SES-7)."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason, "expected a session header in the first line")
        self.reason = reason

    def __str__(self) -> str:
        return f"Session file is not a valid camshaft session: {self.path}"


class ReadOnlySession(StorageError):
    """The session was opened for reading."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "session was opened read-only", "open it for writing to append")


class MissingWorkingDirectory(CamshaftError):
    """The working directory that a session names no longer exists (SES-18)."""

    def __init__(self, directory: str, session_file: str, current: str) -> None:
        lines = [f"Stored session working directory does not exist: {directory}", f"Session file: {session_file}"]
        super().__init__("\n".join([*lines, f"Current working directory: {current}"]))
        self.directory = directory
        self.session_file = session_file
        self.current = current


class SessionFileMissing(CamshaftError):
    """A session file that was named does not exist (SES-85, CTXT-9)."""

    def __init__(self, path: str) -> None:
        super().__init__(f"File not found: {path}")
        self.path = path
