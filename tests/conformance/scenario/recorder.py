"""The trace while it grows: one list of records, requests as they reach the provider, the session files in use."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

FILTERED = frozenset({"ext", "session", "tool", "provider"})
"""Channels that `recordOnly` thins out."""


@attrs.define(eq=False, kw_only=True)
class Recorder:
    """Collects what happens until it is closed."""

    only: frozenset[str] | None = None
    """`channel:event` (or `channel:at`) names to keep; None keeps everything."""
    events: list[dict[str, Any]] = attrs.field(factory=list)
    requests: list[dict[str, Any]] = attrs.field(factory=list)
    session_files: list[str | None] = attrs.field(factory=list)
    """Paths in order of first use; the same path once."""
    _closed: bool = False

    def record(self, record: Mapping[str, Any]) -> None:
        """Adds a record, unless the scenario does not want it or the trace is complete."""
        if self._closed or not self._wanted(record):
            return
        self.events.append(dict(record))

    def insert_after(self, place: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> None:
        """Adds records behind the last one that has the fields of `place`, for what became known later than it happened."""
        found = [index for index, record in enumerate(self.events, start=1) if place.items() <= record.items()]
        at = found[-1] if found else len(self.events)
        self.events[at:at] = [dict(record) for record in records]

    def request(self, request: Mapping[str, Any]) -> None:
        """Adds a provider request, numbered, and its record."""
        number = len(self.requests) + 1
        self.requests.append({"n": number, **request})
        self.record({"ch": "provider", "at": "request", "n": number, "model": request["model"]})

    def uses_session_file(self, path: str | None) -> None:
        """Notes a session file; later uses of the same one change nothing."""
        if path is None or path not in self.session_files:
            self.session_files.append(path)

    def close(self) -> None:
        """Ends the trace: what happens while the session is put away is no part of it."""
        self._closed = True

    def _wanted(self, record: Mapping[str, Any]) -> bool:
        channel = record["ch"]
        if self.only is None or channel not in FILTERED:
            return True
        name = record.get("event") if channel in ("ext", "session") else record.get("at")
        return f"{channel}:{name}" in self.only
