"""A sample: registers tools after the start: one when a session starts, others when a person asks for them.

A tool can be registered at any time. With the next request the model is told of it, and the prompt gets its
snippet and its guidelines. `/add-echo NAME PREFIX` adds a tool that gives a text back behind a prefix.

Load it with `camshaft -e dynamic_tools.py`. The tools that a person added are noted as `custom` entries and made
again when the session is opened anew, because the history may tell the model of them.
"""

import re
from typing import Annotated, Final

from camshaft.actors.api import CommandContext, CustomEntry, ExtensionAPI, ExtensionContext, SessionStartEvent

ADDED: Final = "echo-tool"
"""Type of the notes."""

NAME: Final = re.compile(r"[a-z][a-z0-9_]*")


def setup(api: ExtensionAPI) -> None:
    """Registers the hook and the command; the tools come later."""

    def start(_event: SessionStartEvent, ctx: ExtensionContext) -> None:
        """Makes the tools of this session."""
        add_echo(api, "echo_session", "[session] ")
        for entry in ctx.session.get_entries():
            if isinstance(entry, CustomEntry) and entry.custom_type == ADDED and isinstance(entry.data, dict):
                add_echo(api, str(entry.data["name"]), str(entry.data["prefix"]))

    def add(arguments: str, ctx: CommandContext) -> None:
        """The command."""
        name, _, prefix = arguments.lstrip().partition(" ")
        if not NAME.fullmatch(name):
            ctx.ui.notify(f"{name!r} is no name for a tool; expected small letters, digits and underscores", "error")
        elif name in [tool.name for tool in api.get_all_tools()]:
            ctx.ui.notify(f"There is a tool {name!r} already", "warning")
        else:
            add_echo(api, name, prefix)
            api.append_entry(ADDED, {"name": name, "prefix": prefix})
            ctx.ui.notify(f"Added the tool {name!r}")

    api.on("session_start", start)
    api.register_command("add-echo", add, description="Add a tool that gives a text back behind a prefix")


def add_echo(api: ExtensionAPI, name: str, prefix: str) -> None:
    """Registers a tool, which activates it."""

    def echo(text: Annotated[str, "What to give back"]) -> str:
        return prefix + text

    api.tool(
        name=name,
        description=f"Give a text back behind {prefix!r}.",
        prompt_snippet=f"Give a text back behind {prefix!r}",
        prompt_guidelines=(f"Use {name} when somebody asks for an echo.",),
    )(echo)
