"""What `ls`, `find` and `grep` share: limits, names as text, the byte limit and the notices below a list."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from camshaft.actors.api import OUTPUT_BYTES_MAX, TextBlock, ToolResult, encode, freeze, size_text, truncate_head

NO_LINE_LIMIT: Final = 2**53 - 1
"""Lists have limits of their own; the record names the largest whole number every JSON reader can hold."""


def limit_of(params: Mapping[str, Any], default: int) -> int:
    """The call's `limit`, truncated to an integer and at least 1; `default` without one."""
    value = params.get("limit")
    return default if value is None else max(1, int(value))


def printable(text: str) -> str:
    """The text with every byte that was no UTF-8, in names from the system, as U+FFFD."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def listing_result(text: str, details: Mapping[str, Any], notices: Sequence[str]) -> ToolResult:
    """The list, cut at the byte limit, with the notices in brackets after a blank line; `details` None if there are none."""
    cut = truncate_head(text, NO_LINE_LIMIT, OUTPUT_BYTES_MAX)
    known = dict(details)
    said = list(notices)
    if cut.truncated:
        known["truncation"] = encode(cut)
        said.append(f"Cut at {size_text(OUTPUT_BYTES_MAX)}")
    shown = cut.content + (f"\n\n[{'. '.join(said)}.]" if said else "")
    return ToolResult(content=(TextBlock(text=shown),), details=freeze(known) if known else None)
