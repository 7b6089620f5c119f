"""The files under the JSONL store, one call a system call, so that a test can stop between any two.

Every call is synchronous; `blocking` takes one that may take long apart from the loop. A
write is exactly one `write` and may be short. Handles append: each write goes behind whatever
the file holds then, whoever wrote it. Folders are synced apart, because a new name is not
safe with its file.

The lease is an advisory lock on a small file of its own (SES-90). It ends with its process,
however that ends. The file is removed when the lease is given back; whoever waited on a
removed file notices that the name leads elsewhere and tries again.
"""

import errno
import fcntl
import os
import socket
import stat
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Protocol

import attrs
import trio

from camshaft.kernel import shapes

FILE_MODE: Final = 0o600
"""A session may hold anything that was said; it is its owner's alone."""

HOLDER_BYTES_MAX: Final = 4096
"""More than any holder's name; a bound for what is read from a foreign file."""

SYNC_THREADS_MAX: Final = 8
"""Syncs of different sessions at a time; a disk does not get faster by more."""

LOCK_ATTEMPTS_MAX: Final = 16
"""Each attempt lost means that another holder gave back in that moment; 16 in a row do not happen."""


@shapes.frozen
class FileState:
    """Which file a path leads to, and how long it is."""

    identity: tuple[int, int]
    """Device and inode."""
    size: int
    """Bytes."""


def holder_name(now_ms: int) -> str:
    """Names this process to others: id, host, and since when it has the session open (wall clock, ms since the epoch)."""
    since = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"process {os.getpid()} on {socket.gethostname()} since {since}"


class LockHeld(Exception):
    """Somebody else holds the lock; `holder` is what they wrote into it, perhaps empty."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder


class LogFiles(Protocol):
    """What the JSONL store needs of a file system. All raise OSError as the operating system does."""

    def state(self, path: str) -> FileState | None:
        """None if there is no such file."""
        ...

    def read(self, path: str) -> bytes:
        """The whole file. Raises FileNotFoundError."""
        ...

    def read_from(self, path: str, offset: int) -> bytes:
        """What stands behind `offset`."""
        ...

    def open(self, path: str) -> int:
        """A handle that appends to an existing file. Raises FileNotFoundError."""
        ...

    def create(self, path: str) -> int:
        """A handle that appends to a new file. Raises FileExistsError."""
        ...

    def handle_state(self, handle: int) -> FileState:
        """State of the file behind a handle, whatever its name leads to by now."""
        ...

    def write(self, handle: int, data: bytes) -> int:
        """One write at the end; returns how many bytes were taken, which may be fewer."""
        ...

    def truncate(self, handle: int, size: int) -> None:
        """Cuts the file to `size` bytes."""
        ...

    def sync(self, handle: int) -> None:
        """Returns when the content is safe. May be called from a thread."""
        ...

    def sync_folder(self, path: str) -> None:
        """Returns when the names in the folder of `path` are safe. May be called from a thread."""
        ...

    async def blocking(self, job: Callable[[], None]) -> None:
        """Runs a call that may take long, such as a sync, apart from the loop; returns or raises when it is over."""
        ...

    def close(self, handle: int) -> None:
        """Gives the handle back."""
        ...

    def link(self, source: str, target: str) -> None:
        """A second name for a file. Raises FileExistsError if `target` exists."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Moves a name, replacing `target`."""
        ...

    def unlink(self, path: str) -> None:
        """Removes a name; no error if there is none."""
        ...

    def list(self, folder: str) -> tuple[str, ...]:
        """Names in a folder, sorted."""
        ...

    def make_folder(self, path: str) -> None:
        """The folder of `path`, with its parents; no error if it exists."""
        ...

    def lock(self, path: str, holder: str) -> int:
        """Takes the lock and writes `holder` into it. Raises LockHeld."""
        ...

    def unlock(self, path: str, handle: int) -> None:
        """Removes the lock's file and gives the lock back."""
        ...


@shapes.frozen
class RealLogFiles:
    """The operating system's files (Linux and macOS)."""

    _limiter: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(SYNC_THREADS_MAX), repr=False)

    def state(self, path: str) -> FileState | None:
        """None if there is no such file."""
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return None
        return FileState((found.st_dev, found.st_ino), found.st_size)

    def read(self, path: str) -> bytes:
        """The whole file. Raises FileNotFoundError, and OSError for what is no plain file."""
        # Not blocking: opening a pipe nobody writes to would keep the thread for ever.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_CLOEXEC)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "Not a plain file", path)
            return file.read()

    def read_from(self, path: str, offset: int) -> bytes:
        """What stands behind `offset`."""
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read()

    def open(self, path: str) -> int:
        """A handle that appends to an existing file. Raises FileNotFoundError."""
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)

    def create(self, path: str) -> int:
        """A handle that appends to a new file. Raises FileExistsError."""
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)

    def handle_state(self, handle: int) -> FileState:
        """State of the file behind a handle."""
        found = os.fstat(handle)
        return FileState((found.st_dev, found.st_ino), found.st_size)

    def write(self, handle: int, data: bytes) -> int:
        """One write at the end of the file."""
        return os.write(handle, data)

    def truncate(self, handle: int, size: int) -> None:
        """Cuts the file to `size` bytes."""
        os.ftruncate(handle, size)

    def sync(self, handle: int) -> None:
        """Returns when the content is safe, also from the drive's own cache where the system can ask for that."""
        if sys.platform == "darwin":
            try:
                fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
            except OSError:
                os.fsync(handle)  # network volumes refuse F_FULLFSYNC
            return
        os.fdatasync(handle)

    def sync_folder(self, path: str) -> None:
        """Returns when the names in the folder of `path` are safe."""
        folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    async def blocking(self, job: Callable[[], None]) -> None:
        """Runs a call that may take long in a thread."""
        await trio.to_thread.run_sync(job, limiter=self._limiter)

    def close(self, handle: int) -> None:
        """Gives the handle back."""
        os.close(handle)

    def link(self, source: str, target: str) -> None:
        """A second name for a file."""
        os.link(source, target)

    def rename(self, source: str, target: str) -> None:
        """Moves a name, replacing `target`."""
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        """Removes a name; no error if there is none."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass

    def list(self, folder: str) -> tuple[str, ...]:
        """Names in a folder, sorted."""
        return tuple(sorted(os.listdir(folder)))

    def make_folder(self, path: str) -> None:
        """The folder of `path`, with its parents."""
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)

    def lock(self, path: str, holder: str) -> int:
        """Takes the lock and writes `holder` into it."""
        for _ in range(LOCK_ATTEMPTS_MAX):
            # A link that lies there is not followed: the lock is emptied and written, and a folder may be a stranger's.
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
            taken = False
            try:
                taken = self._taken(path, handle, holder)
            finally:
                if not taken:
                    os.close(handle)
            if taken:
                return handle
        raise OSError(errno.EAGAIN, "the lock changes hands all the time", path)

    def _taken(self, path: str, handle: int, holder: str) -> bool:
        """False if the file was removed by the holder before while we waited at its door."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockHeld(os.pread(handle, HOLDER_BYTES_MAX, 0).decode("utf-8", "replace")) from None
        found = self.state(path)
        if found is None or found.identity != self.handle_state(handle).identity:
            return False
        os.ftruncate(handle, 0)
        os.pwrite(handle, holder.encode(), 0)
        return True

    def unlock(self, path: str, handle: int) -> None:
        """Removes the lock's file and gives the lock back."""
        try:
            self.unlink(path)
        finally:
            os.close(handle)
