"""The `read` tool: a text file in pieces the model can take, or an image (TOOL-60 to TOOL-65).

Text is UTF-8; what is not shows as U+FFFD. A line ends with a newline and nothing else, and a
file that ends in one has an empty last line more for `offset` and the counts (TOOL-61).
Images are described in `images.py`.
"""

import base64
import math
from collections.abc import Mapping
from typing import Any, Final

from camshaft.actors.api import (
    OUTPUT_BYTES_MAX,
    Annotations,
    Files,
    FrozenDict,
    ImageBlock,
    OnUpdate,
    Signal,
    TextBlock,
    ToolDefinition,
    ToolResult,
    Truncation,
    encode,
    freeze,
    size_of,
    size_text,
    truncate_head,
)
from camshaft.extensions_std.tools.failures import ToolFailure, os_failure, raise_if_aborted
from camshaft.extensions_std.tools.images import Image, image_of, why_not_shown
from camshaft.extensions_std.tools.paths import name_variants, path_of

PARAMETERS: Final[FrozenDict] = freeze(
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "File to read, absolute or relative to the working directory"},
            "offset": {"type": "number", "description": "First line to show, counted from 1"},
            "limit": {"type": "number", "description": "Number of lines to show"},
        },
        "required": ["path"],
    }
)


def create_read_tool(*, files: Files | None = None, cwd: str | None = None) -> ToolDefinition:
    """The tool; with `files` it reads there instead of in the session's world, `cwd` serves a context without one."""

    async def execute(_id: str, params: dict[str, Any], signal: Signal, _on_update: OnUpdate, ctx: Any) -> ToolResult:
        offset, limit = _range(params)
        source = files or ctx.world.files
        raise_if_aborted(signal)
        content = await _content(source, path_of(params, ctx, cwd), params["path"])
        raise_if_aborted(signal)
        image = image_of(content)
        if image is not None:
            return _image_result(image, content, ctx.model)
        return _text_result(content.decode("utf-8", "replace"), params["path"], offset, limit)

    return ToolDefinition(
        name="read",
        label="Read",
        description=(
            "Read a file. Text is cut to 2000 lines or 50 KiB, whichever comes first; go on with offset. "
            "Images (png, jpg, gif, webp) are shown as images."
        ),
        parameters=PARAMETERS,
        execute=execute,
        prompt_snippet="Read the contents of a file",
        prompt_guidelines=("Look at files with read rather than with cat or sed.",),
        annotations=Annotations(read_only_hint=True, open_world_hint=False),
        replay="safe",
    )


def whole_number(value: float, name: str) -> int:
    """`value` truncated to an integer. Raises ToolFailure if it is not finite."""
    if not math.isfinite(value):
        raise ToolFailure(f"{name} is {value}; expected a finite number")
    return int(value)


def _range(params: Mapping[str, Any]) -> tuple[int, int | None]:
    """First line from 0, and how many (TOOL-60)."""
    offset = whole_number(params.get("offset") or 0, "offset")
    if params.get("limit") is None:
        return max(offset - 1, 0), None
    limit = whole_number(params["limit"], "limit")
    if limit < 1:
        raise ToolFailure(f"limit is {params['limit']}; expected at least 1 line")
    return max(offset - 1, 0), limit


async def _content(files: Files, path: str, shown: str) -> bytes:
    try:
        existing = path
        if await files.kind(path) is None:
            for variant in name_variants(path):
                if await files.kind(variant) is not None:
                    existing = variant
                    break
        return await files.read(existing)
    except OSError as error:
        raise os_failure("read", shown, error) from error


def _text_result(text: str, shown: str, start: int, limit: int | None) -> ToolResult:
    lines = text.split("\n")
    if start >= len(lines):
        raise ToolFailure(f"offset {start + 1} is beyond the end of {shown!r}, which has {len(lines)} lines")
    end = len(lines) if limit is None else min(start + limit, len(lines))
    cut = truncate_head("\n".join(lines[start:end]))
    if not cut.truncated:
        rest = len(lines) - end
        notice = f"\n\n[{rest} more lines in the file. Use offset={end + 1} to go on.]" if rest else ""
        return _result(cut.content + notice, None)
    if cut.first_line_exceeds_limit:
        return _result(_long_line_notice(lines[start], start + 1, shown), cut)
    return _result(f"{cut.content}\n\n[{_cut_notice(cut, start, len(lines))}]", cut)


def _cut_notice(cut: Truncation, start: int, total: int) -> str:
    last = start + cut.output_lines
    why = f" ({size_text(OUTPUT_BYTES_MAX)} limit)" if cut.truncated_by == "bytes" else ""
    return f"Showing lines {start + 1}-{last} of {total}{why}. Use offset={last + 1} to go on."


def _long_line_notice(line: str, number: int, shown: str) -> str:
    quoted = "'" + shown.replace("'", "'\\''") + "'"
    return (
        f"[Line {number} is {size_text(size_of(line))}, more than the {size_text(OUTPUT_BYTES_MAX)} shown at once. "
        f"Use bash: sed -n '{number}p' {quoted} | head -c {OUTPUT_BYTES_MAX}]"
    )


def _result(text: str, cut: Truncation | None) -> ToolResult:
    details = None if cut is None else freeze({"truncation": encode(cut)})
    return ToolResult(content=(TextBlock(text=text),), details=details, structured_content=text)


def _image_result(image: Image, content: bytes, model: Any) -> ToolResult:
    """TOOL-64. A model without image input still gets the block: whoever sends it leaves it out, another model may see it."""
    blind = model is not None and "image" not in model.input
    details = freeze({"imageUnsupportedByModel": model.id}) if blind else None
    note = f"Image file [{image.mime_type}]"
    reason = why_not_shown(image, content)
    if reason is not None:
        note = f"{note} not shown: {reason}."
        return ToolResult(content=(TextBlock(text=note),), details=details, structured_content=note)
    if blind:
        note = f"{note}. The current model ({model.id}) takes no images and will not see it."
    data = base64.b64encode(content).decode("ascii")
    return ToolResult(
        content=(TextBlock(text=note), ImageBlock(data=data, mime_type=image.mime_type)),
        details=details,
        structured_content=freeze({"type": "image", "data": data, "mimeType": image.mime_type, "note": note}),
    )
