"""The session file of an open session: its lines, ours and those of others.

Theory of operation. We write at its end, one write a commit, and know how long it should be.
A file that is longer was written to by a program that ignores the lease (SES-90): what stands
there and is not our last write is read in, in whichever order it landed. A file that is gone
can be written again, because everything in it is known: the bytes that were read, and the
entries that were appended. One that is shorter, or another file, seals the session.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing

import attrs

from camshaft.actors.errors import SessionExists, StorageError
from camshaft.actors.logs.append_file import AppendFile, Places, WriteFailed, written_beside
from camshaft.actors.logs.port import News
from camshaft.actors.logs.seal import Seal
from camshaft.actors.ports.log_files import FileState, LogFiles
from camshaft.kernel import codec, shapes
from camshaft.kernel.entries import Entry
from camshaft.kernel.session_file import Diagnostic, read_entries

Job = Callable[[], None]
"""A call that may block; whoever drives the steps runs it, in a thread or not."""

Steps = Generator[Job, None, None]
"""Work of which only these calls leave the loop. It is told of each that failed, so that it can give back what it holds."""


def following(steps: Steps, failure: OSError | None) -> Job | None:
    """The next call, None at the end; `failure` is that of the one before. Raises what the steps do not get over."""
    try:
        return next(steps) if failure is None else steps.throw(failure)
    except StopIteration:
        return None


def run_steps(steps: Steps) -> None:
    """All of them, one after the other, blocking. Raises what they do not get over."""
    with closing(steps):
        job = following(steps, None)
        while job is not None:
            failure = None
            try:
                job()
            except OSError as error:
                failure = error
            job = following(steps, failure)


@shapes.frozen
class Mark:
    """The file before a write, to take the write back."""

    size: int
    ends_line: bool
    known: int
    last_id: str | None


@shapes.define(eq=False, kw_only=True)
class SessionText:
    """The session file, whether it exists yet or not."""

    files: LogFiles
    places: Places
    seal: Seal
    file: AppendFile | None = None
    """None while it does not exist."""
    last_id: str | None = None
    """Its last entry, whoever wrote it."""
    known: list[bytes | Entry] = attrs.field(factory=list)
    """Everything in it, in order: texts as read, entries as appended."""
    ends_line: bool = True
    _unended: bytes = b""
    """A foreign line that has no end yet and cannot be read so far."""
    _own: bytes = b""
    """Our last write, to be told from foreign ones…"""
    _own_start: int = 0
    """…and where it was to begin."""

    def begin(self, file: AppendFile, text: bytes, last_id: str | None) -> None:
        """The file exists now and holds `text`, which ends its last line."""
        self.file, self.last_id, self.known = file, last_id, [text]
        self._nothing_own(file.size)
        self.ends_line, self._unended = True, b""

    def state(self) -> FileState | None:
        """What stands at its path. Raises StorageError."""
        try:
            return self.files.state(self.places.session)
        except OSError as error:
            raise StorageError(self.places.session, f"cannot look at the file ({error})", "fix the cause, then try again") from error

    # -- writing -------------------------------------------------------------------------

    def write(self, text: bytes, entries: Sequence[Entry]) -> Mark:
        """One write; it begins with a LF if the file does not end with one, or both lines were lost. Raises StorageError."""
        file = self.file
        assert file is not None
        mark = Mark(file.size, self.ends_line, len(self.known), self.last_id)
        data = text if self.ends_line else b"\n" + text
        try:
            file.append(data)
        except WriteFailed as failed:
            raise write_error(failed, self.seal) from failed
        self._own, self._own_start = data, mark.size
        self.ends_line, self._unended = True, b""
        self.known += entries
        self.last_id = entries[-1].id
        return mark

    def take_back(self, mark: Mark) -> bool:
        """Undoes the last write; False if somebody wrote behind it."""
        file = self.file
        assert file is not None
        if not file.cut(mark.size):
            return False
        del self.known[mark.known :]
        self.ends_line, self.last_id = mark.ends_line, mark.last_id
        self._nothing_own(mark.size)
        return True

    def put_in_place(self, text: bytes, *, safe: bool) -> Generator[Job, None, None]:
        """Makes the file: whole under a temporary name, then linked to its own. Yields its syncs if it is to be `safe`.

        The caller says `begin` afterwards. Raises SessionExists, StorageError; nothing is there then.
        """
        files, place, path = self.files, self.places.new_session, self.places.session
        made: AppendFile | None = None
        linked = False
        try:
            made = written_beside(files, place, text)
            if safe:
                yield made.sync
            try:
                files.link(place, path)
            finally:
                self._tidy(place)
            if safe:
                yield lambda: files.sync_folder(path)
            linked = True
        except FileExistsError:
            raise SessionExists(path) from None
        except OSError as error:
            raise StorageError(path, f"cannot create the session file ({error})", "make room or fix permissions") from error
        finally:
            if made is not None and not linked:
                made.give_back()
        self.file = attrs.evolve(made, path=path, synced=made.size if safe else 0, named=safe)

    def _tidy(self, path: str) -> None:
        """Removes a temporary name. One that stays does no harm: the next opening removes it."""
        try:
            self.files.unlink(path)
        except OSError:
            return

    def everything(self) -> bytes:
        """All that is known, as one text whose last line ends."""
        chunks = [chunk if isinstance(chunk, bytes) else codec.line(chunk) for chunk in self.known]
        return b"".join([chunk if chunk.endswith(b"\n") or not chunk else chunk + b"\n" for chunk in chunks])

    # -- what others did -----------------------------------------------------------------

    def look(self) -> News | None:
        """What others appended since our last write, or None. Raises FileNotFoundError if the file is gone, SessionSealed."""
        file = self.file
        assert file is not None
        state = self.state()
        if state is None:
            raise FileNotFoundError(self.places.session)
        if state.identity != file.identity:
            raise self.seal.broken("the session file was replaced by another one")
        if state.size < file.size:
            raise self.seal.broken(f"the session file was cut from {file.size} to {state.size} bytes")
        return self._foreign(file) if state.size > file.size else None

    def _foreign(self, file: AppendFile) -> News:
        """Reads in what a program that ignores the lease wrote before and behind our last write."""
        region = self._read_from(self._own_start)
        at = region.find(self._own)
        glued = at > 0 and bool(self._own) and not region.startswith(b"\n", at - 1) and not self._own.startswith(b"\n")
        if at < 0 or glued:
            raise self.seal.broken("our last line is no longer whole in the session file")
        behind = region[at + len(self._own) :]
        text = self._unended + region[:at] + behind
        image, diagnostics = read_entries(text)
        entries = tuple(image.entry(position) for position in range(len(image.ids)))
        file.size = self._own_start + len(region)
        self.known.append(region[:at] + behind)
        self._nothing_own(file.size)
        if behind:
            self.ends_line = behind.endswith(b"\n")
            rest = b"" if self.ends_line else text[text.rfind(b"\n") + 1 :]
            whole = bool(entries) and image.line(len(entries) - 1) == rest
            self._unended = b"" if whole else rest
            self.last_id = entries[-1].id if entries else self.last_id
        note = Diagnostic(None, f"another program appended {len(entries)} entries; they are a sibling branch")
        return News(entries=entries, diagnostics=(*diagnostics, note))

    def _nothing_own(self, size: int) -> None:
        self._own, self._own_start = b"", size

    def _read_from(self, offset: int) -> bytes:
        try:
            return self.files.read_from(self.places.session, offset)
        except OSError as error:
            what = f"cannot read another program's lines ({error})"
            raise StorageError(self.places.session, what, "fix the cause, then try again") from error


def write_error(failed: WriteFailed, seal: Seal) -> StorageError:
    """The error to raise for a failed append; one that could not be taken back seals the session."""
    if not failed.undone:
        return seal.broken(f"a failed write could not be taken back: {failed}")
    return StorageError(failed.path, f"cannot append ({failed.why})", "make room or fix permissions, then try again")
