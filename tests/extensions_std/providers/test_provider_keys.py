"""Of the sources of a key the first that has anything decides, and no other is used in its place."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from camshaft.actors.api import FrozenDict, RequestOptions
from camshaft.actors.host import AuthStatus, OAuthConfig, OAuthPort
from camshaft.actors.world import real_world
from camshaft.extensions_std.providers.auth_store import AuthStore
from camshaft.extensions_std.providers.config_values import shell
from camshaft.extensions_std.providers.credentials import Auth, AuthUnresolved, shown_url
from camshaft.extensions_std.providers.provider_keys import KeyRing, ProcessKeys, ProviderKeys
from camshaft.kernel.models import Model

MODEL = Model(id="m", provider="anthropic", api="a", base_url="http://host/v1")
ALL = {"ANTHROPIC_AUTH_TOKEN": "bearer", "ANTHROPIC_OAUTH_TOKEN": "oauth", "ANTHROPIC_API_KEY": "key"}
LOGIN = OAuthConfig(name="Acme", login=print, refresh_token=print, get_api_key=lambda credential: f"made of {credential['access']}")


def keys(
    stored: object = None, environment: Mapping[str, str] | None = None, process: ProcessKeys | None = None, **fields: Any
) -> ProviderKeys:
    def read(_path: Path) -> bytes:
        return json.dumps({} if stored is None else {"anthropic": stored}).encode()

    store = AuthStore(path="/none/auth.json", read=read)
    store.reload()
    known = environment or {}
    ring = KeyRing(store=store, environment=known, run=shell(real_world({}).processes, known, "/"), process=process or ProcessKeys())
    return ProviderKeys(name="anthropic", ring=ring, needs_key=True, **fields)


def _login(**fields: Any) -> dict[str, Any]:
    return {"type": "oauth", "access": "token", "expires": 4_000_000_000_000, **fields}


@pytest.mark.rule("MOD-72", "MOD-73", "MOD-79", "MOD-40")
@pytest.mark.parametrize(
    ("more", "status", "sent"),
    [
        (
            {
                "process": ProcessKeys({"anthropic": "!$given"}),
                "stored": {"type": "api_key", "key": "s"},
                "api_key": "f",
                "environment": ALL,
            },
            AuthStatus(configured=True, source="runtime"),
            "!$given",
        ),
        (
            {"stored": {"type": "api_key", "key": "s"}, "api_key": "f", "environment": ALL},
            AuthStatus(configured=True, source="stored"),
            "s",
        ),
        ({"api_key": "f", "environment": ALL}, AuthStatus(configured=True, source="models_json_key"), "f"),
        ({"api_key": "!printf f", "environment": ALL}, AuthStatus(configured=True, source="models_json_command"), "f"),
        (
            {"environment": {**ALL, "ANTHROPIC_AUTH_TOKEN": " "}},
            AuthStatus(configured=True, source="environment", label="ANTHROPIC_OAUTH_TOKEN"),
            "oauth",
        ),
        (
            {"environment": {"ANTHROPIC_API_KEY": "key"}, "fallback_key": "local"},
            AuthStatus(configured=True, source="environment", label="ANTHROPIC_API_KEY"),
            "key",
        ),
        ({"fallback_key": "local"}, AuthStatus(configured=True, source="fallback"), "local"),
        (
            {"stored": _login(), "oauth": OAuthPort("anthropic", LOGIN), "environment": ALL},
            AuthStatus(configured=True, source="stored", label="Acme", is_oauth=True),
            "made of token",
        ),
        (
            {"stored": {"type": "api_key", "env": {"ANTHROPIC_API_KEY": "scoped"}}},
            AuthStatus(configured=True, source="environment", label="ANTHROPIC_API_KEY"),
            "scoped",
        ),
        ({"environment": {"OPENAI_API_KEY": "x"}}, AuthStatus(configured=False), None),
    ],
)
async def test_the_first_source_decides(more: dict[str, Any], status: AuthStatus, sent: str | None) -> None:
    made = keys(**more)

    assert made.status() == status
    assert (await made.resolve(MODEL)).api_key == sent


@pytest.mark.rule("MOD-79")
async def test_a_bearer_token_of_the_environment_is_no_key() -> None:
    auth = await keys(environment=ALL).resolve(MODEL)

    assert (auth.api_key, auth.headers) == (None, {"authorization": "Bearer bearer"})


@pytest.mark.rule("MOD-73", "MOD-74")
@pytest.mark.parametrize(
    ("stored", "why"),
    [
        ({"type": "api_key", "key": "$NONE"}, 'API key for provider "anthropic" from environment variable: NONE'),
        ({"type": "api_key", "key": "!false"}, 'API key for provider "anthropic" from shell command: false'),
        ({"type": "api_key"}, "^Provider is not configured: anthropic$"),
        ({"type": "passkey"}, "^Provider is not configured: anthropic$"),
        (_login(), "^Provider is not configured: anthropic$"),
    ],
)
async def test_a_stored_credential_that_is_no_use_is_an_error_and_no_other_key_is_taken(stored: dict[str, Any], why: str) -> None:
    made = keys(stored, ALL, api_key="f")

    assert made.is_configured() is (stored.get("key") == "!false")
    with pytest.raises(AuthUnresolved, match=why):
        await made.resolve(MODEL)


@pytest.mark.rule("MOD-62")
async def test_commands_of_stored_keys_run_once_in_a_process_and_those_of_files_at_each_request(tmp_path: Path) -> None:
    process, log = ProcessKeys(), tmp_path / "log"
    command = f"!echo run >> {log}; printf key"

    for _ in range(2):
        await keys({"type": "api_key", "key": command}, process=process).resolve(MODEL)
    assert log.read_text(encoding="utf-8") == "run\n"
    for _ in range(2):
        await keys(api_key=command, process=process).resolve(MODEL)
    assert log.read_text(encoding="utf-8") == "run\n" * 3


@pytest.mark.rule("MOD-62")
async def test_a_command_that_failed_is_not_tried_again(tmp_path: Path) -> None:
    process, log = ProcessKeys(), tmp_path / "log"

    for _ in range(2):
        with pytest.raises(AuthUnresolved):
            await keys({"type": "api_key", "key": f"!echo run >> {log}; false"}, process=process).resolve(MODEL)

    assert log.read_text(encoding="utf-8") == "run\n"


@pytest.mark.rule("PRV-10")
async def test_a_bearer_header_is_added_beside_the_key_unless_one_is_configured() -> None:
    plain = await keys(api_key="k", adds_bearer=True).resolve(MODEL)
    own = await keys(api_key="k", adds_bearer=True, headers={"Authorization": "mine"}).resolve(MODEL)

    assert (plain.api_key, plain.headers) == ("k", {"authorization": "Bearer k"})
    assert own.headers == {"authorization": "mine"}
    with pytest.raises(AuthUnresolved, match="authHeader requires a resolved API key"):
        await keys(adds_bearer=True).resolve(MODEL)


@pytest.mark.rule("MOD-63")
async def test_variables_beside_a_stored_key_count_for_headers_too() -> None:
    stored = {"type": "api_key", "key": "$K", "env": {"K": "scoped", "TEAM": "red", "WRONG": 1}}

    auth = await keys(stored, {"K": "outer"}, headers={"X-Team": "$TEAM"}).resolve(MODEL)

    assert (auth.api_key, auth.headers) == ("scoped", {"x-team": "red"})


async def test_what_lies_below_gives_the_key_when_there_is_no_other() -> None:
    async def below(_model: Model, _options: RequestOptions) -> Auth:
        return Auth(api_key="below", headers={"a": "b"})

    made = attrs.evolve(keys(), needs_key=False, below=below, is_below_configured=lambda: False)

    assert made.status() == AuthStatus(configured=False)
    assert (await made.resolve(MODEL)).api_key == "below"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://host/v1", "http://host/v1"),
        ("http://name:secret@host:1/v1", "http://host:1/v1"),
        ("http://host/v1?key=secret", "http://host/v1"),
        ("http://[broken", "http://[broken"),
        ("ht!tp://name:secret@[broken/v1?k=secret", "ht!tp://[broken/v1"),
    ],
)
def test_a_url_is_shown_without_what_may_be_secret(url: str, shown: str) -> None:
    assert shown_url(url) == shown


# -- what a request brings ---------------------------------------------------------------------


@pytest.mark.rule("STR-3", "MOD-72")
@pytest.mark.parametrize("stored", [None, {"type": "api_key", "key": "$NONE"}, {"type": "api_key", "key": "s"}, _login()])
async def test_the_key_of_a_request_comes_before_all_others_and_is_no_template(stored: object) -> None:
    made = keys(stored, ALL, ProcessKeys({"anthropic": "given"}), api_key="!false", adds_bearer=True)

    auth = await made.resolve(MODEL, RequestOptions(api_key="!$own"))

    assert (auth.api_key, auth.headers) == ("!$own", {"authorization": "Bearer !$own"})


@pytest.mark.rule("STR-3", "MOD-63")
async def test_variables_of_a_request_win_for_keys_and_headers() -> None:
    stored = {"type": "api_key", "key": "$K", "env": {"K": "stored", "TEAM": "red"}}
    made = keys(stored, {"K": "outer"}, headers={"X-Team": "$TEAM"})

    auth = await made.resolve(MODEL, RequestOptions(env=FrozenDict({"K": "own"})))
    of_environment = await keys().resolve(MODEL, RequestOptions(env=FrozenDict({"ANTHROPIC_API_KEY": "own"})))

    assert (auth.api_key, auth.headers) == ("own", {"x-team": "red"})
    assert of_environment.api_key == "own"


@pytest.mark.rule("STR-3")
def test_what_a_request_brings_is_in_no_repr() -> None:
    options = RequestOptions(api_key="secret-key", env=FrozenDict({"K": "secret-value"}), headers=FrozenDict({"x": "secret-header"}))

    assert "secret" not in repr(options)
