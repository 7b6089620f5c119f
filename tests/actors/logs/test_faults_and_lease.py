"""A living session whose disk is full or broken, whose file others touch, and who may write it."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from camshaft.actors.errors import (
    SessionChanged,
    SessionExists,
    SessionLocked,
    SessionSealed,
    StorageError,
)
from camshaft.actors.logs.jsonl import JsonlLog, JsonlOptions, open_jsonl
from camshaft.actors.logs.port import Loaded
from camshaft.actors.ports.log_files import RealLogFiles, holder_name
from camshaft.actors.simulation.log_files import Fault, MemoryLogFiles, Operation
from camshaft.kernel import codec
from tests.actors.logs.histories import Author, given_input, new_header
from tests.actors.logs.lives import PATH, WORK, ids_of
from tests.actors.logs.lives import options as simulated

HEADER = codec.line(new_header())
FULL = OSError(errno.ENOSPC, "no space left on device")
HELD = Path(__file__).with_name("hold_session.py")


def options(**changes: object) -> JsonlOptions:
    fields: dict[str, object] = {"files": RealLogFiles(), "new_header": new_header, "new_entry_id": lambda: "m", "holder": "us"}
    return JsonlOptions(**{**fields, **changes})  # type: ignore[arg-type]  # a test names the field it means


def opened(path: Path, **changes: object) -> tuple[JsonlLog, Loaded]:
    return open_jsonl(str(path), options(**changes))


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


# -- faults of a living session ----------------------------------------------------------------------


@pytest.mark.rule("SES-43", "A03")
async def test_a_full_disk_refuses_the_append_changes_nothing_and_can_be_overcome() -> None:
    by = Author("e")
    full: list[Fault] = []
    files = MemoryLogFiles(fault=lambda operation: full[0] if full and operation.kind == "write" else None)
    log, _ = open_jsonl(PATH, simulated(files, "settle"))
    log.append([by.user()])
    before = files.photo().texts()

    for fault in (Fault(error=OSError(errno.ENOSPC, "no space left on device")), Fault(taken=11)):
        full[:] = [fault]
        with pytest.raises(StorageError, match="make room"):
            log.append([by.note()])
        with pytest.raises(StorageError, match="make room"):
            log.append([by.note(), by.note()])
        assert files.photo().texts() == before
    full.clear()
    log.append([Author("f", leaf="e1").note()])
    log.close()

    assert log.sealed is None
    assert ids_of(open_jsonl(PATH, simulated(files, "settle"))[1]) == ["e1", "f1"]


async def test_a_write_that_cannot_be_taken_back_seals_the_session() -> None:
    by = Author("e")
    failing: list[str] = []

    def fault(operation: Operation) -> Fault | None:
        if operation.kind == "write" and failing:
            return Fault(taken=9)
        return Fault(error=OSError(errno.EIO, "broken")) if operation.kind == "truncate" and failing else None

    files = MemoryLogFiles(fault=fault)
    log, _ = open_jsonl(PATH, simulated(files, "none"))
    log.append([by.user()])
    failing.append("now")

    with pytest.raises(SessionSealed, match="could not be taken back"):
        log.append([by.note()])
    failing.clear()
    with pytest.raises(SessionSealed, match="could not be taken back"):
        log.append([by.note()])
    log.close()

    assert files.held_locks == () and files.open_handles == 0
    assert ids_of(open_jsonl(PATH, simulated(files, "none"))[1]) == ["e1"]


@pytest.mark.rule("SES-60")
async def test_a_failed_sync_seals_the_session_for_all_who_wait() -> None:
    by = Author("e")
    files = MemoryLogFiles(fault=lambda operation: Fault(error=OSError(errno.EIO, "broken")) if operation.kind == "sync" else None)
    log, _ = open_jsonl(PATH, simulated(files, "commit"))
    log.append([by.user()])

    with pytest.raises(SessionSealed, match="a sync failed"):
        await log.barrier()
    with pytest.raises(SessionSealed):
        await log.barrier()

    assert log.sealed is not None
    log.close()


@pytest.mark.rule("SES-60")
async def test_with_policy_commit_the_side_file_is_safe_before_the_session_file_has_the_entries() -> None:
    by = Author("e")
    seen: list[str] = []
    files = MemoryLogFiles(fault=lambda operation: seen.append(f"{operation.kind} {operation.path}"))
    log, _ = open_jsonl(PATH, simulated(files, "commit"))
    log.append([by.user()])
    await log.barrier()
    seen.clear()

    log.append([by.note(), by.note()])
    log.append([by.note()])
    await log.barrier()

    assert seen == [f"write {WORK}", f"write {WORK}", f"sync {WORK}", f"write {PATH}", f"sync {PATH}"]


@pytest.mark.rule("SES-60")
async def test_with_policy_none_nothing_is_ever_synced() -> None:
    by = Author("e")
    seen: list[str] = []
    files = MemoryLogFiles(fault=lambda operation: seen.append(operation.kind))
    log, _ = open_jsonl(PATH, simulated(files, "none", compact_above=10))
    log.append([by.user(), by.note()])
    await log.barrier()
    await log.settle()
    log.close()
    again, _ = open_jsonl(PATH, simulated(files, "none"))
    again.close()

    assert "sync" not in seen and "sync_folder" not in seen and "rename" in seen


@pytest.mark.rule("SES-57")
async def test_a_file_that_appeared_meanwhile_refuses_the_creation_and_stays(tmp_path: Path) -> None:
    by = Author("e")
    path = tmp_path / "x.jsonl"
    log, _ = opened(path)
    log.append(by.settings())
    path.write_bytes(HEADER)

    with pytest.raises(SessionExists):
        log.append([by.user()])
    log.close()

    assert (path.read_bytes(), names(tmp_path)) == (HEADER, ["x.jsonl"])


@pytest.mark.rule("SES-46", "A01")
async def test_a_file_that_disappeared_while_open_is_written_again_whole(tmp_path: Path) -> None:
    by = Author("e")
    path = tmp_path / "x.jsonl"
    log, _ = opened(path)
    log.append([by.user()])
    await log.barrier()
    text = path.read_bytes()
    path.unlink()

    second = by.note()
    log.append([second])
    news = log.take_news()
    log.close()

    assert path.read_bytes() == text + codec.line(second)
    assert news is not None and "disappeared" in news.diagnostics[0].why


@pytest.mark.rule("A01")
@pytest.mark.parametrize("change", ["shorter", "replaced"])
async def test_a_file_that_shrank_or_was_replaced_seals_the_session_and_stays(tmp_path: Path, change: str) -> None:
    by = Author("e")
    path = tmp_path / "x.jsonl"
    log, _ = opened(path)
    log.append([by.user()])
    await log.barrier()
    if change == "shorter":
        os.truncate(path, 40)
    else:
        (tmp_path / "other").write_bytes(path.read_bytes())
        os.replace(tmp_path / "other", path)
    before = path.read_bytes()

    with pytest.raises(SessionSealed):
        log.append([by.note()])
    log.close()

    assert path.read_bytes() == before


@pytest.mark.rule("SES-90")
async def test_lines_of_a_program_that_ignores_the_lease_are_news_and_stay(tmp_path: Path) -> None:
    by, other = Author("e"), Author("x")
    path = tmp_path / "x.jsonl"
    log, _ = opened(path)
    log.append([by.user()])
    await log.barrier()
    with path.open("ab") as foreign:
        foreign.write(codec.line(other.note()) + codec.line(other.note())[:-1])

    log.append([by.note()])
    news = log.take_news()
    log.close()

    assert news is not None and [entry.id for entry in news.entries] == ["x1", "x2"]
    assert log.take_news() is None
    assert ids_of(opened(path)[1]) == ["e1", "x1", "x2", "e2"]


# -- the lease ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.rule("SES-90", "SDK-24", "A05")
def test_a_second_writer_in_another_process_is_told_the_holder_and_the_lock_ends_with_it(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(HEADER)
    holder = subprocess.Popen([sys.executable, str(HELD), str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    before = path.read_bytes()

    with pytest.raises(SessionLocked, match=f"process {holder.pid} on ") as refused:
        opened(path)
    _, readable = opened(path, mode="read")
    held = path.read_bytes()
    holder.kill()
    holder.wait()
    holder.stdout.close()
    log, _ = opened(path)

    assert f"process {holder.pid}" in refused.value.holder and refused.value.path == str(path)
    assert (held, ids_of(readable)) == (before, ["e1"])
    log.close()
    assert names(tmp_path) == ["x.jsonl"]


async def test_an_idle_session_keeps_no_file_and_no_lock() -> None:
    by = Author("e")
    files = MemoryLogFiles()
    log, _ = open_jsonl(PATH, simulated(files, "commit"))
    log.append([by.user(), by.note()])
    busy = (files.open_handles > 0, files.held_locks != ())

    await log.settle()

    assert busy == (True, True)
    assert (files.open_handles, files.held_locks) == (0, ())
    log.append([by.note()])
    assert files.held_locks != ()
    log.close()


@pytest.mark.rule("SES-90", "A05")
async def test_a_session_that_another_process_wrote_while_it_was_idle_is_opened_again_before_anything_is_decided(tmp_path: Path) -> None:
    by = Author("e")
    path = tmp_path / "x.jsonl"
    ours, _ = opened(path)
    ours.append([by.user()])
    await ours.settle()
    theirs, _ = opened(path, holder="them")
    theirs.append([by.note(), by.note()])

    with pytest.raises(SessionLocked, match="them"):
        ours.append([by.note()])
    await theirs.settle()
    with pytest.raises(SessionChanged):
        ours.append([by.note()])
    loaded = ours.claim()
    ours.append([Author("f", leaf="e3").note()])
    ours.close()

    assert loaded is not None and ids_of(loaded) == ["e1", "e2", "e3"]
    assert ids_of(opened(path)[1]) == ["e1", "e2", "e3", "f1"]


async def test_the_side_file_is_rewritten_when_idle_and_keeps_what_is_open_and_every_command_id() -> None:
    by = Author("e")
    files = MemoryLogFiles()
    log, _ = open_jsonl(PATH, simulated(files, "commit", compact_above=2000))
    log.append([by.user()])
    for number in range(30):
        entry = by.note()
        log.append([], [given_input(number, entry.id, f"k{number}")])
        log.append([entry])
    log.append([], [given_input(99, "q", "k99")])
    long = len(files.photo().content(WORK) or b"")

    await log.settle()
    short = len(files.photo().content(WORK) or b"")
    log.close()
    _, loaded = open_jsonl(PATH, simulated(files, "commit"))

    assert short < long / 3
    assert [record.type for record in loaded.records] == ["input"]
    assert dict(loaded.commands) == {**{f"k{number}": f"e{number + 2}" for number in range(30)}, "k99": "q"}


@pytest.mark.rule("SES-60")
async def test_a_side_file_that_cannot_be_rewritten_stays_and_the_session_goes_on() -> None:
    by = Author("e")
    files = MemoryLogFiles(
        fault=lambda operation: Fault(error=FULL) if operation.kind == "sync" and operation.path == f"{WORK}.new" else None
    )
    log, _ = open_jsonl(PATH, simulated(files, "commit", compact_above=2000))
    log.append([by.user()])
    for number in range(30):
        log.append([], [given_input(number, f"q{number}", f"k{number}")])

    await log.settle()

    assert log.sealed is None and len(files.photo().content(WORK) or b"") > 2000
    assert files.open_handles == 0
    log.append([by.note()])
    log.close()


@pytest.mark.rule("SES-55")
async def test_whichever_step_of_making_the_session_file_fails_no_handle_stays() -> None:
    failures = 0
    for kind in ("create", "write", "sync", "link", "unlink", "sync_folder"):
        for at in range(8):
            seen: list[str] = []

            def fault(operation: Operation, kind: str = kind, at: int = at, seen: list[str] = seen) -> Fault | None:
                seen.extend([operation.path] if operation.kind == kind else [])
                return Fault(error=FULL) if operation.kind == kind and len(seen) == at + 1 else None

            by, files = Author("e"), MemoryLogFiles(fault=fault)
            log, _ = open_jsonl(PATH, simulated(files, "commit"))
            raised: list[StorageError] = []  # as whoever reports it later would hold it, with everything its traceback holds
            try:
                log.append([by.user()])
                await log.barrier()
                await log.settle()
            except StorageError as error:
                raised.append(error)
            try:
                log.close()
            except StorageError as error:
                raised.append(error)
            failures += bool(raised)
            assert files.open_handles == 0 and files.held_locks == (), (kind, at)
    assert failures > 5


def test_a_holder_is_named_by_process_host_and_time() -> None:
    assert holder_name(0).startswith(f"process {os.getpid()} on ")
    assert holder_name(0).endswith("since 1970-01-01T00:00:00Z")
