"""A sample: commands that say something to the model in the user's place, now or while it works.

Load it with `camshaft -e send_user_message.py`. `/ask words` begins a run, or waits in line behind the one that
is active. `/steer words` reaches the active run before its next request. `/each a; b; c` asks for several things,
one run after the other. It keeps nothing: what is sent are ordinary messages of the session.
"""

from camshaft.actors.api import CommandContext, ExtensionAPI


def setup(api: ExtensionAPI) -> None:
    """Registers the three commands."""

    def ask(arguments: str, ctx: CommandContext) -> None:
        api.send_user_message(arguments, deliver_as=None if ctx.is_idle() else "followUp")

    def steer(arguments: str, ctx: CommandContext) -> None:
        if ctx.is_idle():
            ctx.ui.notify("Nothing is under way that could be steered.", "warning")
        else:
            api.send_user_message(arguments, deliver_as="steer")

    async def each(arguments: str, ctx: CommandContext) -> None:
        for text in [part.strip() for part in arguments.split(";") if part.strip()]:
            await ctx.wait_for_idle()
            api.send_user_message(text)

    api.register_command("ask", ask, description="Ask, now or after what is under way")
    api.register_command("steer", steer, description="Say something to the run that is active")
    api.register_command("each", each, description="Ask for several things, separated by semicolons")
