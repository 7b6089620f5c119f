"""Context files and files of the system prompt."""

import os
from pathlib import Path

import pytest

from camshaft.actors.resources.context_files import CONTEXT_NAMES, FoundContext, context_files
from camshaft.actors.resources.system_files import GivenTexts, SystemTexts, system_texts
from camshaft.kernel.prompt import ContextFile


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def below(found: FoundContext, folder: Path) -> list[str]:
    return [file.content for file in found.files if file.path.startswith(str(folder))]


@pytest.mark.rule("RES-14")
@pytest.mark.parametrize("first", range(len(CONTEXT_NAMES)))
def test_the_first_name_that_a_folder_has_counts(tmp_path: Path, first: int) -> None:
    for name in CONTEXT_NAMES[first:]:
        write(tmp_path / name, name)

    expected = ContextFile(path=str(tmp_path / CONTEXT_NAMES[first]), content=CONTEXT_NAMES[first])
    assert context_files(str(tmp_path), "/").files[0] == expected


@pytest.mark.rule("RES-14")
def test_the_users_folder_comes_first_and_then_the_root_and_down(tmp_path: Path) -> None:
    write(tmp_path / "agent" / "AGENTS.md", "agent")
    write(tmp_path / "a" / "AGENTS.md", "\ufeffouter")
    write(tmp_path / "a" / "b" / "CLAUDE.md", "inner")

    found = context_files(str(tmp_path / "agent"), str(tmp_path / "a" / "b"))
    inside = context_files(str(tmp_path / "a"), str(tmp_path / "a" / "b"))

    assert (below(found, tmp_path), below(inside, tmp_path)) == (["agent", "outer", "inner"], ["outer", "inner"])


@pytest.mark.rule("RES-14", "SDK-7")
def test_what_cannot_be_read_is_told_and_the_next_name_counts(tmp_path: Path) -> None:
    write(tmp_path / "AGENTS.override.md", "x" * (1024 * 1024 + 1))
    (tmp_path / "AGENTS.md").mkdir()
    os.mkfifo(tmp_path / "AGENTS.MD")
    write(tmp_path / "CLAUDE.md", "fine")

    found = context_files(str(tmp_path), "/")

    assert below(found, tmp_path) == ["fine"]
    assert [each.path for each in found.diagnostics] == [str(tmp_path / "AGENTS.override.md")]


@pytest.mark.rule("RES-15")
def test_a_linked_worktree_inside_its_repository_hides_the_file_of_the_same_name(tmp_path: Path) -> None:
    main, tree, beside = tmp_path / "main", tmp_path / "main" / "trees" / "one", tmp_path / "main2"
    (main / ".git").mkdir(parents=True)
    for folder in (tree, beside):
        write(folder / ".git", f"gitdir: {main}/.git/worktrees/one\n")
        write(folder / "AGENTS.md", "tree")
    write(main / "AGENTS.md", "main")
    write(main / "trees" / "AGENTS.md", "between")

    assert below(context_files("/nix", str(tree)), tmp_path) == ["between", "tree"]
    assert below(context_files("/nix", str(beside)), tmp_path) == ["tree"]


@pytest.mark.rule("RES-15")
def test_another_name_or_a_submodule_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write(tmp_path / "AGENTS.md", "main")
    write(tmp_path / "tree" / ".git", f"gitdir: {tmp_path}/.git/worktrees/one\n")
    write(tmp_path / "tree" / "CLAUDE.md", "tree")
    write(tmp_path / "sub" / ".git", "gitdir: ../.git/modules/sub\n")
    write(tmp_path / "sub" / "AGENTS.md", "sub")

    assert below(context_files("/nix", str(tmp_path / "tree")), tmp_path) == ["main", "tree"]
    assert below(context_files("/nix", str(tmp_path / "sub")), tmp_path) == ["main", "sub"]


@pytest.mark.rule("RES-16", "TRUST-4")
@pytest.mark.parametrize(("is_trusted", "expected"), [(True, ("project", ("project too",))), (False, ("user", ("user too",)))])
def test_the_trusted_projects_files_count_instead(tmp_path: Path, is_trusted: bool, expected: tuple[str, tuple[str]]) -> None:
    for folder, text in ((tmp_path / "agent", "user"), (tmp_path / "cwd" / ".camshaft", "project")):
        write(folder / "SYSTEM.md", text)
        write(folder / "APPEND_SYSTEM.md", f"{text} too")

    found = system_texts(str(tmp_path / "agent"), str(tmp_path / "cwd"), is_trusted=is_trusted)

    assert found == SystemTexts(system_prompt=expected[0], appended=expected[1])


@pytest.mark.rule("RES-16")
def test_what_is_given_is_a_text_or_a_file_and_replaces_the_search(tmp_path: Path) -> None:
    write(tmp_path / "SYSTEM.md", "found")
    write(tmp_path / "APPEND_SYSTEM.md", "added")
    file = str(write(tmp_path / "given.md", "of a file"))

    def given(system: str | None, *appended: str) -> SystemTexts:
        return system_texts(str(tmp_path), "/nix", is_trusted=True, given=GivenTexts(system_prompt=system, appended=appended))

    assert given(None) == SystemTexts(system_prompt="found", appended=("added",))
    assert given(file, "one", file) == SystemTexts(system_prompt="of a file", appended=("one", "of a file"))
    assert [given(each).system_prompt for each in ("", "a text", "a\0b", "x" * 5000)] == ["", "a text", "a\0b", "x" * 5000]
    assert system_texts("/nix", "/nix", is_trusted=True) == SystemTexts()


@pytest.mark.rule("RES-16", "SDK-7")
def test_a_file_of_the_project_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    write(tmp_path / ".camshaft" / "SYSTEM.md", "x" * (1024 * 1024 + 1))
    write(tmp_path / "agent" / "SYSTEM.md", "user")

    found = system_texts(str(tmp_path / "agent"), str(tmp_path), is_trusted=True)

    assert (found.system_prompt, [each.path for each in found.diagnostics]) == ("user", [str(tmp_path / ".camshaft" / "SYSTEM.md")])
