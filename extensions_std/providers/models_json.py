"""Providers from `models.json`, `auth.json` and the environment (MOD-50 to MOD-79).

What exists, lowest first: the built-in provider `openai`; entries of `models.json`, which change the
base url and compat of known models, add or replace models, and at last override single fields
(MOD-53). A file with a fault in its form counts as empty, an entry with a fault in its meaning leaves
the others alone (MOD-41, MOD-51, MOD-52); either way the fault is told.

Keys and headers are resolved at each request, never stored on a model and never shown. A key comes
from, in this order: `auth.json`, the provider's entry, the environment. A stored key that does not
resolve is an error: silently using another one would be a surprise (MOD-74).
"""

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import attrs

from camshaft.actors.api import EMPTY, FrozenDict, MalformedJson, Model, Rates, Tier, World, freeze, loads
from camshaft.extensions_std.providers.builtin_models import BUILTIN
from camshaft.extensions_std.providers.config_values import RunCommand, missing_variables, resolved, shell
from camshaft.extensions_std.providers.credentials import Auth, AuthUnresolved
from camshaft.extensions_std.providers.models_schema import ModelsFileError, misspelt, parsed
from camshaft.extensions_std.providers.openai_completions import API
from camshaft.extensions_std.providers.transport import Identity, TransportLimits
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from camshaft.extensions_std.providers.wire_provider import WireProvider

MODELS_FILE: Final = "models.json"
AUTH_FILE: Final = "auth.json"

ENVIRONMENT_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "openai": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "google": ("GEMINI_API_KEY",),
    "xai": ("XAI_API_KEY",),
    "cerebras": ("CEREBRAS_API_KEY",),
    "together": ("TOGETHER_API_KEY",),
    "fireworks": ("FIREWORKS_API_KEY",),
    "huggingface": ("HF_TOKEN",),
    "vercel-ai-gateway": ("AI_GATEWAY_API_KEY",),
    "llama-cpp": ("LLAMA_API_KEY",),
}
"""Provider id to the variables its key may stand in; the first that is not blank wins (MOD-79)."""

ENVIRONMENT_URLS: Final[Mapping[str, str]] = {"openai": "OPENAI_BASE_URL"}
"""Provider id to the variable that replaces the base url of its built-in models."""

MERGED_COMPAT: Final = ("openRouterRouting", "vercelGatewayRouting", "chatTemplateKwargs", "chatTemplateArgs")
"""Compat values that merge per key; all others replace (MOD-55)."""

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
    given_keys: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    """Provider id to a key that comes before all others and is never stored (MOD-72); looked at whenever a key is needed."""


@attrs.define(kw_only=True)
class _Entry:
    """What is known of a provider while layers are laid over each other."""

    name: str
    models: dict[str, Model] = attrs.field(factory=dict)
    api_key: str | None = attrs.field(default=None, repr=False)
    headers: dict[str, str] = attrs.field(factory=dict, repr=False)
    model_headers: dict[str, dict[str, str]] = attrs.field(factory=dict, repr=False)
    level_params: dict[str, FrozenDict] = attrs.field(factory=dict)
    """Model id to `samplingParamsByThinkingLevel`."""


def load_providers(
    agent_dir: str | Path, environment: Mapping[str, str], world: World, settings: ProviderSettings | None = None, tell: Tell | None = None
) -> tuple[WireProvider, ...]:
    """All providers, built-in ones first; those without credentials say so in `configured()`.

    `tell` gets each fault and each oddity as a text; without it the first fault raises ModelsFileError.
    """
    chosen = settings or ProviderSettings()
    say, warn = tell or _raise, tell or _ignore
    entries = {name: _Entry(name=name, models={model.id: model for model in models}) for name, models in _builtin(environment).items()}
    for name, raw in _configured(Path(agent_dir) / MODELS_FILE, chosen.read, say).items():
        try:
            entries[name] = _merged(entries.get(name), name, raw)
        except ModelsFileError as error:
            say(str(error))
        for warning in _oddities(name, raw, entries.get(name)):
            warn(warning)
    stored = _stored(Path(agent_dir) / AUTH_FILE, chosen.read, say)
    run = shell(world.processes, environment, str(agent_dir))
    keys = [_Keys(entry=entry, stored=stored.get(entry.name), environment=environment, run=run) for entry in entries.values()]
    return tuple([_provider(each, world, chosen) for each in keys])


def model_from_json(raw: Mapping[str, Any], provider: str) -> Model:
    """A model of a valid `models.json` entry whose api and base url are filled in (MOD-1); headers are left out (MOD-56)."""
    cost = raw.get("cost", EMPTY)
    tiers = tuple([Tier(input_tokens_above=tier.get("inputTokensAbove", 0), **_rates(tier)) for tier in cost.get("tiers", ())])
    return Model(
        id=raw["id"],
        provider=provider,
        api=raw["api"],
        name=raw.get("name", raw["id"]),
        base_url=raw["baseUrl"],
        input=tuple(raw.get("input", ("text",))),
        cost=Rates(**_rates(cost), tiers=tiers),
        reasoning=raw.get("reasoning", False),
        input_limits=freeze(raw.get("inputLimits", EMPTY)),
        thinking_level_map=freeze(raw.get("thinkingLevelMap", EMPTY)),
        prompt_cache=freeze(raw.get("promptCache", EMPTY)),
        context_window=raw.get("contextWindow", 128_000),
        max_tokens=raw.get("maxTokens", 16_384),
        sampling_params=freeze(raw.get("samplingParams", EMPTY)),
        sampling_params_by_thinking_level=freeze(raw.get("samplingParamsByThinkingLevel", EMPTY)),
        compat=freeze(raw.get("compat", EMPTY)),
    )


# -- layers ------------------------------------------------------------------------------


def _builtin(environment: Mapping[str, str]) -> dict[str, tuple[Model, ...]]:
    done = {}
    for name, models in BUILTIN.items():
        url = environment.get(ENVIRONMENT_URLS.get(name, ""), "").strip()
        done[name] = tuple([attrs.evolve(model, base_url=url) for model in models]) if url else models
    return done


def _merged(known: _Entry | None, name: str, raw: Mapping[str, Any]) -> _Entry:
    """`known` with an entry of the file over it (MOD-53). Raises ModelsFileError for what makes no sense (MOD-52)."""
    if not any(raw.get(field) for field in ("baseUrl", "headers", "compat", "modelOverrides", "models")):
        raise ModelsFileError(f'Provider {name}: must specify "baseUrl", "headers", "compat", "modelOverrides", or "models".')
    entry = known or _Entry(name=name)
    changed = {"base_url": raw["baseUrl"]} if "baseUrl" in raw else {}
    models = {
        id: attrs.evolve(model, compat=_compat(model.compat, raw.get("compat", EMPTY)), **changed) for id, model in entry.models.items()
    }
    done = _Entry(name=name, models=models, api_key=raw.get("apiKey"), headers=dict(raw.get("headers", EMPTY)))
    for model in raw.get("models", ()):
        models[model["id"]] = _own_model(name, model, raw, entry.models.get(model["id"]))
        done.model_headers[model["id"]] = dict(model.get("headers", EMPTY))
        done.level_params[model["id"]] = freeze(model.get("samplingParamsByThinkingLevel", EMPTY))
    for id, override in raw.get("modelOverrides", EMPTY).items():
        if id in models:
            models[id] = _overridden(models[id], override)
            done.model_headers.setdefault(id, {}).update(override.get("headers", EMPTY))
            done.level_params[id] = models[id].sampling_params_by_thinking_level
    return done


def _own_model(name: str, raw: Mapping[str, Any], provider: Mapping[str, Any], replaced: Model | None) -> Model:
    id = raw["id"]
    api = raw.get("api") or provider.get("api") or (replaced.api if replaced else None)
    if not api:
        raise ModelsFileError(f'Provider {name}, model {id}: no "api" specified. Set at provider or model level.')
    if api != API:
        raise ModelsFileError(f"Provider {name}, model {id}: No API provider registered for api: {api}")
    base_url = raw.get("baseUrl") or provider.get("baseUrl") or (replaced.base_url if replaced else None)
    if not base_url:
        raise ModelsFileError(f'Provider {name}: "baseUrl" is required when defining custom models.')
    for field in ("contextWindow", "maxTokens"):
        if field in raw and raw[field] <= 0:
            raise ModelsFileError(f"Provider {name}, model {id}: invalid {field} {raw[field]!r}; expected a number above 0")
    compat = _compat(freeze(provider.get("compat", EMPTY)), raw.get("compat", EMPTY))
    return model_from_json({**raw, "api": api, "baseUrl": base_url, "compat": compat}, name)


def _overridden(model: Model, raw: Mapping[str, Any]) -> Model:
    """Single fields replaced; objects merge (MOD-55)."""
    fields: dict[str, Any] = {}
    names = {"name": "name", "reasoning": "reasoning", "contextWindow": "context_window", "maxTokens": "max_tokens"}
    fields.update({python: raw[json] for json, python in names.items() if json in raw})
    if "input" in raw:
        fields["input"] = tuple(raw["input"])
    if "cost" in raw:
        cost, old = raw["cost"], model.cost
        own = {"input": old.input, "output": old.output, "cacheRead": old.cache_read, "cacheWrite": old.cache_write}
        tiers = old.tiers
        if "tiers" in cost:
            tiers = tuple([Tier(input_tokens_above=tier.get("inputTokensAbove", 0), **_rates(tier)) for tier in cost["tiers"]])
        fields["cost"] = Rates(**_rates({**own, **cost}), tiers=tiers)
    for json, python in (
        ("thinkingLevelMap", "thinking_level_map"),
        ("promptCache", "prompt_cache"),
        ("samplingParams", "sampling_params"),
    ):
        if json in raw:
            fields[python] = freeze({**getattr(model, python), **raw[json]})
    if "inputLimits" in raw:
        fields["input_limits"] = _deep(model.input_limits, raw["inputLimits"], 2)
    if "samplingParamsByThinkingLevel" in raw:
        by_level = _deep(model.sampling_params_by_thinking_level, raw["samplingParamsByThinkingLevel"], 1)
        fields["sampling_params_by_thinking_level"] = by_level
    if "compat" in raw:
        fields["compat"] = _compat(model.compat, raw["compat"])
    return attrs.evolve(model, **fields)


def _compat(below: FrozenDict, above: Mapping[str, Any]) -> FrozenDict:
    merged = {name: {**below[name], **above[name]} for name in MERGED_COMPAT if _are_objects(below.get(name), above.get(name))}
    frozen: FrozenDict = freeze({**below, **above, **merged})
    return frozen


def _are_objects(*values: object) -> bool:
    return all(isinstance(value, Mapping) for value in values)


def _deep(below: Mapping[str, Any], above: Mapping[str, Any], depth: int) -> FrozenDict:
    """Objects merge down to `depth` levels beneath this one; anything else replaces."""
    both = [name for name in above if depth > 0 and _are_objects(below.get(name), above[name])]
    frozen: FrozenDict = freeze({**below, **above, **{name: _deep(below[name], above[name], depth - 1) for name in both}})
    return frozen


def _rates(raw: Mapping[str, Any]) -> dict[str, float]:
    names = {"input": "input", "output": "output", "cacheRead": "cache_read", "cacheWrite": "cache_write"}
    return {python: raw.get(json, 0) for json, python in names.items()}


# -- providers ---------------------------------------------------------------------------


@attrs.frozen(kw_only=True, eq=False)
class _Keys:
    """How the requests of one provider are authorized."""

    entry: _Entry
    stored: Mapping[str, Any] | None = attrs.field(repr=False)
    environment: Mapping[str, str] = attrs.field(repr=False)
    run: RunCommand = attrs.field(repr=False)

    @property
    def is_foreign(self) -> bool:
        """Whether a stored credential of a kind we cannot use owns the provider (MOD-73)."""
        return self.stored is not None and self.stored.get("type") != "api_key"

    @property
    def needs_key(self) -> bool:
        """Known vendors do; a provider of the file without key is one that needs none, a local server for example."""
        return self.entry.name in BUILTIN or self.entry.name in ENVIRONMENT_KEYS

    @property
    def scoped(self) -> Mapping[str, str]:
        """The environment; what is stored beside a key wins (MOD-63)."""
        own = self.stored.get("env") if self.stored else None
        return {**self.environment, **own} if isinstance(own, Mapping) else self.environment

    def is_configured(self) -> bool:
        """Runs no command (MOD-77)."""
        template = _key_template(self.entry, self.stored, self.scoped)
        if self.is_foreign:
            return False
        return not missing_variables(template, self.scoped) if template is not None else not self.needs_key

    async def resolve(self, model: Model) -> Auth:
        """Key and headers of one request. Raises AuthUnresolved."""
        entry, scoped = self.entry, self.scoped
        if self.is_foreign:
            raise AuthUnresolved(f"Provider is not configured: {entry.name}")
        template = _key_template(entry, self.stored, scoped)
        key = None if template is None else await resolved(template, f'API key for provider "{entry.name}"', scoped, self.run)
        headers: dict[str, str | None] = {}
        for name, value in entry.headers.items():
            headers[name.lower()] = await resolved(value, f'provider "{entry.name}" header "{name}"', scoped, self.run)
        for name, value in entry.model_headers.get(model.id, {}).items():
            headers[name.lower()] = await resolved(value, f'model "{entry.name}/{model.id}" header "{name}"', scoped, self.run)
        known = entry.models.get(model.id)
        return Auth(api_key=key, headers=headers, base_url=known.base_url if known else None)


def _provider(keys: _Keys, world: World, settings: ProviderSettings) -> WireProvider:
    entry = keys.entry
    return WireProvider(
        name=entry.name,
        apis=WIRE_APIS,
        models=tuple([attrs.evolve(model, base_url=_without_password(model.base_url)) for model in entry.models.values()]),
        http=world.http,
        resolve=keys.resolve,
        is_configured=keys.is_configured,
        needs_key=keys.needs_key,
        limits=settings.limits,
        identity=settings.identity,
        level_params=entry.level_params,
        clock=world.clock.now_ms,
        chance=settings.chance,
    )


def _key_template(entry: _Entry, stored: Mapping[str, Any] | None, environment: Mapping[str, str]) -> str | None:
    """Where the key comes from (MOD-72); None if there is none."""
    if stored is not None and isinstance(stored.get("key"), str):
        template: str = stored["key"]
        return template
    if entry.api_key is not None:
        return entry.api_key
    found = next((name for name in ENVIRONMENT_KEYS.get(entry.name, ()) if environment.get(name, "").strip()), None)
    return f"${{{found}}}" if found else None


def _without_password(url: str) -> str:
    """A url that may be shown; the whole one goes to the request only."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if "@" in parts.netloc else url


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


def _stored(path: Path, read: Read, say: Tell) -> Mapping[str, Mapping[str, Any]]:
    """Stored credentials by provider (MOD-70). No text of the file is ever told."""
    try:
        value = loads(read(path))
    except FileNotFoundError:
        return EMPTY
    except (OSError, MalformedJson):
        say(f"Failed to load auth.json: expected a readable JSON object\n\nFile: {path}")
        return EMPTY
    if not isinstance(value, dict):
        say(f"Invalid auth.json: expected an object of credentials by provider\n\nFile: {path}")
        return EMPTY
    return {name: credential for name, credential in value.items() if isinstance(credential, dict)}


def _oddities(name: str, raw: Mapping[str, Any], entry: _Entry | None) -> list[str]:
    """What of an entry can hardly be meant: misspelt keys, no models where no vendor has any."""
    found = [f'Provider "{name}": {each}' for each in misspelt(raw)]
    if entry is not None and not entry.models and name not in BUILTIN and name not in ENVIRONMENT_KEYS:
        found.append(f'Provider "{name}": it has no models, so none can be chosen; list them under "models"')
    return found


def _ignore(_text: str) -> None:
    """For hosts that asked for faults only."""


def _raise(text: str) -> None:
    raise ModelsFileError(text)
