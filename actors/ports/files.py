"""Files as tools need them: whole reads and writes, listings, a walk that respects ignore files, private files.

Every call runs in a thread of one limiter, and none is given up: when a scope is cancelled,
the call that runs ends first, so no thread and no handle is left behind. The walk, which may
be long, looks for a cancel as it goes.

Paths are absolute. Names that are no UTF-8 carry surrogates, as everywhere in Python.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Final, Literal, Protocol, TypeVar

import attrs
import trio

from camshaft.actors.ports.mutation_queue import MutationQueue
from camshaft.kernel import shapes

T = TypeVar("T")

THREADS_MAX: Final = 16
"""File calls at the same time; more wait. A slow network folder then costs 16 threads, not hundreds."""

FILE_BYTES_MAX: Final = 256 * 1024 * 1024
"""Largest file that is read whole. It is held in memory, about three times; larger ones are for a shell command."""

READ_BYTES: Final = 4 * 1024 * 1024
"""One read. Large, because each piece is copied once more."""

FIRST_BYTES: Final = 64 * 1024
PIECE_BYTES: Final = 1024 * 1024
"""Pieces of a file that is digested: the first, and the others."""

PRIVATE_MODE: Final = 0o600
"""Output of a command may hold anything; it is its owner's alone (TOOL-53)."""

STEPS_BETWEEN_CHECKS: Final = 256
"""Entries of a walk between two looks for a cancel; some ten milliseconds."""

FileKind = Literal["file", "directory", "other"]


@shapes.frozen(kw_only=True)
class FolderEntry:
    """A name in a folder."""

    name: str
    is_directory: bool
    """Links are followed."""
    modified_ms: int = 0
    """When its content changed last, ms since the epoch."""


@shapes.frozen(kw_only=True)
class WalkedPath:
    """Something a walk found."""

    path: str
    """Relative to the root of the walk, with `/`."""
    is_directory: bool
    """Links are not followed."""


class PrivateFile(Protocol):
    """A file of ours that is being written."""

    path: str

    async def write(self, data: bytes) -> None:
        """Appends all of `data`. Raises OSError."""
        ...

    def close(self) -> None:
        """Gives the handle back; the file stays. Harmless twice."""
        ...


class Files(Protocol):
    """What tools need of a file system. All raise OSError as the operating system does, unless they say otherwise."""

    async def read(self, path: str, *, bytes_max: int = FILE_BYTES_MAX) -> bytes:
        """The whole file. OSError with EFBIG if it is larger, EINVAL if it is no plain file (a pipe could block for ever)."""
        ...

    async def digest(self, path: str, digest: Callable[[Iterator[bytes]], T]) -> T:
        """What `digest` makes of the pieces of a file, which it may stop asking for; it is called in a thread.

        OSError with EINVAL for what is no plain file. Between two pieces it looks for a cancel.
        """
        ...

    async def write(self, path: str, data: bytes) -> None:
        """Creates or overwrites, in place: links, owner and mode stay."""
        ...

    async def make_folder(self, path: str) -> None:
        """The folder and its parents; fine if it exists."""
        ...

    async def kind(self, path: str) -> FileKind | None:
        """What the path leads to, links followed; None if to nothing. Raises OSError for a loop of links and the like."""
        ...

    async def check_changeable(self, path: str) -> None:
        """Raises OSError unless the path exists and may be read and written."""
        ...

    async def list_folder(self, path: str) -> tuple[FolderEntry, ...]:
        """Its entries in no order; what cannot be looked at is left out."""
        ...

    async def walk(self, root: str, accepts: Callable[[str], bool], *, found_max: int) -> tuple[WalkedPath, ...]:
        """What `accepts` (given the relative path, called in a thread) of all below `root`, at most `found_max`.

        Hidden names are included, ignore files respected (find's rules, TOOL-91), also git's of the user, which the
        real walk takes from the home folder of this process. What cannot be entered is left out.
        """
        ...

    async def create_private(self, path: str) -> PrivateFile:
        """A new file only its owner can read. Raises FileExistsError."""
        ...

    def changing(self, path: str) -> AbstractAsyncContextManager[None]:
        """The mutation queue (TOOL-54): inside, no other tool or extension that asks changes this file."""
        ...


@shapes.define(eq=False)
class RealFiles:
    """Files of this computer."""

    _threads: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(THREADS_MAX))
    _queue: MutationQueue = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._queue = MutationQueue(self._real_path)

    async def read(self, path: str, *, bytes_max: int = FILE_BYTES_MAX) -> bytes:
        """As the port says."""
        return await self._in_thread(partial(read_plain_file, path, bytes_max))

    async def digest(self, path: str, digest: Callable[[Iterator[bytes]], T]) -> T:
        """As the port says."""
        return await self._in_thread(partial(_digest, path, digest))

    async def write(self, path: str, data: bytes) -> None:
        """As the port says."""
        await self._in_thread(partial(_write, path, data))

    async def make_folder(self, path: str) -> None:
        """As the port says."""
        await self._in_thread(partial(os.makedirs, path, exist_ok=True))

    async def kind(self, path: str) -> FileKind | None:
        """As the port says."""
        return await self._in_thread(partial(_kind, path))

    async def check_changeable(self, path: str) -> None:
        """As the port says."""
        await self._in_thread(partial(_check_changeable, path))

    async def list_folder(self, path: str) -> tuple[FolderEntry, ...]:
        """As the port says."""
        return await self._in_thread(partial(_list_folder, path))

    async def walk(self, root: str, accepts: Callable[[str], bool], *, found_max: int) -> tuple[WalkedPath, ...]:
        """As the port says; in the order of the operating system."""
        return await self._in_thread(partial(_walk, root, accepts, found_max))

    async def create_private(self, path: str) -> PrivateFile:
        """As the port says."""
        # No await between the new handle and its owner: a cancel cannot lose it.
        return _RealPrivateFile(path, await self._in_thread(partial(_create_private, path)), self._threads)

    def changing(self, path: str) -> AbstractAsyncContextManager[None]:
        """As the port says."""
        return self._queue.holding(path)

    async def _real_path(self, path: str) -> str:
        return await self._in_thread(partial(os.path.realpath, path))

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await trio.to_thread.run_sync(call, limiter=self._threads)


@shapes.define(eq=False)
class _RealPrivateFile:
    path: str
    _handle: int | None
    _threads: trio.CapacityLimiter

    async def write(self, data: bytes) -> None:
        if self._handle is None:
            raise OSError(errno.EBADF, "the file is closed", self.path)
        await trio.to_thread.run_sync(_write_all, self._handle, data, limiter=self._threads)

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def read_plain_file(path: str, bytes_max: int) -> bytes:
    """The whole file, at once. Raises OSError, with EFBIG if it is larger and EINVAL if it is no plain file."""
    with _opened(path) as handle:
        return _read_all(handle, path, bytes_max)


def _digest(path: str, digest: Callable[[Iterator[bytes]], T]) -> T:
    with _opened(path) as handle:
        return digest(_pieces(handle))


def _pieces(handle: int) -> Iterator[bytes]:
    """The file piece by piece; the first is small, because many who read want no more."""
    wanted = FIRST_BYTES
    while piece := os.read(handle, wanted):
        yield piece
        wanted = PIECE_BYTES
        trio.from_thread.check_cancelled()


@contextmanager
def _opened(path: str) -> Iterator[int]:
    # Not blocking: opening a pipe nobody writes to would keep the thread for ever.
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "Not a plain file", path)
        yield handle
    finally:
        os.close(handle)


def _read_all(handle: int, path: str, bytes_max: int) -> bytes:
    # The size in the folder is no promise: files of /proc say 0, others grow.
    pieces, size = [], 0
    while piece := os.read(handle, READ_BYTES):
        pieces.append(piece)
        size += len(piece)
        if size > bytes_max:
            raise OSError(errno.EFBIG, f"Larger than the {bytes_max} bytes that are read", path)
    return b"".join(pieces)


def _write(path: str, data: bytes) -> None:
    with open(path, "wb", buffering=0) as file:
        _write_all(file.fileno(), data)


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _kind(path: str) -> FileKind | None:
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    return "directory" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"


def _check_changeable(path: str) -> None:
    os.stat(path)
    if not os.access(path, os.R_OK | os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def _list_folder(path: str) -> tuple[FolderEntry, ...]:
    found = []
    for name in os.listdir(path):
        try:
            state = os.stat(os.path.join(path, name))
        except OSError:
            continue  # TOOL-92: unreadable entries, links that lead nowhere.
        is_directory = stat.S_ISDIR(state.st_mode)
        found.append(FolderEntry(name=name, is_directory=is_directory, modified_ms=state.st_mtime_ns // 1_000_000))
    return tuple(found)


def _walk(root: str, accepts: Callable[[str], bool], found_max: int) -> tuple[WalkedPath, ...]:
    import ignore  # On use: most sessions never search, and the library is a compiled one.

    # Ignore files count everywhere; but inside a repository the rules of git do, where a nested
    # repository is free of its parents' rules, and only the strict reading has that.
    walker = ignore.WalkBuilder(Path(root)).hidden(False).require_git(_in_repository(root)).add_custom_ignore_filename(".fdignore").build()
    found: list[WalkedPath] = []
    step = 0
    while len(found) < found_max:
        step += 1
        if step % STEPS_BETWEEN_CHECKS == 0:
            trio.from_thread.check_cancelled()
        try:
            entry = next(walker, None)
        except (ignore.Error, ignore.IOError):
            continue  # A folder that cannot be entered.
        if entry is None:
            break
        path = os.path.relpath(entry.path(), root)
        if entry.depth() > 0 and accepts(path):
            found.append(WalkedPath(path=path, is_directory=_is_folder(str(entry.path()))))
    return tuple(found)


def _in_repository(root: str) -> bool:
    return any(os.path.exists(os.path.join(folder, ".git")) for folder in (root, *map(str, Path(root).parents)))


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _create_private(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_MODE)
