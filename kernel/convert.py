"""From context messages to what a model receives (CTX-29 to CTX-33): exact texts."""

from collections.abc import Iterable, Iterator
from typing import Final

from camshaft.kernel.messages import (
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Message,
    ModelMessage,
    SystemMessage,
    TextBlock,
    ToolResultMessage,
    UserMessage,
    blocks_of,
)

COMPACTION_SUMMARY_PREFIX: Final = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n"
COMPACTION_SUMMARY_SUFFIX: Final = "\n</summary>"
BRANCH_SUMMARY_PREFIX: Final = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n"
BRANCH_SUMMARY_SUFFIX: Final = "</summary>"
"""Without a line break before it, unlike the other one (CTX-33)."""


def model_message(message: Message) -> ModelMessage | None:
    """What the model gets for one context message, the same object where nothing changes; None for nothing."""
    if isinstance(message, (UserMessage, AssistantMessage, ToolResultMessage, SystemMessage)):
        return message
    if isinstance(message, CustomMessage):
        return UserMessage(content=blocks_of(message.content), timestamp=message.timestamp)
    if isinstance(message, BashExecutionMessage):
        return None if message.exclude_from_context is True else _as_user(bash_text(message), message.timestamp)
    if isinstance(message, CompactionSummaryMessage):
        return _as_user(f"{COMPACTION_SUMMARY_PREFIX}{message.summary}{COMPACTION_SUMMARY_SUFFIX}", message.timestamp)
    if isinstance(message, BranchSummaryMessage):
        return _as_user(f"{BRANCH_SUMMARY_PREFIX}{message.summary}{BRANCH_SUMMARY_SUFFIX}", message.timestamp)
    return None


def model_messages(messages: Iterable[Message]) -> Iterator[ModelMessage]:
    """All messages converted, in order."""
    for message in messages:
        converted = model_message(message)
        if converted is not None:
            yield converted


def bash_text(message: BashExecutionMessage) -> str:
    """A command the user ran, as the model reads it (CTX-30)."""
    parts = [f"Ran `{message.command}`\n", f"```\n{message.output}\n```" if message.output else "(no output)"]
    if message.cancelled:
        parts.append("\n\n(command cancelled)")
    elif message.exit_code:
        parts.append(f"\n\nCommand exited with code {message.exit_code}")
    if message.truncated and message.full_output_path:
        parts.append(f"\n\n[Output truncated. Full output: {message.full_output_path}]")
    return "".join(parts)


def _as_user(text: str, timestamp: int) -> UserMessage:
    return UserMessage(content=(TextBlock(text=text),), timestamp=timestamp)
