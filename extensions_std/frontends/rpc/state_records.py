"""What the reading commands answer with (RPC-62, RPC-74, RPC-77)."""

from collections.abc import Iterable
from typing import Any, Final

import attrs
import trio

from camshaft.actors.api import AssistantMessage, Entry, MessageEntry, Model, TextBlock, TreeNode, UserMessage, dumps, encode
from camshaft.actors.host import Seat, Statistics, UserBashOutput


@attrs.frozen(kw_only=True)
class StateRecord:
    """`get_state`."""

    model: Any = None
    thinking_level: str
    is_streaming: bool
    """Retry delays and automatic compaction included (RPC-62)."""
    is_compacting: bool
    steering_mode: str
    follow_up_mode: str
    session_file: str | None = None
    session_id: str
    session_name: str | None = None
    auto_compaction_enabled: bool
    message_count: int
    """Of the messages in context, the system message included."""
    pending_message_count: int


def state_record(seat: Seat) -> Any:
    """What is true now."""
    state = seat.state
    return encode(
        StateRecord(
            model=None if seat.model is None else model_record(seat.model),
            thinking_level=seat.thinking_level,
            is_streaming=seat.is_streaming,
            is_compacting=seat.is_compacting,
            steering_mode=state.queues.steering_mode,
            follow_up_mode=state.queues.follow_up_mode,
            session_file=seat.session_file,
            session_id=state.header.id,
            session_name=state.tree.name,
            auto_compaction_enabled=state.settings.compaction.enabled,
            message_count=len(seat.context_messages),
            pending_message_count=seat.pending_message_count,
        )
    )


def model_record(model: Model) -> dict[str, Any]:
    """A model without its headers, which may hold keys, and without what it leaves open; one that talks does not say so."""
    record: dict[str, Any] = {**encode(model), "name": model.name or model.id}
    cost = {name: value for name, value in record["cost"].items() if value not in ((), [])}
    hidden = ("headers", "type") if record.get("type") == "chat" else ("headers",)
    return {name: value for name, value in {**record, "cost": cost}.items() if name not in hidden and value not in ({}, [], (), None)}


@attrs.frozen(kw_only=True)
class StatisticsRecord:
    """`get_session_stats`."""

    session_file: str | None = None
    session_id: str
    user_messages: int
    assistant_messages: int
    tool_calls: int
    tool_results: int
    total_messages: int
    tokens: Any
    cost: float
    context_usage: Any = None


def statistics_record(statistics: Statistics) -> Any:
    """Of the whole file (RPC-74)."""
    totals, usage = statistics.totals, statistics.context_usage
    return encode(
        StatisticsRecord(
            session_file=statistics.session_file,
            session_id=statistics.session_id,
            user_messages=totals.user_messages,
            assistant_messages=totals.assistant_messages,
            tool_calls=totals.tool_calls,
            tool_results=totals.tool_results,
            total_messages=totals.total_messages,
            tokens=encode(totals.tokens),
            cost=totals.cost,
            context_usage=None if usage is None else encode(usage),
        )
    )


@attrs.frozen(kw_only=True)
class BashRecord:
    """`bash`."""

    output: str
    exit_code: int | None = None
    cancelled: bool
    truncated: bool
    full_output_path: str | None = None


def bash_record(output: UserBashOutput) -> Any:
    """What a command did."""
    return encode(
        BashRecord(
            output=output.output,
            exit_code=output.exit_code,
            cancelled=output.cancelled,
            truncated=output.truncated,
            full_output_path=output.full_output_path,
        )
    )


def last_assistant_text(seat: Seat) -> str | None:
    """Of the newest assistant message in context that stopped normally or says something; None without one (RPC-37)."""
    for message in reversed(seat.context_messages):
        if isinstance(message, AssistantMessage):
            text = _text(message).strip()
            if text or message.stop_reason not in ("aborted", "error"):
                return text or None
    return None


def fork_messages(entries: tuple[Entry, ...]) -> list[dict[str, str]]:
    """What a person wrote, on all branches (RPC-57)."""
    written = [
        (each.id, _text(each.message)) for each in entries if isinstance(each, MessageEntry) and isinstance(each.message, UserMessage)
    ]
    return [{"entryId": id, "text": text} for id, text in written if text]


def _text(message: AssistantMessage | UserMessage) -> str:
    content = message.content
    return content if isinstance(content, str) else "".join([block.text for block in content if isinstance(block, TextBlock)])


ENTRIES_BETWEEN_CHECKPOINTS: Final = 256
"""A few ms of work; others run in between."""


async def list_json(values: Iterable[Any]) -> bytes:
    """The JSON of a long list. Others run meanwhile."""
    parts: list[bytes] = []
    for number, value in enumerate(values):
        parts.append(dumps(value))
        if number % ENTRIES_BETWEEN_CHECKPOINTS == ENTRIES_BETWEEN_CHECKPOINTS - 1:
            await trio.lowlevel.checkpoint()
    return b"[" + b",".join(parts) + b"]"


async def tree_json(roots: Iterable[TreeNode]) -> bytes:
    """The JSON of the nodes of a tree, made without recursion: a session is as deep as it is long (RPC-36). Others run meanwhile."""
    parts: list[bytes] = []
    waiting: list[TreeNode | bytes] = [b"]", *_parted(roots), b"["]
    while waiting:
        item = waiting.pop()
        if isinstance(item, bytes):
            parts.append(item)
            continue
        marks = {"label": item.label, "labelTimestamp": item.label_timestamp}
        told = b"".join([b"," + dumps(name) + b":" + dumps(value) for name, value in marks.items() if value is not None])
        parts.append(b'{"entry":' + dumps(item.entry) + b',"children":[')
        waiting += [b"]" + told + b"}", *_parted(item.children)]
        if len(parts) % ENTRIES_BETWEEN_CHECKPOINTS == 0:
            await trio.lowlevel.checkpoint()
    return b"".join(parts)


def _parted(nodes: Iterable[TreeNode]) -> list[TreeNode | bytes]:
    """The nodes with commas between, last first."""
    found: list[TreeNode | bytes] = []
    for node in nodes:
        found += [b",", node] if found else [node]
    return found[::-1]
