"""Asks the router of a virtual model where a request goes (VM-6 to VM-13, VM-17).

A router is code of an extension: it runs under the bounds of the request's signal, sees frozen
values only, and what it gives is read as if nobody had checked it. Whatever goes wrong ends as
RouteFailed, which becomes an answer of the virtual model with an error, never a crash; raising
is how a router refuses a request, so it is no strike against its extension.

What a router wants to remember is one post, made after its route was found good and before
anything is sent. If the process dies before that post, the router is asked again; after it, the
state stays, also if the request never leaves.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from camshaft.actors.actor import Failure, Value, guard_now, is_awaitable, is_part_of, operation, unless_exit
from camshaft.actors.answers import ABORTED_ANSWER
from camshaft.actors.delivery import RunFailed
from camshaft.actors.oversight import Forced
from camshaft.actors.providers import provider_of
from camshaft.actors.registrations import Extension
from camshaft.actors.seat_parts import SeatParts
from camshaft.actors.signal import AbortSignal
from camshaft.actors.standing import ExtensionQuarantined
from camshaft.actors.virtual_models import VirtualModel, physical_model
from camshaft.kernel import shapes
from camshaft.kernel.commands import AppendCustom
from camshaft.kernel.events import DiagnosticEvent
from camshaft.kernel.messages import ModelMessage
from camshaft.kernel.models import Model, clamp_level
from camshaft.kernel.persistent import Json, freeze
from camshaft.kernel.routing import STATE_TYPE, Route, RouteRequest, RouterStates, failed_of, is_news, previous_of, reason_of, state_data
from camshaft.kernel.run_data import Run


class RouteFailed(RunFailed):
    """A request of a virtual model goes nowhere; the text says why, for people (VM-9)."""

    def __init__(self, model: Model, why: str) -> None:
        super().__init__(why)
        self.model = model
        """The virtual model that was asked for."""


@shapes.frozen(kw_only=True)
class Dispatch:
    """Where a request goes."""

    model: Model
    """The catalogue's own record of a physical model (VM-8)."""
    thinking_level: str
    """Clamped to the model."""


@shapes.frozen
class _Found:
    """A route that can be taken."""

    dispatch: Dispatch
    news: object
    """The state to remember, not checked yet; None: as it is."""


@shapes.frozen(eq=False)
class Routing:
    """The routes of one conversation."""

    _parts: SeatParts
    _states: RouterStates = attrs.field(factory=RouterStates)

    async def of_run(self, run: Run, model: Model, level: str, signal: AbortSignal) -> Dispatch:
        """Where the next request of a run goes; what the router wants to remember is stored then. Raises RouteFailed, StorageError."""
        projection = self._parts.state.projection
        messages = projection.messages
        request = RouteRequest(
            model=model,
            thinking_level=level,
            reason=reason_of(run, messages),
            previous=previous_of(messages, self._find),
            failed=failed_of(run, self._find),
            state=self._states.latest(projection, model),
            messages=projection.llm_messages,
            signal=signal,
        )
        found = await self._asked(request, signal)
        if found.news is not None:
            data = state_data(model, self._storable(request, found.news))
            self._parts.posted(AppendCustom(custom_type=STATE_TYPE, data=data))
        return found.dispatch

    async def direct(self, model: Model, level: str, messages: Sequence[ModelMessage], signal: AbortSignal) -> Dispatch:
        """Where a request goes that is no part of the conversation; state is neither given nor kept (VM-11). Raises RouteFailed."""
        request = RouteRequest(
            model=model,
            thinking_level=level,
            reason="direct",
            previous=previous_of(messages, self._find),
            messages=messages,
            signal=signal,
        )
        return (await self._asked(request, signal)).dispatch

    # -- the router ----------------------------------------------------------------------

    async def _asked(self, request: RouteRequest, signal: AbortSignal) -> _Found:
        model = request.model
        registered = self._parts.host.registry.router(model.provider, model.id)
        if registered is None:
            raise RouteFailed(model, f"Virtual model {model.reference} is not registered.")
        name = f"routing of {model.reference}"
        if is_part_of(name):
            text = f"Virtual model {model.reference} was asked by its own router; let that name a physical model."
            raise RouteFailed(model, text)
        with operation(name):
            outcome = await self._called(registered, request, signal)
        read = guard_now(_read_route, outcome.value) if isinstance(outcome, Value) else outcome  # It looks into foreign objects.
        if isinstance(read, Value):
            return self._taken(request, read.value)
        raise RouteFailed(model, (ABORTED_ANSWER.error_message or "") if signal.cancelled else read.text)

    async def _called(
        self, registered: tuple[Extension, VirtualModel], request: RouteRequest, signal: AbortSignal
    ) -> Value[Any] | Failure | Forced:
        """As a handler is called: a sync router is watched, an async one is overseen."""
        (extension, definition), host = registered, self._parts.host
        quarantined = host.standing(extension).quarantined
        if quarantined is not None:
            return Failure(ExtensionQuarantined(extension.path, quarantined))
        context = host.context(extension)
        watchdog = host.oversight.watchdog
        if watchdog is None:
            started = guard_now(unless_exit, definition.route, request, context)
        else:
            name = f"router of {request.model.reference}"
            started, late = watchdog.call(name, guard_now, unless_exit, definition.route, request, context)
            if late is not None:
                self._parts.stream.publish(DiagnosticEvent(source="watchdog", message=late))
        if isinstance(started, Failure) or not is_awaitable(started.value):
            return started
        return await host.oversight.run(extension, "route", started.value, signal)

    def _taken(self, request: RouteRequest, given: "_Given | None") -> _Found:
        """The route, if it can be taken."""
        where, providers = f"Virtual model {request.model.reference}", self._parts.providers
        if given is None:
            raise RouteFailed(request.model, f"{where} returned no route.")
        model = physical_model(providers, *given.target)
        if model is None:
            raise RouteFailed(request.model, f"{where} routed to {'/'.join(given.target)}, which is not a physical model.")
        provider = provider_of(providers, model)
        if provider is None or not provider.configured():
            raise RouteFailed(request.model, f"{where} routed to {model.reference}, which has no credentials.")
        level = clamp_level(model, request.thinking_level if given.level is None else given.level)
        news = given.state if is_news(given.state, request.state) else None
        return _Found(Dispatch(model=model, thinking_level=level), news)

    def _storable(self, request: RouteRequest, news: object) -> Json:
        frozen = guard_now(freeze, news, "state")
        if isinstance(frozen, Failure):
            raise RouteFailed(request.model, f"Virtual model {request.model.reference} returned a state that is no JSON: {frozen.text}")
        return frozen.value

    def _find(self, provider: str, model_id: str) -> Model | None:
        return physical_model(self._parts.providers, provider, model_id)


@shapes.frozen
class _Given:
    """What a router gave, as far as it is a route."""

    target: tuple[str, str]
    """Provider and id."""
    level: str | None
    state: object


def _read_route(value: object) -> _Given | None:
    """A `Route`, or a dict of its fields by either kind of name; None for anything else."""
    fields: Mapping[Any, Any]
    if isinstance(value, Route):
        fields = {"model": value.model, "thinking_level": value.thinking_level, "state": value.state}
    elif isinstance(value, Mapping):
        fields = value
    else:
        return None
    target = _target(fields.get("model"))
    level = fields.get("thinking_level", fields.get("thinkingLevel"))
    return None if target is None or not isinstance(level, str | None) else _Given(target, level, fields.get("state"))


def _target(model: object) -> tuple[str, str] | None:
    """Provider and id of a model, of its reference, or of a dict with them."""
    if isinstance(model, str):
        provider, slash, model_id = model.partition("/")
        return (provider, model_id) if slash else None
    read = model.get if isinstance(model, Mapping) else partial(getattr, model)
    provider, model_id = read("provider", None), read("id", None)
    return (provider, model_id) if isinstance(provider, str) and isinstance(model_id, str) else None
