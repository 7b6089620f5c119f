"""When a handler of a scenario runs: `when`, `nth` and `times` (README.md section 3)."""

from collections.abc import Mapping
from typing import Any

import attrs

from tests.conformance.scenario.wire_paths import matches


@attrs.define(eq=False, kw_only=True)
class Limits:
    """When a handler runs: on matching events, on the listed ones of these, and not too often."""

    when: Mapping[str, Any]
    nth: tuple[int, ...] | None
    times: int | None
    silent: bool
    _matched: int = 0
    _ran: int = 0

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> "Limits":
        """The limits a handler is written with."""
        nth = spec.get("nth")
        wanted = None if nth is None else tuple(nth) if isinstance(nth, list) else (nth,)
        return cls(when=spec.get("when") or {}, nth=wanted, times=spec.get("times"), silent=bool(spec.get("silent")))

    def allow(self, event: Any) -> bool:
        """Whether the handler runs on this event; counts it."""
        if not matches(self.when, event):
            return False
        self._matched += 1
        if self.nth is not None and self._matched not in self.nth:
            return False
        if self.times is not None and self._ran >= self.times:
            return False
        self._ran += 1
        return True
