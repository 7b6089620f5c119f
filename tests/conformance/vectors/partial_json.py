"""Vector family `partial-json`: previews of streamed arguments and their final parse (VECTORS.md 5.3)."""

from typing import Any

from camshaft.kernel.persistent import thaw
from camshaft.kernel.stream import Partial, Started, StreamItem, ToolCallDelta, ToolCallEnded, ToolCallStarted, begin, fold


def run(case_input: dict[str, Any]) -> object:
    """The arguments in the snapshot after each chunk, and those of the finished call."""
    partial = _folded(_folded(begin("api", "provider", "model", 0), Started()), ToolCallStarted(0, "call", "tool"))
    partials = []
    for chunk in case_input["chunks"]:
        partial = _folded(partial, ToolCallDelta(0, chunk))
        partials.append(thaw(partial.message.tool_calls[0].arguments))
    call = _folded(partial, ToolCallEnded(0)).message.tool_calls[0]
    final = {"arguments": thaw(call.arguments)}
    return {"partials": partials, "final": final | ({"argumentsError": call.arguments_error} if call.arguments_error else {})}


def _folded(partial: Partial, item: StreamItem) -> Partial:
    after = fold(partial, item)
    assert isinstance(after, Partial), after
    return after
