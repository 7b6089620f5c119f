"""Commands that go on in another session, name this one or export it (RPC-38, RPC-46 to RPC-59)."""

from camshaft.actors.host import CommandRefused
from camshaft.extensions_std.frontends.rpc.acting import Acting
from camshaft.extensions_std.frontends.rpc.records import NOTHING
from camshaft.extensions_std.frontends.rpc.requests import (
    ExportRequest,
    ForkRequest,
    InvalidCommand,
    NameRequest,
    NewSessionRequest,
    NoFields,
    SwitchRequest,
)


async def new_session(acting: Acting, request: NewSessionRequest) -> object:
    """Kept where this one is (RPC-51)."""
    replaced = await acting.seat.new_session(parent_session=request.parent_session)
    return {"cancelled": replaced.cancelled}


async def switch_session(acting: Acting, request: SwitchRequest) -> object:
    """A file that is missing or empty becomes a new session (RPC-52)."""
    if not request.session_path:
        raise InvalidCommand("Invalid switch_session command: sessionPath: expected a path, got an empty text")
    replaced = await acting.seat.switch_session(request.session_path, create=True)
    return {"cancelled": replaced.cancelled}


async def fork(acting: Acting, request: ForkRequest) -> object:
    """The branch up to what a person wrote, and that text for editing (RPC-54, RPC-55)."""
    replaced = await acting.seat.fork(request.entry_id)
    return {"cancelled": True} if replaced.cancelled else {"text": replaced.selected_text or "", "cancelled": False}


async def clone(acting: Acting, _request: NoFields) -> object:
    """A copy of the active branch (RPC-56)."""
    replaced = await acting.seat.clone()
    return {"cancelled": replaced.cancelled}


async def set_session_name(acting: Acting, request: NameRequest) -> object:
    """Trimmed; a line break is a space (RPC-38)."""
    if not request.name.strip():
        raise CommandRefused("Session name cannot be empty")
    acting.seat.set_session_name(request.name)
    return NOTHING


async def export_html(_acting: Acting, _request: ExportRequest) -> object:
    """An extension's part (RPC-46)."""
    raise CommandRefused("HTML export is not available: no extension that offers it is loaded")
