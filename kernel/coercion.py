"""Arguments made to fit their schema before they are checked (TOOL-13).

Theory of operation. Two walks over schema and value, on a copy they may change. The loose one
takes one thing per place, the first of these the schema has: a reference, a constant or an
enum, an object's properties, a union, the members of `allOf`, a type. It reads what a person
would (`"TRUE"`, `"1"` as truth, blank text as 0), cuts fractions off integers and makes lists
of single values. The strict one goes everywhere and brings what is left, lists of types
included, to a primitive type only where nothing is guessed. Null is never made into anything:
as an optional property whose schema rejects it, it is dropped; anywhere else it stays. What
does not fit stays as it is, for the check to report.
"""

import math
import re
from collections.abc import Sequence
from typing import Any, Final

from camshaft.kernel import shapes
from camshaft.kernel.persistent import thaw
from camshaft.kernel.schema_errors import HOPS_MAX, accepts, target_of
from camshaft.kernel.schemas import WHOLE_MAX, Schema, canonical, has_type, is_of_type, item_schema, matches_key, type_name, types_of

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_OTHER_BASE: Final = re.compile(r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)")
_BLANKS: Final = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What may stand around a number in text."""
_TRUTHS: Final = {"true": True, "false": False}
_LOOSE_TRUTHS: Final = {**_TRUTHS, "1": True, "0": False}
_NULLS: Final = frozenset({"", "null", "undefined", "0"})


def coerced(validator: Any, value: Any) -> Any:
    """The value, brought to the validator's schema as far as it goes. Changes the lists and dicts it is given."""
    for strict in (False, True):
        value = _Walk(validator=validator, strict=strict).at(validator.schema, value)
    return value


def number_text(value: float) -> str:
    """A number as Python writes it, whole ones without `.0`, zero without a sign."""
    return repr(value + 0).removesuffix(".0")


@shapes.frozen(kw_only=True)
class _Walk:
    validator: Any
    strict: bool

    def at(self, schema: Schema, value: Any, hops: int = 0) -> Any:
        """The value at a place with this schema; `hops` counts the schemas that already had it."""
        if value is None or not isinstance(schema, dict) or hops > HOPS_MAX:
            return value
        return self._strictly(schema, value, hops) if self.strict else self._loosely(schema, value, hops)

    def _loosely(self, schema: dict[str, Any], value: Any, hops: int) -> Any:
        if "$ref" in schema:
            return self.at(self._target(schema), value, hops + 1)
        if "const" in schema or "enum" in schema:
            return _member(value, [schema["const"]] if "const" in schema else schema["enum"])
        types = schema.get("type")
        if isinstance(types, list):
            return value
        is_object = types == "object" or "properties" in schema or "patternProperties" in schema
        if is_object and isinstance(value, dict):
            self._into_object(schema, value)
        for word in ("anyOf", "oneOf"):
            if schema.get(word):
                return self._through_union(word, schema[word], value, hops + 1)
        if schema.get("allOf"):
            return self._through_all(schema["allOf"], value, hops + 1)
        return self._into_list(schema, value if types is None else _typed(value, types, schema))

    def _strictly(self, schema: dict[str, Any], value: Any, hops: int) -> Any:
        if "$ref" in schema:
            value = self.at(self._target(schema), value, hops + 1)
        value = self._through_all(schema.get("allOf", ()), value, hops + 1)
        for word in ("anyOf", "oneOf"):
            if schema.get(word):
                value = self._through_union(word, schema[word], value, hops + 1)
        if not has_type(schema, value):
            made = (_strictly_converted(value, name) for name in types_of(schema))
            value = next((each for each in made if each is not _NONE), value)
        if isinstance(value, dict):
            self._into_object(schema, value)
        return self._into_list(schema, value)

    def _target(self, schema: dict[str, Any]) -> Schema:
        return target_of(self.validator, {"$ref": schema["$ref"]})

    def _through_all(self, parts: Sequence[Schema], value: Any, hops: int) -> Any:
        for part in parts:
            value = self.at(part, value, hops)
        return value

    def _through_union(self, word: str, branches: list[Schema], value: Any, hops: int) -> Any:
        """The value if some branch accepts it, else as the first branch whose conversion passes.

        The loose walk passes by the whole union, so that of `oneOf` no second branch accepts it.
        """
        if any(accepts(self.validator, branch, value) for branch in branches):
            return value
        for branch in branches:
            candidate = self.at(branch, thaw(value), hops)
            if accepts(self.validator, branch if self.strict else {word: branches}, candidate):
                return candidate
        return value

    def _into_list(self, schema: dict[str, Any], value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return [self.at(item_schema(schema, index), item) for index, item in enumerate(value)]

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


def _typed(value: Any, name: str, schema: dict[str, Any]) -> Any:
    if name == "array" and not isinstance(value, list):
        is_tuple = "prefixItems" in schema or isinstance(schema.get("items"), list)
        return value if is_tuple else [value]
    if name == "integer" and (number := _as_number(value)) is not _NONE:
        return math.trunc(number)
    if is_of_type(value, name):
        return value
    made = _converted(value, name)
    return value if made is _NONE else made


def _member(value: Any, members: list[Any]) -> Any:
    """The member that the value converts to; itself if it is one, or converts to none."""
    if canonical(value) in map(canonical, members):
        return value
    for member in members:
        made = _NONE if member is None else _converted(value, type_name(member))
        if made is not _NONE and canonical(made) == canonical(member):
            return member
    return value


_NONE: Final = object()
"""No conversion."""


def _strictly_converted(value: Any, name: str) -> Any:
    """As `_converted`, but of texts only the plain forms count: `true`, `false`, a number, the empty text for null."""
    if not isinstance(value, str):
        return _converted(value, name)
    if name == "null":
        return None if value == "" else _NONE
    if name == "boolean":
        return _TRUTHS.get(value, _NONE)
    return _NONE if value.strip(_BLANKS).lower() in ("", "true", "false") else _converted(value, name)


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
    text = value.strip(_BLANKS)
    if not text:
        return 0
    if value.lower() in _TRUTHS:
        return int(_TRUTHS[value.lower()])
    if _OTHER_BASE.fullmatch(text):
        return int(text, 0)
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
        return _LOOSE_TRUTHS.get(value.lower(), _NONE)
    return bool(value) if value in (0, 1) else _NONE


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return number_text(value) if isinstance(value, (int, float)) else value
