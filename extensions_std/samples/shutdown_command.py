"""A sample: ends the program, by a command or by the model when its work is done.

Load it with `camshaft -e shutdown_command.py`. `/shutdown` ends it, and so does the tool `finish`. Both only
ask: the host ends when no run is active any more, and `session_shutdown` handlers run then. Where nobody sits in
front of it (`-p`), asking changes nothing, the program ends by itself. It keeps nothing.
"""

from camshaft.actors.api import CommandContext, ExtensionAPI, TextBlock, ToolContext, ToolResult


def setup(api: ExtensionAPI) -> None:
    """Registers the command and the tool."""
    api.register_command("shutdown", shut_down, description="End the program when nothing is under way")
    api.register_tool(finish)


def shut_down(_arguments: str, ctx: CommandContext) -> None:
    """Asks the host to end."""
    ctx.shutdown()


def finish(summary: str, ctx: ToolContext) -> ToolResult:
    """Ends the program. Call it once, when everything you were asked for is done; the summary is the last thing people read."""
    ctx.shutdown()
    return ToolResult(content=(TextBlock(text=summary),), terminate=True)
