"""A sample: shows in the status line which turn the agent is at, and what it did when it is done.

A status has a key of its own, stays until it is set again, and is taken away by a call without a text. Where no
status is shown, in JSON mode for example, the calls do nothing.

Load it with `camshaft -e status_line.py`. It keeps the number of turns in memory, for one run, and how long runs
were as `custom` entries, which no model sees.
"""

from typing import Final

from camshaft.actors.api import AgentSettled, ExtensionAPI, ExtensionContext, SessionStartEvent, TurnStartEvent

KEY: Final = "turns"
"""Key of the status, and type of the entries."""


class Turns:
    """The turns of one run."""

    def __init__(self, api: ExtensionAPI) -> None:
        self.api = api
        self.count = 0

    def ready(self, _event: SessionStartEvent, ctx: ExtensionContext) -> None:
        """A session begins."""
        self.count = 0
        ctx.ui.set_status(KEY, "Ready")

    def turn(self, _event: TurnStartEvent, ctx: ExtensionContext) -> None:
        """Shows the turn."""
        self.count += 1
        ctx.ui.set_status(KEY, f"Turn {self.count} …")

    def end(self, event: AgentSettled, ctx: ExtensionContext) -> None:
        """Shows how it ended, retries and continuations included."""
        how = "Stopped" if event.aborted else "Done"
        ctx.ui.set_status(KEY, f"{how} after {self.count} {'turn' if self.count == 1 else 'turns'}")
        self.api.append_entry(KEY, {"turns": self.count, "aborted": event.aborted})
        self.count = 0


def setup(api: ExtensionAPI) -> None:
    """Registers the hooks."""
    turns = Turns(api)
    api.on("session_start", turns.ready)
    api.on("turn_start", turns.turn)
    api.on("agent_settled", turns.end)
