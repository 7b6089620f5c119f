"""Whether a value plainly fits a simple schema as it is: the common case, decided without the validator.

A model that calls a tool well sends arguments of the right types. For the keywords that most
tools use this says yes in a few steps; for every other keyword, and for every value that would
need coercing or might not fit, it says no, and the full check decides.
"""

from typing import Any, Final

_PLAIN: Final = frozenset({"type", "properties", "required", "additionalProperties", "items", "enum"})
"""Keywords decided here."""
_SILENT: Final = frozenset({"description", "title", "default", "examples", "$comment", "deprecated"})
"""Keywords that decide nothing."""
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def fits_plainly(schema: Any, value: Any) -> bool:
    """True if `value`, plain JSON, is valid by `schema` and coercion would leave it alone. False decides nothing."""
    if not isinstance(schema, dict) or not schema.keys() <= _PLAIN | _SILENT:
        return False
    wanted = schema.get("type")
    if not isinstance(wanted, str) or type(value) not in _TYPES.get(wanted, ()):
        return False
    if "enum" in schema and not (isinstance(value, str) and value in schema["enum"]):
        return False
    if isinstance(value, dict):
        return _object_fits(schema, value)
    if isinstance(value, list):
        items = schema.get("items")
        return items is None or all([fits_plainly(items, item) for item in value])
    return value == value and value not in (float("inf"), float("-inf"))


def _object_fits(schema: dict[str, Any], value: dict[str, Any]) -> bool:
    properties = schema.get("properties") or {}
    if not isinstance(properties, dict) or any([name not in value for name in schema.get("required") or ()]):
        return False
    extra = schema.get("additionalProperties", True)
    for name, item in value.items():
        if name not in properties:
            if extra is not True:
                return False
        elif not fits_plainly(properties[name], item):
            return False
    return True
