"""Made-up entries, trees and files, and a naive projection to compare with."""

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
from hypothesis import strategies as st

from camshaft.kernel import codec
from camshaft.kernel.contribution import entry_time_ms
from camshaft.kernel.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    LabelEntry,
    MessageEntry,
    ModelChangeEntry,
    Replacement,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
)
from camshaft.kernel.messages import (
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Message,
    SystemMessage,
    TextBlock,
    ToolResultMessage,
    Usage,
    UserMessage,
    blocks_of,
)
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.prompt import SystemState, replay
from camshaft.kernel.session_file import SessionFile, read_session

TIME = "2026-03-01T09:00:00.000Z"
HEADER = {"type": "session", "version": 3, "id": "demo", "timestamp": TIME, "cwd": "/srv/app"}
KINDS = (
    ["user"] * 4
    + ["assistant"] * 4
    + ["tool result", "bash", "system", "custom", "custom message", "label", "model", "level", "name", "branch summary"]
    + ["edit"] * 4
    + ["compaction"] * 2
)


def user(entry_id: str, parent: str | None, text: str = "hello") -> MessageEntry:
    return said(entry_id, parent, UserMessage(content=text, timestamp=1))


def assistant(entry_id: str, parent: str | None, text: str = "hi", **fields: Any) -> MessageEntry:
    given = {"content": (TextBlock(text=text),), "api": "x", "provider": "acme", "model": "m", "stop_reason": "stop", "timestamp": 2}
    message = AssistantMessage(**{**given, **fields})
    return said(entry_id, parent, message)


def said(entry_id: str, parent: str | None, message: Message) -> MessageEntry:
    return MessageEntry(id=entry_id, parent_id=parent, timestamp=TIME, message=message)


def system(content: str = "", timestamp: int = 5, **fields: Any) -> SystemMessage:
    sections = fields.pop("sections", None)
    return SystemMessage(content=content, sections=None if sections is None else FrozenDict(sections), timestamp=timestamp, **fields)


def edit(entry_id: str, parent: str | None, target: str, content: str | None = None) -> ContextEditEntry:
    replacement = None if content is None else Replacement(content=content)
    return ContextEditEntry(id=entry_id, parent_id=parent, timestamp=TIME, target_id=target, replacement=replacement)


def compaction(entry_id: str, parent: str | None, kept: str | None = None, **fields: Any) -> CompactionEntry:
    return CompactionEntry(id=entry_id, parent_id=parent, timestamp=TIME, summary="S", first_kept_entry_id=kept, **fields)


def label(entry_id: str, parent: str | None, target: str, text: str | None) -> LabelEntry:
    return LabelEntry(id=entry_id, parent_id=parent, timestamp=TIME, target_id=target, label=text)


def chain(count: int) -> list[Entry]:
    """A conversation without branches."""
    above = [None, *[f"e{number}" for number in range(count)]]
    return [(assistant if number % 2 else user)(f"e{number}", above[number]) for number in range(count)]


def file_of(entries: Iterable[Entry | dict[str, Any] | str], header: dict[str, Any] | None = None) -> bytes:
    lines = [line.encode() if isinstance(line, str) else codec.dumps(line) for line in (header or HEADER, *entries)]
    return b"\n".join([*lines, b""])


def opened(data: bytes) -> SessionFile:
    read = read_session(data, "s.jsonl", lambda: "new")
    assert isinstance(read, SessionFile)
    return read


@attrs.frozen
class Step:
    """One entry to be: its kind, and choices that are taken modulo what there is."""

    kind: str
    above: int
    """0 to 5: the entry before; else any earlier entry or none."""
    target: int
    flag: bool


STEPS = st.lists(st.builds(Step, st.sampled_from(KINDS), st.integers(0, 40), st.integers(0, 1000), st.booleans()), max_size=40)


def entries_of(steps: Sequence[Step]) -> list[Entry]:
    """The entries that the steps describe, with branches, edits and compactions of anything."""
    entries: list[Entry] = []
    for number, step in enumerate(steps):
        ids: list[str | None] = [None, *[entry.id for entry in entries]]
        parent = ids[-1] if step.above <= 36 else ids[step.target % len(ids)]
        target = ids[step.target % len(ids)] or "nothing"
        entries.append(_entry(step, f"e{number}", parent, target))
    return entries


def _entry(step: Step, own: str, parent: str | None, target: str) -> Entry:
    flag = step.flag
    match step.kind:
        case "user":
            return user(own, parent, own)
        case "assistant":
            return assistant(own, parent, own, model=own, usage=Usage(total_tokens=step.target if flag else 0))
        case "tool result":
            message = ToolResultMessage(tool_call_id="t", tool_name="read", is_error=False, timestamp=3)
            return said(own, parent, message)
        case "bash":
            ran = BashExecutionMessage(
                command=own, output="", cancelled=False, truncated=False, exclude_from_context=flag or None, timestamp=3
            )
            return said(own, parent, ran)
        case "system":
            name = f"s{step.target % 3}"
            return said(own, parent, system(own if flag else "", sections={name: None if step.above % 3 == 0 else own}))
        case "edit":
            return edit(own, parent, target, own if flag else None)
        case "label":
            return label(own, parent, target, own if flag else None)
        case "compaction":
            kept = own if step.above % 5 == 0 else target
            return compaction(own, parent, kept, system_message=system("base", sections={"a": "1"}) if flag else None)
        case _:
            return _plain_entry(step, own, {"id": own, "parent_id": parent, "timestamp": TIME})


def _plain_entry(step: Step, own: str, base: dict[str, Any]) -> Entry:
    flag = step.flag
    match step.kind:
        case "custom":
            return CustomEntry(**base, custom_type="k")
        case "custom message":
            return CustomMessageEntry(**base, custom_type="k", content=own, display=flag)
        case "model":
            return ModelChangeEntry(**base, provider="p", model_id=own)
        case "level":
            return ThinkingLevelChangeEntry(**base, thinking_level=own)
        case "name":
            return SessionInfoEntry(**base, name=own if flag else "")
        case _:
            return BranchSummaryEntry(**base, from_id="root", summary=own if flag else "")


# -- the same, naively -------------------------------------------------------------------


@attrs.frozen
class Facts:
    """A projection as plain values."""

    selected: list[tuple[str, list[Message]]]
    thinking_level: str
    model: tuple[str, str] | None
    system: SystemState | None

    @property
    def messages(self) -> list[Message]:
        return [message for _, messages in self.selected for message in messages]


def naive(entries: Sequence[Entry], leaf: str | None) -> Facts:
    """The projection as section 15 tells it, step by step, over lists."""
    by_id = {entry.id: entry for entry in entries}
    path: list[Entry] = []
    at = by_id.get(leaf) if leaf is not None else None
    while at is not None:
        path.insert(0, at)
        at = by_id.get(at.parent_id) if at.parent_id is not None else None
    compactions = [index for index, entry in enumerate(path) if isinstance(entry, CompactionEntry)]
    selected = _selected(path, compactions[-1]) if compactions else path
    edits = {entry.target_id: entry for entry in selected if isinstance(entry, ContextEditEntry)}
    shown = [(entry.id, _messages(entry, edits.get(entry.id), bool(compactions) and index == 0)) for index, entry in enumerate(selected)]
    return Facts(
        selected=shown,
        thinking_level=([entry.thinking_level for entry in path if isinstance(entry, ThinkingLevelChangeEntry)] or ["off"])[-1],
        model=([found for entry in path for found in _models(entry)] or [None])[-1],
        system=replay([message for _, messages in shown for message in messages]),
    )


def _selected(path: list[Entry], at: int) -> list[Entry]:
    compacted = path[at]
    assert isinstance(compacted, CompactionEntry)
    first = next((index for index in range(at) if path[index].id == compacted.first_kept_entry_id), at)
    kept = [entry for entry in path[first:at] if not (isinstance(entry, MessageEntry) and entry.message.role == "system")]
    return [compacted, *kept, *path[at + 1 :]]


def _models(entry: Entry) -> list[tuple[str, str] | None]:
    if isinstance(entry, ModelChangeEntry):
        return [(entry.provider, entry.model_id)]
    if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
        return [(entry.message.provider, entry.message.model)]
    return []


def _messages(entry: Entry, edited: ContextEditEntry | None, head: bool) -> list[Message]:
    made = _made(entry, head)
    if edited is None:
        return made
    if edited.replacement is None:
        return []
    return [_with_content(message, edited.replacement.content) for message in made]


def _with_content(message: Message, content: Any) -> Message:
    if isinstance(message, UserMessage | CustomMessage):
        return attrs.evolve(message, content=content)
    if isinstance(message, AssistantMessage | ToolResultMessage):
        return attrs.evolve(message, content=blocks_of(content))
    return message


def _made(entry: Entry, head: bool) -> list[Message]:
    moment = entry_time_ms(entry.timestamp)
    match entry:
        case MessageEntry():
            return [entry.message]
        case CustomMessageEntry():
            return [CustomMessage(custom_type=entry.custom_type, content=entry.content, display=entry.display, timestamp=moment)]
        case BranchSummaryEntry() if entry.summary:
            return [BranchSummaryMessage(summary=entry.summary, from_id=entry.from_id, timestamp=moment)]
        case CompactionEntry() if head:
            summary = CompactionSummaryMessage(summary=entry.summary, tokens_before=entry.tokens_before, timestamp=moment)
            return [summary] if entry.system_message is None else [entry.system_message, summary]
        case _:
            return []
