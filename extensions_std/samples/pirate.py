"""A sample: `/pirate` lets the model talk like a pirate, `/pirate` again lets it stop.

Every run starts from the base prompt, so the section has to be added for each run in which it shall count;
when it is not added any more, the session gets a patch that takes it away.

Load it with `camshaft -e pirate.py`. Whether it is on is kept in memory, and so is off again after a restart:
a mood is nothing to store.
"""

from typing import Final

from camshaft.actors.api import BeforeAgentStartEvent, CommandContext, ExtensionAPI, ExtensionContext, SessionStartEvent

MANNER: Final = "Talk like a pirate of the old books: hearty, salty, a little boastful. The facts and the code stay exact."
"""The section of the prompt."""


class Pirate:
    """The mood of one conversation."""

    def __init__(self) -> None:
        self.is_on = False

    def calm_down(self, _event: SessionStartEvent, _ctx: ExtensionContext) -> None:
        """A session begins without it."""
        self.is_on = False

    def toggle(self, _arguments: str, ctx: CommandContext) -> None:
        """The command; it counts from the next run on."""
        self.is_on = not self.is_on
        ctx.ui.set_status("pirate", "pirate" if self.is_on else None)

    def add_manner(self, event: BeforeAgentStartEvent, _ctx: ExtensionContext) -> None:
        """Adds the section to the prompt of the run that is about to start."""
        if self.is_on:
            event.system_prompt_options.sections["pirate"] = MANNER


def setup(api: ExtensionAPI) -> None:
    """Registers the command and the hooks; the mood belongs to this loading of the extension."""
    pirate = Pirate()
    api.on("session_start", pirate.calm_down)
    api.on("before_agent_start", pirate.add_manner)
    api.register_command("pirate", pirate.toggle, description="Talk like a pirate, or stop it")
