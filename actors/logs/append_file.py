"""One file that a store appends to, and knows the length of.

A write that fails is taken back at once, so the file holds whole appends only. It is taken
back only while the file has exactly the size that the write left: what stands behind may be
somebody else's line. If it cannot be taken back, the error says so (`undone` is False), and
nobody may write to the file any more.
"""

import errno

from camshaft.actors.ports.log_files import FileState, LogFiles
from camshaft.kernel import shapes


class WriteFailed(Exception):
    """An append that did not happen. `undone`: the file is as it was before."""

    def __init__(self, path: str, why: OSError, *, undone: bool) -> None:
        super().__init__(f"{path!r}: {why}")
        self.path = path
        self.why = why
        self.undone = undone


@shapes.define(eq=False, kw_only=True)
class AppendFile:
    """A file with one writer of ours. The handle is opened with the first write and can be given back."""

    files: LogFiles
    path: str
    identity: tuple[int, int]
    size: int
    """Bytes, by our own reckoning; a foreign writer shows as a difference."""
    synced: int = 0
    """The first so many bytes are safe."""
    named: bool = False
    """Whether its name is safe (the folder was synced)."""
    handle: int | None = None

    @property
    def dirty(self) -> bool:
        """Whether a sync is due."""
        return self.synced < self.size or not self.named

    @property
    def state(self) -> FileState:
        """What the file should look like."""
        return FileState(self.identity, self.size)

    def append(self, data: bytes) -> None:
        """Writes `data` in one write, or raises WriteFailed."""
        try:
            handle = self.opened()
            taken = self.files.write(handle, data)
        except OSError as error:
            raise WriteFailed(self.path, error, undone=self._taken_back(0)) from error
        if taken < len(data):
            short = OSError(errno.ENOSPC, f"only {taken} of {len(data)} bytes were written")
            raise WriteFailed(self.path, short, undone=self._taken_back(taken))
        self.size += taken

    def cut(self, size: int) -> bool:
        """Takes back what was appended since the file had `size` bytes; False if that is not possible."""
        taken, self.size = self.size - size, size
        return self._taken_back(taken)

    def opened(self) -> int:
        """The handle. Raises FileNotFoundError if the file is gone or its name leads to another one."""
        if self.handle is None:
            handle = self.files.open(self.path)
            if self.files.handle_state(handle).identity != self.identity:
                self.files.close(handle)
                raise FileNotFoundError(f"{self.path!r} is another file now")
            self.handle = handle
        return self.handle

    def sync(self) -> None:
        """Blocks until the content is safe. The caller notes what it covered."""
        self.files.sync(self.opened())

    def give_back(self) -> None:
        """Closes the handle; the next write opens it again."""
        handle, self.handle = self.handle, None
        if handle is not None:
            self.files.close(handle)

    def _taken_back(self, taken: int) -> bool:
        self.synced = min(self.synced, self.size)
        if self.handle is None:
            return taken == 0
        try:
            if self.files.handle_state(self.handle).size != self.size + taken:
                return False
            if taken:
                self.files.truncate(self.handle, self.size)
        except OSError:
            return False
        return True


@shapes.frozen(kw_only=True)
class Places:
    """The files of one session."""

    session: str
    """`<session>.jsonl`: exactly the lines of the session."""

    @property
    def work(self) -> str:
        """The side file; its name does not end in `.jsonl`, so no listing shows it (SES-68)."""
        return f"{self.session}.work"

    @property
    def lock(self) -> str:
        """The file that carries the lease."""
        return f"{self.session}.lock"

    @property
    def lost(self) -> str:
        """Batches that a foreign writer overtook."""
        return f"{self.session}.lost"

    @property
    def new_session(self) -> str:
        """The session file while it is being made."""
        return f"{self.session}.new"

    @property
    def new_work(self) -> str:
        """The side file while it is being made."""
        return f"{self.session}.work.new"


def written_beside(files: LogFiles, path: str, data: bytes) -> AppendFile:
    """A new file at `path` that holds `data`. What was there is removed, never cut: it may be a second name of something.

    Raises OSError; nothing is left at `path` then, unless it cannot be removed.
    """
    files.unlink(path)
    handle = files.create(path)
    made = AppendFile(files=files, path=path, identity=files.handle_state(handle).identity, size=0, handle=handle)
    try:
        made.append(data)
    except WriteFailed as failed:
        made.give_back()
        files.unlink(path)
        raise failed.why from None
    return made
