"""Catalogues that change while the program runs, and logins that extensions bring."""

from collections.abc import Mapping
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from camshaft.actors.api import ExtensionAPI, Model
from camshaft.actors.host import AuthStatus, BuildRequest, ExtensionMisuse, OAuthConfig
from camshaft.actors.provider_auth import oauth_config
from camshaft.actors.provider_refresh import Refreshable, RefreshContext, Refreshes
from tests.actors.running import Running, virtual_world
from tests.actors.test_provider_registrations import Answering, doing, stream_simple

CONFIG = {"api": "mine", "base_url": "http://acme", "models": [{"id": "old"}], "stream_simple": stream_simple}


async def registered(running: Running) -> list[str]:
    """Models of `acme` when what was begun at the start is over."""
    await trio.testing.wait_all_tasks_blocked()
    return [model.id for model in running.seat.model_registry.get_models_of_type("chat", "acme")]


def acme(**config: Any) -> Any:
    return lambda api: api.register_provider("acme", {**CONFIG, **config})


@pytest.mark.rule("MOD-42", "PRV-17")
def test_a_list_that_a_refresh_gives_takes_the_place_of_the_models() -> None:
    async def refresh(context: RefreshContext) -> list[dict[str, Any]]:
        assert (context.allow_network, context.force, context.base_url, context.credential) == (True, False, "http://acme", None)
        return [{"id": "one"}, {"id": "two", "reasoning": True}]

    assert doing(registered, acme(refresh_models=refresh)) == ["one", "two"]


@pytest.mark.rule("MOD-42", "MOD-41", "PRV-17")
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (ValueError("no route"), "no route"),
        ("one", "refresh_models gave str; expected a list of models, or None"),
        ([{"id": 3}], "Provider acme, model 3: "),
        (None, None),
    ],
)
def test_a_refresh_that_fails_keeps_the_list_and_is_told(answer: Any, why: str | None) -> None:
    def refresh(_context: RefreshContext) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def test(running: Running) -> None:
        assert await registered(running) == ["old"]
        told = [each.message for each in running.seat.diagnostics if each.source == "model"]
        error = running.seat.model_registry.get_error()
        assert (error is None, told) == (why is None, [] if why is None else [error])
        assert why is None or f'Availability refresh: Provider "acme": {why}' in (error or "")
        result = await running.seat.model_registry.refresh()
        assert list(result.errors) == ([] if why is None else ["acme"])

    doing(test, acme(refresh_models=refresh))


@pytest.mark.rule("MOD-43")
@pytest.mark.parametrize(("value", "asked"), [("1", 0), ("TRUE", 0), ("yes", 0), ("0", 1), ("", 1), ("on", 1)])
def test_offline_nobody_is_asked(value: str, asked: int) -> None:
    calls: list[bool] = []

    world = attrs.evolve(virtual_world(), environment={"CAMSHAFT_OFFLINE": value})

    async def test(running: Running) -> None:
        await registered(running)
        assert calls == [True] * asked
        await running.seat.model_registry.refresh(allow_network=True)
        assert calls == [True] * (asked + 1)

    doing(test, acme(refresh_models=lambda context: calls.append(context.allow_network)), world=world)


@pytest.mark.rule("MOD-42")
def test_a_provider_without_credentials_is_not_asked() -> None:
    calls: list[object] = []

    doing(registered, lambda api: api.register_provider(Refreshing(calls=calls, is_configured=False)))

    assert calls == []


@attrs.frozen(kw_only=True)
class Refreshing:
    """A provider object that can be refreshed."""

    calls: list[Any]
    is_configured: bool = True
    name: str = "acme"
    api: str = "mine"
    models: tuple[Model, ...] = (Model(id="own", provider="acme", api="mine"),)

    def configured(self) -> bool:
        return self.is_configured

    async def stream(self, *_: Any) -> None:
        """Not asked here."""

    async def refresh_models(self, context: RefreshContext) -> None:
        self.calls.append(context)


@pytest.mark.rule("PRV-16", "PRV-17")
def test_a_provider_object_keeps_its_own_list_and_sees_what_it_stored() -> None:
    calls: list[RefreshContext] = []

    async def test(running: Running) -> None:
        await registered(running)
        updated: list[int] = []
        assert calls[0].publish(persist={"models": [1]}, update=lambda: updated.append(1))
        assert updated == [1]
        await running.seat.model_registry.refresh(force=True)
        assert [(each.allow_network, each.force, each.stored) for each in calls[1:]] == [
            (False, True, {"models": (1,)}),
            (True, True, {"models": (1,)}),
        ]
        assert not calls[0].publish(persist=None)
        assert calls[-1].publish(persist=None)
        await running.seat.model_registry.refresh()
        assert calls[-1].stored is None

    doing(test, lambda api: api.register_provider(Refreshing(calls=calls)))


@pytest.mark.rule("MOD-42")
async def test_a_newer_refresh_cancels_and_outdates_the_older_one() -> None:
    begun, taken, contexts = trio.Event(), list[Any](), list[RefreshContext]()

    async def refresh(context: RefreshContext) -> list[str]:
        contexts.append(context)
        if len(contexts) == 1:
            begun.set()
            await trio.sleep_forever()
        return ["new"]

    refreshes = Refreshes(lambda: None)
    each = Refreshable(name="acme", refresh=refresh, accept=taken.append, is_configured=lambda: True)
    results: list[Any] = []

    async def run() -> None:
        results.append(await refreshes.run([each], allow_network=True, force=False))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await begun.wait()
        nursery.start_soon(run)

    assert sorted([result.aborted for result in results]) == [False, True]
    assert contexts[0].signal.cancelled
    assert not contexts[0].publish(persist={"models": []})
    assert taken == [["new"]]


async def test_a_refresh_that_hangs_ends(autojump_clock: Any) -> None:
    async def hang(_context: RefreshContext) -> None:
        await trio.sleep_forever()

    each = Refreshable(name="acme", refresh=hang, accept=print, is_configured=lambda: True)

    result = await Refreshes(lambda: None).run([each], allow_network=True, force=False)

    assert result.errors == {"acme": "no answer for 60 s"}


# -- logins --------------------------------------------------------------------------------


def login(**fields: Any) -> dict[str, Any]:
    return {"name": "Acme", "login": print, "refresh_token": print, "get_api_key": print, **fields}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("radius", "oauth str; expected OAuthConfig"),
        ({"name": "Acme"}, "oauth without 'login'; expected name, login, refresh_token"),
        (login(key=1), "oauth no field 'key'; expected name"),
        (login(login=3), "oauth.login of provider 'acme' is 3; expected a function"),
    ],
)
def test_a_login_that_cannot_be_meant_is_refused(given: Any, why: str) -> None:
    with pytest.raises(ExtensionMisuse, match=why):
        oauth_config("acme", given)


@pytest.mark.rule("PRV-10")
def test_the_host_is_handed_the_login_of_a_config_and_one_without_adapters_refuses_it() -> None:
    asked: list[BuildRequest] = []

    def build(request: BuildRequest) -> Answering:
        asked.append(request)
        return Answering(name=request.name, models=request.models)

    async def nothing(_running: Running) -> None:
        return

    doing(nothing, acme(oauth=login()), build_provider=build)
    assert asked[-1].oauth is not None
    assert asked[-1].oauth.config == OAuthConfig(**login())

    async def test(running: Running) -> str:
        return running.seat.load_errors[0].error

    assert doing(test, acme(oauth=login())) == "Provider acme: this host keeps no logins, so it takes no oauth"


# -- what the registry tells ---------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Keyed(Answering):
    """A provider that tells of its credentials."""

    display_name: str = "Acme Inc."
    key: Any = "secret-0123456789"

    def auth_status(self) -> AuthStatus:
        return AuthStatus(configured=self.is_configured, source="stored", is_oauth=True)

    async def resolve(self, _model: Model) -> Any:
        if isinstance(self.key, Exception):
            raise self.key
        return self

    @property
    def api_key(self) -> Any:
        return self.key

    @property
    def headers(self) -> Mapping[str, str]:
        return {"x-team": "red"}

    base_url: str = "http://acme"


@pytest.mark.rule("MOD-40")
def test_the_registry_tells_of_providers_and_their_credentials() -> None:
    async def test(running: Running) -> None:
        registry = running.seat.model_registry
        model = registry.find("acme", "own")
        assert model is not None
        auth = await registry.get_api_key_and_headers(model)
        assert (auth.ok, auth.api_key, auth.headers, auth.base_url) == (True, "secret-0123456789", {"x-team": "red"}, "http://acme")
        assert "secret" not in repr(auth)
        assert await registry.get_api_key_for_provider("acme") == "secret-0123456789"
        assert await registry.get_api_key_for_provider("nobody") is None
        assert registry.is_using_oauth(model)
        assert registry.get_provider_auth_status("acme").source == "stored"
        assert registry.get_provider_auth_status("nobody") == AuthStatus(configured=False)
        assert (registry.get_provider_display_name("acme"), registry.get_provider_display_name("nobody")) == ("Acme Inc.", "nobody")
        assert registry.get_registered_provider_ids() == ("acme",)
        assert registry.get_registered_provider_config("acme") is None
        assert isinstance(registry.get_registered_native_provider("acme"), Keyed)
        other = await registry.get_api_key_and_headers(attrs.evolve(model, provider="nobody"))
        assert (other.ok, other.error) == (False, "Unknown provider: nobody")
        assert registry.get_error() == "models.json is broken"

    doing(test, lambda api: api.register_provider(Keyed()), provider_faults=("models.json is broken",))


@pytest.mark.rule("MOD-40")
def test_a_key_that_cannot_be_resolved_is_an_answer_not_an_exception() -> None:
    async def test(running: Running) -> tuple[bool, str | None]:
        auth = await running.seat.model_registry.get_api_key_and_headers(running.seat.model_registry.get_models_of_type("chat", "acme")[0])
        return auth.ok, auth.error

    assert doing(test, lambda api: api.register_provider(Keyed(key=ValueError("no key")))) == (False, "no key")


@pytest.mark.rule("MOD-41", "PRV-3")
def test_a_registration_that_failed_is_part_of_the_error() -> None:
    def setup(api: ExtensionAPI) -> None:
        api.register_provider("acme", {"models": [{"id": "m"}]})

    async def test(running: Running) -> str | None:
        return running.seat.model_registry.get_error()

    assert (doing(test, setup) or "").startswith('Provider "acme": Provider acme, model m: no "api" specified.')
