"""What is chosen before a conversation opens: session, model, settings, context files."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from camshaft.actors.api import Model
from camshaft.actors.host import InvalidSetting, MemorySession, NewSession, OpenSession, session_folder
from camshaft.extensions_std.frontends import model_choice, resources, sessions
from camshaft.extensions_std.frontends.arguments import Arguments, parse
from camshaft.extensions_std.frontends.file_arguments import Prompt, prompts_of
from camshaft.extensions_std.frontends.settings_files import read_files
from camshaft.extensions_std.providers.scripted import ScriptedProvider

CWD = "/place"


# -- sessions ----------------------------------------------------------------------------


def test_the_folder_is_that_of_the_option_then_the_variable_then_the_setting(tmp_path: Path) -> None:
    variable = {"CAMSHAFT_SESSION_DIR": "/variable"}

    folders = [
        sessions.places(Arguments(session_dir="given"), variable, "setting", "/agent", CWD).folder,
        sessions.places(Arguments(), variable, "setting", "/agent", CWD).folder,
        sessions.places(Arguments(), {}, "setting", "/agent", CWD).folder,
        sessions.places(Arguments(), {}, None, "/agent", CWD).folder,
    ]

    assert folders == ["/place/given", "/variable", "/place/setting", session_folder("/agent", CWD)]


def test_the_newest_session_of_the_folder_goes_on_and_others_are_passed_over(tmp_path: Path) -> None:
    for age_s, (name, cwd) in enumerate([("a.jsonl", CWD), ("b.jsonl", CWD), ("c.jsonl", "/other"), ("d.jsonl", None), ("e.txt", CWD)]):
        _session(tmp_path / name, id=name[0], cwd=cwd, at_s=100 + age_s)
    (tmp_path / "f.jsonl").write_text("no header\n", encoding="utf-8")

    chosen = sessions.choose(parse(["-c"]), _places(tmp_path))

    assert (chosen.target, chosen.override_cwd) == (OpenSession(path=str(tmp_path / "b.jsonl")), True)


def test_a_session_without_directory_counts_in_the_default_folder_only(tmp_path: Path) -> None:
    _session(tmp_path / "a.jsonl", id="a", cwd=None)

    here = sessions.choose(parse(["-c"]), _places(tmp_path, is_default=True))
    elsewhere = sessions.choose(parse(["-c"]), _places(tmp_path))

    assert here.target == OpenSession(path=str(tmp_path / "a.jsonl"))
    assert elsewhere.target == NewSession(directory=str(tmp_path))


@pytest.mark.parametrize(("given", "file"), [("abc", "two.jsonl"), ("ab", "three.jsonl"), ("abcd", "one.jsonl")])
def test_an_exact_id_goes_before_the_newest_that_begins_so(tmp_path: Path, given: str, file: str) -> None:
    _session(tmp_path / "one.jsonl", id="abcd", at_s=2)
    _session(tmp_path / "two.jsonl", id="abc", at_s=1)
    _session(tmp_path / "three.jsonl", id="abx", at_s=3)

    chosen = sessions.choose(parse(["--session", given]), _places(tmp_path))

    assert chosen.target == OpenSession(path=str(tmp_path / file))


def test_a_path_is_taken_as_it_is_and_runs_where_its_session_ran(tmp_path: Path) -> None:
    _session(tmp_path / "a.jsonl", id="a", cwd="/there")

    known = sessions.choose(parse(["--session", str(tmp_path / "a.jsonl")]), _places(tmp_path))
    new = sessions.choose(parse(["--session", "new.jsonl"]), _places(tmp_path))

    assert (known.target, known.cwd) == (OpenSession(path=str(tmp_path / "a.jsonl")), "/there")
    assert (new.target, new.cwd) == (OpenSession(path="/place/new.jsonl"), CWD)


def test_an_exact_id_that_is_not_there_is_created_with_a_warning(tmp_path: Path) -> None:
    _session(tmp_path / "a.jsonl", id="mine")

    known = sessions.choose(parse(["--session-id", "mine"]), _places(tmp_path))
    new = sessions.choose(parse(["--session-id", "min"]), _places(tmp_path))

    assert known.target == OpenSession(path=str(tmp_path / "a.jsonl"))
    assert new.target == NewSession(directory=str(tmp_path), id="min")
    assert new.warnings == ("No session with id 'min' here; creating it",)


def test_no_session_is_kept_in_memory(tmp_path: Path) -> None:
    assert sessions.choose(parse(["--no-session"]), _places(tmp_path)).target == MemorySession()


# -- models ------------------------------------------------------------------------------


def _catalogue() -> tuple[ScriptedProvider, ...]:
    ids = {"one": ("coder:7b", "large-20250101", "large-20260101", "large-latest", "shared"), "two": ("shared", "one/odd"), "empty": ()}
    models = {name: tuple([Model(id=id, provider=name, api="faux", name=f"The {id}") for id in each]) for name, each in ids.items()}
    return tuple([ScriptedProvider(name=name, models=each) for name, each in models.items() if each])


@pytest.mark.parametrize(
    ("text", "provider", "expected"),
    [
        ("one/coder:7b", None, ("one/coder:7b", None)),
        ("CODER:7B", None, ("one/coder:7b", None)),
        ("coder:7b:low", None, ("one/coder:7b", "low")),
        ("coder", None, ("one/coder:7b", None)),
        ("one/cod:high", None, ("one/coder:7b", "high")),
        ("large", None, ("one/large-latest", None)),
        ("large-2", None, ("one/large-20260101", None)),
        ("shared", "Two", ("two/shared", None)),
        ("two/shared", None, ("two/shared", None)),
        ("one/odd", None, ("two/one/odd", None)),
        ("odd", None, ("two/one/odd", None)),
    ],
)
def test_a_model_is_found(text: str, provider: str | None, expected: tuple[str, str | None]) -> None:
    choice = model_choice.choose(_catalogue(), text, provider)

    assert (choice.model.reference, choice.level) == expected


@pytest.mark.parametrize(
    ("text", "provider", "said"),
    [
        ("nix", None, 'Model "nix" not found'),
        ("nix", "three", 'Unknown provider "three"'),
        ("shared", None, 'Model "shared" is ambiguous across providers: one/shared, two/shared'),
    ],
)
def test_what_is_not_found_is_told_with_what_there_is(text: str, provider: str | None, said: str) -> None:
    with pytest.raises(model_choice.ModelNotFound, match=said):
        model_choice.choose(_catalogue(), text, provider)


def test_a_known_provider_may_have_models_nobody_told_us_of() -> None:
    choice = model_choice.choose(_catalogue(), "new", "one")

    assert (choice.model.reference, choice.is_custom) == ("one/new", True)
    assert choice.warning == 'Model "new" not found for provider "one". Using custom model id.'


def test_with_a_level_of_its_own_a_suffix_belongs_to_the_id() -> None:
    assert model_choice.choose(_catalogue(), "new:high", "one", with_level=False).model.id == "new:high"


# -- settings ----------------------------------------------------------------------------


def test_of_a_project_only_the_session_folder_is_read(tmp_path: Path) -> None:
    agent, project = tmp_path / "agent", tmp_path / "project"
    _json(
        agent / "settings.json", {"sessionDir": "user", "defaultModel": "m", "retry": {"provider": {"maxRetries": 2, "timeoutMs": "1500"}}}
    )
    _json(project / ".camshaft" / "settings.json", {"sessionDir": "own", "defaultModel": "evil", "shellPath": "/evil"})

    found = read_files(str(agent), str(project))

    assert (found.session_dir, found.settings.default_model, found.settings.shell_path) == ("own", "m", None)
    assert (found.limits.max_retries, found.limits.idle_timeout_s) == (2, 1.5)
    assert found.warnings == ()


def test_a_byte_order_mark_is_accepted_and_a_missing_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_bytes(b'\xef\xbb\xbf{"defaultModel": "m"}')

    assert read_files(str(tmp_path), "/nix").settings.default_model == "m"
    assert read_files("/nix", "/nix").warnings == ()


@pytest.mark.parametrize("text", ["{", "[]", "5", ""])
def test_a_file_that_is_no_object_counts_as_empty(tmp_path: Path, text: str) -> None:
    (tmp_path / "settings.json").write_text(text, encoding="utf-8")

    (warning,) = read_files(str(tmp_path), "/nix").warnings

    assert warning.startswith(f"Invalid settings file {tmp_path}/settings.json: ")


@pytest.mark.parametrize(("value", "seconds"), [(0, None), ("disabled", None), (2500, 2.5), ("40", 0.04)])
def test_an_idle_timeout_is_milliseconds_or_disabled(tmp_path: Path, value: Any, seconds: float | None) -> None:
    _json(tmp_path / "settings.json", {"httpIdleTimeoutMs": value})

    assert read_files(str(tmp_path), "/nix").limits.idle_timeout_s == seconds


@pytest.mark.parametrize("value", [-1, "soon", True, [], "inf", "nan"])
def test_a_wrong_timeout_is_an_error(tmp_path: Path, value: Any) -> None:
    _json(tmp_path / "settings.json", {"httpIdleTimeoutMs": value})

    with pytest.raises(InvalidSetting, match="Invalid httpIdleTimeoutMs setting"):
        read_files(str(tmp_path), "/nix")


# -- resources and prompts ---------------------------------------------------------------


def test_context_files_come_from_the_agent_dir_and_from_the_root_down(tmp_path: Path) -> None:
    agent, inner = tmp_path / "agent", tmp_path / "outer" / "inner"
    texts = {
        agent / "CLAUDE.md": "agent",
        tmp_path / "outer" / "AGENTS.md": "outer",
        inner / "AGENTS.override.md": "\ufeffinner",
        inner / "AGENTS.md": "not",
    }
    for path, text in texts.items():
        _write(path, text)

    found = resources.context_files(str(agent), str(inner), _fail)

    assert [file.content for file in found if str(tmp_path) in file.path] == ["agent", "outer", "inner"]


def test_a_linked_worktree_inside_its_repository_hides_the_file_of_the_same_name(tmp_path: Path) -> None:
    main, tree = tmp_path / "main", tmp_path / "main" / "trees" / "one"
    (main / ".git").mkdir(parents=True)
    _write(tree / ".git", f"gitdir: {main}/.git/worktrees/one\n")
    _write(main / "AGENTS.md", "main")
    _write(tree / "AGENTS.md", "tree")

    found = resources.context_files("/nix", str(tree), _fail)

    assert [file.content for file in found if str(tmp_path) in file.path] == ["tree"]


def test_system_prompts_are_texts_or_files_and_replace_those_of_the_agent_dir(tmp_path: Path) -> None:
    _write(tmp_path / "SYSTEM.md", "found")
    _write(tmp_path / "APPEND_SYSTEM.md", "added")
    given = str(_write(tmp_path / "given.md", "given"))

    assert resources.system_prompt(None, str(tmp_path), _fail) == "found"
    assert [resources.system_prompt(each, str(tmp_path), _fail) for each in (given, "a text", "a\0b")] == ["given", "a text", "a\0b"]
    assert resources.appended_prompts((), str(tmp_path), _fail) == ("added",)
    assert resources.appended_prompts((given, "too"), str(tmp_path), _fail) == ("given", "too")
    assert resources.appended_prompts((), "/nix", _fail) == ()


def test_an_image_is_attached_and_named(tmp_path: Path) -> None:
    content = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0"
    (tmp_path / "dot.png").write_bytes(content)

    (prompt,) = prompts_of("", ("dot.png",), (), str(tmp_path))

    assert prompt.text == f'<file name="{tmp_path}/dot.png"></file>\n'
    assert [image.mime_type for image in prompt.images] == ["image/png"]


def test_messages_after_the_first_are_prompts_of_their_own() -> None:
    assert prompts_of(" \n", (), (), "/") == ()
    assert prompts_of("piped\n", (), ("a", "b", "c"), "/") == (Prompt(text="pipeda"), Prompt(text="b"), Prompt(text="c"))


def _places(folder: Path, *, is_default: bool = False) -> sessions.Places:
    return sessions.Places(cwd=CWD, folder=str(folder), is_default=is_default, all_folders=(str(folder),))


def _session(path: Path, *, id: str, cwd: str | None = CWD, at_s: int = 0) -> None:
    header = {"type": "session", "version": 3, "id": id, "timestamp": "2026-01-01T00:00:00.000Z"}
    _write(path, json.dumps(header if cwd is None else {**header, "cwd": cwd}) + "\n")
    os.utime(path, (at_s, at_s))


def _json(path: Path, value: Any) -> None:
    _write(path, json.dumps(value))


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _fail(text: str) -> None:
    raise AssertionError(text)
