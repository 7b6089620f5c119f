"""What must hold whatever ended a life: `check` opens the state that is left with the real store.

It opens it once more, goes on, and compares what it finds with what the steps promised.
"""

import json

import attrs

from camshaft.actors.errors import NotASession, SessionGone
from camshaft.actors.logs.jsonl import JsonlLog, open_jsonl
from camshaft.actors.logs.port import Loaded
from camshaft.actors.logs.work_file import read_work
from camshaft.actors.simulation.log_files import MemoryLogFiles, Photo, files_of
from camshaft.kernel.records import DecisionRecord, FateRecord, InputRecord, LeafRecord, RunRecord, SettledRecord
from camshaft.kernel.session_file import read_entries
from tests.actors.logs.histories import Author, History, Step
from tests.actors.logs.lives import LOST, PATH, WORK, Promise, ids_of, options


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
        _check_refusal(photo, promise)
        return
    files, _, loaded = found
    after = files.photo()
    ids = ids_of(loaded)
    _check_bytes(photo, after)
    late = _check_commits(promise, photo, after, ids)
    counts.superseded += len(late)
    for step in late:
        _check_delivered_again(after, promise, ids, step)
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


def _check_refusal(photo: Photo, promise: Promise) -> None:
    """Refusing is right if the file is gone, or power was lost without a barrier and the side file cannot make it again."""
    assert promise.gone or (promise.powerless and promise.policy != "commit"), "a session was refused that stands"
    opened = read_work(photo.content(WORK) or b"").last_open
    assert opened is None or opened.size is not None, "a session was refused that the side file can make again"


def _check_commits(promise: Promise, photo: Photo, after: Photo, ids: list[str]) -> list[Step]:
    """Every commit is whole or absent, in order, once. Returns the superseded ones."""
    superseded: list[Step] = []
    if promise.afterwards:
        old, new = photo.content(PATH) or b"", after.content(PATH) or b""
        assert new.rstrip(b"\n") == old.rstrip(b"\n"), "something of ours came behind a foreign entry"
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
            superseded += [step] if late and not whole else []
            assert whole or late, f"commit {number} is not there: {ids}"
        elif number in promise.done or number in promise.unsure:
            parts_before = promise.overtaken and before.issuperset(there)
            assert whole or absent or parts_before or _parts_allowed(promise), f"commit {number} is there in part: {there}"
        else:
            assert absent, f"commit {number} was never made: {ids}"
    return superseded


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


def _check_delivered_again(after: Photo, promise: Promise, ids: list[str], step: Step) -> None:
    """An entry of a superseded batch that is delivered later does not bring the others."""
    found = recovered(after, promise)
    assert found is not None
    files, log, _ = found
    entry = next(entry for entry in step.entries if entry.id not in ids)
    log.append([entry])
    again = recovered(files.photo(), promise)
    assert again is not None and ids_of(again[2]) == [*ids, entry.id], "a superseded batch was completed"


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
