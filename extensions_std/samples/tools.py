"""A sample: switches tools on and off, for the branch of the session that is active.

Load it with `camshaft -e tools.py`. `/tools` lists the tools, `/tools off bash write` and `/tools on bash` switch
some. The choice is a `custom` entry, so it belongs to the branch it was made on: it is there again when the session is
opened, and another branch has its own. It counts from the next request on.
"""

from typing import Any, Final

from camshaft.actors.api import (
    CommandContext,
    CustomEntry,
    ExtensionAPI,
    ExtensionContext,
    SessionStartEvent,
    SessionTreeEvent,
)

CHOICE: Final = "tools"
"""Type of the entries; their data is a list of names."""


def setup(api: ExtensionAPI) -> None:
    """Registers the command, and the two moments at which another branch becomes the active one."""

    def command(arguments: str, ctx: CommandContext) -> None:
        verb, *names = arguments.split() or [""]
        known = {tool.name for tool in api.get_all_tools()}
        unknown = [name for name in names if name not in known]
        if unknown:
            ctx.ui.notify(f"No such tools: {', '.join(unknown)}", "warning")
        elif verb in ("on", "off"):
            choose(api, verb, names)
        ctx.ui.notify(overview(api))

    def restore(_event: SessionStartEvent | SessionTreeEvent, ctx: ExtensionContext) -> None:
        chosen = chosen_on_branch(ctx)
        if chosen is not None:
            api.set_active_tools(chosen)

    api.register_command("tools", command, description="List tools, or switch them on and off")
    api.on("session_start", restore)
    api.on("session_tree", restore)


def choose(api: ExtensionAPI, verb: str, names: list[str]) -> None:
    """Makes and stores the choice."""
    active = [name for name in api.get_active_tools() if name not in names]
    api.set_active_tools([*active, *names] if verb == "on" else active)
    api.append_entry(CHOICE, api.get_active_tools())


def chosen_on_branch(ctx: ExtensionContext) -> list[Any] | None:
    """The last choice on the active branch; None if there is none."""
    for entry in reversed(ctx.session.get_branch()):
        if isinstance(entry, CustomEntry) and entry.custom_type == CHOICE and isinstance(entry.data, list | tuple):
            return list(entry.data)
    return None


def overview(api: ExtensionAPI) -> str:
    """Every tool, with a mark if it is on."""
    active = api.get_active_tools()
    return "\n".join(f"[{'x' if tool.name in active else ' '}] {tool.name}" for tool in api.get_all_tools())
