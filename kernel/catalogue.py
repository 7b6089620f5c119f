"""Model references: from what a person writes to a model of the catalogue (MOD-90 to MOD-95).

A reference is `[provider/]pattern[:level]`. Ids may hold slashes and colons themselves, so the whole text
is tried first, and only what finds nothing is taken apart: as an exact id, as `provider/id`, then (if
asked) as part of an id or name, then once more without a level at its end. An id that several providers
have is never picked by chance: it is ambiguous unless exactly one of them can be used.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal

import attrs

from camshaft.kernel.errors import Rejection
from camshaft.kernel.models import THINKING_LEVELS, Model

_DATED: Final = re.compile(r"-\d{8}\Z")

Suffix = Literal["none", "strict", "lenient"]
"""What a `:suffix` may be: part of the id; a level; or anything, an invalid one being dropped with a warning."""


@attrs.frozen(kw_only=True)
class ModelChoice:
    """What a reference means."""

    model: Model
    level: str | None = None
    """The level at its end, if there was one."""
    warning: str | None = None


@attrs.frozen(kw_only=True)
class Catalogue:
    """The models to choose from, and what helps to choose."""

    models: Sequence[Model]
    is_usable: Callable[[str], bool] = lambda _provider: True
    """Whether a provider has credentials; breaks ties, excludes nothing."""
    is_fuzzy: bool = False
    """Whether a part of an id or name is enough."""
    suffix: Suffix = "strict"

    def choose(self, reference: str, provider: str | None = None) -> ModelChoice | Rejection:
        """The model of `reference`, or why there is none. `provider` restricts the choice, whatever its case."""
        if provider is not None and self._provider(provider) is None:
            return Rejection(f'Unknown provider "{provider}". Use --list-models to see available providers/models.')
        found = self._found(reference, provider)
        if found is not None:
            return found
        head, colon, tail = reference.rpartition(":")
        if colon and head and self.suffix != "none":
            if tail in THINKING_LEVELS:
                found = self._found(head, provider)
                return attrs.evolve(found, level=tail) if isinstance(found, ModelChoice) else found or self._missing(reference)
            found = self._found(head, provider) if self.suffix == "lenient" else None
            if isinstance(found, ModelChoice):
                text = f'Invalid thinking level "{tail}" in pattern "{reference}". Using default instead.'
                return attrs.evolve(found, warning=text)
        return found or self._missing(reference)

    def _found(self, text: str, provider: str | None) -> ModelChoice | Rejection | None:
        pool = [model for model in self.models if provider is None or model.provider.lower() == provider.lower()]
        bare = [model for model in pool if model.id == text]
        named = self._named(text, pool)
        if named is not None and bare:
            return self._between(text, named, bare)
        if named is not None:
            return ModelChoice(model=named)
        if bare:
            return self._only(text, bare)
        return self._only(text, _matching(text, pool)) if self.is_fuzzy else None

    def _named(self, text: str, pool: Sequence[Model]) -> Model | None:
        """The model of `provider/id`; of several providers that fit, the longest name wins."""
        fitting = [model for model in pool if text.lower() == f"{model.provider.lower()}/{model.id.lower()}"]
        exact = [model for model in fitting if model.id == text[len(model.provider) + 1 :]]
        return max(exact or fitting, key=lambda model: len(model.provider), default=None)

    def _between(self, text: str, named: Model, bare: Sequence[Model]) -> ModelChoice | Rejection:
        """`zai/glm-5` may be a model of `zai`, or an id that a gateway has (MOD-92)."""
        others = [model for model in bare if self.is_usable(model.provider)]
        if self.is_usable(named.provider) or not others:
            return ModelChoice(model=named)
        return ModelChoice(model=others[0]) if len(others) == 1 else self._ambiguous(text, [named, *bare])

    def _only(self, text: str, models: Sequence[Model]) -> ModelChoice | Rejection | None:
        if not models:
            return None
        usable = [model for model in models if self.is_usable(model.provider)]
        if len(models) == 1 or len(usable) == 1:
            return ModelChoice(model=models[0] if len(models) == 1 else usable[0])
        return self._ambiguous(text, models)

    def _ambiguous(self, text: str, models: Sequence[Model]) -> Rejection:
        several = any(self.is_usable(model.provider) for model in models)
        hint = "More than one matching provider is authenticated." if several else "No matching provider is authenticated."
        listed = ", ".join(sorted({model.provider for model in models}))
        return Rejection(f'Model "{text}" is ambiguous across providers: {listed}. {hint} Use --provider or provider/model.')

    def _provider(self, name: str) -> str | None:
        return next((model.provider for model in self.models if model.provider.lower() == name.lower()), None)

    def _missing(self, reference: str) -> Rejection:
        return Rejection(f'Model "{reference}" not found. Use --list-models to see available models.')


def _matching(text: str, pool: Sequence[Model]) -> list[Model]:
    """The best match of a part of an id or name, once for each provider that has it (MOD-94)."""
    part = text.lower()
    matches = [model for model in pool if part in model.id.lower() or part in model.name.lower() or part in model.reference.lower()]
    if not matches:
        return []
    aliases = [model for model in matches if model.id.endswith("-latest") or not _DATED.search(model.id)]
    best = max(model.id for model in aliases or matches)
    return [model for model in matches if model.id == best]
