"""Opening a session for writing: from the bytes of its files to a session without loose ends.

Theory of operation. Recovery is a function of what stands in the files, not of how far an
earlier recovery came: it may be cut at any byte and starts over with the same procedure. It
never removes a readable line of the session file and never appends behind entries of a
foreign writer. In order:

1. Read both files; the side file up to its first broken line.
2. Refuse, before anything is written, what does not fit together (A01). A headless beginning
   of a session file that the side file says did not exist yet is removed: power was lost
   while it was made.
3. Entries that the side file holds and the session file lacks are appended in one write, if
   the session file ends where they belong; otherwise their batch is superseded, its line goes
   to the `.lost` file and its decision is void. A session file that was never made is made.
4. What the records still mean is reported, not acted upon.
5. `open` goes to the side file unless it ends with the same one. It closes the batches.

A session without side file gets one with its first commit that needs it, not by being opened.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import attrs

from camshaft.actors.errors import NotASession, SessionGone, StorageError
from camshaft.actors.logs.append_file import AppendFile, Places, WriteFailed, written_beside
from camshaft.actors.logs.port import Durability
from camshaft.actors.logs.work_file import OpenWork, WorkLine, WorkText, entries_of, leaf_of, line_of, read_work, work_of
from camshaft.actors.ports.log_files import LogFiles
from camshaft.kernel import codec, shapes
from camshaft.kernel.entries import Entry, MessageEntry, SessionHeader
from camshaft.kernel.errors import Rejection
from camshaft.kernel.messages import AssistantMessage, UserMessage
from camshaft.kernel.records import BatchRecord, OpenRecord
from camshaft.kernel.session_file import Diagnostic, SessionFile, SessionImage, read_session

COMPACT_ABOVE_BYTES: Final = 64 * 1024
"""A side file up to this size is read in a millisecond; rewriting it sooner gains nothing."""


@shapes.frozen(kw_only=True)
class JsonlOptions:
    """What a JSONL store needs besides its path."""

    files: LogFiles
    new_header: Callable[[], SessionHeader]
    """For a session that does not exist yet, and for an empty file (SES-16)."""
    new_entry_id: Callable[[], str]
    """For entries of version 1, which had none."""
    holder: str
    """Names this process to others that find the session locked."""
    mode: Literal["write", "read"] = "write"
    durability: Durability = "commit"
    compact_above_bytes: int = COMPACT_ABOVE_BYTES
    """Size of a side file from which on it is rewritten when the session is idle."""


@shapes.frozen(kw_only=True)
class Recovered:
    """A session whose files fit together."""

    header: SessionHeader
    session: AppendFile | None
    """None while the session file does not exist."""
    side: AppendFile | None
    image: SessionImage | None
    waiting: tuple[Entry, ...]
    """Before the session file exists: all entries."""
    work: OpenWork
    leaf: str | None
    last_id: str | None
    opened: OpenRecord | None
    """The `open` record that counts in the side file."""
    diagnostics: tuple[Diagnostic, ...]


def makes_file(entries: Sequence[Entry]) -> bool:
    """Whether one of these lets the session file be created (SES-55)."""
    return any(isinstance(entry, MessageEntry) and isinstance(entry.message, (UserMessage, AssistantMessage)) for entry in entries)


def recover(places: Places, options: JsonlOptions) -> Recovered:
    """The session at `places`, repaired. The caller holds the lease.

    Raises NotASession, SessionGone (both: nothing was written) or StorageError.
    """
    try:
        return _Recovery(places=places, options=options, files=options.files).run()
    except WriteFailed as failed:
        raise StorageError(failed.path, f"cannot repair the session ({failed.why})", "make room, then open it again") from failed
    except OSError as error:
        raise StorageError(places.session, f"cannot open the session ({error})", "fix the cause, then open it again") from error


def read_bytes(files: LogFiles, path: str) -> bytes | None:
    """The content of a file, or None if there is none."""
    try:
        return files.read(path)
    except FileNotFoundError:
        return None


@shapes.define(eq=False, kw_only=True)
class _Recovery:
    """One run of the five steps; holds what they pass on."""

    places: Places
    options: JsonlOptions
    files: LogFiles
    data: bytes | None = None
    """The session file."""
    text: WorkText = WorkText()
    session: AppendFile | None = None
    side: AppendFile | None = None
    found: SessionFile | None = None
    superseded: list[BatchRecord] = attrs.field(factory=list)
    diagnostics: list[Diagnostic] = attrs.field(factory=list)

    def run(self) -> Recovered:
        """Steps 1 to 5."""
        self._read()
        self._check()
        self._clear_leftovers()
        self._complete()
        return self._reported()

    # 1 and 2: read, refuse

    def _read(self) -> None:
        self.data = read_bytes(self.files, self.places.session)
        work = read_bytes(self.files, self.places.work)
        if work is None:
            return
        self.text = read_work(work)
        state = self.files.state(self.places.work)
        if state is None:
            raise FileNotFoundError(f"{self.places.work!r} disappeared while it was read")
        self.side = AppendFile(files=self.files, path=self.places.work, identity=state.identity, size=len(work))

    def _check(self) -> None:
        opened = self.text.last_open
        if self.data is None:
            if opened is not None and opened.size is not None:
                raise SessionGone(self.places.session, f"session file is missing; it held at least {opened.size} bytes")
            return
        if opened is not None and opened.size is not None and len(self.data) < opened.size:
            raise SessionGone(self.places.session, f"session file has {len(self.data)} bytes; it held at least {opened.size}")
        found = read_session(self.data, self.places.session, self.options.new_entry_id)
        if isinstance(found, SessionFile):
            if opened is not None and opened.header.id != found.header.id:
                what = f"session file holds session {found.header.id!r}; its side file belongs to {opened.header.id!r}"
                raise SessionGone(self.places.session, what)
            self.found = found
        elif self._is_our_beginning(opened):
            self.files.unlink(self.places.session)
            self.data = None
        elif self.data:
            raise NotASession(self.places.session, found.why)
        elif opened is not None:
            raise SessionGone(self.places.session, "session file is empty; its side file says that it held a session")

    def _is_our_beginning(self, opened: OpenRecord | None) -> bool:
        """Whether the headless text is what creating the session file would begin with."""
        if opened is None or opened.size is not None or self.data is None:
            return False
        return codec.line(opened.header).startswith(self.data)

    def _clear_leftovers(self) -> None:
        """Cuts the torn end of the side file and removes temporary files."""
        side = self.side
        if side is not None and self.text.last_open is None:
            self.files.unlink(side.path)
            self.side = None
        elif side is not None and self.text.size < side.size:
            side.opened()
            if not side.cut(self.text.size):
                raise OSError(f"cannot cut the torn end of {side.path!r}")
        if self.files.state(self.places.new_session) is not None:
            self.files.unlink(self.places.new_session)
        if self.files.state(self.places.new_work) is not None:
            self.files.unlink(self.places.new_work)

    # 3: complete

    def _complete(self) -> None:
        if self.data is None:
            self._make_session()
            return
        state = self.files.state(self.places.session)
        if state is None or state.size != len(self.data):
            raise OSError(f"{self.places.session!r} changed while it was read")
        self.session = AppendFile(files=self.files, path=self.places.session, identity=state.identity, size=state.size)
        if self.found is None:
            self._begin_empty_file()
        elif self.found.rewritten is not None:
            self._migrate(self.found.rewritten)
        self._roll_forward()

    def _make_session(self) -> None:
        """The session file that was never made, if it is due (SES-55)."""
        opened = self.text.last_open
        entries = entries_of(self.text.batches_due())
        if opened is None or not makes_file(entries):
            return
        data = codec.line(opened.header) + b"".join([codec.line(entry) for entry in entries])
        safe = self.options.durability == "commit"
        if safe and self.side is not None:
            self._sync(self.side)
        made = written_beside(self.files, self.places.new_session, data)
        if safe:
            self._sync(made)
        self.files.link(self.places.new_session, self.places.session)
        self.files.unlink(self.places.new_session)
        self.session = attrs.evolve(made, path=self.places.session, named=False)
        self._read_again(data)

    def _begin_empty_file(self) -> None:
        """An empty file gets its header at once (SES-16)."""
        assert self.session is not None
        header = codec.line(self.options.new_header())
        self.session.append(header)
        self._read_again(header)

    def _migrate(self, data: bytes) -> None:
        """Puts the file of the current version in place of the old one (SES-12, SES-14)."""
        made = written_beside(self.files, self.places.new_session, data)
        if self.options.durability != "none":
            self._sync(made)
        self.files.rename(self.places.new_session, self.places.session)
        self.session = attrs.evolve(made, path=self.places.session, named=False)
        self.data = data
        self.diagnostics.append(Diagnostic(None, "session file was migrated to version 3"))

    def _roll_forward(self) -> None:
        """Appends what the batches hold and the session file lacks, in one write, and ends its last line."""
        assert self.session is not None and self.found is not None and self.data is not None
        image = self.found.image
        added: dict[str, bytes] = {}
        last = image.ids[-1] if image.ids else None
        for line in self.text.batches_due():
            batch = line.record
            assert isinstance(batch, BatchRecord)
            present = [entry.id for entry in batch.entries if entry.id in image.index or entry.id in added]
            missing = [entry for entry in batch.entries if entry.id not in image.index and entry.id not in added]
            if missing and (present[-1] if present else batch.base) != last:
                self._supersede(line, batch)
            elif missing:
                added.update({entry.id: codec.line(entry) for entry in missing})
                last = missing[-1].id
        ends_line = self.data.endswith(b"\n")
        data = (b"" if ends_line else b"\n") + b"".join(added.values())
        if not data:
            return
        if added and self.side is not None and self.options.durability == "commit":
            self._sync(self.side)
        self.session.append(data)
        if added:
            self._read_again(self.data + data)
            self.diagnostics.append(Diagnostic(None, f"{len(added)} entries of an unfinished write were completed"))

    def _supersede(self, line: WorkLine, batch: BatchRecord) -> None:
        """Keeps the line of a batch that comes too late, once."""
        self.superseded.append(batch)
        what = f"a batch of {len(batch.entries)} entries was overtaken by another writer; it is kept in {self.places.lost!r}"
        self.diagnostics.append(Diagnostic(None, what))
        kept = read_bytes(self.files, self.places.lost)
        if kept is not None and line.raw in kept:
            return
        handle = self.files.create(self.places.lost) if kept is None else self.files.open(self.places.lost)
        state = self.files.handle_state(handle)
        lost = AppendFile(files=self.files, path=self.places.lost, identity=state.identity, size=state.size, handle=handle)
        try:
            lost.append(_still_missing(line.raw, kept or b""))
            if self.options.durability != "none":
                self._sync(lost)
        finally:
            lost.give_back()

    # 4 and 5: report, close

    def _reported(self) -> Recovered:
        """What the session is now; the side file says so too."""
        image = self.found.image if self.found is not None else None
        waiting = () if image is not None else tuple(entries_of(self.text.batches_due()))
        present: Mapping[str, int] = image.index if image is not None else {entry.id: 0 for entry in waiting}
        ids: Sequence[str] = image.ids if image is not None else [entry.id for entry in waiting]
        last_id = ids[-1] if ids else None
        work = work_of(self.text, present, self.superseded)
        leaf = leaf_of(self.text, last_id)
        opened = self.text.last_open
        header = self.found.header if self.found is not None else opened.header if opened is not None else self.options.new_header()
        if self.session is not None and self.side is not None:
            opened = self._close_batches(self.session, self.side, work, OpenRecord(header=header, size=0, last_id=last_id, leaf=leaf))
        return Recovered(
            header=header,
            session=self.session,
            side=self.side,
            image=image,
            waiting=waiting,
            work=work,
            leaf=leaf,
            last_id=last_id,
            opened=opened,
            diagnostics=(*(self.found.diagnostics if self.found is not None else ()), *self.diagnostics),
        )

    def _close_batches(self, session: AppendFile, side: AppendFile, work: OpenWork, now: OpenRecord) -> OpenRecord:
        """Syncs the session file and writes `open`, unless the side file ends with it."""
        unsynced = self.options.durability == "none"
        opened = attrs.evolve(now, size=0 if unsynced else session.size, commands=tuple(work.commands.items()))
        if self.text.lines and self.text.lines[-1].record == opened:
            return opened
        if not unsynced:
            self._sync(session)
        due = [line_of(decision) for decision in work.unconfirmed]
        side.append(b"".join([*due, line_of(opened)]))
        for decision in work.unconfirmed:
            work.take(decision)
        work.take(opened)
        return opened

    def _read_again(self, data: bytes) -> None:
        """After bytes were added. The text is ours, so it is a session."""
        found = read_session(data, self.places.session, self.options.new_entry_id)
        if isinstance(found, Rejection):
            raise NotASession(self.places.session, found.why)
        self.data, self.found = data, found

    def _sync(self, file: AppendFile) -> None:
        """Blocks until file and name are safe."""
        file.sync()
        file.synced = file.size
        if not file.named:
            self.files.sync_folder(file.path)
            file.named = True


def _still_missing(line: bytes, kept: bytes) -> bytes:
    """What to append so that `line` stands in a file that ends as `kept`: a cut may have left all of it but its end."""
    if kept.endswith(line.rstrip(b"\n")):
        return b"\n"
    return line if not kept or kept.endswith(b"\n") else b"\n" + line
