"""A sample: a tool with which the model asks the person several questions at once, one dialog after the other.

Each question is a choice, a yes or no, or a text. Whoever leaves one dialog without an answer leaves them all;
the answers so far are given all the same. Only the model may call it, as in `question.py`, where the case of
nobody being there is explained.

Load it with `camshaft -e questionnaire.py`. The answers are the result, and stand by question in its `details`.
"""

from typing import Annotated, Literal

import attrs

from camshaft.actors.api import ExtensionAPI, Signal, TextBlock, ToolContext, ToolResult, freeze


@attrs.frozen
class Question:
    """One question."""

    id: str = attrs.field(metadata={"description": "Short name of the question, unique in this call"})
    text: str = attrs.field(metadata={"description": "What to ask"})
    kind: Literal["choice", "yes-no", "text"] = "text"
    options: tuple[str, ...] = attrs.field(default=(), metadata={"description": "Answers to choose from, for a choice"})


def setup(api: ExtensionAPI) -> None:
    """Registers the tool. Two questionnaires of one answer follow each other."""
    api.tool(exposure="model-only", execution_mode="sequential", prompt_snippet="Ask the user several questions")(questionnaire)


async def questionnaire(questions: Annotated[list[Question], "At least one"], signal: Signal, ctx: ToolContext) -> ToolResult:
    """Ask the user several questions that belong together, and wait for the answers."""
    if not ctx.has_ui:
        return ToolResult(content=(TextBlock(text="Nobody is there to ask. Decide yourself and say what you assumed."),), is_error=True)
    answers: dict[str, str] = {}
    for number, question in enumerate(questions, start=1):
        answer = await ask(question, f"({number}/{len(questions)}) {question.text}", signal, ctx)
        if answer is None:
            break
        answers[question.id] = answer
    lines = [f"{question.id}: {answers.get(question.id, '(no answer)')}" for question in questions]
    details = freeze({"answers": answers, "complete": len(answers) == len(questions)})
    return ToolResult(content=(TextBlock(text="\n".join(lines)),), details=details)


async def ask(question: Question, title: str, signal: Signal, ctx: ToolContext) -> str | None:
    """The answer to one question; None if there is none. No to a yes-no question is an answer, so it is a choice of two."""
    if question.kind == "text":
        return await ctx.ui.input(title, signal=signal)
    options = ("Yes", "No") if question.kind == "yes-no" else question.options
    return await ctx.ui.select(title, options, signal=signal)
