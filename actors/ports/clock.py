"""Wall clock and ids: the ports and their real implementations."""

import secrets
import time
import uuid
from typing import Protocol

import attrs

from camshaft.kernel import shapes


class Clock(Protocol):
    """Wall clock. Monotonic time and sleeping are Trio's."""

    def now_ms(self) -> int:
        """Ms since the Unix epoch."""
        ...


class Ids(Protocol):
    """Fresh names."""

    def entry_id(self) -> str:
        """8 lower-case hex digits; the caller redraws on a collision (SES-20)."""
        ...

    def session_id(self) -> str:
        """A UUIDv7, greater than every one before it (SES-2)."""
        ...

    def token(self) -> str:
        """16 lower-case hex digits."""
        ...


@shapes.frozen
class RealClock:
    """The system's clock."""

    def now_ms(self) -> int:
        """Ms since the Unix epoch."""
        return time.time_ns() // 1_000_000


@shapes.define(eq=False)
class RealIds:
    """Random ids; session ids are ordered by time and counter."""

    _clock: Clock = attrs.field(factory=RealClock)
    _last: int = 0

    def entry_id(self) -> str:
        """8 random hex digits."""
        return secrets.token_hex(4)

    def token(self) -> str:
        """16 random hex digits."""
        return secrets.token_hex(8)

    def session_id(self) -> str:
        """A UUIDv7: 48 bits of ms, then a random start that counts up within a millisecond."""
        stamp = (self._clock.now_ms() << 74) | secrets.randbits(73)
        self._last = max(stamp, self._last + 1)
        value = self._last
        high, low = value >> 62, value & ((1 << 62) - 1)
        number = ((high >> 12) << 80) | (0x7 << 76) | ((high & 0xFFF) << 64) | (0b10 << 62) | low
        return str(uuid.UUID(int=number))
