"""The enumerations of the commit protocol, each as a function of history, policy and strides.

A stride of 1 visits every byte; the default run takes larger ones. Each function returns how
many states it checked and raises AssertionError, naming the state, at the first wrong one.
"""

import errno
from collections.abc import Callable, Iterator

import attrs

from camshaft.actors.logs.jsonl import open_jsonl
from camshaft.actors.logs.port import Durability
from camshaft.actors.simulation.log_files import Fault, Operation, Photo, files_of
from tests.actors.logs.histories import History
from tests.actors.logs.lives import (
    LOST,
    PATH,
    WORK,
    Life,
    Promise,
    Shot,
    begun,
    crashes,
    ids_of,
    live,
    options,
)
from tests.actors.logs.promises import Counts, check, recovered

FOREIGN_LINE = b'{"type":"custom","id":"x1","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","customType":"x"}'
FOREIGN_ID = "x1"


@attrs.frozen(kw_only=True)
class Strides:
    """Every so many bytes, and every so many crash points."""

    bytes: int = 1
    points: int = 1
    recovery: int = 1
    """Every so many bytes of the recovery's own writes."""


def crash_states(life: Life, strides: Strides) -> Iterator[tuple[Photo, Promise]]:
    """Every state a crash can leave in this life, and the one at its end."""
    count = 0
    for at, shot in enumerate(life.shots):
        for photo in crashes(shot, strides.bytes, offset=at):
            count += 1
            if count % strides.points == 0:
                yield photo, shot.promise
    yield life.files.photo(), life.promise()


def checked(photo: Photo, promise: Promise, counts: Counts) -> None:
    """As `check`; a failure shows the files."""
    try:
        check(photo, promise, counts)
    except AssertionError as wrong:
        texts = "\n".join(f"--- {name}\n{text.decode(errors='replace')}" for name, text in photo.texts().items())
        who = f"{promise.history.name}, {promise.policy}, done {promise.done}, unsure {promise.unsure}, foreign {promise.foreign}"
        raise AssertionError(f"{wrong}\n{who}\n{texts}") from wrong


async def crash_alone(history: History, policy: Durability, strides: Strides) -> Counts:
    """A crash at every byte of every write, and between the calls."""
    counts = Counts()
    life = await live(history, policy)
    assert life.failures == 0
    for photo, promise in crash_states(life, strides):
        checked(photo, promise, counts)
    return counts


# -- foreign writers after a crash --------------------------------------------------------


def overtaken(photo: Photo, promise: Promise) -> Iterator[tuple[Photo, Promise]]:
    """What four kinds of foreign writer make of a state: looking or not, whole lines or not."""
    text = photo.content(PATH)
    if not text or b"\n" not in text:
        return
    ends = text.endswith(b"\n")
    mended = text if ends else text + b"\n"
    seen = attrs.evolve(promise, foreign=(FOREIGN_ID,), overtaken=True, afterwards=True)
    yield photo.with_content(PATH, mended + FOREIGN_LINE + b"\n"), seen
    yield photo.with_content(PATH, mended + FOREIGN_LINE), seen
    yield photo.with_content(PATH, mended + FOREIGN_LINE[:20]), promise
    if text != promise.history.start:  # its last line lacks a LF: who glues to it there spoils a line that was never ours
        yield photo.with_content(PATH, text + FOREIGN_LINE + b"\n"), seen if ends else promise


async def crash_and_foreign(history: History, policy: Durability, strides: Strides) -> Counts:
    """As `crash_alone`, and then another program appends."""
    counts = Counts()
    for photo, promise in crash_states(await live(history, policy), strides):
        for after, seen in overtaken(photo, promise):
            checked(after, seen, counts)
    return counts


async def crash_and_deleted(history: History, policy: Durability, strides: Strides) -> Counts:
    """As `crash_alone`, and then the session file is deleted: refused, or made again (K24)."""
    counts = Counts()
    for photo, promise in crash_states(await live(history, policy), strides):
        if photo.content(PATH) is not None and photo.content(WORK) is not None:
            gone = attrs.evolve(promise, gone=True, powerless=True)
            checked(photo.with_content(PATH, None), gone, counts)
    return counts


# -- crashes in the recovery ----------------------------------------------------------------


def recovery_shots(photo: Photo, policy: Durability) -> tuple[list[Shot], Photo]:
    """Photos before each change that opening this state makes, and the files afterwards."""
    shots: list[Shot] = []
    files = files_of(photo)
    promise = Promise(history=History(name="", steps=()), policy=policy)

    def watch(operation: Operation) -> None:
        shots.append(Shot(photo=files.photo(), operation=operation, promise=promise))

    files.fault = watch
    open_jsonl(PATH, options(files, policy))
    return shots, files.photo()


async def crash_in_recovery(history: History, policy: Durability, strides: Strides, *, foreign: bool = False) -> Counts:
    """The recovery is cut at every byte of its own writes, with a foreign append before or after the cut."""
    counts = Counts()
    for photo, promise in crash_states(await live(history, policy), strides):
        starts = [(photo, promise)]
        if foreign:
            starts += list(overtaken(photo, promise))[:2]
        for start, seen in starts:
            shots, whole = recovery_shots(start, policy)
            for at, shot in enumerate(shots):
                for cut in crashes(shot, strides.recovery, offset=at):
                    _check_cut(cut, whole, seen, counts)
                    if foreign and start is photo:
                        for after, overtaking in list(overtaken(cut, seen))[:2]:
                            checked(after, overtaking, counts)
    return counts


def _check_cut(cut: Photo, whole: Photo, promise: Promise, counts: Counts) -> None:
    checked(cut, promise, counts)
    again, usual = recovered(cut, promise), recovered(whole, promise)
    assert again is not None and usual is not None
    first, second = again[2], usual[2]
    assert ids_of(first) == ids_of(second), "a cut recovery ends elsewhere"
    assert (first.records, first.commands, first.leaf) == (second.records, second.commands, second.leaf), "a cut recovery ends elsewhere"
    kept = (again[0].photo().content(LOST) or b"").splitlines()
    assert len(kept) == len(set(kept)), "a superseded batch was kept twice"
    assert set((whole.content(LOST) or b"").splitlines()) <= set((again[0].photo().content(LOST) or b"").splitlines())


# -- faults while it lives ---------------------------------------------------------------------


def fault_at(number: int, fault: Fault, *, truncating: bool, killed_after: int | None = None) -> Callable[[int, Operation], Fault | None]:
    """One fault at the call of this number; later truncations may fail too, and the process may be killed some calls later."""

    def decide(at: int, operation: Operation) -> Fault | None:
        if at == number:
            return fault
        if killed_after is not None and at >= number + killed_after:
            return Fault(killed=True)
        if at > number and operation.kind == "truncate" and not truncating:
            return Fault(error=OSError(errno.EIO, "truncate"))
        return None

    return decide


def faults_of(shot: Shot, stride: int, offset: int) -> Iterator[Fault]:
    """The ways a call can fail without the process dying."""
    yield Fault(error=OSError(errno.ENOSPC, "no space left on device"))
    if shot.operation.kind == "write":
        for taken in range(offset % stride, len(shot.operation.data), stride):
            yield Fault(taken=taken)


async def failing_calls(history: History, policy: Durability, strides: Strides) -> Counts:
    """Every call fails once, a write at every byte, taking back works or not, a crash follows or not."""
    counts = Counts()
    usual = await live(history, policy)
    tried = 0
    for at, shot in enumerate(usual.shots):
        for fault in faults_of(shot, strides.bytes, offset=at):
            for truncating in (True, False):
                for killed_after in (None, 1, 2):
                    tried += 1
                    if tried % strides.points == 0:
                        chosen = fault_at(at, fault, truncating=truncating, killed_after=killed_after)
                        await _check_faulty(history, policy, chosen, counts)
    return counts


async def _check_faulty(history: History, policy: Durability, fault: Callable[[int, Operation], Fault | None], counts: Counts) -> None:
    life = await live(history, policy, fault=fault)
    checked(life.files.photo(), life.promise(), counts)


async def deleted_while_open(history: History, policy: Durability, strides: Strides) -> Counts:
    """Before each step the session file disappears; it is written again, and a crash then finds it or refuses."""
    counts = Counts()
    for at in range(len(history.steps)):
        life = _life(history, policy)

        def delete(step: int, at: int = at, life: Life = life) -> None:
            if step == at and life.files.state(PATH) is not None:
                life.files.remove_foreign(PATH)
                life.gone = True

        life.before_step = delete
        await life.perform()
        assert life.failures == 0, "a session that disappeared was not written again"
        for photo, promise in crash_states(life, strides):
            checked(photo, attrs.evolve(promise, powerless=promise.gone), counts)
        checked(life.files.photo(), attrs.evolve(life.promise(), gone=False), counts)
    return counts


async def foreign_while_open(history: History, policy: Durability, strides: Strides) -> Counts:
    """Another program appends a line before each call: it stays, is told once, and nothing of ours is lost."""
    counts = Counts()
    usual = await live(history, policy)
    for at in range(0, len(usual.shots), strides.points):
        life = _life(history, policy)
        wrote: list[int] = []

        def append(number: int, operation: Operation, at: int = at, life: Life = life, wrote: list[int] = wrote) -> Fault | None:
            if number == at and life.files.photo().content(PATH) and life.log is not None:
                life.files.append_foreign(PATH, FOREIGN_LINE + b"\n")
                wrote.append(number)
            return None

        life.fault = append
        await life.perform()
        assert life.failures == 0, "a foreign line made an append fail"
        foreign = (FOREIGN_ID,) if wrote else ()
        assert tuple(life.news) == foreign, f"news {life.news}, expected {foreign}"
        checked(life.files.photo(), attrs.evolve(life.promise(), foreign=foreign), counts)
        for photo, promise in crash_states(life, strides):
            there = FOREIGN_LINE in (photo.content(PATH) or b"")
            checked(photo, attrs.evolve(promise, foreign=foreign if there else (), overtaken=there), counts)
    return counts


async def hand_overs(history: History, policy: Durability, strides: Strides) -> Counts:
    """Two processes take turns whenever the session is idle; a crash at every byte."""
    counts = Counts()
    life = _life(history, policy)
    life.takeover = True
    await life.perform()
    assert life.failures == 0
    for photo, promise in crash_states(life, strides):
        checked(photo, promise, counts)
    return counts


async def appends_meanwhile(history: History, policy: Durability, strides: Strides) -> Counts:
    """Commits are appended while syncs run; a crash at every byte."""
    counts = Counts()
    life = _life(history, policy)
    life.files.while_blocking = life.append_meanwhile
    await life.perform()
    assert life.failures == 0
    for photo, promise in crash_states(life, strides):
        checked(photo, promise, counts)
        for lost in power_losses(photo, 4999, offset=0):
            checked(lost, attrs.evolve(promise, powerless=True), counts)
    return counts


def _life(history: History, policy: Durability) -> Life:
    files = files_of(begun(history))
    life = Life(history=history, policy=policy, files=files)
    files.fault = life.watch
    return life


# -- power loss ------------------------------------------------------------------------------------


def power_losses(photo: Photo, stride: int, offset: int) -> Iterator[Photo]:
    """What a power loss can leave: any unsynced end cut, names as they were when the folder was synced, or as they are."""
    for names in ({**photo.names}, {**photo.safe_names}):
        state = attrs.evolve(photo, names=names)
        lengths = [_lengths(state, path, stride, offset) for path in (PATH, WORK)]
        for session in lengths[0]:
            for side in lengths[1]:
                yield _cut(_cut(state, PATH, session), WORK, side)


def _lengths(photo: Photo, path: str, stride: int, offset: int) -> list[int | None]:
    number = photo.names.get(path)
    if number is None:
        return [None]
    inode = photo.inodes[number]
    size = len(inode.content)
    if inode.synced >= size:
        return [size]
    return [inode.synced, *range(inode.synced + 1 + offset % stride, size, stride), size]


def _cut(photo: Photo, path: str, size: int | None) -> Photo:
    return photo if size is None else photo.with_content(path, (photo.content(path) or b"")[:size])


async def power_loss(history: History, policy: Durability, strides: Strides, *, after_recovery: bool = False) -> Counts:
    """Power is lost in the life, or after the recovery from a crash."""
    counts = Counts()
    tried = 0
    for photo, promise in crash_states(await live(history, policy), attrs.evolve(strides, bytes=10_000)):
        shots, opened = recovery_shots(photo, policy) if after_recovery else ([], photo)
        states = [*[shot.photo for shot in shots], opened]
        for state in states:
            for lost in power_losses(state, strides.bytes, offset=tried):
                tried += 1
                checked(lost, attrs.evolve(promise, powerless=True), counts)
    return counts
