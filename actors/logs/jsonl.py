"""The JSONL store: one session in one file of lines, with a side file for work in flight.

Theory of operation (`design/log.md` has it rule by rule and crash
by crash). A commit is one write, and that write is its commit point:

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

Before each append the session file is looked at: `session_text.py` says what is done about
others. The lease is taken with the first write and given back by `settle`; when it is taken
again and the side file is not as it was left, another process of ours was here, and nothing
may be decided before `claim` has read the session anew.

Longer than 400 lines because append, sync and hand-over change the same few fields, and the
order of those changes is the point; what can stand alone is in the files beside.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Final

import attrs
import trio

from camshaft.actors.errors import NotASession, ReadOnlySession, SessionChanged, SessionExists, SessionGone, SessionSealed, StorageError
from camshaft.actors.logs.append_file import AppendFile, Places
from camshaft.actors.logs.lease import Lease
from camshaft.actors.logs.port import Loaded, News
from camshaft.actors.logs.recovery import JsonlOptions, Recovered, makes_file, read_bytes, recover
from camshaft.actors.logs.seal import Seal
from camshaft.actors.logs.session_text import Job, SessionText, Steps, following, run_steps
from camshaft.actors.logs.side_file import Beginning, SideFile
from camshaft.actors.logs.work_file import line_of
from camshaft.kernel import codec, shapes
from camshaft.kernel.entries import Entry, ModelChangeEntry, SessionHeader, ThinkingLevelChangeEntry
from camshaft.kernel.errors import Rejection
from camshaft.kernel.records import BatchRecord, Decision, DecisionRecord, LeafRecord, OpenRecord, Record
from camshaft.kernel.session_file import Diagnostic, read_session

__all__ = ["JsonlLog", "JsonlOptions", "open_jsonl"]

SETTLE_ROUNDS_MAX: Final = 4
"""An idle session needs two (its own `open` line may be due); more means that it is not idle."""


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
    log = _log(places, options, lease, recovered.header)
    return log, log._begin(recovered)


def _new_session(places: Places, options: JsonlOptions, lease: Lease) -> tuple["JsonlLog", Loaded]:
    header = options.new_header()
    return _log(places, options, lease, header), Loaded(header=header, entries=())


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
    log = _log(places, options, lease, found.header)
    ids = found.image.ids
    return log, Loaded(header=found.header, entries=found.image, leaf=ids[-1] if ids else None, diagnostics=found.diagnostics)


def _log(places: Places, options: JsonlOptions, lease: Lease, header: SessionHeader) -> "JsonlLog":
    return JsonlLog(places=places, options=options, lease=lease, header=header, seal=Seal(places.session))


@shapes.frozen(kw_only=True)
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

    def side_text(self, base: str | None) -> bytes:
        """Its lines in the side file: the entries as a `batch`, then the records. `base` is the entry before them."""
        last = self.entries[-1].id if self.entries else base
        batch = [line_of(BatchRecord(base=base, entries=tuple(self.entries), decision=self.decision))] if self.entries else []
        return b"".join([*batch, *[line_of(record, last) for record in self.records]])


@shapes.define(eq=False, kw_only=True)
class JsonlLog:
    """One open session; see the module's header. Not shared between threads."""

    places: Places
    options: JsonlOptions
    lease: Lease
    header: SessionHeader
    seal: Seal
    _text: SessionText = attrs.field(init=False)
    _side: SideFile = attrs.field(init=False)
    _waiting: list[tuple[Entry, bytes]] = attrs.field(factory=list)
    """Entries that the session file lacks, with their lines."""
    _file_due: bool = False
    """The session file does not exist, but an entry that waits lets it be made (SES-55)."""
    _leaf: str | None = None
    _news: News | None = None
    _count: int = 0
    """Commits so far…"""
    _synced_count: int = 0
    """…and how many of them are synced."""
    _round: trio.Event | None = None
    """The round of syncs that is running."""
    _closed: bool = False

    def __attrs_post_init__(self) -> None:
        files = self.options.files
        self._text = SessionText(files=files, places=self.places, seal=self.seal)
        self._side = SideFile(files=files, places=self.places, seal=self.seal, beginning=self._beginning)

    @property
    def path(self) -> str:
        """The session file, whether it exists yet or not."""
        return self.places.session

    @property
    def sealed(self) -> str | None:
        """Why nothing can be written any more, or None."""
        return self.seal.reason

    @property
    def _last_id(self) -> str | None:
        """The last entry in the session file or waiting for it, whoever wrote it."""
        return self._waiting[-1][0].id if self._waiting else self._text.last_id

    def _begin(self, found: Recovered) -> Loaded:
        """Takes over what recovery found."""
        self.header, self._leaf, self._news, self._file_due = found.header, found.leaf, None, False
        self._text = SessionText(files=self.options.files, places=self.places, seal=self.seal)
        if found.session is not None and found.image is not None:
            self._text.begin(found.session, found.image.data, found.last_id)
        self._side.begin(found.side, found.opened, found.work)
        self._waiting = [(entry, codec.line(entry)) for entry in found.waiting]
        return Loaded(
            header=found.header,
            entries=found.image if found.image is not None else found.waiting,
            records=found.work.records,
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
            if self._side.is_as_left():
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
        if not self._side.is_as_left():
            self.lease.give_back()
            raise SessionChanged(self.path)

    def _require_open(self) -> None:
        if self.options.mode == "read":
            raise ReadOnlySession(self.path)
        self.seal.check()
        if self._closed:
            raise SessionSealed(self.path, "it was closed")

    # -- append ------------------------------------------------------------------------

    def append(self, entries: Sequence[Entry], records: Sequence[Record] = (), decision: Decision | None = None) -> None:
        """Writes one commit: whole, or not at all (then it raises). No checkpoint."""
        self._require_open()
        if decision is not None and not entries:
            records, decision = (DecisionRecord(turn_entry_id=decision.turn_entry_id, continue_=decision.continue_), *records), None
        if not entries and not records:
            return
        commit = _Commit(entries=entries, lines=[codec.line(entry) for entry in entries], records=records, decision=decision)
        if self._is_held_back(commit):
            self._wait(commit)
        else:
            self._write(commit)
        self._remember(commit)

    def _is_held_back(self, commit: _Commit) -> bool:
        """Settings before anything else of a new session wait in memory (SES-55)."""
        if self._text.file is not None or self._side.file is not None or commit.records or commit.decision is not None:
            return False
        return all(isinstance(entry, (ModelChangeEntry, ThinkingLevelChangeEntry)) for entry in commit.entries)

    def _write(self, commit: _Commit) -> None:
        """The write that makes the commit true, by the rule that fits (4, 3, 2, 1)."""
        self._take_lease()
        self._look()
        if self._text.file is None:
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
        work = self._side.work
        if commit.decision is not None:
            work.take(BatchRecord(base=None, entries=(), decision=commit.decision))
        if commit.entries:
            self._leaf = commit.entries[-1].id
        for record in commit.records:
            work.take(record)
            if isinstance(record, LeafRecord):
                self._leaf = record.id
        work.discharge([entry.id for entry in commit.entries])
        self._count += 1

    def _write_single(self, commit: _Commit) -> None:
        """Rules 2 and 2a: the entry may stand without its records, never they without it."""
        mark = self._text.write(commit.text, commit.entries)
        if not commit.records:
            return
        try:
            self._write_side(attrs.evolve(commit, entries=(), lines=[]))
        except StorageError:
            if not self._text.take_back(mark):
                raise self.seal.broken("an entry was written without its records") from None
            raise

    def _write_batch(self, commit: _Commit) -> None:
        """Rule 3."""
        before = self._write_side(commit)
        if self.options.durability == "commit":
            self._wait(commit)
            return
        try:
            self._text.write(commit.text, commit.entries)
        except StorageError:
            self._side.take_back(before)
            raise

    def _write_before_file(self, commit: _Commit) -> None:
        """Rule 4: the side file holds everything, also the commit that lets the session file be made."""
        due = self._file_due or makes_file(commit.entries) or makes_file([entry for entry, _ in self._waiting])
        if due and self._text.state() is not None:
            raise SessionExists(self.path)
        count = len(self._waiting)
        before = self._write_side(commit)
        self._wait(commit)
        self._file_due = due
        if not due or self.options.durability == "commit":
            return
        try:
            for _unsynced in self._make_session(len(self._waiting)):
                pass
        except StorageError:
            del self._waiting[count:]
            self._file_due = False
            self._side.take_back(before)
            raise

    def _write_side(self, commit: _Commit) -> int | None:
        return self._side.write(commit.side_text(self._last_id))

    def _wait(self, commit: _Commit) -> None:
        """The entries of the commit are true, but the session file gets them later."""
        self._waiting += zip(commit.entries, commit.lines, strict=True)

    # -- the session file --------------------------------------------------------------

    def _look(self) -> None:
        """Rule 0: is the session file what we left?"""
        if self._text.file is None:
            return
        try:
            news = self._text.look()
        except FileNotFoundError:
            self._write_again()
            return
        if news is not None:
            self._tell(news)

    def _write_again(self) -> None:
        """The session file is gone: everything known is written again (SES-46). Blocks; this is rare."""
        text, last_id = self._text.everything() + b"".join([line for _, line in self._waiting]), self._last_id
        try:
            run_steps(self._write_again_steps(text, last_id))
        except OSError as error:
            raise self.seal.broken(f"a sync failed: {error}") from error
        self._tell(News(diagnostics=(Diagnostic(None, "the session file had disappeared; everything known was written again"),)))

    def _write_again_steps(self, text: bytes, last_id: str | None) -> Steps:
        safe, old = self.options.durability == "commit", self._text.file
        size = 0 if self.options.durability == "none" else len(text)
        self._side.write_open(attrs.evolve(self._opened(), size=size, last_id=last_id, leaf=self._leaf))
        if safe and self._side.file is not None:
            yield from self._sync_file(self._side.file)
        if old is not None:
            old.give_back()
        yield from self._put_in_place(text, last_id, safe=safe)
        self._waiting.clear()

    def _make_session(self, count: int) -> Iterator[Job]:
        """Makes the session file of the first `count` entries that wait; yields the syncs on the way (rule 4)."""
        text = codec.line(self.header) + b"".join([line for _, line in self._waiting[:count]])
        last_id = self._waiting[count - 1][0].id
        yield from self._put_in_place(text, last_id, safe=self.options.durability == "commit")
        del self._waiting[:count]
        self._file_due = False

    def _put_in_place(self, text: bytes, last_id: str | None, *, safe: bool) -> Iterator[Job]:
        yield from self._text.put_in_place(text, safe=safe)
        if self._text.file is not None:
            self._text.begin(self._text.file, text, last_id)

    # -- the side file -----------------------------------------------------------------

    def _opened(self) -> OpenRecord:
        """The `open` record that is true now, what waits left out."""
        file = self._text.file
        size = None if file is None else 0 if self.options.durability == "none" else file.synced
        last_id = self._text.last_id
        commands = tuple(self._side.work.commands.items())
        return OpenRecord(header=self.header, size=size, last_id=last_id, leaf=last_id if self._waiting else self._leaf, commands=commands)

    def _beginning(self) -> Beginning:
        """A side file that says all that is open: `open`, what waits as one batch, the open records."""
        opened = self._opened()
        lines = [line_of(opened)]
        if self._waiting:
            lines.append(line_of(BatchRecord(base=opened.last_id, entries=tuple([entry for entry, _ in self._waiting]))))
            if self._leaf != self._last_id:
                lines.append(line_of(LeafRecord(id=self._leaf), self._last_id))
        return Beginning(opened=opened, text=b"".join([*lines, *[line_of(record) for record in self._side.work.records]]))

    # -- syncs -------------------------------------------------------------------------

    async def barrier(self) -> None:
        """What was appended so far is synced (policy `commit`). Cannot be aborted; a cancelled caller learns the outcome."""
        if self.options.durability != "commit":
            return
        count = self._count
        with trio.CancelScope(shield=True):
            while self._synced_count < count:
                await self._round_of_syncs()

    async def _round_of_syncs(self) -> None:
        """Joins the round that is running, or runs one."""
        self.seal.check()
        if self._round is not None:
            await self._round.wait()
            return
        count = self._count
        await self._drive(self._sync_steps())
        self._synced_count = max(self._synced_count, count)

    async def _drive(self, steps: Steps) -> None:
        """Runs the blocking steps apart from the loop. The steps hear of a failure; one they do not get over seals the log."""
        self._round = trio.Event()
        try:
            with closing(steps):
                job = following(steps, None)
                while job is not None:
                    failure = None
                    try:
                        await self.options.files.blocking(job)
                    except OSError as error:
                        failure = error
                    job = following(steps, failure)
        except (OSError, StorageError) as error:
            raise self.seal.broken(f"a sync failed: {error}") from error
        finally:
            self._round.set()
            self._round = None
            if self._closed:
                self._give_back_handles()

    def _sync_steps(self) -> Steps:
        """The steps of a round; yields what blocks. What waits goes to the session file once the side file is safe (rule 3)."""
        count = len(self._waiting)
        if self._side.file is not None:
            yield from self._sync_file(self._side.file)
        if count and self._text.file is None and self._file_due:
            yield from self._make_session(count)
        elif count and self._text.file is not None:
            self._look()
            ready = self._waiting[:count]
            if ready:
                self._text.write(b"".join([line for _, line in ready]), [entry for entry, _ in ready])
                del self._waiting[:count]
        file = self._text.file
        if file is None:
            return
        yield from self._sync_file(file)
        if self._side.file is not None and not self._side.open_size and not self._waiting and self.options.durability != "none":
            self._side.write_open(self._opened())

    def _sync_file(self, file: AppendFile) -> Iterator[Job]:
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
            for _ in range(SETTLE_ROUNDS_MAX):
                if not self._dirty():
                    break
                await self._round_of_syncs()
            if self._round is None and not self._dirty() and self._side.compaction_due(self.options.compact_above_bytes):
                await self._drive(self._compaction())
        if not self._dirty() and not self._side.work.run_open and self._round is None and not self._closed:
            self._side.leave()
            self._give_back_handles()
            self.lease.give_back()

    def _dirty(self) -> bool:
        """Whether something waits for the session file, or for a sync the policy asks for."""
        if self._waiting and (self._text.file is not None or self._file_due):
            return True
        files = (self._text.file, self._side.file)
        return self.options.durability != "none" and any(file is not None and file.dirty for file in files)

    def _compaction(self) -> Steps:
        """Rewrites the side file, unless something is appended meanwhile or there is no room; the old one is as good."""
        count = self._count
        try:
            yield from self._side.compaction(safe=self.options.durability != "none", wanted=lambda: self._count == count)
        except OSError:
            return

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
            for _ in range(SETTLE_ROUNDS_MAX):
                if not self._dirty():
                    break
                run_steps(self._sync_steps())
        except (OSError, StorageError) as error:
            raise self.seal.broken(f"a sync failed: {error}") from error

    def _drop_unused(self) -> None:
        """A session that never got its file, and of which nothing is in flight, leaves nothing (SES-55)."""
        side = self._side
        if side.file is None or self._text.file is not None or self._file_due or side.work.has_records or self.sealed is not None:
            return
        try:
            self._take_lease()
            side.remove()
        except (OSError, StorageError):
            return

    def _give_back_handles(self) -> None:
        for file in (self._text.file, self._side.file):
            if file is not None:
                file.give_back()

    # -- news --------------------------------------------------------------------------

    def entry_of_command(self, command_id: str) -> str | None:
        """As in the port; read from the side file, or, before there is one, from what waits for it."""
        return self._side.work.commands.get(command_id)

    def take_news(self) -> News | None:
        """What a foreign writer appended before our last append, once."""
        news, self._news = self._news, None
        return news

    def _tell(self, news: News) -> None:
        before = self._news if self._news is not None else News()
        self._news = News(entries=before.entries + news.entries, diagnostics=before.diagnostics + news.diagnostics)
