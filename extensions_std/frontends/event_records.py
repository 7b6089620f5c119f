"""What standard output tells of an event, in JSON mode and over RPC (JSONM-3, RPC-81 to RPC-84)."""

from typing import Any, Final

from camshaft.actors.api import ToolCall, encode
from camshaft.actors.host import (
    DiagnosticEvent,
    DialogClosed,
    DialogOpened,
    Event,
    ExtensionErrorEvent,
    MessageUpdate,
    Notified,
    SessionReplaced,
    UiChanged,
    UiReset,
)

TOLD_OTHERWISE: Final = (
    *(ExtensionErrorEvent, DiagnosticEvent, SessionReplaced),
    *(DialogOpened, DialogClosed, Notified, UiChanged, UiReset),
)
"""Events that are no record by themselves: told elsewhere, in another form, or not at all (RPC-30)."""


def record_of(event: Event) -> dict[str, Any] | None:
    """The record of an event; None for those of TOLD_OTHERWISE."""
    if isinstance(event, TOLD_OTHERWISE):
        return None
    if isinstance(event, MessageUpdate):
        return {"type": event.type, "usage": encode(event.partial.usage), "assistantMessageEvent": _delta_of(event)}
    record: dict[str, Any] = encode(event)
    return record


def _delta_of(event: MessageUpdate) -> dict[str, Any]:
    """The block event without the message so far (RPC-83)."""
    told = event.assistant_message_event
    record: dict[str, Any] = {"type": told.type}
    fields = {"contentIndex": told.content_index, "delta": told.delta, "content": told.content, "reason": told.reason}
    record.update({name: value for name, value in fields.items() if value is not None})
    if told.tool_call is not None:
        record["toolCall"] = encode(told.tool_call)
    if told.type == "toolcall_start" and told.content_index is not None:
        call = event.message.content[told.content_index]
        assert isinstance(call, ToolCall)
        record.update(id=call.id, toolName=call.name)
    return record
