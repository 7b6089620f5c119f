"""Adapters for providers that extensions register by a config (PRV-10 to PRV-15).

A config lies over what is known of the provider: its models are the config's, its key and headers
are templates like those of models.json and are resolved at each request, and what the config does
not say stays as the host's own provider has it.
"""

import os
import random
from collections.abc import Callable, Mapping

import attrs

from camshaft.actors.api import EMPTY, Model, World
from camshaft.actors.host import BuildRequest, Provider
from camshaft.extensions_std.providers.config_values import missing_variables, resolved, shell
from camshaft.extensions_std.providers.credentials import Auth, AuthUnresolved
from camshaft.extensions_std.providers.models_json import ProviderSettings
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from camshaft.extensions_std.providers.wire_provider import Resolve, WireProvider


def provider_builder(world: World, settings: ProviderSettings | None = None) -> Callable[[BuildRequest], Provider | None]:
    """What makes such adapters in this world; None for models of an api that is not ours."""
    chosen = settings or ProviderSettings()

    def build(asked: BuildRequest) -> Provider | None:
        if not asked.models or any([model.api not in WIRE_APIS for model in asked.models]):
            return None
        return WireProvider(
            name=asked.name,
            apis=WIRE_APIS,
            models=asked.models,
            http=world.http,
            resolve=_resolver(asked, world),
            is_configured=lambda: _is_configured(asked, world.environment),
            limits=chosen.limits,
            identity=chosen.identity,
            clock=world.clock.now_ms,
            chance=random.Random(0),
        )

    return build


def _is_configured(asked: BuildRequest, environment: Mapping[str, str]) -> bool:
    """By the config's key if it has one, else as the host's own provider is; runs no command (PRV-14)."""
    if asked.config.api_key is not None:
        return not missing_variables(asked.config.api_key, environment)
    return asked.base is None or asked.base.configured()


def _resolver(asked: BuildRequest, world: World) -> Resolve:
    run = shell(world.processes, world.environment, os.sep)
    config = asked.config

    async def resolve(model: Model) -> Auth:
        """Key and headers of one request. Raises AuthUnresolved."""
        base = await asked.base.resolve(model) if isinstance(asked.base, WireProvider) else Auth()
        key = base.api_key
        if config.api_key is not None:
            key = await resolved(config.api_key, f'API key for provider "{asked.name}"', world.environment, run)
        headers = dict(base.headers)
        for name, template in (config.headers or EMPTY).items():
            headers[name.lower()] = await resolved(template, f'provider "{asked.name}" header "{name}"', world.environment, run)
        if config.auth_header and not key:
            raise AuthUnresolved("authHeader requires a resolved API key")
        return attrs.evolve(base, api_key=key, headers=headers, base_url=model.base_url or base.base_url)

    return resolve
