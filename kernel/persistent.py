"""Immutable collections: frozen JSON values, the vector, the id index.

The only importer of pyrsistent. Its C vector can destroy live objects (several dead
versions that share a node are collected together), so only the pure-Python vector is
used, also where the C extension is loaded. No pmap: it rehashes as it grows and its
order follows the string hash. JSON objects live in insertion-ordered frozen dicts, ids
in an index of sealed dicts with a short copied tail.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Generic, NoReturn, TypeVar

import attrs
from pyrsistent import PVector
from pyrsistent._pvector import python_pvector

from camshaft.kernel import shapes

T = TypeVar("T")
V = TypeVar("V")

Json = Any
"""A JSON value: None, bool, int, finite float, str, tuple of Json, or FrozenDict. Typed
as Any because a recursive alias tells a reader nothing and costs the type checker much."""

TAIL_MAX: Final = 256
"""Ids in the copied tail; one append copies at most this many (0.4 µs)."""

Vector = PVector
"""A persistent sequence; append and set share structure. Never slice it: slicing builds
a list of everything; read the tail by index."""


def vector(items: Iterable[T] = ()) -> "PVector[T]":
    """A persistent vector of `items`, in their order. O(n)."""
    made: PVector[T] = python_pvector(items)  # type: ignore[no-untyped-call]  # pyrsistent types its C face only
    return made


class FrozenDict(dict[str, Json]):
    """A JSON object that keeps its insertion order and refuses every change.

    A dict subclass, so encoders and `isinstance(x, dict)` work as for a plain dict.
    """

    __slots__ = ()

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise TypeError("a FrozenDict cannot be changed; use thaw() for a mutable copy")

    __setitem__ = _refuse
    __delitem__ = _refuse
    __ior__ = _refuse
    clear = _refuse
    pop = _refuse
    popitem = _refuse
    setdefault = _refuse
    update = _refuse

    def __copy__(self) -> "FrozenDict":
        return self

    def __deepcopy__(self, _memo: object) -> "FrozenDict":
        return self

    def __reduce__(self) -> tuple[type["FrozenDict"], tuple[dict[str, Json]]]:
        return (FrozenDict, (dict(self),))


EMPTY: Final = FrozenDict()
"""The empty JSON object; shared."""


class NotJson(TypeError):
    """A value that JSON cannot hold; the message names its path, the value and what is allowed."""


def freeze(value: object, path: str = "value") -> Json:
    """`value` as an immutable JSON value; frozen parts are shared, not copied. O(size of the thawed part).

    Raises NotJson if something in it is not JSON (a set, bytes, an object, a key that is no string).
    """
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, FrozenDict):
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise NotJson(f"{path}: key {key!r} is no text; JSON objects have text keys")
        return FrozenDict({key: freeze(item, f"{path}.{key}") for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple([freeze(item, f"{path}[{index}]") for index, item in enumerate(value)])
    raise NotJson(f"{path}: {value!r} ({type(value).__name__}) is not JSON; expected null, bool, number, text, list or object")


def thaw(value: Json) -> Any:
    """A deep mutable copy of a JSON value: dicts and lists. O(size)."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [thaw(item) for item in value]
    return value


@shapes.frozen
class IdIndex(Generic[V]):
    """An immutable map from id to value for many ids: sealed dicts and a short tail.

    A later `set` of an id hides the earlier one. Lookup is O(log n) dict probes, `set` is
    O(TAIL_MAX) plus a rare merge. It is not iterated in any order that matters.
    """

    _sealed: tuple[dict[str, V], ...] = ()
    _tail: dict[str, V] = attrs.field(factory=dict)

    def get(self, key: str) -> V | None:
        """The latest value of `key`, or None."""
        found = self._tail.get(key)
        if found is not None:
            return found
        for part in reversed(self._sealed):
            found = part.get(key)
            if found is not None:
                return found
        return None

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def set(self, key: str, value: V) -> "IdIndex[V]":
        """A new index in which `key` has `value` (never None)."""
        tail = {**self._tail, key: value}
        if len(tail) < TAIL_MAX:
            return IdIndex(self._sealed, tail)
        return IdIndex(_merged((*self._sealed, tail)), {})

    def keys(self) -> Iterator[str]:
        """Every id once, in no order that means anything. O(n)."""
        seen: dict[str, None] = {}
        for part in (*self._sealed, self._tail):
            seen.update(dict.fromkeys(part))
        return iter(seen)


def index_of(pairs: dict[str, V]) -> IdIndex[V]:
    """An index that takes over `pairs`, which the caller must not change afterwards. O(1)."""
    return IdIndex((pairs,) if pairs else (), {})


def _merged(parts: tuple[dict[str, V], ...]) -> tuple[dict[str, V], ...]:
    """Neighbours are joined while the older is at most twice as large, so about log2(n/256) parts remain."""
    done = list(parts)
    while len(done) > 1 and len(done[-2]) <= 2 * len(done[-1]):
        newer = done.pop()
        older = done.pop()
        done.append({**older, **newer})
    return tuple(done)
