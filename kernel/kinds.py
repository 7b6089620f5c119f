"""What an entry does to a projection, as one byte.

A branch becomes a bytes object of kinds, so that searching it for the last compaction or
counting its messages is a scan in C. The kind says what the *decoded* entry does: an entry
whose body cannot be read is NOTHING, whatever its `type` claims.
"""

from typing import Final

from camshaft.kernel.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    LabelEntry,
    MessageEntry,
    ModelChangeEntry,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
)

NOTHING: Final = ord(".")
"""No message and no setting: custom state, usage, unknown types, unreadable bodies."""
USER: Final = ord("u")
ASSISTANT: Final = ord("a")
TOOL_RESULT: Final = ord("r")
SYSTEM: Final = ord("s")
OTHER_MESSAGE: Final = ord("m")
"""A message entry with any other role, known or not."""
CUSTOM_MESSAGE: Final = ord("x")
BRANCH_SUMMARY: Final = ord("b")
"""Only with a text; without one it is NOTHING."""
COMPACTION: Final = ord("c")
CONTEXT_EDIT: Final = ord("e")
THINKING_LEVEL: Final = ord("t")
MODEL: Final = ord("o")
LABEL: Final = ord("l")
SESSION_INFO: Final = ord("i")

ROLE_KINDS: Final = {"user": USER, "assistant": ASSISTANT, "toolResult": TOOL_RESULT, "system": SYSTEM}
"""Kinds of message entries by role; every other role is OTHER_MESSAGE."""

ONE_MESSAGE: Final = bytes([USER, ASSISTANT, TOOL_RESULT, SYSTEM, OTHER_MESSAGE, CUSTOM_MESSAGE, BRANCH_SUMMARY])
"""Kinds that contribute exactly one message unless they are omitted."""

_PLAIN: Final[dict[type[object], int]] = {
    CustomMessageEntry: CUSTOM_MESSAGE,
    CompactionEntry: COMPACTION,
    ContextEditEntry: CONTEXT_EDIT,
    ThinkingLevelChangeEntry: THINKING_LEVEL,
    ModelChangeEntry: MODEL,
    LabelEntry: LABEL,
    SessionInfoEntry: SESSION_INFO,
}


def kind_of(entry: Entry) -> int:
    """The kind of a decoded entry."""
    if isinstance(entry, MessageEntry):
        return ROLE_KINDS.get(entry.message.role or "", OTHER_MESSAGE)
    if isinstance(entry, BranchSummaryEntry):
        return BRANCH_SUMMARY if entry.summary else NOTHING
    return _PLAIN.get(type(entry), NOTHING)
