"""A provider object that an extension registered, with what the user's files say lying over its models (PRV-16, MOD-53)."""

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from camshaft.actors.providers import Emit, ModelRequest, Provider
from camshaft.kernel import shapes
from camshaft.kernel.models import Model
from camshaft.kernel.tools import Signal

Overlay = Callable[[str, Sequence[Model]], tuple[Model, ...] | None]
"""What the files make of the models of a provider; None: they do not speak of it."""


@shapes.define(eq=False)
class OverlaidProvider:
    """The object in everything but its models."""

    under: Provider
    """As it was registered."""
    _overlay: Overlay
    _seen: tuple[Model, ...] | None = attrs.field(default=None, repr=False)
    _shown: tuple[Model, ...] = attrs.field(default=(), repr=False)

    @property
    def name(self) -> str:
        """The object's."""
        return self.under.name

    @property
    def api(self) -> str:
        """The object's."""
        return self.under.api

    @property
    def models(self) -> tuple[Model, ...]:
        """The object's, as the files have them; looked at anew when the object has others."""
        own = tuple(self.under.models)
        if own != self._seen:
            self._seen, self._shown = own, self._overlay(self.name, own) or own
        return self._shown

    def configured(self) -> bool:
        """As the object says."""
        return self.under.configured()

    async def stream(self, request: ModelRequest, signal: Signal, emit: Emit) -> None:
        """As the object does."""
        await self.under.stream(request, signal, emit)

    def __getattr__(self, name: str) -> Any:
        """Whatever else the object has."""
        return getattr(object.__getattribute__(self, "under"), name)
