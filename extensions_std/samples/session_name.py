"""A sample: names the session.

Load it with `camshaft -e session_name.py`. `/session-name words` names the session, `/session-name` alone says
its name. A session without a name gets the beginning of its first prompt when the first answer is there. The
name is an entry of the session, so it is there again whenever that is opened.
"""

from typing import Final

from camshaft.actors.api import AgentEndEvent, CommandContext, ExtensionAPI, ExtensionContext, UserMessage, text_of

NAME_CHARACTERS_MAX: Final = 60
"""Of a name that was not chosen; more does not fit a list of sessions."""


def setup(api: ExtensionAPI) -> None:
    """Registers the command, and what names a session by itself."""

    def command(arguments: str, ctx: CommandContext) -> None:
        if arguments.strip():
            api.set_session_name(arguments)
        ctx.ui.notify(f"Session: {api.get_session_name() or 'no name yet'}")

    def name_unnamed(event: AgentEndEvent, _ctx: ExtensionContext) -> None:
        if api.get_session_name() is None:
            api.set_session_name(name_for(event))

    api.register_command("session-name", command, description="Name the session, or say its name")
    api.on("agent_end", name_unnamed)


def name_for(event: AgentEndEvent) -> str:
    """The first line of the first prompt, as far as it fits; empty if there is none."""
    prompt = next((text_of(message.content) for message in event.messages if isinstance(message, UserMessage)), "")
    first_line = prompt.strip().partition("\n")[0]
    if len(first_line) <= NAME_CHARACTERS_MAX:
        return first_line
    return first_line[: NAME_CHARACTERS_MAX - 1].rstrip() + "…"
