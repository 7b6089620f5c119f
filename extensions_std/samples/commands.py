"""A sample: lists everything that can be called by name, with where it comes from.

Load it with `camshaft -e commands.py`. `/commands` lists all, `/commands extension`, `/commands prompt` and
`/commands skill` one kind. It keeps nothing.
"""

from typing import Any, Final

from camshaft.actors.api import CommandContext, CommandInfo, Completion, ExtensionAPI

KINDS: Final = ("extension", "prompt", "skill")


def setup(api: ExtensionAPI) -> None:
    """Registers the command and the completion of its argument."""

    def command(arguments: str, ctx: CommandContext) -> None:
        kind = arguments.strip()
        if kind and kind not in KINDS:
            ctx.ui.notify(f"No kind {kind!r}; the kinds are {', '.join(KINDS)}.", "warning")
            return
        lines = [line_for(each) for each in api.get_commands() if kind in ("", each.source)]
        ctx.ui.notify("\n".join(lines) or f"There are no commands of the kind {kind}.")

    api.register_command("commands", command, description="List what can be called by name", get_argument_completions=complete)


def complete(prefix: str) -> list[Completion]:
    """The kinds that begin like this."""
    return [Completion(value=kind, label=kind) for kind in KINDS if kind.startswith(prefix)]


def line_for(command: CommandInfo) -> str:
    """Name, description and where it comes from."""
    origin: Any = command.source_info or {}
    where = origin.get("path", "unknown")
    about = f": {command.description}" if command.description else ""
    return f"/{command.name}{about} ({command.source}, {origin.get('scope', 'unknown')}, {where})"
