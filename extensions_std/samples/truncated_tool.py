"""A sample: a tool whose output may be long, and what a tool owes the model then.

A result fills the context for the rest of the session. So at most 2000 lines or 50 KiB are given, whichever comes
first; the model is told what is missing, and where all of it is, in a file that it can read in pieces.

Load it with `camshaft -e truncated_tool.py`. Whole outputs stay in the temporary folder, readable only by their
owner; the result's `details` name the file, so that a frontend can offer it.
"""

from typing import Annotated

from camshaft.actors.api import (
    ExtensionAPI,
    Signal,
    TextBlock,
    ToolContext,
    ToolResult,
    Truncation,
    encode,
    freeze,
    size_text,
    truncate_head,
)

Pattern = Annotated[str, "An extended regular expression"]
Folder = Annotated[str, "Where to look; default: the working directory"]


def setup(api: ExtensionAPI) -> None:
    """Registers the tool."""

    async def search_all(pattern: Pattern, signal: Signal, ctx: ToolContext, path: Folder = ".") -> ToolResult:
        """Find all lines that match a pattern, in all files below a folder. At most 2000 lines or 50 KiB are shown."""
        ended = await api.exec("grep", ["-rnIE", "-e", pattern, "--", path], signal=signal, cwd=ctx.cwd)
        if ended.code > 1:  # 1: no line matches.
            raise RuntimeError(ended.stderr.strip() or f"grep ended with {ended.code}")
        return await limited(ended.stdout, ctx)

    api.tool(prompt_snippet="Find all lines that match a pattern")(search_all)


async def limited(output: str, ctx: ToolContext) -> ToolResult:
    """The result of a tool whose whole output is `output`."""
    cut = truncate_head(output)
    if not cut.truncated:
        return ToolResult(content=(TextBlock(text=output or "No matches"),))
    path = await stored(output, ctx)
    details = freeze({"truncation": encode(cut), "fullOutputPath": path})
    return ToolResult(content=(TextBlock(text=f"{cut.content}\n\n{notice(cut, path)}"),), details=details)


async def stored(output: str, ctx: ToolContext) -> str:
    """The path of a new file with the whole output."""
    folder = ctx.world.environment.get("TMPDIR", "/tmp").rstrip("/")
    file = await ctx.world.files.create_private(f"{folder}/search-{ctx.world.ids.token()}.txt")
    try:
        await file.write(output.encode("utf-8", "replace"))
    finally:
        file.close()
    return file.path


def notice(cut: Truncation, path: str) -> str:
    """What the model is told of the rest."""
    lines = f"{cut.output_lines} of {cut.total_lines} lines"
    sizes = f"{size_text(cut.output_bytes)} of {size_text(cut.total_bytes)}"
    return f"[Shown are {lines} ({sizes}). The whole output is in {path}: read it with offset and limit, or search for less.]"
