"""Files in memory for the JSONL store, with every fault a disk can show.

Theory of operation. Names lead to inodes, inodes hold bytes; for each inode it is known how
many bytes were synced, and which names were safe with their folder. Before each call that
changes something `fault` is asked; it may let a write take fewer bytes, raise an OSError, or
kill the process at any byte of a write. After a kill every call raises, so no clean-up code
of the dead process can touch a file. A `photo` is everything a crash would leave behind;
`files_of` starts a new machine from it, without locks.
"""

from collections.abc import Callable, Mapping

import attrs

from camshaft.actors.ports.log_files import FileState, LockHeld
from camshaft.kernel import shapes


class Killed(BaseException):
    """The simulated process died here. Not an Exception: nothing in the product may handle it."""


@shapes.frozen
class Operation:
    """A call that is about to change something."""

    kind: str
    """`write`, `truncate`, `create`, `link`, `rename`, `unlink`, `sync`, `sync_folder`."""
    path: str
    data: bytes = b""
    """Of a write."""


@shapes.frozen(kw_only=True)
class Fault:
    """What happens instead of the call. A write takes `taken` bytes first."""

    taken: int = 0
    error: OSError | None = None
    """Raised; None for a write that is only short."""
    killed: bool = False


@shapes.frozen(kw_only=True)
class Inode:
    """A file at one moment."""

    content: bytes
    synced: int = 0
    """So many bytes survive a power loss."""


@shapes.frozen(kw_only=True)
class Photo:
    """All files at one moment."""

    inodes: Mapping[int, Inode]
    names: Mapping[str, int]
    safe_names: Mapping[str, int]
    """The names that survive a power loss."""

    def content(self, path: str) -> bytes | None:
        """The bytes behind a name."""
        number = self.names.get(path)
        return None if number is None else self.inodes[number].content

    def with_content(self, path: str, content: bytes | None) -> "Photo":
        """The same with another content of one file; None removes its name."""
        number = self.names.get(path)
        if content is None or number is None:
            names = {name: other for name, other in self.names.items() if name != path}
            if content is None:
                return attrs.evolve(self, names=names)
            number = max(self.inodes, default=0) + 1
            return attrs.evolve(self, names={**names, path: number}, inodes={**self.inodes, number: Inode(content=content)})
        inode = attrs.evolve(self.inodes[number], content=content)
        return attrs.evolve(self, inodes={**self.inodes, number: inode})

    def texts(self) -> dict[str, bytes]:
        """Content by name."""
        return {name: self.inodes[number].content for name, number in sorted(self.names.items())}


@shapes.define(eq=False)
class MemoryLogFiles:
    """A LogFiles without disk."""

    fault: Callable[[Operation], Fault | None] | None = None
    """Asked before each change."""
    while_blocking: Callable[[], None] | None = None
    """Called while something blocks: what the loop does while a thread syncs."""
    _contents: dict[int, bytes] = attrs.field(factory=dict)
    _synced: dict[int, int] = attrs.field(factory=dict)
    _names: dict[str, int] = attrs.field(factory=dict)
    _safe_names: dict[str, int] = attrs.field(factory=dict)
    _handles: dict[int, int] = attrs.field(factory=dict)
    _locks: dict[str, str] = attrs.field(factory=dict)
    _made: int = 0
    _dead: bool = False

    def photo(self) -> Photo:
        """What a crash in this moment would leave."""
        inodes = {number: Inode(content=content, synced=self._synced.get(number, 0)) for number, content in self._contents.items()}
        return Photo(inodes=inodes, names=dict(self._names), safe_names=dict(self._safe_names))

    @property
    def open_handles(self) -> int:
        """Handles that were not given back."""
        return len(self._handles)

    @property
    def held_locks(self) -> tuple[str, ...]:
        """Locks that were not given back."""
        return tuple(sorted(self._locks))

    def append_foreign(self, path: str, data: bytes) -> None:
        """Another program appends to a file, or begins it. Not asked for faults."""
        number = self._names.get(path)
        if number is None:
            number = self._new_inode()
            self._names[path] = number
        self._contents[number] += data

    def remove_foreign(self, path: str) -> None:
        """Another program removes a name."""
        self._names.pop(path, None)

    # -- the port ------------------------------------------------------------------------

    def state(self, path: str) -> FileState | None:
        """None if there is no such file."""
        self._alive()
        number = self._names.get(path)
        return None if number is None else FileState((0, number), len(self._contents[number]))

    def read(self, path: str) -> bytes:
        """The whole file."""
        return self._contents[self._inode(path)]

    def read_from(self, path: str, offset: int) -> bytes:
        """What stands behind `offset`."""
        return self.read(path)[offset:]

    def open(self, path: str) -> int:
        """A handle that appends to an existing file."""
        return self._handle(self._inode(path))

    def create(self, path: str) -> int:
        """A handle that appends to a new file."""
        self._alive()
        if path in self._names:
            raise FileExistsError(path)
        self._ask(Operation("create", path))
        number = self._new_inode()
        self._names[path] = number
        return self._handle(number)

    def handle_state(self, handle: int) -> FileState:
        """State of the file behind a handle."""
        self._alive()
        number = self._handles[handle]
        return FileState((0, number), len(self._contents[number]))

    def write(self, handle: int, data: bytes) -> int:
        """One write at the end."""
        self._alive()
        number = self._handles[handle]
        fault = self.fault(Operation("write", self._path_of(number), data)) if self.fault is not None else None
        taken = data if fault is None else data[: fault.taken]
        self._contents[number] += taken
        if fault is not None:
            self._suffer(fault)
        return len(taken)

    def truncate(self, handle: int, size: int) -> None:
        """Cuts the file."""
        self._alive()
        number = self._handles[handle]
        self._ask(Operation("truncate", self._path_of(number)))
        self._contents[number] = self._contents[number][:size]
        self._synced[number] = min(self._synced.get(number, 0), size)

    def sync(self, handle: int) -> None:
        """The content is safe."""
        self._alive()
        number = self._handles[handle]
        self._ask(Operation("sync", self._path_of(number)))
        self._synced[number] = len(self._contents[number])

    def sync_folder(self, path: str) -> None:
        """All names are safe: there is one folder."""
        self._alive()
        self._ask(Operation("sync_folder", path))
        self._safe_names = dict(self._names)

    async def blocking(self, job: Callable[[], None]) -> None:
        """Nothing blocks here; what others do meanwhile comes before and after."""
        if self.while_blocking is not None:
            self.while_blocking()
        job()
        if self.while_blocking is not None:
            self.while_blocking()

    def close(self, handle: int) -> None:
        """Gives the handle back; also the dead do."""
        del self._handles[handle]

    def link(self, source: str, target: str) -> None:
        """A second name for a file."""
        number = self._inode(source)
        if target in self._names:
            raise FileExistsError(target)
        self._ask(Operation("link", target))
        self._names[target] = number

    def rename(self, source: str, target: str) -> None:
        """Moves a name."""
        self._inode(source)
        self._ask(Operation("rename", target))
        self._names[target] = self._names.pop(source)

    def unlink(self, path: str) -> None:
        """Removes a name."""
        self._alive()
        if path in self._names:
            self._ask(Operation("unlink", path))
            del self._names[path]

    def list(self, folder: str) -> tuple[str, ...]:
        """Names in a folder."""
        self._alive()
        prefix = folder.rstrip("/") + "/"
        return tuple(sorted(name[len(prefix) :] for name in self._names if name.startswith(prefix)))

    def make_folder(self, path: str) -> None:
        """Folders are always there."""
        self._alive()

    def lock(self, path: str, holder: str) -> int:
        """Takes the lock."""
        self._alive()
        if path in self._locks:
            raise LockHeld(self._locks[path])
        self._locks[path] = holder
        return -1

    def unlock(self, path: str, handle: int) -> None:
        """Gives the lock back."""
        self._alive()
        del self._locks[path]

    # -- inside --------------------------------------------------------------------------

    def _alive(self) -> None:
        if self._dead:
            raise Killed

    def _ask(self, operation: Operation) -> None:
        fault = self.fault(operation) if self.fault is not None else None
        if fault is not None:
            self._suffer(fault)

    def _suffer(self, fault: Fault) -> None:
        if fault.killed:
            self._dead = True
            raise Killed
        if fault.error is not None:
            raise fault.error

    def _inode(self, path: str) -> int:
        self._alive()
        number = self._names.get(path)
        if number is None:
            raise FileNotFoundError(path)
        return number

    def _new_inode(self) -> int:
        self._made += 1
        self._contents[self._made] = b""
        return self._made

    def _handle(self, number: int) -> int:
        self._made += 1
        self._handles[self._made] = number
        return self._made

    def _path_of(self, number: int) -> str:
        return next((name for name, other in self._names.items() if other == number), "(no name)")


def files_of(photo: Photo, fault: Callable[[Operation], Fault | None] | None = None) -> MemoryLogFiles:
    """A new machine with these files; nobody holds a lock."""
    return MemoryLogFiles(
        fault=fault,
        contents={number: inode.content for number, inode in photo.inodes.items()},
        synced={number: inode.synced for number, inode in photo.inodes.items()},
        names=dict(photo.names),
        safe_names=dict(photo.safe_names),
        made=max(photo.inodes, default=0),
    )
