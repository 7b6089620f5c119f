"""The `edit` tool: replaces texts in a file, all or none (TOOL-80 to TOOL-84).

`edit_matching.py` finds the places, `text_file.py` keeps the bytes around them, and
`line_diff.py` shows what changed. This file is the tool around them.
"""

from collections.abc import Mapping
from typing import Any, Final

from camshaft.actors.api import (
    Annotations,
    Files,
    FrozenDict,
    MalformedJson,
    OnUpdate,
    Signal,
    TextBlock,
    ToolDefinition,
    ToolResult,
    freeze,
    loads,
)
from camshaft.extensions_std.tools.edit_matching import edit_of, replacements
from camshaft.extensions_std.tools.failures import ToolFailure, error_code, os_failure, raise_if_aborted
from camshaft.extensions_std.tools.line_diff import LineDiff, line_diff
from camshaft.extensions_std.tools.paths import path_of
from camshaft.extensions_std.tools.text_file import text_file

EDIT_BYTES_MAX: Final = 32 * 1024 * 1024
"""Largest file that is edited. Matching takes about a second for each 10 MiB, during which nothing else runs."""

PARAMETERS: Final[FrozenDict] = freeze(
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "File to edit, absolute or relative to the working directory"},
            "edits": {
                "type": "array",
                "description": "Replacements; all of them are looked for in the file as it is now, and must not overlap",
                "items": {
                    "type": "object",
                    "properties": {
                        "oldText": {"type": "string", "description": "Text to replace; it must occur exactly once"},
                        "newText": {"type": "string", "description": "Text to put there"},
                    },
                    "required": ["oldText", "newText"],
                },
            },
        },
        "required": ["path", "edits"],
    }
)


def create_edit_tool(*, files: Files | None = None, cwd: str | None = None) -> ToolDefinition:
    """The tool; with `files` it edits there instead of in the session's world, `cwd` serves a context without one."""

    async def execute(_id: str, params: dict[str, Any], signal: Signal, _on_update: OnUpdate, ctx: Any) -> ToolResult:
        target = files or ctx.world.files
        path, shown = path_of(params, ctx, cwd), params["path"]
        async with target.changing(path):
            raise_if_aborted(signal)
            content = await _content(target, path, shown)
            raise_if_aborted(signal)
            changed, diff = _edited(content, params["edits"], shown)
            try:
                await target.write(path, changed)
            except OSError as error:
                raise os_failure("write", shown, error) from error
        # TOOL-55: what was written stays, though the call is reported as aborted.
        raise_if_aborted(signal)
        return _result(diff, len(params["edits"]), shown)

    return ToolDefinition(
        name="edit",
        label="Edit",
        description=(
            "Edit a file by replacing texts. Each oldText must occur exactly once in the file as it is now; "
            "keep it short, but long enough to be unique. Several changes of one file belong into one call."
        ),
        parameters=PARAMETERS,
        execute=execute,
        prepare_arguments=prepare_edit_arguments,
        prompt_snippet="Replace texts in a file, precisely",
        prompt_guidelines=(
            "Change existing files with edit; each oldText must match the file exactly and occur once.",
            "Put several changes of one file into one edit call; their oldTexts must not overlap.",
        ),
        annotations=Annotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False),
    )


def prepare_edit_arguments(arguments: Any) -> Any:
    """The arguments with `edits` as a list of objects, as far as they can be read so (TOOL-80); never changes its input.

    Accepted besides: `edits` as JSON text, one whole object instead of a list, `oldText` and
    `newText` at the top, which come after the edits of a list and replace anything else.
    """
    if not isinstance(arguments, Mapping):
        return arguments
    prepared = dict(arguments)
    edits = _listed(prepared.get("edits"))
    if edits is not None:
        prepared["edits"] = edits
    if _is_edit(prepared):
        prepared["edits"] = [*(edits or ()), {"oldText": prepared.pop("oldText"), "newText": prepared.pop("newText")}]
    return prepared


def _listed(edits: Any) -> Any:
    """The edits as a list, or None if they are neither a list nor one edit, written out or as JSON text."""
    if isinstance(edits, str):
        try:
            edits = loads(edits.encode("utf-8", "surrogatepass"))
        except MalformedJson:
            return None
    if isinstance(edits, (list, tuple)):
        return edits
    return [edits] if isinstance(edits, Mapping) and _is_edit(edits) else None


def _is_edit(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("oldText"), str) and isinstance(value.get("newText"), str)


async def _content(files: Files, path: str, shown: str) -> bytes:
    try:
        await files.check_changeable(path)
    except OSError as error:
        raise ToolFailure(f"Cannot edit {shown!r}: {error.strerror or error} ({error_code(error)})") from error
    try:
        return await files.read(path, bytes_max=EDIT_BYTES_MAX)
    except OSError as error:
        raise os_failure("read", shown, error) from error


def _edited(content: bytes, wishes: list[dict[str, str]], shown: str) -> tuple[bytes, LineDiff]:
    """The new bytes and what is shown of the change. Raises ToolFailure."""
    before = text_file(content)
    edits = [edit_of(wish["oldText"], wish["newText"]) for wish in wishes]
    places = replacements(before, edits, shown)
    after = before.replaced_text(places)
    if after == before.text:
        raise ToolFailure(f"No change in {shown!r}: the new text is the same as the old")
    return before.replaced(places), line_diff(shown, before.text, after)


def _result(diff: LineDiff, count: int, shown: str) -> ToolResult:
    text = f"Replaced {count} block{'' if count == 1 else 's'} in {shown}"
    details = {"diff": diff.diff, "patch": diff.patch, "firstChangedLine": diff.first_changed_line}
    return ToolResult(content=(TextBlock(text=text),), details=freeze(details))
