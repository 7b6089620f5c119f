"""JSON schemas of Python annotations, and the Python values of JSON that fits them.

What an annotation can say is one table of forms: plain types, Literal, lists, tuples of one type,
dicts with text keys, unions, attrs classes, Any, and `Annotated[T, "what it is"]`. For each
`schema_of` gives the schema and `value_of` the value; whatever else is annotated is refused with
its name, because a schema that says less than the author thinks misleads a model silently.
"""

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import attrs

from camshaft.kernel import shapes
from camshaft.kernel.persistent import NotJson, freeze, thaw

_PLAIN: Final[Mapping[Any, str]] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_LISTS: Final = (list, tuple, Sequence)
_DICTS: Final = (dict, Mapping)
EXPECTED: Final = (
    "str, int, float, bool, None, Any, Literal, list[T], tuple[T, ...], dict[str, T], a union of these, "
    'an attrs class, or Annotated[T, "what it is"]'
)
"""What can be annotated."""


class NotExpressible(TypeError):
    """An annotation that no schema can say; the text names where it stands and what it is."""


class Unfit(ValueError):
    """JSON that does not fit its annotation."""


@shapes.frozen(kw_only=True)
class Slot:
    """One named value: a parameter of a function or a field of a class."""

    name: str
    annotation: Any
    default: Any = attrs.NOTHING
    """NOTHING: it has to be given. A factory stands for a default that cannot be shown."""
    description: str | None = None


def schema_of(annotation: Any, where: str) -> dict[str, Any]:
    """The schema of what is annotated. Raises NotExpressible, naming `where` and the annotation."""
    return _schema(annotation, where, ())


def object_schema(slots: Sequence[Slot], where: str) -> dict[str, Any]:
    """The schema of an object with these members and no others; one with a default may be left out."""
    return _object(slots, where, ())


def slots_of(cls: type) -> tuple[Slot, ...]:
    """What has to be given to make an object of an attrs class. Raises NotExpressible for annotations that name nothing."""
    hints = annotations_of(cls, f"class {cls.__name__}")
    return tuple(
        [
            Slot(
                name=field.alias or field.name,
                annotation=hints.get(field.name, Any),
                default=field.default,
                description=field.metadata.get("description"),
            )
            for field in attrs.fields(cls)
            if field.init
        ]
    )


def annotations_of(owner: Any, what: str) -> dict[str, Any]:
    """The annotations of a class or a function, texts resolved. Raises NotExpressible for one that cannot be, as for an unknown name."""
    try:
        return typing.get_type_hints(owner, include_extras=True)
    except (NameError, AttributeError) as error:
        raise NotExpressible(f"{what}: {error}; an annotation may only name what the module defines or imports") from None
    except (SyntaxError, TypeError) as error:
        raise NotExpressible(f"{what}: an annotation is none: {error}") from None


def value_of(annotation: Any, value: Any) -> Any:
    """The value that JSON stands for. Raises Unfit where it fits nothing that is annotated, and what a class raises."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return value_of(arguments[0], value)
    if origin in (Union, types.UnionType):
        return _first_fitting(arguments, value)
    if origin is Literal:
        same = [each for each in arguments if isinstance(value, bool) is isinstance(each, bool) and value == each]
        _checked(value, bool(same), annotation)
        return same[0]
    if isinstance(annotation, type) and attrs.has(annotation):
        slots = slots_of(annotation)
        _checked(value, isinstance(value, Mapping) and value.keys() <= {slot.name for slot in slots}, annotation)
        return annotation(**members(slots, value))
    base = origin or annotation
    if base in _LISTS:
        _checked(value, isinstance(value, list), annotation)
        made = [value_of(arguments[0] if arguments else Any, each) for each in value]
        return tuple(made) if base is tuple else made
    if base in _DICTS:
        _checked(value, isinstance(value, Mapping), annotation)
        return {name: value_of(arguments[1] if arguments else Any, each) for name, each in value.items()}
    return value if annotation is Any else _plain_value(annotation, value)


def members(slots: Sequence[Slot], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that make an object or call a function; what was not given is left to its default."""
    return {slot.name: value_of(slot.annotation, given[slot.name]) for slot in slots if slot.name in given}


def _schema(annotation: Any, where: str, above: tuple[Any, ...]) -> dict[str, Any]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return {}
    if annotation in _PLAIN:
        return {"type": _PLAIN[annotation]}
    if origin is Annotated:
        texts = [each for each in arguments[1:] if isinstance(each, str)]
        return _schema(arguments[0], where, above) | ({"description": texts[0]} if texts else {})
    if origin is Literal:
        return _literal(arguments, where, annotation)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(each, where, above) for each in arguments]}
    if isinstance(annotation, type) and attrs.has(annotation):
        if annotation in above:
            raise NotExpressible(f"{where}: class {annotation.__name__} holds itself; a schema would have no end")
        return _object(slots_of(annotation), f"{where}: class {annotation.__name__}", (*above, annotation))
    return _container(origin or annotation, arguments, _Place(annotation, where, above))


@shapes.frozen
class _Place:
    """Which annotation is read, and where."""

    annotation: Any
    where: str
    above: tuple[Any, ...]

    def refused(self) -> NotExpressible:
        name = getattr(self.annotation, "__name__", None) if isinstance(self.annotation, type) else None
        return NotExpressible(f"{self.where}: {name or self.annotation} cannot be described to a model; expected {EXPECTED}")


def _container(base: Any, arguments: tuple[Any, ...], place: _Place) -> dict[str, Any]:
    if base in _LISTS:
        if base is tuple and arguments and (len(arguments) != 2 or arguments[1] is not Ellipsis):  # T and ...
            raise place.refused()
        items = _schema(arguments[0], place.where, place.above) if arguments else {}
        return {"type": "array", "items": items} if items else {"type": "array"}
    if base in _DICTS:
        if arguments and arguments[0] is not str:
            raise place.refused()
        values = _schema(arguments[1], place.where, place.above) if arguments else {}
        return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
    raise place.refused()


def _literal(values: tuple[Any, ...], where: str, annotation: Any) -> dict[str, Any]:
    kinds = {type(each) for each in values}
    if not kinds <= set(_PLAIN):
        raise NotExpressible(f"{where}: {annotation} cannot be described to a model; expected {EXPECTED}")
    kind = {"type": _PLAIN[next(iter(kinds))]} if len(kinds) == 1 else {}
    return kind | {"enum": list(values)}


def _object(slots: Sequence[Slot], where: str, above: tuple[Any, ...]) -> dict[str, Any]:
    properties = {}
    for slot in slots:
        made = _schema(slot.annotation, f"{where}: {slot.name}", above)
        if slot.description is not None:
            made["description"] = slot.description
        properties[slot.name] = made | _default(slot.default)
    required = [slot.name for slot in slots if slot.default is attrs.NOTHING]
    return {"type": "object", "properties": properties, **({"required": required} if required else {}), "additionalProperties": False}


def _default(default: Any) -> dict[str, Any]:
    """The default for the model to see, where it is plain JSON; None says no more than that it may be left out."""
    if default is attrs.NOTHING or default is None or isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a class at run time
        return {}
    try:
        return {"default": thaw(freeze(default))}
    except NotJson:
        return {}


def _first_fitting(annotations: tuple[Any, ...], value: Any) -> Any:
    for annotation in annotations:
        try:
            return value_of(annotation, value)
        except (Unfit, TypeError):
            continue
    raise Unfit(f"{value!r} fits none of {', '.join([str(each) for each in annotations])}")


def _plain_value(annotation: Any, value: Any) -> Any:
    checks: dict[Any, Callable[[], bool]] = {
        str: lambda: isinstance(value, str),
        bool: lambda: isinstance(value, bool),
        int: lambda: not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer())),
        float: lambda: not isinstance(value, bool) and isinstance(value, int | float),
        type(None): lambda: value is None,
    }
    _checked(value, annotation in checks and checks[annotation](), annotation)
    return annotation(value) if annotation in (int, float) else value


def _checked(value: Any, fits: bool, annotation: Any) -> Any:
    if not fits:
        raise Unfit(f"{value!r} is no {annotation}")
    return value
