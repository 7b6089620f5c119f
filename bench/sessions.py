"""Sessions of any length, made up: files for loading, messages that were said before."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

STARTED_MS: Final = 1_767_225_600_000
"""2026-01-01, so that files are the same whenever they are made."""
STARTED: Final = "2026-01-01T00:00:00.000Z"
USAGE: Final = {
    "input": 10,
    "output": 10,
    "cacheRead": 0,
    "cacheWrite": 0,
    "totalTokens": 20,
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
}
SOURCE: Final = "def f(x):\n    return x + 1\n" * 12
ANSWER: Final = "The function is fine, but the caller passes a string. " * 4


def write_session(path: Path, messages: Iterator[dict[str, Any]]) -> None:
    """A session file with one entry a message, in a line."""
    header = {"type": "session", "version": 3, "id": "0193b1de-0000-7000-8000-000000000001", "timestamp": STARTED, "cwd": str(path.parent)}
    parent = None
    with path.open("w", encoding="utf-8") as file:
        file.write(_line(header))
        for index, message in enumerate(messages):
            id = f"{index:08x}"
            file.write(_line({"type": "message", "id": id, "parentId": parent, "timestamp": STARTED, "message": message}))
            parent = id


def tool_conversation(count: int) -> Iterator[dict[str, Any]]:
    """Question, call, result, answer, again and again: `count` messages of about 500 bytes."""
    for index in range(count):
        yield _STEPS[index % len(_STEPS)](index)


def small_talk(count: int) -> Iterator[dict[str, Any]]:
    """Question and answer, again and again: `count` messages of about 50 bytes of text."""
    for index in range(0, count, 2):
        yield _user(f"question number {index} with some text in it", index)
        yield _assistant([{"type": "text", "text": f"answer number {index} with some text in it"}], "stop", index)


def _question(index: int) -> dict[str, Any]:
    return _user(f"Please look at file number {index} and tell me what is wrong in it.", index)


def _call(index: int) -> dict[str, Any]:
    call = {"type": "toolCall", "id": f"call_{index}", "name": "read", "arguments": {"path": f"src/module_{index}.py"}}
    return _assistant([{"type": "text", "text": "Let me read it."}, call], "toolUse", index)


def _result(index: int) -> dict[str, Any]:
    return {
        "role": "toolResult",
        "toolCallId": f"call_{index - 1}",
        "toolName": "read",
        "content": [{"type": "text", "text": SOURCE}],
        "isError": False,
        "timestamp": STARTED_MS + index,
    }


def _answer(index: int) -> dict[str, Any]:
    return _assistant([{"type": "text", "text": ANSWER}], "stop", index)


_STEPS: Final = (_question, _call, _result, _answer)


def _user(text: str, index: int) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": STARTED_MS + index}


def _assistant(content: list[dict[str, Any]], stop_reason: str, index: int) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": content,
        "api": "faux",
        "provider": "faux",
        "model": "faux-1",
        "usage": USAGE,
        "stopReason": stop_reason,
        "timestamp": STARTED_MS + index,
    }


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"
