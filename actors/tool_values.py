"""What goes into a tool and what comes out of it: arguments checked, results read, errors made.

Both ends meet code that is not ours, so nothing is taken for what its type says.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from camshaft.actors.actor import Failure, Value, guard_now
from camshaft.kernel import codec
from camshaft.kernel.arguments import prepared_arguments
from camshaft.kernel.messages import TextBlock, ToolCall
from camshaft.kernel.persistent import EMPTY, FrozenDict, freeze, thaw
from camshaft.kernel.tools import RegisteredTool, ToolResult

SHOWN_MAX: Final = 80
"""Characters of a value that a message shows."""
EXPECTED: Final = "expected ToolResult(content=...) or a dict with its fields; of a typed function a text, or None"


def checked_arguments(tool: RegisteredTool, call: ToolCall) -> FrozenDict:
    """Prepared, coerced and valid arguments (TOOL-12 to TOOL-17). Raises InvalidArguments, or what the tool's preparation raises."""
    definition, given = tool.definition, thaw(call.arguments)
    if definition.prepare_arguments is not None:
        given = definition.prepare_arguments(given)
    checked: FrozenDict = freeze(prepared_arguments(call.name, definition.parameters, given, call.arguments_error), "arguments")
    return checked


def read_result(value: Any, name: str) -> tuple[ToolResult, str | None]:
    """What a tool returned, and what is wrong with it; anything that is no result object is an error saying so (TOOL-27)."""
    read = None if value is None else guard_now(codec.python, ToolResult, value)
    if isinstance(read, Value):
        return attrs.evolve(read.value, extra=_nulls(value)) if isinstance(value, Mapping) else read.value, None
    wrong = "returned no result; expected a result object with content"
    if isinstance(read, Failure):
        shown = read.text if isinstance(value, Mapping | ToolResult) else f"{_beginning(value)} ({type(value).__name__}); {EXPECTED}"
        wrong = f"returned no valid result object: {shown}"
    return error_result(f"Tool {name} {wrong}"), f"Tool {name} {wrong}"


def _beginning(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= SHOWN_MAX else shown[:SHOWN_MAX] + "…"


def error_result(text: str) -> ToolResult:
    """The result of a call that failed with this text; its details are empty, not missing (MSG-33)."""
    return ToolResult(content=(TextBlock(text=text),), details=EMPTY)


def _nulls(value: Mapping[str, Any]) -> FrozenDict:
    """The fields written out as null, by their JSON names."""
    return FrozenDict({codec.camel(name): None for name in _NULLABLE if name in value and value[name] is None})


_NULLABLE: Final = ("content", "details", "structured_content", "usage", "is_error", "terminate")
