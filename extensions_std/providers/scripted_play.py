"""One request that a script answers: the door through which its items go, and what handlers see of them.

Every item goes through `send`: it waits the pause, looks at the signal, tells the handlers of stream events,
emits. If the request was aborted it raises `RequestAborted`, which ends the step (FAUX-8).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import trio

from camshaft.actors.api import (
    FAILED,
    Emit,
    Ended,
    FrozenDict,
    ModelRequest,
    Noted,
    Signal,
    Started,
    TextDelta,
    TextEnded,
    TextStarted,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingSigned,
    ThinkingStarted,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
    encode,
    freeze,
)
from camshaft.extensions_std.providers.scripted_steps import (
    Action,
    Call,
    Drop,
    Fail,
    Hang,
    Malformed,
    OpenGate,
    Respond,
    Sleep,
    WaitGate,
)

EVENT_TYPES: Final[Mapping[type[object], str]] = {
    Started: "start",
    TextStarted: "text_start",
    TextDelta: "text_delta",
    TextEnded: "text_end",
    ThinkingStarted: "thinking_start",
    ThinkingDelta: "thinking_delta",
    ThinkingEnded: "thinking_end",
    ThinkingSigned: "thinking_signed",
    ToolCallStarted: "toolcall_start",
    ToolCallDelta: "toolcall_delta",
    ToolCallEnded: "toolcall_end",
    Noted: "note",
}
"""Names of items in what `provider_stream_event` handlers see; those of STR-10 where there is one."""

RENAMED: Final[Mapping[str, str]] = {"index": "contentIndex", "stopReason": "reason"}

BEGINNINGS: Final = ("arguments", "text", "thinking")
"""With what a block may begin; left out where it begins empty."""


class RequestAborted(Exception):
    """The request was aborted while a step waited or emitted. A step lets it pass."""


@attrs.define(eq=False)
class Gates:
    """Named gates; each is closed until it is opened, and stays open."""

    _events: dict[str, trio.Event] = attrs.field(factory=dict)

    def event(self, name: str) -> trio.Event:
        """Set once the gate is open."""
        return self._events.setdefault(name, trio.Event())

    def open(self, name: str) -> None:
        """Lets everything pass that waits, or will wait."""
        self.event(name).set()


@attrs.define(eq=False)
class Play:
    """One request being answered."""

    request: ModelRequest
    signal: Signal
    _emit: Emit
    number: int
    """Of its record."""
    _pause_s: float = 0
    usage: Usage | None = None
    """Of its answer, once that is known."""
    outcome: str = "raised"
    tells_events: bool = True
    """Whether handlers of stream events are told of each item; a live step does that itself, with events of its own."""

    async def send(self, item: Any, *, delay_s: float = 0) -> None:
        """Pauses, looks at the signal, emits. Raises RequestAborted."""
        await self.wait(self._pause_s + delay_s)
        await self.end(item)

    async def end(self, item: Any) -> None:
        """Emits at once, whatever the signal says."""
        if self.tells_events and self.request.hooks.on_stream_event is not None:
            await self.request.hooks.on_stream_event(event_of(item))
        if isinstance(item, Ended):
            self.outcome = item.stop_reason
        await self._emit(item)

    async def wait(self, seconds: float) -> None:
        """Waits that long; a checkpoint at least. Raises RequestAborted as soon as the request is aborted."""
        if seconds > 0:
            with trio.move_on_after(seconds):
                await self.signal.wait()
        else:
            await trio.lowlevel.checkpoint()
        self._check()

    async def wait_for(self, gate: trio.Event) -> None:
        """Waits for a gate or the abort, whichever comes first. Raises RequestAborted."""
        # A cancel leaves the nursery in a group, which nobody above takes for one.
        before, self.outcome = self.outcome, "cancelled"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_after, self.signal.wait, nursery.cancel_scope)
            await gate.wait()
            nursery.cancel_scope.cancel()
        self.outcome = before
        self._check()

    def _check(self) -> None:
        if self.signal.cancelled:
            raise RequestAborted


async def play_actions(actions: Sequence[Action], play: Play, gates: Gates) -> None:
    """Plays a list of actions as it stands (FAUX-22). Raises RequestAborted, and what a `Call` raises."""
    for action in actions:
        match action:
            case Respond():
                continue
            case Sleep(seconds):
                await play.wait(seconds)
            case WaitGate(name):
                await play.wait_for(gates.event(name))
            case OpenGate(name):
                gates.open(name)
            case Hang():
                await play.signal.wait()
                raise RequestAborted
            case Drop():
                return
            case Fail(said, status):
                await play.send(Ended("error", f"{status} {said}" if status else said))
                return
            case Call(body):
                done = body()
                if done is not None:
                    await done
            case Malformed(value):
                await play.send(value)
            case _:
                await play.send(action)


def event_of(item: object) -> FrozenDict:
    """An item as JSON: `type` and what is known of it, in camel case, an empty text left out; what is no item has type `malformed`."""
    kind = type(item)
    if kind is Ended:
        name = "error" if item.stop_reason in FAILED else "done"  # type: ignore[attr-defined]  # it is an Ended
    elif kind in EVENT_TYPES:
        name = EVENT_TYPES[kind]
    else:
        return FrozenDict({"type": "malformed", "value": kind.__name__})
    fields = {RENAMED.get(field, field): value for field, value in encode(item).items() if value or field not in BEGINNINGS}
    event: FrozenDict = freeze({"type": name, **fields})
    return event


async def _cancel_after(wait: Callable[[], Awaitable[None]], scope: trio.CancelScope) -> None:
    await wait()
    scope.cancel()
