"""What is wrong with a value by its JSON Schema, in our words and order (TOOL-15 to TOOL-17).

Theory of operation. jsonschema walks schema and value; every keyword is ours, in groups.
`GROUPS` lists them in the order in which the errors of one value are told; a value of the
wrong type gives its type error and no other. A reference that leads nowhere and a pattern
that is none here reject the values at their place and nothing else. The registry is empty:
no reference is ever fetched. The schema is one that `schemas.cleaned` made.

jsonschema costs 50 ms to import, so that happens at the first use. The file is above 400 lines
because the keywords, blame and evaluation all walk into each other.
"""

import math
import operator
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any, Final

from camshaft.kernel.formats import compiled_pattern, has_format
from camshaft.kernel.schemas import Schema, canonical, has_type, item_schema, json_text, matches_key, type_name, types_of

ENUM_SHOWN_MAX: Final = 20
"""Members of an enum that an error names (TOOL-15)."""

HOPS_MAX: Final = 64
"""References followed at one place; more are a circle."""

PATTERN_CHARACTERS_MAX: Final = 65_536
"""Longer texts are not matched: a pattern may take more than linear time."""

_LIMITS: Final[tuple[tuple[str, str, Callable[[Any, Any], bool]], ...]] = (
    ("minimum", ">=", operator.ge),
    ("maximum", "<=", operator.le),
    ("exclusiveMinimum", ">", operator.gt),
    ("exclusiveMaximum", "<", operator.lt),
)

# -- the walk ----------------------------------------------------------------------------


@cache
def validator_class() -> Any:
    """The jsonschema validator with our keywords; imported and made once."""
    from jsonschema import Draft202012Validator, validators
    from jsonschema.exceptions import ValidationError
    from referencing.exceptions import Unresolvable

    library = Draft202012Validator.VALIDATORS

    def group(errors: Group) -> Callable[[Any, Any, Any, Any], Iterator[Any]]:
        def told(validator: Any, _value: Any, instance: Any, schema: Any) -> Iterator[Any]:
            if errors is _type_errors or has_type(schema, instance):
                for error in errors(validator, instance, schema):
                    yield ValidationError(error[1], path=error[0]) if isinstance(error, tuple) else error

        return told

    def reference(word: str) -> Callable[[Any, Any, Any, Any], Iterator[Any]]:
        def told(validator: Any, _value: Any, instance: Any, schema: Any) -> Iterator[Any]:
            if not has_type(schema, instance):
                return
            try:
                yield from list(library[word](validator, schema[word], instance, schema))
            except Unresolvable:
                yield ValidationError(f"unresolved reference {schema[word]}")

        return told

    keywords = {name: group(errors) for name, _, errors in GROUPS} | {word: reference(word) for word in ("$ref", "$dynamicRef")}
    return validators.create(
        meta_schema={},
        validators=keywords,
        type_checker=Draft202012Validator.TYPE_CHECKER,
        applicable_validators=_applicable,
    )


def errors_of(validator: Any, value: Any) -> list[tuple[tuple[str | int, ...], str]]:
    """Path and message of everything that is wrong with a plain JSON value."""
    told = []
    for error in validator.iter_errors(value):
        message = error.message if error.validator is not None else "no value is allowed here"
        told.append((tuple(error.absolute_path), message))
    return told


Error = Any
"""A pair of relative path and message, or an error of the library that came from deeper."""

Group = Callable[[Any, Any, dict[str, Any]], Iterable[Error]]


def _applicable(schema: Any) -> list[tuple[str, Any]]:
    """The groups that a schema speaks of, in the order of the table."""
    if not isinstance(schema, dict):
        return []
    named = [(name, True) for name, words, _ in GROUPS if any(word in schema for word in words)]
    references = [(word, True) for word in ("$ref", "$dynamicRef") if word in schema]
    last = [row for row in named if row[0] == "unevaluated"]
    return [row for row in named if row[0] != "unevaluated"] + references + last


# -- groups ------------------------------------------------------------------------------


def _type_errors(_validator: Any, value: Any, schema: dict[str, Any]) -> Iterator[Error]:
    if not has_type(schema, value):
        yield (), f"expected {' or '.join(types_of(schema))}, got {type_name(value)}"


def _member_errors(_validator: Any, value: Any, schema: dict[str, Any]) -> Iterator[Error]:
    key = canonical(value)
    if "enum" in schema and all(canonical(member) != key for member in schema["enum"]):
        yield (), _one_of(schema["enum"])
    if "const" in schema and canonical(schema["const"]) != key:
        yield (), f"expected {json_text(schema['const'])}"


def _text_errors(_validator: Any, value: Any, schema: dict[str, Any]) -> Iterator[Error]:
    if not isinstance(value, str):
        return
    if len(value) < schema.get("minLength", 0):
        yield (), f"expected at least {json_text(schema['minLength'])} characters"
    if len(value) > schema.get("maxLength", math.inf):
        yield (), f"expected at most {json_text(schema['maxLength'])} characters"
    if "pattern" in schema and len(value) <= PATTERN_CHARACTERS_MAX:
        pattern = compiled_pattern(schema["pattern"])
        if pattern is None:
            yield (), f"unusable pattern {schema['pattern']}"
        elif not pattern.search(value):
            yield (), f"expected to match {schema['pattern']}"
    if "format" in schema and not has_format(value, schema["format"]):
        yield (), f"expected format {schema['format']}"


def _number_errors(_validator: Any, value: Any, schema: dict[str, Any]) -> Iterator[Error]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    for word, sign, holds in _LIMITS:
        if word in schema and not holds(value, schema[word]):
            yield (), f"expected {sign} {json_text(schema[word])}"
    # As decimal fractions, so that 0.3 is a multiple of 0.1.
    if "multipleOf" in schema and Fraction(repr(value)) % Fraction(repr(schema["multipleOf"])):
        yield (), f"expected a multiple of {json_text(schema['multipleOf'])}"


def _object_errors(validator: Any, value: Any, schema: dict[str, Any]) -> Iterator[Error]:
    if not isinstance(value, dict):
        return
    for name in schema.get("required", ()):
        if name not in value:
            yield (name,), "missing"
    for name, sub in schema.get("properties", {}).items():
        if name in value:
            yield from _errors_at(validator, value[name], sub, name)
    for name in value:
        yield from _key_errors(validator, value, schema, name)
    if len(value) < schema.get("minProperties", 0):
        yield (), f"expected at least {json_text(schema['minProperties'])} properties"
    if len(value) > schema.get("maxProperties", math.inf):
        yield (), f"expected at most {json_text(schema['maxProperties'])} properties"
    yield from _dependency_errors(validator, value, schema)


def _key_errors(validator: Any, value: dict[str, Any], schema: dict[str, Any], name: str) -> Iterator[Error]:
    """Pattern and additional schemas, then the name itself."""
    patterns = [sub for pattern, sub in schema.get("patternProperties", {}).items() if matches_key(pattern, name)]
    for sub in patterns:
        yield from _errors_at(validator, value[name], sub, name)
    additional = schema.get("additionalProperties", True)
    if not patterns and name not in schema.get("properties", {}):
        if additional is False:
            yield (name,), "unknown field"
        else:
            yield from _errors_at(validator, value[name], additional, name)
    if not accepts(validator, schema.get("propertyNames", True), name):
        yield (name,), "invalid property name"


def _dependency_errors(validator: Any, value: dict[str, Any], schema: dict[str, Any]) -> Iterator[Error]:
    required = {**schema.get("dependencies", {}), **schema.get("dependentRequired", {})}
    for name, others in required.items():
        if name in value and isinstance(others, list):
            for other in others:
                if isinstance(other, str) and other not in value:
                    yield (other,), f"required when {name} is present"
    schemas = {**schema.get("dependencies", {}), **schema.get("dependentSchemas", {})}
    for name, sub in schemas.items():
        if name in value and not isinstance(sub, list):
            yield from _errors_at(validator, value, sub)


def _list_errors(validator: Any, value: Any, schema: dict[str, Any]) -> Iterator[Error]:
    if not isinstance(value, list):
        return
    for index, item in enumerate(value):
        yield from _errors_at(validator, item, item_schema(schema, index), index)
    if len(value) < schema.get("minItems", 0):
        yield (), f"expected at least {json_text(schema['minItems'])} items"
    if len(value) > schema.get("maxItems", math.inf):
        yield (), f"expected at most {json_text(schema['maxItems'])} items"
    if schema.get("uniqueItems") is True and len({canonical(item) for item in value}) < len(value):
        yield (), "expected unique items"
    if "contains" in schema:
        yield from _contains_errors(sum(accepts(validator, schema["contains"], item) for item in value), schema)


def _contains_errors(count: int, schema: dict[str, Any]) -> Iterator[Error]:
    least, most = schema.get("minContains", 1), schema.get("maxContains", math.inf)
    if least <= count <= most:
        return
    if "maxContains" in schema and least > 0:
        yield (), f"expected between {json_text(least)} and {json_text(most)} matching items"
    elif count < least:
        yield (), f"expected at least {json_text(least)} matching {'item' if least == 1 else 'items'}"
    else:
        yield (), f"expected at most {json_text(most)} matching {'item' if most == 1 else 'items'}"


def _all_errors(validator: Any, value: Any, schema: dict[str, Any]) -> Iterator[Error]:
    for sub in schema["allOf"]:
        yield from _errors_at(validator, value, sub)


def _any_errors(validator: Any, value: Any, schema: dict[str, Any]) -> Iterator[Error]:
    if not any(accepts(validator, sub, value) for sub in schema["anyOf"]):
        yield from _blame(validator, value, schema["anyOf"])


def _one_errors(validator: Any, value: Any, schema: dict[str, Any]) -> Iterator[Error]:
    count = sum(accepts(validator, sub, value) for sub in schema["oneOf"])
    if count > 1:
        yield (), "matches more than one alternative"
    elif count == 0:
        yield from _blame(validator, value, schema["oneOf"])


def _not_errors(validator: Any, value: Any, schema: dict[str, Any]) -> Iterator[Error]:
    if accepts(validator, schema["not"], value):
        yield (), "must not match the schema in not"


def _if_errors(validator: Any, value: Any, schema: dict[str, Any]) -> Iterator[Error]:
    yield from _errors_at(validator, value, schema.get("then" if accepts(validator, schema["if"], value) else "else", True))


def _unevaluated_errors(validator: Any, value: Any, schema: dict[str, Any]) -> Iterator[Error]:
    """Only without another error, because what failed elsewhere evaluated nothing."""
    rest = {word: sub for word, sub in schema.items() if not word.startswith("unevaluated")}
    if isinstance(value, dict) and "unevaluatedProperties" in schema:
        where, message, names = schema["unevaluatedProperties"], "unknown field", list(value)
    elif isinstance(value, list) and "unevaluatedItems" in schema:
        where, message, names = schema["unevaluatedItems"], "unexpected item", list(range(len(value)))
    else:
        return
    if not accepts(validator, rest, value):
        return
    known = _evaluated(validator, value, rest)
    for name in names:
        if name not in known:
            if where is False:
                yield (name,), message
            else:
                yield from _errors_at(validator, value[name], where, name)


GROUPS: Final[tuple[tuple[str, tuple[str, ...], Group], ...]] = (
    ("type", ("type",), _type_errors),
    ("members", ("enum", "const"), _member_errors),
    ("text", ("minLength", "maxLength", "pattern", "format"), _text_errors),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), _number_errors),
    (
        "object",
        (
            "required",
            "properties",
            "patternProperties",
            "additionalProperties",
            "propertyNames",
            "minProperties",
            "maxProperties",
            "dependentRequired",
            "dependentSchemas",
            "dependencies",
        ),
        _object_errors,
    ),
    ("list", ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"), _list_errors),
    ("allOf", ("allOf",), _all_errors),
    ("anyOf", ("anyOf",), _any_errors),
    ("oneOf", ("oneOf",), _one_errors),
    ("not", ("not",), _not_errors),
    ("if", ("if",), _if_errors),
    ("unevaluated", ("unevaluatedProperties", "unevaluatedItems"), _unevaluated_errors),
)
"""Name, keywords and errors of each group, in the order of TOOL-15. References come before the last row."""

# -- leaves ------------------------------------------------------------------------------


def _one_of(members: Iterable[Any]) -> str:
    texts = [json_text(member) for member in members]
    more = f", ... and {len(texts) - ENUM_SHOWN_MAX} more" if len(texts) > ENUM_SHOWN_MAX else ""
    return f"expected one of [{','.join(texts[:ENUM_SHOWN_MAX])}{more}]"


def _errors_at(validator: Any, value: Any, schema: Schema, *path: str | int) -> Iterator[Error]:
    """The errors of the value by another schema; `path` leads to the value."""
    if schema is False:
        yield path, "no value is allowed here"
    elif schema and schema is not True:
        yield from validator.descend(value, schema, path=path[0] if path else None)


def _depth(error: Error) -> int:
    return len(error[0] if isinstance(error, tuple) else error.relative_path)


def accepts(validator: Any, schema: Schema, value: Any) -> bool:
    """Whether the value is valid by another schema within the validator's."""
    return next(_errors_at(validator, value, schema), None) is None


def target_of(validator: Any, schema: Schema) -> Schema:
    """The schema a reference leads to; the schema itself without a reference, True if it leads nowhere."""
    from referencing.exceptions import Unresolvable

    hops = 0
    while isinstance(schema, dict) and "$ref" in schema:
        hops += 1
        try:
            schema = validator._resolver.lookup(schema["$ref"]).contents
        except Unresolvable:
            return True
        if hops > HOPS_MAX:
            return True
    return schema


def _blame(validator: Any, value: Any, branches: list[Schema]) -> Iterator[Error]:
    """The errors of the branch that was most likely meant (TOOL-17)."""
    targets = [target_of(validator, branch) for branch in branches]
    tag = _tag(targets) if isinstance(value, dict) else None
    if tag is not None:
        name, members = tag
        key = canonical(value[name]) if name in value else None
        if key not in members:
            yield (name,), _one_of(targets[place]["properties"][name]["const"] for place in members.values())
            return
        yield from _errors_at(validator, value, branches[members[key]])
        return
    told = [
        (list(_errors_at(validator, value, branch)), _declared(target, value)) for branch, target in zip(branches, targets, strict=True)
    ]
    wrong = [(errors, declared) for errors, declared in told if errors]
    if not wrong:
        yield (), "matches no alternative"
        return
    yield from max(wrong, key=lambda row: (row[1], _depth(row[0][0])))[0]


def _declared(target: Schema, value: Any) -> int:
    """How many of the value's properties a branch declares."""
    if not isinstance(target, dict) or not isinstance(value, dict):
        return 0
    return sum(name in target.get("properties", {}) for name in value)


def _tag(targets: list[Schema]) -> tuple[str, dict[str, int]] | None:
    """A property with another primitive constant in every branch, and which branch has which."""
    if not targets or not all(isinstance(target, dict) for target in targets):
        return None
    for name in targets[0].get("properties", {}):
        subs = [target.get("properties", {}).get(name) for target in targets]
        constants = [sub["const"] for sub in subs if isinstance(sub, dict) and "const" in sub]
        members = {canonical(value): place for place, value in enumerate(constants) if not isinstance(value, (dict, list))}
        if len(members) == len(targets):
            return name, members
    return None


def _evaluated(validator: Any, value: Any, schema: Schema) -> set[Any]:
    """Keys or indexes of a valid value that the schema has an opinion on."""
    if not isinstance(schema, dict):
        return set()
    known = _evaluated_keys(value, schema) if isinstance(value, dict) else _evaluated_indexes(validator, value, schema)
    for sub in _in_place(validator, value, schema):
        known |= _evaluated(validator, value, sub)
    return known


def _evaluated_keys(value: dict[str, Any], schema: dict[str, Any]) -> set[Any]:
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return set(value)
    patterns = schema.get("patternProperties", {})
    return {name for name in value if name in schema.get("properties", {}) or any(matches_key(each, name) for each in patterns)}


def _evaluated_indexes(validator: Any, value: list[Any], schema: dict[str, Any]) -> set[Any]:
    items = schema.get("items")
    if isinstance(items, (dict, bool)) or "additionalItems" in schema or "unevaluatedItems" in schema:
        return set(range(len(value)))
    known = set(range(min(len(value), len(items or schema.get("prefixItems", [])))))
    if "contains" in schema:
        known |= {index for index, item in enumerate(value) if accepts(validator, schema["contains"], item)}
    return known


def _in_place(validator: Any, value: Any, schema: dict[str, Any]) -> Iterator[Schema]:
    """The schemas that apply to the same value and accept it."""
    if "$ref" in schema:
        yield target_of(validator, {"$ref": schema["$ref"]})
    yield from schema.get("allOf", ())
    for word in ("anyOf", "oneOf"):
        yield from (sub for sub in schema.get(word, ()) if accepts(validator, sub, value))
    if "if" in schema:
        is_met = accepts(validator, schema["if"], value)
        yield from (schema["if"], schema.get("then", True)) if is_met else (schema.get("else", True),)
    if isinstance(value, dict):
        yield from (sub for name, sub in schema.get("dependentSchemas", {}).items() if name in value)
