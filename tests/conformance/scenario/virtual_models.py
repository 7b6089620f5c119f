"""Virtual models of a scenario: a router that takes the first route that fits the request (README.md section 3)."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.conformance.scenario.actions import ScriptedFailure
from tests.conformance.scenario.briefs import brief
from tests.conformance.scenario.host_face import NotOffered
from tests.conformance.scenario.stage import Place
from tests.conformance.scenario.wire_paths import get, matches, wire

FIELDS = ("reason", "thinkingLevel", "previous", "failed", "state")
"""Fields of a routing request that are recorded as they are."""


def register_virtual_models(api: Any, place: Place, specs: Sequence[Mapping[str, Any]]) -> None:
    """Registers each. Raises NotOffered if the extension face has no virtual models."""
    for spec in specs:
        register = getattr(api, "register_virtual_model", None)
        if register is None:
            raise NotOffered("the extension face does not offer 'register_virtual_model' in this version")
        register(
            provider=spec["provider"],
            id=spec["id"],
            thinking_levels=spec.get("thinkingLevels"),
            context_window=spec.get("contextWindow"),
            route=_router(place, spec["routes"]),
        )


def _router(place: Place, routes: Sequence[Mapping[str, Any]]) -> Any:
    def route(request: Any, _context: Any = None) -> Any:
        shown = {name: wire(get(request, name)) for name in FIELDS if get(request, name) is not None}
        last = get(request, "lastMessage")
        if last is not None:
            shown["lastMessage"] = brief(wire(last))
        place.stage.recorder.record({**place.head, "event": "(route)", "data": shown})
        seen = {**shown, "hasPrevious": get(request, "previous") is not None}
        for candidate in routes:
            if matches(candidate.get("when"), seen):
                return _taken(candidate, shown.get("thinkingLevel"))
        raise ScriptedFailure("no route of the scenario fits the request")

    return route


def _taken(candidate: Mapping[str, Any], level: Any) -> dict[str, Any]:
    if "raise" in candidate:
        raise ScriptedFailure(candidate["raise"])
    taken = {"model": candidate["model"], "thinking_level": candidate.get("thinkingLevel", level)}
    return {**taken, "state": candidate["state"]} if "state" in candidate else taken
