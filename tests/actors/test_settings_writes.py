"""Writing settings files: what must not be lost on the way, and what must not be destroyed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from camshaft.actors.settings_files import Scope, SettingsFiles, settings_files
from camshaft.kernel.settings import InvalidSetting


def place(tmp_path: Path, content: Any = None) -> Path:
    """The user's file, with an object in it; None: not there."""
    path = tmp_path / "agent" / "settings.json"
    path.parent.mkdir()
    if content is not None:
        path.write_text(json.dumps(content), "utf-8")
    return path


def opened(tmp_path: Path) -> SettingsFiles:
    return settings_files(str(tmp_path / "agent"), str(tmp_path / "project"))


def _nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.rule("SET-5", "SET-6")
@pytest.mark.parametrize(
    "value",
    [
        pytest.param(float("nan"), id="nan"),
        pytest.param([float("inf")], id="inf"),
        pytest.param(_nested(5000), id="deep"),
        pytest.param(10**5000, id="huge"),
    ],
)
def test_what_no_file_can_hold_is_refused_and_changes_nothing(tmp_path: Path, value: Any) -> None:
    path = place(tmp_path, {"a": 1})
    found = opened(tmp_path)

    with pytest.raises(InvalidSetting, match="The value for x cannot be kept"):
        found.write("user", "x", value)
    with pytest.raises(InvalidSetting, match="The value for x cannot be kept"):
        found.override("x", value)
    found.write("user", "b", 2)
    trio.run(found.flush)

    assert found.effective == json.loads(path.read_text("utf-8")) == {"a": 1, "b": 2}


@pytest.mark.rule("SET-6")
def test_half_a_surrogate_pair_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = place(tmp_path)
    found = opened(tmp_path)

    found.write("user", "name", "\udcff")
    trio.run(found.flush)

    assert path.read_bytes().decode("utf-8")
    assert opened(tmp_path).user == {"name": "\udcff"}


class _Slow:
    """A storage whose changes take their time; the gate says when they happen."""

    def __init__(self) -> None:
        self.held: dict[Scope, bytes] = {"user": b'{"a": 1}'}
        self.gate = trio.Event()

    def name(self, scope: Scope) -> str:
        return f"row {scope}"

    def read(self, scope: Scope) -> bytes | None:
        return self.held.get(scope)

    async def change(self, scope: Scope, rewrite: Any) -> None:
        await self.gate.wait()
        self.held[scope] = rewrite(self.held.get(scope))


@pytest.mark.rule("SET-6")
async def test_a_reading_while_changes_are_being_written_keeps_them() -> None:
    storage = _Slow()
    found = SettingsFiles(storage, True)
    found.write("user", "a", 2)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(found.flush)
        await trio.testing.wait_all_tasks_blocked()
        found.reload()
        during = found.effective
        found.write("user", "b", 3)
        storage.gate.set()
    await found.flush()

    assert during == {"a": 2}
    assert json.loads(storage.held["user"]) == {"a": 2, "b": 3}


@pytest.mark.rule("SET-6")
async def test_changes_whose_writing_was_cancelled_still_wait() -> None:
    storage = _Slow()
    found = SettingsFiles(storage, True)
    found.write("user", "a", 2)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(found.flush)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    storage.gate.set()
    await found.flush()

    assert json.loads(storage.held["user"]) == {"a": 2}


@pytest.mark.rule("SET-10")
async def test_a_storage_of_a_host_that_fails_in_its_own_way_is_told_as_any_other() -> None:
    class Broken(_Slow):
        def read(self, scope: Scope) -> bytes | None:
            raise RuntimeError("no connection")

        async def change(self, scope: Scope, rewrite: Any) -> None:
            raise RuntimeError("no connection")

    async with trio.open_nursery() as nursery:
        found = SettingsFiles(Broken(), True)
        found.serve_in(nursery)
        found.write("user", "a", 2)

    assert found.effective == {"a": 2}
    assert found.warnings == tuple([f"Invalid settings file row {scope}: no connection" for scope in ("user", "project")])
    assert [error.message for error in found.take_errors()] == ["Cannot write row user: no connection"]


@pytest.mark.rule("SET-6")
@pytest.mark.parametrize("name", ["settings.json.lock", f"settings.json.{os.getpid()}.new"], ids=["lock", "new file"])
def test_a_link_that_lies_ready_beside_the_file_is_not_followed(tmp_path: Path, name: str) -> None:
    path = place(tmp_path, {"a": 1})
    other = tmp_path / "diary.txt"
    other.write_text("dear diary", "utf-8")
    (path.parent / name).symlink_to(other)
    found = opened(tmp_path)

    found.write("user", "b", 2)
    trio.run(found.flush)

    assert other.read_text("utf-8") == "dear diary"


KILLED_WHILE_WRITING = """
import resource, signal, sys, trio
from camshaft.actors.settings_files import settings_files
found = settings_files(sys.argv[1], sys.argv[2])
found.write("user", "secret", "x" * 5000)
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
trio.run(found.flush)
"""


@pytest.mark.rule("SET-6")
def test_who_dies_while_writing_leaves_the_old_file_and_what_others_may_not_read_either(tmp_path: Path) -> None:
    path = place(tmp_path, {"a": 1})
    path.chmod(0o600)

    ended = subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, path.parent, tmp_path / "project"], check=False)

    (left,) = path.parent.glob("*.new")
    assert (ended.returncode, json.loads(path.read_text("utf-8"))) == (-signal.SIGXFSZ, {"a": 1})
    assert left.stat().st_mode & 0o777 == 0o600
