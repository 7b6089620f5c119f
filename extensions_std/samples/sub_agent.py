"""A sample: a tool that hands a piece of work to an agent of its own.

    camshaft -e sub_agent.py "Review every file in src, each with a reviewer of its own."

The sub-agent is a child session: it starts with an empty context, so that reading a hundred files does
not fill its parent's, and only its last answer comes back. It has the parent's extensions, so a gate
that protects the parent protects it too, and all of the parent's tools but this one.

What it used is added to the session's usage, because the tool's result says so. An abort of the
parent's run, or of the call, is one of the child. The child's session is kept beside its parent's, and
the result's details name it.
"""

from typing import Final

from camshaft.actors.api import (
    AssistantMessage,
    ChildOptions,
    ExtensionAPI,
    MessageEnd,
    OnUpdate,
    TextBlock,
    ToolContext,
    ToolDefinition,
    ToolResult,
    freeze,
    text_of,
)

NAME: Final = "delegate"

PROMPT: Final = """\
You work on one task that another agent gives you. You do not know its conversation; everything you need is in the task. \
Your last message is the answer it gets, so say there what you found or did, with paths and names."""

PARAMETERS: Final = freeze(
    {
        "type": "object",
        "properties": {
            "task": {"type": "string", "description": "The whole task, with everything one has to know for it"},
            "tools": {"type": "array", "items": {"type": "string"}, "description": "Names of the tools it may use; all if left out"},
        },
        "required": ["task"],
    }
)


def setup(api: ExtensionAPI) -> None:
    """Registers the tool."""
    api.register_tool(
        ToolDefinition(
            name=NAME,
            description="Give a self-contained task to another agent with an empty context; returns its last message.",
            parameters=PARAMETERS,
            execute=delegate,
        )
    )


async def delegate(_call_id: str, arguments: dict[str, object], _signal: object, on_update: OnUpdate, ctx: ToolContext) -> ToolResult:
    """Runs the task in a child session; its answers are shown while it works."""
    named = arguments.get("tools")
    tools = tuple([str(name) for name in named]) if isinstance(named, list | tuple) else None
    options = ChildOptions(append_system_prompt=(PROMPT,), tools=tools, exclude_tools=(NAME,), is_kept=True)
    async with ctx.open_child(options) as child:

        def show(event: object) -> None:
            if isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage):
                on_update(ToolResult(content=(TextBlock(text=text_of(event.message.content)),)))

        child.subscribe(show)
        outcome = await child.prompt(str(arguments["task"]))
    failed = outcome.error is not None
    text = f"The sub-agent failed: {outcome.error}" if failed else outcome.text
    return ToolResult(
        content=(TextBlock(text=text),),
        details=freeze({"session": child.session_file, "stopReason": outcome.stop_reason}),
        usage=outcome.usage,
        is_error=failed,
    )
