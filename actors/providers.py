"""What the loop asks of a model provider: the port behind every adapter."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import attrs

from camshaft.kernel import shapes
from camshaft.kernel.catalogue import Catalogue
from camshaft.kernel.messages import ModelMessage
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import EMPTY, FrozenDict, Json
from camshaft.kernel.stream import StreamItem
from camshaft.kernel.tools import Signal


@shapes.frozen(kw_only=True)
class RequestOptions:
    """Options of one request; None leaves them to model and provider (STR-3)."""

    session_id: str | None = None
    """For cache routing."""
    max_tokens: int | None = None
    temperature: float | None = None
    sampling_params: FrozenDict = EMPTY
    tool_choice: Json = None
    headers: FrozenDict = attrs.field(default=EMPTY, repr=False)
    """Override the provider's; null removes one. Hidden in reprs: they may hold credentials."""
    api_key: str | None = attrs.field(default=None, repr=False)
    """Instead of every other key there is for the provider (MOD-72)."""
    env: FrozenDict = attrs.field(default=EMPTY, repr=False)
    """Variables for keys and headers; they win over what is stored and over the environment (MOD-63)."""
    cache_retention: str | None = None
    """`none`, `short` or `long`; None is `short`."""
    disable_continuation: bool = False
    """Neither use nor record what a provider keeps of earlier requests to go on from."""
    timeout_ms: int | None = None
    """Longest silence of the server; 0 is no limit (WIRE-30)."""
    max_retries: int | None = None
    """Further attempts before a stream begins (WIRE-20)."""
    max_retry_delay_ms: int | None = None
    """A server that asks for a longer wait fails the request at once; 0 is no limit (WIRE-21)."""
    thinking_budgets: FrozenDict | None = None
    """Thinking tokens by level, over the defaults (MOD-22)."""
    metadata: FrozenDict = EMPTY
    """Passed on where the API knows it: `user_id`, for one."""
    api_options: FrozenDict | None = None
    """Options of the API itself, by their JSON names (STR-4). None: the neutral entry, which caps output and clamps levels;
    a map, also an empty one: what is given is sent as it is, and `thinking_level` is not looked at."""
    deferred: Json = None
    """True, or an object with `window`: the answer may be a handle, to be fetched later (STR-40). The loop never asks for it."""


@shapes.frozen(kw_only=True)
class RequestHooks:
    """What the session watches and changes of one request (WIRE-101 to WIRE-109); None: nobody does.

    An adapter calls them at their places and lets what they raise fail the request (WIRE-109).
    """

    on_headers: Callable[[FrozenDict], Awaitable[FrozenDict]] | None = None
    """The request's own headers, name to text or null; what it returns is applied last (WIRE-102)."""
    on_payload: Callable[[Json], Awaitable[Json]] | None = None
    """The body; what it returns is sent (WIRE-103)."""
    on_response: Callable[[int, Mapping[str, str]], Awaitable[None]] | None = None
    """Every response, failed ones included, before its body is read (WIRE-106)."""
    on_stream_event: Callable[[Json], Awaitable[None]] | None = None
    """Every parsed event, before it is normalised (WIRE-107)."""


@shapes.frozen(kw_only=True)
class ModelRequest:
    """One request to a model."""

    model: Model
    thinking_level: str
    """As selected; the adapter clamps it. `off`: none."""
    messages: Sequence[ModelMessage]
    """The transcript, system messages in their places; may be a lazy view."""
    options: RequestOptions = RequestOptions()
    hooks: RequestHooks = attrs.field(default=RequestHooks(), repr=False)


Emit = Callable[[StreamItem], Awaitable[None]]
"""Takes the next item; returns when everybody has seen it."""


class Provider(Protocol):
    """An adapter to one provider's models."""

    @property
    def name(self) -> str:
        """The provider id, first part of a model reference."""
        ...

    @property
    def api(self) -> str:
        """Its wire API."""
        ...

    @property
    def models(self) -> tuple[Model, ...]:
        """What it offers."""
        ...

    def configured(self) -> bool:
        """Whether it has the credentials it needs."""
        ...

    async def stream(self, request: ModelRequest, signal: Signal, emit: Emit) -> None:
        """Emits the items of one answer, ending with one `Ended`. What it raises becomes an error message (LOOP-56).

        When `signal` is set it ends soon with stop reason `aborted`.
        """
        ...


class DeferringProvider(Protocol):
    """What an adapter has besides, if its provider can give answers later (STR-40, STR-41).

    Asked with the option `deferred`, its `stream` may end with `Ended("deferred", deferred=handle)`: an object with
    `provider`, `modelId`, `api`, `id`, perhaps `expiresAt`, `pollAfterMs` and `data`, enough to fetch the answer in another process.
    """

    async def fetch_deferred(
        self, request: ModelRequest, handle: Mapping[str, Any], signal: Signal, emit: Emit, *, wait_ms: int = 0
    ) -> None:
        """As `stream`, of the answer behind a handle; ends with the same handle while that is pending.

        `request` names the model and has no messages. It may wait `wait_ms` for the answer; 0 looks once.
        """
        ...

    async def cancel_deferred(self, model: Model, handle: Mapping[str, Any]) -> None:
        """Asks the provider not to make the answer any more, as far as it can."""
        ...


def find_model(providers: Sequence[Provider], reference: str) -> Model | None:
    """The model of `provider/id`, or of an id that only one provider has; None if there is none or several."""
    everything = [model for provider in providers for model in provider.models]
    exact = [model for model in everything if model.reference == reference]
    named = [model for model in everything if model.id == reference]
    if exact:
        return exact[0]
    return named[0] if len(named) == 1 else None


def catalogue_of(providers: Sequence[Provider]) -> Catalogue:
    """The chat models of all of them, to look references up in."""
    configured = {provider.name: provider.configured() for provider in providers}
    models = [model for provider in providers for model in provider.models if model.is_chat]
    return Catalogue(models=models, is_usable=lambda name: configured.get(name, False))


def provider_of(providers: Sequence[Provider], model: Model) -> Provider | None:
    """The adapter that serves `model`, or None."""
    return next((provider for provider in providers if provider.name == model.provider), None)
