"""Lives of a session in the JSONL store, and what must hold whatever ended them.

`live` performs a history on files in memory and keeps a photo of them before every call that
changes something; `crashes` makes of a photo every state that a crash in that call can leave,
one per byte of a write. `check` opens such a state with the real store, opens it once more,
goes on, and compares what it finds with what the steps promised.
"""

import json
from collections.abc import Callable, Iterator

import attrs

from camshaft.actors.errors import NotASession, SessionGone, StorageError
from camshaft.actors.logs.jsonl import JsonlLog, JsonlOptions, open_jsonl
from camshaft.actors.logs.port import Durability, Loaded
from camshaft.actors.simulation.log_files import Fault, Inode, Killed, MemoryLogFiles, Operation, Photo, files_of
from camshaft.kernel.records import DecisionRecord, FateRecord, InputRecord, LeafRecord, RunRecord, SettledRecord
from camshaft.kernel.session_file import read_entries
from tests.actors.logs.histories import Author, History, Step, new_header

PATH = "/s/x.jsonl"
WORK, LOST = f"{PATH}.work", f"{PATH}.lost"
POLICIES: tuple[Durability, ...] = ("commit", "settle", "none")

EMPTY = Photo(inodes={}, names={}, safe_names={})


def options(files: MemoryLogFiles, policy: Durability, *, compact_above: int = 64 * 1024, holder: str = "us") -> JsonlOptions:
    return JsonlOptions(
        files=files, new_header=new_header, new_entry_id=lambda: "m", holder=holder, durability=policy, compact_above_bytes=compact_above
    )


def compact_above(history: History) -> int:
    return 200 if history.name == "rewritten" else 64 * 1024


def begun(history: History) -> Photo:
    """The files a history begins with; they are as old as can be, so power cannot take them."""
    if history.start is None:
        return EMPTY
    inode = Inode(content=history.start, synced=len(history.start))
    return Photo(inodes={1: inode}, names={PATH: 1}, safe_names={PATH: 1})


def ids_of(loaded: Loaded) -> list[str]:
    return [entry.id for entry in loaded.entries] if isinstance(loaded.entries, tuple) else list(loaded.entries.ids)


@attrs.frozen(kw_only=True)
class Shot:
    """The files before a call, and how far the history had come."""

    photo: Photo
    operation: Operation
    promise: "Promise"


@attrs.frozen(kw_only=True)
class Promise:
    """What a crash in this moment must leave."""

    history: History
    policy: Durability
    done: tuple[int, ...] = ()
    """Commits (by number) whose append returned."""
    unsure: tuple[int, ...] = ()
    """Commits that may be there or not."""
    synced: tuple[int, ...] = ()
    """Commits that a barrier covered."""
    gone: bool = False
    """Whether the session file was deleted by somebody, so that refusing is right."""
    foreign: tuple[str, ...] = ()
    """Ids that another program wrote in readable lines."""
    overtaken: bool = False
    """Whether another program wrote behind what the crash left."""
    powerless: bool = False
    """Whether power was lost, not only the process."""


@attrs.define(eq=False)
class Life:
    """One history being performed."""

    history: History
    policy: Durability
    files: MemoryLogFiles
    shots: list[Shot] = attrs.field(factory=list)
    done: list[int] = attrs.field(factory=list)
    unsure: list[int] = attrs.field(factory=list)
    synced: list[int] = attrs.field(factory=list)
    news: list[str] = attrs.field(factory=list)
    sealings: int = 0
    failures: int = 0
    gone: bool = False
    now: int | None = None
    """The commit that is being appended."""
    log: JsonlLog | None = None
    fault: Callable[[int, Operation], Fault | None] | None = None
    before_step: Callable[[int], None] | None = None
    takeover: bool = False
    """Whether after each settle another process goes on."""
    idle: list[JsonlLog] = attrs.field(factory=list)

    def promise(self) -> Promise:
        unsure = [*self.unsure, *([self.now] if self.now is not None else [])]
        return Promise(
            history=self.history,
            policy=self.policy,
            done=tuple(self.done),
            unsure=tuple(unsure),
            synced=tuple(self.synced),
            gone=self.gone,
            foreign=tuple(self.news),
        )

    def watch(self, operation: Operation) -> Fault | None:
        self.shots.append(Shot(photo=self.files.photo(), operation=operation, promise=self.promise()))
        return self.fault(len(self.shots) - 1, operation) if self.fault is not None else None

    def open(self) -> None:
        if self.log is not None:
            log, self.log = self.log, None
            log.close()
        self.log, _ = open_jsonl(PATH, options(self.files, self.policy, compact_above=compact_above(self.history)))

    async def perform(self) -> None:
        """All steps; a sealed log is opened again."""
        try:
            self.open()
        except StorageError:
            self.failures += 1
            self.fault = None
            self.open()
        number = 0
        for at, step in enumerate(self.history.steps):
            if self.before_step is not None:
                self.before_step(at)
            try:
                await self._step(step, number)
            except StorageError:
                self.failures += 1
                self._after_failure(step, number)
            number += step.kind == "commit"
            self.now = None
        assert self.log is not None
        self.log.claim()
        self._read_news()
        try:
            self.log.close()
        except StorageError:
            self.failures += 1

    async def _step(self, step: Step, number: int) -> None:
        assert self.log is not None
        match step.kind:
            case "commit":
                self.now = number
                self.log.claim()
                self.log.append(step.entries, step.records, step.decision)
                self.done.append(number)
                self._read_news()
            case "barrier":
                covered = list(self.done)
                await self.log.barrier()
                self.synced = covered if self.policy == "commit" else self.synced
            case "settle":
                covered = list(self.done)
                await self.log.settle()
                self.synced = covered if self.policy != "none" else self.synced
                if self.takeover:
                    self._hand_over()

    def _hand_over(self) -> None:
        """The process that is idle goes on; there are two."""
        assert self.log is not None
        if not self.idle:
            other, _ = open_jsonl(PATH, options(self.files, self.policy, compact_above=compact_above(self.history), holder="other"))
            self.idle.append(other)
        self.idle.append(self.log)
        self.log = self.idle.pop(0)

    def _after_failure(self, step: Step, number: int) -> None:
        assert self.log is not None
        if self.log.sealed is not None:
            self.sealings += 1
            if step.kind == "commit":
                self.unsure.append(number)
            self.now = None
            fault, self.fault = self.fault, None
            self.open()
            self.fault = fault

    def _read_news(self) -> None:
        assert self.log is not None
        news = self.log.take_news()
        if news is not None:
            self.news += [entry.id for entry in news.entries]


async def live(history: History, policy: Durability, *, fault: Callable[[int, Operation], Fault | None] | None = None) -> Life:
    """The history performed to its end, with a shot before every change."""
    files = files_of(begun(history))
    life = Life(history=history, policy=policy, files=files, fault=fault)
    files.fault = life.watch
    try:
        await life.perform()
    except Killed:
        pass
    return life


def crashes(shot: Shot, stride: int = 1, offset: int = 0) -> Iterator[Photo]:
    """What a crash in this call can leave. The state after the call is the one before the next."""
    if shot.operation.kind != "write":
        yield shot.photo
        return
    before = shot.photo.content(shot.operation.path) or b""
    size = len(shot.operation.data)
    for taken in range(offset % stride, size, stride):
        yield shot.photo.with_content(shot.operation.path, before + shot.operation.data[:taken])
    yield shot.photo.with_content(shot.operation.path, before + shot.operation.data)


# -- what must hold ----------------------------------------------------------------------


@attrs.define
class Counts:
    """What was enumerated."""

    states: int = 0
    refused: int = 0
    superseded: int = 0


def recovered(photo: Photo, promise: Promise) -> tuple[MemoryLogFiles, JsonlLog, Loaded] | None:
    """The state opened again; None if it was refused."""
    files = files_of(photo)
    try:
        log, loaded = open_jsonl(PATH, options(files, promise.policy))
    except (NotASession, SessionGone):
        assert files.photo().texts() == photo.texts(), "a refusal wrote something"
        assert files.held_locks == (), "a refusal kept the lock"
        return None
    return files, log, loaded


def check(photo: Photo, promise: Promise, counts: Counts) -> None:
    """Opens the state a crash left, and fails if anything promised is not there."""
    counts.states += 1
    found = recovered(photo, promise)
    if found is None:
        counts.refused += 1
        assert promise.gone or (promise.powerless and promise.policy != "commit"), "a session was refused that stands"
        return
    files, _, loaded = found
    after = files.photo()
    ids = ids_of(loaded)
    _check_bytes(photo, after)
    _check_commits(promise, photo, after, ids, counts)
    _check_records(promise, loaded, ids)
    _check_again(after, promise, loaded)
    _check_goes_on(after, promise, ids, loaded)


def _check_bytes(before: Photo, after: Photo) -> None:
    """No readable line was changed or removed."""
    old, new = before.content(PATH), after.content(PATH)
    if old is not None and b"\n" in old:
        assert new is not None and new.startswith(old), "a line of the session file was changed"
    if new is not None:
        assert not any(name.endswith(".new") for name in after.names), "a temporary file stayed"


def _check_commits(promise: Promise, photo: Photo, after: Photo, ids: list[str], counts: Counts) -> None:
    """Every commit is whole or absent, in order, once."""
    assert len(ids) == len(set(ids)), f"an id occurs twice: {ids}"
    for foreign in promise.foreign:
        assert foreign in ids, f"a foreign entry is missing: {foreign}"
    commits = promise.history.commits
    start = _start_ids(promise.history)
    order = [*start, *[entry_id for step in commits for entry_id in step.ids]]
    own = [entry_id for entry_id in ids if entry_id in order]
    assert own == [entry_id for entry_id in order if entry_id in own], f"entries changed their order: {own}"
    assert len(own) + len(set(ids) & set(promise.foreign)) == len(ids), f"entries from nowhere: {ids}"
    kept = after.content(LOST) or b""
    before = readable_ids(photo.content(PATH) or b"")
    for number, step in enumerate(commits):
        there = [entry_id for entry_id in step.ids if entry_id in ids]
        whole, absent = there == list(step.ids), not there
        if number in promise.done and not _may_be_missing(promise, number, photo):
            before_whole = before.issuperset(step.ids)
            late = promise.overtaken and not before_whole and all(_in(kept, entry_id) for entry_id in step.ids)
            counts.superseded += late and not whole
            assert whole or late, f"commit {number} is not there: {ids}"
        elif number in promise.done or number in promise.unsure:
            parts_before = promise.overtaken and before.issuperset(there)
            assert whole or absent or parts_before or _parts_allowed(promise), f"commit {number} is there in part: {there}"
        else:
            assert absent, f"commit {number} was never made: {ids}"


def _may_be_missing(promise: Promise, number: int, photo: Photo) -> bool:
    """Settings that a new session holds back; after a power loss what no sync covered."""
    if promise.powerless:
        return number not in promise.synced
    held_back = all(entry.type in ("model_change", "thinking_level_change") for entry in promise.history.commits[number].entries)
    return held_back and set(promise.done) == {number} and photo.content(PATH) is None


def _parts_allowed(promise: Promise) -> bool:
    """Policies without barrier promise no whole batches after a power loss (K22)."""
    return promise.powerless and promise.policy != "commit"


def _in(text: bytes, entry_id: str) -> bool:
    return b'"id":"%b"' % entry_id.encode() in text


def readable_ids(text: bytes) -> set[str]:
    """Ids of the lines that can be read."""
    image, _ = read_entries(text)
    return set(image.ids)


def _start_ids(history: History) -> list[str]:
    lines = (history.start or b"").splitlines()[1:]
    return [json.loads(line)["id"] for line in lines]


def _check_records(promise: Promise, loaded: Loaded, ids: list[str]) -> None:
    """Every input has one fate; what a run needs is there as long as it is open."""
    commits = promise.history.commits
    kept = promise.synced if promise.powerless else promise.done
    sure = [step for number, step in enumerate(commits) if number in kept]
    maybe = [step for number, step in enumerate(commits) if number in (*promise.done, *promise.unsure)]
    ended = {record.input_id for step in sure for record in step.records if isinstance(record, FateRecord)}
    perhaps = {record.input_id for step in maybe for record in step.records if isinstance(record, FateRecord)}
    queued = {record.input_id for record in loaded.records if isinstance(record, InputRecord)}
    for step in sure:
        for record in step.records:
            if isinstance(record, InputRecord):
                fates = (record.entry_id in ids) + (record.input_id in ended) + (record.input_id in queued)
                assert fates == 1 or (fates == 0 and record.input_id in perhaps), f"input {record.input_id} has {fates} fates"
                assert record.command_id is None or (record.command_id, record.entry_id) in loaded.commands
    closed = {record.run_id for step in maybe for record in step.records if isinstance(record, SettledRecord)}
    for step in sure:
        for record in step.records:
            if isinstance(record, RunRecord) and record.run_id not in closed:
                assert record in loaded.records, "an open run is not reported"
        if step.decision is not None and not closed and all(entry_id in ids for entry_id in step.ids) and not promise.overtaken:
            decision = DecisionRecord(turn_entry_id=step.decision.turn_entry_id, continue_=step.decision.continue_)
            assert decision in loaded.records, "a decision was lost"
    if not promise.powerless:
        _check_leaf(promise, loaded, ids)


def _check_leaf(promise: Promise, loaded: Loaded, ids: list[str]) -> None:
    """The leaf is where the last commit left it; behind a foreign entry it is that entry (SES-36)."""
    last = ids[-1] if ids else None
    allowed = {last} if promise.overtaken or last in promise.foreign else set()
    for numbers in (promise.done, (*promise.done, *promise.unsure)):
        leaf = _start_ids(promise.history)[-1] if promise.history.start else None
        for number in sorted(numbers):
            step = promise.history.commits[number]
            leaf = step.ids[-1] if step.entries else leaf
            leaf = next((record.id for record in reversed(step.records) if isinstance(record, LeafRecord)), leaf)
        allowed.add(leaf)
    assert loaded.leaf in allowed or (promise.unsure and loaded.leaf == last) or not ids, f"the leaf is {loaded.leaf}, not one of {allowed}"


def _check_again(after: Photo, promise: Promise, loaded: Loaded) -> None:
    """The second recovery changes no byte and finds the same."""
    found = recovered(after, promise)
    assert found is not None, "the second recovery refuses what the first made"
    files, _, again = found
    assert files.photo().texts() == after.texts(), "the second recovery changed a file"
    assert ids_of(again) == ids_of(loaded)
    assert (again.records, again.commands, again.leaf) == (loaded.records, loaded.commands, loaded.leaf)


def _check_goes_on(after: Photo, promise: Promise, ids: list[str], loaded: Loaded) -> None:
    """The session can be continued, and what comes then is found."""
    found = recovered(after, promise)
    assert found is not None
    files, log, _ = found
    by = Author("z", leaf=loaded.leaf)
    more = [by.user(), by.note(), by.note()]
    log.append(more[:1])
    log.append(more[1:])
    log.close()
    assert files.held_locks == () and files.open_handles == 0, "something was not given back"
    final = recovered(files.photo(), promise)
    assert final is not None, "the continued session is refused"
    assert ids_of(final[2]) == [*ids, *[entry.id for entry in more]]
