"""Model, thinking level and active tools that a session begins with (MOD-97, EXPO-30).

What is said in options comes first, then what the session recorded, then settings. A reload
keeps what is selected, as far as it still exists (EXT-49).
"""

from collections.abc import Sequence
from typing import Final

from camshaft.actors.choosing import refresh_model, scoped_models
from camshaft.actors.errors import InvalidOptions
from camshaft.actors.extension_host import BUILTIN, ExtensionHost
from camshaft.actors.options import OpenOptions
from camshaft.actors.providers import find_model
from camshaft.actors.scoped import ScopedModel
from camshaft.actors.seat_parts import SeatParts
from camshaft.actors.virtual_models import is_virtual
from camshaft.kernel.commands import RecordSelection, SelectModel, SelectTools
from camshaft.kernel.errors import Rejection
from camshaft.kernel.events import DiagnosticEvent
from camshaft.kernel.models import THINKING_LEVELS, Model, clamp_level
from camshaft.kernel.prompt import DEFAULT_TOOLS
from camshaft.kernel.recorded import recorded_level, recorded_tools
from camshaft.kernel.routing import implied_model
from camshaft.kernel.settings_merge import default_tools_of
from camshaft.kernel.state import SessionState
from camshaft.kernel.tools import after_registration, selected_at_start, with_active

DEFAULT_LEVEL: Final = "medium"
"""Thinking level of a new session when nothing else is said (MOD-97)."""


def select_at_start(parts: SeatParts) -> None:
    """Model, level and tools of the conversation (MOD-97, EXPO-30); a new session records the first two (SES-23).

    Raises InvalidOptions for a model or a tool list that cannot be.
    """
    options, session, state = parts.options, parts.session, parts.state
    is_new = state.projection.message_count == 0
    scoped, odd = scoped_models(parts)
    for message in odd:
        parts.stream.publish(DiagnosticEvent(source="model", message=message))
    model = _model_at_start(parts, state, scoped if is_new else ())
    level = _level_at_start(options, state, scoped if is_new else None, model)
    effective = "off" if model is None else clamp_level(model, level)
    if model is not None:
        session.post(SelectModel(model=model, thinking_level=effective, record=False))
    if is_new and state.tree.length == 0:
        reference = None if model is None else (model.provider, model.id)
        session.post(RecordSelection(model=reference, thinking_level=effective))
    elif not is_new and recorded_level(state) is None:
        session.post(RecordSelection(thinking_level=effective))
    active, awaited = _tools_at_start(options, state, parts.host)
    session.post(SelectTools(active_tools=active, awaited=awaited))


def _model_at_start(parts: SeatParts, state: SessionState, scope: Sequence[ScopedModel]) -> Model | None:
    options, providers, is_new = parts.options, parts.providers, state.projection.message_count == 0
    available = [model for provider in providers if provider.configured() for model in provider.models if model.is_chat]
    if options.model is not None:
        found = find_model(providers, options.model)
        if found is None:
            known = ", ".join([each.reference for provider in providers for each in provider.models]) or "none"
            raise InvalidOptions(f"no model {options.model!r}; the models are: {known}")
        return found
    usable = {model.reference: model for model in available}
    implied = None if is_new else implied_model(state, lambda key: is_virtual(providers, key))
    recorded = None if implied is None else "/".join(implied)
    scoped = [each.model.reference for each in scope]
    settings = options.settings
    default = f"{settings.default_provider}/{settings.default_model}" if settings.default_provider and settings.default_model else None
    chosen = next((usable[each] for each in (recorded, *scoped, default) if each in usable), available[0] if available else None)
    if recorded is not None and recorded not in usable:
        using = "" if chosen is None else f". Using {chosen.reference}"
        parts.stream.publish(DiagnosticEvent(source="model", message=f"Could not restore model {recorded}{using}"))
    return chosen


def _level_at_start(options: OpenOptions, state: SessionState, scope: Sequence[ScopedModel] | None, model: Model | None) -> str:
    """`scope` None: the session is not new."""
    if options.thinking_level is not None:
        return options.thinking_level
    recorded = recorded_level(state) if scope is None else None
    if recorded is not None:
        return recorded
    settings, reference = options.settings, "" if model is None else model.reference
    scoped = [each.thinking_level for each in scope or () if each.model.reference == reference and each.thinking_level]
    own = [] if scope is None else [*scoped, settings.model_thinking_levels.get(reference)]
    return next((level for level in own if level in THINKING_LEVELS), settings.default_thinking_level or DEFAULT_LEVEL)


_StartTools = tuple[tuple[str, ...], tuple[str, ...]]
"""The active set, and what the branch has active but nobody registered yet."""


def _tools_at_start(options: OpenOptions, state: SessionState, host: ExtensionHost) -> _StartTools:
    """The chosen tools; without a choice a resumed session's own, in the order of EXPO-7."""
    choice: Sequence[str] | None = () if options.no_tools == "all" and options.tools is None else options.tools
    chosen = default_tools_of(options.settings.default_tools if choice is None else None)
    defaults: Sequence[str] = () if options.no_tools == "builtin" else DEFAULT_TOOLS
    defaults = defaults if chosen.names is None else chosen.names
    wanted = choice if choice is not None else chosen.modifiers or None
    active = selected_at_start(wanted, options.exclude_tools, host.tools, defaults=defaults)
    if isinstance(active, Rejection):
        raise InvalidOptions(active.why)
    recorded = None if options.tools is not None else recorded_tools(state)
    if recorded is None:
        return active, ()
    awaited = tuple([name for name in recorded.declared if name not in host.tools])
    kept = [name for name in active if name in recorded.declared or name not in recorded.mentioned]
    return with_active(kept, [*kept, *[name for name in recorded.declared if name not in kept]], host.tools), awaited


def select_again(parts: SeatParts, before: OpenOptions) -> None:
    """After a reload (EXT-49): what was active stays, tools that register and defaults that are new become active.

    Tools that were active and are not there now become active when they register. The model
    is the one of the same name, if a provider still has it.
    """
    selection, host = parts.state.selection, parts.host
    active = with_active(selection.active_tools, selection.active_tools, host.tools)
    for tool in host.tools.values():
        if tool.source_info.path != BUILTIN.path:
            active = after_registration(active, tool.definition)
    added = [name for name in parts.options.settings.default_tools or () if name not in (before.settings.default_tools or ())]
    active = with_active(active, [*active, *[name.removeprefix("+") for name in added if not name.startswith("-")]], host.tools)
    gone = [name for name in (*selection.active_tools, *selection.awaited_tools) if name not in host.tools]
    parts.session.post(SelectTools(active_tools=active, awaited=tuple(dict.fromkeys(gone))))
    refresh_model(parts)
