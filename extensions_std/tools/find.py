"""The `find` tool: files and folders by a name pattern (TOOL-91).

The rules are those of fd: hidden names included; `.gitignore`, `.ignore`, `.fdignore` and the
exclude files of git respected, outside a repository too; a pattern without `/` is for the
name, one with `/` for the path below the searched folder, one that begins with `/` for the
whole path; an empty one finds everything. What is found comes sorted; of more than the limit,
those met first.
"""

import os
from collections.abc import Callable
from typing import Any, Final

import trio

from camshaft.actors.api import (
    Annotations,
    Files,
    FrozenDict,
    OnUpdate,
    Signal,
    TextBlock,
    ToolDefinition,
    ToolResult,
    WalkedPath,
    freeze,
)
from camshaft.extensions_std.tools.failures import ABORTED, ToolFailure, os_failure, raise_if_aborted
from camshaft.extensions_std.tools.globs import BadGlob, glob_expression
from camshaft.extensions_std.tools.listing import limit_of, listing_result, printable
from camshaft.extensions_std.tools.paths import path_of

RESULTS_MAX: Final = 1000
"""Results shown unless the call says otherwise (TOOL-91)."""

PARAMETERS: Final[FrozenDict] = freeze(
    {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "Glob: '*.ts' for names, 'src/**/*.ts' for paths below the searched folder"},
            "path": {"type": "string", "description": "Folder to search (default: the working directory)"},
            "limit": {"type": "number", "description": f"Most results to show (default: {RESULTS_MAX})"},
        },
        "required": ["pattern"],
    }
)


def create_find_tool(*, files: Files | None = None, cwd: str | None = None) -> ToolDefinition:
    """The tool; with `files` it searches there instead of in the session's world, `cwd` serves a context without one."""

    async def execute(_id: str, params: dict[str, Any], signal: Signal, _on_update: OnUpdate, ctx: Any) -> ToolResult:
        raise_if_aborted(signal)
        source, root, shown = files or ctx.world.files, path_of(params, ctx, cwd), params.get("path") or "."
        accepts, limit = path_filter(params["pattern"], root), limit_of(params, RESULTS_MAX)
        try:
            if await source.kind(root) != "directory":
                raise ToolFailure(f"Search path {shown!r} is not a directory")
            found = await _walk(source, root, accepts, (limit + 1, signal))
        except OSError as error:
            raise os_failure("search", shown, error) from error
        return _result(found, limit)

    return ToolDefinition(
        name="find",
        label="Find",
        description=(
            f"Find files and folders by a glob pattern; ignore files are respected. At most {RESULTS_MAX} results or 50 KiB. "
            "Paths are relative to the searched folder."
        ),
        parameters=PARAMETERS,
        execute=execute,
        prompt_snippet="Find files by name pattern",
        default_active=False,
        annotations=Annotations(read_only_hint=True, open_world_hint=False),
        replay="safe",
    )


def path_filter(pattern: str, root: str) -> Callable[[str], bool]:
    """Whether a path relative to `root` is wanted. Raises ToolFailure for a malformed pattern."""
    wanted = pattern
    while wanted.startswith("./"):
        wanted = wanted.removeprefix("./")
    if not wanted:
        return lambda path: True
    below = "/" in wanted and not wanted.startswith("/")
    try:
        matches = glob_expression("/" * below + wanted).fullmatch
    except BadGlob as error:
        raise ToolFailure(f"Bad pattern: {error}") from error
    if below:
        return lambda path: matches(b"/" + os.fsencode(path)) is not None
    if wanted.startswith("/"):
        return lambda path: matches(os.fsencode(os.path.join(root, path))) is not None
    return lambda path: matches(os.fsencode(path.rpartition("/")[2])) is not None


async def _walk(files: Files, root: str, accepts: Callable[[str], bool], most_and_signal: tuple[int, Signal]) -> tuple[WalkedPath, ...]:
    """The walk; an abort ends it on its way."""
    most, signal = most_and_signal
    found: list[tuple[WalkedPath, ...]] = []
    failures: list[OSError] = []

    async def stop_when_aborted(scope: trio.CancelScope) -> None:
        await signal.wait()
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(stop_when_aborted, nursery.cancel_scope)
        try:
            found.append(await files.walk(root, accepts, found_max=most))
        except OSError as error:
            failures.append(error)
        nursery.cancel_scope.cancel()
    if failures:
        raise failures[0]
    if not found:
        raise ToolFailure(ABORTED)
    return found[0]


def _result(found: tuple[WalkedPath, ...], limit: int) -> ToolResult:
    if not found:
        return ToolResult(content=(TextBlock(text="No files found matching pattern"),))
    shown = sorted([each.path + "/" * each.is_directory for each in found[:limit]])
    more = len(found) > limit
    notices = [f"First {limit} results; use a larger limit or a narrower pattern to see more"] if more else []
    return listing_result(printable("\n".join(shown)), {"resultLimitReached": limit} if more else {}, notices)
