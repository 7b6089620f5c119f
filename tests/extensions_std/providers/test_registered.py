"""Providers that extensions register by a config, served by the adapters of this package."""

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.api import RequestOptions, World
from camshaft.actors.config_provider import configured_provider
from camshaft.actors.host import (
    AuthStatus,
    BuildRequest,
    ExtensionMisuse,
    LoginNotice,
    LoginOption,
    LoginPrompt,
    OAuthConfig,
    OAuthPort,
    ProviderConfig,
    ProviderFailed,
)
from camshaft.extensions_std.providers.credentials import Auth, AuthUnresolved
from camshaft.extensions_std.providers.models_json import LoadedProviders, load_all
from camshaft.extensions_std.providers.registered import provider_builder
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from camshaft.extensions_std.providers.wire_provider import WireProvider
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.stream import Ended, Started
from tests.actors.running import Running, virtual_world
from tests.actors.test_provider_registrations import doing
from tests.extensions_std.providers.asking import ask

KNOWN = Model(id="m", provider="acme", api="openai-completions", base_url="http://known/v1")


async def known_auth(_model: Model, _options: Any = None) -> Auth:
    return Auth(api_key="known-key", headers={"x-team": "known"}, base_url="http://known/v1")


def world(**environment: str) -> World:
    return attrs.evolve(virtual_world(), environment=environment)


def host_provider() -> WireProvider:
    return WireProvider(apis=WIRE_APIS, name="acme", models=(KNOWN,), http=virtual_world().http, resolve=known_auth)


def built(config: ProviderConfig, base: Any = None, **environment: str) -> WireProvider:
    made: Any = configured_provider("acme", config, base, provider_builder(world(**environment)))
    adapter: WireProvider = made.adapter
    return adapter


def auth_of(provider: WireProvider) -> Auth:
    return trio.run(provider.resolve, provider.models[0], RequestOptions())


@pytest.mark.rule("PRV-11")
def test_an_endpoint_alone_redirects_the_models_and_leaves_key_and_headers() -> None:
    auth = auth_of(built(ProviderConfig(base_url="http://other/v1"), host_provider()))

    assert (auth.base_url, auth.api_key, auth.headers) == ("http://other/v1", "known-key", {"x-team": "known"})


@pytest.mark.rule("PRV-10", "MOD-60")
def test_a_key_and_headers_are_templates_that_win() -> None:
    config = ProviderConfig(api_key="$ACME", headers=FrozenDict({"X-Team": "${TEAM}s"}))

    auth = auth_of(built(config, host_provider(), ACME="secret", TEAM="red"))

    assert (auth.api_key, auth.headers) == ("secret", {"x-team": "reds"})


@pytest.mark.rule("PRV-14")
@pytest.mark.parametrize(("environment", "configured"), [({}, False), ({"ACME": "secret"}, True)])
def test_it_is_configured_when_its_key_can_be_known(environment: dict[str, str], configured: bool) -> None:
    config = ProviderConfig(api_key="$ACME", base_url="http://x", models=({"id": "m", "api": "openai-completions"},))

    assert built(config, **environment).configured() is configured


def test_a_key_that_cannot_be_resolved_fails_the_request_and_names_the_variable() -> None:
    with pytest.raises(AuthUnresolved, match='API key for provider "acme" from environment variable: ACME'):
        auth_of(built(ProviderConfig(api_key="$ACME"), host_provider()))


@pytest.mark.rule("PRV-10")
def test_a_bearer_header_needs_a_key() -> None:
    config = ProviderConfig(auth_header=True, base_url="http://x", models=({"id": "m", "api": "openai-completions"},))

    with pytest.raises(AuthUnresolved, match="authHeader requires a resolved API key"):
        auth_of(built(config))


def test_an_api_that_is_not_ours_has_no_adapter() -> None:
    asked = BuildRequest(name="acme", config=ProviderConfig(), models=(attrs.evolve(KNOWN, api="other"),), base=None)

    assert provider_builder(world())(asked) is None


# -- with the files of the user --------------------------------------------------------------


def loaded_from(folder: Path, models: object, **stored: Any) -> LoadedProviders:
    (folder / "models.json").write_text(json.dumps({"providers": models}), encoding="utf-8")
    (folder / "auth.json").write_text(json.dumps(stored), encoding="utf-8")
    return load_all(folder, {}, world())


def over(loaded: LoadedProviders, config: ProviderConfig) -> Any:
    base = next((each for each in loaded.providers if each.name == "acme"), None)
    return configured_provider("acme", config, base, provider_builder(world(), None, loaded))


ACME = {
    "baseUrl": "http://file/v1",
    "api": "openai-completions",
    "apiKey": "file-key",
    "headers": {"X-Team": "red"},
    "models": [{"id": "m"}],
}


@pytest.mark.rule("MOD-53", "MOD-72", "PRV-11")
def test_a_config_lies_over_the_file_and_the_overrides_of_the_file_over_both(tmp_path: Path) -> None:
    entry = {**ACME, "modelOverrides": {"n": {"contextWindow": 5}}}
    loaded = loaded_from(tmp_path, {"acme": entry})

    made = over(loaded, ProviderConfig(models=({"id": "n"}, {"id": "o"}), headers=FrozenDict({"x-team": "blue"})))
    auth = trio.run(made.resolve, made.models[0])

    assert [(model.id, model.context_window, model.base_url) for model in made.models] == [
        ("n", 5, "http://file/v1"),
        ("o", 128_000, "http://file/v1"),
    ]
    assert (auth.api_key, auth.headers) == ("file-key", {"x-team": "blue"})
    assert trio.run(over(loaded, ProviderConfig(api_key="own-key")).resolve, KNOWN).api_key == "own-key"


@pytest.mark.rule("MOD-72", "PRV-14")
def test_a_stored_key_comes_before_that_of_a_config(tmp_path: Path) -> None:
    loaded = loaded_from(tmp_path, {}, acme={"type": "api_key", "key": "stored-key"})

    made = over(loaded, ProviderConfig(api_key="$NONE", base_url="http://x", models=({"id": "m", "api": "openai-completions"},)))

    assert made.configured()
    assert trio.run(made.resolve, made.models[0]).api_key == "stored-key"


class Person:
    """Answers what a login asks."""

    async def prompt(self, prompt: LoginPrompt) -> str:
        return f"answer to {prompt.message}"

    def notify(self, notice: LoginNotice) -> None:
        """Is told nothing here."""


def _login(**fields: Any) -> OAuthConfig:
    async def login(interaction: Any) -> dict[str, Any]:
        code = await interaction.prompt(LoginPrompt(kind="manual_code", message="code?"))
        return {"access": code, "refresh": "r", "expires": 4_000_000_000_000}

    known: dict[str, Any] = {"refresh_token": login, "get_api_key": lambda credential: f"key of {credential['access']}", **fields}
    return OAuthConfig(name="Acme", login=login, **known)


@pytest.mark.rule("PRV-10", "PRV-13", "MOD-53", "MOD-70", "MOD-73")
def test_a_login_of_an_extension_is_stored_used_and_removed(tmp_path: Path) -> None:
    loaded = loaded_from(tmp_path, {})

    def with_more(models: Any, credential: Any) -> list[Model]:
        return [attrs.evolve(each, name=f"{each.id} of {credential['access']}") for each in models]

    config = ProviderConfig(base_url="http://x", models=({"id": "m", "api": "openai-completions"},), oauth=_login(modify_models=with_more))

    async def act() -> None:
        before = over(loaded, config)
        assert (before.configured(), before.models[0].name) == (False, "")

        assert config.oauth is not None
        await loaded.log_in(OAuthPort("acme", config.oauth), Person())
        made = over(loaded, config)
        assert made.auth_status() == AuthStatus(configured=True, source="stored", label="Acme", is_oauth=True)
        assert (await made.resolve(made.models[0])).api_key == "key of answer to code?"
        assert made.models[0].name == "m of answer to code?"
        assert (await made.credential())["type"] == "oauth"
        assert await loaded.log_out("acme")
        assert not over(loaded, config).configured()

    trio.run(act)


@pytest.mark.rule("MOD-80", "MOD-73")
@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"get_api_key": lambda _: None}, "OAuth auth failed for acme: get_api_key gave no text"),
        ({"get_api_key": lambda _: 1 / 0}, "OAuth auth failed for acme: division by zero"),
    ],
)
def test_a_login_that_gives_no_key_fails_the_request_with_its_code(tmp_path: Path, fields: dict[str, Any], why: str) -> None:
    loaded = loaded_from(tmp_path, {}, acme={"type": "oauth", "access": "a", "refresh": "r", "expires": 4_000_000_000_000})
    made = over(loaded, ProviderConfig(base_url="http://x", models=({"id": "m", "api": "openai-completions"},), oauth=_login(**fields)))

    with pytest.raises(ProviderFailed) as failed:
        trio.run(made.resolve, made.models[0])

    assert (failed.value.code, str(failed.value)) == ("oauth", why)


async def test_a_request_whose_login_fails_ends_with_an_error(tmp_path: Path) -> None:
    loaded = loaded_from(tmp_path, {}, acme={"type": "oauth", "access": "a", "refresh": "r", "expires": 4_000_000_000_000})
    config = ProviderConfig(
        base_url="http://x", models=({"id": "m", "api": "openai-completions"},), oauth=_login(get_api_key=lambda _: None)
    )

    asked = await ask(over(loaded, config))

    assert asked.message is not None
    assert (asked.message.stop_reason, asked.message.error_message) == ("error", "OAuth auth failed for acme: get_api_key gave no text")


@pytest.mark.rule("MOD-71")
def test_a_key_is_stored_and_removed_and_requests_follow_at_once(tmp_path: Path) -> None:
    loaded = loaded_from(tmp_path, {"acme": ACME})
    provider = next(each for each in loaded.providers if each.name == "acme")

    async def act() -> list[str | None]:
        keys = [(await provider.resolve(provider.models[0], RequestOptions())).api_key]
        await loaded.store_key("acme", "$K", {"K": "stored"})
        keys.append((await provider.resolve(provider.models[0], RequestOptions())).api_key)
        await loaded.log_out("acme")
        return [*keys, (await provider.resolve(provider.models[0], RequestOptions())).api_key]

    assert trio.run(act) == ["file-key", "stored", "file-key"]


# -- errors and logins ---------------------------------------------------------------------------


@pytest.mark.rule("MOD-81", "MOD-80")
@pytest.mark.parametrize("operation", ["login", "logout"])
def test_a_credential_that_changed_before_something_failed_says_so(operation: str, tmp_path: Path) -> None:
    loaded = loaded_from(tmp_path, {}, acme={"type": "api_key", "key": "old"})

    async def after() -> None:
        raise OSError("no catalogue")

    async def act() -> None:
        if operation == "login":
            await loaded.store_key("acme", "new", after=after)
        else:
            await loaded.log_out("acme", after=after)

    with pytest.raises(ProviderFailed) as caught:
        trio.run(act)

    text = f"Credential {operation} committed for acme, but local synchronization failed: no catalogue"
    assert (caught.value.code, str(caught.value)) == ("auth", text)
    stored = json.loads((tmp_path / "auth.json").read_text(encoding="utf-8"))
    assert stored == ({"acme": {"type": "api_key", "key": "new"}} if operation == "login" else {})


@pytest.mark.rule("MOD-80")
def test_a_key_that_is_missing_has_the_code_of_its_kind() -> None:
    with pytest.raises(ProviderFailed) as caught:
        auth_of(built(ProviderConfig(api_key="$ACME"), host_provider()))

    assert caught.value.code == "auth"


@pytest.mark.rule("MOD-78")
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: LoginPrompt(kind="select", message="which?"), "login prompt of kind 'select' with 0 options"),
        (
            lambda: LoginPrompt(kind="text", message="?", options=(LoginOption(id="a", label="A"),)),
            "login prompt of kind 'text' with 1",
        ),
        (lambda: LoginNotice(kind="auth_url"), "login notice of kind 'auth_url' without url"),
        (lambda: LoginNotice(kind="device_code", user_code="c"), "login notice of kind 'device_code' without verification_uri"),
        (lambda: LoginNotice(kind="progress"), "login notice of kind 'progress' without message"),
    ],
)
def test_a_question_or_notice_that_cannot_be_shown_is_refused(make: Any, why: str) -> None:
    with pytest.raises(ExtensionMisuse, match=why):
        make()


@pytest.mark.rule("MOD-78")
def test_a_code_of_a_device_is_in_no_repr() -> None:
    assert "WXYZ" not in repr(LoginNotice(kind="device_code", user_code="WXYZ", verification_uri="http://x"))


@pytest.mark.rule("PRV-13", "PRV-14")
@pytest.mark.parametrize(
    ("fields", "configured"),
    [
        ({}, False),
        ({"api_key": "k"}, True),
        ({"headers": FrozenDict({"Authorization": "Bearer k"})}, True),
        ({"headers": FrozenDict({"x": "y"})}, False),
    ],
)
def test_a_provider_without_any_way_to_a_key_gets_the_login_with_one(fields: dict[str, Any], configured: bool, tmp_path: Path) -> None:
    config = ProviderConfig(base_url="http://x", models=({"id": "m", "api": "openai-completions"},), **fields)
    loaded = loaded_from(tmp_path, {})
    assert over(loaded, config).configured() is configured

    trio.run(loaded.store_key, "acme", "stored-key")

    assert over(loaded, config).configured()


# -- models.json over provider objects -------------------------------------------------------------


@attrs.define(eq=False, kw_only=True)
class Own:
    """A provider object."""

    name: str = "acme"
    api: str = "openai-completions"
    models: tuple[Model, ...] = (KNOWN,)
    display_name: str = "Acme Inc."

    def configured(self) -> bool:
        return True

    async def stream(self, request: Any, signal: Any, emit: Any) -> None:
        await emit(Started())
        await emit(Ended("stop"))


@pytest.mark.rule("PRV-16", "MOD-53")
def test_models_json_lies_over_provider_objects_too(tmp_path: Path) -> None:
    own = Own()
    entry = {
        "baseUrl": "http://file/v1",
        "models": [{"id": "more", "api": "openai-completions"}],
        "modelOverrides": {"m": {"maxTokens": 9}},
    }
    loaded = loaded_from(tmp_path, {"acme": entry})

    async def test(running: Running) -> None:
        registry = running.seat.model_registry
        found = {model.id: model for model in registry.get_models_of_type("chat", "acme")}
        assert {id: (model.base_url, model.max_tokens) for id, model in found.items()} == {
            "m": ("http://file/v1", 9),
            "more": ("http://file/v1", 16_384),
        }
        assert registry.get_registered_native_provider("acme") is own
        assert registry.get_provider_display_name("acme") == "Acme Inc."
        message = await registry.complete(found["m"], "a")
        assert (message.stop_reason, message.provider) == ("stop", "acme")
        own.models = (KNOWN, attrs.evolve(KNOWN, id="later"))
        assert [model.id for model in registry.get_models_of_type("chat", "acme")] == ["m", "later", "more"]

    doing(test, lambda api: api.register_provider(own), model_overlay=loaded.overlay)


@pytest.mark.rule("PRV-16")
def test_an_object_that_the_file_does_not_name_stays_as_it_is(tmp_path: Path) -> None:
    own = Own()

    async def test(running: Running) -> None:
        assert running.seat.model_registry.get_provider("acme") is own

    doing(test, lambda api: api.register_provider(own), model_overlay=loaded_from(tmp_path, {}).overlay)


def test_the_keys_of_the_file_are_in_no_repr(tmp_path: Path) -> None:
    assert "file-key" not in repr(loaded_from(tmp_path, {"acme": ACME}))
