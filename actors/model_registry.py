"""The models there are, as extensions and hosts ask for them, and requests to them (MOD-40, MOD-41, MOD-80)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import trio

from camshaft.actors.actor import Cut, Failure, guard
from camshaft.actors.config_provider import ProviderConfig
from camshaft.actors.provider_auth import AuthStatus, ProviderAuth, ProviderFailed, RequestAuth
from camshaft.actors.provider_refresh import RefreshResult
from camshaft.actors.provider_registry import ProviderRegistry
from camshaft.actors.providers import Provider, RequestOptions, find_model, provider_of
from camshaft.actors.registry_asks import Asking, Asks, ClassifierResult, ImagesResult, ModelStream
from camshaft.kernel import shapes
from camshaft.kernel.messages import AssistantMessage, Message, ToolDeclaration
from camshaft.kernel.models import Model, ModelType
from camshaft.kernel.persistent import EMPTY
from camshaft.kernel.tools import Signal


@shapes.frozen(kw_only=True)
class ModelSource:
    """Where the answers come from."""

    registry: ProviderRegistry
    faults: tuple[str, ...] = ()
    """What the host says about its configuration."""
    is_offline: bool = False
    asks: Asks
    """Who makes requests."""


@shapes.frozen(eq=False)
class ModelRegistry:
    """The models of all providers, those of extensions included; read at each call."""

    _source: Callable[[], ModelSource]

    @property
    def _registry(self) -> ProviderRegistry:
        return self._source().registry

    @property
    def _providers(self) -> tuple[Provider, ...]:
        return self._registry.providers

    # -- models --------------------------------------------------------------------------

    def get_all(self) -> tuple[Model, ...]:
        """Every chat model, in the order of the providers."""
        return self.get_models_of_type("chat")

    def get_available(self) -> tuple[Model, ...]:
        """The chat models whose provider has the credentials it needs."""
        return self.get_available_of_type("chat")

    def get_models_of_type(self, type: ModelType, provider: str | None = None) -> tuple[Model, ...]:
        """Every model of that type, of that provider if one is named."""
        return tuple([model for each in self._providers for model in each.models if model.type == type and provider in (None, each.name)])

    def get_available_of_type(self, type: ModelType, provider: str | None = None) -> tuple[Model, ...]:
        """Those of them whose provider has the credentials it needs."""
        usable = {each.name for each in self._providers if each.configured()}
        return tuple([model for model in self.get_models_of_type(type, provider) if model.provider in usable])

    def find(self, provider: str, model_id: str) -> Model | None:
        """The chat model of that provider and id, or None."""
        return self.find_of_type("chat", provider, model_id)

    def find_of_type(self, type: ModelType, provider: str, model_id: str) -> Model | None:
        """The model of that type, provider and id, or None."""
        return next((model for model in self.get_models_of_type(type, provider) if model.id == model_id), None)

    def resolve(self, reference: str) -> Model | None:
        """The model of `provider/id`, or of an id that only one provider has; None if there is none or several."""
        return find_model(self._providers, reference)

    # -- credentials ---------------------------------------------------------------------

    def has_configured_auth(self, model: Model) -> bool:
        """Whether requests to this model can be authorized; false if nobody serves it."""
        provider = provider_of(self._providers, model)
        return provider is not None and provider.configured()

    def is_using_oauth(self, model: Model) -> bool:
        """Whether they are authorized by a login instead of a key."""
        return self.get_provider_auth_status(model.provider).is_oauth

    def get_provider(self, provider: str) -> Provider | None:
        """Who serves the models of that id."""
        return next((each for each in self._providers if each.name == provider), None)

    def get_provider_display_name(self, provider: str) -> str:
        """Its name for people; the id if it has none."""
        return getattr(self.get_provider(provider), "display_name", None) or provider

    def get_provider_auth_status(self, provider: str) -> AuthStatus:
        """Whether it has credentials, and where they come from; runs and renews nothing."""
        found = self.get_provider(provider)
        status: Callable[[], AuthStatus] | None = getattr(found, "auth_status", None)
        if status is not None:
            return status()
        return AuthStatus(configured=found is not None and found.configured())

    async def get_api_key_and_headers(self, model: Model) -> RequestAuth:
        """What authorizes a request to this model, or why there is nothing; never raises."""
        provider = provider_of(self._providers, model)
        if provider is None:
            return RequestAuth(ok=False, error=f"Unknown provider: {model.provider}")
        resolve = getattr(provider, "resolve", None)
        if resolve is None:
            return RequestAuth(ok=True) if provider.configured() else _unconfigured(model.provider)
        outcome = await guard(resolve, model)
        if isinstance(outcome, Failure | Cut):
            return RequestAuth(ok=False, error=outcome.text if isinstance(outcome, Failure) else "cancelled")
        return _auth(outcome.value, is_configured=provider.configured(), provider=model.provider)

    async def get_api_key_for_provider(self, provider: str) -> str | None:
        """Its key, or None; never raises."""
        model = next(iter(getattr(self.get_provider(provider), "models", ())), None)
        return None if model is None else (await self.get_api_key_and_headers(model)).api_key

    async def get_provider_auth(self, provider: str) -> ProviderAuth | None:
        """What authorizes its requests whatever the model, and where that comes from; None: it is unknown or not configured.

        Raises ProviderFailed with the code `auth` or `oauth` if what is configured cannot be had (MOD-80).
        """
        found = self.get_provider(provider)
        if found is None or not found.configured():
            return None
        resolve = getattr(found, "resolve", None)
        if resolve is None:
            return ProviderAuth(source=self.get_provider_auth_status(provider).source)
        model = next(iter(found.models), Model(id="", provider=provider, api=""))
        outcome = await guard(resolve, attrs.evolve(model, id="", headers=EMPTY))
        if isinstance(outcome, Cut):
            raise ProviderFailed("auth", f"API key auth failed for provider {provider}: cancelled")
        if isinstance(outcome, Failure):
            if isinstance(outcome.error, ProviderFailed) and outcome.error.code != "auth":
                raise ProviderFailed(outcome.error.code, str(outcome.error)) from None
            raise ProviderFailed("auth", f"API key auth failed for provider {provider}: {outcome.text}")
        auth = _auth(outcome.value, is_configured=True, provider=provider)
        status = self.get_provider_auth_status(provider)
        return ProviderAuth(api_key=auth.api_key, headers=auth.headers, base_url=auth.base_url, source=status.source)

    # -- requests ------------------------------------------------------------------------

    def stream_simple(  # noqa: PLR0913  # all but the question by name
        self,
        model: Model,
        messages: str | Sequence[Message],
        *,
        system_prompt: str | None = None,
        tools: Sequence[ToolDeclaration] = (),
        thinking_level: str = "off",
        options: RequestOptions | None = None,
        signal: Signal | None = None,
    ) -> ModelStream:
        """An answer as it comes, asked for in neutral terms: output capped, thinking clamped to the model (STR-1 to STR-3).

        A stream at once, through which nothing is raised: iterate over its events, await its `result()`. Credentials are
        resolved, hooks of extensions do not fire (WIRE-101), nothing is stored. A virtual model is routed (VM-11).
        """
        asking = Asking(
            model=model,
            messages=messages,
            system_prompt=system_prompt,
            tools=tools,
            thinking_level=thinking_level,
            options=options or RequestOptions(),
            signal=signal,
        )
        return self._source().asks.stream(asking, is_simple=True)

    def stream(  # noqa: PLR0913  # all but the question by name
        self,
        model: Model,
        messages: str | Sequence[Message],
        *,
        system_prompt: str | None = None,
        tools: Sequence[ToolDeclaration] = (),
        options: RequestOptions | None = None,
        signal: Signal | None = None,
    ) -> ModelStream:
        """The same with the options of the API itself, `options.api_options`: what is given is sent as it is (STR-4)."""
        known = options or RequestOptions()
        asking = Asking(model=model, messages=messages, system_prompt=system_prompt, tools=tools, options=known, signal=signal)
        return self._source().asks.stream(asking, is_simple=False)

    async def complete(  # noqa: PLR0913  # all but the question by name
        self,
        model: Model,
        messages: str | Sequence[Message],
        *,
        system_prompt: str | None = None,
        tools: Sequence[ToolDeclaration] = (),
        thinking_level: str = "off",
        options: RequestOptions | None = None,
        signal: Signal | None = None,
    ) -> AssistantMessage:
        """The final message of such a request; its stop reason says whether it is an answer. A cancelled caller ends the request."""
        stream = self.stream_simple(
            model,
            messages,
            system_prompt=system_prompt,
            tools=tools,
            thinking_level=thinking_level,
            options=options,
            signal=signal,
        )
        try:
            return await stream.result()
        except trio.Cancelled:
            stream.abort()
            raise

    async def generate_images(
        self, model: Model, input: object, *, options: Mapping[str, Any] = EMPTY, signal: Signal | None = None
    ) -> ImagesResult:
        """What an image model makes of `input`; never raises for what goes wrong, the stop reason says it (STR-43)."""
        return await self._source().asks.generate_images(model, input, options, signal)

    async def classify(
        self, model: Model, input: object, *, options: Mapping[str, Any] = EMPTY, signal: Signal | None = None
    ) -> ClassifierResult:
        """What a classifier model says to `input`; never raises for what goes wrong, the stop reason says it (STR-43)."""
        return await self._source().asks.classify(model, input, options, signal)

    # -- what changes --------------------------------------------------------------------

    async def refresh(self, *, allow_network: bool | None = None, force: bool = False) -> RefreshResult:
        """Asks the providers that can be for the models they have now; one that fails keeps its list (MOD-42).

        `allow_network` None: unless CAMSHAFT_OFFLINE says no (MOD-43).
        """
        allowed = not self._source().is_offline if allow_network is None else allow_network
        return await self._registry.refresh(allow_network=allowed, force=force)

    def get_error(self) -> str | None:
        """What is wrong with the configuration, the registrations and the last refresh; None: nothing (MOD-41)."""
        faults = [*self._source().faults, *self._registry.faults]
        return "\n\n".join(faults) if faults else None

    def get_registered_provider_ids(self) -> tuple[str, ...]:
        """Of providers that extensions registered."""
        return self._registry.registered_ids

    def get_registered_provider_config(self, provider: str) -> ProviderConfig | None:
        """What was registered under that id, if that is a config."""
        found = self._registry.registered(provider)
        return found if isinstance(found, ProviderConfig) else None

    def get_registered_native_provider(self, provider: str) -> Provider | None:
        """What was registered under that id, if that is an object."""
        found = self._registry.registered(provider)
        return None if isinstance(found, ProviderConfig) else found


def _unconfigured(provider: str) -> RequestAuth:
    return RequestAuth(ok=False, error=f"Provider is not configured: {provider}")


def _auth(found: Any, *, is_configured: bool, provider: str) -> RequestAuth:
    key, headers = getattr(found, "api_key", None), getattr(found, "headers", None)
    headers = dict(headers) if isinstance(headers, Mapping) else {}
    if not is_configured and not key and not headers:
        return _unconfigured(provider)
    return RequestAuth(ok=True, api_key=key, headers=headers, base_url=getattr(found, "base_url", None))
