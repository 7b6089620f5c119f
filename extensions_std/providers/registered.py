"""Adapters for providers that extensions register by a config (PRV-10 to PRV-15).

A config lies over what is known of the provider: its models are the config's, its key and headers
are templates like those of models.json and are resolved at each request, and what the config does
not say stays as the host's own provider has it. `modelOverrides` of models.json come last (MOD-53).
"""

import os
from collections.abc import Callable
from typing import Final

import attrs

from camshaft.actors.api import EMPTY, World
from camshaft.actors.host import BuildRequest, Provider
from camshaft.extensions_std.providers.auth_store import AuthStore
from camshaft.extensions_std.providers.config_values import shell
from camshaft.extensions_std.providers.models_json import LoadedProviders, ProviderSettings, wire_provider
from camshaft.extensions_std.providers.provider_keys import KeyRing, ProviderKeys, shown_models
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from camshaft.extensions_std.providers.wire_provider import WireProvider

AUTH_HEADERS: Final = ("authorization", "x-api-key", "cf-aig-authorization")
"""A config with one of these needs no key besides. Any other provider that nobody else knows does: it gets the login with a key
that every provider has, and is not configured before (PRV-13)."""


def provider_builder(
    world: World, settings: ProviderSettings | None = None, loaded: LoadedProviders | None = None
) -> Callable[[BuildRequest], Provider | None]:
    """What makes such adapters in this world; None for a config that needs none: it has no key, and no models of an api of ours.

    `loaded`: what the files say; without it only the configs and the environment count.
    """
    chosen = settings or ProviderSettings()
    ring = _ring(world, chosen) if loaded is None else loaded.ring

    def build(asked: BuildRequest) -> Provider | None:
        config = asked.config
        is_ours = any([model.api in WIRE_APIS for model in asked.models])
        is_needed = is_ours or asked.oauth is not None or config.api_key is not None or config.refresh_models is not None
        if not is_needed:
            return None
        models = asked.models if loaded is None else loaded.overridden(asked.name, asked.models)
        credential = ring.store.credential(asked.name)
        if asked.oauth is not None and credential is not None and credential.get("type") == "oauth":
            models = asked.oauth.models(models, credential)
        shown, urls = shown_models(models)
        return wire_provider(_keys(asked, ring, loaded, urls), shown, world, chosen)

    return build


def _ring(world: World, settings: ProviderSettings) -> KeyRing:
    run = shell(world.processes, world.environment, os.sep)
    return KeyRing(store=AuthStore(path=""), environment=world.environment, run=run, process=settings.keys)


def _keys(asked: BuildRequest, ring: KeyRing, loaded: LoadedProviders | None, urls: dict[str, str]) -> ProviderKeys:
    """The keys of the config over those that the provider has (PRV-11)."""
    config, base = asked.config, asked.base
    is_unknown = base is None and not any(name.lower() in AUTH_HEADERS for name in config.headers or EMPTY)
    known = None if loaded is None else loaded.keys.get(asked.name)
    if known is None:
        known = ProviderKeys(name=asked.name, ring=ring)
        if isinstance(base, WireProvider):
            known = attrs.evolve(known, below=base.resolve, is_below_configured=base.configured)
    headers = {**{name.lower(): value for name, value in known.headers.items()}}
    headers.update({name.lower(): value for name, value in (config.headers or EMPTY).items()})
    return attrs.evolve(
        known,
        api_key=known.api_key if config.api_key is None else config.api_key,
        headers=headers,
        urls={**known.urls, **urls},
        adds_bearer=known.adds_bearer if config.auth_header is None else config.auth_header,
        needs_key=known.needs_key or (config.api_key is None and (asked.oauth is not None or is_unknown)),
        oauth=asked.oauth,
    )
