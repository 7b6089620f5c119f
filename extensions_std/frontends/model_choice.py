"""Which model `--model` and `--provider` mean (MOD-90 to MOD-95): `[provider/]pattern[:level]`."""

from collections.abc import Sequence
from typing import Final

import attrs

from camshaft.actors.api import THINKING_LEVELS, Model, Provider

SHOWN_MAX: Final = 20
"""Models that an error lists."""


class ModelNotFound(Exception):
    """No model, or several, are meant; the text is for people."""


@attrs.frozen(kw_only=True)
class ModelChoice:
    """The model, and a level if the pattern named one."""

    model: Model
    level: str | None = None
    warning: str | None = None
    is_custom: bool = False
    """Whether the model is not in the catalogue: a copy of another one of its provider (MOD-95)."""


def choose(providers: Sequence[Provider], text: str, provider: str | None, *, with_level: bool = True) -> ModelChoice:
    """The model. Without `with_level` a `:suffix` is part of the id. Raises ModelNotFound."""
    pool = _pool(providers, provider)
    found = _best(pool, text, providers)
    if found is not None:
        return ModelChoice(model=found)
    pattern, _, level = text.rpartition(":")
    if with_level and pattern and level in THINKING_LEVELS:
        found = _best(pool, pattern, providers)
        if found is not None:
            return ModelChoice(model=found, level=level)
    return _custom(providers, pool, text, provider)


def named(text: str, provider: str | None, *, with_level: bool = True) -> tuple[str, str | None]:
    """Reference and level as they are written; for a model that nobody knows before the conversation is open."""
    pattern, _, level = text.rpartition(":")
    has_level = with_level and pattern != "" and level in THINKING_LEVELS
    id = pattern if has_level else text
    is_whole = provider is None or id.lower().startswith(f"{provider.lower()}/")
    return id if is_whole else f"{provider}/{id}", level if has_level else None


def _pool(providers: Sequence[Provider], name: str | None) -> list[Provider]:
    if name is None:
        return list(providers)
    pool = [each for each in providers if each.name.lower() == name.lower()]
    if not pool:
        raise ModelNotFound(f'Unknown provider "{name}". The providers are: {", ".join([each.name for each in providers])}')
    return pool


def _best(pool: Sequence[Provider], text: str, providers: Sequence[Provider]) -> Model | None:
    """An exact id or reference, else the best of those that contain the text (MOD-91, MOD-94)."""
    models = [model for each in pool for model in each.models]
    named = [model for model in models if model.reference.lower() == text.lower()]
    exact = named or [model for model in models if model.id.lower() == text.lower()]
    if exact:
        return _single(exact, text, providers)
    prefix = [each for each in pool if text.lower().startswith(f"{each.name.lower()}/")]
    inside, rest = (models, text) if not prefix else (list(prefix[0].models), text[len(prefix[0].name) + 1 :])
    similar = [model for model in inside if rest and (rest.lower() in model.id.lower() or rest.lower() in model.name.lower())]
    if not similar:
        return None
    best = max(similar, key=lambda model: (_is_alias(model.id), model.id))
    return _single([model for model in similar if model.id == best.id], text, providers)


def _single(models: Sequence[Model], text: str, providers: Sequence[Provider]) -> Model:
    """The one model, or the one whose provider is configured (MOD-93)."""
    if len(models) == 1:
        return models[0]
    usable = {each.name for each in providers if each.configured()}
    ready = [model for model in models if model.provider in usable]
    if len(ready) == 1:
        return ready[0]
    names = ", ".join(sorted([model.reference for model in models]))
    hint = "More than one matching provider is authenticated." if ready else "No matching provider is authenticated."
    raise ModelNotFound(f'Model "{text}" is ambiguous across providers: {names}. {hint} Use --provider or provider/model.')


def _custom(providers: Sequence[Provider], pool: Sequence[Provider], text: str, provider: str | None) -> ModelChoice:
    """A known provider may serve models that the catalogue does not know (MOD-95)."""
    named = next((each for each in pool if text.lower().startswith(f"{each.name.lower()}/")), None)
    owner = named or (pool[0] if provider is not None else None)
    id = text[len(named.name) + 1 :] if named is not None else text
    if owner is None or not owner.models or not id:
        known = [model.reference for each in providers if each.configured() for model in each.models]
        shown = ", ".join(known[:SHOWN_MAX]) + (", …" if len(known) > SHOWN_MAX else "")
        raise ModelNotFound(f'Model "{text}" not found. The models are: {shown or "none, because no provider is configured"}')
    model = attrs.evolve(owner.models[0], id=id, name=id)
    warning = f'Model "{id}" not found for provider "{owner.name}". Using custom model id.'
    return ModelChoice(model=model, warning=warning, is_custom=True)


def _is_alias(id: str) -> bool:
    tail = id.rpartition("-")[2]
    return id.endswith("-latest") or not (len(tail) == 8 and tail.isdigit() and id != tail)
