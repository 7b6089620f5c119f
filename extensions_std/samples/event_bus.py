"""A sample of two extensions that know each other by a channel only; this one tells, `event_bus_listener.py` listens.

Load both with `camshaft -e event_bus.py -e event_bus_listener.py`. After every tool call this one emits its name
and whether it failed on the channel `tool-calls`. It does not know who listens; alone, it changes nothing. Values on
the bus are not stored anywhere.
"""

from typing import Final

from camshaft.actors.api import ExtensionAPI, ExtensionContext, ToolExecutionEnd

CHANNEL: Final = "tool-calls"
"""Part of the name of a channel should say whose it is; all extensions share the bus."""


def setup(api: ExtensionAPI) -> None:
    """Registers the teller."""

    def tell(event: ToolExecutionEnd, _ctx: ExtensionContext) -> None:
        api.events.emit(CHANNEL, {"tool": event.tool_name, "failed": event.is_error})

    api.on("tool_execution_end", tell)
