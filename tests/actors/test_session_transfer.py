"""Session files from elsewhere and to elsewhere."""

import os
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.errors import CommandRefused, MissingWorkingDirectory, NotASession, SessionFileMissing, StorageError
from camshaft.actors.opening import OpenSession, Surroundings
from camshaft.actors.session_transfer import export_session, fork_from, import_session
from camshaft.actors.session_writer import SessionWriter, open_writer
from camshaft.actors.simulation.log_files import Killed, MemoryLogFiles
from camshaft.actors.world import real_world
from camshaft.kernel import codec
from camshaft.kernel.commands import SetLabel
from tests.actors.breaking import breaking
from tests.actors.writing import ANSWER, HELLO, CountedIds, FixedClock, appended, ids, lines, world
from tests.kernel.made import chain, file_of, user

NOW = "2023-11-14T22:13:20.000Z"


def around(cwd: Path | str = "/srv/app", files: MemoryLogFiles | None = None) -> Surroundings:
    if files is not None:
        return Surroundings(world=world(files), cwd=str(cwd), agent_dir="/agent")
    return Surroundings(world=attrs.evolve(real_world(), clock=FixedClock(), ids=CountedIds()), cwd=str(cwd), agent_dir=str(cwd))


def session(cwd: Path | str, id: str = "s1") -> bytes:
    return file_of(chain(2), {"type": "session", "version": 3, "id": id, "timestamp": NOW, "cwd": str(cwd)})


def written(path: Path, data: bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def bytes_of(path: str) -> bytes:
    return Path(path).read_bytes()


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def old_session(cwd: Path | str) -> bytes:
    message = {"type": "message", "timestamp": NOW, "message": {"role": "user", "content": "x", "timestamp": 1}}
    return file_of([message, message], {"type": "session", "id": "old", "timestamp": NOW, "cwd": str(cwd)})


# -- import ------------------------------------------------------------------------------


@pytest.mark.rule("SES-85", "SDK-20")
async def test_an_imported_file_is_copied_under_its_name_with_a_number_if_that_is_taken(tmp_path: Path) -> None:
    source = written(tmp_path / "there" / "a.jsonl", session(tmp_path))
    here = tmp_path / "here"

    made = [await import_session(source, str(here), around()) for _ in range(3)]

    assert [Path(each.path).name for each in made] == ["a.jsonl", "a-1.jsonl", "a-2.jsonl"]
    assert names(here) == ["a-1.jsonl", "a-2.jsonl", "a.jsonl"]
    assert {(here / name).read_bytes() for name in names(here)} == {session(tmp_path)}
    assert bytes_of(source) == session(tmp_path)


async def test_imports_of_one_name_at_once_lose_none(tmp_path: Path) -> None:
    sources = [written(tmp_path / str(number) / "a.jsonl", session(tmp_path, f"s{number}")) for number in range(6)]

    place = around()

    async with trio.open_nursery() as nursery:
        for source in sources:
            nursery.start_soon(import_session, source, str(tmp_path / "here"), place)

    found = [lines_of(tmp_path / "here" / name)[0]["id"] for name in names(tmp_path / "here")]
    assert sorted(found) == [f"s{number}" for number in range(6)]


def lines_of(path: Path | str) -> list[Any]:
    return [codec.loads(line) for line in Path(path).read_bytes().splitlines()]


@pytest.mark.rule("SES-85")
@pytest.mark.parametrize("link", ["none", "folder", "file"])
async def test_a_file_that_is_there_already_is_used_in_place(tmp_path: Path, link: str) -> None:
    here = tmp_path / "here"
    source = written(here / "a.jsonl", session(tmp_path))
    if link == "folder":
        (tmp_path / "link").symlink_to(here)
        source = str(tmp_path / "link" / "a.jsonl")
    if link == "file":
        (tmp_path / "a.jsonl").symlink_to(source)
        source = str(tmp_path / "a.jsonl")

    assert await import_session(source, str(here), around()) == OpenSession(path=str(here / "a.jsonl"))
    assert names(here) == ["a.jsonl"]


@pytest.mark.rule("SES-85", "SES-18")
async def test_without_its_working_directory_a_session_is_imported_only_for_another_one(tmp_path: Path) -> None:
    source = written(tmp_path / "a.jsonl", session("/no/such/folder"))

    with pytest.raises(MissingWorkingDirectory, match="^Stored session working directory does not exist: /no/such/folder\n"):
        await import_session(source, str(tmp_path / "here"), around())
    assert not (tmp_path / "here").exists()
    await import_session(source, str(tmp_path / "here"), around(), require_cwd=False)
    assert names(tmp_path / "here") == ["a.jsonl"]


@pytest.mark.rule("SES-85")
async def test_a_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(SessionFileMissing, match=f"^File not found: {tmp_path}/no.jsonl$"):
        await import_session(str(tmp_path / "no.jsonl"), str(tmp_path), around())


@pytest.mark.rule("SES-7")
@pytest.mark.parametrize("data", [b"", b"\n\n", b"text\n", b"\xef\xbb\xbf" + session("/")])
async def test_what_is_no_session_is_not_imported(tmp_path: Path, data: bytes) -> None:
    source = written(tmp_path / "a.jsonl", data)

    with pytest.raises(NotASession, match="^Session file is not a valid camshaft session: "):
        await import_session(source, str(tmp_path / "here"), around())
    assert not (tmp_path / "here").exists()


async def test_pipes_and_folders_are_no_sources_and_keep_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "folder.jsonl").mkdir()

    for name in ("pipe.jsonl", "folder.jsonl"):
        with pytest.raises(StorageError, match="cannot read the session"):
            await import_session(str(tmp_path / name), str(tmp_path / "here"), around())


async def test_an_old_session_is_imported_as_it_is_and_migrated_when_it_is_opened(tmp_path: Path) -> None:
    source = written(tmp_path / "a.jsonl", old_session(tmp_path))

    made = await import_session(source, str(tmp_path / "here"), around())

    assert bytes_of(made.path) == bytes_of(source)
    with open_writer(made, real_world(), cwd="/") as writer:
        assert len(list(writer.entries)) == 2
    assert lines_of(made.path)[0]["version"] == 3


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("job", ["import", "fork", "export"])
async def test_whichever_step_fails_there_is_a_whole_file_or_none_and_the_source_stays(job: str, *, killed: bool) -> None:
    files = MemoryLogFiles()
    files.append_foreign("/there/a.jsonl", session("/"))
    files.append_foreign("/here/export.jsonl", b"old")
    before = files.photo().texts()
    with open_writer(OpenSession(path="/there/a.jsonl"), world(files), cwd="/") as writer:
        state = writer.state
    outcomes = set()
    for disk, fault in breaking(files.photo(), killed=killed):
        place = around("/", disk)
        try:
            if job == "import":
                await import_session("/there/a.jsonl", "/here", place)
            elif job == "fork":
                await fork_from("/there/a.jsonl", place, directory="/here")
            else:
                await export_session(state, place.world, "/here/export.jsonl")
            done = True
        except (StorageError, Killed):
            done = False
        after = {name: text for name, text in disk.photo().texts().items() if name.endswith(".jsonl")}
        changed = {name: text for name, text in after.items() if before.get(name) != text}

        assert after["/there/a.jsonl"] == before["/there/a.jsonl"]
        assert len(changed) == 1 if done else killed or job == "export" or not changed
        assert [text.count(b"\n") for text in changed.values()] == [3] * len(changed)
        assert killed or disk.open_handles == 0
        outcomes.add((done, fault.is_over))
    assert outcomes >= {(False, False), (True, True)}


async def test_a_cancelled_import_or_fork_makes_nothing(tmp_path: Path) -> None:
    source = written(tmp_path / "a.jsonl", session(tmp_path))

    with trio.CancelScope() as scope:
        scope.cancel()
        await import_session(source, str(tmp_path / "here"), around())
    with trio.CancelScope() as scope:
        scope.cancel()
        await fork_from(source, around(), directory=str(tmp_path / "here"))

    assert names(tmp_path) == ["a.jsonl"]


# -- fork from another project -----------------------------------------------------------


@pytest.mark.rule("SES-83")
async def test_a_fork_from_another_project_has_all_branches_for_the_new_directory(tmp_path: Path) -> None:
    data = file_of(
        [*chain(2), user("side", "e0"), "{broken"], {"type": "session", "version": 3, "id": "s", "timestamp": NOW, "cwd": "/there"}
    )
    source = written(tmp_path / "a.jsonl", data)

    made = await fork_from(source, around(tmp_path), session_id="mine")

    header, *entries = lines_of(made.path)
    assert header == {
        "type": "session",
        "version": 3,
        "id": "mine",
        "timestamp": NOW,
        "cwd": str(tmp_path),
        "parentSession": source,
    }
    assert [entry["id"] for entry in entries] == ["e0", "e1", "side"]
    flat = str(tmp_path).removeprefix("/").replace("/", "-")
    assert made.path == f"{tmp_path}/sessions/--{flat}--/2023-11-14T22-13-20-000Z_mine.jsonl"
    assert bytes_of(source) == data


@pytest.mark.rule("SES-84")
async def test_a_fork_of_an_old_session_is_migrated_and_its_source_is_not(tmp_path: Path) -> None:
    source = written(tmp_path / "a.jsonl", old_session("/there"))

    made = await fork_from(source, around(tmp_path))

    assert [entry["parentId"] is None for entry in lines_of(made.path)[1:]] == [True, False]
    assert bytes_of(source) == old_session("/there")


@pytest.mark.rule("SES-83")
@pytest.mark.parametrize("data", [None, b"", b"text"])
async def test_a_fork_of_nothing_is_refused(tmp_path: Path, data: bytes | None) -> None:
    source = tmp_path / "a.jsonl"
    if data is not None:
        source.write_bytes(data)

    with pytest.raises(CommandRefused, match=f"^Cannot fork: source session file is empty or invalid: {source}$"):
        await fork_from(str(source), around(tmp_path), directory=str(tmp_path / "here"))
    assert not (tmp_path / "here").exists()


# -- export ------------------------------------------------------------------------------


def conversation(files: MemoryLogFiles) -> SessionWriter:
    return open_writer(OpenSession(path="/there/a.jsonl"), world(files), cwd="/srv/app")


@pytest.mark.rule("SES-86")
async def test_an_export_is_the_active_branch_as_a_chain_under_the_same_id() -> None:
    files = MemoryLogFiles()
    files.append_foreign("/here/out.jsonl", b"what was there")
    with conversation(files) as writer:
        hello, _aside = appended(writer, HELLO, ANSWER)
        writer.branch(hello)
        label, answer = appended(writer, SetLabel(target_id=hello, label="x"), ANSWER)

        path = await export_session(writer.state, around(files=files).world, "/here/out.jsonl", own=writer.path)

    assert path == "/here/out.jsonl"
    header = lines(files, path)[0]
    assert (header["id"], header["cwd"], header["version"]) == (writer.header.id, "/srv/app", 3)
    assert "parentSession" not in header
    assert ids(files, path) == [hello, label, answer]
    assert [line["parentId"] for line in lines(files, path)[1:]] == [None, hello, label]


@pytest.mark.rule("SES-86")
async def test_an_export_without_a_name_goes_to_the_working_directory_of_the_process() -> None:
    files = MemoryLogFiles()
    with conversation(files) as writer:
        path = await export_session(writer.state, around(files=files).world)

    assert path == os.path.abspath("session-2023-11-14T22-13-20-000Z.jsonl")  # noqa: ASYNC240  touches no disk
    assert len(lines(files, path)) == 1


@pytest.mark.parametrize("link", [False, True])
async def test_a_session_is_not_exported_over_its_own_file(tmp_path: Path, *, link: bool) -> None:
    own = written(tmp_path / "a.jsonl", session(tmp_path))
    path = tmp_path / "link.jsonl"
    path.symlink_to(own)
    with (
        open_writer(OpenSession(path=own), real_world(), cwd="/") as writer,
        pytest.raises(CommandRefused, match="^Cannot export a session over its own file: "),
    ):
        await export_session(writer.state, around().world, str(path) if link else own, own=own)

    assert bytes_of(own) == session(tmp_path)


async def test_an_export_through_a_link_writes_what_it_leads_to(tmp_path: Path) -> None:
    target = written(tmp_path / "real.jsonl", b"old")
    (tmp_path / "link.jsonl").symlink_to(target)
    with conversation(MemoryLogFiles()) as writer:
        await export_session(writer.state, around().world, str(tmp_path / "link.jsonl"))

    assert (tmp_path / "link.jsonl").is_symlink()
    assert lines_of(target)[0]["type"] == "session"
