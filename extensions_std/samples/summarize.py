"""A sample: `/summarize` has a model sum up the conversation, and shows the summary without sending it anywhere.

The model is asked outside the conversation: no run begins, and the agent does not see what was asked. The summary
is kept as a `custom` entry, which no model sees, and shown as a notification; what it cost is a `usage` entry.

Load it with `camshaft -e summarize.py`. It keeps nothing in memory.
"""

from typing import Final

from camshaft.actors.api import CommandContext, ExtensionAPI, Message, MessageEntry, ModelFailed, conversation_text, text_of

SUMMARY: Final = "summary"
"""Type of the entry."""

REQUEST: Final = "Sum up this conversation for the person who had it: what was wanted, what came out, what is open. At most ten lines."


def setup(api: ExtensionAPI) -> None:
    """Registers the command."""

    async def summarize(_arguments: str, ctx: CommandContext) -> None:
        """Shows and keeps a summary of the branch."""
        said = messages_of_branch(ctx)
        if not said:
            ctx.ui.notify("There is nothing to sum up yet", "warning")
            return
        ctx.ui.set_status(SUMMARY, "Summing up …")
        try:
            answer = await ctx.ask_model(f"<conversation>\n{conversation_text(said)}\n</conversation>\n\n{REQUEST}", kind=SUMMARY)
        except ModelFailed as failed:
            ctx.ui.notify(f"No summary: {failed}", "error")
            return
        finally:
            ctx.ui.set_status(SUMMARY)
        text = text_of(answer.content)
        api.append_entry(SUMMARY, {"text": text})
        ctx.ui.notify(text)

    api.register_command("summarize", summarize, description="Sum up the conversation")


def messages_of_branch(ctx: CommandContext) -> list[Message]:
    """All messages of the branch, also those that a compaction took out of the context."""
    return [entry.message for entry in ctx.session.get_branch() if isinstance(entry, MessageEntry)]
