"""From context messages to what a model receives (CTX-29 to CTX-34): exact texts."""

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from camshaft.kernel.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Block,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    ImageBlock,
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
BLOCKED_IMAGE: Final = TextBlock(text="Image reading is disabled.")
"""What models get for images that a setting blocks (SET-11)."""
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


def without_images(message: ModelMessage) -> ModelMessage:
    """The message with a text in place of each run of images; the same object if it has none (CTX-34)."""
    if not isinstance(message, (UserMessage, ToolResultMessage)) or isinstance(message.content, str):
        return message
    if not any([isinstance(block, ImageBlock) for block in message.content]):
        return message
    blocks: list[Block] = []
    for block in message.content:
        shown = BLOCKED_IMAGE if isinstance(block, ImageBlock) else block
        if shown is not BLOCKED_IMAGE or not blocks or blocks[-1] is not BLOCKED_IMAGE:
            blocks.append(shown)
    return attrs.evolve(message, content=tuple(blocks))


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
