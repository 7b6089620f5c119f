"""Which model the arguments mean, and whose key `--api-key` is (MOD-72, MOD-90 to MOD-96)."""

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from camshaft.actors.api import THINKING_LEVELS, Provider
from camshaft.actors.host import ModelChoice, Rejection, catalogue_of
from camshaft.extensions_std.frontends.arguments import Arguments

KEY_NEEDS_MODEL = "--api-key requires a model to be specified via --model, --provider/--model, or --models"


class ModelNotFound(Exception):
    """No model, or several, are meant; the text is for people."""


@attrs.frozen(kw_only=True)
class Chosen:
    """What the arguments come to."""

    providers: tuple[Provider, ...]
    """With the model in their lists, also one that the catalogue does not have."""
    reference: str | None = None
    """Of the model; None: the arguments name none."""
    level: str | None = None
    """That was named with it."""


def choose_model(
    arguments: Arguments,
    providers: tuple[Provider, ...],
    given_keys: dict[str, str],
    *,
    is_final: bool = True,
    warn: Callable[[str], None],
) -> Chosen:
    """The model of `--model`; the key of `--api-key` is put among the given ones, for the provider of the model.

    Not `is_final`: extensions will serve more, so what is not found is taken as it is written. Raises ModelNotFound.
    """
    if arguments.model is None:
        if arguments.api_key is not None:
            scope = catalogue_of(providers).scope(arguments.models or ()).choices
            _give_key(arguments, scope[0].model.provider if scope else None, given_keys)
        return Chosen(providers=providers)
    choice = _choice(arguments, arguments.model, providers)
    if isinstance(choice, Rejection):
        if is_final:
            raise ModelNotFound(choice.why)
        reference, level = as_written(arguments.model, arguments.provider, with_level=arguments.thinking is None)
        _give_key(arguments, reference.partition("/")[0] if "/" in reference else None, given_keys)
        return Chosen(providers=providers, reference=reference, level=level)
    if choice.warning is not None:
        warn(choice.warning)
    _give_key(arguments, choice.model.provider, given_keys)
    return Chosen(providers=_with(providers, choice), reference=choice.model.reference, level=choice.level)


def as_written(text: str, provider: str | None, *, with_level: bool = True) -> tuple[str, str | None]:
    """Reference and level as they are written; for a model that nobody knows before the conversation is open."""
    pattern, _, level = text.rpartition(":")
    has_level = with_level and pattern != "" and level in THINKING_LEVELS
    id = pattern if has_level else text
    is_whole = provider is None or id.lower().startswith(f"{provider.lower()}/")
    return id if is_whole else f"{provider}/{id}", level if has_level else None


def _choice(arguments: Arguments, text: str, providers: Sequence[Provider]) -> ModelChoice | Rejection:
    """With a level of its own, a `:suffix` is part of the id."""
    catalogue = attrs.evolve(
        catalogue_of(providers),
        is_fuzzy=True,
        suffix="strict" if arguments.thinking is None else "none",
        has_given_key=arguments.api_key is not None,
    )
    return catalogue.choose_or_make(text, arguments.provider, arguments.thinking)


def _give_key(arguments: Arguments, provider: str | None, given_keys: dict[str, str]) -> None:
    """Raises ModelNotFound if it is not known whose it is."""
    if arguments.api_key is None:
        return
    if provider is None:
        raise ModelNotFound(KEY_NEEDS_MODEL)
    given_keys[provider] = arguments.api_key


def _with(providers: tuple[Provider, ...], choice: ModelChoice) -> tuple[Provider, ...]:
    if not choice.is_custom:
        return providers
    changed: list[Any] = [*providers]
    place = next(number for number, each in enumerate(changed) if each.name == choice.model.provider)
    changed[place] = attrs.evolve(changed[place], models=(*changed[place].models, choice.model))
    return tuple(changed)
