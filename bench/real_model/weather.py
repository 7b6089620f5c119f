"""An extension for the check with a real model: one tool, and requests that make the model call it.

`FORCED_TOOL_CHOICE` is the value of `tool_choice`, as JSON, because servers of the same API want it in different forms.
"""

import json
import os
from typing import Any, Final

from camshaft.actors.api import ExtensionAPI, TextBlock, ToolDefinition, ToolResult, freeze

PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1, "maxLength": 20},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
    },
    "required": ["city", "days", "unit"],
    "additionalProperties": False,
}


def setup(api: ExtensionAPI) -> None:
    """Registers the tool and the handler."""
    api.register_tool(
        ToolDefinition(
            name="weather",
            label="weather",
            description="The weather of a city for the next days.",
            parameters=freeze(PARAMETERS),
            execute=weather,
        )
    )
    api.on("before_provider_request", forced)


def forced(event: Any, _ctx: Any) -> Any:
    """The request with the tool choice."""
    return {**event.payload, "tool_choice": json.loads(os.environ["FORCED_TOOL_CHOICE"])}


async def weather(*_call: Any) -> ToolResult:
    """Sunny. The run ends: with the same choice the model would call for ever."""
    return ToolResult(content=(TextBlock(text="sunny"),), terminate=True)
