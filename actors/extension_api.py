"""The object an extension's `setup(api)` gets: registrations, actions, the bus.

Every method first checks that the extension loaded and that its generation is not over
(EXT-24, EXT-46). While factories run, actions raise (EXT-22); registrations work at any time.
What a registration has to be is said in `registering.py` and `tool_registration.py`.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

import attrs

from camshaft.actors import registering
from camshaft.actors.bus import Bus
from camshaft.actors.config_provider import ProviderConfig
from camshaft.actors.contexts import CommandContext
from camshaft.actors.event_signatures import On
from camshaft.actors.extension_host import ExtensionHost
from camshaft.actors.generation import Generation
from camshaft.actors.misuse import ExtensionMisuse, meant, require_text
from camshaft.actors.programs import OUTPUT_BYTES_MAX, ExecResult, run_program
from camshaft.actors.providers import Provider
from camshaft.actors.registrations import DEFAULT_MESSAGE_TYPES, Extension, FlagType
from camshaft.actors.runtime import CommandInfo, Runtime, ToolInfo
from camshaft.actors.tool_registration import tool_definition
from camshaft.actors.virtual_models import VirtualModel
from camshaft.actors.world import World
from camshaft.kernel import codec, shapes
from camshaft.kernel.hook_events import CustomInput
from camshaft.kernel.messages import Content, ImageBlock, TextBlock, UserMessage
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import EMPTY, FrozenDict, Json, freeze
from camshaft.kernel.session_events import RegisteredMcpServer
from camshaft.kernel.settings import Settings
from camshaft.kernel.tools import Signal, ToolDefinition

F = TypeVar("F", bound=Callable[..., Any])

NOT_GIVEN: Final = object()
"""Stands for an argument that was left out, where None is a value."""
LOADING_TEXT: Final = "Extension runtime not initialized. Action methods cannot be called during extension loading."


@shapes.define(eq=False)
class ExtensionAPI:
    """One extension's face of the kernel."""

    _extension: Extension
    host: ExtensionHost = attrs.field(repr=False)
    _generation: Generation
    _cwd: str
    _world: World = attrs.field(repr=False)

    @property
    def events(self) -> Bus:
        """The bus shared by all extensions (API-27)."""

        def subscribe(channel: str, handler: Callable[[Any], Any]) -> Callable[[], None]:
            return self.host.listen(self.checked(), channel, handler)

        def emit(channel: str, value: Any) -> None:
            self.checked()
            self.host.bus.emit(channel, value)

        return Bus(subscribe, emit)

    def checked(self) -> Extension:
        """The extension, if it may still act. Raises ExtensionMisuse or StaleContext."""
        if self._extension.failed:
            why = "was left out" if self._extension.left_out else "failed to load"
            raise ExtensionMisuse(f'Extension "{self._extension.path}" {why} and its API is no longer active.')
        self.host.standing(self._extension).check()
        return self._extension

    # -- registrations -------------------------------------------------------------------

    @property
    def on(self) -> On:
        """`on(event, handler)`: calls `handler(event, ctx)`, sync or async, at every event; returns its idempotent unsubscribe.

        Raises ExtensionMisuse for an unknown event (EVT-4), or `fail_closed` where it means nothing (EVT-21).
        """
        return self._on

    def _on(self, event: str, handler: Any = None, /, *, fail_closed: bool = False) -> Callable[[], None]:
        extension = self.checked()
        registered = registering.handler(event, handler, fail_closed)
        extension.handlers = (*extension.handlers, registered)
        self._rebuild()

        def unsubscribe() -> None:
            extension.handlers = tuple([each for each in extension.handlers if each is not registered])
            self._rebuild()

        return unsubscribe

    def register_tool(self, tool: ToolDefinition | Mapping[str, Any] | Callable[..., Any]) -> None:
        """Registers a tool: a definition, a dict with its fields, or a typed function (TOOL-1, TOOL-2).

        It is visible, and by its exposure active, at once. Raises ExtensionMisuse for what cannot be a tool.
        """
        self._register(tool_definition(tool, self.checked().path))

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(self, /, **fields: Any) -> Callable[[F], F]: ...

    def tool(self, function: Any = None, /, **fields: Any) -> Any:
        """Decorator that registers a typed function as a tool; `fields` are those of ToolDefinition, by name.

        Name, description and parameters come from the function: its name, its docstring, its signature.
        """

        def register(given: F) -> F:
            self._register(tool_definition(given, self.checked().path, fields))
            return given

        return register if function is None else register(function)

    def register_command(
        self,
        name: str,
        handler: Callable[..., Any],
        *,
        description: str | None = None,
        get_argument_completions: Callable[[str], Any] | None = None,
    ) -> None:
        """Registers `/name`, which calls `handler(args, ctx)`. Raises ExtensionMisuse for an empty name."""
        extension = self.checked()
        command = registering.command(name, handler, description, get_argument_completions)
        extension.commands = {**extension.commands, name: command}

    def register_shortcut(self, key: str, handler: Callable[..., Any], *, description: str | None = None) -> None:
        """Calls `handler(ctx)` when `key`, like `ctrl+p`, is pressed in an interactive frontend (API-5)."""
        extension = self.checked()
        shortcut = registering.shortcut(key, handler, description)
        extension.shortcuts = {**extension.shortcuts, key.lower(): shortcut}

    def register_flag(self, name: str, *, type: FlagType, description: str | None = None, default: bool | str | None = None) -> None:
        """Registers the command-line flag `--name`. Raises ExtensionMisuse for a default of another type (API-6)."""
        extension = self.checked()
        extension.flags = {**extension.flags, name: registering.flag(name, type, description, default)}

    def get_flag(self, name: str) -> bool | str | None:
        """The value of a flag that this extension registered; in the factory its default (API-7). None for any other."""
        known = self.checked().flags
        return registering.flag_value(name, self.host.extensions, self.host.flag_values) if name in known else None

    def register_message_renderer(self, custom_type: str, renderer: Callable[..., Any]) -> None:
        """How frontends show messages of `custom_type`: `renderer(message, view)`; None is the default way (API-9)."""
        extension = self.checked()
        registering.renderer(custom_type, renderer, "message")
        extension.message_renderers = {**extension.message_renderers, custom_type: renderer}

    def register_entry_renderer(self, custom_type: str, renderer: Callable[..., Any]) -> None:
        """How frontends show `custom` entries of `custom_type`: `renderer(entry, view)`; None is the default way (API-9)."""
        extension = self.checked()
        registering.renderer(custom_type, renderer, "entry")
        extension.entry_renderers = {**extension.entry_renderers, custom_type: renderer}

    def register_tool_renderer(self, resolver: Callable[..., Any]) -> None:
        """Adds `resolver(tool_name, next)`, which gives ToolRenderers; `next()` gives what the others say (API-11)."""
        extension = self.checked()
        registering.resolver(resolver)
        extension.tool_renderers = (*extension.tool_renderers, resolver)

    def register_markdown_transformer(
        self, transformer: Callable[..., Any], *, message_types: Sequence[str] = DEFAULT_MESSAGE_TYPES
    ) -> None:
        """Changes Markdown where it is shown, never what is stored: `transformer(markdown, ctx)` gives a text (API-10)."""
        extension = self.checked()
        extension.markdown_transformer = registering.transformer(transformer, message_types)

    # -- providers, virtual models, MCP servers --------------------------------------------

    def register_provider(self, provider: Provider | str, config: ProviderConfig | Mapping[str, Any] | None = None) -> None:
        """Registers a provider object, or the config of the provider of that id (API-30, PRV-1).

        While loading it waits until all factories have run. Raises ExtensionMisuse for what cannot be served.
        """
        self.host.registry.register(self.checked(), provider, config)

    def unregister_provider(self, name: str) -> None:
        """Takes a registration back; the host's own provider of that id returns (API-31). Nothing for an unknown one."""
        self.checked()
        self.host.registry.unregister(name)

    def register_virtual_model(self, definition: VirtualModel | Mapping[str, Any]) -> None:
        """Registers a model that stands for whatever its `route` chooses (API-32, VM-1). Raises ExtensionMisuse."""
        extension = self.checked()
        self.host.registry.register_virtual(extension, registering.virtual_model(definition))

    def unregister_virtual_model(self, provider: str, model_id: str) -> None:
        """Takes a virtual model back; nothing for an unknown one (API-32)."""
        self.checked()
        self.host.registry.unregister_virtual(provider, model_id)

    def register_mcp_server(self, name: str, config: Mapping[str, Any]) -> None:
        """Registers an MCP server, for an extension that connects them (API-40). Raises ExtensionMisuse for an invalid one."""
        self.host.mcp.register(self.checked(), name, config)

    def unregister_mcp_server(self, name: str) -> None:
        """Takes back a server of this extension; nothing for any other name (API-41)."""
        self.host.mcp.unregister(self.checked(), name)

    def get_mcp_servers(self) -> tuple[RegisteredMcpServer, ...]:
        """The registered servers of all loaded extensions, in the order of registration (API-41)."""
        self.checked()
        return self.host.mcp.servers

    # -- actions -------------------------------------------------------------------------

    def send_message(
        self, message: CustomInput | dict[str, Any], *, trigger_turn: bool | None = None, deliver_as: str | None = None
    ) -> None:
        """Sends a custom message by the table of QUE-11; returns without waiting."""
        if deliver_as not in (None, "steer", "followUp", "nextTurn"):
            raise ExtensionMisuse(f"deliver_as {deliver_as!r}; expected steer, followUp or nextTurn")
        self._acting().send_message(codec.python(CustomInput, message), trigger_turn, deliver_as)

    def send_user_message(
        self, content: Content | list[Any], *, deliver_as: str | None = None, expand_prompt_templates: bool = False
    ) -> None:
        """Sends a user message (QUE-13); returns without waiting."""
        if deliver_as not in (None, "steer", "followUp"):
            raise ExtensionMisuse(f"deliver_as {deliver_as!r}; expected steer or followUp")
        blocks = codec.python(UserMessage, {"content": content, "timestamp": 0}).content
        text = blocks if isinstance(blocks, str) else "\n".join([each.text for each in blocks if isinstance(each, TextBlock)])
        images = () if isinstance(blocks, str) else tuple([each for each in blocks if isinstance(each, ImageBlock)])
        self._acting().send_user_message(text, images, deliver_as, expand_prompt_templates)

    def append_entry(self, custom_type: str, data: Json = NOT_GIVEN) -> str:
        """Appends a `custom` entry, which no model sees, and returns its id. Raises NotJson for data that is not JSON.

        Without `data` the entry has none; None is stored as null (MSG-3). Raises ExtensionMisuse for a type that is no text.
        """
        require_text(custom_type, "the custom_type of an entry")
        if data is NOT_GIVEN:
            return self._acting().append_entry(custom_type, None)
        null = FrozenDict(data=None) if data is None else EMPTY
        return self._acting().append_entry(custom_type, freeze(data, "data"), null)

    def set_session_name(self, name: str) -> None:
        """Names the session; empty clears."""
        if not isinstance(name, str):
            raise ExtensionMisuse(f"the name of the session is {name!r}; expected a text")
        self._acting().set_session_name(name)

    def get_session_name(self) -> str | None:
        """The session's name, if it has one."""
        return self._bound().state.tree.name

    def set_label(self, entry_id: str, label: str | None) -> None:
        """Labels an entry; None clears. Raises CommandRefused for an unknown id."""
        self._acting().set_label(entry_id, label)

    async def exec(  # noqa: PLR0913  # the options of API-25, all by name
        self,
        command: str,
        args: Sequence[str] = (),
        *,
        signal: Signal | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  # ends the program, not the call
        cwd: str | None = None,
        max_buffer: int = OUTPUT_BYTES_MAX,
    ) -> ExecResult:
        """Runs a program without a shell, without input, at most `timeout` ms long; how it ended, also if it did not start.

        At most `max_buffer` bytes of output are kept, then it is stopped. `cwd` may be relative to the session's.
        Raises ExtensionMisuse for wrong arguments.
        """
        self.checked()
        folder = os.path.join(self._cwd, cwd or "")
        program = registering.program(
            command, args, cwd=folder, environment=self._world.environment, timeout=timeout, max_buffer=max_buffer
        )
        return await run_program(self._world.processes, attrs.evolve(program, signal=signal))

    def get_active_tools(self) -> tuple[str, ...]:
        """The active set, in order."""
        return self._bound().state.selection.active_tools

    def get_all_tools(self) -> tuple[ToolInfo, ...]:
        """Every registered tool (EXPO-8)."""
        return tuple([registering.tool_info(tool) for tool in self._bound().tools.values()])

    def set_active_tools(self, names: Sequence[str]) -> None:
        """Replaces the active set; unknown and hidden names are ignored (EXPO-3). Effective with the next request."""
        if isinstance(names, str) or not isinstance(names, Sequence) or not all([isinstance(each, str) for each in names]):
            raise ExtensionMisuse(f"active tools {names!r}; expected a list of names")
        self._acting().set_active_tools(names)

    def get_commands(self) -> tuple[CommandInfo, ...]:
        """What can be called by name."""
        return self._bound().commands()

    def get_settings(self) -> Settings:
        """The settings in effect, all scopes merged (API-24)."""
        return self._bound().state.settings

    async def set_model(self, model: Model | str) -> bool:
        """Uses another model, given as such or as `provider/id`; False if it has no credentials (API-22)."""
        self.checked()
        if self.host.runtime is None:
            raise ExtensionMisuse("Extension runtime not initialized")
        return await self.host.runtime.select_model(model, "set")

    def get_thinking_level(self) -> str:
        """The effective level."""
        return self._bound().state.selection.thinking_level

    def set_thinking_level(self, level: str) -> None:
        """Uses another level, clamped to the model. Raises CommandRefused for an unknown one (API-23)."""
        self._bound().set_thinking_level(level)

    def _bound(self) -> Runtime:
        self.checked()
        if self.host.runtime is None:
            raise ExtensionMisuse(LOADING_TEXT)
        return self.host.runtime

    def _register(self, definition: ToolDefinition) -> None:
        extension = self.checked()
        extension.tools = {**extension.tools, definition.name: definition}
        self._rebuild()
        runtime = self.host.runtime
        if runtime is not None and self.host.tools.get(definition.name) is not None:
            runtime.tool_registered(definition)

    def _acting(self) -> Runtime:
        """For what leaves something behind: that is counted. Raises TooManyActions as well."""
        runtime = self._bound()
        self.host.standing(self._extension).count()
        return runtime

    if not TYPE_CHECKING:  # An editor shall tell of a name that does not exist.

        def __getattr__(self, name: str) -> Any:
            if not name.startswith("_") and hasattr(CommandContext, name):
                raise AttributeError(f"the API has no {name!r}; it is ctx.{name}, of the context that handlers, tools and commands get")
            raise AttributeError(f"the API has no {name!r}{meant(name, dir(type(self)))}")

    def _rebuild(self) -> None:
        if self.host.runtime is not None:
            self.host.rebuild()
