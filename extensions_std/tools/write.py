"""The `write` tool: a whole new content for a file (TOOL-86)."""

from typing import Any, Final

from camshaft.actors.api import (
    Annotations,
    Files,
    FrozenDict,
    OnUpdate,
    Signal,
    TextBlock,
    ToolDefinition,
    ToolResult,
    freeze,
)
from camshaft.extensions_std.tools.failures import os_failure, raise_if_aborted
from camshaft.extensions_std.tools.paths import path_of
from camshaft.extensions_std.tools.text_file import utf8_lines

PARAMETERS: Final[FrozenDict] = freeze(
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "File to write, absolute or relative to the working directory"},
            "content": {"type": "string", "description": "The whole new content"},
        },
        "required": ["path", "content"],
    }
)


def create_write_tool(*, files: Files | None = None, cwd: str | None = None) -> ToolDefinition:
    """The tool; with `files` it writes there instead of in the session's world, `cwd` serves a context without one."""

    async def execute(_id: str, params: dict[str, Any], signal: Signal, _on_update: OnUpdate, ctx: Any) -> ToolResult:
        target = files or ctx.world.files
        path, data = path_of(params, ctx, cwd), utf8_lines(params["content"], b"\n")
        try:
            async with target.changing(path):
                raise_if_aborted(signal)
                await target.make_folder(path.rpartition("/")[0] or "/")
                raise_if_aborted(signal)
                await target.write(path, data)
        except OSError as error:
            raise os_failure("write", params["path"], error) from error
        # TOOL-55: what was written stays, though the call is reported as aborted.
        raise_if_aborted(signal)
        return ToolResult(content=(TextBlock(text=f"Wrote {len(data)} bytes to {params['path']}"),))

    return ToolDefinition(
        name="write",
        label="Write",
        description="Write a file: create it, with its folders, or replace its whole content.",
        parameters=PARAMETERS,
        execute=execute,
        prompt_snippet="Create a file or replace its whole content",
        prompt_guidelines=("Use write for new files and complete rewrites only.",),
        annotations=Annotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False),
    )
