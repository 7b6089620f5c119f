"""Virtual models of a scenario: a router that takes the first route that fits the request (README.md section 3)."""

from collections.abc import Mapping, Sequence
from typing import Any

from camshaft.kernel.persistent import thaw
from tests.conformance.scenario.actions import ScriptedFailure
from tests.conformance.scenario.briefs import brief
from tests.conformance.scenario.stage import Place
from tests.conformance.scenario.wire_paths import matches, wire


def register_virtual_models(api: Any, place: Place, specs: Sequence[Mapping[str, Any]]) -> None:
    """Registers each."""
    for spec in specs:
        given = {"thinking_levels": spec.get("thinkingLevels"), "context_window": spec.get("contextWindow")}
        definition = {name: value for name, value in given.items() if value is not None}
        route = _router(place, spec["routes"])
        api.register_virtual_model({"provider": spec["provider"], "id": spec["id"], "name": spec["id"], "route": route, **definition})


def _router(place: Place, routes: Sequence[Mapping[str, Any]]) -> Any:
    def route(request: Any, _context: Any = None) -> Any:
        shown = _shown(request)
        place.stage.recorder.record({**place.head, "event": "(route)", "data": shown})
        seen = {**shown, "hasPrevious": request.previous is not None}
        for candidate in routes:
            if matches(candidate.get("when"), seen):
                return _taken(candidate, shown.get("thinkingLevel"))
        raise ScriptedFailure("no route of the scenario fits the request")

    return route


def _shown(request: Any) -> dict[str, Any]:
    """A routing request as it is recorded: models by their reference, the failure by its text, the last message in brief."""
    previous, failed = request.previous, request.failed
    shown = {
        "reason": request.reason,
        "thinkingLevel": request.thinking_level,
        "previous": None if previous is None else {"model": previous.model.reference, "thinkingLevel": previous.thinking_level},
        "failed": None if failed is None else {"model": failed.model.reference, "errorMessage": failed.message.error_message},
        "state": thaw(request.state),
        "lastMessage": brief(wire(request.messages[-1])) if request.messages else None,
    }
    return {name: value for name, value in shown.items() if value is not None}


def _taken(candidate: Mapping[str, Any], level: Any) -> dict[str, Any]:
    if "raise" in candidate:
        raise ScriptedFailure(candidate["raise"])
    taken = {"model": candidate["model"], "thinking_level": candidate.get("thinkingLevel", level)}
    return {**taken, "state": candidate["state"]} if "state" in candidate else taken
