"""The bounded record of calls that a tool made (MSG-45 to MSG-52, NEST-8 to NEST-10).

Theory of operation. One `Nest` belongs to one model-issued call and folds the start and the
end of every call beneath it, at all depths. `started` gives the call its id, counted per
caller, whatever the limits say; a call over the limit on records leaves none but still counts
its usage, and arguments over a byte limit leave their size only. What has no end when the
record is taken stays `unfinished`; either of these three makes the record incomplete.
"""

from typing import Final, Literal

import attrs

from camshaft.kernel import codec, shapes
from camshaft.kernel.messages import Content, Usage, text_of
from camshaft.kernel.persistent import EMPTY, FrozenDict, IdIndex, Json, freeze
from camshaft.kernel.truncate import cut_to_units
from camshaft.kernel.usage import add_usage

RECORDS_MAX: Final = 256
"""Calls one result keeps a record of (MSG-45)."""

ARGUMENTS_BYTES_MAX: Final = 8 * 1024
"""Arguments one record keeps, as compact JSON (MSG-45)."""

ARGUMENTS_TOTAL_BYTES_MAX: Final = 32 * 1024
"""Arguments all records of one result keep together (MSG-45)."""

ERROR_UNITS_MAX: Final = 500
"""Error text one record keeps, in UTF-16 units (MSG-45)."""


@shapes.frozen(kw_only=True)
class NestedCall:
    """One recorded call."""

    id: str
    name: str
    status: Literal["ok", "error", "unfinished"]
    arguments: Json = None
    """As the caller passed them, before coercion (NEST-9); None when over a limit."""
    arguments_bytes: int | None = None
    """Size of the omitted arguments as compact JSON."""
    duration_ms: int | None = None
    error: str | None = None
    """For `error`: the text of the result, cut; None if it has no text."""


@shapes.frozen(kw_only=True)
class NestedCalls:
    """The record as it stands on the result."""

    calls: tuple[NestedCall, ...]
    """All depths, in the order they started."""
    complete: bool


@shapes.frozen(kw_only=True)
class NestedEnd:
    """How one call ended."""

    is_error: bool
    content: Content = ()
    usage: Usage | None = None
    """What its own tool reported; inner calls report theirs themselves (NEST-10)."""
    duration_ms: int | None = None


@shapes.frozen(kw_only=True)
class Nest:
    """All calls beneath one model-issued call so far."""

    calls: tuple[NestedCall, ...] = ()
    usage: Usage | None = None
    """Sum over all finished calls, recorded or not; None if none reported any (MSG-51)."""
    are_dropped: bool = False
    """Whether a call was over the limit on records (MSG-47)."""
    kept_bytes: int = 0
    """Arguments kept so far; omitted ones are not charged (MSG-46)."""
    _counts: IdIndex[int] = IdIndex()

    @property
    def record(self) -> NestedCalls | None:
        """The record if the outer call ended now; None without any call (MSG-49)."""
        if not self.calls:
            return None
        is_whole = all(call.status != "unfinished" and call.arguments_bytes is None for call in self.calls)
        return NestedCalls(calls=self.calls, complete=is_whole and not self.are_dropped)

    @property
    def nested_calls(self) -> FrozenDict | None:
        """The record as the JSON value a tool-result message keeps."""
        record = self.record
        made: FrozenDict | None = None if record is None else freeze(codec.encode(record))
        return made


def started(nest: Nest, caller_id: str, name: str, arguments: object) -> tuple[Nest, str]:
    """The nest with one more call of `caller_id`, and the call's id (NEST-2). Arguments None count as `{}` (MSG-50).

    O(RECORDS_MAX). Raises NotJson if the arguments are not JSON; the nest is as before then.
    """
    number = (nest._counts.get(caller_id) or 0) + 1
    call_id = f"{caller_id}/{number}"
    value = EMPTY if arguments is None else freeze(arguments, "arguments")
    counted = attrs.evolve(nest, counts=nest._counts.set(caller_id, number))
    if len(nest.calls) >= RECORDS_MAX:
        return attrs.evolve(counted, are_dropped=True), call_id
    size = len(codec.dumps(value))
    if size > ARGUMENTS_BYTES_MAX or nest.kept_bytes + size > ARGUMENTS_TOTAL_BYTES_MAX:
        call = NestedCall(id=call_id, name=name, status="unfinished", arguments_bytes=size)
        return attrs.evolve(counted, calls=(*nest.calls, call)), call_id
    call = NestedCall(id=call_id, name=name, status="unfinished", arguments=value)
    return attrs.evolve(counted, calls=(*nest.calls, call), kept_bytes=nest.kept_bytes + size), call_id


def finished(nest: Nest, call_id: str, end: NestedEnd) -> Nest:
    """The nest after the end of a call: its usage is added, its record completed if it has one. O(RECORDS_MAX)."""
    summed = add_usage(nest.usage, end.usage)
    place = next((index for index, call in enumerate(nest.calls) if call.id == call_id), None)
    if place is None:
        return attrs.evolve(nest, usage=summed)
    error = cut_to_units(text_of(end.content), ERROR_UNITS_MAX) if end.is_error else None
    call = attrs.evolve(nest.calls[place], status="error" if end.is_error else "ok", duration_ms=end.duration_ms, error=error or None)
    return attrs.evolve(nest, usage=summed, calls=(*nest.calls[:place], call, *nest.calls[place + 1 :]))
