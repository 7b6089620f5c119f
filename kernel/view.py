"""A sequence that is computed while it is read: from its end cheaply, whole once.

The one class of the kernel that derives from an abstract class, because callers are typed
with `Sequence` and that is not a protocol.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar, overload

T = TypeVar("T")

NEAR_MAX: Final = 1024
"""Items this near to the end are found by walking; others make the view list everything once."""


class View(Sequence[T]):
    """Items given by two walks. Equal only to itself; `list(view)` compares."""

    __slots__ = ("_all", "_backward", "_forward", "_length")

    def __init__(self, forward: Callable[[], Iterator[T]], backward: Callable[[], Iterator[T]], length: int | None = None) -> None:
        """`length` if it is known; else the first `len()` walks."""
        self._forward = forward
        self._backward = backward
        self._length = length
        self._all: tuple[T, ...] | None = None

    def __len__(self) -> int:
        if self._length is None:
            self._length = len(self._listed())
        return self._length

    def __bool__(self) -> bool:
        return next(self._backward(), None) is not None if self._length is None else self._length > 0

    def __iter__(self) -> Iterator[T]:
        return iter(self._all) if self._all is not None else self._forward()

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._all) if self._all is not None else self._backward()

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            return self._slice(index)
        from_end = -index if index < 0 else (len(self) - index if self._length is not None else NEAR_MAX + 1)
        if self._all is None and 0 < from_end <= NEAR_MAX:
            for item in islice(self._backward(), from_end - 1, None):
                return item
            raise IndexError(f"index {index} is beyond the view")
        return self._listed()[index]

    def _slice(self, index: slice) -> tuple[T, ...]:
        start = index.start
        if self._all is None and start is not None and -NEAR_MAX <= start < 0 and index.step in (None, 1):
            tail = tuple(islice(self._backward(), -start))[::-1]
            stop = index.stop
            return tail if stop is None else (tail[:stop] if stop < 0 else self._listed()[index])
        return self._listed()[index]

    def _listed(self) -> tuple[T, ...]:
        if self._all is None:
            self._all = tuple(self._forward())
        return self._all
