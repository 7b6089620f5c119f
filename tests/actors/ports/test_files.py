"""Real files: what is refused, what is private, and that nothing is left behind."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from camshaft.actors.ports.files import RealFiles, WalkedPath
from tests.extensions_std.tools.calls import open_handles


async def test_a_pipe_a_folder_and_a_large_file_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"x" * 11)
    files = RealFiles()

    with pytest.raises(OSError, match="Not a plain file"):
        await files.read(str(tmp_path / "pipe"))
    with pytest.raises(IsADirectoryError):
        await files.read(str(tmp_path))
    with pytest.raises(OSError, match="Larger than the 10 bytes"):
        await files.read(str(tmp_path / "large"), bytes_max=10)


async def test_a_file_without_a_size_is_read_whole() -> None:
    assert (await RealFiles().read("/proc/self/status")).startswith(b"Name:")


@pytest.mark.rule("TOOL-53")
async def test_a_private_file_is_its_owners_alone_new_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "private"
    files, before = RealFiles(), open_handles()

    made = await files.create_private(str(path))
    await made.write(b"one")
    await made.write(b"two")
    made.close()
    made.close()

    assert path.read_bytes() == b"onetwo"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert open_handles() == before
    with pytest.raises(FileExistsError):
        await files.create_private(str(path))
    with pytest.raises(OSError, match="closed"):
        await made.write(b"three")


async def test_overwriting_keeps_the_mode_and_the_link(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("a long old content")
    target.chmod(0o640)
    (tmp_path / "link").symlink_to("target")

    await RealFiles().write(str(tmp_path / "link"), b"new")

    assert (target.read_bytes(), stat.S_IMODE(target.stat().st_mode)) == (b"new", 0o640)
    assert (tmp_path / "link").is_symlink()


async def test_a_walk_that_is_cancelled_ends_soon_and_gives_its_thread_back(tmp_path: Path) -> None:
    for number in range(2000):
        (tmp_path / f"f{number}").touch()
    looked = 0

    def accepts(_path: str) -> bool:
        nonlocal looked
        looked += 1
        if looked == 10:
            trio.from_thread.run_sync(scope.cancel)
        return True

    with trio.CancelScope() as scope:
        await RealFiles().walk(str(tmp_path), accepts, found_max=5000)

    assert scope.cancelled_caught
    assert 10 <= looked < 1000


async def test_a_walk_stops_at_its_limit_and_names_what_is_no_utf_8(tmp_path: Path) -> None:
    os.mkdir(os.fsencode(tmp_path) + b"/\xff")
    files = RealFiles()

    found = await files.walk(str(tmp_path), lambda path: True, found_max=5)
    none = await files.walk(str(tmp_path), lambda path: True, found_max=0)

    assert found == (WalkedPath(path="\udcff", is_directory=True),)
    assert none == ()


# -- digests -----------------------------------------------------------------------------


async def test_a_digest_gets_the_whole_file_in_pieces_and_may_stop(tmp_path: Path) -> None:
    data = bytes(range(256)) * 12_000
    (tmp_path / "a").write_bytes(data)

    assert await RealFiles().digest(str(tmp_path / "a"), b"".join) == data
    assert await RealFiles().digest(str(tmp_path / "a"), lambda pieces: len(next(pieces))) == 64 * 1024


async def test_a_cancelled_digest_ends_between_two_pieces(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 20_000_000)
    pieces_seen: list[int] = []

    def digest(pieces: Iterator[bytes]) -> None:
        for piece in pieces:
            pieces_seen.append(len(piece))
            trio.from_thread.run_sync(scope.cancel)

    with trio.CancelScope() as scope:
        await RealFiles().digest(str(tmp_path / "a"), digest)

    assert scope.cancelled_caught
    assert len(pieces_seen) == 1


async def test_only_plain_files_are_digested(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    for name, error in (("pipe", OSError), ("", IsADirectoryError), ("nowhere", FileNotFoundError)):
        with pytest.raises(error):
            await RealFiles().digest(str(tmp_path / name), list)


async def test_a_listed_name_has_the_time_of_its_last_change(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    os.utime(tmp_path / "a", (5, 7.5))

    (found,) = await RealFiles().list_folder(str(tmp_path))

    assert found.modified_ms == 7500
