"""Vector family `nested-calls`: the record and usage on the result of an outer call (VECTORS.md 5.15).

The steps are the starts and ends of calls in the order in which a run that makes them would
see them: a call starts with its turn, its inner calls lie between its start and its end, and
an end waits for the sibling it names.
"""

from typing import Any

from camshaft.kernel import codec
from camshaft.kernel.messages import ToolResultMessage
from camshaft.kernel.nested import Nest, NestedEnd, finished, started
from camshaft.kernel.persistent import thaw


def run(case_input: dict[str, Any]) -> object:
    """The record of `tc` and the sum of usages, each if there is one."""
    nest = _all_made(Nest(), "tc", case_input["calls"])
    output = {}
    if nest.nested_calls is not None:
        output["nestedCalls"] = thaw(nest.nested_calls)
    if nest.usage is not None:
        output["usage"] = codec.encode(nest.usage)
    return output


def _all_made(nest: Nest, caller_id: str, calls: list[dict[str, Any]]) -> Nest:
    waiting: dict[int, str] = {}
    ended: set[int] = set()
    for number, call in enumerate(calls, 1):
        nest, call_id = started(nest, caller_id, call["name"], call.get("args"))
        nest = _all_made(nest, call_id, call.get("calls", []))
        waiting[number] = call_id
        nest = _ended(nest, calls, waiting, ended)
    return nest


def _ended(nest: Nest, calls: list[dict[str, Any]], waiting: dict[int, str], done: set[int]) -> Nest:
    """Ends what may end, until nothing more can."""
    while True:
        ready = [n for n in waiting if not calls[n - 1].get("unfinished") and calls[n - 1].get("waitFor") in (None, *done)]
        if not ready:
            return nest
        for number in ready:
            nest = _end(nest, waiting.pop(number), calls[number - 1])
            done.add(number)


def _end(nest: Nest, call_id: str, call: dict[str, Any]) -> Nest:
    result = call["result"]
    message = codec.decode_message_strictly(
        {
            "role": "toolResult",
            "toolCallId": call_id,
            "toolName": call["name"],
            "isError": call.get("isError", False),
            "timestamp": 0,
            **result,
        }
    )
    assert isinstance(message, ToolResultMessage)
    end = NestedEnd(is_error=message.is_error, content=message.content, usage=message.usage, duration_ms=0)
    return finished(nest, call_id, end)
