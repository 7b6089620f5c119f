"""Brief messages: the short lists that traces hold in place of whole messages (README.md section 5.2)."""

from collections.abc import Mapping
from typing import Any

Wire = Mapping[str, Any]


def brief(message: Wire) -> list[Any]:
    """The brief form of one message, given as wire JSON."""
    role = message.get("role")
    match role:
        case "system":
            return _system(message)
        case "user":
            return ["user", text(message.get("content"))]
        case "assistant":
            return _assistant(message)
        case "toolResult":
            head = ["toolResult", message.get("toolCallId"), message.get("toolName"), message.get("isError")]
            return [*head, text(message.get("content"))]
        case "custom":
            return ["custom", message.get("customType"), text(message.get("content"))]
        case "compactionSummary" | "branchSummary":
            return [role, message.get("summary")]
        case "bashExecution":
            excluded = bool(message.get("excludeFromContext"))
            return ["bashExecution", message.get("command"), message.get("output"), message.get("exitCode"), excluded]
        case _:
            return [role]


def briefs(messages: Any) -> list[list[Any]]:
    """The brief forms of a list of messages."""
    return [brief(message) for message in messages or ()]


def text(content: Any) -> str:
    """The text of a content: text blocks joined with newlines, images by their type."""
    if content is None or isinstance(content, str):
        return content or ""
    shown = []
    for block in content:
        if block.get("type") == "text":
            shown.append(block.get("text", ""))
        elif block.get("type") == "image":
            shown.append(f"[image {block.get('mimeType')}]")
    return "\n".join(shown)


def _system(message: Wire) -> list[Any]:
    sections = message.get("sections") or {}
    return [
        "system",
        text(message.get("content")),
        [name for name, value in sections.items() if value is not None],
        [name for name, value in sections.items() if value is None],
        [tool.get("name") for tool in message.get("toolsAdded") or ()],
        [tool.get("name") for tool in message.get("toolsRemoved") or ()],
    ]


def _assistant(message: Wire) -> list[Any]:
    blocks: list[Any] = []
    content = message.get("content") or ()
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        match block.get("type"):
            case "text":
                blocks.append(["text", block.get("text")])
            case "thinking":
                blocks.append(["thinking", block.get("thinking")])
            case "toolCall":
                blocks.append(["toolCall", block.get("id"), block.get("name"), block.get("arguments")])
            case kind:
                blocks.append([kind])
    if message.get("errorMessage"):
        blocks.append(["errorMessage", message["errorMessage"]])
    return ["assistant", message.get("stopReason"), *blocks]
