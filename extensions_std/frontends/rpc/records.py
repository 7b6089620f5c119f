"""The records that go out: answers, dialogs and lines of extensions, events (RPC-14 to RPC-16, RPC-81, RPC-98 to RPC-104)."""

from collections.abc import Callable
from typing import Any, ClassVar, Final

import attrs

from camshaft.actors.api import Json, dumps, encode, loads
from camshaft.actors.host import (
    BashExecutionUpdate,
    Dialog,
    DialogOpened,
    Event,
    ExtensionErrorEvent,
    Notified,
    UiChanged,
    Widget,
)
from camshaft.extensions_std.frontends.event_records import record_of

NOTHING: Final = object()
"""No result, and no id: then the record has no such field. Null is one."""


@attrs.frozen
class Ready:
    """A result that is JSON already: of many parts, or too deep for what makes JSON of values."""

    json: bytes


def line_of(record: dict[str, Any]) -> bytes:
    """The line of a record (RPC-1). O(record)."""
    result = record.get("data")
    if isinstance(result, Ready):
        rest = dumps({name: value for name, value in record.items() if name != "data"})
        return b"".join([rest[:-1], b',"data":', result.json, b"}\n"])
    return dumps(record) + b"\n"


def success(id: object, command: Json, result: object = NOTHING) -> dict[str, Any]:
    """The answer to a command that did what it was asked."""
    record = {**_begun(id, command), "success": True}
    return record if result is NOTHING else {**record, "data": result}


def failure(id: object, command: Json, why: str) -> dict[str, Any]:
    """The answer to one that did not."""
    return {**_begun(id, command), "success": False, "error": why}


def _begun(id: object, command: Json) -> dict[str, Any]:
    return {**({} if id is NOTHING else {"id": id}), "type": "response", "command": command}


@attrs.frozen(kw_only=True)
class UiRequest:
    """What an extension asks or shows; `method` says which of the other fields there are."""

    type: ClassVar[str] = "extension_ui_request"
    id: str
    method: str
    title: str | None = None
    options: tuple[str, ...] | None = None
    message: str | None = None
    placeholder: str | None = None
    prefill: str | None = None
    timeout: int | None = None
    """Milliseconds; whoever asked ends it."""
    notify_type: str | None = None
    status_key: str | None = None
    status_text: str | None = None
    widget_key: str | None = None
    widget_lines: tuple[str, ...] | None = None
    widget_placement: str | None = None
    text: str | None = None


@attrs.frozen(kw_only=True)
class ExtensionErrorRecord:
    """What the wire tells of a failed extension (RPC-88)."""

    type: ClassVar[str] = "extension_error"
    extension_path: str
    event: str
    error: str


def event_record(event: Event, new_id: Callable[[], str]) -> dict[str, Any] | None:
    """The record of an event, or None."""
    match event:
        case DialogOpened(dialog=dialog):
            made: Any = _asked(dialog)
        case Notified(message=message, level=level):
            made = UiRequest(id=new_id(), method="notify", message=message, notify_type=None if level == "info" else level)
        case UiChanged():
            made = _shown(event, new_id)
        case ExtensionErrorEvent():
            made = ExtensionErrorRecord(extension_path=event.extension_path, event=event.event, error=event.error)
        case BashExecutionUpdate(id=str(id)):
            return {"type": event.type, "id": client_id(id), "delta": event.delta}
        case _:
            return record_of(event)
    record: dict[str, Any] | None = None if made is None else encode(made)
    return record


def _asked(dialog: Dialog) -> UiRequest:
    return UiRequest(
        id=dialog.id,
        method=dialog.kind,
        title=dialog.title,
        options=dialog.options if dialog.kind == "select" else None,
        message=dialog.message,
        placeholder=dialog.placeholder,
        prefill=dialog.prefill,
        timeout=dialog.timeout_ms or None,
    )


def _shown(event: UiChanged, new_id: Callable[[], str]) -> UiRequest | None:
    """None for what only a screen shows (RPC-104)."""
    value: Any = event.value
    match event.part:
        case "status":
            return UiRequest(id=new_id(), method="setStatus", status_key=event.key, status_text=value)
        case "widget" if isinstance(value, Widget):
            placement = None if value.placement == "aboveEditor" else value.placement
            lines = value.lines
            return UiRequest(id=new_id(), method="setWidget", widget_key=event.key, widget_lines=lines, widget_placement=placement)
        case "widget":
            return UiRequest(id=new_id(), method="setWidget", widget_key=event.key)
        case "title":
            return UiRequest(id=new_id(), method="setTitle", title=value or "")
        case "editor_text":
            return UiRequest(id=new_id(), method="set_editor_text", text=value or "")
    return None


def command_id(id: object) -> str | None:
    """The id of a command as a text, for the events it causes; None without one."""
    return None if id is NOTHING else dumps(id).decode()


def client_id(text: str) -> Json:
    """The id that `command_id` made a text of (RPC-76)."""
    return loads(text.encode())
