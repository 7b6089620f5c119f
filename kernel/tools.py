"""Tools: definitions and results, who may call which, and the plan of a batch.

Exposure (EXPO-1) decides three things about a registered tool: whether the model is told of
it, whether other tools may call it, and whether registering activates it. `EXPOSURES` is
that table; the functions below read it. The active set is an ordered tuple of names.

Arguments are coerced and checked in `arguments.py`; the calls are run by the tool executor.
"""

import fnmatch
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

import attrs

from camshaft.kernel import shapes
from camshaft.kernel.errors import Rejection
from camshaft.kernel.messages import Block, ToolCall, ToolDeclaration, Usage
from camshaft.kernel.persistent import EMPTY, FrozenDict, Json

Exposure = Literal["direct", "model-only", "codemode", "deferred", "hidden"]
ExecutionMode = Literal["parallel", "sequential"]


@shapes.frozen(kw_only=True)
class ToolResult:
    """What a tool gives back; also a partial result (TOOL-26)."""

    content: tuple[Block, ...] | None = None
    """For the model. None is shown as missing to hooks and stored as an empty list (TOOL-9)."""
    details: Json = None
    """Any JSON; stored, never sent to the model."""
    structured_content: Json = None
    """For programmatic callers; never stored, never sent to the model (MSG-32)."""
    usage: Usage | None = None
    """Model work done inside the tool itself, without that of nested calls (NEST-10)."""
    is_error: bool | None = None
    """Only true counts (TOOL-25)."""
    terminate: bool | None = None
    """True: no automatic next request if every result of the batch says so (TOOL-40)."""
    extra: FrozenDict = EMPTY
    """Fields that the tool wrote out as null, by their JSON names: shown as null, not as missing (MSG-3)."""


@shapes.frozen(kw_only=True)
class CallOutcome:
    """How one call ended."""

    tool_call: ToolCall
    result: ToolResult
    is_error: bool
    duration_ms: int | None = None
    """Whole ms of `execute`; None if it did not run (TOOL-8)."""
    nested_calls: FrozenDict | None = None
    """Record of the calls a model-issued call made (NEST-8)."""


class Signal(Protocol):
    """A cooperative request to stop: it has a flag and can be awaited, and forces nothing."""

    @property
    def cancelled(self) -> bool:
        """Whether an abort was requested."""

    async def wait(self) -> None:
        """Returns when an abort is requested, at once if it was."""


OnUpdate = Callable[[Any], None]
"""Takes a ToolResult or a dict with its snake_case fields; never blocks."""

Execute = Callable[[str, dict[str, Any], Signal, OnUpdate, Any], Awaitable[Any]]
"""`execute(tool_call_id, params, signal, on_update, ctx)`; the result is a ToolResult or such a dict."""


@shapes.frozen(kw_only=True)
class Namespace:
    """A group of tools."""

    name: str
    aliases: tuple[str, ...] | None = None
    description: str | None = None
    instructions: str | None = None


@shapes.frozen(kw_only=True)
class Annotations:
    """Unverified hints; absent = not read-only, may be destructive, open world."""

    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


@shapes.frozen(kw_only=True)
class ToolDefinition:
    """A tool as its owner registers it (TOOL-1, TOOL-2)."""

    name: str
    """Unique among visible tools; used by the model."""
    description: str
    """For the model."""
    parameters: FrozenDict
    """JSON Schema of an object."""
    execute: Execute = attrs.field(repr=False)
    """`async execute(tool_call_id, params, signal, on_update, ctx)`; gives a ToolResult or a dict with its fields, or raises."""
    label: str = ""
    """For people; empty: the name."""
    prompt_snippet: str | None = None
    """One line of the prompt's tool list; tools without it are not listed."""
    prompt_guidelines: tuple[str, ...] = ()
    """Lines of the prompt's guidelines while the tool is active."""
    prepare_arguments: Callable[[Any], Any] | None = attrs.field(default=None, repr=False)
    """Synchronous; runs before validation."""
    output_schema: FrozenDict | None = None
    """JSON Schema of `structured_content`."""
    execution_mode: ExecutionMode | None = None
    """None: the session's default, parallel."""
    exposure: Exposure = "direct"
    """Who may call it: `direct` model and tools, `model-only` the model, `codemode` tools, `deferred` on request, `hidden` nobody."""
    default_active: bool = True
    """Whether it becomes active when it is registered."""
    namespace: Namespace | None = None
    """The group it belongs to."""
    annotations: Annotations | None = None
    """Hints for hosts that ask before a call."""
    reaches_tools: Callable[[Any], Any] | None = attrs.field(default=None, repr=False)
    """`reaches_tools(arguments)` says which tools a call may reach: "all" or a list of words (TOOL-1)."""
    prepare_loadout: Callable[[Any], Any] | None = attrs.field(default=None, repr=False)
    """`prepare_loadout(loadout)` may change what is declared while the tool is active (EXPO-20)."""
    render_shell: str | None = None
    """For frontends: how the frame around a call is shown."""
    render_call: Callable[..., Any] | None = attrs.field(default=None, repr=False)
    """For frontends: how a call is shown; None: the default way."""
    render_result: Callable[..., Any] | None = attrs.field(default=None, repr=False)
    """For frontends: how a result is shown; None: the default way."""
    constrained_sampling: Json = None
    """How a provider may constrain the arguments; passed on as it is."""
    replay: Literal["never", "safe"] = "never"
    """Whether a call whose outcome a crash made unknown may run again."""

    @property
    def declaration(self) -> ToolDeclaration:
        """What the model is told (MSG-19)."""
        return ToolDeclaration(
            name=self.name,
            description=self.description,
            parameters=self.parameters,
            constrained_sampling=self.constrained_sampling,
        )


@shapes.frozen(kw_only=True)
class SourceInfo:
    """Who owns a tool or a command (EXT-12)."""

    path: str
    source: str
    scope: str = "temporary"
    origin: str = "top-level"
    base_dir: str | None = None


@shapes.frozen(kw_only=True)
class RegisteredTool:
    """A definition and its owner."""

    definition: ToolDefinition
    source_info: SourceInfo
    declaration: ToolDeclaration = attrs.field(init=False, eq=False)
    """The definition's, made once, so that comparing it with what was declared is a look at one object."""

    @declaration.default
    def _declared(self) -> ToolDeclaration:
        return self.definition.declaration


@shapes.frozen(kw_only=True)
class ExposureRow:
    """What an exposure means (EXPO-1)."""

    declared: Literal["active", "never"]
    callable_by_tools: Literal["active", "always", "never"]
    activates: bool
    """Whether registering activates the tool, unless `default_active` is false."""


EXPOSURES: Final[Mapping[Exposure, ExposureRow]] = {
    "direct": ExposureRow(declared="active", callable_by_tools="active", activates=True),
    "model-only": ExposureRow(declared="active", callable_by_tools="never", activates=True),
    "codemode": ExposureRow(declared="active", callable_by_tools="always", activates=False),
    "deferred": ExposureRow(declared="active", callable_by_tools="always", activates=False),
    "hidden": ExposureRow(declared="never", callable_by_tools="never", activates=False),
}

DEFAULT_TOOLS: Final = ("read", "bash", "edit", "write")
"""Built-in tools that are active unless something else is chosen (EXPO-30)."""

Tools = Mapping[str, RegisteredTool]
"""The visible tools by name, in registration order."""


def activates(definition: ToolDefinition) -> bool:
    """Whether registering this tool activates it (EXPO-1, EXPO-2)."""
    return EXPOSURES[definition.exposure].activates and definition.default_active


def with_active(current: Sequence[str], wanted: Sequence[str], tools: Tools) -> tuple[str, ...]:
    """The active set after asking for `wanted`: unknown and never declared names are ignored,
    names that stay keep their order, new ones follow (EXPO-3)."""
    possible = [name for name in dict.fromkeys(wanted) if _declarable(name, tools)]
    stay = [name for name in current if name in possible]
    return tuple(stay + [name for name in possible if name not in stay])


def after_registration(
    current: Sequence[str], definition: ToolDefinition, *, filtered: bool = False, is_awaited: bool = False
) -> tuple[str, ...]:
    """The active set after a (re-)registration during a session (TOOL-2, EXPO-2); an awaited tool is activated (EXPO-7)."""
    if EXPOSURES[definition.exposure].declared == "never":
        return tuple([name for name in current if name != definition.name])
    if definition.name in current or not (is_awaited or (activates(definition) and not filtered)):
        return tuple(current)
    return (*current, definition.name)


def callable_names(active: Sequence[str], tools: Tools) -> tuple[str, ...]:
    """What tools may call: active `direct` tools, all `codemode` and `deferred` ones (EXPO-5)."""
    return tuple([name for name, tool in tools.items() if _callable(name, tool, active)])


def selected_at_start(
    choice: Sequence[str] | None, excluded: Sequence[str], tools: Tools, *, defaults: Sequence[str] = DEFAULT_TOOLS
) -> tuple[str, ...] | Rejection:
    """The active set of a new session (EXPO-30): an allowlist with `*` patterns, or only `+name`/`-name`
    modifiers of the default; `excluded` is applied after."""
    modifiers = [name for name in choice or () if name[:1] in "+-" and name]
    if choice and modifiers and len(modifiers) != len(choice):
        return Rejection(f"tools {list(choice)!r} mix names with +name/-name; use either a list of names or only modifiers")
    if any("*" in name for name in modifiers):
        return Rejection(f"tools {list(choice or ())!r}: +name and -name take no patterns")
    if choice is None or modifiers:
        active = [name for name, tool in tools.items() if _starts_active(tool, defaults)]
        added = [name[1:] for name in modifiers if name.startswith("+")]
        dropped = [name[1:] for name in modifiers if name.startswith("-")]
        active = [name for name in [*active, *added] if name not in dropped]
    else:
        active = [name for pattern in choice for name in tools if allows((pattern,), (), name)]
    return with_active((), [name for name in active if allows(None, excluded, name)], tools)


def allows(choice: Sequence[str] | None, excluded: Sequence[str], name: str) -> bool:
    """Whether a tool of this name may be registered under an allowlist and a deny list (EXPO-30)."""
    if any(fnmatch.fnmatchcase(name, pattern) for pattern in excluded):
        return False
    if choice is None or all(each[:1] in "+-" for each in choice if each):
        return choice != ()
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in choice)


def is_sequential(calls: Sequence[ToolCall], active: Sequence[str], tools: Tools, *, session_mode: ExecutionMode) -> bool:
    """Whether the whole batch runs one call after the other (TOOL-38)."""
    called = [tools[call.name] for call in calls if call.name in active and call.name in tools]
    return session_mode == "sequential" or any(tool.definition.execution_mode == "sequential" for tool in called)


def _declarable(name: str, tools: Tools) -> bool:
    tool = tools.get(name)
    return tool is not None and EXPOSURES[tool.definition.exposure].declared == "active"


def _callable(name: str, tool: RegisteredTool, active: Sequence[str]) -> bool:
    rule = EXPOSURES[tool.definition.exposure].callable_by_tools
    return rule == "always" or (rule == "active" and name in active)


def _starts_active(tool: RegisteredTool, defaults: Sequence[str]) -> bool:
    if tool.source_info.source == "builtin":
        return tool.definition.name in defaults
    return activates(tool.definition)
