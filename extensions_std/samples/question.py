"""A sample: a tool with which the model asks the person, who picks an answer or writes one.

Only the model may call it (`model-only`): a tool that called it in a loop would fill the screen. Without anybody
to ask, and when the person gives no answer, the result says so and the model goes on by itself.

Load it with `camshaft -e question.py`. The answer is the result, and stands with the choices in its `details`.
"""

from typing import Annotated, Final

from camshaft.actors.api import ExtensionAPI, Signal, TextBlock, ToolContext, ToolResult, freeze

OTHER: Final = "Something else …"
"""The choice that leads to a text of one's own."""


def setup(api: ExtensionAPI) -> None:
    """Registers the tool. Questions of one answer are asked one after the other."""
    api.tool(exposure="model-only", execution_mode="sequential", prompt_snippet="Ask the user a question")(question)


async def question(
    question: Annotated[str, "What to ask"],
    options: Annotated[list[str], "Answers to choose from; the user can also write another"],
    signal: Signal,
    ctx: ToolContext,
) -> ToolResult:
    """Ask the user a question and wait for the answer. Use it when you cannot decide something yourself."""
    if not ctx.has_ui:
        return ToolResult(content=(TextBlock(text="Nobody is there to ask. Decide yourself and say what you assumed."),), is_error=True)
    answer = await ctx.ui.select(question, [*options, OTHER], signal=signal)
    if answer == OTHER:
        answer = await ctx.ui.input(question, signal=signal)
    details = freeze({"question": question, "options": options, "answer": answer})
    text = f"The user answers: {answer}" if answer else "The user gave no answer."
    return ToolResult(content=(TextBlock(text=text),), details=details)
