"""What handlers, tools and commands are given as `ctx`: reads of the conversation, and few actions.

Values are read when they are asked for, never remembered (CTXT-1). A context of a generation
that was replaced raises StaleContext on every use (EXT-46).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs

from camshaft.actors.errors import CamshaftError
from camshaft.actors.runtime import Runtime
from camshaft.actors.signal import AbortSignal
from camshaft.actors.world import World
from camshaft.kernel import estimates
from camshaft.kernel.entries import Entry, SessionHeader
from camshaft.kernel.estimates import ContextUsage
from camshaft.kernel.models import Model
from camshaft.kernel.projection import ContextEntry, Projection
from camshaft.kernel.tools import Signal, callable_names

STALE: Final = (
    "This extension ctx is stale after session replacement or reload. "
    "Use the context that the new session hands to its handlers, commands and with_session callbacks."
)


class StaleContext(CamshaftError):
    """A context or an API object outlived its generation (ERR-2)."""

    def __init__(self) -> None:
        super().__init__(STALE)


class OnlyInCommands(CamshaftError):
    """A member that waits for the run was used where the run waits for the caller (CTXT-3)."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is only available in command handlers")


@attrs.define(eq=False)
class Generation:
    """One loading of the extensions; ended for good by the next one."""

    number: int
    stale: bool = False

    def check(self) -> None:
        """Raises StaleContext if this loading was replaced."""
        if self.stale:
            raise StaleContext


@attrs.frozen(eq=False)
class SessionView:
    """The session, to read (SES-89)."""

    _runtime: Runtime
    _generation: Generation

    @property
    def _state(self) -> Any:
        self._generation.check()
        return self._runtime.state

    def get_cwd(self) -> str:
        """The working directory."""
        self._generation.check()
        return self._runtime.cwd

    def get_session_id(self) -> str:
        """The session's id."""
        session_id: str = self._state.header.id
        return session_id

    def get_session_file(self) -> str | None:
        """Path of the session file; None in memory."""
        self._generation.check()
        return self._runtime.session_file

    def get_session_name(self) -> str | None:
        """The session's name, if it has one."""
        name: str | None = self._state.tree.name
        return name

    def get_header(self) -> SessionHeader:
        """The first line of the session."""
        header: SessionHeader = self._state.header
        return header

    def get_leaf_id(self) -> str | None:
        """Id of the current position."""
        leaf: str | None = self._state.leaf_id
        return leaf

    def get_leaf_entry(self) -> Entry | None:
        """The entry at the current position."""
        entry: Entry | None = self._state.leaf_entry
        return entry

    def get_entry(self, entry_id: str) -> Entry | None:
        """An entry by id, or None."""
        tree = self._state.tree
        position = tree.position(entry_id)
        return None if position is None else tree.entry(position)

    def get_entries(self) -> tuple[Entry, ...]:
        """All entries in file order. O(session)."""
        return tuple(self._state.tree.entries())

    def get_branch(self, from_id: str | None = None) -> tuple[Entry, ...]:
        """The entries from the root to `from_id` (default: the leaf). O(branch). Empty for an unknown id."""
        state = self._state
        position = state.projection.leaf if from_id is None else state.tree.position(from_id)
        return () if position is None else tuple([state.tree.entry(each) for each in state.tree.branch(position)])

    def get_label(self, entry_id: str) -> str | None:
        """The label of an entry, if it has one."""
        label: str | None = self._state.tree.label(entry_id)
        return label

    def build_context_entries(self) -> Iterable[ContextEntry]:
        """The entries in context with the messages they contribute; a lazy view."""
        entries: Iterable[ContextEntry] = self._state.projection.context_entries
        return entries

    def build_session_projection(self) -> Projection:
        """The projection of the active branch."""
        projection: Projection = self._state.projection
        return projection


@attrs.define(eq=False)
class ExtensionContext:
    """Context of event handlers."""

    _runtime: Runtime
    _generation: Generation

    @property
    def _live(self) -> Runtime:
        self._generation.check()
        return self._runtime

    @property
    def cwd(self) -> str:
        """The session's working directory, absolute."""
        return self._live.cwd

    @property
    def mode(self) -> str:
        """How the host shows things."""
        return self._live.mode

    @property
    def has_ui(self) -> bool:
        """Whether dialogs can be answered; no host of this version has them."""
        self._generation.check()
        return False

    @property
    def world(self) -> World:
        """The host's ports: files, processes, HTTP, clock, environment."""
        return self._live.world

    @property
    def session(self) -> SessionView:
        """The session, to read."""
        return SessionView(self._live, self._generation)

    @property
    def model(self) -> Model | None:
        """The selected model."""
        return self._live.state.selection.model

    @property
    def thinking_level(self) -> str:
        """The effective thinking level."""
        return self._live.state.selection.thinking_level

    @property
    def signal(self) -> AbortSignal | None:
        """The run's abort signal; None outside runs."""
        return self._live.signal

    def is_idle(self) -> bool:
        """No run and no compaction (CTXT-5)."""
        return self._live.state.is_idle

    def has_pending_messages(self) -> bool:
        """Whether user messages are queued; custom ones do not count."""
        return self._live.state.has_pending_messages

    def abort(self) -> None:
        """Ask the active run to stop; returns at once."""
        self._live.request_abort()

    def get_context_usage(self) -> ContextUsage | None:
        """Tokens in context; None without a model or a known window."""
        model = self.model
        return None if model is None else estimates.context_usage(self._live.state.projection, model.context_window)

    def get_system_prompt(self) -> str:
        """The effective prompt text."""
        return self._live.system_prompt

    def __getattr__(self, name: str) -> Any:
        if name in _COMMAND_ONLY:
            raise OnlyInCommands(name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


_COMMAND_ONLY: Final = frozenset({"wait_for_idle"})
"""Members that wait for the run (CTXT-9)."""


@attrs.define(eq=False)
class CommandContext:
    """Context of command handlers, which no run waits for. Offers what ExtensionContext does, and waiting."""

    _base: ExtensionContext
    _wait_idle: Callable[[], Any]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._base, name)

    async def wait_for_idle(self) -> None:
        """Returns when no run is active, at once if none is."""
        await self._wait_idle()


@attrs.define(eq=False)
class ToolContext:
    """Context of a tool's `execute`. Offers what ExtensionContext does, and calling other tools."""

    _base: ExtensionContext
    tool_call_id: str
    signal: Signal
    """Set when the call should stop."""
    _runtime: Runtime
    _call: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self._base, name)

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._base.session.get_session_id()

    @property
    def session_file(self) -> str | None:
        """Path of the session file; None in memory."""
        return self._base.session.get_session_file()

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that can be called from here (EXPO-5)."""
        return callable_names(self._runtime.state.selection.active_tools, self._runtime.tools)

    async def execute_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        signal: Signal | None = None,
        on_update: Callable[[Any], None] | None = None,
    ) -> Any:
        """Run another tool; its outcome, also for failures: it never raises for those (NEST-1)."""
        return await self._runtime.execute_nested(self._call, name, arguments, signal, on_update)
