"""A sample: the final answer of a run is a call of a tool, so that a program gets fields instead of prose.

The result says `terminate`: if it is the only one of its batch, the model is not asked again. The fields are the
arguments of the call, checked against their schema, and stand as they are in the `details` of the result in the
session; a host that runs the conversation finds them there or in the event `tool_execution_end`.

Load it with `camshaft -e structured_output.py -p "Report on this folder"`. It keeps nothing.
"""

from typing import Annotated

from camshaft.actors.api import ExtensionAPI, TextBlock, ToolResult, freeze

GUIDELINES = ("When the work is done, call final_report as your last action, and write nothing after it.",)


def setup(api: ExtensionAPI) -> None:
    """Registers the tool; only a model can call it, because a tool that did would end nothing."""
    api.tool(prompt_snippet="Give the final answer", prompt_guidelines=GUIDELINES, exposure="model-only")(final_report)


def final_report(
    headline: Annotated[str, "The result in one line"],
    summary: Annotated[str, "What was found or done, in a few sentences"],
    next_steps: Annotated[list[str], "What remains to be done; empty if nothing does"],
) -> ToolResult:
    """Give the final answer as fields. Call it once, at the end."""
    report = freeze({"headline": headline, "summary": summary, "nextSteps": next_steps})
    return ToolResult(content=(TextBlock(text=f"Reported: {headline}"),), details=report, terminate=True)
