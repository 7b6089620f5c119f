"""What each registration has to be: from an author's arguments to the data that is kept. Raises ExtensionMisuse.

Tools have a file of their own, `tool_registration.py`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from camshaft.actors.misuse import ExtensionMisuse, meant, require_callable, require_takes, require_text
from camshaft.actors.programs import Program
from camshaft.actors.registrations import (
    MESSAGE_TYPES,
    Command,
    Completion,
    Extension,
    Flag,
    FlagType,
    Handler,
    MarkdownTransformer,
    Shortcut,
)
from camshaft.actors.runtime import ToolInfo
from camshaft.actors.virtual_models import VirtualModel, checked_virtual
from camshaft.kernel import codec
from camshaft.kernel.hooks import HOOKS
from camshaft.kernel.tools import RegisteredTool

_FLAG_TYPES: Final[Mapping[str, type]] = {"boolean": bool, "string": str}


def handler(event: str, function: Callable[..., Any], fail_closed: bool) -> Handler:
    """A handler of a hook that exists, failing closed only where that means something (EVT-4, EVT-21)."""
    row = HOOKS.get(event)
    if row is None:
        raise ExtensionMisuse(f"there is no event {event!r}{meant(str(event), HOOKS)}; the events are {', '.join(HOOKS)}")
    require_takes(function, f"the handler of {event!r}", "event", "ctx")
    if fail_closed and row.fail_closed is None:
        closing = ", ".join([name for name, each in HOOKS.items() if each.fail_closed is not None])
        raise ExtensionMisuse(f"{event!r} cannot fail closed; these can: {closing}")
    return Handler(event, function, fail_closed)


def command(name: str, function: Callable[..., Any], description: str | None, complete: Callable[[str], Any] | None) -> Command:
    """A command with a name and a function (API-4)."""
    if not isinstance(name, str) or not name or not callable(function):
        raise ExtensionMisuse(f"a command needs a name and a handler, got {name!r} and {function!r}")
    if name.startswith("/") or " " in name:
        raise ExtensionMisuse(f"the name of a command is {name!r}; expected one without a slash in front and without spaces")
    require_takes(function, f"the handler of command {name!r}", "args", "ctx")
    if complete is not None:
        require_takes(complete, f"get_argument_completions of command {name!r}", "prefix")
    return Command(name=name, handler=function, description=description, complete=complete)


def read_completions(given: Any) -> tuple[Completion, ...]:
    """What a function of completions returned: Completion objects, dicts with their fields, or None for nothing (CMD-8)."""
    if given is None:
        return ()
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ExtensionMisuse(f"get_argument_completions returned {given!r}; expected a list of completions, or None")
    return tuple([codec.python(Completion, each) for each in given])


def shortcut(key: str, function: Callable[..., Any], description: str | None) -> Shortcut:
    """A key and a function (API-5)."""
    require_text(key, "the key of a shortcut")
    require_takes(function, f"the handler of shortcut {key!r}", "ctx")
    return Shortcut(key=key, handler=function, description=description)


def flag(name: str, kind: FlagType, description: str | None, default: bool | str | None) -> Flag:
    """A flag whose default is of its type (API-6)."""
    require_text(name, "the name of a flag")
    if name.startswith("-"):
        raise ExtensionMisuse(f"the name of a flag is {name!r}; expected it without the dashes")
    if kind not in _FLAG_TYPES:
        raise ExtensionMisuse(f"type of flag {name!r} is {kind!r}; expected boolean or string")
    if default is not None and type(default) is not _FLAG_TYPES[kind]:
        raise ExtensionMisuse(f'Invalid default for flag "{name}": expected {kind}, got {_type_name(default)}')
    return Flag(name=name, type=kind, description=description, default=default)


def flag_value(name: str, extensions: Sequence[Extension], given: Mapping[str, bool | str]) -> bool | str | None:
    """What the host was given for a flag, else the first default in load order (EXT-30); None if there is neither."""
    if name in given:
        return given[name]
    defaults = [each.flags[name].default for each in extensions if name in each.flags]
    return next((default for default in defaults if default is not None), None)


def renderer(custom_type: str, function: Callable[..., Any], what: str) -> None:
    """A renderer of messages or entries (API-9)."""
    require_text(custom_type, f"the custom_type of the {what} renderer")
    require_callable(function, f"the {what} renderer of {custom_type!r}")


def resolver(function: Callable[..., Any]) -> None:
    """A link of the chain of tool renderers (API-11)."""
    require_callable(function, "the tool renderer")


def transformer(function: Callable[..., Any], message_types: Sequence[str]) -> MarkdownTransformer:
    """A transformer that works at places there are (API-10)."""
    require_callable(function, "the Markdown transformer")
    listed = (message_types,) if isinstance(message_types, str) else tuple(message_types)
    unknown = [each for each in listed if each not in MESSAGE_TYPES]
    if isinstance(message_types, str) or unknown:
        given = message_types if isinstance(message_types, str) else unknown[0]
        raise ExtensionMisuse(f"message_types of the Markdown transformer: {given!r}; expected a list of {', '.join(MESSAGE_TYPES)}")
    return MarkdownTransformer(function=function, message_types=listed)


def program(  # noqa: PLR0913  # the options of API-25
    command: str, args: Sequence[str], *, cwd: str, environment: Mapping[str, str], timeout: float | None, max_buffer: int
) -> Program:
    """A program with limits that can be kept (API-25)."""
    if isinstance(args, str) or not isinstance(args, Sequence):
        raise ExtensionMisuse(f"exec: args {args!r}; expected a list of texts, each one argument")
    arguments = (command, *args)
    wrong = [each for each in arguments if not isinstance(each, str)]
    if wrong:
        raise ExtensionMisuse(f"exec: {wrong[0]!r} in the command; expected texts")
    if isinstance(max_buffer, bool) or not isinstance(max_buffer, int) or max_buffer <= 0:
        raise ExtensionMisuse(f"exec: max_buffer {max_buffer!r}; expected a whole number of bytes above 0")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < math.inf):
        raise ExtensionMisuse(f"exec: timeout {timeout!r}; expected a number of milliseconds above 0, or None")
    return Program(arguments=arguments, cwd=cwd, environment=environment, timeout_ms=timeout, output_bytes_max=max_buffer)


def virtual_model(given: VirtualModel | Mapping[str, Any]) -> VirtualModel:
    """A virtual model whose fields can be meant (VM-1)."""
    if isinstance(given, VirtualModel):
        return checked_virtual(given)
    if not isinstance(given, Mapping):
        raise ExtensionMisuse(f"virtual model {given!r}; expected VirtualModel(...) or a dict of its fields")
    known = [each.name for each in attrs.fields(VirtualModel)]
    unknown = [field for field in given if field not in known]
    missing = [field for field in ("provider", "id", "name", "route") if field not in given]
    if unknown or missing:
        wrong = f"no field {unknown[0]!r}; expected {', '.join(known)}" if unknown else f"{missing[0]} is missing"
        raise ExtensionMisuse(f"virtual model: {wrong}")
    values: dict[str, Any] = {field: tuple(value) if isinstance(value, list) else value for field, value in given.items()}
    return checked_virtual(VirtualModel(**values))


def tool_info(tool: RegisteredTool) -> ToolInfo:
    """A tool as extensions list it (EXPO-8)."""
    definition = tool.definition
    return ToolInfo(
        name=definition.name,
        description=definition.description,
        parameters=definition.parameters,
        prompt_guidelines=definition.prompt_guidelines,
        exposure=definition.exposure,
        source_info=codec.encode(tool.source_info),
        namespace=definition.namespace,
        annotations=definition.annotations,
        reaches_tools=definition.reaches_tools,
    )


def _type_name(value: object) -> str:
    names = {bool: "boolean", str: "string", int: "number", float: "number", list: "object", dict: "object"}
    return names.get(type(value), type(value).__name__)
