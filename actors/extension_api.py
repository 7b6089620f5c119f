"""The object an extension's `setup(api)` gets: registrations, actions, the bus.

Every method first checks that the extension loaded and that its generation is not over
(EXT-24, EXT-46). While factories run, actions raise (EXT-22); registrations work at any time.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from camshaft.actors.errors import CamshaftError
from camshaft.actors.extension_host import ExtensionHost
from camshaft.actors.generation import Generation
from camshaft.actors.registrations import Command, Extension, Handler
from camshaft.actors.runtime import CommandInfo, Runtime, ToolInfo
from camshaft.kernel import codec
from camshaft.kernel.errors import CodecError
from camshaft.kernel.hook_events import CustomInput
from camshaft.kernel.hooks import HOOKS
from camshaft.kernel.messages import Content, ImageBlock, TextBlock, UserMessage
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import EMPTY, FrozenDict, Json, freeze
from camshaft.kernel.tools import EXPOSURES, ToolDefinition

NOT_GIVEN: Final = object()
"""Stands for an argument that was left out, where None is a value."""


class ExtensionMisuse(CamshaftError):
    """An extension registered or asked for something that cannot be; the text says what was expected."""


@attrs.define(eq=False)
class Bus:
    """Messages between extensions of one generation (API-27)."""

    _api: "ExtensionAPI"

    def on(self, channel: str, handler: Callable[[Any], Any]) -> Callable[[], None]:
        """Calls `handler(value)` for every value emitted on `channel`; returns its unsubscribe."""
        extension = self._api.checked()
        _require_callable(handler, f"the listener of channel {channel!r}")
        subscription = (channel, handler)
        extension.listeners = (*extension.listeners, subscription)

        def unsubscribe() -> None:
            extension.listeners = tuple([each for each in extension.listeners if each is not subscription])

        return unsubscribe

    def emit(self, channel: str, value: Any = None) -> None:
        """Calls the listeners of `channel` now, in subscription order."""
        self._api.checked()
        self._api.host.emit(channel, value)


@attrs.define(eq=False)
class ExtensionAPI:
    """One extension's face of the kernel."""

    _extension: Extension
    host: ExtensionHost = attrs.field(repr=False)
    _generation: Generation
    _cwd: str

    @property
    def events(self) -> Bus:
        """The bus shared by all extensions."""
        return Bus(self)

    def checked(self) -> Extension:
        """The extension, if it may still act. Raises ExtensionMisuse or StaleContext."""
        if self._extension.failed:
            raise ExtensionMisuse(f'Extension "{self._extension.path}" failed to load and its API is no longer active.')
        self._generation.check()
        return self._extension

    # -- registrations -------------------------------------------------------------------

    def on(self, event: str, handler: Callable[..., Any], *, fail_closed: bool = False) -> Callable[[], None]:
        """Calls `handler(event, ctx)`, sync or async, at every `event`; returns its idempotent unsubscribe.

        Raises ExtensionMisuse for an unknown event (EVT-4), or `fail_closed` where it means nothing (EVT-21).
        """
        extension = self.checked()
        row = HOOKS.get(event)
        if row is None:
            raise ExtensionMisuse(f"there is no event {event!r}; the events are {', '.join(HOOKS)}")
        _require_callable(handler, f"the handler of {event!r}")
        if fail_closed and row.fail_closed is None:
            closing = ", ".join([name for name, each in HOOKS.items() if each.fail_closed is not None])
            raise ExtensionMisuse(f"{event!r} cannot fail closed; these can: {closing}")
        registered = Handler(event, handler, fail_closed)
        extension.handlers = (*extension.handlers, registered)
        self._rebuild()

        def unsubscribe() -> None:
            extension.handlers = tuple([each for each in extension.handlers if each is not registered])
            self._rebuild()

        return unsubscribe

    def register_tool(self, tool: ToolDefinition | dict[str, Any]) -> None:
        """Registers a tool, or a dict with its fields; visible and, by its exposure, active at once (TOOL-2).

        Raises ExtensionMisuse if `parameters` is no schema of an object or a field is unknown.
        """
        extension = self.checked()
        definition = tool if isinstance(tool, ToolDefinition) else _definition(tool, extension.path)
        if not isinstance(definition.parameters, dict):
            raise ExtensionMisuse(
                f'Tool "{definition.name}" registered by extension "{extension.path}" must define an object parameter schema.'
            )
        if definition.parameters.get("type", "object") != "object":
            said = f'Tool "{definition.name}" registered by extension "{extension.path}" must define an object parameter schema'
            raise ExtensionMisuse(f"{said}, not one of type {definition.parameters['type']!r}.")
        _check_definition(definition, extension.path)
        definition = attrs.evolve(definition, parameters=freeze(definition.parameters, "parameters"))
        extension.tools = {**extension.tools, definition.name: definition}
        self._rebuild()
        runtime = self.host.runtime
        if runtime is not None and self.host.tools.get(definition.name) is not None:
            runtime.tool_registered(definition)

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
        if not isinstance(name, str) or not name or not callable(handler):
            raise ExtensionMisuse(f"a command needs a name and a handler, got {name!r} and {handler!r}")
        command = Command(name=name, handler=handler, description=description, complete=get_argument_completions)
        extension.commands = {**extension.commands, name: command}

    # -- actions -------------------------------------------------------------------------

    def send_message(
        self, message: CustomInput | dict[str, Any], *, trigger_turn: bool | None = None, deliver_as: str | None = None
    ) -> None:
        """Sends a custom message by the table of QUE-11; returns without waiting."""
        if deliver_as not in (None, "steer", "followUp", "nextTurn"):
            raise ExtensionMisuse(f"deliver_as {deliver_as!r}; expected steer, followUp or nextTurn")
        self._bound().send_message(codec.python(CustomInput, message), trigger_turn, deliver_as)

    def send_user_message(
        self, content: Content | list[Any], *, deliver_as: str | None = None, expand_prompt_templates: bool = False
    ) -> None:
        """Sends a user message (QUE-13); returns without waiting."""
        if deliver_as not in (None, "steer", "followUp"):
            raise ExtensionMisuse(f"deliver_as {deliver_as!r}; expected steer or followUp")
        blocks = codec.python(UserMessage, {"content": content, "timestamp": 0}).content
        text = blocks if isinstance(blocks, str) else "\n".join([each.text for each in blocks if isinstance(each, TextBlock)])
        images = () if isinstance(blocks, str) else tuple([each for each in blocks if isinstance(each, ImageBlock)])
        self._bound().send_user_message(text, images, deliver_as, expand_prompt_templates)

    def append_entry(self, custom_type: str, data: Json = NOT_GIVEN) -> str:
        """Appends a `custom` entry, which no model sees, and returns its id. Raises NotJson for data that is not JSON.

        Without `data` the entry has none; None is stored as null (MSG-3).
        """
        if data is NOT_GIVEN:
            return self._bound().append_entry(custom_type, None)
        null = FrozenDict(data=None) if data is None else EMPTY
        return self._bound().append_entry(custom_type, freeze(data, "data"), null)

    def set_session_name(self, name: str) -> None:
        """Names the session; empty clears."""
        self._bound().set_session_name(name)

    def get_session_name(self) -> str | None:
        """The session's name, if it has one."""
        return self._bound().state.tree.name

    def set_label(self, entry_id: str, label: str | None) -> None:
        """Labels an entry; None clears. Raises CommandRefused for an unknown id."""
        self._bound().set_label(entry_id, label)

    def get_active_tools(self) -> tuple[str, ...]:
        """The active set, in order."""
        return self._bound().state.selection.active_tools

    def get_all_tools(self) -> tuple[ToolInfo, ...]:
        """Every registered tool (EXPO-8)."""
        return tuple(
            [
                ToolInfo(
                    name=name,
                    description=tool.definition.description,
                    parameters=tool.definition.parameters,
                    prompt_guidelines=tool.definition.prompt_guidelines,
                    exposure=tool.definition.exposure,
                    source_info=codec.encode(tool.source_info),
                )
                for name, tool in self._bound().tools.items()
            ]
        )

    def set_active_tools(self, names: Sequence[str]) -> None:
        """Replaces the active set; unknown and hidden names are ignored (EXPO-3). Effective with the next request."""
        if isinstance(names, str):
            raise ExtensionMisuse(f"active tools {names!r}; expected a list of names")
        self._bound().set_active_tools(names)

    def get_commands(self) -> tuple[CommandInfo, ...]:
        """What can be called by name."""
        return self._bound().commands()

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
            raise ExtensionMisuse("Extension runtime not initialized. Action methods cannot be called during extension loading.")
        return self.host.runtime

    def _rebuild(self) -> None:
        if self.host.runtime is not None:
            self.host.rebuild()


def _definition(fields: dict[str, Any], path: str) -> ToolDefinition:
    known = {field.name for field in attrs.fields(ToolDefinition)}
    unknown = [name for name in fields if name not in known]
    if unknown:
        raise ExtensionMisuse(f'tool registered by "{path}": no field {unknown[0]!r}; expected {", ".join(sorted(known))}')
    if not isinstance(fields.get("parameters"), dict):
        name = fields.get("name")
        raise ExtensionMisuse(f'Tool "{name}" registered by extension "{path}" must define an object parameter schema.')
    plain = {name: value for name, value in fields.items() if not callable(value)}
    callables = {name: value for name, value in fields.items() if callable(value)}
    guidelines = plain.pop("prompt_guidelines", None) or ()
    if isinstance(guidelines, str):
        raise ExtensionMisuse(f'tool registered by "{path}": prompt_guidelines {guidelines!r}; expected a list of texts')
    try:
        return ToolDefinition(**callables, **plain, prompt_guidelines=tuple(guidelines))
    except (TypeError, CodecError) as error:
        raise ExtensionMisuse(f'tool registered by "{path}": {error}') from None


def _check_definition(definition: ToolDefinition, path: str) -> None:
    """Raises ExtensionMisuse for what the type checker would have found, had it been asked."""
    if not isinstance(definition.name, str) or not definition.name:
        raise ExtensionMisuse(f'tool registered by "{path}": name {definition.name!r}; expected a text')
    where = f'tool "{definition.name}" registered by "{path}"'
    _require_callable(definition.execute, f"execute of {where}")
    if definition.exposure not in EXPOSURES:
        raise ExtensionMisuse(f"{where}: exposure {definition.exposure!r}; expected one of {', '.join(EXPOSURES)}")
    if definition.execution_mode not in (None, "parallel", "sequential"):
        raise ExtensionMisuse(f"{where}: execution_mode {definition.execution_mode!r}; expected parallel or sequential")


def _require_callable(given: object, what: str) -> None:
    if not callable(given):
        raise ExtensionMisuse(f"{what} is {given!r}; expected a function")
