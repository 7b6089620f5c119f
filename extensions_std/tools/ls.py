"""The `ls` tool: the names in a folder (TOOL-92)."""

from typing import Any, Final

from camshaft.actors.api import (
    Annotations,
    Files,
    FolderEntry,
    FrozenDict,
    OnUpdate,
    Signal,
    TextBlock,
    ToolDefinition,
    ToolResult,
    freeze,
)
from camshaft.extensions_std.tools.failures import ToolFailure, os_failure, raise_if_aborted
from camshaft.extensions_std.tools.listing import limit_of, listing_result, printable
from camshaft.extensions_std.tools.paths import path_of

ENTRIES_MAX: Final = 500
"""Entries shown unless the call says otherwise (TOOL-92)."""

PARAMETERS: Final[FrozenDict] = freeze(
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Folder to list (default: the working directory)"},
            "limit": {"type": "number", "description": f"Most entries to show (default: {ENTRIES_MAX})"},
        },
    }
)


def create_ls_tool(*, files: Files | None = None, cwd: str | None = None) -> ToolDefinition:
    """The tool; with `files` it lists there instead of in the session's world, `cwd` serves a context without one."""

    async def execute(_id: str, params: dict[str, Any], signal: Signal, _on_update: OnUpdate, ctx: Any) -> ToolResult:
        raise_if_aborted(signal)
        limit = limit_of(params, ENTRIES_MAX)
        entries = await _entries(files or ctx.world.files, path_of(params, ctx, cwd), params.get("path") or ".")
        raise_if_aborted(signal)
        return _result(entries, limit)

    return ToolDefinition(
        name="ls",
        label="List",
        description=f"List a folder: sorted names, hidden ones too, folders with a final slash; at most {ENTRIES_MAX} entries or 50 KiB.",
        parameters=PARAMETERS,
        execute=execute,
        prompt_snippet="List the contents of a folder",
        default_active=False,
        annotations=Annotations(read_only_hint=True, open_world_hint=False),
        replay="safe",
    )


async def _entries(files: Files, path: str, shown: str) -> tuple[FolderEntry, ...]:
    try:
        match await files.kind(path):
            case None:
                raise ToolFailure(f"Path not found: {shown!r}")
            case "directory":
                return await files.list_folder(path)
            case _:
                raise ToolFailure(f"Not a directory: {shown!r}")
    except OSError as error:
        raise os_failure("read the folder", shown, error) from error


def _result(entries: tuple[FolderEntry, ...], limit: int) -> ToolResult:
    if not entries:
        return ToolResult(content=(TextBlock(text="(empty directory)"),))
    names = [entry.name + "/" * entry.is_directory for entry in sorted(entries, key=lambda each: (each.name.lower(), each.name))]
    notices = [f"First {limit} of {len(names)} entries; use a larger limit to see more"] if len(names) > limit else []
    details = {"entryLimitReached": limit} if len(names) > limit else {}
    return listing_result(printable("\n".join(names[:limit])), details, notices)
