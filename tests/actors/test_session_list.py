"""Listing folders of session files."""

import os
from pathlib import Path

import pytest
import trio

from camshaft.actors.session_list import LOADS_MAX, list_all_sessions, list_sessions
from camshaft.actors.world import World, real_world
from camshaft.kernel.session_summary import SessionItem
from tests.actors.counting import CountingFiles, counted
from tests.kernel.made import assistant, file_of, user

CWD = "/srv/app"


def session(folder: Path, name: str, *, cwd: str | None = CWD, text: str = "q") -> Path:
    header = {"type": "session", "version": 3, "id": name, "timestamp": "2026-01-01T00:00:00.000Z"}
    path = folder / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file_of([user("u", None, text), assistant("a", "u")], header if cwd is None else {**header, "cwd": cwd}))
    return path


def ids(items: tuple[SessionItem, ...] | None) -> list[str]:
    return [item.id for item in items or ()]


@pytest.fixture
def real() -> World:
    return real_world()


@pytest.mark.rule("SES-68", "SES-73")
async def test_a_bad_file_does_not_break_the_list(tmp_path: Path, real: World) -> None:
    session(tmp_path, "good")
    session(tmp_path, "linked-to").rename(tmp_path / "elsewhere")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "lost.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop.jsonl").symlink_to(tmp_path / "loop.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "binary.jsonl").write_bytes(bytes(range(256)) * 100)
    session(tmp_path, "other").rename(tmp_path / "other.txt")

    assert sorted(ids(await list_sessions(real, str(tmp_path)))) == ["good", "linked-to"]


@pytest.mark.rule("SES-74")
async def test_a_folder_that_cannot_be_read_has_no_sessions(tmp_path: Path, real: World) -> None:
    (tmp_path / "file").touch()

    for folder in ("nowhere", "file", "no\0name"):
        assert await list_sessions(real, str(tmp_path / folder)) == ()
        assert await list_all_sessions(real, str(tmp_path / folder)) == ()


@pytest.mark.rule("SES-69", "SES-71")
async def test_only_sessions_of_the_working_directory_are_asked_for(tmp_path: Path, real: World) -> None:
    session(tmp_path, "here")
    session(tmp_path, "slash", cwd=f"{CWD}/")
    session(tmp_path, "other", cwd="/other")
    session(tmp_path, "none", cwd=None)

    assert sorted(ids(await list_sessions(real, str(tmp_path), cwd=CWD))) == ["here", "slash"]
    assert sorted(ids(await list_sessions(real, str(tmp_path), cwd=CWD, is_default=True))) == ["here", "none", "slash"]
    assert len(await list_sessions(real, str(tmp_path))) == 4


async def test_all_folders_below_the_root_are_one_list(tmp_path: Path, real: World) -> None:
    session(tmp_path / "--a--", "one")
    session(tmp_path / "--b--", "two", cwd="/b")
    session(tmp_path, "beside")
    (tmp_path / "--link--").symlink_to(tmp_path / "--a--")

    assert sorted(ids(await list_all_sessions(real, str(tmp_path)))) == ["one", "one", "two"]


@pytest.mark.rule("SES-74")
async def test_progress_counts_every_file_and_now_and_then_shows_a_sorted_part(tmp_path: Path, real: World) -> None:
    for number in range(120):
        session(tmp_path, f"s{number}")
    (tmp_path / "bad.jsonl").touch()
    told: list[tuple[int, int]] = []
    parts: list[tuple[SessionItem, ...]] = []

    def progress(loaded: int, total: int, items: tuple[SessionItem, ...] | None) -> None:
        told.append((loaded, total))
        parts.extend([] if items is None else [items])

    items = await list_sessions(real, str(tmp_path), progress=progress)

    assert told == [(loaded, 121) for loaded in range(1, 122)]
    assert len(items) == 120
    assert [len(part) >= 49 for part in parts] == [True, True]
    assert all(part == tuple([item for item in items if item in part]) for part in parts)


async def test_a_progress_that_raises_is_not_called_again(tmp_path: Path, real: World) -> None:
    for number in range(5):
        session(tmp_path, f"s{number}")
    calls = []

    def progress(loaded: int, total: int, items: object) -> None:
        calls.append(loaded)
        raise RuntimeError("broken")

    assert len(await list_sessions(real, str(tmp_path), progress=progress)) == 5
    assert calls == [1]


@pytest.mark.rule("SES-74")
async def test_ten_files_are_read_at_once_and_two_listings_do_not_disturb_each_other(tmp_path: Path) -> None:
    for number in range(40):
        session(tmp_path, f"s{number}")
    files = CountingFiles(real_world().files)
    found: list[int] = []

    async def listing() -> None:
        found.append(len(await list_sessions(counted(files), str(tmp_path))))

    await listing()
    assert files.most == LOADS_MAX
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listing)
        nursery.start_soon(listing)

    assert found == [40, 40, 40]
    assert files.most <= 2 * LOADS_MAX


@pytest.mark.rule("SES-74")
async def test_a_cancel_at_any_point_ends_the_listing_and_raises(tmp_path: Path) -> None:
    for number in range(12):
        session(tmp_path, f"s{number}")
    ended = []
    for at in range(1, 20):
        files = CountingFiles(real_world().files)
        with trio.CancelScope() as scope:
            files.cancel_at(at, scope)
            ended.append(len(await list_sessions(counted(files), str(tmp_path))))
        assert files.now == 0
        if not scope.cancelled_caught:
            break
    assert ended == [12]
    assert at > 10
