"""Settings files: what counts, what is written, damaged files, other writers."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from camshaft.actors.ports.log_files import RealLogFiles
from camshaft.actors.settings_files import ProjectNotTrusted, Scope, SettingsFiles, settings_files, settings_in_memory
from camshaft.kernel.settings import InvalidSetting
from camshaft.kernel.settings_merge import ResourceLists
from tests.actors.running import simulate


def place(tmp_path: Path, user: Any = None, project: Any = None) -> tuple[Path, Path]:
    """The two files, with text, bytes or an object in them; None: not there."""
    paths = tmp_path / "agent" / "settings.json", tmp_path / "project" / ".camshaft" / "settings.json"
    for path, content in zip(paths, (user, project)):
        path.parent.mkdir(parents=True)
        if content is not None:
            text = content if isinstance(content, str | bytes) else json.dumps(content)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return paths


def opened(tmp_path: Path, *, trusted: bool = True) -> SettingsFiles:
    return settings_files(str(tmp_path / "agent"), str(tmp_path / "project"), trusted=trusted)


# -- reading -----------------------------------------------------------------------------


@pytest.mark.rule("SET-1", "SET-2")
def test_the_project_counts_over_the_user_and_a_missing_file_is_empty(tmp_path: Path) -> None:
    place(tmp_path, {"defaultModel": "u", "retry": {"maxRetries": 1}}, {"defaultModel": "p", "retry": {"enabled": False}})

    found = opened(tmp_path)

    assert (found.settings.default_model, found.settings.retry.max_retries, found.settings.retry.enabled) == ("p", 1, False)
    assert settings_files("/nix", "/nix").effective == {}


@pytest.mark.rule("SET-1")
def test_only_the_folder_itself_has_project_settings(tmp_path: Path) -> None:
    place(tmp_path, None, {"defaultModel": "p"})
    inner = tmp_path / "project" / "inner"
    inner.mkdir()

    assert settings_files(str(tmp_path / "agent"), str(inner)).effective == {}


@pytest.mark.rule("SET-3", "TRUST-4")
def test_without_trust_only_the_session_folder_of_a_project_counts_and_losing_trust_drops_the_rest(tmp_path: Path) -> None:
    place(tmp_path, {"sessionDir": "user"}, {"sessionDir": "own", "defaultModel": "p", "skills": ["s"]})
    found = opened(tmp_path, trusted=False)
    before = (found.session_dir, found.settings.default_model, found.project_lists)

    found.set_trusted(True)
    trusted = (found.settings.default_model, found.project_lists)
    found.set_trusted(False)

    assert before == ("own", None, ResourceLists())
    assert trusted == ("p", ResourceLists(skills=("s",)))
    assert (found.settings.default_model, found.project_lists, found.effective) == (None, ResourceLists(), {"sessionDir": "user"})


@pytest.mark.rule("SET-2", "SET-13")
def test_resource_lists_stay_apart(tmp_path: Path) -> None:
    place(tmp_path, {"skills": ["u"]}, {"skills": ["p"], "prompts": ["q"]})

    found = opened(tmp_path)

    assert (found.user_lists, found.project_lists) == (ResourceLists(skills=("u",)), ResourceLists(skills=("p",), prompts=("q",)))


@pytest.mark.rule("SET-5")
def test_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    place(tmp_path, b'\xef\xbb\xbf{"defaultModel":\r\n"m"}')

    assert (opened(tmp_path).settings.default_model, opened(tmp_path).warnings) == ("m", ())


BROKEN: dict[str, bytes] = {
    "cut off": b'{"defaultModel": "m"',
    "a list": b"[]",
    "empty": b"",
    "binary": bytes(range(256)),
    "deep": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "UTF-16": '{"a": 1}'.encode("utf-16"),
}


@pytest.mark.rule("SET-5")
@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_counts_as_empty_with_a_warning_and_is_never_written(tmp_path: Path, content: bytes) -> None:
    path, _ = place(tmp_path, content)
    found = opened(tmp_path)

    found.write("user", "defaultModel", "mine")
    trio.run(found.flush)

    (warning,) = found.warnings
    assert warning.startswith(f"Invalid settings file {path}: ")
    assert (path.read_bytes(), found.settings.default_model) == (content, "mine")
    assert [(each.scope, str(path) in each.message) for each in found.take_errors()] == [("user", True)]
    assert found.take_errors() == ()


@pytest.mark.rule("SET-5")
@pytest.mark.parametrize("kind", ["folder", "pipe", "loop", "huge"])
def test_what_is_no_plain_file_is_told(tmp_path: Path, kind: str) -> None:
    path, _ = place(tmp_path)
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "loop":
            path.symlink_to(path)
        case "huge":
            with path.open("wb") as file:
                file.truncate(17 * 1024 * 1024)

    assert [each.startswith(f"Invalid settings file {path}: ") for each in opened(tmp_path).warnings] == [True]


@pytest.mark.rule("SET-5", "SET-2")
def test_reload_keeps_the_values_of_a_file_that_broke_and_drops_overrides(tmp_path: Path) -> None:
    user, project = place(tmp_path, {"defaultModel": "u", "a": 1}, {"b": 1})
    found = opened(tmp_path)
    found.override("defaultModel", "o")
    overridden = found.settings.default_model
    user.write_text("{", "utf-8")
    project.write_text('{"b": 2}', "utf-8")

    found.reload()

    assert (overridden, found.effective) == ("o", {"defaultModel": "u", "a": 1, "b": 2})
    assert len(found.warnings) == 1


@pytest.mark.rule("SET-7")
def test_an_invalid_value_is_told_with_its_file_and_does_not_hide_the_valid_one_below(tmp_path: Path) -> None:
    _, path = place(tmp_path, {"steeringMode": "all", "images": {"blockImages": True}}, {"steeringMode": "some", "unknown": [1]})

    found = opened(tmp_path)

    assert (found.settings.steering_mode, found.settings.images.block_images, found.effective["unknown"]) == ("all", True, (1,))
    (warning,) = found.warnings
    assert warning.startswith(f"{path}: setting 'steeringMode': ")
    assert json.loads(path.read_text("utf-8"))["steeringMode"] == "some"


@pytest.mark.rule("SET-7")
def test_a_token_limit_that_is_none_is_an_error_and_a_refused_change_leaves_no_trace(tmp_path: Path) -> None:
    place(tmp_path, {"a": 1})
    found = opened(tmp_path)

    with pytest.raises(InvalidSetting, match=r"Invalid compaction\.reserveTokens setting"):
        found.write("user", ("compaction", "reserveTokens"), -1)

    assert found.effective == {"a": 1}


# -- writing -----------------------------------------------------------------------------


@pytest.mark.rule("SET-6")
def test_only_changed_keys_are_merged_into_what_the_file_holds_by_then(tmp_path: Path) -> None:
    path, _ = place(tmp_path, {"unknown": {"x": "ü"}, "retry": {"maxRetries": 1}, "theme": "dark"})
    path.chmod(0o640)
    found = opened(tmp_path)
    found.write("user", ("retry", "enabled"), False)
    found.write("user", "theme", None)
    path.write_text('{"unknown": {"x": "ü"}, "retry": {"maxRetries": 7}, "theme": "light", "new": 1}', "utf-8")

    trio.run(found.flush)

    expected = {"unknown": {"x": "ü"}, "retry": {"maxRetries": 7, "enabled": False}, "new": 1}
    assert path.read_text("utf-8") == json.dumps(expected, indent=2, ensure_ascii=False) + "\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(path.parent) == ["settings.json"]


@pytest.mark.rule("SET-6")
def test_a_link_stays_a_link(tmp_path: Path) -> None:
    path, _ = place(tmp_path)
    (tmp_path / "elsewhere.json").write_text("{}", "utf-8")
    path.symlink_to(tmp_path / "elsewhere.json")
    found = opened(tmp_path)

    found.write("user", "a", 1)
    trio.run(found.flush)

    assert path.is_symlink() and json.loads(path.read_text("utf-8")) == {"a": 1}


@pytest.mark.rule("SET-6")
def test_changes_count_at_once_and_are_written_in_order(tmp_path: Path) -> None:
    path, project = place(tmp_path)
    found = opened(tmp_path)

    found.write("user", "steeringMode", "all")
    found.write("user", "steeringMode", "one-at-a-time")
    found.write("project", "defaultModel", "m")
    counted = (found.settings.steering_mode, found.settings.default_model, path.exists())
    trio.run(found.flush)

    assert counted == ("one-at-a-time", "m", False)
    assert json.loads(path.read_text("utf-8")) == {"steeringMode": "one-at-a-time"}
    assert json.loads(project.read_text("utf-8")) == {"defaultModel": "m"}


@pytest.mark.rule("SET-6")
async def test_with_a_nursery_nobody_has_to_flush(tmp_path: Path) -> None:
    path, _ = place(tmp_path)
    found = opened(tmp_path)

    async with trio.open_nursery() as nursery:
        found.write("user", "a", 1)
        found.serve_in(nursery)
        found.write("user", "b", 2)

    assert json.loads(path.read_text("utf-8")) == {"a": 1, "b": 2}


@pytest.mark.rule("SET-6", "TRUST-4")
def test_settings_of_a_project_that_is_not_trusted_are_not_written(tmp_path: Path) -> None:
    _, path = place(tmp_path)

    with pytest.raises(ProjectNotTrusted, match="Project is not trusted; refusing to write project settings"):
        opened(tmp_path, trusted=False).write("project", "a", 1)

    assert not path.exists()


@pytest.mark.rule("SET-6")
def test_a_lock_that_is_held_all_the_time_is_an_error_after_ten_tries(tmp_path: Path) -> None:
    path, _ = place(tmp_path, {"a": 0})
    RealLogFiles().lock(f"{path}.lock", "another")
    found = opened(tmp_path)
    found.write("user", "a", 1)

    async def timed() -> float:
        await found.flush()
        return trio.current_time()

    waited = simulate(_difference, timed)

    assert waited == pytest.approx(0.2)
    assert (json.loads(path.read_text("utf-8")), found.effective) == ({"a": 0}, {"a": 1})
    assert len(found.take_errors()) == 1


async def _difference(timed: Any) -> float:
    start = trio.current_time()
    return float(await timed() - start)


@pytest.mark.rule("SET-6")
async def test_a_lock_that_is_given_back_meanwhile_is_taken(tmp_path: Path) -> None:
    path, _ = place(tmp_path, {"a": 0})
    locks = RealLogFiles()
    handle = locks.lock(f"{path}.lock", "another")
    found = opened(tmp_path)
    found.write("user", "a", 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(found.flush)
        await trio.testing.wait_all_tasks_blocked()
        locks.unlock(f"{path}.lock", handle)

    assert (json.loads(path.read_text("utf-8")), found.take_errors()) == ({"a": 1}, ())


WRITER = """
import sys, trio
from camshaft.actors.settings_files import settings_files
async def main():
    found = settings_files(sys.argv[1], "/nix")
    for number in range(20):
        found.write("user", ("theirs" + sys.argv[2], str(number)), number)
        if number % 5 == 4:
            await found.flush()
            await trio.sleep(0.01)
    assert found.take_errors() == (), found
trio.run(main)
"""


@pytest.mark.slow
@pytest.mark.rule("SET-6")
def test_two_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path, _ = place(tmp_path, {"kept": 1})
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path.parent), name]) for name in ("a", "b")]

    codes = [writer.wait(30) for writer in writers]

    numbers = {str(number): number for number in range(20)}
    assert codes == [0, 0]
    assert json.loads(path.read_text("utf-8")) == {"kept": 1, "theirsa": numbers, "theirsb": numbers}


# -- without files -----------------------------------------------------------------------


@pytest.mark.rule("SET-10")
async def test_settings_can_live_in_memory() -> None:
    found = settings_in_memory({"defaultModel": "u"}, {"steeringMode": "all"})
    found.write("user", "defaultModel", "v")
    await found.flush()
    found.reload()

    assert found.effective == {"defaultModel": "v", "steeringMode": "all"}


@pytest.mark.rule("SET-10")
async def test_a_storage_of_a_host_is_asked_under_its_own_lock() -> None:
    class Database:
        held: dict[Scope, bytes]
        asked: list[Scope]

        def __init__(self) -> None:
            self.held, self.asked = {"user": b'{"a": 1}'}, []

        def name(self, scope: Scope) -> str:
            return f"row {scope}"

        def read(self, scope: Scope) -> bytes | None:
            return self.held.get(scope)

        async def change(self, scope: Scope, rewrite: Any) -> None:
            self.asked.append(scope)
            await trio.lowlevel.checkpoint()
            self.held[scope] = rewrite(self.held.get(scope))

    database = Database()
    found = SettingsFiles(database, True)
    found.write("user", "b", 2)
    found.write("user", "c", 3)
    await found.flush()

    assert database.asked == ["user"]
    assert json.loads(database.held["user"]) == {"a": 1, "b": 2, "c": 3}
