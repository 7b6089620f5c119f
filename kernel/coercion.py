"""Arguments made to fit their schema before they are checked (TOOL-13).

Theory of operation. One walk over schema and value, on a copy the walk may change. At each
place the value is brought to the schema's type, then to a member of its enum, then through
its unions; then the walk goes into the parts. Null is never made into anything: as an
optional property whose schema rejects it, it is dropped; anywhere else it stays. What does
not fit stays as it is, for the check to report.
"""

import math
import re
from collections.abc import Iterator
from typing import Any, Final

import attrs

from camshaft.kernel.persistent import thaw
from camshaft.kernel.schema_errors import HOPS_MAX, accepts, target_of
from camshaft.kernel.schemas import WHOLE_MAX, Schema, canonical, is_of_type, item_schema, matches_key, type_name

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TRUTHS: Final = {"true": True, "1": True, "false": False, "0": False}
_NULLS: Final = frozenset({"", "null", "undefined", "0"})


def coerced(validator: Any, value: Any) -> Any:
    """The value, brought to the validator's schema as far as it goes. Changes the lists and dicts it is given."""
    return _Coercion(validator=validator).at(validator.schema, value)


def number_text(value: float) -> str:
    """A number as Python writes it, whole ones without `.0`."""
    return repr(value).removesuffix(".0")


@attrs.frozen(kw_only=True)
class _Coercion:
    validator: Any

    def at(self, schema: Schema, value: Any, hops: int = 0) -> Any:
        """The value at a place with this schema; `hops` counts the schemas that already had it."""
        if value is None or not isinstance(schema, dict) or hops > HOPS_MAX:
            return value
        for part in self._in_place(schema):
            value = self.at(part, value, hops + 1)
        value = _typed(value, schema)
        value = _member(value, schema)
        for word in ("anyOf", "oneOf"):
            if schema.get(word):
                value = self._through_union(schema[word], value, hops + 1)
        if isinstance(value, dict):
            self._into_object(schema, value)
        elif isinstance(value, list):
            value = [self.at(item_schema(schema, index), item) for index, item in enumerate(value)]
        return value

    def _in_place(self, schema: dict[str, Any]) -> Iterator[Schema]:
        if "$ref" in schema:
            yield target_of(self.validator, {"$ref": schema["$ref"]})
        yield from schema.get("allOf", ())

    def _through_union(self, branches: list[Schema], value: Any, hops: int) -> Any:
        if any(accepts(self.validator, branch, value) for branch in branches):
            return value
        for branch in branches:
            candidate = self.at(branch, thaw(value), hops)
            if accepts(self.validator, branch, candidate):
                return candidate
        return value

    def _into_object(self, schema: dict[str, Any], value: dict[str, Any]) -> None:
        required = set(schema.get("required", ()))
        for part in schema.get("allOf", ()):
            required.update(part.get("required", ()) if isinstance(part, dict) else ())
        properties, additional = schema.get("properties", {}), schema.get("additionalProperties", True)
        for name in list(value):
            if name in properties:
                if value[name] is None and name not in required and not accepts(self.validator, properties[name], None):
                    del value[name]
                    continue
                value[name] = self.at(properties[name], value[name])
            patterns = [sub for pattern, sub in schema.get("patternProperties", {}).items() if matches_key(pattern, name)]
            for sub in patterns or ([] if name in properties else [additional]):
                value[name] = self.at(sub, value[name])


def _typed(value: Any, schema: dict[str, Any]) -> Any:
    types = schema.get("type")
    if isinstance(types, list):
        if any(is_of_type(value, name) for name in types):
            return value
        made = (_converted(value, name) for name in types)
        return next((each for each in made if each is not _NONE), value)
    if types == "array" and not isinstance(value, list):
        is_tuple = "prefixItems" in schema or isinstance(schema.get("items"), list)
        return value if is_tuple else [value]
    if types == "integer" and (number := _as_number(value)) is not _NONE:
        return math.trunc(number)
    if types is None or is_of_type(value, types):
        return value
    made = _converted(value, types)
    return value if made is _NONE else made


def _member(value: Any, schema: dict[str, Any]) -> Any:
    """The member of the enum or the constant that the value converts to; itself if it is one, or none."""
    members = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())]
    if not members or canonical(value) in map(canonical, members):
        return value
    for member in members:
        made = _converted(value, type_name(member))
        if made is not _NONE and canonical(made) == canonical(member):
            return member
    return value


_NONE: Final = object()
"""No conversion."""


def _converted(value: Any, name: str) -> Any:
    """The primitive as one of the type `name`, or `_NONE`. Integers are whole: nothing is cut off."""
    if value is None or isinstance(value, (dict, list)):
        return _NONE
    if name in ("number", "integer"):
        number = _as_number(value)
        return _NONE if number is not _NONE and name == "integer" and number != math.trunc(number) else number
    if name == "boolean":
        return _as_boolean(value)
    if name == "string":
        return _as_text(value)
    if name == "null":
        return None if value is False or value == 0 or (isinstance(value, str) and value.lower() in _NULLS) else _NONE
    return _NONE


def _as_number(value: Any) -> Any:
    """A finite number; blank text is 0, `true` and `false` are 1 and 0, also as text."""
    if isinstance(value, (bool, int)):
        return int(value)
    if isinstance(value, float):
        return _whole_or_float(value)
    if not isinstance(value, str):
        return _NONE
    text = value.strip()
    if not text:
        return 0
    if text.lower() in ("true", "false"):
        return int(text.lower() == "true")
    if not _NUMBER.fullmatch(text):
        return _NONE
    try:
        return int(text)
    except ValueError:  # A fraction, an exponent, or more digits than Python reads.
        number = float(text)
    return _whole_or_float(number) if math.isfinite(number) else _NONE


def _whole_or_float(number: float) -> int | float:
    return int(number) if number.is_integer() and abs(number) < WHOLE_MAX else number


def _as_boolean(value: Any) -> Any:
    if isinstance(value, str):
        return _TRUTHS.get(value.lower(), _NONE)
    return bool(value) if value in (0, 1) else _NONE


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return number_text(value) if isinstance(value, (int, float)) else value
