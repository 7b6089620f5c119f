"""A sample: asks before every tool call that may do harm, by what the tools say about themselves.

Load it with `camshaft -e annotation_gate.py`. It asks for a tool that calls itself destructive, and for every
other one that does not call itself read-only, unless it says that it neither destroys nor reaches outside. So
a tool that says nothing is asked about. Annotations are unverified hints: they are worth as much as whoever
wrote the tool. It keeps nothing.
"""

from typing import Final

from camshaft.actors.api import (
    Annotations,
    ExtensionAPI,
    ExtensionContext,
    ToolCallEvent,
    ToolCallResult,
    dumps,
)

SHOWN_CHARACTERS_MAX: Final = 2_000
"""Of the arguments in the question; what is written into a file can be long."""


def setup(api: ExtensionAPI) -> None:
    """Registers the gate; a call that another tool makes passes it as well."""

    async def gate(event: ToolCallEvent, ctx: ExtensionContext) -> ToolCallResult | None:
        if not is_risky(annotations_of(api, event.tool_name)):
            return None
        if not ctx.has_ui:
            return blocked(event, "it may do harm, and there is nobody to ask")
        arguments = dumps(event.input).decode()[:SHOWN_CHARACTERS_MAX]
        if await ctx.ui.confirm(f"Allow {event.tool_name}?", arguments, signal=ctx.signal):
            return None
        return blocked(event, "the user declined it")

    api.on("tool_call", gate)


def annotations_of(api: ExtensionAPI, name: str) -> Annotations:
    """What a tool says about itself."""
    said = next((tool.annotations for tool in api.get_all_tools() if tool.name == name), None)
    return said or Annotations()


def is_risky(said: Annotations) -> bool:
    """Whether to ask. What is not said counts as the worse of the two."""
    if said.destructive_hint is True:
        return True
    if said.read_only_hint is True:
        return False
    return said.destructive_hint is not False or said.open_world_hint is not False


def blocked(event: ToolCallEvent, why: str) -> ToolCallResult:
    """The call does not happen; the model reads why."""
    return ToolCallResult(block=True, reason=f"The call of {event.tool_name} was blocked: {why}.")
