"""What handlers, tools and commands are given as `ctx`: reads of the conversation, and few actions.

Values are read when they are asked for, never remembered (CTXT-1). A context of a generation
that was replaced raises StaleContext on every use (EXT-46). What a handler, a tool and a command
share is `ExtensionContext`; the other two are that and more, so that an editor knows their members.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from camshaft.actors.generation import Checked, OnlyInCommands
from camshaft.actors.misuse import meant, require_task
from camshaft.actors.model_asks import ModelAsk
from camshaft.actors.model_registry import ModelRegistry
from camshaft.actors.runtime import Runtime
from camshaft.actors.scoped import ScopedModel
from camshaft.actors.session_view import SessionView
from camshaft.actors.ui_context import ExtensionUi
from camshaft.actors.virtual_models import limiting_model
from camshaft.actors.world import World
from camshaft.kernel import codec, estimates, shapes
from camshaft.kernel.branch_summaries import NavigationResult
from camshaft.kernel.compaction import CompactionResult
from camshaft.kernel.estimates import ContextUsage
from camshaft.kernel.hook_events import CustomInput
from camshaft.kernel.messages import AssistantMessage, Message
from camshaft.kernel.models import Model
from camshaft.kernel.prompt import PromptOptions
from camshaft.kernel.tools import CallOutcome, Signal, callable_names

if TYPE_CHECKING:
    from camshaft.actors.children import ChildBlock, ChildOptions
    from camshaft.actors.replacement import Replaced
    from camshaft.actors.session_writer import SessionWriter
    from camshaft.kernel.forking import ForkPosition


@shapes.define(eq=False)
class ExtensionContext:
    """Context of event handlers."""

    _runtime: Runtime
    _generation: Checked
    _extension: str
    """Path of the extension it is for."""

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
        """Whether dialogs can be answered: a UI is bound, and the mode has one (UI-1)."""
        return self._live.desk.has_ui

    @property
    def ui(self) -> ExtensionUi:
        """An `ExtensionUi`: dialogs, notifications, status lines and widgets; without a UI each call gives its fallback (UI-2)."""
        return ExtensionUi(self._live.desk, self._generation, self._extension)

    @property
    def world(self) -> World:
        """The host's ports: files, processes, HTTP, clock, environment."""
        return self._live.world

    @property
    def session(self) -> SessionView:
        """The session, to read: a `SessionView`."""
        return SessionView(self._live, self._generation)

    @property
    def model_registry(self) -> ModelRegistry:
        """The models there are, and which can be used: a `ModelRegistry`."""
        self._generation.check()
        return ModelRegistry(lambda: self._live.model_source)

    @property
    def scoped_models(self) -> tuple[ScopedModel, ...]:
        """The models that are cycled through; empty: all that can be used."""
        return self._live.scoped_models

    @property
    def model(self) -> Model | None:
        """The selected model."""
        return self._live.state.selection.model

    @property
    def thinking_level(self) -> str:
        """The effective thinking level."""
        return self._live.state.selection.thinking_level

    @property
    def signal(self) -> Signal | None:
        """The run's abort signal; None outside runs (CTXT-4)."""
        return self._live.signal

    def is_idle(self) -> bool:
        """No run and no compaction (CTXT-5)."""
        return self._live.state.is_idle

    def has_pending_messages(self) -> bool:
        """Whether user messages are queued; custom ones do not count."""
        return self._live.state.has_pending_messages

    def is_project_trusted(self) -> bool:
        """Whether the files of the working directory may decide what runs."""
        return self._live.is_project_trusted

    def abort(self) -> None:
        """Ask the active run to stop; returns at once."""
        self._live.request_abort()

    def compact(
        self,
        *,
        custom_instructions: str | None = None,
        on_complete: Callable[[CompactionResult], Any] | None = None,
        on_error: Callable[[Exception], Any] | None = None,
    ) -> None:
        """Shorten the context; returns at once. A run that is active is ended first (CTXT-7).

        Then `on_complete` gets the result, or `on_error` what went wrong; without it that is reported.
        """
        self._live.request_compaction(custom_instructions, on_complete, on_error)

    def shutdown(self) -> None:
        """Ask the host to end, when no run is active any more; where nobody sits in front of it, nothing (CTXT-6)."""
        self._live.shutdown()

    def get_context_usage(self) -> ContextUsage | None:
        """Tokens in context; None without a model or a known window."""
        model = limiting_model(self._live.state, self._live.providers)
        return None if model is None else estimates.context_usage(self._live.state.projection, model.context_window)

    async def ask_model(  # noqa: PLR0913  # all but the question by name
        self,
        messages: str | Sequence[Message],
        *,
        system_prompt: str | None = None,
        model: Model | None = None,
        thinking_level: str | None = None,
        signal: Signal | None = None,
        kind: str = "extension",
        record_usage: bool = True,
    ) -> AssistantMessage:
        """The answer of a model to a question, or to a whole conversation, without tools and outside this conversation.

        It can be asked at any time, in a run or not, by default the selected model. `signal`, by default
        that of the run, ends it. What it used is stored as a `usage` entry of this `kind`; give
        `record_usage=False` where the answer's `usage` is stored with something else: a tool result, a
        summary. Raises ModelFailed for an answer that is none, with `aborted` if the signal was set.
        """
        ask = ModelAsk(
            messages=messages,
            system_prompt=system_prompt,
            model=model,
            thinking_level=thinking_level,
            signal=self.signal if signal is None else signal,
            kind=kind,
            record_usage=record_usage,
        )
        return await self._live.ask_model(self._generation, ask)

    async def fetch_deferred(self, handle: Mapping[str, Any], *, wait_ms: int = 0, signal: Signal | None = None) -> AssistantMessage:
        """What the `deferred` of a message stands for: its answer, or again a message with the handle while that is pending.

        Nothing is stored. `wait_ms`: how long the provider may wait for it; `signal`, by default that of the run, ends it.
        A failure, and a provider that cannot do this, is a message with the stop reason `error`.
        """
        message = await self._live.fetch_deferred(handle, wait_ms=wait_ms, signal=self.signal if signal is None else signal)
        self._generation.check()
        return message

    async def cancel_deferred(self, handle: Mapping[str, Any]) -> None:
        """Ask the provider not to make the answer behind a handle. Raises DeferredUnsupported, ModelFailed."""
        await self._live.cancel_deferred(handle)

    def start_task(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Runs `await function(*arguments)` beside everything else, until it ends or the extensions are replaced (EXT-23).

        It is cancelled after `session_shutdown`; a crash is reported with the event `task` (ERR-8).

        Raises TooManyTasks, and ExtensionMisuse for what cannot be called so: give the function, not its result.
        """
        require_task(function, arguments)
        self._live.start_task(self._extension, function, arguments)

    def open_child(self, options: "ChildOptions | None" = None, *, signal: Signal | None = None) -> "ChildBlock":
        """A conversation beneath this one, for the length of an `async with` block; see `ChildOptions` and `Child`.

        Its runs are aborted when `signal` is set; None: with the run, or the call, this is used in.
        """
        return self._live.open_child(options, self.signal if signal is None else signal)

    def get_system_prompt(self) -> str:
        """The effective prompt text."""
        return self._live.system_prompt

    if not TYPE_CHECKING:  # An editor shall tell of a name that does not exist.

        def __getattr__(self, name: str) -> Any:
            if name in _COMMAND_ONLY:
                raise OnlyInCommands(name)
            if name in OF_THE_API:
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}; it is api.{name}, of what setup(api) gets")
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{meant(name, dir(type(self)))}")


_COMMAND_ONLY: Final = frozenset(
    {"fork", "get_system_prompt_options", "navigate_tree", "new_session", "reload", "switch_session", "wait_for_idle"}
)
"""Members that wait for the run, or tear down what waits for the caller (CTXT-9)."""


OF_THE_API: Final = frozenset(
    {
        *("append_entry", "events", "exec", "get_active_tools", "get_all_tools", "get_commands", "get_flag", "get_mcp_servers"),
        *("get_session_name", "get_settings", "get_thinking_level", "on", "send_message", "send_user_message", "set_active_tools"),
        *("set_label", "set_model", "set_session_name", "set_thinking_level"),
        *("register_command", "register_flag", "register_provider", "register_tool"),
    }
)
"""What is looked for here, and is of the other face."""


@shapes.define(eq=False)
class CommandContext(ExtensionContext):
    """Context of command handlers, which no run waits for. Offers what ExtensionContext does, and waiting."""

    _wait_idle: Callable[[], Any]

    async def wait_for_idle(self) -> None:
        """Returns when no run is active, at once if none is."""
        self._generation.check()
        await self._wait_idle()

    async def navigate_tree(  # the arguments of CTXT-9
        self,
        target: str,
        *,
        summarize: bool = False,
        custom_instructions: str | None = None,
        replace_instructions: bool | None = None,
        label: str | None = None,
    ) -> NavigationResult:
        """Move to another entry, on request with a summary of the branch that is left; nothing at the current one.

        Raises CommandRefused while anything is under way, for an unknown entry, and when the summary failed.
        """
        return await self._live.navigate_tree(
            target,
            summarize=summarize,
            custom_instructions=custom_instructions,
            replace_instructions=replace_instructions,
            label=label,
        )

    def get_system_prompt_options(self) -> PromptOptions:
        """What the system prompt is made of, without what runs change; may hold whole context files (PB-1)."""
        return self._live.prompt_options()

    async def new_session(
        self,
        *,
        parent_session: str | None = None,
        setup: "Callable[[SessionWriter], Any] | None" = None,
        with_session: "Callable[[ReplacedSessionContext], Any] | None" = None,
    ) -> "Replaced":
        """Goes on in a new session; `setup` writes into it before its extensions hear of it (EXT-42, EXT-43).

        This context is stale afterwards, unless a handler cancelled: go on in `with_session`.
        """
        return await self._live.replacement.new_session(parent_session=parent_session, setup=setup, with_session=with_session)

    async def fork(
        self, entry_id: str, *, position: "ForkPosition" = "before", with_session: "Callable[[ReplacedSessionContext], Any] | None" = None
    ) -> "Replaced":
        """Goes on in a new session that holds the branch up to an entry. Raises CommandRefused if that cannot be (CTXT-9)."""
        return await self._live.replacement.fork(entry_id, position=position, with_session=with_session)

    async def switch_session(self, path: str, *, with_session: "Callable[[ReplacedSessionContext], Any] | None" = None) -> "Replaced":
        """Goes on in another session file. Raises SessionFileMissing, MissingWorkingDirectory and others; this one is intact then."""
        return await self._live.replacement.switch_session(path, with_session=with_session)

    async def reload(self) -> None:
        """Loads extensions, settings and resources anew; the last thing a command does (EXT-50). Raises CommandRefused while busy."""
        await self._live.replacement.reload()


@shapes.define(eq=False)
class ReplacedSessionContext(CommandContext):
    """What `with_session` gets: a command's context of the new session that can also send and wait (EXT-45)."""

    async def send_message(
        self, message: CustomInput | Mapping[str, Any], *, trigger_turn: bool | None = None, deliver_as: str | None = None
    ) -> None:
        """Sends a custom message by QUE-11; returns when the run it started, if any, has settled."""
        sent = await self._live.send_custom(codec.python(CustomInput, message), trigger_turn=trigger_turn, deliver_as=deliver_as)
        if sent is not None:
            await sent.wait()

    async def send_user_message(self, text: str, *, deliver_as: str | None = None, expand_prompt_templates: bool = False) -> None:
        """Sends a user message; returns when the run it started has settled. Raises PromptRefused."""
        await self._live.prompt(text, streaming_behavior=deliver_as, expand=expand_prompt_templates, source="extension")


@shapes.define(eq=False)
class ToolContext(ExtensionContext):
    """Context of a tool's `execute`. Offers what ExtensionContext does, and calling other tools."""

    tool_call_id: str
    signal: Signal
    """Set when the call should stop."""
    _call: Any

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self.session.get_session_id()

    @property
    def session_file(self) -> str | None:
        """Path of the session file; None in memory."""
        return self.session.get_session_file()

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that can be called from here (EXPO-5)."""
        return callable_names(self._live.state.selection.active_tools, self._live.tools)

    async def execute_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        signal: Signal | None = None,
        on_update: Callable[[Any], None] | None = None,
    ) -> CallOutcome:
        """Run another tool; its outcome, also for failures: it never raises for those (NEST-1)."""
        return await self._live.execute_nested(self._call, name, arguments, signal, on_update)
