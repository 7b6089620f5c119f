"""What the command line takes from a project, and when (CLI-12, TRUST-2 to TRUST-6)."""

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from camshaft.actors.host import InvalidTrustStore, OpenOptions
from camshaft.actors.world import real_world
from camshaft.extensions_std.frontends.arguments import parse
from camshaft.extensions_std.frontends.startup import options_of, start_of


@attrs.frozen
class Computer:
    """A home, a project in it that brings everything, and the command line run there."""

    home: Path

    @property
    def project(self) -> Path:
        return self.home / "project"

    def write(self, path: str, content: Any) -> Path:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        return file

    def options(self, *words: str) -> OpenOptions:
        return options_of(start_of(parse([*words, "hello"]), real_world({"HOME": str(self.home)}), str(self.project)))


@pytest.fixture
def computer(tmp_path: Path) -> Computer:
    made = Computer(tmp_path)
    made.write("project/.camshaft/settings.json", {"defaultModel": "theirs", "defaultTools": ["+grep"], "shellPath": "/evil"})
    made.write("project/.camshaft/SYSTEM.md", "theirs")
    made.write("project/.camshaft/APPEND_SYSTEM.md", "theirs too")
    made.write("project/.camshaft/skills/theirs/SKILL.md", "---\ndescription: d\n---\n")
    made.write("project/.camshaft/prompts/theirs.md", "x")
    made.write("project/AGENTS.md", "context")
    made.write(".camshaft/settings.json", {"defaultModel": "mine", "defaultTools": ["read"]})
    made.write(".camshaft/SYSTEM.md", "mine")
    made.write(".camshaft/skills/mine/SKILL.md", "---\ndescription: d\n---\n")
    made.write(".camshaft/prompts/mine.md", "x")
    return made


def taken(options: OpenOptions) -> dict[str, Any]:
    return {
        "model": options.settings.default_model,
        "tools": options.settings.default_tools,
        "shell": options.settings.shell_path,
        "system": (options.system_prompt, options.append_system_prompt),
        "names": [*[each.name for each in options.skills], *[each.name for each in options.templates]],
        "trusted": options.project_trusted,
    }


USERS = {"model": "mine", "tools": ("read",), "shell": None, "system": ("mine", ()), "names": ["mine", "mine"], "trusted": False}
PROJECTS = {
    "model": "theirs",
    "tools": ("read", "+grep"),
    "shell": "/evil",
    "system": ("theirs", ("theirs too",)),
    "names": ["theirs", "mine", "theirs", "mine"],
    "trusted": True,
}


@pytest.mark.rule("TRUST-2", "TRUST-3", "TRUST-4")
@pytest.mark.parametrize(
    ("words", "default", "saved", "expected"),
    [
        ((), None, None, USERS),
        (("-a",), None, False, PROJECTS),
        (("--no-approve",), "always", True, USERS),
        (("-na", "-a"), None, None, PROJECTS),
        ((), "always", None, PROJECTS),
        ((), "never", True, PROJECTS),
        ((), "always", False, USERS),
    ],
)
def test_a_project_counts_when_it_is_trusted(
    computer: Computer, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], default: str | None, saved: bool | None, expected: Any
) -> None:
    computer.write(".camshaft/settings.json", {"defaultModel": "mine", "defaultTools": ["read"], "defaultProjectTrust": default})
    computer.write(".camshaft/trust.json", {str(computer.project): saved})

    assert taken(computer.options(*words)) == expected
    assert capsys.readouterr().err == ""


@pytest.mark.rule("TRUST-4")
def test_context_files_and_the_session_folder_count_without_trust(computer: Computer) -> None:
    computer.write("project/.camshaft/settings.json", {"sessionDir": "own"})

    options = computer.options()

    assert [file.content for file in options.context_files] == ["context"]
    assert getattr(options.session, "directory", None) == str(computer.project / "own")


@pytest.mark.rule("TRUST-6")
def test_a_damaged_trust_store_ends_the_start(computer: Computer) -> None:
    path = computer.write(".camshaft/trust.json", "{")

    with pytest.raises(InvalidTrustStore, match=f"^Invalid trust store {path}: "):
        computer.options()

    assert path.read_text("utf-8") == "{"


@pytest.mark.rule("SET-5", "SDK-7")
def test_what_is_wrong_with_files_is_told_and_costs_nothing_else(computer: Computer, capsys: pytest.CaptureFixture[str]) -> None:
    path = computer.write(".camshaft/settings.json", "{")
    bad = computer.write(".camshaft/skills/bad/SKILL.md", "no description")

    options = computer.options()

    said = capsys.readouterr().err.splitlines()
    assert [said[0].startswith(f"Warning: Invalid settings file {path}: "), said[1:]] == [True, [f"Warning: {bad}: description is missing"]]
    assert [each.name for each in options.skills] == ["mine"]


@pytest.mark.rule("RES-1", "CLI-6")
def test_paths_that_are_given_count_without_discovery(computer: Computer) -> None:
    computer.write("project/one.md", "one")
    computer.write("project/s/given/SKILL.md", "---\ndescription: d\n---\n")

    options = computer.options("-ns", "-np", "-nc", "--skill", "s", "--prompt-template", "one.md", "--skill=~/.camshaft/skills/mine")

    assert ([each.name for each in options.skills], [each.name for each in options.templates]) == (["given", "mine"], ["one"])
    assert options.context_files == ()
