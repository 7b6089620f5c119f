"""Extensions of one session: what they registered, and calling their handlers.

Why this is harder than it looks. Extensions are strangers: they hang, raise, register while
they are being called, and keep their API after their time. So the registrations are a value
that a dispatch reads once (EVT-2); a handler that raises is a fact to report, never a crash
(LOOP-49); every API and context belongs to a generation and raises once that is over.

A dispatch runs in its caller's task: no handler, no cost. Which handlers exist, what they are
shown and what their answers do is the hook table (`kernel/hooks.py`); nothing here knows a
hook by name. Fire-and-forget hooks go through a mailbox, in order, whose task exists only
while there is something in it. What is left if this actor dies: nothing durable is here.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import trio

from camshaft.actors.actor import Cut, Failure, Value, apart, give_way, guard, guard_now, is_awaitable, unless_exit
from camshaft.actors.bus import EventBus, Subscription
from camshaft.actors.command_names import Named, named_commands
from camshaft.actors.contexts import CommandContext, ExtensionContext
from camshaft.actors.event_stream import EventStream
from camshaft.actors.generation import Checked, Generation
from camshaft.actors.loading import LoadError, LoadWarning
from camshaft.actors.loadouts import Loadouts
from camshaft.actors.mcp_registrations import McpRegistrations
from camshaft.actors.oversight import Forced, Oversight, Task
from camshaft.actors.places import defined_at, place_of
from camshaft.actors.provider_registry import ProviderRegistry
from camshaft.actors.registering import read_completions
from camshaft.actors.registrations import Completion, Extension, Handler
from camshaft.actors.runtime import Runtime
from camshaft.actors.signal import AbortSignal
from camshaft.actors.standing import ExtensionQuarantined, Standing
from camshaft.kernel import codec, shapes
from camshaft.kernel.events import DiagnosticEvent, Event, ExtensionErrorEvent
from camshaft.kernel.hook_merges import Merged, Now
from camshaft.kernel.hooks import HOOKS, Hook
from camshaft.kernel.session_events import McpServersChangeEvent
from camshaft.kernel.tools import RegisteredTool, SourceInfo, ToolDefinition

ERRORS_KEPT_MAX: Final = 100
"""Last extension errors kept for inspection (ERR-1)."""

_NOBODY_CONNECTS: Final = "no loaded extension connects MCP servers; another extension may have replaced the built-in MCP support"
_CUT: Final = "the handler was ended by force, because an abort was requested and it did not stop"


@shapes.define(eq=False)
class ExtensionHost:
    """Dispatches hooks over the extensions of one generation."""

    stream: EventStream
    _now_ms: Callable[[], int]
    generation: Generation
    oversight: Oversight
    extensions: list[Extension] = attrs.field(factory=list)
    errors: deque[ExtensionErrorEvent] = attrs.field(factory=lambda: deque(maxlen=ERRORS_KEPT_MAX))
    load_errors: list[LoadError] = attrs.field(factory=list)
    load_warnings: list[LoadWarning] = attrs.field(factory=list)
    bus: EventBus = attrs.field(factory=EventBus)
    """Belongs to the conversation; the next generation gets the same one (API-27)."""
    flag_values: Mapping[str, bool | str] = attrs.field(factory=dict)
    """What the host was given for flags; they outlive a generation (EXT-49)."""
    registry: ProviderRegistry = attrs.field(factory=ProviderRegistry)
    """Who serves the models in this generation."""
    mcp: McpRegistrations = attrs.field(init=False)
    """The MCP servers that extensions of this generation registered."""
    loadouts: Loadouts = attrs.field(init=False)
    """What active tools change of what is declared."""
    tools: Mapping[str, RegisteredTool] = attrs.field(factory=dict)
    """The visible tools by name (TOOL-1), rebuilt at each registration."""
    _builtin: tuple[ToolDefinition, ...] = ()
    _allowed: Callable[[str], bool] = attrs.field(default=lambda _name: True)
    handlers: Mapping[str, tuple[tuple[Extension, Handler], ...]] = attrs.field(factory=dict)
    """Who handles each hook, in the order of EVT-1."""
    _contexts: dict[Extension, ExtensionContext] = attrs.field(factory=dict)
    """What handlers are given; a context has no state of its own, so one for each extension will do."""
    hearing: int = 0  # texts with their `input` handlers
    _runtime: Runtime | None = None
    _nursery: trio.Nursery | None = None
    _mailbox: deque[tuple[str, Any]] = attrs.field(factory=deque)
    _draining: trio.CancelScope | None = None
    """Of the task that empties the mailbox, while there is one."""
    _drained: trio.Event = attrs.field(factory=trio.Event)

    def __attrs_post_init__(self) -> None:
        self.mcp = McpRegistrations(self._mcp_changed)
        self.loadouts = Loadouts(lambda path, failure: self.report_failure(path, "prepare_loadout", failure))

    def bind(self, runtime: Runtime, nursery: trio.Nursery) -> None:
        """From here on actions work, and extensions may run tasks (EXT-23)."""
        self._runtime, self._nursery = runtime, nursery

    @property
    def runtime(self) -> Runtime | None:
        """The conversation, once bound."""
        return self._runtime

    def rebuild(self) -> None:
        """Takes in what extensions registered or removed; a dispatch under way keeps what it read (EVT-2)."""
        handlers: dict[str, list[tuple[Extension, Handler]]] = {}
        tools = {tool.name: RegisteredTool(definition=tool, source_info=BUILTIN) for tool in self._builtin if self._allowed(tool.name)}
        taken: set[str] = set()
        for extension in self.extensions:
            for handler in extension.handlers:
                handlers.setdefault(handler.hook, []).append((extension, handler))
            for tool in extension.tools.values():
                if tool.name not in taken and self._allowed(tool.name):
                    taken.add(tool.name)
                    tools[tool.name] = RegisteredTool(definition=tool, source_info=extension.source_info)
        for extension in self.oversight.quarantined:
            for handler in extension.handlers:
                if _is_gate(handler):
                    handlers.setdefault(handler.hook, []).append((extension, handler))
        self.handlers = {name: tuple(rows) for name, rows in handlers.items()}
        self.tools = tools

    def use_tools(self, builtin: Sequence[ToolDefinition], allowed: Callable[[str], bool]) -> None:
        """The host's built-in tools and which names may be registered at all (EXPO-30)."""
        self._builtin, self._allowed = tuple(builtin), allowed
        self.rebuild()

    # -- dispatch ------------------------------------------------------------------------

    async def give_way(self) -> None:
        """Lets what hosts started on hearing of an event go first, texts among it up to the end of their `input` handlers."""
        await give_way(lambda: self.hearing)

    def has(self, hook: str) -> bool:
        """Whether anybody handles `hook`; then its subject need not be built otherwise (EVT-9)."""
        return hook in self.handlers

    async def dispatch(self, hook: str, subject: Any, follow: Callable[[Any], None] | None = None) -> Any:
        """The subject after every handler, one after the other (EVT-1); `follow` is told what the next one is shown."""
        row = HOOKS[hook]
        for extension, handler in self.handlers.get(hook, ()):
            if self.generation.stale and not row.gate:
                break
            if follow is not None:
                follow(subject)
            event = row.show(subject)
            outcome = await self._call(extension, handler, event)
            if outcome is None:
                continue
            if self._runtime is not None and self._runtime.has_sends:
                await self._runtime.sends_begun()
            if row.result is None and isinstance(outcome, Value):
                if self.oversight.has_strikes:
                    self.oversight.made_good(extension, handler)
                continue
            merged = self._merged(row, extension, handler, (subject, event, outcome))
            subject = merged.subject
            for complaint in merged.complaints:
                self.report(extension.path, hook, complaint, handler.function)
            if merged.stop:
                break
        if self._runtime is not None and self._runtime.has_sends:
            await self._runtime.sends_begun()
        return subject

    async def announce(self, event: Event) -> None:
        """Tells handlers, then hosts, of an event that is the same on both channels (LOOP-45)."""
        if event.type in self.handlers:
            await self.dispatch(event.type, event)
        self.stream.publish(event)

    def notify(self, hook: str, subject: Any) -> None:
        """Dispatches later, in the order of notification, without anybody waiting (EVT-6)."""
        if not self.has(hook) or self._nursery is None or self.generation.stale:
            return
        self._mailbox.append((hook, subject))
        if self._draining is None:
            self._draining, self._drained = trio.CancelScope(), trio.Event()
            self._nursery.start_soon(self._drain, self._draining)

    async def drained(self) -> None:
        """Returns when every notification was handled; they are not lost at the end of a generation."""
        if self._draining is not None:
            await self._drained.wait()

    async def _drain(self, scope: trio.CancelScope) -> None:
        try:
            with scope, apart():
                while self._mailbox:
                    await self.dispatch(*self._mailbox.popleft())
        finally:
            self._draining = None
            self._drained.set()

    async def end(self) -> None:
        """Ends what still runs for the extensions of this generation: nothing is left waiting (EXT-48). Bounded."""
        self._mailbox.clear()
        if self._draining is not None:
            self._draining.cancel()
        await self.oversight.end()
        await self.drained()

    async def _call(self, extension: Extension, handler: Handler, event: Any) -> Value[Any] | Failure | Forced | None:
        """A sync handler is just called, an async one is overseen; None for one that was withdrawn meanwhile."""
        if self.oversight.quarantined:
            why = self.oversight.standing(extension).quarantined
            if why is not None:
                return Failure(ExtensionQuarantined(extension.path, why)) if _is_gate(handler) else None
        context = self._contexts.get(extension) or self.context(extension)
        watchdog = self.oversight.watchdog
        if watchdog is None:
            started = guard_now(unless_exit, handler.function, event, context)
        else:
            started, late = watchdog.call(
                f"{handler.hook} handler of {extension.path}", guard_now, unless_exit, handler.function, event, context
            )
            if late is not None:
                self.stream.publish(DiagnosticEvent(source="watchdog", message=late))
        if isinstance(started, Failure) or not is_awaitable(started.value):
            return started
        return await self.oversight.run(extension, handler.hook, started.value, self._run_signal)

    def _merged(self, row: Hook, extension: Extension, handler: Handler, handled: tuple[Any, Any, Any]) -> Merged:
        subject, event, outcome = handled
        assert self._runtime is not None
        now = Now(state=self._runtime.state, at_ms=self._now_ms(), extension=extension.path)
        closed = row.fail_closed if handler.fail_closed else None
        if isinstance(outcome, Failure):
            return self._failed(extension, handler, closed or row.on_raise, (subject, event, now, outcome))
        if isinstance(outcome, Forced):
            if not self.generation.stale:  # its end is no error of the extension (EXT-48)
                self.report(extension.path, row.name, outcome.text, handler.function)
            if outcome.is_strike and not self.generation.stale:
                self._strike(extension, handler, row.name)
            return (closed or row.on_cut or row.on_raise)(subject, event, outcome.text, now)
        result = outcome.value
        if result is not None and row.result is not None:
            read = guard_now(codec.python, row.result, result)
            if isinstance(read, Failure):
                text = f"{row.name} handler returned {type(result).__name__}: {read.text}"
                return self._failed(extension, handler, closed or row.on_raise, (subject, event, now, _said(text)))
            result = read.value
        merged = guard_now(row.merge, subject, event, result, now)  # It goes through what the handler left, whatever that is.
        if isinstance(merged, Failure):
            return self._failed(extension, handler, closed or row.on_raise, (subject, event, now, merged))
        if self.oversight.has_strikes:
            self.oversight.made_good(extension, handler)
        value: Merged = merged.value
        return value

    def _failed(self, extension: Extension, handler: Handler, on_raise: Any, failed: tuple[Any, Any, Now, Failure]) -> Merged:
        subject, event, now, failure = failed
        self.report_failure(extension.path, handler.hook, failure, at=handler.function)
        self._strike(extension, handler, handler.hook)
        merged = guard_now(on_raise, subject, event, failure.text, now)  # Edits that stay are gone through here, too.
        return Merged(subject=subject) if isinstance(merged, Failure) else merged.value

    def _strike(self, extension: Extension, what: object, event: str) -> None:
        """Counts a failure; one too many withdraws the extension, and says so twice: to its author and to the host."""
        why = self.oversight.strike(extension, what)
        if why is not None:
            self.extensions.remove(extension)
            self.rebuild()
            text = f"the extension is quarantined after {why}: its handlers, tools and commands are withdrawn until it is loaded anew"
            self.report(extension.path, event, text)
            self.stream.publish(DiagnosticEvent(source="extensions", message=f"{extension.path}: {text}"))

    @property
    def _run_signal(self) -> AbortSignal | None:
        return self._runtime.run_signal if self._runtime is not None else None

    # -- standing and tasks --------------------------------------------------------------

    def standing(self, extension: Extension) -> Standing:
        """Whether an extension may act."""
        return self.oversight.standing(extension)

    def standing_at(self, path: str) -> Checked:
        """Whether the extension at `path` may act; of the host's own tools, the generation."""
        found = self._at(path)
        return self.generation if found is None else self.standing(found)

    def start_task(self, path: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """Runs a task of the extension at `path` until its generation ends (EXT-23). Raises TooManyTasks."""
        extension = self._at(path)
        if extension is not None:
            self.oversight.start_task(extension, Task("task", function, function, arguments, self._task_failed))

    def _at(self, path: str) -> Extension | None:
        return next((each for each in (*self.extensions, *self.oversight.quarantined) if each.path == path), None)

    def _task_failed(self, extension: Extension, task: Task, failure: Failure) -> None:
        self.report_failure(extension.path, task.event, failure)
        self._strike(extension, task.what, task.event)

    def context(self, extension: Extension) -> ExtensionContext:
        """The context for handlers of an extension."""
        context = ExtensionContext(self._runtime, self.standing(extension), extension.path)  # type: ignore[arg-type]  # handlers run only once bound
        self._contexts[extension] = context
        return context

    def report(self, path: str, event: str, error: str, at: object = None) -> None:
        """Tells the host that an extension, or its function `at`, did something wrong without raising (ERR-1)."""
        self._report(ExtensionErrorEvent(extension_path=path, event=event, error=error, place=defined_at(at)))

    def report_failure(self, path: str, event: str, failure: Failure, file: str | None = None, at: object = None) -> None:
        """Tells the host that an extension raised, and where in `file` (default: `path`), else where `at` is defined (ERR-1)."""
        self._report(
            ExtensionErrorEvent(
                extension_path=path,
                event=event,
                error=failure.text,
                error_type=type(failure.error).__name__,
                place=place_of(failure.error, file or path) or defined_at(at),
                stack=failure.stack,
            )
        )

    def _report(self, made: ExtensionErrorEvent) -> None:
        """Tells, and keeps the last ones."""
        self.errors.append(made)
        self.stream.publish(made)

    # -- commands and bus ----------------------------------------------------------------

    def commands(self) -> Named:
        """Commands by invocation name; a name of several extensions gets numbers for all of them (CMD-5)."""
        return named_commands(self.extensions)

    async def run_command(self, name: str, arguments: str, wait_idle: Callable[[], Any]) -> bool:
        """Runs a command; False if there is none of that name. One that raises was still handled (LOOP-4)."""
        found = self.commands().get(name)
        if found is None:
            return False
        assert self._runtime is not None
        context = CommandContext(self._runtime, self.standing(found[0]), found[0].path, wait_idle)
        outcome = await guard(unless_exit, found[1].handler, arguments, context)
        if isinstance(outcome, Failure):
            self.report_failure(f"command:{name}", "command", outcome, found[0].path)
        if self._runtime is not None and self._runtime.has_sends:
            await self._runtime.sends_begun()
        return True

    async def complete_command(self, name: str, prefix: str) -> tuple[Completion, ...]:
        """What the command's own function proposes; a failure is reported, and nothing is proposed (CMD-8)."""
        found = self.commands().get(name)
        if found is None or found[1].complete is None:
            return ()
        outcome = await guard(found[1].complete, prefix)
        if not isinstance(outcome, Failure | Cut):
            outcome = guard_now(read_completions, outcome.value)
        if isinstance(outcome, Failure):
            self.report_failure(f"command:{name}", "command", outcome, found[0].path)
        return outcome.value if isinstance(outcome, Value) else ()

    def _mcp_changed(self) -> None:
        """Tells who connects MCP servers of a change; what was registered while loading is read in `session_start` (MCP-42)."""
        if self._runtime is not None:
            self.notify("mcp_servers_change", McpServersChangeEvent(servers=self.mcp.servers))
            self.report_unconnected_mcp()

    def report_unconnected_mcp(self) -> None:
        """Reports each registered MCP server once, if nobody handles the event by which they are connected (ERR-9)."""
        if self.has("mcp_servers_change"):
            return
        for server in self.mcp.unconnected():
            text = f'MCP server "{server.name}" is registered, but {_NOBODY_CONNECTS}'
            self.report(server.extension_path, "register_mcp_server", text)

    def listen(self, extension: Extension, channel: str, function: Callable[[Any], Any]) -> Callable[[], None]:
        """Subscribes a function of `extension` to the bus; returns its unsubscribe (API-27)."""

        def tell(value: Any) -> None:
            self._tell(extension, channel, function, value)

        return self.bus.add(Subscription(channel, tell, lambda: not extension.failed and self.standing(extension).is_good))

    def _tell(self, extension: Extension, channel: str, function: Callable[..., Any], value: Any) -> None:
        outcome = guard_now(function, value)
        if isinstance(outcome, Failure):
            self.report_failure(extension.path, f"events:{channel}", outcome)
            self._strike(extension, function, f"events:{channel}")
        elif is_awaitable(outcome.value) and self._nursery is not None:
            self.oversight.start_task(extension, Task(f"events:{channel}", function, _itself, (outcome.value,), self._task_failed))


BUILTIN: Final = SourceInfo(path="builtin", source="builtin", scope="user")
"""Where the host's own tools come from."""


def _is_gate(handler: Handler) -> bool:
    """Whether a failure of it closes something."""
    return handler.fail_closed or HOOKS[handler.hook].gate


async def _itself(value: Any) -> Any:
    return await value


def _said(text: str) -> Failure:
    return Failure(TypeError(text))
