"""Providers from `models.json`, `auth.json` and the environment (MOD-50 to MOD-79).

What exists, lowest first: the built-in providers; entries of `models.json`, which change the
base url and compat of known models, add or replace models, and at last override single fields
(MOD-53). A file with a fault in its form counts as empty, an entry with a fault in its meaning leaves
the others alone (MOD-41, MOD-51, MOD-52); either way the fault is told.

Whose keys they are asked with stands in `provider_keys.py`.
"""

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs

from camshaft.actors.api import EMPTY, Model, World, freeze
from camshaft.actors.host import Failure, LoginInteraction, OAuthPort, ProviderFailed, Value, guard
from camshaft.extensions_std.providers.auth_store import AUTH_FILE, AuthStore
from camshaft.extensions_std.providers.builtin_models import BUILTIN
from camshaft.extensions_std.providers.config_values import shell
from camshaft.extensions_std.providers.llama_cpp import DEFAULT_KEY, LLAMA, LlamaProvider, api_url
from camshaft.extensions_std.providers.model_layers import merged_compat, model_from_json, overridden
from camshaft.extensions_std.providers.model_lists import LISTS_FILE, ModelLists
from camshaft.extensions_std.providers.models_schema import ModelsFileError, misspelt, parsed
from camshaft.extensions_std.providers.provider_keys import ENVIRONMENT_KEYS, KeyRing, ProcessKeys, ProviderKeys, shown_models
from camshaft.extensions_std.providers.transport import Identity, TransportLimits
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from camshaft.extensions_std.providers.wire_provider import WireProvider

MODELS_FILE: Final = "models.json"

ENVIRONMENT_URLS: Final[Mapping[str, str]] = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}
"""Provider id to the variable that replaces the base url of its built-in models."""
Served = WireProvider | LlamaProvider
Synchronize = Callable[[], Awaitable[object]]
"""What brings a host up to date after a credential changed."""

Read = Callable[[Path], bytes]
Tell = Callable[[str], None]


@attrs.frozen(kw_only=True)
class ProviderSettings:
    """What a host may choose for all loaded providers."""

    limits: TransportLimits = TransportLimits()
    identity: Identity = Identity()
    chance: random.Random = attrs.field(factory=lambda: random.Random(0), repr=False)
    """Spreads retry delays."""
    read: Read = Path.read_bytes
    """Reads the two files."""
    keys: ProcessKeys = attrs.field(factory=ProcessKeys)
    """What the process knows about keys; one for all loads of a process."""


@attrs.define(kw_only=True)
class _Entry:
    """What is known of a provider while layers are laid over each other."""

    name: str
    models: dict[str, Model] = attrs.field(factory=dict)
    api_key: str | None = attrs.field(default=None, repr=False)
    headers: dict[str, str] = attrs.field(factory=dict, repr=False)
    model_headers: dict[str, dict[str, str]] = attrs.field(factory=dict, repr=False)
    display_name: str | None = None
    adds_bearer: bool = False
    overrides: Mapping[str, Any] = attrs.field(default=EMPTY)
    """`modelOverrides`, for models that extensions add (MOD-53)."""


@attrs.frozen(kw_only=True, eq=False)
class LoadedProviders:
    """What the files and the environment give."""

    providers: tuple[Served, ...]
    """Built-in ones first; those without credentials say so in `configured()`."""
    ring: KeyRing
    """For keys of further providers."""
    keys: Mapping[str, ProviderKeys]
    """By provider id."""
    overrides: Mapping[str, Mapping[str, Any]]
    """`modelOverrides` by provider id."""
    configured: Mapping[str, Any] = attrs.field(repr=False)
    """The entries of `models.json`, which may hold keys."""
    lists: ModelLists
    """What refreshes found, for `OpenOptions.model_lists`."""
    faults: tuple[str, ...] = ()
    """What is wrong with the files (MOD-41)."""

    async def store_key(self, provider: str, key: str, env: Mapping[str, str] | None = None, *, after: Synchronize | None = None) -> None:
        """Stores a key, or a template of one, in `auth.json`; requests use it at once.

        `after` is what else has to follow, `registry.refresh` for one; it is awaited. Raises ProviderFailed.
        """
        await self.ring.store.put(provider, {"type": "api_key", "key": key, **({"env": dict(env)} if env else {})})
        await _synchronized("login", provider, after)

    async def log_in(self, oauth: OAuthPort, interaction: LoginInteraction, *, after: Synchronize | None = None) -> None:
        """Asks an extension's login for a credential, with `interaction` to talk to the person, and stores it. Raises ProviderFailed."""
        await self.ring.store.put(oauth.provider, await oauth.login(interaction))
        await _synchronized("login", oauth.provider, after)

    async def log_out(self, provider: str, *, after: Synchronize | None = None) -> bool:
        """Removes what is stored for a provider; whether there was anything. Raises ProviderFailed."""
        had = await self.ring.store.remove(provider)
        await _synchronized("logout", provider, after)
        return had

    def overlay(self, provider: str, models: Sequence[Model]) -> tuple[Model, ...] | None:
        """Models of a provider object, as its entry in `models.json` has them; None without an entry (PRV-16). For `OpenOptions`."""
        raw = self.configured.get(provider)
        return None if raw is None else _layered(provider, raw, models)

    def overridden(self, provider: str, models: Sequence[Model]) -> tuple[Model, ...]:
        """Models that an extension brings, as `modelOverrides` changes them (MOD-53)."""
        raw = self.overrides.get(provider, EMPTY)
        return tuple([overridden(model, raw[model.id]) if model.id in raw and model.is_chat else model for model in models])


async def _synchronized(operation: str, provider: str, after: Synchronize | None) -> None:
    """A failure says that the credential has changed all the same (MOD-81)."""
    outcome = None if after is None else await guard(after)
    if outcome is not None and not isinstance(outcome, Value):
        why = outcome.text if isinstance(outcome, Failure) else "cancelled"
        raise ProviderFailed("auth", f"Credential {operation} committed for {provider}, but local synchronization failed: {why}")


def load_providers(
    agent_dir: str | Path, environment: Mapping[str, str], world: World, settings: ProviderSettings | None = None, tell: Tell | None = None
) -> tuple[Served, ...]:
    """All providers, as `load_all` gives them."""
    return load_all(agent_dir, environment, world, settings, tell).providers


def load_all(
    agent_dir: str | Path, environment: Mapping[str, str], world: World, settings: ProviderSettings | None = None, tell: Tell | None = None
) -> LoadedProviders:
    """Providers, and what else the files say.

    `tell` gets each fault and each oddity as a text; without it the first fault raises ModelsFileError.
    """
    chosen = settings or ProviderSettings()
    faults: list[str] = []
    warn = tell or _ignore

    def say(text: str) -> None:
        faults.append(text)
        (tell or _raise)(text)

    entries = {name: _Entry(name=name, models={model.id: model for model in models}) for name, models in _builtin(environment).items()}
    entries[LLAMA] = _Entry(name=LLAMA)
    configured = _configured(Path(agent_dir) / MODELS_FILE, chosen.read, say)
    if "baseUrl" in configured.get(LLAMA, EMPTY):
        configured = {**configured, LLAMA: {**configured[LLAMA], "baseUrl": api_url(configured[LLAMA]["baseUrl"])}}
    for name, raw in configured.items():
        try:
            entries[name] = _merged(entries.get(name), name, raw)
        except ModelsFileError as error:
            say(str(error))
        for warning in _oddities(name, raw, entries.get(name)):
            warn(warning)
    store = AuthStore(path=str(Path(agent_dir) / AUTH_FILE), read=chosen.read, now_ms=world.clock.now_ms)
    store.reload()
    if store.fault is not None:
        say(store.fault)
    run = shell(world.processes, environment, str(agent_dir))
    ring = KeyRing(store=store, environment=environment, run=run, process=chosen.keys)
    made = [_provider(entry, ring, world, chosen, configured.get(entry.name, EMPTY)) for entry in entries.values()]
    lists = ModelLists(path=str(Path(agent_dir) / LISTS_FILE), read=chosen.read)
    lists.reload()
    for provider, _keys in made:
        if isinstance(provider, LlamaProvider):
            provider.restore(lists.stored(provider.name))
    return LoadedProviders(
        configured=configured,
        lists=lists,
        providers=tuple([provider for provider, _keys in made]),
        ring=ring,
        keys={provider.name: keys for provider, keys in made},
        overrides={entry.name: entry.overrides for entry in entries.values()},
        faults=tuple(faults),
    )


# -- layers ------------------------------------------------------------------------------


def _builtin(environment: Mapping[str, str]) -> dict[str, tuple[Model, ...]]:
    done = {}
    for name, models in BUILTIN.items():
        spoken = [model for model in models if model.api in WIRE_APIS]
        url = environment.get(ENVIRONMENT_URLS.get(name, ""), "").strip()
        if spoken:
            done[name] = tuple([attrs.evolve(model, base_url=url or model.base_url) for model in spoken])
    return done


def _merged(known: _Entry | None, name: str, raw: Mapping[str, Any]) -> _Entry:
    """`known` with an entry of the file over it (MOD-53). Raises ModelsFileError for what makes no sense (MOD-52)."""
    if not any(raw.get(field) for field in ("baseUrl", "headers", "compat", "modelOverrides", "models")):
        raise ModelsFileError(f'Provider {name}: must specify "baseUrl", "headers", "compat", "modelOverrides", or "models".')
    entry = known or _Entry(name=name)
    changed = {"base_url": raw["baseUrl"]} if "baseUrl" in raw else {}
    flags = raw.get("compat", EMPTY)
    models = {id: attrs.evolve(model, compat=merged_compat(model.compat, flags), **changed) for id, model in entry.models.items()}
    done = _Entry(name=name, models=models, api_key=raw.get("apiKey"), headers=dict(raw.get("headers", EMPTY)))
    done.display_name = raw.get("name")
    done.adds_bearer, done.overrides = raw.get("authHeader", False), raw.get("modelOverrides", EMPTY)
    for model in raw.get("models", ()):
        models[model["id"]] = _own_model(name, model, raw, entry.models.get(model["id"]))
        done.model_headers[model["id"]] = dict(model.get("headers", EMPTY))
    for id, override in raw.get("modelOverrides", EMPTY).items():
        if id in models:
            models[id] = overridden(models[id], override)
            done.model_headers.setdefault(id, {}).update(override.get("headers", EMPTY))
    return done


def _own_model(name: str, raw: Mapping[str, Any], provider: Mapping[str, Any], replaced: Model | None) -> Model:
    id = raw["id"]
    api = raw.get("api") or provider.get("api") or (replaced.api if replaced else None)
    if not api:
        raise ModelsFileError(f'Provider {name}, model {id}: no "api" specified. Set at provider or model level.')
    base_url = raw.get("baseUrl") or provider.get("baseUrl") or (replaced.base_url if replaced else None)
    if not base_url:
        raise ModelsFileError(f'Provider {name}: "baseUrl" is required when defining custom models.')
    for field in ("contextWindow", "maxTokens"):
        if field in raw and raw[field] <= 0:
            raise ModelsFileError(f"Provider {name}, model {id}: invalid {field} {raw[field]!r}; expected a number above 0")
    compat = merged_compat(freeze(provider.get("compat", EMPTY)), raw.get("compat", EMPTY))
    return model_from_json({**raw, "api": api, "baseUrl": base_url, "compat": compat}, name)


# -- providers ---------------------------------------------------------------------------


def _provider(
    entry: _Entry, ring: KeyRing, world: World, settings: ProviderSettings, raw: Mapping[str, Any]
) -> tuple[Served, ProviderKeys]:
    models, urls = shown_models(tuple(entry.models.values()))
    keys = ProviderKeys(
        name=entry.name,
        ring=ring,
        api_key=entry.api_key,
        headers=entry.headers,
        model_headers=entry.model_headers,
        urls=urls,
        adds_bearer=entry.adds_bearer,
        needs_key=entry.name in BUILTIN or entry.name in ENVIRONMENT_KEYS,
        fallback_key=DEFAULT_KEY if entry.name == LLAMA else None,
    )
    wire = wire_provider(keys, models, world, settings, entry.display_name)
    if entry.name != LLAMA:
        return wire, keys
    llama = LlamaProvider(
        wire=wire,
        http=world.http,
        keys=keys,
        urls=urls,
        url=raw.get("baseUrl"),
        named=[bool(raw)],
        layer=partial(_layered, LLAMA, raw),
    )
    return llama, keys


def _layered(name: str, raw: Mapping[str, Any], models: Sequence[Model]) -> tuple[Model, ...]:
    """Models with an entry of the file over them; as they are where the entry makes no sense, which was told."""
    if not raw:
        return tuple(models)
    try:
        return tuple(_merged(_Entry(name=name, models={model.id: model for model in models}), name, raw).models.values())
    except ModelsFileError:
        return tuple(models)


def wire_provider(
    keys: ProviderKeys, models: tuple[Model, ...], world: World, settings: ProviderSettings, display_name: str | None = None
) -> WireProvider:
    """A provider whose requests are authorized by these keys."""
    return WireProvider(
        name=keys.name,
        apis=WIRE_APIS,
        models=models,
        display_name=display_name,
        http=world.http,
        resolve=keys.resolve,
        status=keys.status,
        credential=keys.credential,
        needs_key=keys.needs_key,
        limits=settings.limits,
        identity=settings.identity,
        clock=world.clock.now_ms,
        chance=settings.chance,
    )


# -- files -------------------------------------------------------------------------------


def _configured(path: Path, read: Read, say: Tell) -> Mapping[str, Any]:
    try:
        return parsed(read(path), str(path))
    except FileNotFoundError:
        return EMPTY
    except OSError as error:
        say(f"Failed to load models.json: {error}\n\nFile: {path}")
    except ModelsFileError as error:
        say(str(error))
    return EMPTY


def _oddities(name: str, raw: Mapping[str, Any], entry: _Entry | None) -> list[str]:
    """What of an entry can hardly be meant: misspelt keys, no models where no vendor has any."""
    found = [f'Provider "{name}": {each}' for each in misspelt(raw)]
    foreign = sorted({model.api for model in entry.models.values()} - WIRE_APIS.keys()) if entry is not None else []
    found += [
        f'Provider "{name}": No API provider registered for api: {api}; its models need an extension that brings it' for api in foreign
    ]
    if entry is not None and not entry.models and name not in BUILTIN and name not in ENVIRONMENT_KEYS:
        found.append(f'Provider "{name}": it has no models, so none can be chosen; list them under "models"')
    return found


def _ignore(_text: str) -> None:
    """For hosts that asked for faults only."""


def _raise(text: str) -> None:
    raise ModelsFileError(text)
