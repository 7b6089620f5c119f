"""Model references: from what a person writes to a model of the catalogue (MOD-90 to MOD-96).

A reference is `[provider/]pattern[:level]`. Ids may hold slashes and colons themselves, so the whole text
is tried first, and only what finds nothing is taken apart: as an exact id, as `provider/id`, then (if
asked) as part of an id or name, then once more without a level at its end. An id that several providers
have is never picked by chance: it is ambiguous unless exactly one of them can be used.

A pattern of a scope may mean several models: with `*`, `?` or `[` in it those that match, else those of a
reference, all of them where it is ambiguous.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal

import attrs

from camshaft.kernel import shapes
from camshaft.kernel.errors import Rejection
from camshaft.kernel.models import THINKING_LEVELS, Model

_DATED: Final = re.compile(r"-\d{8}\Z")
_GLOB: Final = re.compile(r"(\*\*)|(\*)|(\?)|\[([^\]]+)\]")

Suffix = Literal["none", "strict", "lenient"]
"""What a `:suffix` may be: part of the id; a level; or anything, an invalid one being dropped with a warning."""

Fault = Literal["no-match", "ambiguous", "invalid-thinking-level"]


@shapes.frozen(kw_only=True)
class ModelChoice:
    """What a reference means."""

    model: Model
    level: str | None = None
    """The level at its end, if there was one."""
    warning: str | None = None
    is_custom: bool = False
    """Whether the model is not in the catalogue: a copy of another one of its provider (MOD-95)."""


@shapes.frozen(kw_only=True)
class ScopeWarning:
    """What is odd about a pattern (MOD-96)."""

    code: Fault
    message: str
    pattern: str


@shapes.frozen(kw_only=True)
class Scope:
    """The models that patterns mean, each once, in the order of the patterns."""

    choices: tuple[ModelChoice, ...] = ()
    warnings: tuple[ScopeWarning, ...] = ()


@shapes.frozen
class _Several:
    """Models of different providers, of which none is to be preferred."""

    models: Sequence[Model]


_Found = Model | _Several | None


@shapes.frozen(kw_only=True)
class Catalogue:
    """The models to choose from, and what helps to choose."""

    models: Sequence[Model]
    is_usable: Callable[[str], bool] = lambda _provider: True
    """Whether a provider has credentials; breaks ties, excludes nothing."""
    is_fuzzy: bool = False
    """Whether a part of an id or name is enough."""
    suffix: Suffix = "strict"
    has_given_key: bool = False
    """Whether a key was given for the model that is looked for; changes only what is said about an ambiguous one."""

    def choose(self, reference: str, provider: str | None = None) -> ModelChoice | Rejection:
        """The model of `reference`, or why there is none. `provider` restricts the choice, whatever its case."""
        if provider is not None and not any([model.provider.lower() == provider.lower() for model in self.models]):
            return Rejection(f'Unknown provider "{provider}". Use --list-models to see available providers/models.')
        found, level, warning = self._found(reference, provider)
        if isinstance(found, _Several):
            return self._ambiguous(reference, found.models)
        if found is None:
            return Rejection(f'Model "{reference}" not found. Use --list-models to see available models.')
        return ModelChoice(model=found, level=level, warning=warning)

    def choose_or_make(self, reference: str, provider: str | None = None, level: str | None = None) -> ModelChoice | Rejection:
        """As `choose`; a known provider may also serve a model that the catalogue does not have (MOD-95).

        Such a model is a copy of the provider's first one. It reasons if a level above `off` is asked for:
        `level`, or the one at the end of the reference.
        """
        chosen = self.choose(reference, provider)
        owner = self._prefix(reference) if provider is None else provider
        if isinstance(chosen, ModelChoice) or owner is None or isinstance(self._found(reference, provider)[0], _Several):
            return chosen
        like = next((model for model in self.models if model.provider.lower() == owner.lower()), None)
        id = reference[len(owner) + 1 :] if reference.lower().startswith(f"{owner.lower()}/") else reference
        head, _, tail = id.rpartition(":")
        suffix = tail if self.suffix != "none" and head and tail in THINKING_LEVELS else None
        id = id if suffix is None else head
        if like is None or not id:
            return chosen
        wanted = level or suffix or "off"
        made = attrs.evolve(like, id=id, name=id, reasoning=like.reasoning or wanted != "off")
        warning = f'Model "{id}" not found for provider "{like.provider}". Using custom model id.'
        return ModelChoice(model=made, level=suffix, warning=warning, is_custom=True)

    def scope(self, patterns: Sequence[str]) -> Scope:
        """What the patterns mean together; of a model that several mean the first counts."""
        lenient = attrs.evolve(self, is_fuzzy=True, suffix="lenient")
        choices: dict[str, ModelChoice] = {}
        warnings: list[ScopeWarning] = []
        for pattern in patterns:
            meant, warning = lenient._meant(pattern)
            warnings += [] if warning is None else [warning]
            for choice in meant:
                choices.setdefault(choice.model.reference, choice)
        return Scope(choices=tuple(choices.values()), warnings=tuple(warnings))

    def _meant(self, pattern: str) -> tuple[list[ModelChoice], ScopeWarning | None]:
        none = ScopeWarning(code="no-match", message=f'No models match pattern "{pattern}"', pattern=pattern)
        if any(each in pattern for each in "*?["):
            exact, level, _ = attrs.evolve(self, is_fuzzy=False, suffix="strict")._found(pattern, None)
            if isinstance(exact, Model):
                return [ModelChoice(model=exact, level=level)], None
            head, _, tail = pattern.rpartition(":")
            glob, level = (head, tail) if head and tail in THINKING_LEVELS else (pattern, None)
            matches = _glob(glob)
            meant = [ModelChoice(model=model, level=level) for model in self.models if matches(model.reference) or matches(model.id)]
            return meant, None if meant else none
        found, level, warning = self._found(pattern, None)
        if found is None:
            return [], none
        if isinstance(found, _Several):
            names = ", ".join(sorted({model.provider for model in found.models}))
            text = f'Pattern "{pattern}" matches several providers: {names}. Use provider/id to choose one.'
            meant = [ModelChoice(model=model, level=level) for model in found.models]
            return meant, ScopeWarning(code="ambiguous", message=text, pattern=pattern)
        fault = None if warning is None else ScopeWarning(code="invalid-thinking-level", message=warning, pattern=pattern)
        return [ModelChoice(model=found, level=level)], fault

    def _found(self, reference: str, provider: str | None) -> tuple[_Found, str | None, str | None]:
        """What is meant, the level at its end, and a warning about one that is none (MOD-91)."""
        found = self._whole(reference, provider)
        head, colon, tail = reference.rpartition(":")
        if found is not None or self.suffix == "none" or not colon or not head:
            return found, None, None
        if tail in THINKING_LEVELS:
            return self._whole(head, provider), tail, None
        found = self._whole(head, provider) if self.suffix == "lenient" else None
        return found, None, f'Invalid thinking level "{tail}" in pattern "{reference}". Using default instead.'

    def _whole(self, text: str, provider: str | None) -> _Found:
        """The model that a text without level means."""
        pool = [model for model in self.models if provider is None or model.provider.lower() == provider.lower()]
        named = self._named(text, pool)
        bare = [model for model in pool if model.id == text]
        if named is not None and bare:
            return self._between(named, bare)
        if named is not None or bare:
            return named or self._only(bare)
        if not self.is_fuzzy:
            return None
        same = [model for model in pool if model.id.lower() == text.lower()]
        prefix = self._prefix(text)
        inside = [model for model in pool if prefix is not None and model.provider == prefix]
        return self._only(same or _best_part(text[len(prefix or "") + 1 :], inside) or _best_part(text, pool))

    def _named(self, text: str, pool: Sequence[Model]) -> Model | None:
        """The model of `provider/id`; of several providers that fit, the longest name wins."""
        fitting = [model for model in pool if text.lower() == model.reference.lower()]
        exact = [model for model in fitting if model.id == text[len(model.provider) + 1 :]]
        return max(exact or fitting, key=lambda model: len(model.provider), default=None)

    def _prefix(self, text: str) -> str | None:
        """The provider that a text begins with, the longest one."""
        names = [model.provider for model in self.models if text.lower().startswith(f"{model.provider.lower()}/")]
        return max(names, key=len, default=None)

    def _between(self, named: Model, bare: Sequence[Model]) -> _Found:
        """`zai/glm-5` may be a model of `zai`, or an id that a gateway has (MOD-92)."""
        others = [model for model in bare if self.is_usable(model.provider)]
        if self.is_usable(named.provider) or not others:
            return named
        return others[0] if len(others) == 1 else _Several([named, *bare])

    def _only(self, models: Sequence[Model]) -> _Found:
        if len(models) <= 1:
            return models[0] if models else None
        usable = [model for model in models if self.is_usable(model.provider)]
        return usable[0] if len(usable) == 1 else _Several(models)

    def _ambiguous(self, text: str, models: Sequence[Model]) -> Rejection:
        several = any(self.is_usable(model.provider) for model in models)
        hint = "More than one matching provider is authenticated." if several else "No matching provider is authenticated."
        hint = "--api-key does not choose a provider." if self.has_given_key else hint
        listed = ", ".join(sorted({model.reference for model in models}))
        return Rejection(f'Model "{text}" is ambiguous across providers: {listed}. {hint} Use --provider or provider/model.')


def _best_part(text: str, pool: Sequence[Model]) -> list[Model]:
    """The best match of a part of an id or name, once for each provider that has it (MOD-94)."""
    part = text.lower()
    matches = [model for model in pool if part and (part in model.id.lower() or part in model.name.lower())]
    if not matches:
        return []
    aliases = [model for model in matches if model.id.endswith("-latest") or not _DATED.search(model.id)]
    best = max(model.id for model in aliases or matches)
    return [model for model in matches if model.id == best]


def _glob(pattern: str) -> Callable[[str], bool]:
    """Whether a text matches, whatever its case; `*` and `?` stop at a slash, `**` does not."""
    done, at = "", 0
    for found in _GLOB.finditer(pattern):
        done += re.escape(pattern[at : found.start()])
        at = found.end()
        if found[1] or found[2] or found[3]:
            done += ".*" if found[1] else "[^/]*" if found[2] else "[^/]"
        else:
            inner = found[4].replace("\\", r"\\").replace("[", r"\[")
            done += f"[{'^' + inner[1:] if inner[0] in '!^' else inner}]"
    try:
        compiled = re.compile(done + re.escape(pattern[at:]), re.IGNORECASE)
    except re.error:  # a class like [z-a]
        return lambda text: text.lower() == pattern.lower()
    return lambda text: compiled.fullmatch(text) is not None
