"""Child sessions: a conversation that an extension opens for a piece of work, such as a sub-agent.

    async with ctx.open_child(ChildOptions(tools=("read", "grep"))) as child:
        outcome = await child.prompt("Find where the port is configured.")

A child is a whole conversation beside its parent's: a session of its own, its own context, the
same models, ports and limits. It loads the parent's extensions, unless told otherwise, so that a
gate that protects the parent protects the child, and its dialogs are shown where the parent's
are. It ends with its block, or with its parent: what runs in it is aborted then. While a prompt of
it is waited for, an abort of the parent's run is one of the child. Its usage is its
own; a tool that wants it counted gives `outcome.usage` as its result's (NEST-10).

Children may have children, up to CHILD_DEPTH_MAX: an agent that delegates to itself must come to an end.
"""

import math
import os
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs
import trio

from camshaft.actors.actor import Failure, guard
from camshaft.actors.errors import CommandRefused
from camshaft.actors.event_stream import Listener
from camshaft.actors.loading import Source
from camshaft.actors.opening import MemorySession, NewSession, Target
from camshaft.actors.options import OpenOptions
from camshaft.kernel import shapes
from camshaft.kernel.estimates import sum_usages
from camshaft.kernel.messages import NO_USAGE, AssistantMessage, ImageBlock, Message, Usage, text_of
from camshaft.kernel.statistics import usage_of
from camshaft.kernel.tools import Signal

if TYPE_CHECKING:
    from camshaft.actors.seat import Seat
    from camshaft.actors.seat_parts import SeatParts

CHILD_DEPTH_MAX: Final = 3
"""Children of children: deeper, an agent most likely calls itself for ever."""


@shapes.frozen(kw_only=True)
class ChildOptions:
    """How a child differs from its parent."""

    system_prompt: str | None = None
    """Replaces the text of the system prompt; None: the parent's."""
    append_system_prompt: tuple[str, ...] = ()
    """Added to the parent's."""
    tools: tuple[str, ...] | None = None
    """Names of the tools it has; None: those that are active in the parent."""
    exclude_tools: tuple[str, ...] = ()
    """Names it does not have, for instance that of the tool that opens it."""
    model: str | None = None
    """`provider/id`; None: the parent's."""
    thinking_level: str | None = None
    """None: the parent's."""
    extensions: tuple[Source, ...] | None = None
    """None: the parent's. With others, or none, what guards the parent does not guard the child."""
    is_kept: bool = False
    """Whether its session gets a file, beside the parent's and naming it; in memory otherwise."""


@shapes.frozen(kw_only=True)
class ChildOutcome:
    """How a prompt of a child ended."""

    text: str
    """Of the last answer; empty if it had none."""
    stop_reason: str
    """Of the last answer: `stop`, `length`, `error` or `aborted`."""
    error: str | None = None
    """What went wrong, of an answer that failed."""
    usage: Usage
    """Everything the child has used so far, tools and summaries included; the parent counts it if a tool gives `ToolResult(usage=...)`."""


class Opener(Protocol):
    """The kernel, as children need it."""

    def __call__(self, options: OpenOptions, parent: "SeatParts") -> "Awaitable[Seat]":
        """Opens a conversation beneath another one."""
        ...


@shapes.define(eq=False)
class Child:
    """A child while its block lasts."""

    _seat: "Seat"
    _signal: Signal | None

    @property
    def session_file(self) -> str | None:
        """Path of its session, whether it exists yet or not; None in memory."""
        return self._seat.session_file

    @property
    def messages(self) -> Sequence[Message]:
        """The messages in its context; a lazy view."""
        return self._seat.context_messages

    @property
    def usage(self) -> Usage:
        """Everything it has used so far."""
        return sum_usages([used for entry in self._seat.state.tree.entries() if (used := usage_of(entry)) is not None]) or NO_USAGE

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` with every event of the child; returns its unsubscribe."""
        return self._seat.subscribe(listener)

    async def prompt(self, text: str, *, images: Sequence[ImageBlock] = ()) -> ChildOutcome:
        """Asks it, and waits until its run has settled. Raises PromptRefused, and what ended the run abnormally.

        A failed answer is an outcome. When the signal the child was opened with is set, its run is aborted.
        """
        if self._signal is not None and self._signal.cancelled:
            return ChildOutcome(text="", stop_reason="aborted", error="Operation aborted", usage=self.usage)
        async with trio.open_nursery() as nursery:
            if self._signal is not None:
                nursery.start_soon(self._abort_with, self._signal)
            outcome = await guard(lambda: self._seat.prompt(text, images=images, expand=False, source="extension"))
            nursery.cancel_scope.cancel()
        if isinstance(outcome, Failure):
            raise outcome.error
        return self._outcome()

    async def _abort_with(self, signal: Signal) -> None:
        await signal.wait()
        self._seat.request_abort()

    def _outcome(self) -> ChildOutcome:
        answers = [message for message in self.messages if isinstance(message, AssistantMessage)]
        if not answers:
            return ChildOutcome(text="", stop_reason="stop", usage=self.usage)
        last = answers[-1]
        return ChildOutcome(text=text_of(last.content), stop_reason=last.stop_reason or "stop", error=last.error_message, usage=self.usage)


@shapes.define(eq=False)
class ChildBlock:
    """What `open_child` gives, to be entered with `async with`."""

    _parts: "SeatParts"
    _options: ChildOptions
    _signal: Signal | None
    _siblings: "list[Seat]"
    """The parent's children that are open: it closes them when it is closed before their blocks end."""
    _seat: "Seat | None" = None

    async def __aenter__(self) -> Child:
        """Raises CommandRefused beneath too many parents, InvalidOptions, StorageError."""
        ground = self._parts.ground
        if ground.depth >= CHILD_DEPTH_MAX:
            raise CommandRefused(f"this conversation is {ground.depth} levels beneath its first; children end at {CHILD_DEPTH_MAX}")
        self._seat = await ground.open_child(child_options(self._parts, self._options), self._parts)
        self._siblings.append(self._seat)
        return Child(self._seat, self._signal)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._seat is not None
        at_once = trio.current_effective_deadline() == -math.inf
        with trio.CancelScope(shield=True):
            await self._seat.close(at_once)
        self._siblings.remove(self._seat)


def child_options(parent: "SeatParts", wanted: ChildOptions) -> OpenOptions:
    """What the child of a conversation is opened with."""
    selection, options = parent.state.selection, parent.options
    model = wanted.model or (None if selection.model is None else selection.model.reference)
    changes: dict[str, Any] = {
        "session": _session_of(parent, wanted),
        "cwd": parent.base_prompt.cwd,
        "override_cwd": True,
        "tools": selection.active_tools if wanted.tools is None else wanted.tools,
        "exclude_tools": (*options.exclude_tools, *wanted.exclude_tools),
        "no_tools": None,
        "model": model,
        "thinking_level": wanted.thinking_level or selection.thinking_level,
        "append_system_prompt": (*options.append_system_prompt, *wanted.append_system_prompt),
        "listeners": (),
        "services": None,
        "on_shutdown": None,
    }
    if wanted.system_prompt is not None:
        changes["system_prompt"] = wanted.system_prompt
    if wanted.extensions is not None:
        changes.update({"extensions": wanted.extensions, "providers": parent.providers})
    return attrs.evolve(options, **changes)


def _session_of(parent: "SeatParts", wanted: ChildOptions) -> Target:
    path = parent.session.log.path
    if not wanted.is_kept or path is None:
        return MemorySession()
    return NewSession(directory=os.path.dirname(path), parent_session=path)
