"""Runs tool calls: the pipeline of one call, batches of them, and calls that tools make.

The pipeline (TOOL-5 to TOOL-11): abort check, lookup, argument preparation, validation,
`tool_call` hooks, abort check, `execute` with updates, `tool_result` hooks, the end event,
the result message. Whatever happens, a call gives exactly one outcome; everything before
`execute` that fails gives an error result without `tool_result` hooks (TOOL-6, TOOL-34).

A parallel batch prepares all calls in source order, ends those that failed at once, then runs
the rest together: each begins, in source order, when the one before it waits for something,
so that an abort by the first leaves the others unstarted (LOOP-62), and no `tool_result` hook
runs before all have begun. Results are delivered in source order after all ended. A sequential
batch takes one call through everything before the next (TOOL-38, TOOL-39).

`execute` runs in limbo's nursery under bounds that an abort ends in stages, so a tool that
refuses to die cannot hold the run. What is left if this actor dies: the calls record names
every call and its result's id; a call without a result is answered "outcome unknown".
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import trio

from camshaft.actors.actor import Abandoned, Cut, Failure, Limbo, Value, guard_now, unless_exit
from camshaft.actors.contexts import ToolContext
from camshaft.actors.event_stream import EventStream
from camshaft.actors.extension_host import ExtensionHost
from camshaft.actors.session import SessionActor
from camshaft.actors.signal import AbortSignal
from camshaft.actors.tool_values import checked_arguments, error_result, read_result
from camshaft.actors.updates import Updates
from camshaft.kernel import nested, shapes
from camshaft.kernel.commands import FinishCall
from camshaft.kernel.events import ToolExecutionEnd, ToolExecutionStart
from camshaft.kernel.hook_events import ToolResultEvent
from camshaft.kernel.hook_merges import CallGate
from camshaft.kernel.messages import ToolCall, ToolResultMessage
from camshaft.kernel.nested import Nest, NestedEnd
from camshaft.kernel.persistent import EMPTY, FrozenDict, freeze, thaw
from camshaft.kernel.records import PlannedCall
from camshaft.kernel.tools import CallOutcome, Execute, RegisteredTool, Signal, ToolResult, callable_names
from camshaft.kernel.usage import add_usage

ABORTED_TEXT: Final = "Operation aborted"
UNKNOWN_TEXT: Final = "The tool was interrupted and did not end; whether it had an effect is unknown"
TRUNCATED_TEXT: Final = (
    "The call was not run: the reply hit its output limit, so the arguments may be cut. "
    "Call the tool again with complete arguments, or in smaller steps."
)
LOST_TEXT: Final = "The tool was interrupted; whether it had an effect is unknown"
FINISHED_TEXT: Final = "The call {} has finished; it can make no more calls"


@shapes.define(eq=False)
class _Call:
    """A call under way; handed to the tool's context, so that it can make calls of its own."""

    call: ToolCall
    parent_id: str | None
    signal: Signal
    root: "_Call | None"
    """The model-issued call above it; None for that one."""
    nest: Nest = Nest()
    """Of the model-issued call only: everything called beneath it."""
    serialized: bool = False
    """It holds the lock of sequential nested calls, or runs inside a call that does (NEST-6)."""
    on_update: Callable[[Any], None] | None = None
    """Of a nested call: where its caller wants its partial results."""
    is_finished: bool = False
    inner: list[trio.CancelScope] = attrs.field(factory=list)
    """Scopes of the calls it made and that still run."""

    @property
    def top(self) -> "_Call":
        """The model-issued call."""
        return self.root or self


@shapes.frozen(kw_only=True)
class _Ready:
    """A call that passed everything before `execute`."""

    call: _Call
    tool: RegisteredTool
    arguments: FrozenDict
    begun: trio.Event = attrs.field(factory=trio.Event)
    """Set when `execute` is called, or the call ended without it."""


@shapes.define(eq=False)
class ToolExecutor:
    """Runs the batches of one session."""

    _session: SessionActor
    _host: ExtensionHost
    _stream: EventStream
    _limbo: Limbo
    _nursery: trio.Nursery
    _sequential_mode: bool = False
    _sequential: trio.Lock = attrs.field(factory=trio.Lock)
    """Held by one nested call of a sequential tool at a time (NEST-6)."""

    # -- batches -------------------------------------------------------------------------

    async def run_parallel(
        self, planned: Sequence[tuple[ToolCall, PlannedCall]], tools: Mapping[str, RegisteredTool], signal: AbortSignal
    ) -> list[CallOutcome]:
        """The outcomes of a batch in source order, after all ended."""
        outcomes: list[CallOutcome | None] = [None] * len(planned)
        ready: list[tuple[int, _Ready]] = []
        for index, (call, _) in enumerate(planned):
            prepared = await self._begin(_Call(call, None, signal, None), tools)
            if isinstance(prepared, CallOutcome):
                outcomes[index] = prepared
            else:
                ready.append((index, prepared))
        keep, all_begun = len(planned) > 1, trio.Event()

        async def finish(index: int, prepared: _Ready) -> None:
            outcomes[index] = await self._finish(prepared, all_begun)
            prepared.begun.set()
            if keep:
                self._keep(outcomes[index], prepared.call.nest, planned[index][1])

        if len(ready) == 1:
            all_begun.set()
            await finish(*ready[0])
        elif ready:
            async with trio.open_nursery() as nursery:
                for index, prepared in ready:
                    nursery.start_soon(finish, index, prepared)
                    await prepared.begun.wait()
                all_begun.set()
        nests = {index: prepared.call.nest for index, prepared in ready}
        return [self._with_nest(outcome, nests.get(index)) for index, outcome in enumerate(outcomes) if outcome is not None]

    async def run_one(self, call: ToolCall, tools: Mapping[str, RegisteredTool], signal: AbortSignal) -> CallOutcome:
        """The outcome of one call of a sequential batch."""
        prepared = await self._begin(_Call(call, None, signal, None), tools)
        if isinstance(prepared, CallOutcome):
            return prepared
        outcome = await self._finish(prepared)
        return self._with_nest(outcome, prepared.call.nest)

    async def fail(self, call: ToolCall, text: str, *, announce: bool = True) -> CallOutcome:
        """Ends a call that does not run with an error, start and end announced (LOOP-23, LOOP-62)."""
        under = _Call(call, None, AbortSignal(), None)
        if announce:
            await self._announce_start(under)
        return await self._refused(under, text)

    def message(self, outcome: CallOutcome) -> ToolResultMessage:
        """The result message of an outcome (TOOL-9)."""
        result = outcome.result
        return ToolResultMessage(
            tool_call_id=outcome.tool_call.id,
            tool_name=outcome.tool_call.name,
            content=result.content or (),
            details=result.details,
            usage=result.usage,
            nested_calls=outcome.nested_calls,
            is_error=outcome.is_error,
            timestamp=self._session.now_ms(),
            duration_ms=outcome.duration_ms,
            extra=FrozenDict({name: None for name in ("details", "usage") if name in result.extra and getattr(result, name) is None}),
        )

    def _keep(self, outcome: CallOutcome | None, nest: Nest, planned: PlannedCall) -> None:
        """Of a batch that goes on, an ended call's result is written before the batch is closed (K13)."""
        if outcome is not None:
            message = self.message(self._with_nest(outcome, nest))
            self._session.post(FinishCall(result_entry_id=planned.result_entry_id, message=message))

    def _with_nest(self, outcome: CallOutcome, nest: Nest | None) -> CallOutcome:
        if nest is None or not nest.calls and nest.usage is None:
            return outcome
        usage = add_usage(outcome.result.usage, nest.usage)
        return attrs.evolve(outcome, result=attrs.evolve(outcome.result, usage=usage), nested_calls=nest.nested_calls)

    # -- one call ------------------------------------------------------------------------

    async def _begin(self, call: _Call, tools: Mapping[str, RegisteredTool]) -> _Ready | CallOutcome:
        """Everything before `execute`; a call that fails here has ended."""
        await self._announce_start(call)
        return await self._prepare(call, tools)

    async def _prepare(self, call: _Call, tools: Mapping[str, RegisteredTool]) -> _Ready | CallOutcome:
        name = call.call.name
        if call.signal.cancelled:
            return await self._refused(call, ABORTED_TEXT)
        tool = tools.get(name)
        if tool is None:
            return await self._refused(call, f"Tool {name} not found")
        checked = guard_now(checked_arguments, tool, call.call)
        if isinstance(checked, Failure):
            return await self._refused(call, checked.text)
        arguments: FrozenDict = checked.value
        if self._host.has("tool_call"):
            gate = await self._host.dispatch(
                "tool_call",
                CallGate(tool_name=name, tool_call_id=call.call.id, parent_tool_call_id=call.parent_id, input=arguments),
            )
            if call.signal.cancelled and not gate.raised:
                return await self._refused(call, ABORTED_TEXT)
            if gate.blocked is not None:
                return await self._refused(call, gate.blocked, terminate=gate.terminate)
            arguments = gate.input
        return _Ready(call=call, tool=tool, arguments=arguments)

    async def _finish(self, ready: _Ready, all_begun: trio.Event | None = None) -> CallOutcome:
        """From `execute` on; of a parallel batch, results are handled once every call has begun."""
        call = ready.call
        if call.signal.cancelled:
            return await self._refused(call, ABORTED_TEXT)
        await self._session.log.barrier()
        started = trio.current_time()
        result, is_error = await self._execute(ready)
        duration = round((trio.current_time() - started) * 1000)
        if all_begun is not None:
            await all_begun.wait()
        call.is_finished = True
        for scope in call.inner:
            scope.cancel()
        if self._host.has("tool_result"):
            result, is_error = await self._patched(ready, result, is_error)
        outcome = CallOutcome(tool_call=call.call, result=result, is_error=is_error, duration_ms=duration)
        await self._announce_end(call, outcome)
        return outcome

    async def _execute(self, ready: _Ready) -> tuple[ToolResult, bool]:
        """The tool's own result, and whether it is an error (TOOL-25, TOOL-27)."""
        call = ready.call
        updates = Updates(call.call, call.parent_id, self._host, self._stream, self._nursery, call.on_update)
        runtime = self._host.runtime
        assert runtime is not None, "tools run only once bound"
        owner = ready.tool.source_info.path
        context = ToolContext(runtime, self._host.standing_at(owner), owner, call.call.id, call.signal, call)
        run_signal = call.signal if isinstance(call.signal, AbortSignal) else AbortSignal()
        with run_signal.bounded() as bounds:
            outcome = await self._limbo.run(
                f"tool {call.call.name} ({call.call.id})",
                _telling(ready),
                call.call.id,
                thaw(ready.arguments),
                call.signal,
                updates.put,
                context,
                bounds=bounds,
            )
        await updates.close()
        match outcome:
            case Value(value=value):
                return self._result(value, ready.tool)
            case Failure():
                return error_result(outcome.text), True
            case Cut():
                return error_result(ABORTED_TEXT), True
            case Abandoned():
                return error_result(UNKNOWN_TEXT), True

    def _result(self, value: Any, tool: RegisteredTool) -> tuple[ToolResult, bool]:
        """The result a tool returned, and whether it is an error; what is wrong with it is told to its author too (TOOL-27)."""
        result, wrong = read_result(value, tool.definition.name)
        if wrong is not None:
            self._host.report(tool.source_info.path, "execute", wrong, tool.definition.execute)
        return result, result.is_error is True or wrong is not None

    async def _patched(self, ready: _Ready, result: ToolResult, is_error: bool) -> tuple[ToolResult, bool]:
        event = ToolResultEvent(
            tool_name=ready.call.call.name,
            tool_call_id=ready.call.call.id,
            input=ready.arguments,
            content=result.content,
            details=result.details,
            structured_content=result.structured_content,
            is_error=is_error,
            usage=result.usage,
            parent_tool_call_id=ready.call.parent_id,
            extra=FrozenDict({name: None for name in result.extra if name not in _UNPATCHED}),
        )
        after: ToolResultEvent = await self._host.dispatch("tool_result", event)
        if after is event:
            return result, is_error
        patched = attrs.evolve(
            result,
            content=after.content,
            details=after.details,
            structured_content=after.structured_content,
            usage=after.usage,
            extra=FrozenDict({**after.extra, **{name: None for name in result.extra if name in _UNPATCHED}}),
        )
        return patched, after.is_error

    async def _refused(self, call: _Call, text: str, *, terminate: bool = False) -> CallOutcome:
        result = attrs.evolve(error_result(text), terminate=True if terminate else None)
        outcome = CallOutcome(tool_call=call.call, result=result, is_error=True)
        await self._announce_end(call, outcome)
        return outcome

    # -- events --------------------------------------------------------------------------

    async def _announce_start(self, call: _Call) -> None:
        start = ToolExecutionStart(
            tool_call_id=call.call.id, tool_name=call.call.name, args=call.call.arguments, parent_tool_call_id=call.parent_id
        )
        await self._host.announce(start)

    async def _announce_end(self, call: _Call, outcome: CallOutcome) -> None:
        end = ToolExecutionEnd(
            tool_call_id=call.call.id,
            tool_name=call.call.name,
            result=outcome.result,
            is_error=outcome.is_error,
            duration_ms=outcome.duration_ms,
            parent_tool_call_id=call.parent_id,
        )
        await self._host.announce(end)

    # -- calls made by tools -------------------------------------------------------------

    async def execute_nested(
        self, caller: _Call, name: str, arguments: Any, signal: Signal | None, on_update: Callable[[Any], None] | None
    ) -> CallOutcome:
        """The outcome of a call that the tool of `caller` makes; never raises for the tool's failures (NEST-1)."""
        given = freeze({} if arguments is None else arguments, "arguments")
        shown = given if isinstance(given, FrozenDict) else EMPTY
        if caller.is_finished:
            late = ToolCall(id=f"{caller.call.id}/-", name=name, arguments=shown)
            return CallOutcome(tool_call=late, result=error_result(FINISHED_TEXT.format(caller.call.id)), is_error=True)
        top = caller.top
        top.nest, call_id = nested.started(top.nest, caller.call.id, name, given)
        wrong = None if isinstance(given, FrozenDict) else f"{given!r} is no object"
        call = ToolCall(id=call_id, name=name, arguments=shown, arguments_error=wrong)
        inner = _Call(call, caller.call.id, signal or caller.signal, top, serialized=caller.serialized, on_update=on_update)
        started = trio.current_time()
        await self._announce_start(inner)
        with trio.CancelScope() as scope:
            caller.inner.append(scope)
            outcome = await self._run_nested(inner)
        caller.inner.remove(scope)
        if scope.cancelled_caught:
            return CallOutcome(tool_call=call, result=error_result(FINISHED_TEXT.format(caller.call.id)), is_error=True)
        end = NestedEnd(
            is_error=outcome.is_error,
            content=outcome.result.content or (),
            usage=outcome.result.usage,
            duration_ms=round((trio.current_time() - started) * 1000),
        )
        top.nest = nested.finished(top.nest, call_id, end)
        return outcome

    async def _run_nested(self, call: _Call) -> CallOutcome:
        runtime = self._host.runtime
        assert runtime is not None
        names = callable_names(runtime.state.selection.active_tools, self._host.tools)
        tools = {name: self._host.tools[name] for name in names}
        tool = tools.get(call.call.name)
        alone = tool is not None and (self._sequential_mode or tool.definition.execution_mode == "sequential")
        if not alone or call.serialized:
            return await self._nested_pipeline(call, tools)
        call.serialized = True
        async with self._sequential:
            return await self._nested_pipeline(call, tools)

    async def _nested_pipeline(self, call: _Call, tools: Mapping[str, RegisteredTool]) -> CallOutcome:
        prepared = await self._prepare(call, tools)
        return prepared if isinstance(prepared, CallOutcome) else await self._finish(prepared)


def _telling(ready: _Ready) -> Execute:
    """The tool's `execute`, telling when it is called; who waits for that goes on when it waits itself."""

    def execute(*args: Any) -> Awaitable[Any]:
        ready.begun.set()
        begun: Awaitable[Any] = unless_exit(ready.tool.definition.execute, *args)
        return begun

    return execute


_UNPATCHED: Final = ("isError", "terminate")
"""Fields of a result that `tool_result` handlers do not see as they were returned."""
