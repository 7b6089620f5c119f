"""Providers that extensions register by a config, served by the adapters of this package."""

from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.api import World
from camshaft.actors.config_provider import configured_provider
from camshaft.actors.host import BuildRequest, ProviderConfig
from camshaft.extensions_std.providers.credentials import Auth, AuthUnresolved
from camshaft.extensions_std.providers.registered import provider_builder
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from camshaft.extensions_std.providers.wire_provider import WireProvider
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import FrozenDict
from tests.actors.running import virtual_world

KNOWN = Model(id="m", provider="acme", api="openai-completions", base_url="http://known/v1")


async def known_auth(_model: Model) -> Auth:
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
    return trio.run(provider.resolve, provider.models[0])


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
