"""Arguments coerced and checked: conversions, messages in their order, and schemas that are wrong themselves."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camshaft.kernel.arguments import InvalidArguments, prepared_arguments
from camshaft.kernel.persistent import freeze

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def object_of(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"v": schema}, "required": ["v"], **more}


def value_of(schema: Any, value: Any, **more: Any) -> Any:
    return prepared_arguments("t", freeze(object_of(schema, **more)), freeze({"v": value}))["v"]


def complaints(schema: Any, value: Any, **more: Any) -> list[str]:
    with pytest.raises(InvalidArguments) as caught:
        value_of(schema, value, **more)
    return [line.removeprefix("  - ") for line in str(caught.value).split("\n\n")[0].split("\n")[1:]]


CONVERSIONS: list[tuple[Any, Any, Any]] = [
    ({"type": "number"}, " -1.5e1 ", -15),
    ({"type": "number"}, "12345678901234567890", 12345678901234567890),
    ({"type": "integer"}, "-3.7", -3),
    ({"type": "integer"}, 5.0, 5),
    ({"type": "boolean"}, "False", False),
    ({"type": "boolean"}, 0, False),
    ({"type": "string"}, 5.0, "5"),
    ({"type": "string"}, 1e21, "1e+21"),
    ({"type": "string"}, True, "true"),
    ({"type": "array", "items": {"type": "integer"}}, "3", [3]),
    ({"enum": [1, "b"]}, "1", 1),
    ({"type": ["integer", "string"]}, "5", "5"),
    ({"oneOf": [{"type": "integer"}, {"type": "boolean"}]}, "7", 7),
    ({"patternProperties": {"^n": {"type": "number"}}, "additionalProperties": {"type": "string"}}, {"n": "1", "s": 2}, {"n": 1, "s": "2"}),
    ({"allOf": [{"$ref": "#/$defs/n"}]}, "4", 4),
    ({"type": "number"}, "0x1F", 31),
    ({"type": "number"}, "\ufeff0b11", 3),
    ({"type": "string"}, -0.0, "0"),
    ({"type": ["integer", "null"]}, "", None),
    ({"type": ["null", "number"]}, "0", 0),
    ({"type": ["boolean", "number"]}, "1", 1),
    ({"type": ["number", "boolean"]}, "true", True),
    ({"anyOf": [{"type": ["integer", "null"]}, {"type": "boolean"}]}, "1", True),
    ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "5.5", 5.5),
    ({"oneOf": [{"type": "number"}, {"type": "integer"}, {"type": "boolean"}]}, "1", True),
    ({"oneOf": [{"type": "array", "items": {"type": "boolean"}}, {"type": "array"}]}, "true", ["true"]),
    ({"type": "number", "anyOf": [{"type": "integer"}, {"type": "number"}]}, "5.5", 5),
    ({"type": "object", "properties": {"a": {"type": "integer"}}, "allOf": [{"required": ["a"]}]}, {"a": 5.5}, {"a": 5}),
]


@pytest.mark.parametrize(("schema", "value", "made"), CONVERSIONS)
def test_value_is_brought_to_its_schema(schema: Any, value: Any, made: Any) -> None:
    """TOOL-13."""
    assert json.dumps(value_of(schema, value, **{"$defs": {"n": {"type": "number"}}})) == json.dumps(made)


@pytest.mark.parametrize("text", ["1_000", "-0x10", "0x", " true ", "1e400", "nan", "one", "--1", "9" * 5000 + "x"])
def test_text_that_is_no_finite_number_stays(text: str) -> None:
    assert complaints({"type": "number"}, text) == ["v: expected number, got string"]


def test_null_in_an_optional_property_is_dropped_unless_it_is_allowed() -> None:
    schema = freeze({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": ["string", "null"]}, "c": {}}})

    assert prepared_arguments("t", schema, freeze({"a": None, "b": None, "c": None})) == {"b": None, "c": None}


MESSAGES: list[tuple[Any, Any, list[str]]] = [
    (False, 1, ["v: no value is allowed here"]),
    ({"type": ["string", "null"], "minLength": 3}, [], ["v: expected string or null, got array"]),
    ({"type": "integer"}, "x", ["v: expected integer, got string"]),
    (
        {"type": "string", "minLength": 3, "pattern": "^b", "format": "ipv4"},
        "a",
        [
            "v: expected at least 3 characters",
            "v: expected to match ^b",
            "v: expected format ipv4",
        ],
    ),
    (
        {"minimum": 5, "exclusiveMinimum": 4.0, "multipleOf": 0.5},
        0.3,
        ["v: expected >= 5", "v: expected > 4", "v: expected a multiple of 0.5"],
    ),
    (
        {
            "minProperties": 4,
            "propertyNames": {"maxLength": 1},
            "additionalProperties": False,
            "properties": {"b": {"type": "number"}, "a": {"type": "number"}},
            "required": ["z", "y"],
        },
        {"cc": 1, "a": "x", "b": "x"},
        [
            "v.z: missing",
            "v.y: missing",
            "v.b: expected number, got string",
            "v.a: expected number, got string",
            "v.cc: unknown field",
            "v.cc: invalid property name",
            "v: expected at least 4 properties",
        ],
    ),
    (
        {"type": "array", "items": {"type": "number"}, "minItems": 3, "uniqueItems": True},
        ["x", "x"],
        [
            "v.0: expected number, got string",
            "v.1: expected number, got string",
            "v: expected at least 3 items",
            "v: expected unique items",
        ],
    ),
    ({"contains": {"const": 1}, "minContains": 2}, [1], ["v: expected at least 2 matching items"]),
    ({"contains": {"const": 1}, "maxContains": 1}, [1, 1], ["v: expected between 1 and 1 matching items"]),
    ({"contains": {"const": 1}, "minContains": 0, "maxContains": 1}, [1, 1], ["v: expected at most 1 matching item"]),
    ({"allOf": [{"type": "string"}, {"type": "string"}]}, [1], ["v: expected string, got array"] * 2),
    ({"type": "integer", "enum": [1, 2]}, "1.5", ["v: expected integer, got string"]),
    ({"type": "integer", "enum": [1, 2]}, "3", ["v: expected one of [1,2]"]),
    ({"type": "boolean", "enum": [True]}, "0", ["v: expected boolean, got string"]),
    ({"enum": ["x", None]}, "null", ['v: expected one of ["x",null]']),
    ({"type": ["number", "null"]}, "TRUE", ["v: expected number or null, got string"]),
    ({"type": ["null", "boolean"]}, "1", ["v: expected null or boolean, got string"]),
    ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "5", ["v: matches more than one alternative"]),
    ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "true", ["v: expected integer, got string"]),
    ({"type": "array", "anyOf": [{"minItems": 1}]}, 5, ["v: expected array, got integer"]),
    ({"contains": {"const": 1}, "minContains": 2, "maxContains": 3}, [], ["v: expected between 2 and 3 matching items"]),
    ({"prefixItems": [{}], "items": False}, [1, 2], ["v.1: no value is allowed here"]),
    ({"if": {"type": "string"}, "then": {"minLength": 3}, "else": {"minimum": 9}}, "a", ["v: expected at least 3 characters"]),
    ({"if": {"type": "string"}, "then": {"minLength": 3}, "else": {"minimum": 9}}, 1, ["v: expected >= 9"]),
    ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 1}, ["v.b: missing"]),
    ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"a": 1, "b": 1}, ["v.b: unknown field"]),
    ({"anyOf": [{"prefixItems": [{}]}], "unevaluatedItems": False}, [1, 2], ["v.1: unexpected item"]),
]


@pytest.mark.parametrize(("schema", "value", "told"), MESSAGES)
def test_errors_are_told_in_our_words_and_order(schema: Any, value: Any, told: list[str]) -> None:
    """TOOL-15."""
    assert complaints(schema, value) == told


TAGGED = {
    "anyOf": [
        {"type": "object", "properties": {"k": {"const": "x"}, "n": {"type": "number"}}, "required": ["k", "n"]},
        {"$ref": "#/$defs/y"},
    ]
}
Y = {"$defs": {"y": {"type": "object", "properties": {"k": {"const": "y"}, "s": {"type": "string"}}, "required": ["k", "s"]}}}
BLAMED: list[tuple[Any, Any, list[str]]] = [
    (TAGGED, {"k": "y"}, ["v.s: missing"]),
    (TAGGED, {"k": "z"}, ['v.k: expected one of ["x","y"]']),
    (TAGGED, {}, ['v.k: expected one of ["x","y"]']),
    (
        {"anyOf": [{"properties": {"a": {"type": "number"}}, "required": ["c"]}, {"properties": {"b": {"maximum": 1}}}]},
        {"b": 2},
        [
            "v.b: expected <= 1",
        ],
    ),
    ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "number"}}]}, [1, "x"], ["v.1: expected number, got string"]),
    ({"anyOf": []}, 1, ["v: matches no alternative"]),
    ({"oneOf": [{}, {}]}, 1, ["v: matches more than one alternative"]),
]


@pytest.mark.parametrize(("schema", "value", "told"), BLAMED)
def test_union_blames_the_branch_that_was_meant(schema: Any, value: Any, told: list[str]) -> None:
    """TOOL-17."""
    assert complaints(schema, value, **Y) == told


BROKEN: list[tuple[Any, str]] = [
    ({"$ref": "#/$defs/none"}, "v: unresolved reference #/$defs/none"),
    ({"$ref": "http://example.invalid/schema.json"}, "v: unresolved reference http://example.invalid/schema.json"),
    ({"pattern": "(["}, "v: unusable pattern (["),
    ({"type": "text"}, "v: expected text, got string"),
]


@pytest.mark.parametrize(("schema", "told"), BROKEN)
def test_broken_schema_rejects_only_values_at_its_place(schema: Any, told: str) -> None:
    """TOOL-16; and no reference is fetched."""
    assert complaints(schema, "x") == [told]
    assert prepared_arguments("t", freeze({"type": "object", "properties": {"v": schema}}), freeze({"a": 1})) == {"a": 1}


@pytest.mark.parametrize(
    "schema", [{"minimum": "5"}, {"properties": []}, {"enum": 1}, {"multipleOf": 0}, {"anyOf": {}}, {"items": 3}, 7, None]
)
def test_keyword_of_the_wrong_shape_counts_as_absent(schema: Any) -> None:
    assert value_of(schema, 1) == 1


def test_older_dialect_and_recursive_schema_work() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"n": {"type": "object", "properties": {"child": {"$ref": "#/definitions/n"}, "x": {"type": "integer"}}}},
        "properties": {"v": {"$ref": "#/definitions/n"}, "pair": {"items": [{"type": "integer"}], "additionalItems": False}},
    }

    with pytest.raises(InvalidArguments, match=r"- v\.child\.x: expected integer, got string\n  - pair\.1: no value is allowed here"):
        prepared_arguments("t", freeze(schema), freeze({"v": {"child": {"x": "y"}}, "pair": ["1", 2]}))


def test_circle_of_references_ends() -> None:
    schema = {
        "type": "object",
        "properties": {"v": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
    }

    with pytest.raises(InvalidArguments, match="nested too deeply"):
        prepared_arguments("t", freeze(schema), freeze({"v": 1}))


def test_result_is_a_private_copy_and_the_original_is_shown() -> None:
    schema, arguments = freeze(object_of({"type": "array", "items": {"type": "number"}})), freeze({"v": ["1"]})

    made = prepared_arguments("t", schema, arguments)
    made["v"].append(2)

    assert prepared_arguments("t", schema, arguments) == {"v": [1]}
    assert arguments == {"v": ("1",)}


def test_malformed_argument_text_is_told_with_the_tool() -> None:
    """TOOL-12."""
    with pytest.raises(InvalidArguments, match=r'^Invalid arguments for tool "read": why\n\nReceived arguments:\n\{x$'):
        prepared_arguments("read", freeze({}), freeze({}), "why\n\nReceived arguments:\n{x")


@pytest.mark.parametrize("arguments", [[1], None, "x", 3])
def test_arguments_are_always_an_object(arguments: Any) -> None:
    with pytest.raises(InvalidArguments, match="root: expected object"):
        prepared_arguments("t", freeze({}), freeze(arguments))


SCHEMAS = st.sampled_from(
    [
        {"type": "number"},
        {"type": ["integer", "null"]},
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        {"anyOf": [{"type": "boolean"}, {"type": "object", "additionalProperties": {"type": "number"}}]},
        {"enum": [1, "1", None, True]},
        {"type": "object", "properties": {"a": {"type": "string"}}, "unevaluatedProperties": {"type": "integer"}},
        {"contains": {"type": "string"}, "not": {"type": "array", "maxItems": 0}},
    ]
)


@given(SCHEMAS, JSON)
def test_preparing_prepared_arguments_changes_nothing(schema: Any, value: Any) -> None:
    try:
        made = value_of(schema, value)
    except InvalidArguments:
        return

    assert json.dumps(value_of(schema, made)) == json.dumps(made)
