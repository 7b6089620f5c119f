"""The models there are, as extensions and hosts ask for them."""

from collections.abc import Callable

import attrs

from camshaft.actors.providers import Provider, find_model, provider_of
from camshaft.kernel.models import Model


@attrs.frozen(kw_only=True)
class ScopedModel:
    """A model to cycle through, and the level it is used with."""

    model: Model
    thinking_level: str | None = None
    """None: the level stays as it is."""


@attrs.frozen(eq=False)
class ModelRegistry:
    """The models of all providers, those of extensions included; read at each call."""

    _providers: Callable[[], tuple[Provider, ...]]

    def get_all(self) -> tuple[Model, ...]:
        """Every model, in the order of the providers."""
        return tuple([model for provider in self._providers() for model in provider.models])

    def get_available(self) -> tuple[Model, ...]:
        """The models whose provider has the credentials it needs."""
        return tuple([model for provider in self._providers() if provider.configured() for model in provider.models])

    def find(self, provider: str, model_id: str) -> Model | None:
        """The model of that provider and id, or None."""
        return next((model for model in self.get_all() if (model.provider, model.id) == (provider, model_id)), None)

    def resolve(self, reference: str) -> Model | None:
        """The model of `provider/id`, or of an id that only one provider has; None if there is none or several."""
        return find_model(self._providers(), reference)

    def has_configured_auth(self, model: Model) -> bool:
        """Whether requests to this model can be authorized; false if nobody serves it."""
        provider = provider_of(self._providers(), model)
        return provider is not None and provider.configured()
