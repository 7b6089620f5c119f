"""Queries: what an action or a step may ask about the session (README.md section 4.1)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from camshaft.kernel.tools import callable_names
from tests.conformance.scenario.briefs import briefs
from tests.conformance.scenario.event_shapes import entry_summary
from tests.conformance.scenario.host_face import context_usage, reference
from tests.conformance.scenario.stage import Place
from tests.conformance.scenario.wire_paths import wire

PREAMBLE_MARK: Final = "<default-preamble>"
"""A system prompt that begins with the default preamble is shown as this alone."""


def ask(place: Place, names: Iterable[str]) -> dict[str, Any]:
    """The answers to these queries, as seen from this place. Raises KeyError for an unknown query."""
    return {name: value for name in names if (value := QUERIES[name](place)) is not _NOTHING}


class _Nothing:
    """An answer that is left out."""


_NOTHING: Final = _Nothing()


def _idle(place: Place) -> bool:
    idle: bool = place.context.is_idle() if place.context is not None else place.stage.seat.is_idle
    return idle


def _signal(place: Place) -> Any:
    return place.context.signal if place.context is not None else place.stage.seat.signal


def _signal_aborted(place: Place) -> Any:
    signal = _signal(place)
    return "none" if signal is None else signal.cancelled


def _pending(place: Place) -> bool:
    if place.context is not None:
        pending: bool = place.context.has_pending_messages()
        return pending
    return bool(_queue(place)["steering"] or _queue(place)["followUp"])


def _model(place: Place) -> str | None:
    return reference(place.context.model if place.context is not None else place.stage.seat.model)


def _thinking_level(place: Place) -> str:
    level: str = place.context.thinking_level if place.context is not None else place.stage.seat.thinking_level
    return level


def _system_prompt(place: Place) -> str:
    text: str = place.context.get_system_prompt() if place.context is not None else place.stage.seat.system_prompt
    return text


def _last_entry(place: Place) -> Any:
    view = place.session()
    leaf = view.get_leaf_id()
    entry = view.get_entry(leaf) if leaf is not None else None
    return None if entry is None else entry_summary(entry)


def _active_tools(place: Place) -> list[str]:
    return list(place.api.get_active_tools() if place.api is not None else place.stage.seat.active_tools)


def _all_tools(place: Place) -> list[dict[str, Any]]:
    own = {name: tool for name, tool in place.stage.seat.tools.items() if tool.source_info.source != "builtin"}
    return [{"name": name, "exposure": tool.definition.exposure} for name, tool in own.items()]


def _context_usage(place: Place) -> Any:
    usage = place.context.get_context_usage() if place.context is not None else context_usage(place.stage.seat)
    return _NOTHING if usage is None else wire(usage)


def _session_name(place: Place) -> Any:
    name = place.session().get_session_name()
    return _NOTHING if name is None else name


def _commands(place: Place) -> list[str]:
    return [command.name for command in place.stage.seat.commands()]


def _queue(place: Place) -> dict[str, Any]:
    queue = place.stage.seat.queue
    return {"steering": list(queue.steering), "followUp": list(queue.follow_up)}


def _messages(place: Place) -> list[list[Any]]:
    return briefs(wire(tuple(place.stage.seat.context_messages)))


QUERIES: Final[Mapping[str, Callable[[Place], Any]]] = {
    "isIdle": _idle,
    "isStreaming": lambda place: place.stage.seat.state.is_busy,
    "hasPendingMessages": _pending,
    "signalAborted": _signal_aborted,
    "model": _model,
    "thinkingLevel": _thinking_level,
    "systemPrompt": _system_prompt,
    "activeTools": _active_tools,
    "callableTools": lambda place: list(callable_names(_active_tools(place), place.stage.seat.tools)),
    "allTools": _all_tools,
    "entryCount": lambda place: len(place.entries()),
    "lastEntry": _last_entry,
    "leaf": lambda place: place.session().get_leaf_id(),
    "branchTypes": lambda place: [entry.type for entry in place.session().get_branch()],
    "contextUsage": _context_usage,
    "sessionName": _session_name,
    "commands": _commands,
    "queue": _queue,
    "messages": _messages,
}
"""Query to answer. An answer that is undefined in the recorded runs is left out."""
