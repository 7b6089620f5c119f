"""The JSONL store: one session in one file of lines, with a side file for work in flight.

Theory of operation (the whole protocol, rule by rule and crash by crash, is
`commit-protocol.md` in `design/`). A commit is one write, and that write is its commit point:

* one entry: a write to the session file, records beside it follow in the side file;
* records alone, or several entries, or entries with a decision: a write to the side file, in
  which a `batch` line holds the entries. They reach the session file at once, or, with policy
  `commit`, once the side file is synced: until then they *wait*, and later entries queue up
  behind them, so the order is never broken;
* before the session file exists everything goes to the side file and waits; the file is made
  whole beside its place and linked there. Settings that every new session starts with are
  held in memory until something else is written: a session nobody uses leaves no trace.

`append` has no checkpoint and never blocks on a sync. Syncing is a sequence of steps
(`_sync_steps`), of which only the blocking calls leave the loop: a round covers what was
appended when it began, all who wait share it, and it is driven blocking by `close`. A failed
write is taken back; what cannot be taken back, or fails after it was published, *seals* the
log: `sealed` says why, every later append raises SessionSealed, and opening repairs it.

Before each append the session file is looked at. Grown: a program that ignores the lease
wrote; its entries are read in and handed on as news. Gone: everything known is written again.
Shorter, or another file: sealed. The lease is taken with the first write and given back by
`settle`; when it is taken again and the side file is not as it was left, another process of
ours was here, and nothing may be decided before `claim` has read the session anew.

More than 400 lines, because append, sync and hand-over change the same few fields, and the
order of those changes is the whole point; what can stand alone is in the files beside.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs
import trio

from camshaft.actors.errors import (
    NotASession,
    ReadOnlySession,
    SessionChanged,
    SessionExists,
    SessionGone,
    SessionSealed,
    StorageError,
)
from camshaft.actors.logs.append_file import AppendFile, Places, WriteFailed, chunks_of_lines, written_beside
from camshaft.actors.logs.lease import Lease
from camshaft.actors.logs.port import Loaded, News
from camshaft.actors.logs.recovery import JsonlOptions, Recovered, makes_file, read_bytes, recover
from camshaft.actors.logs.work_file import OpenWork, line_of
from camshaft.actors.ports.log_files import FileState
from camshaft.kernel import codec
from camshaft.kernel.entries import Entry, ModelChangeEntry, SessionHeader, ThinkingLevelChangeEntry
from camshaft.kernel.errors import Rejection
from camshaft.kernel.records import BatchRecord, Decision, DecisionRecord, LeafRecord, OpenRecord, Record
from camshaft.kernel.session_file import Diagnostic, read_entries, read_session

__all__ = ["JsonlLog", "JsonlOptions", "open_jsonl"]

COMPACT_ABOVE_BYTES: Final = 64 * 1024
"""A side file up to this size is read in a millisecond; rewriting it sooner gains nothing."""

SYNC_THREADS_MAX: Final = 8
"""Syncs of different sessions at a time; a disk does not get faster by more."""

_SETTLE_ROUNDS_MAX: Final = 4
"""An idle session needs two (its own `open` line may be due); more means that it is not idle."""

_limiter: Final = trio.CapacityLimiter(SYNC_THREADS_MAX)


def open_jsonl(path: str, options: JsonlOptions) -> tuple["JsonlLog", Loaded]:
    """The session at `path`, and what is in it.

    For writing: the lease is held afterwards, unless neither session nor side file existed;
    then nothing is written before the first commit (SES-16, SES-54). For reading: takes no
    lease and repairs nothing. Blocks for the time of reading: 1.5 µs an entry.

    Raises NotASession (SES-7), SessionGone (A01), SessionLocked (SES-90), StorageError.
    """
    places = Places(session=path)
    if options.mode == "read":
        return _opened_for_reading(places, options)
    files = options.files
    lease = Lease(files=files, session=path, lock=places.lock, holder=options.holder)
    try:
        untouched = files.state(path) is None and files.state(places.work) is None
        if untouched:
            files.make_folder(path)
    except OSError as error:
        raise StorageError(path, f"cannot open the session ({error})", "check folder and permissions") from error
    if untouched:
        return _new_session(places, options, lease)
    lease.take()
    recovered: Recovered | None = None
    try:
        recovered = recover(places, options)
    finally:
        if recovered is None:
            lease.give_back()
    log = JsonlLog(places=places, options=options, lease=lease, header=recovered.header)
    return log, log._begin(recovered)


def _new_session(places: Places, options: JsonlOptions, lease: Lease) -> tuple["JsonlLog", Loaded]:
    header = options.new_header()
    return JsonlLog(places=places, options=options, lease=lease, header=header), Loaded(header=header, entries=())


def _opened_for_reading(places: Places, options: JsonlOptions) -> tuple["JsonlLog", Loaded]:
    try:
        data = read_bytes(options.files, places.session)
    except OSError as error:
        raise StorageError(places.session, f"cannot read the session ({error})", "check its permissions") from error
    if data is None:
        raise SessionGone(places.session, "session file does not exist")
    found = read_session(data, places.session, options.new_entry_id)
    if isinstance(found, Rejection):
        raise NotASession(places.session, found.why)
    lease = Lease(files=options.files, session=places.session, lock=places.lock, holder=options.holder)
    log = JsonlLog(places=places, options=options, lease=lease, header=found.header)
    ids = found.image.ids
    return log, Loaded(header=found.header, entries=found.image, leaf=ids[-1] if ids else None, diagnostics=found.diagnostics)


@attrs.frozen(kw_only=True)
class _Commit:
    """One append, encoded."""

    entries: Sequence[Entry]
    lines: list[bytes]
    records: Sequence[Record]
    decision: Decision | None

    @property
    def text(self) -> bytes:
        """The lines of its entries."""
        return b"".join(self.lines)


@attrs.define(eq=False, kw_only=True)
class JsonlLog:
    """One open session; see the module's header. Not shared between threads."""

    places: Places
    options: JsonlOptions
    lease: Lease
    header: SessionHeader
    sealed: str | None = None
    """Why nothing can be written any more, or None."""
    _session: AppendFile | None = None
    """None while the session file does not exist."""
    _side: AppendFile | None = None
    """The side file W."""
    _work: OpenWork = attrs.field(factory=OpenWork)
    _known: list[bytes | Entry] = attrs.field(factory=list)
    """Everything in the session file, in order: texts as read, entries as appended."""
    _waiting: list[tuple[Entry, bytes]] = attrs.field(factory=list)
    """Entries that the session file lacks, with their lines."""
    _waiting_base: str | None = None
    """Id of the entry before the first that waits."""
    _file_due: bool = False
    """The session file does not exist, but an entry that waits lets it be made (SES-55)."""
    _last_id: str | None = None
    """Last entry in the session file or waiting for it, whoever wrote it."""
    _leaf: str | None = None
    _ends_line: bool = True
    _unended: bytes = b""
    """A foreign line that has no end yet."""
    _own: bytes = b""
    """Our last write to the session file, to be told from foreign ones…"""
    _own_start: int = 0
    """…and where it was to begin."""
    _open_size: int | None = None
    """`size` of the last `open` in the side file."""
    _compact_above: int = COMPACT_ABOVE_BYTES
    _left: FileState | None = None
    """The side file when the lease was given back."""
    _news: News | None = None
    _count: int = 0
    """Commits so far, and how many of them are synced."""
    _synced_count: int = 0
    _round: trio.Event | None = None
    """The sync round that is running."""
    _closed: bool = False

    @property
    def path(self) -> str:
        """The session file, whether it exists yet or not."""
        return self.places.session

    def _begin(self, found: Recovered) -> Loaded:
        """Takes over what recovery found."""
        self.header, self._session, self._side, self._work = found.header, found.session, found.side, found.work
        self._known = [found.image.data] if found.image is not None else []
        self._waiting = [(entry, codec.line(entry)) for entry in found.waiting]
        self._waiting_base, self._last_id, self._leaf = None, found.last_id, found.leaf
        self._file_due, self._ends_line, self._unended = False, True, b""
        self._own, self._own_start = b"", found.session.size if found.session is not None else 0
        self._open_size = found.opened.size if found.opened is not None else None
        self._news = None
        return Loaded(
            header=found.header,
            entries=found.image if found.image is not None else found.waiting,
            records=tuple(found.work.records),
            commands=tuple(found.work.commands.items()),
            leaf=found.leaf,
            diagnostics=found.diagnostics,
        )

    # -- the lease ---------------------------------------------------------------------

    def claim(self) -> Loaded | None:
        """Takes the lease if it was given back. A session that another process of ours wrote is opened again."""
        self._require_open()
        if self.lease.held:
            return None
        self.lease.take()
        again: Recovered | None = None
        kept = False
        try:
            if self._is_as_left():
                self._look()
                kept = True
                return None
            again = recover(self.places, self.options)
            if again.header.id != self.header.id:
                again = None
                raise SessionExists(self.path)
        finally:
            if again is None and not kept:
                self.lease.give_back()
        self._give_back_handles()
        return self._begin(again)

    def _take_lease(self) -> None:
        if self.lease.held:
            return
        self.lease.take()
        if not self._is_as_left():
            self.lease.give_back()
            raise SessionChanged(self.path)

    def _is_as_left(self) -> bool:
        """Whether the side file is what it was when the lease was given back (rule 0a)."""
        return self.options.files.state(self.places.work) == self._left

    def _require_open(self) -> None:
        if self.options.mode == "read":
            raise ReadOnlySession(self.path)
        if self.sealed is not None:
            raise SessionSealed(self.path, self.sealed)
        if self._closed:
            raise SessionSealed(self.path, "it was closed")

    def _seal(self, reason: str) -> SessionSealed:
        """Nothing is written any more; returns the error to raise."""
        if self.sealed is None:
            self.sealed = reason
        return SessionSealed(self.path, self.sealed)

    # -- append ------------------------------------------------------------------------

    def append(self, entries: Sequence[Entry], records: Sequence[Record] = (), decision: Decision | None = None) -> None:
        """Writes one commit: whole, or not at all (then it raises). No checkpoint."""
        self._require_open()
        if decision is not None and not entries:
            records, decision = (DecisionRecord(turn_entry_id=decision.turn_entry_id, continue_=decision.continue_), *records), None
        if not entries and not records:
            return
        commit = _Commit(entries=entries, lines=[codec.line(entry) for entry in entries], records=records, decision=decision)
        if not self._is_held_back(commit):
            self._write(commit)
        self._remember(commit)

    def _is_held_back(self, commit: _Commit) -> bool:
        """Settings before anything else of a new session: they wait in memory (SES-55)."""
        if self._session is not None or self._side is not None or commit.records or commit.decision is not None:
            return False
        if not all(isinstance(entry, (ModelChangeEntry, ThinkingLevelChangeEntry)) for entry in commit.entries):
            return False
        self._wait(commit)
        return True

    def _write(self, commit: _Commit) -> None:
        """The write that makes the commit true, by the rule that fits (2, 2a, 3, 4, 1)."""
        self._take_lease()
        if self._session is not None:
            self._look()
        if self._session is None:
            self._write_before_file(commit)
        elif self._waiting and commit.entries:
            self._write_side(commit)
            self._wait(commit)
        elif len(commit.entries) == 1 and commit.decision is None:
            self._write_single(commit)
        elif commit.entries:
            self._write_batch(commit)
        else:
            self._write_side(commit)

    def _remember(self, commit: _Commit) -> None:
        """After the write: the store's own folds."""
        if commit.decision is not None:
            self._work.take(_batch(None, (), commit.decision))
        if commit.entries:
            self._leaf = commit.entries[-1].id
        for record in commit.records:
            self._work.take(record)
            if isinstance(record, LeafRecord):
                self._leaf = record.id
        self._work.discharge([entry.id for entry in commit.entries])
        self._count += 1

    def _write_single(self, commit: _Commit) -> None:
        """Rules 2 and 2a: the entry may stand without its records, never they without it."""
        session = self._session
        assert session is not None
        before, ended = session.size, self._ends_line
        self._write_session(commit.text, commit.entries)
        if not commit.records:
            return
        try:
            self._write_side(attrs.evolve(commit, entries=(), lines=[]))
        except StorageError:
            if not session.cut(before):
                raise self._seal("an entry was written without its records") from None
            self._forget_session_write(commit.entries, before, ended)
            raise

    def _write_batch(self, commit: _Commit) -> None:
        """Rule 3."""
        back = self._write_side(commit)
        if self.options.durability == "commit":
            self._wait(commit)
            return
        try:
            self._write_session(commit.text, commit.entries)
        except StorageError:
            self._take_side_back(back)
            raise

    def _write_before_file(self, commit: _Commit) -> None:
        """Rule 4: the side file holds everything, also the commit that lets the session file be made."""
        due = self._file_due or makes_file(commit.entries) or (bool(self._waiting) and makes_file([entry for entry, _ in self._waiting]))
        if due and self._state(self.path) is not None:
            raise SessionExists(self.path)
        count, base = len(self._waiting), self._waiting_base
        back = self._write_side(commit)
        self._wait(commit)
        if not due:
            return
        self._file_due = True
        if self.options.durability == "commit":
            return
        try:
            for _unsynced in self._make_session(len(self._waiting)):
                pass
        except StorageError:
            del self._waiting[count:]
            self._waiting_base, self._file_due = base, False
            self._last_id = self._waiting[-1][0].id if self._waiting else None
            self._take_side_back(back)
            raise

    def _wait(self, commit: _Commit) -> None:
        """The entries of the commit are true, but the session file gets them later."""
        if commit.entries:
            if not self._waiting:
                self._waiting_base = self._last_id
            self._waiting += zip(commit.entries, commit.lines, strict=True)
            self._last_id = commit.entries[-1].id

    # -- the session file --------------------------------------------------------------

    def _write_session(self, text: bytes, entries: Sequence[Entry]) -> None:
        """One write to the session file; it begins with a LF if the file lacks one, or both lines were lost."""
        session = self._session
        assert session is not None
        data = text if self._ends_line else b"\n" + text
        start = session.size
        try:
            session.append(data)
        except WriteFailed as failed:
            if not failed.undone:
                raise self._seal(f"a failed write could not be taken back: {failed}") from failed
            raise StorageError(self.path, f"cannot append ({failed.why})", "make room or fix permissions, then try again") from failed
        self._own, self._own_start = data, start
        self._ends_line, self._unended = True, b""
        self._known += entries
        self._last_id = entries[-1].id

    def _forget_session_write(self, entries: Sequence[Entry], before: int, ended: bool) -> None:
        """The last write to the session file was taken back."""
        del self._known[len(self._known) - len(entries) :]
        self._own, self._own_start, self._ends_line = b"", before, ended
        self._last_id = _last_of(self._known)

    def _look(self) -> None:
        """Rule 0: is the session file what we left?"""
        session = self._session
        assert session is not None
        state = self._state(self.path)
        if state is None:
            self._write_again()
        elif state.identity != session.identity:
            raise self._seal("the session file was replaced by another one")
        elif state.size < session.size:
            raise self._seal(f"the session file was cut from {session.size} to {state.size} bytes")
        elif state.size > session.size:
            self._read_foreign(session)

    def _read_foreign(self, session: AppendFile) -> None:
        """Reads in what a program that ignores the lease appended (SES-90)."""
        region = self._read_from(self._own_start)
        at = region.find(self._own)
        glued = at > 0 and not region.startswith(b"\n", at - 1) and not self._own.startswith(b"\n")
        if at < 0 or (glued and self._own):
            raise self._seal("our last line is no longer whole in the session file")
        behind = region[at + len(self._own) :]
        text = self._unended + region[:at] + behind
        image, diagnostics = read_entries(text)
        entries = tuple(image.entry(position) for position in range(len(image.ids)))
        session.size = self._own_start + len(region)
        self._known.append(region[:at] + behind)
        self._own, self._own_start = b"", session.size
        if behind:
            self._ends_line = behind.endswith(b"\n")
            rest = b"" if self._ends_line else text[text.rfind(b"\n") + 1 :]
            whole = bool(entries) and image.line(len(entries) - 1) == rest
            self._unended = b"" if whole else rest
        if behind and not self._waiting and entries:
            self._last_id = entries[-1].id
        self._tell(entries, (*diagnostics, Diagnostic(None, f"another program appended {len(entries)} entries; they are a sibling branch")))

    def _write_again(self) -> None:
        """The session file is gone: everything known is written again (SES-46)."""
        text = self._everything()
        for job in self._write_again_steps(text):
            self._blocking(job)

    def _write_again_steps(self, text: bytes) -> Iterator[Callable[[], None]]:
        safe = self.options.durability == "commit"
        old = self._session
        assert old is not None
        self._write_open(len(text) if self.options.durability != "none" else 0)
        side = self._side
        if safe and side is not None:
            yield side.sync
            side.synced = side.size
        old.give_back()
        yield from self._put_in_place(text, safe=safe)
        self._known += [entry for entry, _ in self._waiting]
        self._waiting.clear()
        self._tell((), (Diagnostic(None, "the session file had disappeared; everything known was written again"),))

    def _everything(self) -> bytes:
        chunks = [chunk if isinstance(chunk, bytes) else codec.line(chunk) for chunk in self._known]
        return chunks_of_lines(iter([*chunks, *[line for _, line in self._waiting]]))

    def _make_session(self, count: int) -> Iterator[Callable[[], None]]:
        """Makes the session file of the first `count` entries that wait; yields the syncs on the way (rule 4)."""
        text = codec.line(self.header) + b"".join([line for _, line in self._waiting[:count]])
        yield from self._put_in_place(text, safe=self.options.durability == "commit")
        self._known = [codec.line(self.header), *[entry for entry, _ in self._waiting[:count]]]
        self._done_waiting(count)
        self._file_due = False

    def _put_in_place(self, text: bytes, *, safe: bool) -> Iterator[Callable[[], None]]:
        """A new session file, whole under a temporary name, then linked to its own. Raises SessionExists, StorageError."""
        files, place = self.options.files, self.places.new_session
        made: AppendFile | None = None
        done = False
        try:
            made = written_beside(files, place, text)
            if safe:
                yield made.sync
            try:
                files.link(place, self.path)
            finally:
                files.unlink(place)
            if safe:
                yield lambda: files.sync_folder(self.path)
            done = True
        except FileExistsError:
            raise SessionExists(self.path) from None
        except OSError as error:
            raise StorageError(self.path, f"cannot create the session file ({error})", "make room or fix permissions") from error
        finally:
            if made is not None and not done:
                made.give_back()
        made = attrs.evolve(made, path=self.path, synced=made.size if safe else 0)
        made.named = safe
        self._session = made
        self._own, self._own_start, self._ends_line, self._unended = b"", made.size, True, b""

    def _done_waiting(self, count: int) -> None:
        """The first `count` entries that waited are in the session file."""
        self._waiting_base = self._waiting[count - 1][0].id
        del self._waiting[:count]

    # -- the side file -----------------------------------------------------------------

    def _write_side(self, commit: _Commit) -> int | None:
        """One write to the side file: the entries as a `batch`, then the records. Returns the size before, None if it is new."""
        last = commit.entries[-1].id if commit.entries else self._last_id
        lines = [line_of(_batch(self._last_id, tuple(commit.entries), commit.decision))] if commit.entries else []
        lines += [line_of(record, last) for record in commit.records]
        text = b"".join(lines)
        side = self._present_side()
        if side is None:
            self._new_side(text)
            return None
        before = side.size
        self._append_side(side, text)
        return before

    def _append_side(self, side: AppendFile, text: bytes) -> None:
        try:
            side.append(text)
        except WriteFailed as failed:
            if not failed.undone:
                raise self._seal(f"a failed write could not be taken back: {failed}") from failed
            raise StorageError(side.path, f"cannot append ({failed.why})", "make room or fix permissions, then try again") from failed

    def _present_side(self) -> AppendFile | None:
        """The side file if it is there; one that disappeared is written anew (rule 0)."""
        side = self._side
        if side is None:
            return None
        state = self._state(side.path)
        if state == side.state:
            return side
        if state is not None:
            raise self._seal("the side file was changed by somebody else")
        side.give_back()
        self._new_side(b"")
        return self._side

    def _new_side(self, text: bytes) -> None:
        """A side file that holds what is open now, and `text`."""
        files, path = self.options.files, self.places.work
        opened = self._opened()
        data = self._side_text(opened) + text
        try:
            handle = files.create(path)
            side = AppendFile(files=files, path=path, identity=files.handle_state(handle).identity, size=0, handle=handle)
        except FileExistsError:
            raise SessionChanged(self.path) from None
        except OSError as error:
            raise StorageError(path, f"cannot create the side file ({error})", "make room or fix permissions") from error
        try:
            side.append(data)
        except WriteFailed as failed:
            self._side = side
            self._take_side_back(None)
            raise StorageError(path, f"cannot create the side file ({failed.why})", "make room or fix permissions") from failed
        self._side, self._open_size = side, opened.size

    def _take_side_back(self, before: int | None) -> None:
        """Undoes the last write to the side file, or seals the log."""
        side = self._side
        if side is None or self.sealed is not None:
            return
        if before is not None:
            if not side.cut(before):
                raise self._seal("a batch in the side file could not be taken back")
            return
        try:
            side.give_back()
            self.options.files.unlink(side.path)
        except OSError as error:
            raise self._seal(f"a batch in the side file could not be taken back ({error})") from error
        self._side, self._open_size = None, None

    def _opened(self) -> OpenRecord:
        """The `open` record that is true now."""
        session = self._session
        size = None if session is None else 0 if self.options.durability == "none" else session.synced
        commands = tuple(self._work.commands.items())
        if self._waiting:
            base = self._waiting_base
            return OpenRecord(header=self.header, size=size, last_id=base, leaf=base, commands=commands)
        return OpenRecord(header=self.header, size=size, last_id=self._last_id, leaf=self._leaf, commands=commands)

    def _side_text(self, opened: OpenRecord) -> bytes:
        """A side file that says all that is open: `open`, what waits as one batch, the open records."""
        lines = [line_of(opened)]
        if self._waiting:
            lines.append(line_of(_batch(self._waiting_base, tuple(entry for entry, _ in self._waiting), None)))
            if self._leaf != self._last_id:
                lines.append(line_of(LeafRecord(id=self._leaf), self._last_id))
        return b"".join([*lines, *[line_of(record) for record in self._work.records]])

    def _write_open(self, size: int) -> None:
        """`open` again, with the decisions it would otherwise end. Raises StorageError."""
        opened = attrs.evolve(self._opened(), size=size, last_id=self._last_id, leaf=self._leaf)
        side = self._present_side()
        if side is None:
            return
        due = [decision for decision in self._work.decisions() if decision in self._work.unconfirmed]
        lines: list[Record] = [*due, opened]
        self._append_side(side, b"".join([line_of(record) for record in lines]))
        for record in lines:
            self._work.take(record)
        self._open_size = size

    # -- syncs -------------------------------------------------------------------------

    async def barrier(self) -> None:
        """What was appended so far is synced (policy `commit`). Cannot be aborted; a cancelled caller learns the outcome."""
        if self.options.durability == "commit" and self._count > self._synced_count:
            with trio.CancelScope(shield=True):
                await self._synced_up_to(self._count)

    async def _synced_up_to(self, count: int) -> None:
        while self._synced_count < count:
            if self.sealed is not None:
                raise SessionSealed(self.path, self.sealed)
            if self._round is not None:
                await self._round.wait()
            else:
                await self._run_round()

    async def _run_round(self) -> None:
        """One round of syncs, shared by all who wait for it."""
        self._require_open()
        self._round, count = trio.Event(), self._count
        try:
            for job in self._sync_steps():
                await trio.to_thread.run_sync(job, limiter=_limiter)
            self._synced_count = count
        except (OSError, StorageError) as error:
            raise self._seal(f"a sync failed: {error}") from error
        finally:
            self._round.set()
            self._round = None
            if self._closed:
                self._give_back_handles()

    def _sync_steps(self) -> Iterator[Callable[[], None]]:
        """The steps of a round; yields what blocks. What waits goes to the session file once the side file is safe (rule 3)."""
        count = len(self._waiting)
        if self._side is not None:
            yield from self._sync_file(self._side)
        if count and self._session is None and self._file_due:
            yield from self._make_session(count)
        elif count and self._session is not None:
            self._take_lease()
            self._look()
            if self._waiting:
                entries = [entry for entry, _ in self._waiting[:count]]
                last_id = self._last_id
                self._write_session(b"".join([line for _, line in self._waiting[:count]]), entries)
                self._last_id = last_id if len(self._waiting) > count else self._last_id
                self._done_waiting(count)
        session = self._session
        if session is None:
            return
        yield from self._sync_file(session)
        if self._side is not None and not self._open_size and not self._waiting and self.options.durability != "none":
            self._write_open(session.synced)

    def _sync_file(self, file: AppendFile) -> Iterator[Callable[[], None]]:
        if file.synced < file.size:
            size = file.size
            file.opened()
            yield file.sync
            file.synced = max(file.synced, min(size, file.size))
        if not file.named:
            path = file.path
            yield lambda: self.options.files.sync_folder(path)
            file.named = True

    async def settle(self) -> None:
        """The session is idle: everything synced, side file compacted, files and lease given back."""
        if self.options.mode == "read" or self._closed or self.sealed is not None or not self.lease.held:
            return
        with trio.CancelScope(shield=True):
            for _ in range(_SETTLE_ROUNDS_MAX):
                if self.options.durability == "none" or not self._dirty():
                    break
                if self._round is not None:
                    await self._round.wait()
                else:
                    await self._run_round()
            if self._compaction_due() and self._round is None:
                await self._compact()
        if not self._dirty() and not self._work.run_open and self._round is None:
            self._hand_over()

    async def _compact(self) -> None:
        self._round, count = trio.Event(), self._count
        try:
            for job in self._compaction():
                await trio.to_thread.run_sync(job, limiter=_limiter)
                if self._count != count:
                    return
        except OSError:
            self._compact_above *= 2
        finally:
            self._round.set()
            self._round = None
            if self._closed:
                self._give_back_handles()

    def _dirty(self) -> bool:
        """Whether something waits for the session file, or for a sync the policy asks for."""
        if self._waiting and (self._session is not None or self._file_due):
            return True
        if self.options.durability == "none":
            return False
        return any(file is not None and file.dirty for file in (self._session, self._side))

    def _compaction_due(self) -> bool:
        side = self._side
        return side is not None and side.size > self._compact_above and not self._work.run_open and not self._dirty()

    def _compaction(self) -> Iterator[Callable[[], None]]:
        """Rule 7: a new side file with what is still open takes the place of the old one. Raises OSError; the old one stays then."""
        files, safe = self.options.files, self.options.durability != "none"
        opened = self._opened()
        made = written_beside(files, self.places.new_work, self._side_text(opened))
        done = False
        try:
            if safe:
                yield made.sync
            files.rename(self.places.new_work, self.places.work)
            done = True
        finally:
            if not done:
                made.give_back()
                files.unlink(self.places.new_work)
        old, self._side = self._side, attrs.evolve(made, path=self.places.work, synced=made.size if safe else 0)
        self._open_size = opened.size
        self._compact_above = max(COMPACT_ABOVE_BYTES, 2 * made.size)
        if old is not None:
            old.give_back()
        if safe:
            yield lambda: files.sync_folder(self.places.work)
            self._side.named = True

    # -- ends --------------------------------------------------------------------------

    def close(self) -> None:
        """As `settle`, blocking, and for good."""
        if self._closed:
            return
        try:
            if self.options.mode == "write" and self.sealed is None and self.lease.held:
                self._settle_blocking()
        finally:
            self._closed = True
            self._drop_unused()
            if self._round is None:
                self._give_back_handles()
            self.lease.give_back()

    async def aclose(self) -> None:
        """As `close`; what blocks is done in a thread first."""
        try:
            await self.settle()
        finally:
            self.close()

    def _settle_blocking(self) -> None:
        """Raises SessionSealed if a sync fails."""
        try:
            for _ in range(_SETTLE_ROUNDS_MAX):
                if not self._dirty():
                    break
                for job in self._sync_steps():
                    job()
            for job in self._compaction() if self._compaction_due() else ():
                job()
        except (OSError, StorageError) as error:
            raise self._seal(f"a sync failed: {error}") from error

    def _drop_unused(self) -> None:
        """A session that never got its file, and of which nothing is in flight, leaves nothing (SES-55)."""
        if self._side is None or self._session is not None or self._file_due or self._work.records or self.sealed:
            return
        try:
            self._take_lease()
            self._side.give_back()
            self.options.files.unlink(self.places.work)
        except (OSError, StorageError):
            return

    def _hand_over(self) -> None:
        self._left = self._side.state if self._side is not None else None
        self._give_back_handles()
        self.lease.give_back()

    def _give_back_handles(self) -> None:
        for file in (self._session, self._side):
            if file is not None:
                file.give_back()

    # -- small parts -------------------------------------------------------------------

    def take_news(self) -> News | None:
        """What a foreign writer appended before our last append, once."""
        news, self._news = self._news, None
        return news

    def _tell(self, entries: tuple[Entry, ...], diagnostics: tuple[Diagnostic, ...]) -> None:
        before = self._news if self._news is not None else News()
        self._news = News(entries=before.entries + entries, diagnostics=before.diagnostics + diagnostics)

    def _state(self, path: str) -> FileState | None:
        try:
            return self.options.files.state(path)
        except OSError as error:
            raise StorageError(path, f"cannot look at the file ({error})", "fix the cause, then try again") from error

    def _read_from(self, offset: int) -> bytes:
        try:
            return self.options.files.read_from(self.path, offset)
        except OSError as error:
            raise StorageError(self.path, f"cannot read another program's lines ({error})", "fix the cause, then try again") from error

    def _blocking(self, job: Callable[[], None]) -> None:
        try:
            job()
        except OSError as error:
            raise self._seal(f"a sync failed: {error}") from error


def _batch(base: str | None, entries: tuple[Entry, ...], decision: Decision | None) -> BatchRecord:
    return BatchRecord(base=base, entries=entries, decision=decision)


def _last_of(known: Sequence[bytes | Entry]) -> str | None:
    """Id of the last entry in what is known. Only after a failure, so reading a text again may cost."""
    for chunk in reversed(known):
        if not isinstance(chunk, bytes):
            return chunk.id
        image, _ = read_entries(chunk)
        if image.ids:
            return image.ids[-1]
    return None
