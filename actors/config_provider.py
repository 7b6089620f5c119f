"""From the config form of a provider registration to a provider (PRV-1, PRV-10 to PRV-16, PRV-22).

A config says what differs: an endpoint, a key, headers, other models, or a stream of the extension's
own. How a request is sent to an API is the host's affair: it hands in `BuildProvider`, which makes an
adapter of a config whose fields are filled in, or None if it knows no such API.
"""

from collections.abc import Callable, Iterable, Mapping
from inspect import isasyncgen
from typing import Any, Final, Literal

import attrs

from camshaft.actors.actor import is_awaitable
from camshaft.actors.misuse import ExtensionMisuse, require_callable
from camshaft.actors.provider_auth import AuthStatus, OAuthConfig, OAuthPort, RequestAuth, oauth_config
from camshaft.actors.providers import Emit, ModelRequest, Provider
from camshaft.kernel import codec, shapes
from camshaft.kernel.errors import CodecError
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import FrozenDict, freeze
from camshaft.kernel.stream import Ended, StreamItem
from camshaft.kernel.tools import Signal

RefreshAuth = Literal["credential", "configured"]

StreamSimple = Callable[[ModelRequest, Signal], Any]
"""`stream_simple(request, signal)`: an async generator of stream items, ending with `Ended`."""

DEFAULT_API: Final = "openai-completions"
"""Chosen from an existing provider's models when nothing says more (PRV-10)."""


@shapes.frozen(kw_only=True)
class ProviderConfig:
    """What is registered under a provider id; None leaves what is there (PRV-12)."""

    name: str | None = None
    """Display name."""
    base_url: str | None = None
    """Endpoint; alone it redirects the existing models."""
    api_key: str | None = attrs.field(default=None, repr=False)
    """A literal, `$VARIABLE` or `!command` (MOD-60)."""
    api: str | None = None
    """Of models without their own."""
    headers: FrozenDict | None = attrs.field(default=None, repr=False)
    """Names to texts, which may be templates like the key."""
    auth_header: bool | None = None
    """True: the key is sent as `Authorization: Bearer`."""
    models: tuple[Any, ...] | None = None
    """Replace all models: Model objects or dicts of their fields, without `provider`."""
    stream_simple: StreamSimple | None = attrs.field(default=None, repr=False)
    """Answers requests instead of the API."""
    oauth: OAuthConfig | None = attrs.field(default=None, repr=False)
    """A login for it: `OAuthConfig(...)` or a dict of its fields."""
    refresh_models: Callable[..., Any] | None = attrs.field(default=None, repr=False)
    """`refresh_models(context)` gives the list of models that is shown from now on, as in `models`, or None for no change (PRV-17)."""
    images: Mapping[str, Callable[..., Any]] | None = attrs.field(default=None, repr=False)
    """API id to `generate_images(request)`, for image models (STR-43)."""
    classifiers: Mapping[str, Callable[..., Any]] | None = attrs.field(default=None, repr=False)
    """API id to `classify(request)`, for classifier models (STR-43)."""
    refresh_models_auth: RefreshAuth | None = None
    """`credential`, the default: a login that ended is renewed before the network is asked; `configured`: it is not (PRV-18)."""


@shapes.frozen(kw_only=True)
class BuildRequest:
    """What the host makes an adapter of."""

    name: str
    config: ProviderConfig
    models: tuple[Model, ...]
    """What it shall serve, every field filled in."""
    base: Provider | None
    """The host's own provider of that id, whose key and headers stay where the config has none."""
    oauth: OAuthPort | None = None
    """The login of the config."""


BuildProvider = Callable[[BuildRequest], Provider | None]
"""An adapter; None if it cannot serve the api of these models."""


def merged_config(name: str, known: ProviderConfig | None, given: ProviderConfig | Mapping[str, Any]) -> ProviderConfig:
    """The earlier config of that id with what is given now over it (PRV-12). Raises ExtensionMisuse for a wrong field."""
    made = given if isinstance(given, ProviderConfig) else _config(name, given)
    if made.stream_simple is not None:
        require_callable(made.stream_simple, f"stream_simple of provider {name!r}")
    if known is None:
        return made
    fields = {each.name: getattr(made, each.name) for each in attrs.fields(ProviderConfig)}
    return attrs.evolve(known, **{field: value for field, value in fields.items() if value is not None})


def configured_provider(name: str, config: ProviderConfig, base: Provider | None, build: BuildProvider | None) -> Provider:
    """The provider of a config over the host's own of that id. Raises ExtensionMisuse for what is missing (PRV-10)."""
    if config.stream_simple is not None and config.api is None:
        raise ExtensionMisuse(f'Provider {name}: "api" is required when registering streamSimple.')
    models = _models(name, config, base)
    oauth = None if config.oauth is None else OAuthPort(name, config.oauth)
    adapter = None if build is None else build(BuildRequest(name=name, config=config, models=models, base=base, oauth=oauth))
    if adapter is None and oauth is not None:
        raise ExtensionMisuse(f"Provider {name}: this host keeps no logins, so it takes no oauth")
    is_served = config.stream_simple is not None or config.images is not None or config.classifiers is not None
    if adapter is None and not is_served and (base is None or config.models is None):
        apis = ", ".join(sorted({model.api for model in models})) or "none"
        raise ExtensionMisuse(f"Provider {name}: this host has no adapter that takes a config (api: {apis}); register a provider object")
    return ConfigProvider(name=name, models=models if adapter is None else adapter.models, config=config, adapter=adapter, base=base)


@shapes.frozen(kw_only=True, eq=False)
class ConfigProvider:
    """A provider made of a config; which part of it answers a request is said in PRV-15."""

    name: str
    models: tuple[Model, ...]
    config: ProviderConfig
    adapter: Provider | None
    base: Provider | None

    @property
    def api(self) -> str:
        """The config's, else that of its first model."""
        return self.config.api or (self.models[0].api if self.models else DEFAULT_API)

    def configured(self) -> bool:
        """As the adapter says; a stream of the extension's own needs nothing."""
        return True if self.adapter is None else self.adapter.configured()

    async def stream(self, request: ModelRequest, signal: Signal, emit: Emit) -> None:
        """The answer of the extension's stream, of the adapter, or of the host's own provider (PRV-15)."""
        if self._is_streamed(request.model):
            assert self.config.stream_simple is not None
            await streamed(self.config.stream_simple, request, signal, emit)
            return
        adapter = self.adapter_of(request.model)
        if adapter is None:
            raise ExtensionMisuse(f"No API provider registered for api: {request.model.api}")
        await adapter.stream(request, signal, emit)

    def adapter_of(self, model: Model) -> Provider | None:
        """Which adapter serves a model; None if that is a stream of the extension's own, or nobody."""
        if self._is_streamed(model):
            return None
        if self.adapter is not None and speaks(self.adapter, model.api):
            return self.adapter
        return self.base if self.base is not None and any([each.api == model.api for each in self.base.models]) else None

    def other_apis(self, kind: str, api: str) -> Callable[..., Any] | None:
        """Who asks an image or classifier model of that api: the config's function, else the provider that it lies over."""
        own = self.config.images if kind == "image" else self.config.classifiers
        if own is not None and api in own:
            return own[api]
        below: Callable[..., Any] | None = getattr(self.base, "generate_images" if kind == "image" else "classify", None)
        return below

    def _is_streamed(self, model: Model) -> bool:
        return self.config.stream_simple is not None and model.api == self.config.api

    @property
    def display_name(self) -> str | None:
        """The config's, else that of the provider it lies over."""
        return self.config.name or getattr(self.base, "display_name", None)

    def auth_status(self) -> AuthStatus:
        """As the adapter says."""
        status = getattr(self.adapter or self.base, "auth_status", None)
        return AuthStatus(configured=self.configured()) if status is None else status()

    async def credential(self) -> Any:
        """The login that is stored for it, renewed; None if there is none."""
        credential = getattr(self.adapter, "credential", None)
        return None if credential is None else await credential()

    async def resolve(self, model: Model) -> Any:
        """As the adapter says; nothing where a stream of the extension's own needs nothing."""
        resolve = getattr(self.adapter or self.base, "resolve", None)
        return RequestAuth(ok=True) if resolve is None else await resolve(model)


def speaks(provider: Provider, api: str) -> bool:
    """Whether an adapter can ask models of that api; one that does not say takes what it is given."""
    known = getattr(provider, "speaks", None)
    return True if known is None else bool(known(api))


async def streamed(stream: StreamSimple, request: ModelRequest, signal: Signal, emit: Emit) -> None:
    """Passes on the items of an extension's stream. One that stops without `Ended` is the kernel's affair (STR-35)."""
    items = stream(request, signal)
    if is_awaitable(items):
        items = await items
    try:
        async for item in items:
            if not isinstance(item, StreamItem):
                raise ExtensionMisuse(f"stream_simple gave {item!r}; expected stream items, like TextDelta(...)")
            await emit(item)
            if isinstance(item, Ended):
                return
    finally:
        if isasyncgen(items):
            await items.aclose()


def _config(name: str, given: Mapping[str, Any]) -> ProviderConfig:
    known = [each.name for each in attrs.fields(ProviderConfig)]
    unknown = [field for field in given if field not in known]
    if unknown:
        raise ExtensionMisuse(f"Provider {name}: no field {unknown[0]!r}; expected {', '.join(known)}")
    made = dict(given)
    for field in ("name", "base_url", "api_key", "api"):
        if not isinstance(made.get(field), str | None):
            raise ExtensionMisuse(f"Provider {name}: {field} {made[field]!r}; expected a text")
    if made.get("oauth") is not None:
        made["oauth"] = oauth_config(name, made["oauth"])
    if made.get("refresh_models") is not None:
        require_callable(made["refresh_models"], f"refresh_models of provider {name!r}")
    if made.get("refresh_models_auth") not in (None, "credential", "configured"):
        raise ExtensionMisuse(f"Provider {name}: refresh_models_auth {made['refresh_models_auth']!r}; expected credential or configured")
    for field in ("images", "classifiers"):
        if made.get(field) is not None:
            made[field] = _functions(name, field, made[field])
    if made.get("headers") is not None:
        made["headers"] = freeze(made["headers"], "headers")
    if made.get("models") is not None:
        if isinstance(made["models"], str | Mapping):
            raise ExtensionMisuse(f"Provider {name}: models {made['models']!r}; expected a list")
        made["models"] = tuple(made["models"])
    return ProviderConfig(**made)


def _functions(name: str, field: str, given: object) -> Any:
    if not isinstance(given, Mapping):
        raise ExtensionMisuse(f"Provider {name}: {field} {type(given).__name__}; expected a dict of functions by API id")
    for api, function in given.items():
        require_callable(function, f"{field}[{api!r}] of provider {name!r}")
    return dict(given)


def models_of(name: str, config: ProviderConfig, base: Provider | None, given: Iterable[object]) -> tuple[Model, ...]:
    """Models that an extension gives, with what they leave out. Raises ExtensionMisuse (PRV-10)."""
    existing = () if base is None else base.models
    return tuple([_model(name, config, existing, each) for each in given])


def _models(name: str, config: ProviderConfig, base: Provider | None) -> tuple[Model, ...]:
    existing = () if base is None else base.models
    if config.models is None:
        return tuple([attrs.evolve(model, base_url=config.base_url or model.base_url) for model in existing])
    return models_of(name, config, base, config.models)


def _model(name: str, config: ProviderConfig, existing: tuple[Model, ...], given: Any) -> Model:
    """One model with api and endpoint from itself, the config, or what is known of the provider (PRV-10)."""
    fields = {"provider": name, **given} if isinstance(given, Mapping) else {**_fields(given, name), "provider": name}
    model_id = fields.get("id")
    same = next((model for model in existing if model.id == model_id), None)
    is_chat = fields.get("type", "chat") == "chat"
    usual = (config.api or (same.api if same is not None else _usual_api(existing))) if is_chat else same and same.api
    api = fields.get("api") or usual
    if not api:
        places = "at model level or provider level" if is_chat else "at model level"
        raise ExtensionMisuse(f'Provider {name}, model {model_id}: no "api" specified. Set it {places}.')
    base_url = (
        fields.get("base_url") or config.base_url or (same or existing[0]).base_url
        if existing
        else fields.get("base_url") or config.base_url
    )
    if not base_url and config.stream_simple is None:
        raise ExtensionMisuse(f'Provider {name}: "baseUrl" is required when defining custom models.')
    try:
        return codec.python(Model, {**fields, "api": api, "base_url": base_url or ""})
    except CodecError as error:
        raise ExtensionMisuse(f"Provider {name}, model {model_id}: {error}") from None


def _fields(given: object, name: str) -> dict[str, Any]:
    if not isinstance(given, Model):
        raise ExtensionMisuse(f"Provider {name}: model {given!r}; expected Model(...) or a dict of its fields")
    return {each.name: getattr(given, each.name) for each in attrs.fields(Model)}


def _usual_api(existing: tuple[Model, ...]) -> str | None:
    apis = [model.api for model in existing]
    return DEFAULT_API if DEFAULT_API in apis else (apis[0] if apis else None)
