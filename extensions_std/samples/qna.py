"""A sample: `/qna` takes the questions out of the last answer and puts them into the editor, to be answered there.

An answer that ends with five questions is tedious to answer in order. A model lists them, outside the
conversation, each with an empty line for the answer; the person fills in and sends.

Load it with `camshaft -e qna.py`. It keeps nothing; what the request cost is a `usage` entry.
"""

from typing import Final

from camshaft.actors.api import AssistantMessage, CommandContext, ExtensionAPI, MessageEntry, ModelFailed, text_of

SYSTEM_PROMPT: Final = """List the questions that the text asks its reader, in their order, and nothing else.
For each question write two lines and an empty one: "Q: " with the question, made understandable by itself, then "A: ".
If it asks nothing, write exactly: No questions"""

NOTHING: Final = "No questions"


def setup(api: ExtensionAPI) -> None:
    """Registers the command."""
    api.register_command("qna", list_questions, description="Put the questions of the last answer into the editor")


async def list_questions(_arguments: str, ctx: CommandContext) -> None:
    """Fills the editor with the questions of the last answer."""
    text = last_answer(ctx)
    if not text:
        ctx.ui.notify("There is no answer yet", "warning")
        return
    try:
        answer = await ctx.ask_model(text, system_prompt=SYSTEM_PROMPT, thinking_level="off", kind="qna")
    except ModelFailed as failed:
        ctx.ui.notify(f"No questions: {failed}", "error")
        return
    questions = text_of(answer.content).strip()
    if questions == NOTHING:
        ctx.ui.notify("The last answer asks nothing")
    else:
        ctx.ui.set_editor_text(questions)


def last_answer(ctx: CommandContext) -> str:
    """The text of the last message of the model on the branch; empty if there is none."""
    answers = [
        entry.message
        for entry in ctx.session.get_branch()
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage)
    ]
    return text_of(answers[-1].content) if answers else ""
