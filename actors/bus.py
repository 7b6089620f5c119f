"""Messages between extensions: a bus that outlives them, and each extension's face of it (API-27).

Theory of operation. The bus belongs to the conversation and is the same object after a reload; a
subscription belongs to who made it. It ends when it is unsubscribed, when its extension failed to
load, and when its generation is over; the bus asks for that at each `emit`. Listeners are called in
the order of subscription, at once; what an async one waits for runs on its own.
"""

from collections.abc import Callable
from typing import Any

from camshaft.actors.misuse import require_takes, require_text
from camshaft.kernel import shapes


@shapes.frozen(eq=False)
class Subscription:
    """One listener of one channel; compared by identity."""

    channel: str
    tell: Callable[[Any], None]
    """Hands a value to the listener; never raises."""
    is_live: Callable[[], bool]


@shapes.define(eq=False)
class EventBus:
    """All subscriptions of a conversation."""

    _subscriptions: tuple[Subscription, ...] = ()

    def add(self, subscription: Subscription) -> Callable[[], None]:
        """Its listener is told from now on; returns the idempotent unsubscribe."""
        live = [each for each in self._subscriptions if each.is_live()]
        self._subscriptions = (*live, subscription)

        def unsubscribe() -> None:
            self._subscriptions = tuple([each for each in self._subscriptions if each is not subscription])

        return unsubscribe

    def take_in(self, other: "EventBus") -> None:
        """Who subscribed to another bus hears this one from now on."""
        self._subscriptions = (*self._subscriptions, *other._subscriptions)

    def emit(self, channel: str, value: Any) -> None:
        """Tells the listeners of `channel` now, in subscription order; those added meanwhile are told of the next one."""
        for each in self._subscriptions:
            if each.channel == channel and each.is_live():
                each.tell(value)


@shapes.frozen(eq=False)
class Bus:
    """One extension's face of the bus."""

    _subscribe: Callable[[str, Callable[[Any], Any]], Callable[[], None]]
    _emit: Callable[[str, Any], None]

    def on(self, channel: str, handler: Callable[[Any], Any]) -> Callable[[], None]:
        """Calls `handler(value)` for every value emitted on `channel`; returns its unsubscribe."""
        require_text(channel, "the channel of a listener")
        require_takes(handler, f"the listener of channel {channel!r}", "value")
        return self._subscribe(channel, handler)

    def emit(self, channel: str, value: Any = None) -> None:
        """Calls the listeners of `channel` now, in subscription order."""
        self._emit(channel, value)
