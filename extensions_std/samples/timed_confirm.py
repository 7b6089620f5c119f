"""A sample: dialogs that do not wait for ever, in the two ways there are: a time, and a signal.

`/timed` asks with a time of five seconds, which a frontend may show as a countdown; when it is over, the dialog
counts as not confirmed. `/timed-signal` asks until the run that is active is aborted, so that nobody confirms what
has no meaning any more.

Load it with `camshaft -e timed_confirm.py`. The answers are noted as `custom` entries, which no model sees.
"""

from typing import Final

from camshaft.actors.api import CommandContext, ExtensionAPI

ANSWER: Final = "timed-confirm"
"""Type of the notes."""

TIMEOUT_MS: Final = 5_000


def setup(api: ExtensionAPI) -> None:
    """Registers the commands."""

    async def ask_for_a_while(_arguments: str, ctx: CommandContext) -> None:
        """Asks for five seconds."""
        confirmed = await ctx.ui.confirm("Go on?", "No is assumed in five seconds.", timeout=TIMEOUT_MS)
        api.append_entry(ANSWER, {"way": "timeout", "confirmed": confirmed})

    async def ask_until_abort(_arguments: str, ctx: CommandContext) -> None:
        """Asks until the run is aborted; without a run until somebody answers."""
        confirmed = await ctx.ui.confirm("Go on?", "Until the run is aborted.", signal=ctx.signal)
        api.append_entry(ANSWER, {"way": "signal", "confirmed": confirmed})

    api.register_command("timed", ask_for_a_while, description="Ask for five seconds")
    api.register_command("timed-signal", ask_until_abort, description="Ask until the run is aborted")
