"""Templates in action values: objects that stand for an event field, an argument, an entry id or a model (README.md section 3.1)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from tests.conformance.scenario.wire_paths import get, wire


@attrs.frozen(kw_only=True)
class Sources:
    """Where the values of templates come from."""

    event: Any = None
    arguments: Any = None
    variables: Any = None
    entries: Callable[[], Sequence[Any]]
    """All entries of the current session in append order."""
    model: Callable[[str], Any]
    """The model object of a `provider/id`."""


def resolve(value: Any, sources: Sources) -> Any:
    """`value` with every template in it replaced. Raises LookupError if no entry fits a selector."""
    if isinstance(value, (list, tuple)):
        return [resolve(item, sources) for item in value]
    if not isinstance(value, Mapping):
        return value
    if "$ev" in value:
        return wire(get(sources.event, value["$ev"]))
    if "$arg" in value:
        return wire(get(sources.arguments, value["$arg"]))
    if "$var" in value:
        return wire(get(sources.variables, value["$var"]))
    if "$entry" in value:
        return select(sources.entries(), value["$entry"])
    if "$repeat" in value:
        return str(resolve(value["$repeat"], sources)) * value["n"]
    if "$model" in value:
        return sources.model(value["$model"])
    return {key: resolve(item, sources) for key, item in value.items()}


def select(entries: Sequence[Any], selector: Mapping[str, Any]) -> str:
    """The id of the entry that a selector names: the `nth` (default 1) of those that fit its other fields."""
    fitting = [entry.id for entry in entries if _fits(entry, selector)]
    nth = selector.get("nth", 1)
    index = nth - 1 if nth > 0 else nth
    if not -len(fitting) <= index < len(fitting):
        raise LookupError(f"no entry fits {dict(selector)!r}; {len(fitting)} of {len(entries)} entries fit it without its `nth`")
    found: str = fitting[index]
    return found


def _fits(entry: Any, selector: Mapping[str, Any]) -> bool:
    found = {"type": get(entry, "type"), "role": get(entry, "message.role"), "customType": get(entry, "customType")}
    return all(found[key] == expected for key, expected in selector.items() if key != "nth")
