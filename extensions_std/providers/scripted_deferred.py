"""Answers of a script that wait to be fetched (FAUX-9, STR-40)."""

from collections.abc import Mapping
from typing import Any, Final

import attrs
import trio

from camshaft.actors.api import NO_USAGE, Ended, FrozenDict, ModelRequest, Started, StreamItem, freeze
from camshaft.extensions_std.providers.scripted_numbers import Cutter

UNKNOWN: Final = "Unknown faux deferred response"
CANCELLED: Final = "Faux deferred response was cancelled"


@attrs.define(eq=False, kw_only=True)
class Deferral:
    """An answer that waits."""

    handle: FrozenDict
    step: Any
    """Of the script; evaluated when it is fetched first."""
    request: ModelRequest
    """That took the step, and got the handle."""
    pending: int
    """Fetches that still get the handle."""
    cutter: Cutter
    reply: Any = None
    """What the step gave; None until then."""
    turn: trio.Lock = attrs.field(factory=trio.Lock)
    """Held while the step is evaluated: two fetches at once evaluate it once."""
    is_cancelled: bool = False


@attrs.define(eq=False)
class Deferrals:
    """All of one provider."""

    _kept: dict[str, Deferral] = attrs.field(factory=dict)

    def keep(self, step: Any, request: ModelRequest, cutter: Cutter, *, pending: int, poll_after_ms: int | None) -> Deferral:
        """A new one, with a handle of its own."""
        model, id = request.model, f"deferred_{len(self._kept) + 1}"
        handle: dict[str, Any] = {"provider": model.provider, "modelId": model.id, "api": model.api, "id": id}
        if poll_after_ms is not None:
            handle["pollAfterMs"] = poll_after_ms
        kept = Deferral(handle=freeze(handle), step=step, request=request, pending=pending, cutter=cutter)
        self._kept[id] = kept
        return kept

    def find(self, handle: Mapping[str, Any]) -> Deferral | None:
        """The one with this handle."""
        return self._kept.get(str(handle.get("id")))


def handle_items(handle: FrozenDict) -> tuple[StreamItem, ...]:
    """How a handle is given."""
    return (Started(), Ended("deferred", usage=NO_USAGE, deferred=handle))


def why_not(kept: Deferral | None, handle: Mapping[str, Any]) -> str | None:
    """Why there is nothing to fetch."""
    if kept is None:
        return f"{UNKNOWN}: {handle.get('id')}"
    return f"{CANCELLED}: {handle.get('id')}" if kept.is_cancelled else None
