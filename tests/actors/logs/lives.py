"""Lives of a session in the JSONL store, and the states that a crash in them can leave.

`live` performs a history on files in memory and keeps a photo of them before every call that
changes something; `crashes` makes of a photo every state that a crash in that call can leave,
one per byte of a write. What must be found there is a `Promise`; `promises.py` checks it.
"""

from collections.abc import Callable, Iterator

import attrs

from camshaft.actors.errors import StorageError
from camshaft.actors.logs.jsonl import JsonlLog, JsonlOptions, open_jsonl
from camshaft.actors.logs.port import Durability, Loaded
from camshaft.actors.simulation.log_files import Fault, Inode, Killed, MemoryLogFiles, Operation, Photo, files_of
from tests.actors.logs.histories import History, Step, new_header

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
    afterwards: bool = False
    """…and did so after the crash, so that nothing of ours may come behind."""
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
    _at: int = 0
    """The next step, and the number of the next commit."""
    _number: int = 0
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
        while self._at < len(self.history.steps):
            at = self._at
            if self.before_step is not None:
                self.before_step(at)
            await self._performed(self._next())
        assert self.log is not None
        self.log.claim()
        self._read_news()
        try:
            self.log.close()
        except StorageError:
            self.failures += 1

    def append_meanwhile(self) -> None:
        """The next commit, while a sync of this log runs."""
        if self._at < len(self.history.steps) and self.history.steps[self._at].kind == "commit":
            step, number = self._next()
            self._append(step, number)
            self.now = None

    def _next(self) -> tuple[Step, int]:
        step, number = self.history.steps[self._at], self._number
        self._at += 1
        self._number += step.kind == "commit"
        return step, number

    async def _performed(self, numbered: tuple[Step, int]) -> None:
        step, number = numbered
        try:
            await self._step(step, number)
        except StorageError:
            self.failures += 1
            self._after_failure(step, number)
        self.now = None

    def _append(self, step: Step, number: int) -> None:
        assert self.log is not None
        self.now = number
        self.log.claim()
        self.log.append(step.entries, step.records, step.decision)
        self.done.append(number)
        self._read_news()

    async def _step(self, step: Step, number: int) -> None:
        assert self.log is not None
        match step.kind:
            case "commit":
                self._append(step, number)
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
