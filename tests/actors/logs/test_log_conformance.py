"""What every store promises, whatever it keeps the session in."""

from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
import trio

from camshaft.actors.errors import SessionSealed
from camshaft.actors.logs.jsonl import JsonlOptions, open_jsonl
from camshaft.actors.logs.memory import open_memory
from camshaft.actors.logs.port import Durability, Loaded, Log
from camshaft.actors.ports.log_files import LogFiles, RealLogFiles
from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.kernel.entries import Entry, SessionHeader
from camshaft.kernel.records import Decision, FateRecord, LeafRecord, SettledRecord
from tests.actors.logs.histories import Author, given_input, new_header, planned, started


@attrs.define(eq=False)
class Store:
    """Opens the one session of a test, again and again."""

    start: Callable[[], tuple[Log, Loaded]]

    def open(self) -> tuple[Log, Loaded]:
        return self.start()


def jsonl(files: LogFiles, path: str, durability: Durability) -> Store:
    def start() -> tuple[Log, Loaded]:
        opening = JsonlOptions(files=files, new_header=new_header, new_entry_id=lambda: "m", holder="us", durability=durability)
        return open_jsonl(path, opening)

    return Store(start=start)


def memory() -> Store:
    """Starts again from the entries alone (SES-47); records do not outlive the log."""
    kept: list[Entry] = []

    def start() -> tuple[Log, Loaded]:
        log, loaded = open_memory(new_header(), kept)
        log.entries = kept
        return log, loaded

    return Store(start=start)


STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda _folder: memory(),
    "jsonl on disk, commit": lambda folder: jsonl(RealLogFiles(), str(folder / "s" / "x.jsonl"), "commit"),
    "jsonl on disk, settle": lambda folder: jsonl(RealLogFiles(), str(folder / "s" / "x.jsonl"), "settle"),
    "jsonl on disk, none": lambda folder: jsonl(RealLogFiles(), str(folder / "s" / "x.jsonl"), "none"),
    "jsonl in memory, commit": lambda _folder: jsonl(MemoryLogFiles(), "/s/x.jsonl", "commit"),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return STORES[request.param](tmp_path)


FILE_STORES = [name for name in STORES if name != "memory"]


@pytest.fixture(params=FILE_STORES)
def file_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return STORES[request.param](tmp_path)


def found(loaded: Loaded) -> list[Entry]:
    if isinstance(loaded.entries, tuple):
        return list(loaded.entries)
    return [loaded.entries.entry(position) for position in range(len(loaded.entries.ids))]


def test_a_new_session_has_its_header_and_nothing_else(store: Store) -> None:
    log, loaded = store.open()

    assert log.header == new_header()
    assert (log.sealed, loaded.header, found(loaded), loaded.records, loaded.leaf) == (None, new_header(), [], (), None)


async def test_what_was_appended_is_there_after_a_restart_in_its_order(store: Store) -> None:
    by = Author("e")
    entries = [*by.settings(), by.user(), by.assistant(), by.note(), by.note(), by.result("c")]
    log, _ = store.open()
    log.append(entries[:2])
    log.append(entries[2:3])
    await log.barrier()
    log.append(entries[3:6], decision=Decision(turn_entry_id=entries[2].id, continue_=False))
    log.append(entries[6:])

    await log.aclose()
    again, loaded = store.open()

    assert found(loaded) == entries
    assert (loaded.leaf, again.header) == (entries[-1].id, new_header())
    again.close()


async def test_appending_goes_on_after_the_session_was_idle(store: Store) -> None:
    by = Author("e")
    first, second = by.user(), by.note()
    log, _ = store.open()
    log.append([first])
    await log.settle()

    assert log.claim() is None
    log.append([second])
    await log.aclose()

    again, loaded = store.open()
    assert found(loaded) == [first, second]
    again.close()


async def test_an_empty_commit_is_none(store: Store) -> None:
    log, _ = store.open()
    log.append([])
    await log.barrier()
    log.close()

    again, loaded = store.open()
    assert found(loaded) == []
    again.close()


async def test_waiting_for_syncs_may_be_repeated_and_shared(store: Store) -> None:
    by = Author("e")
    log, _ = store.open()
    log.append([by.user()])

    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(log.barrier)
                log.append([by.note(), by.note()])
        await log.settle()
        await log.settle()
        await log.aclose()
        log.close()

    again, loaded = store.open()
    assert [entry.id for entry in found(loaded)] == [f"e{number}" for number in range(1, 18)]
    again.close()


async def test_a_cancelled_caller_of_the_barrier_learns_the_outcome_first(store: Store) -> None:
    by = Author("e")
    log, _ = store.open()
    log.append([by.user(), by.note()])
    outcome = []

    with trio.CancelScope() as scope:
        scope.cancel()
        await log.barrier()
        outcome.append("synced")
        await trio.lowlevel.checkpoint()

    assert (outcome, scope.cancelled_caught, log.sealed) == (["synced"], True, None)
    log.close()


async def test_a_closed_log_refuses_with_a_typed_error(store: Store) -> None:
    log, _ = store.open()
    await log.aclose()

    with pytest.raises(SessionSealed, match="closed"):
        log.append([Author("e").user()])


async def test_nobody_else_means_no_news(store: Store) -> None:
    by = Author("e")
    log, _ = store.open()
    log.append([by.user()])
    await log.barrier()
    log.append([by.note(), by.note()])
    await log.settle()

    assert log.take_news() is None
    log.close()


# -- records: what a session in a file also keeps ----------------------------------------------


async def test_open_records_come_back_until_something_discharges_them(file_store: Store) -> None:
    by = Author("e")
    first, answer, queued = by.user(), by.assistant(), by.user()
    run, calls, kept = started("r", first), planned(answer.id, "c9"), given_input(2, queued.id, "k2")
    log, _ = file_store.open()
    log.append([], [given_input(1, first.id, "k1"), run])
    log.append([first])
    log.append([answer], [calls])
    log.append([], [kept, given_input(3, "e99")])
    log.append([], [FateRecord(input_id="i3", fate="cancelled")])
    log.append([], decision=Decision(turn_entry_id=answer.id, continue_=True))
    log.close()

    again, loaded = file_store.open()
    decision = loaded.records[-1]
    again.append([queued])
    again.append([], [SettledRecord(run_id="r", outcome="done")])
    again.close()
    last, settled = file_store.open()

    assert loaded.records == (run, calls, kept, decision)
    assert loaded.commands == settled.commands == (("k1", first.id), ("k2", queued.id))
    assert settled.records == ()
    last.close()


async def test_a_moved_leaf_comes_back_until_something_is_appended(file_store: Store) -> None:
    by = Author("e")
    first, second, third = by.user(), by.note(), by.note()
    log, _ = file_store.open()
    log.append([first])
    log.append([second])
    log.append([], [LeafRecord(id=first.id)])
    log.close()

    again, moved = file_store.open()
    again.append([third])
    again.close()
    last, after = file_store.open()

    assert (moved.leaf, after.leaf) == (first.id, third.id)
    last.close()


async def test_a_leaf_that_was_reset_comes_back_as_none(file_store: Store) -> None:
    log, _ = file_store.open()
    log.append([Author("e").user()])
    log.append([], [LeafRecord(id=None)])
    log.close()

    again, loaded = file_store.open()

    assert loaded.leaf is None
    again.close()


async def test_a_decision_of_a_batch_comes_back_as_a_record_while_its_run_is_open(file_store: Store) -> None:
    by = Author("e")
    first, note = by.user(), by.note()
    log, _ = file_store.open()
    log.append([first], [started("r", first)])
    log.append([note], decision=Decision(turn_entry_id=first.id, continue_=True))
    log.close()

    once, loaded = file_store.open()
    once.close()
    twice, again = file_store.open()

    assert [record.type for record in loaded.records] == ["run", "decision"]
    assert again.records == loaded.records
    twice.close()


def test_the_header_of_a_session_in_memory_may_be_given() -> None:
    header = SessionHeader(id="mine", timestamp="2026-01-01T00:00:00.000Z")

    log, loaded = open_memory(header)

    assert (log.header, loaded.header, log.path) == (header, header, None)
