"""Virtual models: entries of the catalogue that stand for whatever a router chooses (VM-1 to VM-5).

Here they are defined and listed. No request is ever made with one as it is: it has to be routed first,
and until a conversation can do that, choosing one is refused with a text that says so.
"""

from collections.abc import Callable
from typing import Any, Final

import attrs

from camshaft.actors.errors import CommandRefused
from camshaft.actors.misuse import ExtensionMisuse, require_callable
from camshaft.actors.providers import Emit, ModelRequest, Provider
from camshaft.kernel.models import THINKING_LEVELS, Model
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.tools import Signal

VIRTUAL_API: Final = "pi-virtual"
"""The api of every virtual model, in the catalogue and in files (VM-3)."""


@attrs.frozen(kw_only=True)
class VirtualModel:
    """What an extension registers (VM-1)."""

    provider: str
    id: str
    name: str
    route: Callable[..., Any] = attrs.field(repr=False)
    """`route(request, ctx)`, sync or async, gives the physical model of one request."""
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


def unroutable(model: Model) -> str:
    """Why no request can be made with a virtual model."""
    return f"model {model.reference} is virtual, and this version cannot route requests yet; choose a physical model"


def require_routable(model: Model) -> None:
    """Raises CommandRefused for a virtual model: no conversation can route one yet."""
    if model.api == VIRTUAL_API:
        raise CommandRefused(unroutable(model))


@attrs.frozen(kw_only=True, eq=False)
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

    async def stream(self, request: ModelRequest, signal: Signal, emit: Emit) -> None:
        """The physical provider's answer. Raises ExtensionMisuse for a virtual model (VM-10)."""
        if self.physical is None or request.model.api == VIRTUAL_API:
            raise ExtensionMisuse(f"Virtual model {request.model.reference} must be routed before streaming")
        await self.physical.stream(request, signal, emit)
