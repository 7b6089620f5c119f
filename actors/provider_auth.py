"""What a provider may say about its credentials, and the login that an extension brings for one (MOD-40, MOD-72 to MOD-78).

A provider object may have, besides what the port asks for:

    auth_status()           whether it has credentials and where they come from, as an `AuthStatus`
    resolve(model)          key, headers and url of a request; async, an object with `api_key`, `headers`, `base_url`
    refresh_models(ctx)     its new list of models, or None for the one it has (PRV-17)

The functions of an extension's login run through `OAuthPort`, so that nothing they raise, and no token in it, gets further.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import attrs
import trio

from camshaft.actors.actor import Cut, Failure, guard, guard_now
from camshaft.actors.errors import CamshaftError
from camshaft.actors.login_interaction import LoginInteraction
from camshaft.actors.misuse import ExtensionMisuse, require_callable
from camshaft.actors.signal import AbortSignal
from camshaft.kernel import shapes
from camshaft.kernel.models import Model

REFRESH_LIMIT_S: Final = 15.0
"""For a token to be renewed (MOD-75)."""

Source = Literal["runtime", "stored", "environment", "models_json_key", "models_json_command", "fallback"]


@shapes.frozen(kw_only=True)
class AuthStatus:
    """Whether a provider can be used, without asking anybody (MOD-40)."""

    configured: bool
    source: Source | None = None
    """Where its key comes from; None: there is none, or it is not said."""
    label: str | None = None
    """More about that: the name of a variable, of a login."""
    is_oauth: bool = False
    """Whether it is a login, not a key."""


@shapes.frozen(kw_only=True)
class RequestAuth:
    """What authorizes a request, or why there is nothing (MOD-40). Nothing of it is in the repr but the error."""

    ok: bool
    api_key: str | None = attrs.field(default=None, repr=False)
    headers: Mapping[str, str | None] = attrs.field(factory=dict, repr=False)
    base_url: str | None = attrs.field(default=None, repr=False)
    error: str | None = None


@shapes.frozen(kw_only=True)
class ProviderAuth:
    """What authorizes the requests of a provider (MOD-40). Nothing secret is in the repr."""

    api_key: str | None = attrs.field(default=None, repr=False)
    headers: Mapping[str, str | None] = attrs.field(factory=dict, repr=False)
    base_url: str | None = attrs.field(default=None, repr=False)
    source: Source | None = None
    """As in `AuthStatus`."""


ErrorCode = Literal["provider", "auth", "oauth", "stream", "model_source"]


class ProviderFailed(CamshaftError):
    """Something about a provider could not be done (MOD-80); the text has the cause, never a secret."""

    def __init__(self, code: ErrorCode, why: str) -> None:
        super().__init__(why)
        self.code = code


@shapes.frozen(kw_only=True)
class OAuthConfig:
    """A login that an extension brings for its provider (PRV-10)."""

    name: str
    """As people know it."""
    login: Callable[..., Any] = attrs.field(repr=False)
    """`login(interaction)`, with a `LoginInteraction` to talk to the person, gives the credential: a dict with `access`,
    `refresh`, `expires` (ms since the epoch) and what else is kept."""
    refresh_token: Callable[..., Any] = attrs.field(repr=False)
    """`refresh_token(credential, signal)` gives the new credential."""
    get_api_key: Callable[..., Any] = attrs.field(repr=False)
    """`get_api_key(credential)` gives the key of requests."""
    modify_models: Callable[..., Any] | None = attrs.field(default=None, repr=False)
    """`modify_models(models, credential)` gives the models for somebody who is logged in; not async."""
    is_subscription: bool = False


def oauth_config(provider: str, given: object) -> OAuthConfig:
    """Raises ExtensionMisuse for what is missing or wrong."""
    if isinstance(given, OAuthConfig):
        return given
    if not isinstance(given, Mapping):
        raise ExtensionMisuse(f"Provider {provider}: oauth {type(given).__name__}; expected OAuthConfig(...) or a dict of its fields")
    known = {each.name: each for each in attrs.fields(OAuthConfig)}
    unknown = [name for name in given if name not in known]
    missing = [name for name, each in known.items() if each.default is attrs.NOTHING and name not in given]
    if unknown or missing:
        what = f"no field {unknown[0]!r}" if unknown else f"without {missing[0]!r}"
        raise ExtensionMisuse(f"Provider {provider}: oauth {what}; expected {', '.join(known)}")
    for name in ("login", "refresh_token", "get_api_key", "modify_models"):
        if given.get(name) is not None:
            require_callable(given[name], f"oauth.{name} of provider {provider!r}")
    return OAuthConfig(**given)


@shapes.frozen
class OAuthPort:
    """The functions of a login, called safely."""

    provider: str
    config: OAuthConfig

    async def login(self, interaction: LoginInteraction) -> Mapping[str, Any]:
        """A new credential. Raises ProviderFailed."""
        outcome = await guard(self.config.login, interaction)
        return self._credential("OAuth login", outcome, ())

    async def refresh(self, credential: Mapping[str, Any]) -> Mapping[str, Any]:
        """The renewed credential, within a bound (MOD-75). Raises ProviderFailed."""
        scope = trio.CancelScope(deadline=trio.current_time() + REFRESH_LIMIT_S)
        outcome = await guard(self.config.refresh_token, dict(credential), AbortSignal(), scope=scope)
        return self._credential("OAuth refresh", outcome, _tokens(credential))

    async def api_key(self, credential: Mapping[str, Any]) -> str:
        """The key of requests. Raises ProviderFailed."""
        outcome = await guard(self.config.get_api_key, dict(credential))
        if isinstance(outcome, Failure | Cut):
            raise ProviderFailed("oauth", f"OAuth auth failed for {self.provider}: {_why(outcome, _tokens(credential))}")
        if not isinstance(outcome.value, str) or not outcome.value:
            raise ProviderFailed("oauth", f"OAuth auth failed for {self.provider}: get_api_key gave no text")
        return outcome.value

    def models(self, models: tuple[Model, ...], credential: Mapping[str, Any]) -> tuple[Model, ...]:
        """The models of somebody who is logged in (MOD-53). Raises ExtensionMisuse."""
        if self.config.modify_models is None:
            return models
        outcome = guard_now(self.config.modify_models, models, dict(credential))
        if isinstance(outcome, Failure):
            raise ExtensionMisuse(f"Provider {self.provider}: modify_models: {_why(outcome, _tokens(credential))}")
        changed = outcome.value
        if not isinstance(changed, list | tuple) or not all([isinstance(each, Model) for each in changed]):
            raise ExtensionMisuse(f"Provider {self.provider}: modify_models gave {type(changed).__name__}; expected a list of Model")
        return tuple([attrs.evolve(each, provider=self.provider) for each in changed])

    def _credential(self, what: str, outcome: Any, secrets: tuple[str, ...]) -> Mapping[str, Any]:
        if isinstance(outcome, Failure | Cut):
            raise ProviderFailed("oauth", f"{what} failed for {self.provider}: {_why(outcome, secrets)}")
        given = outcome.value
        if not isinstance(given, Mapping) or not isinstance(given.get("access"), str) or not isinstance(given.get("expires"), int | float):
            wrong = f"{what} failed for {self.provider}: got {type(given).__name__}; expected a dict with access, refresh and expires"
            raise ProviderFailed("oauth", wrong)
        return {**given, "type": "oauth"}


def _tokens(credential: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple([value for value in credential.values() if isinstance(value, str) and len(value) >= 8])


def _why(outcome: Failure | Cut, secrets: tuple[str, ...]) -> str:
    if isinstance(outcome, Cut):
        return f"no answer for {REFRESH_LIMIT_S:g} s"
    text = outcome.text
    for secret in secrets:
        text = text.replace(secret, "<hidden>")
    return text
