"""Times as text and as numbers; no clock is read here."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def iso(at_ms: int) -> str:
    """UTC ISO 8601 with three fractional digits and `Z` of ms since the Unix epoch (MSG-2)."""
    at = _EPOCH + timedelta(milliseconds=at_ms)
    return at.isoformat(timespec="milliseconds")[:-6] + "Z"


def ms_of(stamp: str) -> int | None:
    """Ms since the Unix epoch of an ISO time, or None if it is none (CTX-12)."""
    try:
        at = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return round((at - _EPOCH) / timedelta(milliseconds=1))
