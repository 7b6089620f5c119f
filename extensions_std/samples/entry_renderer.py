"""A sample: something in the history that people see and no model does.

After each run an entry says how long it took and which tools it used. An entry of a custom type is not part of the
context; what people see of it is what the renderer makes of it, here a line of text.

Load it with `camshaft -e entry_renderer.py`. When the run began and what it used is kept in memory until it ends.
"""

from collections import Counter
from typing import Final

from camshaft.actors.api import (
    AgentSettled,
    AgentStart,
    CustomEntry,
    ExtensionAPI,
    ExtensionContext,
    RenderView,
    ToolExecutionEnd,
)

CARD: Final = "run-card"
"""Type of the entries."""


class Run:
    """The run that is under way."""

    def __init__(self, api: ExtensionAPI) -> None:
        self.api = api
        self.began_ms: int | None = None
        self.tools: Counter[str] = Counter()

    def begin(self, _event: AgentStart, ctx: ExtensionContext) -> None:
        """A run begins, or goes on after a retry."""
        if self.began_ms is None:
            self.began_ms = ctx.world.clock.now_ms()

    def used(self, event: ToolExecutionEnd, _ctx: ExtensionContext) -> None:
        """A tool ended."""
        self.tools[event.tool_name] += 1

    def end(self, _event: AgentSettled, ctx: ExtensionContext) -> None:
        """The run is over: the entry, in order of the names."""
        if self.began_ms is None:
            return
        took_ms = ctx.world.clock.now_ms() - self.began_ms
        self.api.append_entry(CARD, {"tookMs": took_ms, "tools": dict(sorted(self.tools.items()))})
        self.began_ms = None
        self.tools.clear()


def setup(api: ExtensionAPI) -> None:
    """Registers hooks and renderer."""
    run = Run(api)
    api.on("agent_start", run.begin)
    api.on("tool_execution_end", run.used)
    api.on("agent_settled", run.end)
    api.register_entry_renderer(CARD, render)


def render(entry: CustomEntry, view: RenderView) -> str | None:
    """The line; the tools only where the view is expanded. None for data of another version of this extension."""
    data = entry.data if isinstance(entry.data, dict) else {}
    took_ms, tools = data.get("tookMs"), data.get("tools")
    if not isinstance(took_ms, int) or not isinstance(tools, dict):
        return None
    line = f"The run took {took_ms / 1000:.1f} s"
    return f"{line} and used {', '.join([f'{name} ×{count}' for name, count in tools.items()])}" if view.expanded and tools else line
