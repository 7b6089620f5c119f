"""Samples that use git, in real repositories. Real time: a virtual clock does not wait for programs."""

from pathlib import Path
from typing import Any

import pytest
import trio

from camshaft.extensions_std.providers.scripted import Call, assistant, text_items, tool_call
from camshaft.extensions_std.samples import auto_commit_on_exit, dirty_repo_guard, git_checkpoint, git_merge_and_resolve
from camshaft.kernel.stream import Ended, Started
from tests.actors.replacing import sessions
from tests.actors.running import Running, opened, tool
from tests.extensions_std.samples.trying import (
    Act,
    answered,
    git,
    log_of,
    people,
    prompting,
    repository,
    tried,
    world_with_programs,
)

pytestmark = pytest.mark.slow


def place(folder: Path) -> dict[str, Any]:
    """Options of a conversation in a repository, whose session is kept outside of it."""
    return {"cwd": str(folder), "world": world_with_programs(folder.parent), **sessions(folder.parent / "sessions")}


def writing(folder: Path) -> Any:
    """A tool that writes a file of the repository."""

    async def write(_id: str, params: Any, *_: Any) -> Any:
        await trio.Path(folder / params["path"]).write_text(params["text"])
        return {"content": [{"type": "text", "text": "written"}]}

    return tool(write, "write")


def writes(path: str, text: str) -> Any:
    return assistant([tool_call("write", {"path": path, "text": text}, id="w")])


def user_entries(running: Running) -> list[str]:
    messages = [(entry.id, getattr(entry, "message", None)) for entry in running.seat.state.tree.entries()]
    return [entry_id for entry_id, message in messages if getattr(message, "role", "") == "user"]


# -- dirty-repo-guard --------------------------------------------------------------------


async def leave(running: Running) -> None:
    await running.seat.prompt("first")
    await running.seat.new_session()


async def test_a_session_with_uncommitted_changes_is_kept_where_nobody_can_be_asked(tmp_path: Path) -> None:
    folder = await repository(tmp_path / "project")
    (folder / "new.txt").write_text("not committed\n")

    difference = await tried(dirty_repo_guard.setup, leave, [assistant("one")], **place(folder))

    assert [line.partition(":")[0] for line in difference.added] == ["system", "user", "assistant"]
    assert difference.missing == []


async def test_people_may_leave_uncommitted_changes_behind(tmp_path: Path) -> None:
    folder = await repository(tmp_path / "project")
    (folder / "kept.txt").write_text("changed\n")

    async def ask(running: Running) -> None:
        await running.seat.prompt("first")
        await answered(running, running.seat.new_session, True)

    difference = await tried(dirty_repo_guard.setup, ask, [assistant("one")], **place(folder), **people())

    assert (difference.added, difference.missing) == ([], [])


@pytest.mark.parametrize("is_repository", [True, False])
async def test_without_changes_or_without_a_repository_nothing_is_guarded(tmp_path: Path, is_repository: bool) -> None:
    folder = await repository(tmp_path / "project") if is_repository else tmp_path / "plain"
    folder.mkdir(exist_ok=True)

    difference = await tried(dirty_repo_guard.setup, leave, [assistant("one")], **place(folder))

    assert (difference.added, difference.missing, difference.errors) == ([], [], [])


# -- git-checkpoint ----------------------------------------------------------------------


async def test_every_turn_that_changed_files_leaves_a_checkpoint_in_the_session(tmp_path: Path) -> None:
    folder = await repository(tmp_path / "project")
    script = [writes("kept.txt", "two\n"), assistant("done"), assistant("only talk")]

    async def act(running: Running) -> None:
        await prompting("change it", "and now?")(running)
        (folder / "kept.txt").write_text("one\n")

    difference = await tried(git_checkpoint.setup, act, script, tools=[writing(folder)], **place(folder))

    assert [line.partition(":")[0] for line in difference.added] == ["custom git-checkpoints"] * 2
    assert [line.count("commit") for line in difference.added] == [2, 1]
    assert await git(folder, "stash", "list") == ""
    assert await git(folder, "status", "--porcelain") == ""


async def test_a_fork_brings_the_files_back_and_names_what_they_were(tmp_path: Path) -> None:
    folder = await repository(tmp_path / "project")
    script = [writes("kept.txt", "two\n"), assistant("a"), writes("kept.txt", "three\n"), assistant("b")]
    options = {"tools": [writing(folder)], **place(folder), **people()}

    async with opened(script, git_checkpoint.setup, **options) as running:
        await prompting("to two", "to three")(running)
        first, second = user_entries(running)
        await answered(running, lambda: running.seat.fork(second), True)
        at_second = (folder / "kept.txt").read_text()
        await answered(running, lambda: running.seat.fork(first), True)
        at_first = (folder / "kept.txt").read_text()

    notes = [event.message for event in running.heard if event.type == "notified"]
    assert (at_second, at_first) == ("two\n", "one\n")
    assert [note.startswith("The files are as they were.") for note in notes] == [True, True]
    assert await git(folder, "show", f"{notes[0].split()[-1].rstrip('.')}:kept.txt") == "three"


@pytest.mark.parametrize("answers", [None, False])
async def test_files_stay_as_they_are_unless_people_say_otherwise(tmp_path: Path, answers: bool | None) -> None:
    folder = await repository(tmp_path / "project")
    options = {"tools": [writing(folder)], **place(folder), **({} if answers is None else people())}

    async with opened([writes("kept.txt", "two\n"), assistant("a")], git_checkpoint.setup, **options) as running:
        await running.seat.prompt("to two")
        await answered(running, lambda: running.seat.fork(user_entries(running)[0]), answers)

    assert (folder / "kept.txt").read_text() == "two\n"


async def test_outside_of_a_repository_there_are_no_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()

    difference = await tried(git_checkpoint.setup, prompting("go"), [assistant("one")], **place(tmp_path / "plain"))

    assert (difference.added, difference.missing, difference.errors) == ([], [], [])


# -- auto-commit-on-exit -----------------------------------------------------------------


async def test_what_was_changed_is_committed_at_the_end(tmp_path: Path) -> None:
    folder = await repository(tmp_path / "project")
    script = [writes("new.txt", "new\n"), assistant("Added the new file,\nas you wished; it holds what you asked me to put into it.")]

    difference = await tried(auto_commit_on_exit.setup, prompting("add it"), script, tools=[writing(folder)], **place(folder))

    subject = "Added the new file, as you wished; it holds what you asked…"
    commit = await git(folder, "rev-parse", "HEAD")
    assert difference.added == [f'custom auto-commit: {{"commit":"{commit}","subject":"{subject}"}}']
    assert await git(folder, "log", "--format=%s") == f"{subject}\nfirst"
    assert await git(folder, "status", "--porcelain") == ""


async def test_a_commit_that_git_refuses_is_reported(tmp_path: Path) -> None:
    folder = await repository(tmp_path / "project")
    hook = folder / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no commits on Sundays >&2; exit 1\n")
    hook.chmod(0o755)
    (folder / "kept.txt").write_text("two\n")

    difference = await tried(auto_commit_on_exit.setup, prompting("hi"), [assistant("one")], **place(folder))

    assert difference.added == []
    assert [(event, "no commits on Sundays" in error) for _, event, error in difference.errors] == [("session_shutdown", True)]


# -- git-merge-and-resolve ---------------------------------------------------------------


async def in_conflict(folder: Path) -> Path:
    """A repository whose branches `main` and `other` changed the same line."""
    await repository(folder)
    for branch, text in (("other", "theirs\n"), ("main", "ours\n")):
        await git(folder, "checkout", "--quiet", *(("-b", branch) if branch == "other" else (branch,)))
        await trio.Path(folder / "kept.txt").write_text(text)
        await git(folder, "commit", "--quiet", "--all", f"--message={branch}")
    return folder


def resolves(folder: Path, text: str) -> list[Any]:
    """An answer while which the file is written."""

    def write() -> None:
        (folder / "kept.txt").write_text(text)

    return [Started(), Call(write), *text_items(0, "resolved"), Ended(stop_reason="stop")]


def merging(folder: Path) -> Act:
    async def act(running: Running) -> None:
        await git(folder, "checkout", "--quiet", "main")
        await running.seat.prompt("/merge other")
        await running.seat.wait_idle()

    return act


async def test_the_model_is_asked_until_nothing_is_in_conflict(tmp_path: Path) -> None:
    folder = await in_conflict(tmp_path / "project")
    script: list[Any] = [assistant("I looked at it."), resolves(folder, "both\n"), assistant("never asked for")]

    async with opened(script, git_merge_and_resolve.setup, **place(folder), **people()) as running:
        await merging(folder)(running)
        lines = log_of(running)

    asked = "user: Resolve the merge conflicts in these files, keep what both sides meant, and leave no conflict markers:\nkept.txt"
    assert lines[-4:] == [asked, "assistant: I looked at it.", asked, "assistant: resolved"]
    assert [event.message for event in running.heard if event.type == "notified"] == ["Merged and committed."]
    assert (folder / "kept.txt").read_text() == "both\n"
    assert len((await git(folder, "log", "-1", "--format=%P")).split()) == 2


async def test_without_the_extension_the_model_reads_the_command(tmp_path: Path) -> None:
    folder = await in_conflict(tmp_path / "project")

    difference = await tried(git_merge_and_resolve.setup, merging(folder), [assistant("a")] * 9, **place(folder), **people())

    assert difference.missing == ["user: /merge other"]
    assert [line for line in difference.added if line.startswith("user")][0].startswith("user: Resolve the merge conflicts")
    assert len([line for line in difference.added if line.startswith("user")]) == git_merge_and_resolve.ROUNDS_MAX
    assert difference.notified == ["Still in conflict: kept.txt"]


@pytest.mark.parametrize(
    ("branch", "said"), [("main", "Merged main without conflicts."), ("gone", "merge: gone - not something we can merge")]
)
async def test_people_are_told_of_a_merge_without_conflicts_and_of_one_that_cannot_be(tmp_path: Path, branch: str, said: str) -> None:
    folder = await repository(tmp_path / "project")

    async with opened([], git_merge_and_resolve.setup, **place(folder), **people()) as running:
        await running.seat.prompt(f"/merge {branch}")

    assert [event.message for event in running.heard if event.type == "notified"] == [said]
    assert [line for line in log_of(running) if line.startswith("user")] == []
