"""From what an author registers as a tool to its definition: fields, an attrs class of parameters, or a typed function.

Theory of operation. However a tool is written, there is one ToolDefinition in the end, with a JSON
schema and an `execute` that takes what the schema lets through. An attrs class as `parameters`
becomes the schema, and `execute` gets an object of it. A typed function says all by itself: its
name, its docstring, its signature; a parameter annotated with ToolContext, Signal or OnUpdate is
not for the model but gets just that. Whatever cannot be a tool raises ExtensionMisuse at
registration, where the author sees it, and not when a model first calls it.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import attrs

from camshaft.actors.actor import is_awaitable
from camshaft.actors.contexts import ToolContext
from camshaft.actors.misuse import ExtensionMisuse, require_callable, require_takes
from camshaft.kernel.errors import CodecError
from camshaft.kernel.messages import TextBlock
from camshaft.kernel.persistent import NotJson, freeze
from camshaft.kernel.tools import EXPOSURES, Annotations, Namespace, OnUpdate, Signal, ToolDefinition, ToolResult
from camshaft.kernel.typed_schemas import NotExpressible, Slot, annotations_of, members, object_schema, slots_of

T = TypeVar("T")

_GIVEN: Final[Mapping[Any, int]] = {Signal: 0, OnUpdate: 1, ToolContext: 2}
"""Annotations of what is no argument of the model, and its place among what `execute` gets after those."""
_NESTED: Final[Mapping[str, type]] = {"namespace": Namespace, "annotations": Annotations}
"""Fields that may be given as a dict."""


def define_tool(  # the fields every tool has; the others by name
    name: str,
    description: str,
    parameters: type[T],
    execute: Callable[[str, T, Signal, OnUpdate, ToolContext], Any],
    **more: Any,
) -> ToolDefinition:
    """A tool whose `execute` gets an object of the attrs class `parameters`; `more` are further fields of ToolDefinition.

    Raises ExtensionMisuse for a class that no schema can say.
    """
    return tool_definition({"name": name, "description": description, "parameters": parameters, "execute": execute, **more}, None)


def tool_definition(given: object, path: str | None, fields: Mapping[str, Any] | None = None) -> ToolDefinition:
    """The definition of what an extension at `path` registers as a tool. Raises ExtensionMisuse."""
    if isinstance(given, ToolDefinition):
        made = {field.name: getattr(given, field.name) for field in attrs.fields(ToolDefinition)}
    elif isinstance(given, Mapping):
        made = dict(given)
    elif inspect.isroutine(given):
        made = {**_of_function(given, _owner(path), fields or {}), **(fields or {})}
    else:
        raise ExtensionMisuse(
            f"tool registered by {_owner(path)}: {given!r}; expected ToolDefinition(...), a dict with its fields or a typed function"
        )
    return _definition(made, path)


def _owner(path: str | None) -> str:
    return "the host" if path is None else f'"{path}"'


def _definition(made: dict[str, Any], path: str | None) -> ToolDefinition:
    owner = _owner(path)
    known = {field.name for field in attrs.fields(ToolDefinition)}
    unknown = [name for name in made if name not in known]
    if unknown:
        raise ExtensionMisuse(f"tool registered by {owner}: no field {unknown[0]!r}; expected {', '.join(sorted(known))}")
    name = made.get("name")
    if not isinstance(name, str) or not name:
        raise ExtensionMisuse(f"tool registered by {owner}: name {name!r}; expected a text")
    where = f'tool "{name}" registered by {owner}'
    _check_fields(made, where)
    if isinstance(made.get("parameters"), type) and attrs.has(made["parameters"]):
        made |= _of_class(made["parameters"], made["execute"], where)
    made["parameters"] = _schema(made.get("parameters"), name, path)
    guidelines = made.pop("prompt_guidelines", None) or ()
    for field, cls in _NESTED.items():
        if isinstance(made.get(field), Mapping):
            made[field] = _nested(cls, made[field], f"{where}: {field}")
    try:
        return ToolDefinition(**made, prompt_guidelines=tuple(guidelines))
    except (TypeError, CodecError) as error:
        raise ExtensionMisuse(f"tool registered by {owner}: {error}") from None


def _check_fields(made: Mapping[str, Any], where: str) -> None:
    """Raises ExtensionMisuse for what the type checker would have found, had it been asked."""
    require_takes(made.get("execute"), f"execute of {where}", "tool_call_id", "params", "signal", "on_update", "ctx")
    for field in ("prepare_arguments", "reaches_tools", "prepare_loadout", "render_call", "render_result"):
        if made.get(field) is not None:
            require_callable(made[field], f"{field} of {where}")
    if not isinstance(made.get("description", ""), str):
        raise ExtensionMisuse(f"{where}: description {made['description']!r}; expected a text")
    if isinstance(made.get("prompt_guidelines"), str):
        raise ExtensionMisuse(f"{where}: prompt_guidelines {made['prompt_guidelines']!r}; expected a list of texts")
    if made.get("exposure", "direct") not in EXPOSURES:
        raise ExtensionMisuse(f"{where}: exposure {made['exposure']!r}; expected one of {', '.join(EXPOSURES)}")
    if made.get("execution_mode") not in (None, "parallel", "sequential"):
        raise ExtensionMisuse(f"{where}: execution_mode {made['execution_mode']!r}; expected parallel or sequential")
    for field, cls in _NESTED.items():
        if not isinstance(made.get(field), cls | Mapping | None):
            raise ExtensionMisuse(f"{where}: {field} {made[field]!r}; expected {cls.__name__}(...) or a dict with its fields")


def _schema(parameters: object, name: str, path: str | None) -> Any:
    said = f'Tool "{name}" registered by extension {_owner(path)} must define an object parameter schema'
    if not isinstance(parameters, Mapping):
        raise ExtensionMisuse(f"{said}.")
    if parameters.get("type", "object") != "object":
        raise ExtensionMisuse(f"{said}, not one of type {parameters['type']!r}.")
    try:
        return freeze(parameters, "parameters")
    except NotJson as error:
        raise ExtensionMisuse(f'tool "{name}" registered by {_owner(path)}: {error}') from None


def _nested(cls: type, given: Mapping[str, Any], where: str) -> Any:
    known = [field.name for field in attrs.fields(cls)]
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ExtensionMisuse(f"{where} has no field {unknown[0]!r}; expected {', '.join(known)}")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    try:
        return cls(**values)
    except TypeError as error:
        raise ExtensionMisuse(f"{where}: {error}") from None


# -- an attrs class of parameters --------------------------------------------------------


def _of_class(cls: type, execute: Callable[..., Any], where: str) -> dict[str, Any]:
    try:
        slots = slots_of(cls)
        schema = object_schema(slots, f"{where}: class {cls.__name__}")
    except NotExpressible as error:
        raise ExtensionMisuse(str(error)) from None

    def run(tool_call_id: str, arguments: dict[str, Any], signal: Signal, on_update: OnUpdate, ctx: ToolContext) -> Any:
        return execute(tool_call_id, cls(**members(slots, arguments)), signal, on_update, ctx)

    return {"parameters": schema, "execute": run}


# -- a typed function --------------------------------------------------------------------


def _of_function(function: Callable[..., Any], owner: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    name = fields.get("name", getattr(function, "__name__", ""))
    where = f"function {getattr(function, '__name__', function)!s} registered as a tool by {owner}"
    description = fields.get("description") or inspect.getdoc(function)
    if not description:
        raise ExtensionMisuse(f"{where} has no docstring; a model reads it as the description of the tool")
    try:
        given, slots = _parameters(function, where)
        schema = object_schema(slots, where)
    except NotExpressible as error:
        raise ExtensionMisuse(str(error)) from None

    @functools.wraps(function)
    async def run(_id: str, arguments: dict[str, Any], signal: Signal, on_update: OnUpdate, ctx: ToolContext) -> Any:
        extras = {parameter: (signal, on_update, ctx)[place] for parameter, place in given.items()}
        answer = function(**members(slots, arguments), **extras)
        return _result(await answer if is_awaitable(answer) else answer)

    return {"name": name, "description": description, "parameters": schema, "execute": run}


def _parameters(function: Callable[..., Any], where: str) -> tuple[dict[str, int], tuple[Slot, ...]]:
    """The parameters that get something of the call, and those for the model."""
    hints = annotations_of(function, where)
    given: dict[str, int] = {}
    slots: list[Slot] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise NotExpressible(f"{where}: parameter {parameter} cannot be named in a call; expected parameters that can be given by name")
        if parameter.name not in hints:
            raise NotExpressible(f"{where}: parameter {parameter.name!r} has no annotation; a model must be told its type")
        annotation = hints[parameter.name]
        place = _place_among_given(annotation)
        if place is not None:
            given[parameter.name] = place
            continue
        default = attrs.NOTHING if parameter.default is parameter.empty else parameter.default
        slots.append(Slot(name=parameter.name, annotation=annotation, default=default))
    return given, tuple(slots)


def _place_among_given(annotation: Any) -> int | None:
    return next((place for known, place in _GIVEN.items() if annotation is known or annotation == known), None)


def _result(answer: Any) -> Any:
    """A text is what the model reads; nothing is an empty answer; the rest are results as any tool's (TOOL-26)."""
    if answer is None:
        return ToolResult(content=())
    return ToolResult(content=(TextBlock(text=answer),)) if isinstance(answer, str) else answer
