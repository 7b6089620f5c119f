"""JSON schemas as plain data that nothing trips over, and what their words say about one value.

`cleaned` takes from a schema what would make a walk raise: a keyword with a value of the wrong
shape counts as absent, and so does `$schema`, which would bring in keywords that are not ours.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from camshaft.kernel.formats import compiled_pattern
from camshaft.kernel.persistent import thaw

Schema = Any
"""A dict or a bool, cleaned."""

WHOLE_MAX: Final = 2**53
"""Whole floats below it are the integers they look like."""

# -- the shape of schemas ----------------------------------------------------------------

_ONE: Final = frozenset(
    [
        "additionalProperties",
        "additionalItems",
        "propertyNames",
        "items",
        "contains",
        "not",
        "if",
        "then",
        "else",
        "unevaluatedProperties",
        "unevaluatedItems",
    ]
)
_MANY: Final = frozenset(["allOf", "anyOf", "oneOf", "prefixItems", "items"])
_NAMED: Final = frozenset(["properties", "patternProperties", "dependentSchemas", "$defs", "definitions", "dependencies"])
_SHAPES: Final[Mapping[str, tuple[type, ...]]] = MappingProxyType(
    {
        **dict.fromkeys(("type",), (str, list)),
        **dict.fromkeys(("enum", "required"), (list,)),
        **dict.fromkeys(("pattern", "format", "$ref", "$dynamicRef", "$id", "$anchor", "$dynamicAnchor"), (str,)),
        **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), (int, float)),
        **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), (int, float)),
        **dict.fromkeys(("minContains", "maxContains"), (int, float)),
        **dict.fromkeys(("dependentRequired",), (dict,)),
    }
)


def cleaned(schema: object) -> Schema:
    """A plain copy of a schema in which every keyword has a value of its shape."""
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, Mapping):
        return True
    made: dict[str, Any] = {}
    for word, value in schema.items():
        if word in _NAMED and isinstance(value, Mapping):
            made[word] = {name: thaw(sub) if isinstance(sub, (list, tuple)) else cleaned(sub) for name, sub in value.items()}
        elif word in _MANY and isinstance(value, (list, tuple)):
            made[word] = [cleaned(sub) for sub in value]
        elif word in _ONE and isinstance(value, (Mapping, bool)):
            made[word] = cleaned(value)
        elif word not in _NAMED | _MANY | _ONE and word != "$schema" and _has_shape(word, plain := thaw(value)):
            made[word] = plain
    return made


def _has_shape(word: str, value: object) -> bool:
    shapes = _SHAPES.get(word)
    if shapes is None:
        return True
    if not isinstance(value, shapes) or isinstance(value, bool):
        return False
    if word in ("type", "required") and isinstance(value, list):
        return all(isinstance(name, str) for name in value)
    return word != "multipleOf" or (isinstance(value, (int, float)) and value > 0)


# -- values ------------------------------------------------------------------------------


def type_name(value: Any) -> str:
    """The type an error names; every whole number is an integer."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "integer" if isinstance(value, int) or value.is_integer() else "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def is_of_type(value: Any, name: str) -> bool:
    """Whether the value has the type; a type nobody knows is no value's."""
    actual = type_name(value)
    return actual == name or (name == "number" and actual == "integer")


def canonical(value: Any) -> str:
    """A text that two JSON values share exactly when they are equal as JSON (1 and 1.0 are, 1 and true are not)."""
    return json.dumps(_whole(value), sort_keys=True)


def json_text(value: Any) -> str:
    """Compact JSON, for messages."""
    return json.dumps(_whole(value), separators=(",", ":"), ensure_ascii=False)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < WHOLE_MAX:
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


def types_of(schema: Mapping[str, Any]) -> list[str]:
    """The types a schema lists; empty if it lists none."""
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else types


def has_type(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether the value has one of the listed types; true if none is listed."""
    types = types_of(schema)
    return not types or any(is_of_type(value, name) for name in types)


def item_schema(schema: Mapping[str, Any], index: int) -> Schema:
    """The schema of a list's item: its place in the tuple, or the one of the rest."""
    items = schema.get("items", True)
    is_old = isinstance(items, list)
    places = items if is_old else schema.get("prefixItems", [])
    if index < len(places):
        return places[index]
    return schema.get("additionalItems", True) if is_old else items


def matches_key(pattern: str, name: str) -> bool:
    """Whether a pattern of `patternProperties` means this key; one that is none here means no key."""
    compiled = compiled_pattern(pattern)
    return compiled is not None and compiled.search(name) is not None
