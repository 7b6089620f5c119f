"""Which session file is meant."""

import os
from pathlib import Path

import pytest

from camshaft.actors.session_finding import (
    FoundSession,
    SessionPlaces,
    is_session_path,
    most_recent_session,
    session_head,
    session_named,
    session_path,
    session_places,
    session_with_id,
)
from camshaft.actors.world import World, real_world
from tests.actors.counting import CountingFiles, counted
from tests.kernel.made import file_of, user

CWD = "/srv/app"


@pytest.fixture
def real() -> World:
    return real_world()


def session(path: Path, id: str, *, cwd: str | None = CWD, at_s: int = 100, said_ms: int | None = None) -> None:
    header = {"type": "session", "version": 3, "id": id, "timestamp": "1970-01-01T00:00:00.001Z"}
    said = {"type": "message", "id": "u", "parentId": None, "message": {"role": "user", "content": "q", "timestamp": said_ms}}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file_of([] if said_ms is None else [said], header if cwd is None else {**header, "cwd": cwd}))
    os.utime(path, (at_s, at_s))


def only(folder: Path, *, is_default: bool = False) -> SessionPlaces:
    return SessionPlaces(cwd=CWD, folder=str(folder), is_default=is_default, root=None)


def name_of(found: FoundSession | None) -> str | None:
    return None if found is None else Path(found.path).name


# -- places ------------------------------------------------------------------------------


@pytest.mark.rule("SES-67")
def test_the_option_goes_before_the_variable_the_setting_and_the_default() -> None:
    variable = {"CAMSHAFT_SESSION_DIR": "/variable"}

    found = [
        session_places("given", variable, "setting", "/agent", CWD),
        session_places(None, variable, "setting", "/agent", CWD),
        session_places(None, {}, "setting", "/agent", CWD),
        session_places(None, {}, None, "/agent", CWD),
    ]

    assert [(each.folder, each.is_default, each.root) for each in found] == [
        ("/srv/app/given", False, None),
        ("/variable", False, None),
        ("/srv/app/setting", False, None),
        ("/agent/sessions/--srv-app--", True, "/agent/sessions"),
    ]


def test_the_default_folder_given_by_name_is_the_default_one() -> None:
    assert session_places("/agent/sessions/--srv-app--", {}, None, "/agent", CWD).is_default


@pytest.mark.rule("SES-70")
@pytest.mark.parametrize(
    ("text", "expected"), [("abc", False), ("a/b", True), ("a\\b", True), ("a.jsonl", True), (".", False), ("a.jsonl.x", False)]
)
def test_a_path_is_told_from_an_id(text: str, expected: bool) -> None:
    assert is_session_path(text) is expected


def test_a_path_is_relative_to_the_working_directory_and_knows_the_home() -> None:
    assert session_path("a.jsonl", CWD) == "/srv/app/a.jsonl"
    assert session_path("~/a.jsonl", CWD) == os.path.expanduser("~/a.jsonl")


# -- searches ----------------------------------------------------------------------------


@pytest.mark.rule("SES-69")
async def test_the_most_recent_session_is_that_of_the_working_directory_whose_file_changed_last(tmp_path: Path, real: World) -> None:
    session(tmp_path / "old.jsonl", "old", at_s=1)
    session(tmp_path / "new.jsonl", "new", at_s=2)
    session(tmp_path / "other.jsonl", "other", cwd="/other", at_s=3)
    session(tmp_path / "text.txt", "text", at_s=4)
    (tmp_path / "broken.jsonl").write_text("broken")
    os.mkfifo(tmp_path / "pipe.jsonl")

    assert name_of(await most_recent_session(real, only(tmp_path))) == "new.jsonl"


@pytest.mark.rule("SES-69")
async def test_a_session_without_directory_counts_in_the_default_folder_only(tmp_path: Path, real: World) -> None:
    session(tmp_path / "a.jsonl", "a", cwd=None)

    assert await most_recent_session(real, only(tmp_path)) is None
    assert name_of(await most_recent_session(real, only(tmp_path, is_default=True))) == "a.jsonl"
    assert await most_recent_session(real, only(tmp_path / "nowhere")) is None


async def test_the_most_recent_session_is_found_without_reading_the_others(tmp_path: Path) -> None:
    for number in range(20):
        session(tmp_path / f"{number}.jsonl", f"s{number}", at_s=number)
    files = CountingFiles(real_world().files)

    assert name_of(await most_recent_session(counted(files), only(tmp_path))) == "19.jsonl"
    assert files.calls == 2


@pytest.mark.rule("SES-70")
async def test_an_exact_id_is_the_first_of_the_working_directory(tmp_path: Path, real: World) -> None:
    session(tmp_path / "a.jsonl", "x", cwd="/other")
    session(tmp_path / "b.jsonl", "x")
    session(tmp_path / "c.jsonl", "x", at_s=999)

    assert name_of(await session_with_id(real, only(tmp_path), "x")) == "b.jsonl"
    assert await session_with_id(real, only(tmp_path), "") is None


@pytest.mark.rule("SES-70")
@pytest.mark.parametrize(
    ("beginning", "file"), [("abc", "two.jsonl"), ("ab", "three.jsonl"), ("abcd", "one.jsonl"), ("b", None), ("", None)]
)
async def test_an_exact_id_goes_before_the_latest_that_begins_so(tmp_path: Path, real: World, beginning: str, file: str | None) -> None:
    session(tmp_path / "one.jsonl", "abcd", at_s=900, said_ms=2)
    session(tmp_path / "two.jsonl", "abc", said_ms=1)
    session(tmp_path / "three.jsonl", "abx", at_s=1, said_ms=3)

    assert name_of(await session_named(real, only(tmp_path), beginning)) == file


@pytest.mark.rule("SES-70")
async def test_an_id_is_looked_for_here_first_and_then_everywhere(tmp_path: Path, real: World) -> None:
    places = session_places(None, {}, None, str(tmp_path), CWD)
    session(Path(places.folder) / "a.jsonl", "abc")
    session(tmp_path / "sessions" / "--other--" / "b.jsonl", "ab", cwd="/other")
    session(tmp_path / "sessions" / "--other--" / "c.jsonl", "only-there", cwd="/other")

    here, there = await session_named(real, places, "ab"), await session_named(real, places, "only")

    assert (name_of(here), here is not None and here.is_here) == ("a.jsonl", True)
    assert there == FoundSession(path=f"{tmp_path}/sessions/--other--/c.jsonl", id="only-there", cwd="/other", is_here=False)


@pytest.mark.rule("SES-19")
async def test_a_header_is_read_from_a_plain_file_only(tmp_path: Path, real: World) -> None:
    session(tmp_path / "a.jsonl", "a")
    (tmp_path / "long.jsonl").write_bytes(b"\n" * 2_000_000 + file_of([user("u", None)]))

    head = await session_head(real.files, str(tmp_path / "a.jsonl"))
    assert head is not None
    assert head.cwd == CWD
    for name in ("long.jsonl", "nowhere", "", "a\0b"):
        assert await session_head(real.files, str(tmp_path / name)) is None
