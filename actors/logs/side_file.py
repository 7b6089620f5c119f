"""The side file of an open session: appended to, taken back, closed by `open`, rewritten.

It comes into being with the first thing written to it, and then begins with all that is open.
One that somebody removed comes into being again in the same way; one that somebody changed
seals the session.
"""

from collections.abc import Callable, Iterator

import attrs

from camshaft.actors.errors import SessionChanged, StorageError
from camshaft.actors.logs.append_file import AppendFile, Places, WriteFailed, written_beside
from camshaft.actors.logs.seal import Seal
from camshaft.actors.logs.session_text import Job, write_error
from camshaft.actors.logs.work_file import OpenWork, line_of
from camshaft.actors.ports.log_files import FileState, LogFiles
from camshaft.kernel import shapes
from camshaft.kernel.records import OpenRecord, Record


@shapes.frozen(kw_only=True)
class Beginning:
    """What a new side file begins with: `open`, then what is still open."""

    opened: OpenRecord
    text: bytes


@shapes.define(eq=False, kw_only=True)
class SideFile:
    """The side file, whether it exists yet or not."""

    files: LogFiles
    places: Places
    seal: Seal
    beginning: Callable[[], Beginning]
    """What a side file written now would begin with."""
    work: OpenWork = attrs.field(factory=OpenWork)
    """What its lines still mean."""
    file: AppendFile | None = None
    open_size: int | None = None
    """`size` of its last `open`."""
    left: FileState | None = None
    """What it was when the lease was given back."""
    _compact_above: int = 0
    """Size from which on rewriting can gain again."""

    def begin(self, file: AppendFile | None, opened: OpenRecord | None, work: OpenWork) -> None:
        """Takes over what recovery found."""
        self.file, self.work = file, work
        self.open_size = opened.size if opened is not None else None

    def leave(self) -> None:
        """The lease is given back."""
        self.left = self.file.state if self.file is not None else None

    def is_as_left(self) -> bool:
        """Whether nobody wrote it since `leave` (rule 0a). Raises StorageError."""
        return self._state() == self.left

    def write(self, text: bytes) -> int | None:
        """One write. Returns the size before, for `take_back`; None if the file is new. Raises StorageError."""
        file = self._present()
        if file is None:
            self._create(self.beginning(), text)
            return None
        before = file.size
        self._append(file, text)
        return before

    def take_back(self, before: int | None) -> None:
        """Undoes the last write, or seals the session. Does nothing if it is sealed already."""
        file = self.file
        if file is None or self.seal.reason is not None:
            return
        if before is not None:
            if not file.cut(before):
                raise self.seal.broken("a batch in the side file could not be taken back")
            return
        try:
            file.give_back()
            self.files.unlink(file.path)
        except OSError as error:
            raise self.seal.broken(f"a batch in the side file could not be taken back ({error})") from error
        self.file, self.open_size = None, None

    def write_open(self, opened: OpenRecord) -> None:
        """`open` again, with the decisions it would otherwise end. Raises StorageError."""
        file = self._present()
        lines: list[Record] = [*self.work.unconfirmed, opened]
        text = b"".join([line_of(record) for record in lines])
        if file is None:
            self._create(Beginning(opened=opened, text=text), b"")
        else:
            self._append(file, text)
        for record in lines:
            self.work.take(record)
        self.open_size = opened.size

    def compaction_due(self, above: int) -> bool:
        """Whether it is longer than `above` bytes, and long enough for a rewriting to gain."""
        return self.file is not None and self.file.size > max(above, self._compact_above) and not self.work.run_open

    def compaction(self, *, safe: bool, wanted: Callable[[], bool]) -> Iterator[Job]:
        """Rule 7: a new side file takes the place of the old one, if it is still wanted once it is safe.

        Raises OSError; the old one stays then. Raises SessionSealed if only the last sync fails.
        """
        beginning = self.beginning()
        self._compact_above = 2 * (self.file.size if self.file is not None else 0)
        made = written_beside(self.files, self.places.new_work, beginning.text)
        done = False
        try:
            if safe:
                yield made.sync
            if not wanted():
                self.files.unlink(self.places.new_work)
                return
            self.files.rename(self.places.new_work, self.places.work)
            done = True
        finally:
            if not done:
                made.give_back()
        old, self.file = self.file, attrs.evolve(made, path=self.places.work, synced=made.size if safe else 0)
        self.open_size = beginning.opened.size
        self._compact_above = 2 * made.size
        if old is not None:
            old.give_back()
        if safe:
            try:
                yield lambda: self.files.sync_folder(self.places.work)
            except OSError as error:  # The old one is gone already.
                raise self.seal.broken(f"a sync failed: {error}") from error
            self.file.named = True

    def remove(self) -> None:
        """The session leaves nothing. Raises OSError."""
        if self.file is not None:
            self.file.give_back()
            self.files.unlink(self.places.work)
            self.file = None

    # -- inside --------------------------------------------------------------------------

    def _append(self, file: AppendFile, text: bytes) -> None:
        try:
            file.append(text)
        except WriteFailed as failed:
            raise write_error(failed, self.seal) from failed

    def _present(self) -> AppendFile | None:
        """The file if it is there; one that disappeared is written anew (rule 0)."""
        file = self.file
        if file is None:
            return None
        state = self._state()
        if state == file.state:
            return file
        if state is not None:
            raise self.seal.broken("the side file was changed by somebody else")
        file.give_back()
        self._create(self.beginning(), b"")
        return self.file

    def _create(self, beginning: Beginning, text: bytes) -> None:
        path = self.places.work
        try:
            handle = self.files.create(path)
            file = AppendFile(files=self.files, path=path, identity=self.files.handle_state(handle).identity, size=0, handle=handle)
        except FileExistsError:
            raise SessionChanged(self.places.session) from None
        except OSError as error:
            raise StorageError(path, f"cannot create the side file ({error})", "make room or fix permissions") from error
        self.file = file
        try:
            file.append(beginning.text + text)
        except WriteFailed as failed:
            self.take_back(None)
            raise StorageError(path, f"cannot create the side file ({failed.why})", "make room or fix permissions") from failed
        self.open_size = beginning.opened.size

    def _state(self) -> FileState | None:
        try:
            return self.files.state(self.places.work)
        except OSError as error:
            raise StorageError(self.places.work, f"cannot look at the file ({error})", "fix the cause, then try again") from error
