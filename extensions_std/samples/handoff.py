"""A sample: `/handoff GOAL` goes on with a new goal in a new session that knows what matters of this one.

A compaction keeps one long session alive; a handoff begins a short one. A model writes the first prompt of the new
session from this conversation and the goal, the person may change it, then the session is replaced and the prompt
is sent. If the person leaves the editor, everything stays as it is.

Load it with `camshaft -e handoff.py`. It keeps nothing; the new session names this one as its parent, and what the
request cost is a `usage` entry here.
"""

from typing import Final

from camshaft.actors.api import CommandContext, ExtensionAPI, MessageEntry, ModelFailed, ReplacedSessionContext, conversation_text, text_of

REQUEST: Final = """Write the first prompt of a new conversation that goes on from this one with another goal. Whoever answers it knows
nothing of this one: say what was decided and found that matters for the goal, which files it is about, and then the
task. Write the prompt only. The goal: """


def setup(api: ExtensionAPI) -> None:
    """Registers the command."""
    api.register_command("handoff", hand_off, description="Go on with a goal in a new session")


async def hand_off(arguments: str, ctx: CommandContext) -> None:
    """Makes the prompt, replaces the session, sends the prompt there."""
    goal = arguments.strip()
    if not goal:
        ctx.ui.notify("Say what the new session is for: /handoff GOAL", "error")
        return
    prompt = await written_prompt(goal, ctx)
    if prompt is None:
        return
    text = prompt

    async def begin(new: ReplacedSessionContext) -> None:
        """In the new session, where this context is stale: only `new` may be used."""
        await new.send_user_message(text)

    await ctx.new_session(parent_session=ctx.session.get_session_file(), with_session=begin)


async def written_prompt(goal: str, ctx: CommandContext) -> str | None:
    """The prompt as the person wants it; without a person as the model wrote it. None: nothing shall happen."""
    messages = [entry.message for entry in ctx.session.get_branch() if isinstance(entry, MessageEntry)]
    question = f"<conversation>\n{conversation_text(messages)}\n</conversation>\n\n{REQUEST}{goal}"
    try:
        answer = await ctx.ask_model(question, kind="handoff")
    except ModelFailed as failed:
        ctx.ui.notify(f"No handoff: {failed}", "error")
        return None
    prompt = text_of(answer.content)
    if not ctx.has_ui:
        return prompt
    return await ctx.ui.editor("First prompt of the new session", prompt)
