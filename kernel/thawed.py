"""Mutable copies of frozen records, for the few places where a handler may edit in place.

`thawed(record)` has the attributes of the record; they can be assigned, tuples are lists and
JSON objects are dicts, and records inside are thawed too. `frozen(...)` checks the types and
gives the record back: the very same object if nothing changed, so caches by identity hold.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from camshaft.kernel import codec
from camshaft.kernel.persistent import FrozenDict, freeze, thaw

A = TypeVar("A")


class Thawed:
    """A mutable copy of one frozen record; its attributes are those of the record."""

    def __init__(self, record: Any) -> None:
        self.__dict__["_record"] = record
        for field in attrs.fields(type(record)):
            self.__dict__[field.name] = _thaw(getattr(record, field.name))

    def __getattr__(self, name: str) -> Any:
        # Constants of the class (`role`, `type`) and properties; instance attributes are found before this.
        return getattr(self.__dict__["_record"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Raises AttributeError for a name the record does not have."""
        if name not in self.__dict__ or name == "_record":
            names = ", ".join([field.name for field in attrs.fields(type(self._record))])
            raise AttributeError(f"{type(self._record).__name__} has no attribute {name!r}; it has {names}")
        self.__dict__[name] = value

    def __repr__(self) -> str:
        return f"Thawed({frozen(self)!r})"


def thawed(record: A) -> Any:
    """A mutable copy of `record`. O(size)."""
    return Thawed(record)


def frozen(value: Any) -> Any:
    """The record of a thawed copy, or any other value as it is. The same object if nothing changed.

    Raises CodecError with the attribute's path if a value has the wrong type.
    """
    if not isinstance(value, Thawed):
        return value
    record = value.__dict__["_record"]
    fields = {field.name: _freeze(value.__dict__[field.name]) for field in attrs.fields(type(record))}
    if all(_same(fields[name], getattr(record, name)) for name in fields):
        return record
    extra = fields.pop("extra", FrozenDict())
    fresh = codec.python(type(record), {name.rstrip("_"): item for name, item in fields.items() if item is not None})
    return attrs.evolve(fresh, extra=freeze(extra, "extra")) if extra else fresh


def _thaw(value: Any) -> Any:
    if attrs.has(type(value)):
        return Thawed(value)
    if isinstance(value, tuple):
        return [_thaw(item) for item in value]
    return thaw(value)


def _freeze(value: Any) -> Any:
    if isinstance(value, Thawed):
        return frozen(value)
    if isinstance(value, list):
        return tuple([_freeze(item) for item in value])
    if isinstance(value, Mapping) and not isinstance(value, FrozenDict):
        return {key: _freeze(item) for key, item in value.items()}
    return value


def _same(now: Any, before: Any) -> bool:
    """Equal as JSON, at every depth: Python holds 1 and True, or 1 and 1.0, for the same."""
    if isinstance(now, dict) and isinstance(before, dict):
        return now.keys() == before.keys() and all([_same(now[key], before[key]) for key in now])
    if isinstance(now, tuple) and isinstance(before, tuple):
        return len(now) == len(before) and all([_same(one, other) for one, other in zip(now, before)])
    return now is before or (type(now) is type(before) and bool(now == before))
