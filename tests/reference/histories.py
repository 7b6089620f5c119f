"""Histories that the reference writes: calls of its session manager, one after the other.

The text `$N` stands for what call N returned, which is the id of the entry it appended.
"""

from typing import Any, Final

USAGE: Final = {
    "input": 10,
    "output": 3,
    "cacheRead": 0,
    "cacheWrite": 0,
    "totalTokens": 13,
    "cost": {"input": 0.1, "output": 1e-7, "cacheRead": 0, "cacheWrite": 0, "total": 0.1000001},
}
USER: Final = {"role": "user", "content": "A question", "timestamp": 1}
ANSWER: Final = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "Let me see.", "thinkingSignature": "s"},
        {"type": "text", "text": "I look."},
        {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a.py", "lines": [1, None, 2.5], "deep": {"er": {}}}},
    ],
    "api": "faux",
    "provider": "faux",
    "model": "faux-1",
    "usage": USAGE,
    "stopReason": "toolUse",
    "timestamp": 2,
}
RESULT: Final = {
    "role": "toolResult",
    "toolCallId": "c1",
    "toolName": "read",
    "content": [{"type": "text", "text": "text"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}],
    "details": None,
    "isError": True,
    "timestamp": 3,
}
DONE: Final = {**ANSWER, "content": [{"type": "text", "text": "Done."}], "stopReason": "stop", "timestamp": 4}
ABORTED: Final = {**ANSWER, "content": [], "stopReason": "aborted", "errorMessage": "Request was aborted", "timestamp": 4}
BASH: Final = {
    "role": "bashExecution",
    "command": "ls",
    "output": "a.py\n",
    "exitCode": 0,
    "cancelled": False,
    "truncated": False,
    "timestamp": 5,
}
TEXT: Final = '\u2028\u2029\u0085\x0b\x0c\x1f\x7f\x00 “” 😀 \ud83d \ufffe \\ " / é e\u0301'
"""Line ends of other conventions, control characters, half a surrogate pair, a noncharacter, one letter in two forms."""
KEYS: Final = {"": 1, "__proto__x": 2, "\ud83d": 3, "b": 1, "a": 2, "10": 1, "2": 2}
NUMBERS: Final = [0, -1, 0.1, 1e-7, 1e20, 1e21, 5e-324, 1.7976931348623157e308, 2**53 - 1, 2**63, 2**64, -(2**70)]
LATER: Final = [{"type": "video", "url": "x"}, {"type": "text", "text": "t", "later": {"a": 1}}]
"""A block of a kind, and a field, that no version knows yet."""

TALK: Final[list[list[Any]]] = [["appendMessage", USER], ["appendMessage", ANSWER], ["appendMessage", RESULT], ["appendMessage", DONE]]
"""Calls 0 to 3."""

HISTORIES: Final[dict[str, list[list[Any]]]] = {
    "a talk": TALK,
    "a talk that was cut off": [["appendMessage", USER], ["appendMessage", ANSWER]],
    "an aborted answer": [*TALK, ["appendMessage", USER], ["appendMessage", ABORTED]],
    "selections": [["appendModelChange", "other", "m"], ["appendThinkingLevelChange", "high"], *TALK, ["appendThinkingLevelChange", "new"]],
    "a name, given twice": [*TALK, ["appendSessionInfo", "First"], ["appendSessionInfo", " Second\r\nline "]],
    "a name, taken away": [*TALK, ["appendSessionInfo", "First"], ["appendSessionInfo", ""]],
    "labels": [*TALK, ["appendLabelChange", "$0", "start"], ["appendLabelChange", "$3", "end"], ["appendLabelChange", "$0", None]],
    "state of an extension": [*TALK, ["appendCustomEntry", "todo", {"items": [1, "two", None]}], ["appendCustomEntry", "bare"]],
    "custom messages": [
        *TALK,
        ["appendCustomMessageEntry", "note", "shown", True, {"by": "test"}],
        ["appendCustomMessageEntry", "note", [{"type": "text", "text": "hidden"}], False],
    ],
    "usage": [*TALK, ["appendUsage", "cache_warm", "faux", "faux-1", USAGE, "extension override"]],
    "a command of the user": [*TALK, ["appendMessage", BASH], ["appendMessage", {**BASH, "excludeFromContext": True}]],
    "a replaced message": [*TALK, ["appendContextEdit", "$2", {"content": "cut"}], ["appendContextEdit", "$3", {"content": "as text"}]],
    "an omitted message": [*TALK, ["appendContextEdit", "$0", None], ["appendContextEdit", "$2", {"content": []}]],
    "a compaction that keeps": [*TALK, ["appendCompaction", "Summary.", "$2", 100, {"files": []}, True, USAGE], ["appendMessage", USER]],
    "a compaction that keeps nothing": [*TALK, ["appendCompaction", "Summary.", None, 100], ["appendMessage", USER]],
    "two compactions": [
        *TALK,
        ["appendCompaction", "One.", "$3", 100],
        ["appendMessage", USER],
        ["appendMessage", DONE],
        ["appendCompaction", "Two.", "$5", 50],
    ],
    "a branch": [*TALK, ["branch", "$0"], ["appendMessage", DONE], ["appendMessage", USER]],
    "a branch with its summary": [
        *TALK,
        ["branchWithSummary", "$0", "What was tried.", {"files": ["a.py"]}, True, USAGE],
        ["appendMessage", USER],
    ],
    "a branch before a compaction": [*TALK, ["appendCompaction", "Summary.", "$3", 100], ["branch", "$3"], ["appendMessage", USER]],
    "a second root": [*TALK, ["resetLeaf"], ["appendMessage", USER], ["appendMessage", DONE]],
    "an extracted branch": [
        *TALK,
        ["appendLabelChange", "$1", "here"],
        ["branch", "$0"],
        ["createBranchedSession", "$3"],
        ["appendMessage", USER],
    ],
    "texts of every kind": [*TALK, ["appendMessage", {**USER, "content": TEXT}], ["appendCustomEntry", "keys", KEYS]],
    "numbers of every kind": [*TALK, ["appendCustomEntry", "numbers", NUMBERS]],
    "fields and blocks of a later version": [*TALK, ["appendMessage", {**USER, "content": LATER, "later": None}]],
    "a role of a later version": [*TALK, ["appendMessage", {"role": "oracle", "content": "?", "timestamp": 6}]],
    "null content": [*TALK, ["appendMessage", {**USER, "content": None}], ["appendMessage", {**DONE, "content": None}]],
}
