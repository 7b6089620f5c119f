"""Files that are missing, empty, foreign, damaged, locked, full or gone: what opening and appending say and leave."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from camshaft.actors.errors import (
    NotASession,
    ReadOnlySession,
    SessionChanged,
    SessionExists,
    SessionGone,
    SessionLocked,
    SessionSealed,
    StorageError,
)
from camshaft.actors.logs.jsonl import JsonlLog, JsonlOptions, open_jsonl
from camshaft.actors.logs.port import Loaded
from camshaft.actors.ports.log_files import RealLogFiles, holder_name
from camshaft.actors.simulation.log_files import Fault, Killed, MemoryLogFiles, Operation, files_of
from camshaft.kernel import codec
from tests.actors.logs.histories import Author, given_input, new_header
from tests.actors.logs.lives import EMPTY, PATH, WORK, ids_of
from tests.actors.logs.lives import options as simulated

HEADER = codec.line(new_header())
HELD = Path(__file__).with_name("hold_session.py")


def options(**changes: object) -> JsonlOptions:
    fields: dict[str, object] = {"files": RealLogFiles(), "new_header": new_header, "new_entry_id": lambda: "m", "holder": "us"}
    return JsonlOptions(**{**fields, **changes})  # type: ignore[arg-type]  # a test names the field it means


def opened(path: Path, **changes: object) -> tuple[JsonlLog, Loaded]:
    return open_jsonl(str(path), options(**changes))


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


# -- opening --------------------------------------------------------------------------------------


@pytest.mark.rule("SES-16", "SES-54", "SES-55")
async def test_a_path_that_does_not_exist_creates_nothing_but_its_folder_until_there_is_a_message(tmp_path: Path) -> None:
    by = Author("e")
    path = tmp_path / "deep" / "x.jsonl"

    log, _ = opened(path)
    log.append(by.settings())
    before = names(path.parent)
    log.append([by.user()])
    await log.barrier()

    assert before == []
    assert [line.split(b'"')[3] for line in path.read_bytes().splitlines()] == [
        *(b"session", b"model_change", b"thinking_level_change", b"message"),
    ]
    log.close()


@pytest.mark.rule("SES-55")
@pytest.mark.parametrize("idle_first", [True, False])
async def test_a_session_that_nobody_used_leaves_no_file(tmp_path: Path, idle_first: bool) -> None:
    by = Author("e")
    log, _ = opened(tmp_path / "x.jsonl")
    log.append(by.settings())
    log.append([by.note()])
    if idle_first:
        await log.settle()

    log.close()

    assert names(tmp_path) == []


@pytest.mark.rule("SES-16", "A01")
async def test_an_empty_file_gets_its_header_at_once_and_keeps_its_path(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"")

    log, loaded = opened(path)
    text = path.read_bytes()
    log.append([Author("e").note()])
    log.close()

    assert text == HEADER
    assert (loaded.header, ids_of(loaded)) == (new_header(), [])
    assert len(path.read_bytes().splitlines()) == 2


FOREIGN = {
    "blanks": b"  \n\n ",
    "headless": b'{"type":"message","id":"a","parentId":null}\n' + HEADER,
    "json of another program": b'{"name":"left-pad","version":"1.0.0"}\n',
    "no json": b"#!/bin/sh\necho\n",
    "byte-order mark": b"\xef\xbb\xbf" + HEADER,
    "id is no text": b'{"type":"session","id":7}\n',
    "broken header": HEADER[:30],
    "version is no number": b'{"type":"session","id":"a","version":"x"}\n',
}


@pytest.mark.rule("SES-7", "A01")
@pytest.mark.parametrize("mode", ["write", "read"])
@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_file_that_is_no_session_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes, mode: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)

    with pytest.raises(NotASession) as refused:
        opened(path, mode=mode)

    assert str(refused.value) == f"Session file is not a valid camshaft session: {path}"
    assert (path.read_bytes(), names(tmp_path)) == (content, ["x.jsonl"])


@pytest.mark.rule("SES-6", "SES-8", "SES-10", "SES-15", "A02")
async def test_a_damaged_file_keeps_its_broken_lines_and_says_which_they_are(tmp_path: Path) -> None:
    by = Author("e")
    path = tmp_path / "x.jsonl"
    lines = [HEADER, codec.line(by.user()), b"{broken\n", b"5\n", b"\n", codec.line(by.note()), codec.line(by.note())[:20]]
    path.write_bytes(b"".join(lines))

    log, loaded = opened(path)
    added = by.note()
    log.append([added])
    log.close()

    assert ids_of(loaded) == ["e1", "e2"]
    assert [found.line for found in loaded.diagnostics if found.line] == [3, 4, 7]
    assert path.read_bytes() == b"".join(lines) + b"\n" + codec.line(added)


@pytest.mark.rule("SES-90", "A02")
def test_opening_for_reading_repairs_nothing_and_needs_no_lock(tmp_path: Path) -> None:
    by = Author("e")
    path = tmp_path / "x.jsonl"
    writer, _ = opened(path)
    writer.append([by.user()])
    writer.close()
    holder, _ = opened(path)
    path.write_bytes(path.read_bytes() + b'{"torn')
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}

    reader, loaded = opened(path, mode="read")
    with pytest.raises(ReadOnlySession):
        reader.append([by.note()])
    reader.close()

    assert ids_of(loaded) == ["e1"]
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before
    holder.close()


def test_opening_a_missing_file_for_reading_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SessionGone, match="does not exist"):
        opened(tmp_path / "x.jsonl", mode="read")

    assert names(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")

    with pytest.raises(StorageError, match="cannot open the session"):
        opened(tmp_path / "file" / "x.jsonl")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_cannot_be_written_is_a_typed_error_and_reading_still_works(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(HEADER)
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StorageError, match="lock"):
            opened(path)
        _, loaded = opened(path, mode="read")
    finally:
        tmp_path.chmod(0o700)

    assert loaded.header == new_header()


@pytest.mark.rule("A01")
@pytest.mark.parametrize("left", [0, 10, len(HEADER) + 5])
async def test_a_session_file_that_lost_what_was_synced_is_refused(tmp_path: Path, left: int) -> None:
    by = Author("e")
    path = tmp_path / "x.jsonl"
    log, _ = opened(path)
    log.append([by.user(), by.note()])
    log.close()
    path.write_bytes(path.read_bytes()[:left])
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}

    with pytest.raises(SessionGone, match="it held"):
        opened(path)

    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before


@pytest.mark.rule("A01")
async def test_a_session_file_of_another_session_beside_our_side_file_is_refused(tmp_path: Path) -> None:
    by = Author("e")
    path = tmp_path / "x.jsonl"
    log, _ = opened(path)
    log.append([by.user(), by.note()])
    log.close()
    path.write_bytes(path.read_bytes().replace(b'"id":"ses"', b'"id":"sos"', 1))

    with pytest.raises(SessionGone, match="'sos'.*'ses'"):
        opened(path)


# -- migration ----------------------------------------------------------------------------------


OLD = (
    b'{"type":"session","id":"old","timestamp":"t","cwd":"/w"}\n'
    b'{"type":"message","timestamp":"t","message":{"role":"user","content":"a","timestamp":1}}\n'
    b"{broken\n"
    b'{"type":"message","timestamp":"t","message":{"role":"hookMessage","customType":"c","content":"b","display":true,"timestamp":1}}\n'
)


@pytest.mark.rule("SES-12", "SES-14")
async def test_an_old_version_is_rewritten_whole_or_not_at_all_wherever_a_crash_falls() -> None:
    start = EMPTY.with_content(PATH, OLD)
    ids = iter(f"n{number}" for number in range(1000))
    usual = files_of(start)
    operations: list[Operation] = []
    usual.fault = operations.append  # type: ignore[assignment]  # only listens
    log, loaded = open_jsonl(PATH, with_ids(usual, ids))
    migrated = usual.photo().content(PATH) or b""

    states = 0
    for at, operation in enumerate(operations):
        for taken in range(0, len(operation.data) + 1, 7):
            files = files_of(start, fault=killing(at, taken))
            with pytest.raises(Killed):
                open_jsonl(PATH, with_ids(files, iter(f"n{number}" for number in range(1000))))
            assert files.photo().content(PATH) in (OLD, migrated)
            again, found = open_jsonl(PATH, with_ids(files_of(files.photo()), iter(f"n{number}" for number in range(1000))))
            assert len(ids_of(found)) == 2
            states += 1

    print(f"{states} states")
    assert b"{broken\n" in migrated and b'"version":3' in migrated and b'"custom"' in migrated
    assert len(ids_of(loaded)) == 2 and loaded.diagnostics
    assert log.header.version == 3


def with_ids(files: MemoryLogFiles, ids: Iterator[str]) -> JsonlOptions:
    return options(files=files, new_entry_id=lambda: next(ids))


def killing(number: int, taken: int) -> Callable[[Operation], Fault | None]:
    seen: list[Operation] = []

    def decide(operation: Operation) -> Fault | None:
        seen.append(operation)
        return Fault(taken=taken, killed=True) if len(seen) == number + 1 else None

    return decide


@pytest.mark.rule("SES-13")
def test_a_newer_version_is_opened_with_a_warning_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    content = HEADER.replace(b'"version":3', b'"version":9')
    path.write_bytes(content)

    log, loaded = opened(path)
    log.close()

    assert path.read_bytes() == content
    assert "newer" in loaded.diagnostics[0].why


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


def test_a_holder_is_named_by_process_host_and_time() -> None:
    assert holder_name(0).startswith(f"process {os.getpid()} on ")
    assert holder_name(0).endswith("since 1970-01-01T00:00:00Z")
