"""Choosing model and thinking level: by name, or the next one (SDK-13, RPC-40 to RPC-42, API-22, API-23)."""

from typing import Literal

from camshaft.actors.errors import CommandRefused
from camshaft.actors.providers import catalogue_of, find_model, provider_of
from camshaft.actors.scoped import ScopedModel
from camshaft.actors.seat_parts import SeatParts
from camshaft.kernel import hook_events, shapes
from camshaft.kernel.commands import SelectLevel, SelectModel
from camshaft.kernel.events import ThinkingLevelChanged
from camshaft.kernel.models import THINKING_LEVELS, Model, clamp_level, supported_levels

Direction = Literal["forward", "backward"]


class UnknownModel(CommandRefused):
    """A model reference names no model, or several."""


@shapes.frozen(kw_only=True)
class Cycled:
    """What a step to the next model came to."""

    model: Model
    thinking_level: str
    is_scoped: bool
    """Whether the step was among the scoped models."""


async def select_model(parts: SeatParts, model: Model | str, source: str, wanted: str | None = None) -> bool:
    """Uses a model, with the level `wanted` or as it is, clamped; False if it has no credentials. Raises UnknownModel.

    A changed level is told before the changed model (API-22).
    """
    found = find_model(parts.providers, model) if isinstance(model, str) else model
    if found is None:
        known = ", ".join([each.reference for provider in parts.providers for each in provider.models]) or "none"
        raise UnknownModel(f"no model {model!r}; the models are: {known}")
    provider = provider_of(parts.providers, found)
    if provider is not None and not provider.configured():
        return False
    previous, before = parts.state.selection.model, parts.state.selection.thinking_level
    level = clamp_level(found, wanted or before)
    parts.posted(SelectModel(model=found, thinking_level=level))
    if level != before:
        _tell_level(parts, level, before)
    if previous != found and parts.host.has("model_select"):
        event = hook_events.ModelSelectEvent(model=found, previous_model=previous, source=source)
        await parts.host.dispatch("model_select", event)
    return True


def scoped_models(parts: SeatParts) -> tuple[tuple[ScopedModel, ...], tuple[str, ...]]:
    """The models to start with and to cycle through, as they are served now, and what is odd about their patterns (MOD-96).

    Without models: there is no scope, or it means none of those that are served.
    """
    options = parts.options
    patterns = options.settings.enabled_models if options.model_patterns is None else options.model_patterns
    if options.scoped_models or not patterns:
        return options.scoped_models, ()
    scope = catalogue_of(parts.providers).scope(patterns)
    found = tuple([ScopedModel(model=choice.model, thinking_level=choice.level) for choice in scope.choices])
    return found, tuple([warning.message for warning in scope.warnings])


async def cycle_model(parts: SeatParts, direction: Direction) -> Cycled | None:
    """The next usable model of the scope, else of all; None if there is no other one."""
    if direction not in ("forward", "backward"):
        raise CommandRefused(f"direction {direction!r}; expected forward or backward")
    scope = scoped_models(parts)[0]
    around = _usable(
        parts, scope or [ScopedModel(model=model) for provider in parts.providers for model in provider.models if model.is_chat]
    )
    if len(around) <= 1:
        return None
    current = parts.state.selection.model
    place = next((number for number, each in enumerate(around) if current is not None and each.model.reference == current.reference), None)
    step = 1 if direction == "forward" else -1
    following = around[0] if place is None else around[(place + step) % len(around)]
    await select_model(parts, following.model, "cycle", following.thinking_level)
    return Cycled(model=following.model, thinking_level=parts.state.selection.thinking_level, is_scoped=bool(scope))


def set_thinking_level(parts: SeatParts, level: str) -> None:
    """Uses a level, clamped to the model; nothing if that changes nothing. Raises CommandRefused for an unknown one."""
    if level not in THINKING_LEVELS:
        raise CommandRefused(f"thinking level {level!r}; expected one of {', '.join(THINKING_LEVELS)}")
    selection = parts.state.selection
    effective = clamp_level(selection.model, level) if selection.model is not None else level
    if effective != selection.thinking_level:
        parts.posted(SelectLevel(thinking_level=effective))
        _tell_level(parts, effective, selection.thinking_level)


def cycle_thinking_level(parts: SeatParts) -> str | None:
    """The level after the present one, the first after the last; None for a model that does not reason."""
    selection = parts.state.selection
    if selection.model is None or not selection.model.reasoning:
        return None
    levels = supported_levels(selection.model)
    place = levels.index(selection.thinking_level) if selection.thinking_level in levels else -1
    set_thinking_level(parts, levels[(place + 1) % len(levels)])
    return parts.state.selection.thinking_level


def refresh_model(parts: SeatParts) -> None:
    """Takes the current model's record from who serves it now; nothing is written to the session (PRV-4)."""
    selection = parts.state.selection
    known = None if selection.model is None else find_model(parts.providers, selection.model.reference)
    if known is not None and known != selection.model:
        parts.posted(SelectModel(model=known, thinking_level=clamp_level(known, selection.thinking_level), record=False))


def _usable(parts: SeatParts, models: "tuple[ScopedModel, ...] | list[ScopedModel]") -> list[ScopedModel]:
    served = [(each, provider_of(parts.providers, each.model)) for each in models]
    return [each for each, provider in served if provider is not None and provider.configured()]


def _tell_level(parts: SeatParts, level: str, before: str) -> None:
    parts.stream.publish(ThinkingLevelChanged(level=level))
    event = hook_events.ThinkingLevelSelectEvent(level=level, previous_level=before)
    parts.host.notify("thinking_level_select", event)
