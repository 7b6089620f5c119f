"""What is chosen before a conversation opens: session, model, settings, context files."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from camshaft.actors.api import Model, freeze
from camshaft.actors.host import CommandRefused, InvalidSetting, MemorySession, NewSession, OpenSession, SessionPlaces, real_world
from camshaft.extensions_std.frontends import model_choice, sessions
from camshaft.extensions_std.frontends.arguments import parse
from camshaft.extensions_std.frontends.file_arguments import Prompt, prompts_of
from camshaft.extensions_std.frontends.request_limits import limits_of
from camshaft.extensions_std.providers.scripted import ScriptedProvider
from camshaft.extensions_std.providers.transport import TransportLimits

CWD = "/place"


# -- sessions ----------------------------------------------------------------------------


async def chosen(folder: Path, *words: str, is_default: bool = False) -> sessions.Chosen:
    where = SessionPlaces(cwd=CWD, folder=str(folder), is_default=is_default, root=None)
    return await sessions.choose(parse(list(words)), where, real_world())


async def test_the_newest_session_of_the_folder_goes_on_in_this_directory(tmp_path: Path) -> None:
    _session(tmp_path / "a.jsonl", id="a", at_s=1)
    _session(tmp_path / "b.jsonl", id="b", at_s=2)
    _session(tmp_path / "c.jsonl", id="c", cwd="/other", at_s=3)

    found = await chosen(tmp_path, "-c")

    assert (found.target, found.cwd, found.override_cwd) == (OpenSession(path=str(tmp_path / "b.jsonl")), CWD, True)
    assert (await chosen(tmp_path / "none", "-c")).target == NewSession(directory=str(tmp_path / "none"))


async def test_a_path_is_taken_as_it_is_and_runs_where_its_session_ran(tmp_path: Path) -> None:
    _session(tmp_path / "a.jsonl", id="a", cwd="/there")

    known = await chosen(tmp_path, "--session", str(tmp_path / "a.jsonl"))
    new = await chosen(tmp_path, "--session", "new.jsonl")

    assert (known.target, known.cwd) == (OpenSession(path=str(tmp_path / "a.jsonl")), "/there")
    assert (new.target, new.cwd) == (OpenSession(path="/place/new.jsonl"), CWD)


async def test_an_id_or_its_beginning_names_a_session_of_this_directory(tmp_path: Path) -> None:
    _session(tmp_path / "a.jsonl", id="abc")
    _session(tmp_path / "b.jsonl", id="bcd", cwd=None)

    assert (await chosen(tmp_path, "--session", "ab")).target == OpenSession(path=str(tmp_path / "a.jsonl"))
    assert (await chosen(tmp_path, "--session", "bcd")).target == OpenSession(path=str(tmp_path / "b.jsonl"))
    for nothing in ("x", ""):
        with pytest.raises(sessions.SessionNotFound, match=f"^No session found matching '{nothing}'$"):
            await chosen(tmp_path, "--session", nothing)


@pytest.mark.rule("CLI-8")
async def test_a_session_of_another_directory_is_named_with_what_to_do(tmp_path: Path) -> None:
    _session(tmp_path / "a.jsonl", id="abc", cwd="/there")

    with pytest.raises(sessions.SessionNotFound) as refused:
        await chosen(tmp_path, "--session", "ab")

    first, path, copy = str(refused.value).splitlines()
    assert first == "Session found in different project: /there"
    assert path.endswith(f"--session {tmp_path}/a.jsonl")
    assert copy.endswith("--fork abc")


async def test_an_exact_id_that_is_not_there_is_created_with_a_warning(tmp_path: Path) -> None:
    _session(tmp_path / "a.jsonl", id="mine")

    known = await chosen(tmp_path, "--session-id", "mine")
    new = await chosen(tmp_path, "--session-id", "min")

    assert known.target == OpenSession(path=str(tmp_path / "a.jsonl"))
    assert new.target == NewSession(directory=str(tmp_path), id="min")
    assert new.warnings == ("No session with id 'min' here; creating it",)


async def test_no_session_is_kept_in_memory(tmp_path: Path) -> None:
    assert (await chosen(tmp_path, "--no-session")).target == MemorySession()


@pytest.mark.rule("CLI-7")
@pytest.mark.parametrize("given", ["ab", "{folder}/a.jsonl"])
async def test_a_copy_of_a_session_of_any_directory_runs_here(tmp_path: Path, given: str) -> None:
    _session(tmp_path / "a.jsonl", id="abc", cwd="/there")

    found = await chosen(tmp_path, "--fork", given.format(folder=tmp_path), "--session-id", "mine")
    assert os.listdir(tmp_path) == ["a.jsonl"]
    made = await sessions.made(found, real_world())

    assert isinstance(made, OpenSession)
    header = json.loads(Path(made.path).read_text(encoding="utf-8").splitlines()[0])  # noqa: ASYNC240  a test may block
    assert (header["id"], header["cwd"], header["parentSession"]) == ("mine", CWD, str(tmp_path / "a.jsonl"))
    assert found.cwd == CWD


@pytest.mark.rule("CLI-7")
async def test_a_copy_needs_a_source_and_an_id_that_is_free(tmp_path: Path) -> None:
    _session(tmp_path / "a.jsonl", id="abc")

    with pytest.raises(sessions.SessionNotFound, match="^No session found matching 'x'$"):
        await chosen(tmp_path, "--fork", "x")
    with pytest.raises(sessions.SessionNotFound, match="^Session already exists with id 'abc'$"):
        await chosen(tmp_path, "--fork", "abc", "--session-id", "abc")
    nowhere = await chosen(tmp_path, "--fork", "./nowhere.jsonl")
    with pytest.raises(CommandRefused, match="^Cannot fork: source session file is empty or invalid: /place/nowhere.jsonl$"):
        await sessions.made(nowhere, real_world())


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
    choice = _choose(text, provider)

    assert (choice.reference, choice.level) == expected


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
        _choose(text, provider)


def test_a_known_provider_may_have_models_nobody_told_us_of() -> None:
    told: list[str] = []
    choice = _choose("new", "one", told=told)

    assert choice.reference == "one/new"
    assert [model.id for model in choice.providers[0].models][-1] == "new"
    assert told == ['Model "new" not found for provider "one". Using custom model id.']


def test_with_a_level_of_its_own_a_suffix_belongs_to_the_id() -> None:
    choice = _choose("new:high", "one", "--thinking", "low")

    assert choice.reference == "one/new:high"
    assert choice.providers[0].models[-1].reasoning


@pytest.mark.rule("MOD-72")
@pytest.mark.parametrize(
    ("words", "is_final", "provider"),
    [
        (("--model", "one/coder:7b"), True, "one"),
        (("--models", "nothing,two/*"), True, "two"),
        (("--model", "own/m"), False, "own"),
    ],
)
def test_a_given_key_is_that_of_the_provider_of_the_model(words: tuple[str, ...], is_final: bool, provider: str) -> None:
    keys: dict[str, str] = {}

    model_choice.choose_model(parse([*words, "--api-key", "k"]), _catalogue(), keys, is_final=is_final, warn=print)

    assert keys == {provider: "k"}


@pytest.mark.parametrize("words", [("--models", "nothing"), ("--model", "m")])
def test_a_given_key_without_a_provider_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(model_choice.ModelNotFound, match="--api-key requires a model to be specified"):
        model_choice.choose_model(parse([*words, "--api-key", "k"]), _catalogue(), {}, is_final=False, warn=print)


def _choose(text: str, provider: str | None, *words: str, told: list[str] | None = None) -> model_choice.Chosen:
    more = () if provider is None else ("--provider", provider)
    arguments = parse(["--model", text, *more, *words])
    return model_choice.choose_model(arguments, _catalogue(), {}, warn=(told if told is not None else []).append)


@pytest.mark.parametrize(
    ("text", "provider", "with_level", "meant"),
    [
        ("own/m", None, True, ("own/m", None)),
        ("m:high", "own", True, ("own/m", "high")),
        ("own/m:high", "own", False, ("own/m:high", None)),
        ("m:free", None, True, ("m:free", None)),
        (":high", None, True, (":high", None)),
    ],
)
def test_a_model_that_is_not_known_yet_is_taken_as_it_is_written(
    text: str, provider: str | None, with_level: bool, meant: tuple[str, str | None]
) -> None:
    assert model_choice.as_written(text, provider, with_level=with_level) == meant


# -- settings ----------------------------------------------------------------------------


def limits(**settings: Any) -> TransportLimits:
    return limits_of(freeze(settings))


def test_limits_of_requests_are_read_in_seconds() -> None:
    found = limits(retry={"provider": {"maxRetries": 2, "timeoutMs": "1500", "maxRetryDelayMs": 250}})

    assert (found.max_retries, found.idle_timeout_s, found.max_retry_delay_s) == (2, 1.5, 0.25)


@pytest.mark.parametrize(("value", "seconds"), [(0, None), ("disabled", None), (2500, 2.5), ("40", 0.04)])
def test_an_idle_timeout_is_milliseconds_or_disabled(value: Any, seconds: float | None) -> None:
    assert limits(httpIdleTimeoutMs=value).idle_timeout_s == seconds


@pytest.mark.parametrize("value", [-1, "soon", True, [], "inf", "nan"])
def test_a_wrong_timeout_is_an_error(value: Any) -> None:
    with pytest.raises(InvalidSetting, match="Invalid httpIdleTimeoutMs setting"):
        limits(httpIdleTimeoutMs=value)


# -- files that are given ----------------------------------------------------------------


def test_an_image_is_attached_and_named(tmp_path: Path) -> None:
    content = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0"
    (tmp_path / "dot.png").write_bytes(content)

    (prompt,) = prompts_of("", ("dot.png",), (), str(tmp_path))

    assert prompt.text == f'<file name="{tmp_path}/dot.png"></file>\n'
    assert [image.mime_type for image in prompt.images] == ["image/png"]


def test_messages_after_the_first_are_prompts_of_their_own() -> None:
    assert prompts_of(" \n", (), (), "/") == ()
    assert prompts_of("piped\n", (), ("a", "b", "c"), "/") == (Prompt(text="pipeda"), Prompt(text="b"), Prompt(text="c"))


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
