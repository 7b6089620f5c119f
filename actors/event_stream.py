"""The one order in which everybody hears what happened: listeners, lossless followers, watches.

Why this is harder than it looks. A listener is called inside `publish` and may post, which
publishes again. The outer post is complete by then; the inner one is true for the listener's
next line, but its events must not overtake the event that is being told. So events go into
one queue that the outermost publish drains: everybody hears one order.

The stream waits for nobody and calls no actor, so it cannot be part of a wait cycle. A
lossless follower that falls behind is waited for by the loop, at its next step only, and is
closed with an error when it took nothing for `STALL_S`. A listener that raises is reported once
and goes on. Followers have an event before listeners hear of it, so that what a listener puts
behind it, the answer to a command perhaps, is taken after it.
"""

import inspect
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, Generic, Never, Protocol, TypeVar

import attrs
import trio

from camshaft.actors.actor import Failure, guard_now
from camshaft.actors.errors import CamshaftError, CommandRefused
from camshaft.actors.places import located
from camshaft.kernel import shapes
from camshaft.kernel.events import (
    AgentSettled,
    DiagnosticEvent,
    Event,
    MessageEnd,
    MessageUpdate,
    SessionReplaced,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from camshaft.kernel.stream import Partial

FOLLOWER_EVENTS_MAX: Final = 256
"""Events a lossless follower may be behind before the run waits for it at its next step."""

STALL_S: Final = 30.0
"""How long the run waits for a follower that takes nothing before closing it: a dead reader must not stop a job for ever."""

DIAGNOSTICS_KEPT_MAX: Final = 100
"""Last diagnostics kept for inspection."""

Listener = Callable[[Event], object]

LISTENER_EXPECTED: Final = "a plain function: it is called inside the step that made the event true; follow() is for what has to wait"


def is_listener(value: object) -> bool:
    """Whether events can be told to it; not so to an async function, whose coroutine nobody would await."""
    return callable(value) and not inspect.iscoroutinefunction(value) and not inspect.iscoroutinefunction(type(value).__call__)


class FollowerStalled(CamshaftError):
    """A lossless follower did not take its events in time and was closed; it has to subscribe again."""

    def __init__(self, waiting: int) -> None:
        super().__init__(f"the follower left {waiting} events untaken for {STALL_S:.0f} s and was closed; subscribe again to go on")
        self.waiting = waiting


Own = TypeVar("Own")
"""What the owner of a follower puts between the events."""


@shapes.define(eq=False)
class Follower(Generic[Own]):
    """An async iterator over events, in order, none left out. A host may make one and hand it to `OpenOptions.followers`."""

    is_deaf: bool = False
    """Set by its owner: what happens meanwhile passes it by."""
    _items: deque[Event | Own] = attrs.field(factory=deque)
    _changed: trio.Event | None = None
    """What somebody waits for; None: nobody waits."""
    _error: FollowerStalled | None = None
    _closed: bool = False
    _progress: int = 0
    """How often something was taken, or its reader was known to be at work."""

    def __aiter__(self) -> "Follower[Own]":
        return self

    async def __anext__(self) -> Event | Own:
        """The next event. Raises FollowerStalled after the stream gave up on this follower; ends when the stream closes."""
        while not self._items:
            if self._error is not None:
                raise self._error
            if self._closed:
                raise StopAsyncIteration
            await self._wait()
        item = self._items.popleft()
        self.progress()
        return item

    @property
    def waiting(self) -> int:
        """How many events are not taken yet."""
        return len(self._items)

    @property
    def is_behind(self) -> bool:
        """Whether more than FOLLOWER_EVENTS_MAX wait."""
        return len(self._items) > FOLLOWER_EVENTS_MAX

    def put(self, item: Event | Own) -> None:
        """Adds an event, or something of its owner that is taken after the events so far. Never waits.

        Nothing once it is closed, and while it is deaf.
        """
        if not (self._closed or self.is_deaf):
            self._items.append(item)
            self._wake()

    def progress(self) -> None:
        """Says that its reader is at work, though it takes nothing for a while: what it took is long, or goes out slowly."""
        self._progress += 1
        self._wake()

    def close(self, error: FollowerStalled | None = None) -> None:
        """No event follows; what waits can still be taken, unless there is an error."""
        self._closed, self._error = True, error
        if error is not None:
            self._items.clear()
        self._wake()

    async def wait_until_near(self) -> bool:
        """Returns when it is not behind, or closed: True; or when nothing was taken for STALL_S: False."""
        while self.is_behind and not self._closed:
            seen = self._progress
            with trio.move_on_after(STALL_S):
                while seen == self._progress and not self._closed:
                    await self._wait()
            if seen == self._progress and not self._closed:
                return False
        return True

    async def _wait(self) -> None:
        self._changed = self._changed or trio.Event()
        await self._changed.wait()

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None


class Watching(Protocol):
    """Whoever takes events without ever slowing the run."""

    def put(self, event: Event) -> None:
        """Takes an event; never waits."""
        ...

    def close(self) -> None:
        """No event follows."""
        ...


@shapes.define(eq=False)
class Ongoing:
    """What events have begun and not ended: what a frontend that comes later would otherwise never learn."""

    partial: Partial | None = None
    """The answer that streams in."""
    calls: dict[str, ToolExecutionStart] = attrs.field(factory=dict)
    """The tool calls that run, by id, in order of their beginning."""
    updates: dict[str, ToolExecutionUpdate] = attrs.field(factory=dict)
    """The last update of each."""

    def fold(self, event: Event) -> None:
        """What an event changes; of updates of the answer the stream takes note itself."""
        match event:
            case MessageEnd():
                self.partial = None
            case ToolExecutionStart():
                self.calls[event.tool_call_id] = event
            case ToolExecutionUpdate():
                self.updates[event.tool_call_id] = event
            case ToolExecutionEnd():
                self.calls.pop(event.tool_call_id, None)
                self.updates.pop(event.tool_call_id, None)
            case AgentSettled() | SessionReplaced():
                self.partial = None
                self.calls.clear()
                self.updates.clear()


@shapes.define(eq=False)
class EventStream:
    """One per conversation; survives the replacement of its session."""

    id: str = ""
    """Of this stream among those of all processes; drawn when the first watch needs it."""
    count: int = 0
    """Events told so far."""
    ongoing: Ongoing = attrs.field(factory=Ongoing)

    diagnostics: deque[DiagnosticEvent] = attrs.field(factory=lambda: deque(maxlen=DIAGNOSTICS_KEPT_MAX))
    """The last ones told, also if nobody listened."""
    _listeners: dict[int, Listener] = attrs.field(factory=dict)
    _followers: list[Follower[Any]] = attrs.field(factory=list)
    _watches: list[Watching] = attrs.field(factory=list)
    _queue: deque[Event] = attrs.field(factory=deque)
    _draining: bool = False
    _failed: set[int] = attrs.field(factory=set)
    _next: int = 0

    def publish(self, event: Event) -> None:
        """Tells everybody, or queues the event if a publish is under way. Returns without waiting."""
        self._queue.append(event)
        if self._draining:
            return
        self._draining = True
        try:
            while self._queue:
                self._tell(self._queue.popleft())
        finally:
            self._draining = False

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` with every event from now on; returns its idempotent unsubscribe.

        Raises CommandRefused for what is no plain function.
        """
        if not is_listener(listener):
            raise CommandRefused(f"listener {listener!r}; expected {LISTENER_EXPECTED}")
        self._next += 1
        key = self._next
        self._listeners = {**self._listeners, key: listener}

        def unsubscribe() -> None:
            self._listeners = {each: kept for each, kept in self._listeners.items() if each != key}

        return unsubscribe

    @asynccontextmanager
    async def follow(self) -> AsyncIterator[Follower[Never]]:
        """A lossless follower from now on, closed on leaving."""
        follower = Follower[Never]()
        self.attach(follower)
        try:
            yield follower
        finally:
            self._followers = [each for each in self._followers if each is not follower]
            follower.close()

    def attach(self, follower: Follower[Any]) -> None:
        """Gives a follower every event from now on, until the stream or its owner closes it."""
        self._followers.append(follower)

    @contextmanager
    def watched_by(self, watch: Watching) -> Iterator[None]:
        """Gives `watch` every event told from now on, inside the block."""
        self._watches.append(watch)
        try:
            yield
        finally:
            self._watches = [each for each in self._watches if each is not watch]
            watch.close()

    @property
    def is_full(self) -> bool:
        """Whether a follower is so far behind that the run should wait for it."""
        return any([follower.is_behind for follower in self._followers])

    async def wait_for_followers(self) -> None:
        """Returns when every follower is near enough, or was closed because it took nothing."""
        for follower in tuple(self._followers):
            if not await follower.wait_until_near():
                follower.close(FollowerStalled(follower.waiting))
                self._followers = [each for each in self._followers if each is not follower]

    def close(self) -> None:
        """Ends every follower."""
        for follower in self._followers:
            follower.close()
        for watch in self._watches:
            watch.close()
        self._followers, self._watches = [], []
        self._listeners = {}

    def _tell(self, event: Event) -> None:
        self.count += 1
        if type(event) is MessageUpdate:  # by far the most frequent one
            self.ongoing.partial = event.partial
        elif type(event) in _BEGIN_OR_END:
            self.ongoing.fold(event)
        if isinstance(event, DiagnosticEvent):
            self.diagnostics.append(event)
        for follower in self._followers:
            follower.put(event)
        for key, listener in self._listeners.items():
            outcome = guard_now(listener, event)
            if isinstance(outcome, Failure) and key not in self._failed:
                self._failed.add(key)
                what = located(outcome.error, outcome.text, "its call")
                self._queue.append(DiagnosticEvent(source="listener", message=f"a listener failed on {event.type}: {what}"))
        for watch in self._watches:
            watch.put(event)


_BEGIN_OR_END: Final = frozenset({MessageEnd, ToolExecutionStart, ToolExecutionUpdate, ToolExecutionEnd, AgentSettled, SessionReplaced})
"""The events that `Ongoing.fold` knows."""
