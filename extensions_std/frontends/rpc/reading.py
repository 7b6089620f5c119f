"""Commands that only read (RPC-33 to RPC-37, RPC-45, RPC-57, RPC-74)."""

from camshaft.actors.api import encode
from camshaft.actors.host import CommandRefused
from camshaft.extensions_std.frontends.rpc.acting import Acting
from camshaft.extensions_std.frontends.rpc.records import Ready, line_of
from camshaft.extensions_std.frontends.rpc.requests import EntriesRequest, NoFields
from camshaft.extensions_std.frontends.rpc.state_records import (
    fork_messages,
    last_assistant_text,
    list_json,
    state_record,
    statistics_record,
    tree_json,
)


async def get_state(acting: Acting, _request: NoFields) -> object:
    """What is true now."""
    return state_record(acting.seat)


async def get_messages(acting: Acting, _request: NoFields) -> object:
    """The messages in context, without the one that is being streamed (RPC-33)."""
    return Ready(b'{"messages":' + await list_json(acting.seat.context_messages) + b"}")


async def get_entries(acting: Acting, request: EntriesRequest) -> object:
    """All entries after one of them, abandoned branches included (RPC-34)."""
    session = acting.seat.session
    leaf, entries = session.get_leaf_id(), session.get_entries()
    if request.since is not None:
        at = next((number for number, entry in enumerate(entries) if entry.id == request.since), None)
        if at is None:
            raise CommandRefused(f"Entry not found: {request.since}")
        entries = entries[at + 1 :]
    return _with_leaf(b"entries", await list_json(entries), leaf)


async def get_tree(acting: Acting, _request: NoFields) -> object:
    """All entries as a tree (RPC-36)."""
    session = acting.seat.session
    leaf, roots = session.get_leaf_id(), session.get_tree()
    return _with_leaf(b"tree", await tree_json(roots), leaf)


def _with_leaf(name: bytes, found: bytes, leaf: str | None) -> Ready:
    return Ready(b'{"' + name + b'":' + found + b"," + line_of({"leafId": leaf})[1:-1])


async def get_last_assistant_text(acting: Acting, _request: NoFields) -> object:
    """Null when there is none (RPC-37)."""
    return {"text": last_assistant_text(acting.seat)}


async def get_fork_messages(acting: Acting, _request: NoFields) -> object:
    """What can be forked from (RPC-57)."""
    return {"messages": fork_messages(acting.seat.session.get_entries())}


async def get_session_stats(acting: Acting, _request: NoFields) -> object:
    """Over all entries of the file (RPC-74)."""
    return statistics_record(await acting.seat.statistics())


async def get_commands(acting: Acting, _request: NoFields) -> object:
    """What can be called as `/name` (RPC-45)."""
    listed = [encode(each) for each in acting.seat.commands()]
    return {"commands": [{name: value for name, value in each.items() if value is not None} for each in listed]}
