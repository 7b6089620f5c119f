"""Partial results of one tool call on their way to handlers and hosts (TOOL-26).

A tool reports them without waiting. While nobody handles them they are told to hosts at once;
otherwise a task of their own dispatches them one after the other, so slow handlers hold up
neither the tool nor each other's order. When too many wait, the newest replaces the last one.
What was put before the call ended is told before its result is.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

import attrs
import trio

from camshaft.actors.actor import guard_now
from camshaft.actors.event_stream import EventStream
from camshaft.actors.extension_host import ExtensionHost
from camshaft.kernel import codec, shapes
from camshaft.kernel.events import ToolExecutionUpdate
from camshaft.kernel.messages import ToolCall
from camshaft.kernel.tools import ToolResult

UPDATES_WAITING_MAX: Final = 16
"""Partial results of one call that wait for slow handlers; a frontend wants the newest, not all."""


@shapes.define(eq=False)
class Updates:
    """The partial results of one call."""

    _call: ToolCall
    _parent_id: str | None
    _host: ExtensionHost
    _stream: EventStream
    _nursery: trio.Nursery
    _caller: Callable[[Any], None] | None
    """Of a nested call: where the calling tool wants them."""
    _waiting: deque[ToolExecutionUpdate] = attrs.field(factory=deque)
    _is_closed: bool = False
    _idle: trio.Event | None = None
    """While a task dispatches: set when it is done."""

    def put(self, partial: Any) -> None:
        """Takes a ToolResult or a dict with its fields; ignored once the call ended. Raises CodecError for anything else."""
        if self._is_closed:
            return
        result = codec.python(ToolResult, partial)
        if self._caller is not None:
            guard_now(self._caller, result)
        update = ToolExecutionUpdate(
            tool_call_id=self._call.id,
            tool_name=self._call.name,
            args=self._call.arguments,
            partial_result=result,
            parent_tool_call_id=self._parent_id,
        )
        if self._idle is None and not self._host.has(update.type):
            self._stream.publish(update)
            return
        if len(self._waiting) >= UPDATES_WAITING_MAX:
            self._waiting.pop()
        self._waiting.append(update)
        if self._idle is None:
            self._idle = trio.Event()
            self._nursery.start_soon(self._pump, self._idle)

    async def close(self) -> None:
        """The call ended: returns when everything put before has been told."""
        self._is_closed = True
        if self._idle is not None:
            await self._idle.wait()

    async def _pump(self, idle: trio.Event) -> None:
        try:
            while self._waiting:
                await self._host.announce(self._waiting.popleft())
        finally:
            self._idle = None
            idle.set()
