"""Edits of message lists that `context` handlers of a scenario make: returned as a new list, or made in place.

Messages that an operation leaves alone stay the same objects, because the kernel tells by
identity whether a returned list is the one it handed out (EVT-28).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.conformance.scenario.wire_paths import get, matches, put, snaked, wire

Op = Mapping[str, Any]


def returned(messages: Sequence[Any], ops: Sequence[Op]) -> list[Any]:
    """A new list; the given messages are not changed."""
    result = list(messages)
    for op in ops:
        if op["op"] == "replaceText":
            result = [_replaced(message, op) for message in result]
        else:
            _edit_list(result, op)
    return result


def edit(messages: list[Any], ops: Sequence[Op]) -> None:
    """Edits the list and its messages in place."""
    for op in ops:
        if op["op"] == "replaceText":
            for message in messages:
                _replace_in_place(message, op)
        else:
            _edit_list(messages, op)


def _edit_list(messages: list[Any], op: Op) -> None:
    match op["op"]:
        case "append":
            messages.append(snaked(op["message"]))
        case "prepend":
            messages.insert(0, snaked(op["message"]))
        case "drop":
            messages[:] = [message for message in messages if not matches(op["match"], message)]
        case "keepLast":
            messages[:] = messages[-op["n"] :] if op["n"] else []
        case other:
            raise ValueError(f"unknown message operation {other!r}; expected append, prepend, drop, keepLast or replaceText")


def _concerns(message: Any, op: Op) -> bool:
    return op.get("role") in (None, get(message, "role"))


def _replaced(message: Any, op: Op) -> Any:
    """The message itself if nothing in it is replaced, else its fields with the new texts."""
    if not _concerns(message, op):
        return message
    plain = message if isinstance(message, dict) else snaked(wire(message))
    content = plain.get("content")
    new = _new_content(content, op["find"], op["with"])
    return message if new == content else {**plain, "content": new}


def _new_content(content: Any, find: str, new: str) -> Any:
    if isinstance(content, str):
        return content.replace(find, new)
    return [{**block, "text": block["text"].replace(find, new)} if block.get("type") == "text" else block for block in content or ()]


def _replace_in_place(message: Any, op: Op) -> None:
    if not _concerns(message, op):
        return
    content = get(message, "content")
    if isinstance(content, str):
        put(message, "content", content.replace(op["find"], op["with"]))
        return
    for block in content or ():
        if get(block, "type") == "text":
            put(block, "text", get(block, "text").replace(op["find"], op["with"]))
