"""The public face for hosts and frontends: `open_kernel`, and what a conversation is opened with.

    async with open_kernel() as kernel:
        seat = await kernel.open(OpenOptions(cwd=..., providers=(...,)))
        seat.subscribe(print)
        await seat.prompt("hello")

All tasks live in nurseries that `open_kernel` owns. Leaving its block aborts what runs and
closes every conversation, so that the aborted turn is persisted and shutdown hooks run; the
same when the scope around is cancelled (SDK-23). Nothing process-wide is touched: no signal
handlers, no chdir, no logging configuration, no environment writes.

Longer than 400 lines because most of it is the list of names that hosts may rely on.
"""

import math
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Final

import attrs
import trio

from camshaft.actors.actor import Cut, Failure, Limbo, Value, guard
from camshaft.actors.assembly import assembled
from camshaft.actors.bus import EventBus
from camshaft.actors.children import Child, ChildOptions, ChildOutcome
from camshaft.actors.choosing import Cycled, UnknownModel
from camshaft.actors.config_provider import BuildProvider, BuildRequest, ProviderConfig
from camshaft.actors.deferred import DeferredUnsupported
from camshaft.actors.desk import Desk
from camshaft.actors.discovery import Invocation, Place, discover_extensions, participants
from camshaft.actors.errors import (
    CamshaftError,
    CommandRefused,
    InvalidOptions,
    KernelClosed,
    KernelMisuse,
    MissingWorkingDirectory,
    NotASession,
    SessionExists,
    SessionFileMissing,
    SessionGone,
    SessionLocked,
    SessionSealed,
    StorageError,
)
from camshaft.actors.event_stream import STALL_S, EventStream, Follower, FollowerStalled, Listener
from camshaft.actors.extension_host import ExtensionHost
from camshaft.actors.extension_modules import ModuleCache
from camshaft.actors.field_docs import show_fields
from camshaft.actors.flights import Receipt
from camshaft.actors.generation import Generation
from camshaft.actors.kernel_block import KernelBlock
from camshaft.actors.loading import (
    BuiltinExtension,
    ExtensionFile,
    ExtensionSource,
    InlineExtension,
    InstalledExtension,
    LoadError,
    LoadWarning,
    Source,
)
from camshaft.actors.locked_file import HeldFile, held
from camshaft.actors.login_interaction import LoginInteraction, LoginNotice, LoginOption, LoginPrompt
from camshaft.actors.logs.port import Loaded, Log
from camshaft.actors.misuse import ExtensionMisuse
from camshaft.actors.model_registry import ModelRegistry
from camshaft.actors.opening import MemorySession, NewSession, OpenSession, Surroundings, open_log, session_folder
from camshaft.actors.options import Limits, OpenOptions, require_valid
from camshaft.actors.oversight import Oversight
from camshaft.actors.preloading import Preloaded, Say, loader_for
from camshaft.actors.prompts import BUSY_TEXT, Position, PositionMoved, Preflight, PromptRefused
from camshaft.actors.provider_auth import AuthStatus, OAuthConfig, OAuthPort, ProviderAuth, ProviderFailed, RequestAuth
from camshaft.actors.provider_refresh import RefreshContext, RefreshStore
from camshaft.actors.providers import DeferringProvider, Provider, catalogue_of
from camshaft.actors.registrations import Completion
from camshaft.actors.registry_asks import ClassifierResult, ImagesResult, ModelStream, OtherRequest
from camshaft.actors.resources.context_files import FoundContext, context_files
from camshaft.actors.resources.discovery import ResourcePlaces, discover, with_discovered
from camshaft.actors.resources.found import ResourceDiagnostic, Resources
from camshaft.actors.resources.system_files import GivenTexts, SystemTexts, system_texts
from camshaft.actors.runtime import CommandInfo, ToolInfo
from camshaft.actors.scoped import ScopedModel
from camshaft.actors.seat import Cleared, Seat, SeatClosed
from camshaft.actors.seat_parts import NO_MODEL_TEXT, Ground, SeatParts
from camshaft.actors.selection import select_at_start
from camshaft.actors.session_finding import (
    FoundSession,
    SessionPlaces,
    is_session_path,
    most_recent_session,
    session_head,
    session_named,
    session_path,
    session_places,
    session_with_id,
)
from camshaft.actors.session_list import list_all_sessions, list_sessions
from camshaft.actors.session_statistics import Statistics
from camshaft.actors.session_transfer import fork_from, import_session
from camshaft.actors.session_view import SessionView
from camshaft.actors.session_writer import SessionWriter, open_writer
from camshaft.actors.settings_files import (
    FileStorage,
    MemoryStorage,
    ProjectNotTrusted,
    SettingsError,
    SettingsFiles,
    SettingsStorage,
    settings_files,
    settings_in_memory,
)
from camshaft.actors.surface import (
    BoundShortcuts,
    ExtensionSurface,
    MarkdownContext,
    Problem,
    Rendered,
    RenderView,
    ToolRenderers,
    Transformed,
    bound_shortcuts,
    render_entry,
    render_message,
    tool_renderers,
    transform_markdown,
)
from camshaft.actors.tree_moves import CompactionFailed, NavigationFailed
from camshaft.actors.trust import (
    DefaultTrust,
    InvalidTrustStore,
    TrustAnswer,
    TrustDecision,
    TrustResolver,
    TrustStore,
    needs_trust,
    resolve_trust,
    trust_store,
)
from camshaft.actors.ui_port import PlainTheme, ScreenPort, ThemeChange, UiPort, WatchedUi
from camshaft.actors.user_bash import UserBashFailed
from camshaft.actors.watchdog import Watchdog
from camshaft.actors.watching import Cursor, Gap, Moment, OpenCall, QueuedTexts, Snapshot, Waiting, Watch
from camshaft.actors.world import World, real_world
from camshaft.kernel import shapes
from camshaft.kernel.branch_summaries import NavigationResult
from camshaft.kernel.cache_economics import WarmingForecast
from camshaft.kernel.cache_warming import WarmingStatus
from camshaft.kernel.catalogue import Catalogue, ModelChoice, Scope, ScopeWarning
from camshaft.kernel.codec import wire
from camshaft.kernel.compaction import CompactionResult
from camshaft.kernel.dialogs import Dialog, UiState, Widget
from camshaft.kernel.errors import CodecError, MalformedJson, Rejection
from camshaft.kernel.events import (
    AgentEnd,
    AgentSettled,
    AgentStart,
    AutoRetryEnd,
    AutoRetryStart,
    BashExecutionUpdate,
    CompactionEnd,
    CompactionStart,
    DiagnosticEvent,
    DialogClosed,
    DialogOpened,
    EntryAppended,
    Event,
    ExtensionErrorEvent,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    Notified,
    QueueUpdate,
    SessionInfoChanged,
    SessionReplaced,
    SummarizationRetryAttemptStart,
    SummarizationRetryFinished,
    SummarizationRetryScheduled,
    ThinkingLevelChanged,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
    UiChanged,
    UiReset,
)
from camshaft.kernel.models import supported_levels
from camshaft.kernel.session_events import UserBashOutput
from camshaft.kernel.session_summary import SessionHead, SessionItem
from camshaft.kernel.settings import (
    BranchSummarySettings,
    CompactionSettings,
    ImageSettings,
    InvalidSetting,
    RetrySettings,
    Settings,
    read_settings,
)
from camshaft.kernel.settings_merge import ResourceLists, effective_settings
from camshaft.kernel.skills import Skill
from camshaft.kernel.templates import PromptTemplate

__all__ = [
    "Cursor",
    "Position",
    "PositionMoved",
    "Gap",
    "Moment",
    "OpenCall",
    "QueuedTexts",
    "Snapshot",
    "Waiting",
    "Watch",
    "BashExecutionUpdate",
    "Catalogue",
    "Child",
    "ChildOptions",
    "ChildOutcome",
    "AgentEnd",
    "AgentSettled",
    "AgentStart",
    "AuthStatus",
    "AutoRetryEnd",
    "AutoRetryStart",
    "BUSY_TEXT",
    "BoundShortcuts",
    "BranchSummarySettings",
    "BuildProvider",
    "BuildRequest",
    "BuiltinExtension",
    "CamshaftError",
    "Cleared",
    "CodecError",
    "CommandInfo",
    "CommandRefused",
    "CompactionEnd",
    "CompactionFailed",
    "CompactionResult",
    "CompactionSettings",
    "CompactionStart",
    "Completion",
    "DefaultTrust",
    "Cut",
    "Cycled",
    "DeferredUnsupported",
    "DeferringProvider",
    "DiagnosticEvent",
    "Dialog",
    "DialogClosed",
    "DialogOpened",
    "EntryAppended",
    "Event",
    "ExtensionErrorEvent",
    "ExtensionFile",
    "ExtensionMisuse",
    "ExtensionSource",
    "ExtensionSurface",
    "Failure",
    "FileStorage",
    "Follower",
    "FollowerStalled",
    "FoundContext",
    "FoundSession",
    "GivenTexts",
    "HeldFile",
    "ImageSettings",
    "InlineExtension",
    "InstalledExtension",
    "InvalidOptions",
    "InvalidSetting",
    "InvalidTrustStore",
    "Invocation",
    "Kernel",
    "KernelBlock",
    "KernelClosed",
    "KernelMisuse",
    "Limits",
    "Listener",
    "LoadError",
    "LoadWarning",
    "MalformedJson",
    "MarkdownContext",
    "MemorySession",
    "MemoryStorage",
    "MessageEnd",
    "MessageStart",
    "MessageUpdate",
    "MissingWorkingDirectory",
    "ModelChoice",
    "ModelRegistry",
    "NO_MODEL_TEXT",
    "NavigationFailed",
    "NavigationResult",
    "NewSession",
    "NotASession",
    "Notified",
    "OAuthConfig",
    "OAuthPort",
    "OpenOptions",
    "OpenSession",
    "Place",
    "PlainTheme",
    "Preflight",
    "Preloaded",
    "Problem",
    "ProjectNotTrusted",
    "PromptRefused",
    "PromptTemplate",
    "Provider",
    "ProviderConfig",
    "QueueUpdate",
    "ProviderFailed",
    "Receipt",
    "RefreshContext",
    "Rejection",
    "RequestAuth",
    "RenderView",
    "Rendered",
    "ResourceDiagnostic",
    "ResourceLists",
    "ResourcePlaces",
    "Resources",
    "RetrySettings",
    "Scope",
    "ScopeWarning",
    "ScopedModel",
    "ScreenPort",
    "Seat",
    "SeatClosed",
    "STALL_S",
    "SessionExists",
    "SessionFileMissing",
    "SessionGone",
    "SessionHead",
    "SessionInfoChanged",
    "SessionItem",
    "SessionLocked",
    "SessionPlaces",
    "SessionReplaced",
    "SessionView",
    "SessionSealed",
    "SessionWriter",
    "Settings",
    "SettingsError",
    "SettingsFiles",
    "SettingsStorage",
    "Skill",
    "Source",
    "Statistics",
    "StorageError",
    "SummarizationRetryAttemptStart",
    "SummarizationRetryFinished",
    "SummarizationRetryScheduled",
    "Surroundings",
    "SystemTexts",
    "ThemeChange",
    "ThinkingLevelChanged",
    "ToolExecutionEnd",
    "ToolExecutionStart",
    "ToolExecutionUpdate",
    "ToolInfo",
    "ToolRenderers",
    "Transformed",
    "TrustAnswer",
    "TrustDecision",
    "TrustResolver",
    "TrustStore",
    "TurnEnd",
    "TurnStart",
    "UiChanged",
    "UiPort",
    "UiReset",
    "UiState",
    "UnknownModel",
    "UserBashFailed",
    "UserBashOutput",
    "WarmingForecast",
    "WarmingStatus",
    "Value",
    "WatchedUi",
    "Widget",
    "World",
    "bound_shortcuts",
    "catalogue_of",
    "held",
    "context_files",
    "discover",
    "discover_extensions",
    "effective_settings",
    "fork_from",
    "guard",
    "import_session",
    "is_session_path",
    "list_all_sessions",
    "list_sessions",
    "most_recent_session",
    "needs_trust",
    "open_kernel",
    "open_writer",
    "participants",
    "read_settings",
    "real_world",
    "render_entry",
    "render_message",
    "resolve_trust",
    "session_folder",
    "session_head",
    "session_named",
    "session_path",
    "session_places",
    "session_with_id",
    "settings_files",
    "settings_in_memory",
    "supported_levels",
    "system_texts",
    "tool_renderers",
    "transform_markdown",
    "trust_store",
    "wire",
    "with_discovered",
    "ModelStream",
    "ImagesResult",
    "ClassifierResult",
    "OtherRequest",
    "ProviderAuth",
    "RefreshStore",
    "LoginInteraction",
    "LoginNotice",
    "LoginOption",
    "LoginPrompt",
]

CLOSE_CONNECTIONS_S: Final = 1.0
"""Time for closing idle connections: a peer that does not answer must not keep a program from ending."""
DEFAULT_LEVEL: Final = "medium"
"""Thinking level of a new session when nothing else is said (MOD-97)."""


@shapes.define(eq=False)
class Kernel:
    """Conversations and what they share."""

    world: World
    limits: Limits
    _nursery: trio.Nursery
    _limbo: Limbo
    _watchdog: Watchdog | None = None
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
        return await self._open(options, None)

    async def _open(self, options: OpenOptions, parent: SeatParts | None) -> Seat:
        require_valid(options)
        around = Surroundings(world=self.world, cwd=options.cwd, agent_dir=options.agent_dir, durability=options.durability)
        log, loaded = open_log(options.session, around)
        opened = False
        try:
            seat = await self._seat(options, log, loaded, parent)
            opened = True
        finally:
            if not opened:
                log.close()
        self._seats = [*[each for each in self._seats if not each.is_closed], seat]
        started = False
        try:
            await seat.start()
            started = True
        finally:
            if not started:  # nobody has it
                with trio.CancelScope(shield=True):
                    await guard(seat.close, True)
        return seat

    def preload(self, cwd: str, *, mode: str = "embedded", ui: UiPort | WatchedUi | None = None, say: Say | None = None) -> Preloaded:
        """For loading extensions before a conversation in `cwd` is opened; mode and UI are what it will have.

        `say` is told what there is no other place for: notifications of extensions, and failures of `project_trust` handlers.
        """
        desk = Desk(EventStream(), self._nursery, self.world.ids.session_id, ui, mode)
        begun, cwd = Generation(1), os.path.abspath(cwd)
        oversight = Oversight(self._limbo, self.limits, self._nursery, begun, self._watchdog)
        host = ExtensionHost(EventStream(), self.world.clock.now_ms, begun, oversight)
        return Preloaded(cwd, host, loader_for(host, cwd, self._limbo, ModuleCache(), self.world), desk, say or _silence)

    async def close(self, at_once: bool = False) -> None:
        """Closes every conversation, `at_once` without the grace. Raises the first fault of a log when all are closed."""
        failed: list[Failure] = []
        while self._seats:
            outcome = await guard(self._seats.pop().close, at_once)
            failed += [outcome] if isinstance(outcome, Failure) else []
        if failed:
            raise failed[0].error

    async def _seat(self, options: OpenOptions, log: Log, loaded: Loaded, parent: SeatParts | None) -> Seat:
        stream = EventStream()
        for listener in options.listeners:
            stream.subscribe(listener)
        for follower in options.followers:
            stream.attach(follower)
        desk = Desk(stream, self._nursery, self.world.ids.session_id, options.ui, options.mode) if parent is None else parent.ground.desk
        ground = Ground(
            world=self.world,
            limits=self.limits,
            limbo=self._limbo,
            nursery=self._nursery,
            stream=stream,
            desk=desk,
            bus=EventBus(),
            modules=ModuleCache(),
            open_child=self._open,
            watchdog=self._watchdog,
            depth=0 if parent is None else parent.ground.depth + 1,
        )
        parts: SeatParts | None = None
        opened = False
        try:
            parts = await assembled(ground, options, log, loaded)
            seat = Seat(parts)
            select_at_start(parts)
            opened = True
        finally:
            if not opened:
                ground.modules.clear()
            if not opened and parts is not None:
                parts.host.generation.stale = True
        return seat


def _silence(_line: str) -> None:
    """Nobody is told."""


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
    bounds = limits or Limits()
    watchdog = None if bounds.watchdog_s is None else Watchdog(bounds.watchdog_s)
    crash: BaseExceptionGroup[BaseException] | None = None
    try:
        async with trio.open_nursery() as around:
            nursery: trio.Nursery = await around.start(_hold_nursery)
            kernel = Kernel(ours, bounds, nursery, Limbo(nursery), watchdog)
            try:
                with nullcontext() if watchdog is None else watchdog.running():
                    yield kernel
            finally:
                is_cancelled = trio.current_effective_deadline() == -math.inf
                try:
                    with trio.CancelScope(shield=True):
                        closed = await guard(kernel.close, is_cancelled)
                        if world is None:
                            with trio.move_on_after(CLOSE_CONNECTIONS_S):
                                await ours.http.aclose()
                finally:  # also on an interrupt, which nothing here catches: who leaves must not wait for what nobody ends
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


show_fields(__all__, globals())
