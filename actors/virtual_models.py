"""Virtual models: entries of the catalogue that stand for whatever a router chooses (VM-1 to VM-5, VM-10, VM-15).

Here they are defined and listed, and told apart from the physical ones. No request is ever made with one as it is:
it is routed first (`routing.py`).
"""

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from camshaft.actors.misuse import ExtensionMisuse, require_callable
from camshaft.actors.provider_auth import AuthStatus, RequestAuth
from camshaft.actors.providers import Emit, ModelRequest, Provider
from camshaft.kernel import shapes
from camshaft.kernel.models import THINKING_LEVELS, VIRTUAL_API, Model
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.routing import last_answer
from camshaft.kernel.state import SessionState
from camshaft.kernel.tools import Signal


@shapes.frozen(kw_only=True)
class VirtualModel:
    """What an extension registers (VM-1)."""

    provider: str
    id: str
    name: str
    route: Callable[..., Any] = attrs.field(repr=False)
    """`route(request, ctx)`, sync or async: a `RouteRequest` in, a `Route` out. Asked before every request (VM-6)."""
    thinking_levels: tuple[str, ...] = ("off",)
    context_window: int = 0
    """Tokens; 0: unknown."""
    max_tokens: int = 0
    """Output limit; 0: unknown."""
    input: tuple[str, ...] = ("text", "image")


def checked_virtual(definition: VirtualModel) -> VirtualModel:
    """The definition, if its fields can be meant. Raises ExtensionMisuse."""
    where = f"virtual model {definition.provider}/{definition.id}"
    require_callable(definition.route, f"route of {where}")
    unknown = [each for each in definition.thinking_levels if each not in THINKING_LEVELS]
    if unknown or not definition.thinking_levels:
        given = unknown[0] if unknown else definition.thinking_levels
        raise ExtensionMisuse(f"{where}: thinking level {given!r}; expected some of {', '.join(THINKING_LEVELS)}")
    return definition


def catalogue_entry(definition: VirtualModel) -> Model:
    """The model that can be listed and chosen (VM-3)."""
    return Model(
        id=definition.id,
        provider=definition.provider,
        api=VIRTUAL_API,
        name=definition.name,
        input=definition.input,
        reasoning=any([level != "off" for level in definition.thinking_levels]),
        thinking_level_map=FrozenDict({level: level if level in definition.thinking_levels else None for level in THINKING_LEVELS}),
        context_window=definition.context_window,
        max_tokens=definition.max_tokens,
    )


def physical_model(providers: Sequence[Provider], provider: str, model_id: str) -> Model | None:
    """The catalogue's record of a model that can be asked; None for an unknown or a virtual one."""
    found = (model for each in providers for model in each.models if (model.provider, model.id) == (provider, model_id))
    model = next(found, None)
    return None if model is None or model.is_virtual else model


def is_virtual(providers: Sequence[Provider], key: tuple[str, str]) -> bool:
    """Whether a provider and id name a virtual model that is registered."""
    return any([model.is_virtual and (model.provider, model.id) == key for each in providers for model in each.models])


def answered_model(state: SessionState, providers: Sequence[Provider]) -> Model | None:
    """If the selected model is virtual: the physical one that answered last, as far as it is known (VM-15)."""
    selected = state.selection.model
    if selected is None or not selected.is_virtual:
        return None
    answer = last_answer(state.projection.messages)
    return None if answer is None else physical_model(providers, answer.provider, answer.model)


def limiting_model(state: SessionState, providers: Sequence[Provider]) -> Model | None:
    """The model whose limits count (VM-15): the selected one; if that is virtual, who answered last, as far as it is known."""
    return answered_model(state, providers) or state.selection.model


@shapes.frozen(kw_only=True, eq=False)
class VirtualProvider:
    """A provider of virtual models, beside the physical ones of the provider with the same id, if there is one."""

    name: str
    virtual: tuple[Model, ...]
    physical: Provider | None

    @property
    def api(self) -> str:
        """The physical provider's."""
        return VIRTUAL_API if self.physical is None else self.physical.api

    @property
    def models(self) -> tuple[Model, ...]:
        """A physical model that a virtual one has the id of is hidden by it (VM-2)."""
        hidden = {model.id for model in self.virtual}
        physical = () if self.physical is None else self.physical.models
        return (*[model for model in physical if model.id not in hidden], *self.virtual)

    def configured(self) -> bool:
        """Always without physical models, else as that provider is (VM-4)."""
        return self.physical is None or self.physical.configured()

    def auth_status(self) -> AuthStatus:
        """The physical provider's."""
        status = getattr(self.physical, "auth_status", None)
        return AuthStatus(configured=self.configured()) if status is None else status()

    async def resolve(self, model: Model) -> Any:
        """What authorizes a request to a physical model."""
        resolve = getattr(self.physical, "resolve", None)
        return RequestAuth(ok=True) if resolve is None else await resolve(model)

    async def stream(self, request: ModelRequest, signal: Signal, emit: Emit) -> None:
        """The physical provider's answer. Raises ExtensionMisuse for a virtual model (VM-10)."""
        if self.physical is None or request.model.is_virtual:
            raise ExtensionMisuse(f"Virtual model {request.model.reference} must be routed before streaming")
        await self.physical.stream(request, signal, emit)
