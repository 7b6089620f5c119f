"""A sample: a message with a look of its own.

`/status-update LEVEL TEXT` sends a message of a custom type into the conversation: the model gets its text with the
next request, people see what the renderer makes of it. A renderer gives data, not pixels: here a text with a mark;
a frontend may also know richer values. One that gives None leaves the message to the default way.

Load it with `camshaft -e message_renderer.py`. The message is in the session, with its level in `details`.
"""

from collections.abc import Mapping
from typing import Final

from camshaft.actors.api import CommandContext, CustomInput, CustomMessage, ExtensionAPI, RenderView, freeze, text_of

UPDATE: Final = "status-update"
"""Type of the messages."""

MARKS: Final[Mapping[str, str]] = {"info": "·", "good": "✓", "bad": "✗"}


def setup(api: ExtensionAPI) -> None:
    """Registers command and renderer."""

    def send(arguments: str, ctx: CommandContext) -> None:
        """The command."""
        level, _, text = arguments.strip().partition(" ")
        if level not in MARKS or not text:
            ctx.ui.notify(f"Expected one of {', '.join(MARKS)} and a text", "error")
            return
        api.send_message(CustomInput(custom_type=UPDATE, content=text, display=True, details=freeze({"level": level})))

    api.register_command("status-update", send, description="Send a message with a mark")
    api.register_message_renderer(UPDATE, render)


def render(message: CustomMessage, view: RenderView) -> str | None:
    """The marked text, its first line where the view is not expanded; None for a message of another version of this extension."""
    mark = MARKS.get(str(message.details.get("level"))) if isinstance(message.details, dict) else None
    if mark is None:
        return None
    text = text_of(message.content)
    first_line, _, _ = text.partition("\n")
    return f"{mark} {text if view.expanded else first_line}"
