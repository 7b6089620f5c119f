"""JSON schemas of Python annotations, and the values of JSON that fits them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import attrs
import pytest

from camshaft.kernel.typed_schemas import NotExpressible, Unfit, schema_of, value_of


@attrs.frozen
class Point:
    """A class of parameters."""

    x: int
    y: int = 0
    label: str | None = attrs.field(default=None, metadata={"description": "shown beside it"})


@attrs.define
class Path:
    points: list[Point]
    tags: dict[str, str] = attrs.field(factory=dict)
    _kind: Literal["open", "closed"] = "open"
    length: float = attrs.field(init=False, default=0.0)


@attrs.frozen
class Near:
    near: int = 0


@attrs.frozen
class Far:
    far: int = 0


@attrs.frozen
class Endless:
    inside: "Endless | None" = None


POINT = {
    "type": "object",
    "properties": {
        "x": {"type": "integer"},
        "y": {"type": "integer", "default": 0},
        "label": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "shown beside it"},
    },
    "required": ["x"],
    "additionalProperties": False,
}

NEAR, FAR = (
    {"type": "object", "properties": {name: {"type": "integer", "default": 0}}, "additionalProperties": False} for name in ("near", "far")
)

FORMS: dict[str, tuple[Any, Any, Any, Any]] = {
    "text": (str, {"type": "string"}, "a", "a"),
    "whole number": (int, {"type": "integer"}, 3.0, 3),
    "number": (float, {"type": "number"}, 3, 3.0),
    "truth value": (bool, {"type": "boolean"}, True, True),
    "nothing": (None.__class__, {"type": "null"}, None, None),
    "anything": (Any, {}, {"a": [1]}, {"a": [1]}),
    "words": (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, "b", "b"),
    "words and a number": (Literal["a", 1], {"enum": ["a", 1]}, 1, 1),
    "a whole number written with a point": (Literal[1, "a"], {"enum": [1, "a"]}, 1.0, 1),
    "one of two classes of defaults": (Near | Far, {"anyOf": [NEAR, FAR]}, {"far": 2}, Far(2)),
    "list": (list[int], {"type": "array", "items": {"type": "integer"}}, [1, 2.0], [1, 2]),
    "list of anything": (list, {"type": "array"}, [1, "a"], [1, "a"]),
    "sequence": (Sequence[str], {"type": "array", "items": {"type": "string"}}, ["a"], ["a"]),
    "tuple": (tuple[str, ...], {"type": "array", "items": {"type": "string"}}, ["a"], ("a",)),
    "dict": (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1.0}, {"a": 1}),
    "mapping": (Mapping[str, Any], {"type": "object"}, {"a": 1}, {"a": 1}),
    "optional": (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}, None, None),
    "described": (Annotated[int, "how many"], {"type": "integer", "description": "how many"}, 2, 2),
    "class": (Point, POINT, {"x": 1, "label": "p"}, Point(1, 0, "p")),
    "one of two classes": (list[str] | Point, {"anyOf": [{"type": "array", "items": {"type": "string"}}, POINT]}, {"x": 1}, Point(1)),
    "class in a class": (
        Path,
        {
            "type": "object",
            "properties": {
                "points": {"type": "array", "items": POINT},
                "tags": {"type": "object", "additionalProperties": {"type": "string"}},
                "kind": {"type": "string", "enum": ["open", "closed"], "default": "open"},
            },
            "required": ["points"],
            "additionalProperties": False,
        },
        {"points": [{"x": 1}], "kind": "closed"},
        Path([Point(1)], {}, "closed"),
    ),
}


@pytest.mark.parametrize(("annotation", "schema", "_json", "_value"), FORMS.values(), ids=FORMS)
def test_an_annotation_has_its_schema(annotation: Any, schema: Any, _json: Any, _value: Any) -> None:
    assert schema_of(annotation, "p") == schema


@pytest.mark.parametrize(("annotation", "_schema", "json", "value"), FORMS.values(), ids=FORMS)
def test_json_that_fits_becomes_a_value_of_its_type(annotation: Any, _schema: Any, json: Any, value: Any) -> None:
    made = value_of(annotation, json)

    assert made == value and type(made) is type(value)


@pytest.mark.parametrize(
    ("annotation", "json"),
    [
        (str, 1),
        (int, 1.5),
        (int, True),
        (float, "1"),
        (Literal["a"], "b"),
        (Literal[1], True),
        (list[int], {}),
        (Point, []),
        (str | int, []),
    ],
)
def test_json_that_does_not_fit_is_refused(annotation: Any, json: Any) -> None:
    with pytest.raises(Unfit):
        value_of(annotation, json)


REFUSED: dict[str, tuple[Any, str]] = {
    "bytes": (bytes, "p: bytes cannot be described to a model; expected str, int, "),
    "a set": (set[int], "p: set[int] cannot be described to a model; expected str, int, "),
    "a dict of numbers": (dict[int, str], "p: dict[int, str] cannot be described"),
    "a tuple of two": (tuple[int, str], "p: tuple[int, str] cannot be described"),
    "deep inside": (list[dict[str, bytes]], "p: bytes cannot be described"),
    "a class without fields": (object, "p: object cannot be described"),
    "a literal of bytes": (Literal[b"a"], "p: typing.Literal[b'a'] cannot be described"),
    "a class that holds itself": (Endless, "p: class Endless: inside: class Endless holds itself; a schema would have no end"),
}


@pytest.mark.parametrize(("annotation", "text"), REFUSED.values(), ids=REFUSED)
def test_what_no_schema_can_say_is_refused_with_its_place_and_name(annotation: Any, text: str) -> None:
    with pytest.raises(NotExpressible) as caught:
        schema_of(annotation, "p")

    assert str(caught.value)[: len(text)] == text
