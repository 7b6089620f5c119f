"""What one selected entry contributes to the context (CTX-5 to CTX-9): its messages, edited or not."""

from datetime import UTC, datetime

import attrs

from camshaft.kernel.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
)
from camshaft.kernel.messages import (
    AssistantMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    Content,
    CustomMessage,
    Message,
    OpaqueMessage,
    ToolResultMessage,
    UserMessage,
    blocks_of,
)
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.tree import Tree


def contribution(tree: Tree, entry: Entry, edit: ContextEditEntry | None, head: bool) -> tuple[Message, ...]:
    """The messages of a selected entry under an edit (CTX-6, CTX-8); `head`: it is the first selected one."""
    if edit is not None and edit.replacement is None:
        return ()
    if isinstance(entry, MessageEntry) and edit is None and not _is_stored_oddly(entry.message):
        return (entry.message,)
    if isinstance(entry, CompactionEntry) and not head:
        return ()
    sources = (entry,) if edit is None else (entry, edit)
    found: tuple[Message, ...] | None = tree.derived.get(*sources)
    if found is None:
        found = unedited(entry)
        if edit is not None and edit.replacement is not None:
            content = edit.replacement.content
            found = tuple([_replaced(message, content) for message in found])
        tree.derived.put(found, *sources)
    return found


def entry_time_ms(timestamp: str) -> int:
    """An entry's time in ms since the Unix epoch; 0 if it is none (CTX-12)."""
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return 0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def unedited(entry: Entry) -> tuple[Message, ...]:
    """What an entry contributes without an edit; a compaction as if it were the one that counts."""
    if isinstance(entry, MessageEntry):
        return (_normalised(entry.message),)
    if isinstance(entry, CustomMessageEntry):
        made = CustomMessage(
            custom_type=entry.custom_type,
            content=entry.content,
            display=entry.display,
            details=entry.details,
            timestamp=entry_time_ms(entry.timestamp),
            # An explicit null stays one.
            extra=FrozenDict({"details": None}) if "details" in entry.extra else FrozenDict(),
        )
        return (made,)
    if isinstance(entry, BranchSummaryEntry) and entry.summary:
        return (BranchSummaryMessage(summary=entry.summary, from_id=entry.from_id, timestamp=entry_time_ms(entry.timestamp)),)
    if isinstance(entry, CompactionEntry):
        summary = CompactionSummaryMessage(
            summary=entry.summary, tokens_before=entry.tokens_before, timestamp=entry_time_ms(entry.timestamp)
        )
        return (summary,) if entry.system_message is None else (entry.system_message, summary)
    return ()


def _is_stored_oddly(message: Message) -> bool:
    """Whether the stored content is null or a text where a list belongs, which only the file may show (MSG-41, MSG-44)."""
    return not isinstance(message, OpaqueMessage) and "content" in message.extra


def _normalised(message: Message) -> Message:
    if isinstance(message, OpaqueMessage) or "content" not in message.extra:
        return message
    return attrs.evolve(message, extra=FrozenDict({key: item for key, item in message.extra.items() if key != "content"}))


def _replaced(message: Message, content: Content) -> Message:
    """The message with other content, if its role has content that can be replaced."""
    if isinstance(message, (AssistantMessage, ToolResultMessage)):
        return attrs.evolve(message, content=blocks_of(content))
    if isinstance(message, (UserMessage, CustomMessage)):
        return attrs.evolve(message, content=content)
    return message
