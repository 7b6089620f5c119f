"""Files that are missing, empty, foreign, damaged, cut or old: what opening says and leaves."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from camshaft.actors.errors import (
    NotASession,
    ReadOnlySession,
    SessionGone,
    StorageError,
)
from camshaft.actors.logs.jsonl import JsonlLog, JsonlOptions, open_jsonl
from camshaft.actors.logs.port import Loaded
from camshaft.actors.ports.log_files import RealLogFiles
from camshaft.actors.simulation.log_files import Fault, Killed, MemoryLogFiles, Operation, files_of
from camshaft.kernel import codec
from tests.actors.logs.histories import Author, new_header
from tests.actors.logs.lives import EMPTY, PATH, ids_of

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
    usual.fault = operations.append
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
