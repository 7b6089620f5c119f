"""Scenarios speak wire names, our faces speak Python: dotted wire paths into objects, and values both ways.

A path segment is a key of a mapping, an index of a list, or the camelCase name of an
attribute. Words that Python reserves have an underscore behind them (`continue_`).
"""

import re
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, Final

import attrs

from camshaft.kernel.codec import camel, encode
from camshaft.kernel.thawed import Thawed, frozen

OPAQUE: Final = frozenset(
    {"details", "data", "arguments", "args", "input", "parameters", "sections", "outputSchema", "structuredContent", "toolSnippets"}
)
"""Fields whose value belongs to their owner: the names inside are not ours to translate."""

UNSHOWN: Final = frozenset({"signal", "extra"})
"""Attributes of events that are no part of their data."""


def snake(name: str) -> str:
    """`toolCallId` as `tool_call_id`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: "_" + found[1].lower(), name)


def snaked(value: Any) -> Any:
    """A wire value with the keys Python callers use; opaque parts stay as they are."""
    if isinstance(value, Mapping):
        return {snake(key): item if key in OPAQUE else snaked(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [snaked(item) for item in value]
    return value


def cameled(value: Any) -> Any:
    """The opposite of `snaked`: a value that a Python caller wrote, with wire keys."""
    if isinstance(value, Mapping):
        return {camel(key): item if camel(key) in OPAQUE else cameled(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [cameled(item) for item in value]
    return value


def wire(value: Any) -> Any:
    """One of our values, thawed or frozen, as plain wire JSON."""
    value = frozen(value) if isinstance(value, Thawed) else value
    if attrs.has(type(value)):
        return wire(encode(value))
    if isinstance(value, Mapping):
        return {key: wire(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [wire(item) for item in value]
    return value


def fields(event: Any) -> dict[str, Any]:
    """The fields of an event by their wire names, as wire JSON; an optional field that is None is left out,
    one that somebody wrote out as null is null."""
    shown = {}
    for field in attrs.fields(type(event)):
        value = getattr(event, field.name)
        optional = field.default is None
        if field.name not in UNSHOWN and not (value is None and optional):
            shown[camel(field.name)] = wire(value)
    return shown | dict(getattr(event, "extra", {}))


def get(value: Any, path: str) -> Any:
    """What lies at `path`, as it is; None where the path leads nowhere."""
    for segment in path.split("."):
        if value is None:
            return None
        value = _step(value, segment)
    return value


def put(value: Any, path: str, new: Any) -> None:
    """Sets what lies at `path`, in place."""
    parent, last = _parent(value, path)
    if isinstance(parent, MutableMapping):
        parent[last] = new
    elif isinstance(parent, MutableSequence):
        parent[int(last)] = new
    else:
        setattr(parent, _attribute(parent, last), new)


def delete(value: Any, path: str) -> None:
    """Removes what lies at `path`: a key or an item, or an attribute's value."""
    parent, last = _parent(value, path)
    if isinstance(parent, MutableMapping):
        parent.pop(last, None)
    elif isinstance(parent, MutableSequence):
        del parent[int(last)]
    else:
        setattr(parent, _attribute(parent, last), None)


def matches(when: Mapping[str, Any] | None, value: Any) -> bool:
    """Whether every path of `when` holds its value; an absent value equals null."""
    return all(wire(get(value, path)) == expected for path, expected in (when or {}).items())


def _parent(value: Any, path: str) -> tuple[Any, str]:
    head, _, last = path.rpartition(".")
    parent = get(value, head) if head else value
    if parent is None:
        raise LookupError(f"nothing lies at {head!r} of {type(value).__name__}; the path {path!r} leads nowhere")
    return parent, last


def _step(value: Any, segment: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(segment, value.get(snake(segment)))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return value[int(segment)] if segment.lstrip("-").isdigit() and int(segment) < len(value) else None
    return getattr(value, _attribute(value, segment), None)


def _attribute(value: Any, segment: str) -> str:
    name = snake(segment)
    return f"{name}_" if not hasattr(value, name) and hasattr(value, f"{name}_") else name
