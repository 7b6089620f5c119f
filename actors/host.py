"""The public face for hosts and frontends: `open_kernel`, and what a conversation is opened with.

    async with open_kernel() as kernel:
        seat = await kernel.open(OpenOptions(cwd=..., providers=(...,)))
        seat.subscribe(print)
        await seat.prompt("hello")

All tasks live in nurseries that `open_kernel` owns. Leaving its block aborts what runs and
closes every conversation, so that the aborted turn is persisted and shutdown hooks run; the
same when the scope around is cancelled (SDK-23). Nothing process-wide is touched: no signal
handlers, no chdir, no logging configuration, no environment writes.
"""

import math
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import attrs
import trio

from camshaft.actors.actor import Failure, Limbo, guard
from camshaft.actors.errors import (
    CamshaftError,
    CommandRefused,
    InvalidOptions,
    KernelMisuse,
    MissingWorkingDirectory,
    NotASession,
    SessionExists,
    SessionGone,
    SessionLocked,
    SessionSealed,
    StorageError,
)
from camshaft.actors.event_stream import EventStream, Follower, FollowerStalled, Listener
from camshaft.actors.extension_api import ExtensionAPI, ExtensionMisuse
from camshaft.actors.extension_host import ExtensionHost
from camshaft.actors.extension_loading import Loader
from camshaft.actors.field_docs import show_fields
from camshaft.actors.flights import Receipt
from camshaft.actors.generation import Generation
from camshaft.actors.kernel_block import KernelBlock
from camshaft.actors.loading import ExtensionSource, InlineExtension, LoadError
from camshaft.actors.logs.port import Loaded, Log
from camshaft.actors.model_registry import ModelRegistry, ScopedModel
from camshaft.actors.opening import MemorySession, NewSession, OpenSession, Surroundings, open_log, session_folder
from camshaft.actors.options import Limits, OpenOptions, require_folder, require_valid
from camshaft.actors.prompts import BUSY_TEXT, PromptRefused
from camshaft.actors.providers import Provider, find_model, provider_of
from camshaft.actors.registrations import Extension
from camshaft.actors.rest import Rest
from camshaft.actors.runtime import CommandInfo, ToolInfo
from camshaft.actors.seat import Cleared, Seat, SeatClosed, UnknownModel
from camshaft.actors.seat_parts import NO_MODEL_TEXT, SeatParts
from camshaft.actors.session import SessionActor, loaded_state
from camshaft.actors.session_writer import SessionWriter, open_writer
from camshaft.actors.world import World, real_world
from camshaft.kernel.commands import RecordSelection, SelectModel, SelectTools
from camshaft.kernel.errors import Rejection
from camshaft.kernel.events import (
    AgentEnd,
    AgentSettled,
    AgentStart,
    AutoRetryEnd,
    AutoRetryStart,
    CompactionEnd,
    CompactionStart,
    DiagnosticEvent,
    EntryAppended,
    Event,
    ExtensionErrorEvent,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    QueueUpdate,
    SessionInfoChanged,
    ThinkingLevelChanged,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from camshaft.kernel.models import Model, clamp_level
from camshaft.kernel.prompt import PromptOptions
from camshaft.kernel.recorded import recorded_level, recorded_tools
from camshaft.kernel.records import RunRecord
from camshaft.kernel.settings import InvalidSetting, Settings, read_settings
from camshaft.kernel.state import SessionState
from camshaft.kernel.tools import allows, selected_at_start, with_active

__all__ = [
    "AgentEnd",
    "AgentSettled",
    "AgentStart",
    "AutoRetryEnd",
    "AutoRetryStart",
    "BUSY_TEXT",
    "CamshaftError",
    "Cleared",
    "CommandInfo",
    "CommandRefused",
    "CompactionEnd",
    "CompactionStart",
    "DiagnosticEvent",
    "EntryAppended",
    "Event",
    "ExtensionErrorEvent",
    "ExtensionMisuse",
    "ExtensionSource",
    "Follower",
    "FollowerStalled",
    "InlineExtension",
    "InvalidOptions",
    "InvalidSetting",
    "Kernel",
    "KernelBlock",
    "KernelMisuse",
    "Limits",
    "Listener",
    "LoadError",
    "MemorySession",
    "MessageEnd",
    "MessageStart",
    "MessageUpdate",
    "MissingWorkingDirectory",
    "ModelRegistry",
    "NO_MODEL_TEXT",
    "NewSession",
    "NotASession",
    "OpenOptions",
    "OpenSession",
    "PromptRefused",
    "Provider",
    "QueueUpdate",
    "Receipt",
    "ScopedModel",
    "Seat",
    "SeatClosed",
    "SessionExists",
    "SessionGone",
    "SessionInfoChanged",
    "SessionLocked",
    "SessionSealed",
    "SessionWriter",
    "Settings",
    "StorageError",
    "ThinkingLevelChanged",
    "ToolExecutionEnd",
    "ToolExecutionStart",
    "ToolExecutionUpdate",
    "ToolInfo",
    "TurnEnd",
    "TurnStart",
    "UnknownModel",
    "World",
    "open_kernel",
    "open_writer",
    "read_settings",
    "real_world",
    "session_folder",
]

CLOSE_CONNECTIONS_S: Final = 1.0
"""Time for closing idle connections: a peer that does not answer must not keep a program from ending."""
DEFAULT_LEVEL: Final = "medium"
"""Thinking level of a new session when nothing else is said (MOD-97)."""


@attrs.define(eq=False)
class Kernel:
    """Conversations and what they share."""

    world: World
    limits: Limits
    _nursery: trio.Nursery
    _limbo: Limbo
    _seats: list[Seat] = attrs.field(factory=list)

    @property
    def abandoned(self) -> tuple[str, ...]:
        """Names of foreign code that did not end when it was cancelled and still runs."""
        return tuple(self._limbo.abandoned)

    async def open(self, options: OpenOptions) -> Seat:
        """A conversation, its extensions loaded and told of it (EXT-40).

        Raises InvalidOptions, NotASession, SessionLocked, MissingWorkingDirectory and other
        StorageErrors; nothing has changed then. Extensions that fail to load are in `seat.load_errors`.
        """
        require_valid(options)
        around = Surroundings(world=self.world, cwd=options.cwd, agent_dir=options.agent_dir, durability=options.durability)
        log, loaded = open_log(options.session, around)
        opened = False
        try:
            seat = await self._seat(options, log, loaded)
            opened = True
        finally:
            if not opened:
                log.close()
        self._seats.append(seat)
        await seat.start()
        return seat

    async def close(self, at_once: bool = False) -> None:
        """Closes every conversation, `at_once` without the grace. Raises the first fault of a log when all are closed."""
        failed: list[Failure] = []
        while self._seats:
            outcome = await guard(self._seats.pop().close, at_once)
            failed += [outcome] if isinstance(outcome, Failure) else []
        if failed:
            raise failed[0].error

    async def _seat(self, options: OpenOptions, log: Log, loaded: Loaded) -> Seat:
        state = loaded_state(loaded, options.settings)
        cwd = _effective_cwd(options, state, log)
        stream = EventStream()
        for listener in options.listeners:
            stream.subscribe(listener)
        session = SessionActor(log, self.world.clock, self.world.ids, stream, state)
        host = ExtensionHost(stream, self.world.clock.now_ms, Generation(1))
        excluded, choice = options.exclude_tools, () if options.no_tools == "all" and options.tools is None else options.tools
        host.use_tools(options.builtin_tools, lambda name: allows(options.tools, excluded, name))

        def api_for(extension: Extension) -> ExtensionAPI:
            return ExtensionAPI(extension, host, host.generation, cwd)

        await Loader(host, cwd, api_for).load(options.extensions)
        seat = Seat(
            SeatParts(
                world=self.world,
                session=session,
                host=host,
                stream=stream,
                limbo=self._limbo,
                nursery=self._nursery,
                rest=Rest(session, stream, self._nursery),
                providers=options.providers,
                base_prompt=_base_prompt(options, cwd),
                mode=options.mode,
                abort_grace_s=self.limits.abort_grace_s,
                continuations_max=self.limits.continuations_max,
                found=_found(loaded),
                scoped_models=tuple(options.scoped_models),
                is_project_trusted=options.project_trusted,
                on_shutdown=options.on_shutdown,
            )
        )
        host.bind(seat, self._nursery)
        _select_at_start(options, session, host, choice)
        return seat


def open_kernel(*, world: World | None = None, limits: Limits | None = None) -> KernelBlock[Kernel]:
    """A kernel for the length of an `async with` block; leaving it closes every conversation in order.

    When the scope around is cancelled, what runs is ended at once instead of after the grace (LOOP-71).
    What the block raises comes out as it is, in no group. A `world` that is handed in stays its owner's:
    its connections are not closed here. Entering raises KernelMisuse outside Trio.
    """
    return KernelBlock(_kernel_for_block(world, limits))


@asynccontextmanager
async def _kernel_for_block(world: World | None, limits: Limits | None) -> AsyncIterator[Kernel]:
    ours = real_world() if world is None else world
    crash: BaseExceptionGroup[BaseException] | None = None
    try:
        async with trio.open_nursery() as around:
            nursery: trio.Nursery = await around.start(_hold_nursery)
            kernel = Kernel(ours, limits or Limits(), nursery, Limbo(nursery))
            try:
                yield kernel
            finally:
                is_cancelled = trio.current_effective_deadline() == -math.inf
                with trio.CancelScope(shield=True):
                    closed = await guard(kernel.close, is_cancelled)
                    if world is None:
                        with trio.move_on_after(CLOSE_CONNECTIONS_S):
                            await ours.http.aclose()
                nursery.cancel_scope.cancel()
                if isinstance(closed, Failure):
                    raise closed.error
    except BaseExceptionGroup as group:
        crash = group
    if crash is not None:
        raise crash.exceptions[0] if len(crash.exceptions) == 1 else crash


async def _hold_nursery(task_status: trio.TaskStatus[trio.Nursery]) -> None:
    """The nursery of all tasks, shielded: a cancel around reaches the block of `open_kernel`, whose end closes in order."""
    with trio.CancelScope(shield=True):
        async with trio.open_nursery() as nursery:
            task_status.started(nursery)
            await trio.sleep_forever()


def _effective_cwd(options: OpenOptions, state: SessionState, log: Log) -> str:
    """Where the conversation runs: an opened session's own directory, unless overridden (SES-17, SES-18)."""
    here = os.path.abspath(options.cwd)
    stored = state.header.cwd
    if options.override_cwd or not isinstance(options.session, OpenSession) or not stored:
        require_folder(here)
        return here
    if not os.path.isdir(stored):
        raise MissingWorkingDirectory(stored, log.path or "", here)
    return stored


def _base_prompt(options: OpenOptions, cwd: str) -> PromptOptions:
    return PromptOptions(
        cwd=cwd,
        custom_prompt=options.system_prompt or None,
        append_system_prompt="\n\n".join(options.append_system_prompt) or None,
        context_files=options.context_files,
    )


def _select_at_start(options: OpenOptions, session: SessionActor, host: ExtensionHost, choice: Sequence[str] | None) -> None:
    """Model, level and tools of the conversation (MOD-97, EXPO-30); a new session records the first two (SES-23)."""
    state = session.state
    is_new = state.projection.message_count == 0
    model = _model_at_start(options, state, is_new)
    level = _level_at_start(options, state, is_new)
    effective = "off" if model is None else clamp_level(model, level)
    if model is not None:
        session.post(SelectModel(model=model, thinking_level=effective, record=False))
    if is_new and state.tree.length == 0:
        reference = None if model is None else (model.provider, model.id)
        session.post(RecordSelection(model=reference, thinking_level=effective))
    elif not is_new and recorded_level(state) is None:
        session.post(RecordSelection(thinking_level=effective))
    active, awaited = _tools_at_start(options, state, host, choice)
    session.post(SelectTools(active_tools=active, awaited=awaited))


def _model_at_start(options: OpenOptions, state: SessionState, is_new: bool) -> Model | None:
    available = [model for provider in options.providers if provider.configured() for model in provider.models]
    if options.model is not None:
        found = find_model(options.providers, options.model)
        if found is None:
            known = ", ".join([each.reference for provider in options.providers for each in provider.models]) or "none"
            raise InvalidOptions(f"no model {options.model!r}; the models are: {known}")
        return found
    recorded = None if is_new or state.projection.model is None else "/".join(state.projection.model)
    settings = options.settings
    default = f"{settings.default_provider}/{settings.default_model}" if settings.default_provider and settings.default_model else None
    for reference in (recorded, default):
        found = None if reference is None else find_model(options.providers, reference)
        provider = None if found is None else provider_of(options.providers, found)
        if found is not None and provider is not None and provider.configured():
            return found
    return available[0] if available else None


def _level_at_start(options: OpenOptions, state: SessionState, is_new: bool) -> str:
    if options.thinking_level is not None:
        return options.thinking_level
    recorded = None if is_new else recorded_level(state)
    if recorded is not None:
        return recorded
    return options.settings.default_thinking_level or DEFAULT_LEVEL


_StartTools = tuple[tuple[str, ...], tuple[str, ...]]
"""The active set, and what the branch has active but nobody registered yet."""


def _tools_at_start(options: OpenOptions, state: SessionState, host: ExtensionHost, choice: Sequence[str] | None) -> _StartTools:
    """The chosen tools; without a choice a resumed session's own, in the order of EXPO-7."""
    defaults: Sequence[str] = () if options.no_tools == "builtin" else ("read", "bash", "edit", "write")
    wanted = choice if choice is not None else options.settings.default_tools
    if choice is None and wanted is not None and all(name[:1] not in "+-" for name in wanted):
        defaults, wanted = wanted, None
    active = selected_at_start(wanted, options.exclude_tools, host.tools, defaults=defaults)
    if isinstance(active, Rejection):
        raise InvalidOptions(active.why)
    recorded = None if options.tools is not None else recorded_tools(state)
    if recorded is None:
        return active, ()
    awaited = tuple([name for name in recorded.declared if name not in host.tools])
    kept = [name for name in active if name in recorded.declared or name not in recorded.mentioned]
    return with_active(kept, [*kept, *[name for name in recorded.declared if name not in kept]], host.tools), awaited


def _found(loaded: Loaded) -> tuple[DiagnosticEvent, ...]:
    """What opening noticed: damaged lines, an unfinished run. It acts on nothing."""
    found = [DiagnosticEvent(source="session", message=str(each)) for each in loaded.diagnostics]
    unfinished = [record for record in loaded.records if isinstance(record, RunRecord)]
    if unfinished:
        text = f"the last run was cut off (run {unfinished[-1].run_id}); nothing was resumed: go on with a new prompt"
        found.append(DiagnosticEvent(source="session", message=text))
    return tuple(found)


show_fields(__all__, globals())
