"""Vector family `truncate`: head, tail, line and printed sizes (VECTORS.md 5.4)."""

from typing import Any

from camshaft.kernel import codec
from camshaft.kernel.truncate import (
    LINE_UNITS_MAX,
    LINES_MAX,
    OUTPUT_BYTES_MAX,
    size_text,
    truncate_head,
    truncate_line,
    truncate_tail,
)


def run(case_input: dict[str, Any]) -> object:
    """The truncation record, the printed size, or the cut line."""
    match case_input["op"]:
        case "size":
            return size_text(case_input["bytes"])
        case "line":
            text, was_truncated = truncate_line(case_input["text"], case_input.get("maxChars", LINE_UNITS_MAX))
            return {"text": text, "wasTruncated": was_truncated}
        case op:
            truncate = {"head": truncate_head, "tail": truncate_tail}[op]
            limits = case_input.get("maxLines", LINES_MAX), case_input.get("maxBytes", OUTPUT_BYTES_MAX)
            return codec.encode(truncate(case_input["text"], *limits))
