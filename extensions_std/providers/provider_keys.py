"""Whose key it is: the sources of a provider's credentials, in their order (MOD-60 to MOD-63, MOD-72 to MOD-74, MOD-79).

A key comes from what was given for this process, else from `auth.json`, else from `models.json` or an extension, else from
the environment. The first source that has anything decides: a stored key that does not resolve is an error, because silently
using another one would be a surprise (MOD-74). Keys and headers are resolved at each request, never kept on a model, never shown.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import trio

from camshaft.actors.api import EMPTY, Model, RequestOptions
from camshaft.actors.host import AuthStatus, OAuthPort
from camshaft.extensions_std.providers.auth_store import AuthStore
from camshaft.extensions_std.providers.config_values import RunCommand, missing_variables, resolved
from camshaft.extensions_std.providers.credentials import Auth, AuthUnresolved, shown_url

BEARER: Final = "ANTHROPIC_AUTH_TOKEN"
"""Its value is sent as `Authorization: Bearer`, not as a key (MOD-79)."""

ENVIRONMENT_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "anthropic": (BEARER, "ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_API_KEY"),
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
    "azure-openai": ("AZURE_OPENAI_API_KEY",),
    "llama-cpp": ("LLAMA_API_KEY",),
}
"""Provider id to the variables its key may stand in; the first that is not blank wins (MOD-79)."""

NO_OPTIONS: Final = RequestOptions()

Resolve = Callable[[Model, RequestOptions], Awaitable[Auth]]


@attrs.define(eq=False)
class ProcessKeys:
    """What one process knows about keys and never stores; it outlives a reload."""

    given: dict[str, str] = attrs.field(factory=dict, repr=False)
    """Provider id to a key that comes before all others."""
    _outputs: dict[str, str | None] = attrs.field(factory=dict, repr=False)
    """What commands of `auth.json` printed; None: they failed (MOD-62)."""
    _lock: trio.Lock = attrs.field(factory=trio.Lock, repr=False)

    async def run_once(self, command: str, run: RunCommand) -> str | None:
        """What the command printed when it was run first."""
        async with self._lock:
            if command not in self._outputs:
                self._outputs[command] = await run(command)
        return self._outputs[command]


@attrs.frozen(kw_only=True, eq=False)
class KeyRing:
    """Where the keys of all providers come from."""

    store: AuthStore
    environment: Mapping[str, str] = attrs.field(repr=False)
    run: RunCommand = attrs.field(repr=False)
    process: ProcessKeys = attrs.field(factory=ProcessKeys)

    async def run_once(self, command: str) -> str | None:
        """For commands of `auth.json` (MOD-62)."""
        return await self.process.run_once(command, self.run)


@attrs.frozen
class _Key:
    """The key that decides."""

    status: AuthStatus
    template: str | None = attrs.field(default=None, repr=False)
    run: RunCommand | None = attrs.field(default=None, repr=False)
    is_bearer: bool = False


@attrs.frozen(kw_only=True, eq=False)
class ProviderKeys:
    """How the requests of one provider are authorized."""

    name: str
    ring: KeyRing
    api_key: str | None = attrs.field(default=None, repr=False)
    """Template, of `models.json` or an extension."""
    headers: Mapping[str, str] = attrs.field(default=EMPTY, repr=False)
    """Templates."""
    model_headers: Mapping[str, Mapping[str, str]] = attrs.field(default=EMPTY, repr=False)
    """Templates by the id of a model (MOD-56)."""
    urls: Mapping[str, str] = attrs.field(default=EMPTY, repr=False)
    """A base url as models show it, to the whole one, with its password."""
    adds_bearer: bool = False
    """Whether the key is sent as `Authorization: Bearer` besides (`authHeader`)."""
    needs_key: bool = False
    """Whether it cannot be used without one; a server of one's own can."""
    fallback_key: str | None = attrs.field(default=None, repr=False)
    """When there is no other."""
    oauth: OAuthPort | None = None
    below: Resolve | None = attrs.field(default=None, repr=False)
    """Of the provider that this one lies over, if that is not made of such keys."""
    is_below_configured: Callable[[], bool] = attrs.field(default=lambda: True, repr=False)

    @property
    def scoped(self) -> Mapping[str, str]:
        """The environment; what is stored beside a key wins (MOD-63)."""
        own = (self.ring.store.credential(self.name) or EMPTY).get("env")
        texts = {name: value for name, value in own.items() if isinstance(value, str)} if isinstance(own, Mapping) else EMPTY
        return {**self.ring.environment, **texts}

    def status(self) -> AuthStatus:
        """Without running or renewing anything (MOD-77, PRV-14)."""
        return self._deciding().status

    def is_configured(self) -> bool:
        """Whether there are credentials, or none are needed."""
        return self.status().configured

    async def resolve(self, model: Model, options: RequestOptions = NO_OPTIONS) -> Auth:
        """Key and headers of one request; what its options give comes before all else. Raises AuthUnresolved."""
        scoped = {**self.scoped, **options.env}
        deciding = self._deciding(scoped) if options.api_key is None else _Key(AuthStatus(configured=True), _literal(options.api_key))
        auth = Auth()
        if deciding.status.is_oauth:
            auth = Auth(api_key=await self._login_key())
        elif deciding.template is not None:
            key = await resolved(deciding.template, f'API key for provider "{self.name}"', scoped, deciding.run or self.ring.run)
            auth = Auth(headers={"authorization": f"Bearer {key}"}) if deciding.is_bearer else Auth(api_key=key)
        elif self.ring.store.credential(self.name) is not None:
            raise AuthUnresolved(f"Provider is not configured: {self.name}")
        elif self.below is not None:
            auth = await self.below(model, options)
        headers = dict(auth.headers)
        if self.adds_bearer:
            if not auth.api_key and "authorization" not in headers:
                raise AuthUnresolved("authHeader requires a resolved API key")
            headers.setdefault("authorization", f"Bearer {auth.api_key}")
        for name, value in self.headers.items():
            headers[name.lower()] = await resolved(value, f'provider "{self.name}" header "{name}"', scoped, self.ring.run)
        for name, value in self.model_headers.get(model.id, EMPTY).items():
            headers[name.lower()] = await resolved(value, f'model "{self.name}/{model.id}" header "{name}"', scoped, self.ring.run)
        return attrs.evolve(auth, headers=headers, base_url=self.urls.get(model.base_url) or model.base_url or auth.base_url)

    async def credential(self) -> Mapping[str, Any] | None:
        """The login that is stored, renewed; None if there is none that can be used. Raises ProviderFailed (PRV-18)."""
        if self.oauth is None or not self._deciding().status.is_oauth:
            return None
        return await self.ring.store.fresh(self.name, self.oauth.refresh)

    async def _login_key(self) -> str:
        assert self.oauth is not None
        return await self.oauth.api_key(await self.ring.store.fresh(self.name, self.oauth.refresh))

    def _deciding(self, environment: Mapping[str, str] | None = None) -> _Key:
        """The first source that has anything; `environment` instead of the one there is."""
        scoped = self.scoped if environment is None else environment
        given = self.ring.process.given.get(self.name)
        if given is not None:
            return _Key(AuthStatus(configured=True, source="runtime"), _literal(given))
        stored = self.ring.store.credential(self.name)
        if stored is not None:
            decided = self._stored(stored, scoped)
            if decided is not None:
                return decided
        if self.api_key is not None:
            source: Any = "models_json_command" if self.api_key.startswith("!") else "models_json_key"
            return _Key(AuthStatus(configured=not missing_variables(self.api_key, scoped), source=source), self.api_key)
        variable = next((name for name in ENVIRONMENT_KEYS.get(self.name, ()) if scoped.get(name, "").strip()), None)
        if variable is not None:
            status = AuthStatus(configured=True, source="environment", label=variable)
            return _Key(status, f"${{{variable}}}", is_bearer=variable == BEARER)
        if self.fallback_key is not None:
            return _Key(AuthStatus(configured=True, source="fallback"), _literal(self.fallback_key))
        is_free = not self.needs_key and stored is None
        return _Key(AuthStatus(configured=self.is_below_configured() if is_free and self.below is not None else is_free))

    def _stored(self, stored: Mapping[str, Any], scoped: Mapping[str, str]) -> _Key | None:
        """None: only variables for other sources are stored."""
        if stored.get("type") == "oauth":
            usable = self.oauth is not None
            label = None if self.oauth is None else self.oauth.config.name
            return _Key(AuthStatus(configured=usable, source="stored", label=label, is_oauth=usable))
        key = stored.get("key")
        if stored.get("type") == "api_key" and isinstance(key, str):
            return _Key(AuthStatus(configured=not missing_variables(key, scoped), source="stored"), key, self.ring.run_once)
        if stored.get("type") == "api_key" and key is None and isinstance(stored.get("env"), Mapping):
            return None
        return _Key(AuthStatus(configured=False, source="stored"))


def _literal(key: str) -> str:
    """A template that means this text."""
    escaped = key.replace("$", "$$")
    return f"$!{escaped[1:]}" if escaped.startswith("!") else escaped


def shown_models(models: Sequence[Model]) -> tuple[tuple[Model, ...], dict[str, str]]:
    """The models with urls that may be shown, and what these stand for."""
    shown = [attrs.evolve(model, base_url=shown_url(model.base_url)) for model in models]
    return tuple(shown), {each.base_url: whole.base_url for each, whole in zip(shown, models, strict=True)}
