"""Vector family `session-list`: what a listing shows of session files, and forks into another folder (VECTORS.md 5.16)."""

from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from camshaft.actors.errors import CommandRefused
from camshaft.actors.opening import Surroundings, open_log
from camshaft.actors.session import tree_of_loaded
from camshaft.actors.session_list import list_sessions
from camshaft.actors.session_transfer import fork_from
from camshaft.actors.world import real_world
from camshaft.kernel import codec
from camshaft.kernel.clock import iso
from camshaft.kernel.session_summary import SessionItem
from tests.conformance.session_lines import data_of

CWD: Final = "/srv/app"


def run(case_input: dict[str, Any]) -> object:
    """The items of the listing, or the new file."""
    if case_input["op"] == "list":
        return _list(case_input)
    return _fork(case_input)


def _list(case_input: dict[str, Any]) -> list[dict[str, Any]]:
    folder = Path("sessions").absolute()
    folder.mkdir()
    for name, lines in case_input["files"].items():
        (folder / name).write_bytes(data_of(lines))
    items = trio.run(partial(list_sessions, real_world(), str(folder), cwd=case_input.get("cwd")))
    return [_shown(item) for item in items]


def _shown(item: SessionItem) -> dict[str, Any]:
    shown = {
        "file": Path(item.path).name,
        "id": item.id,
        "cwd": item.cwd,
        "name": item.name,
        "parentSession": item.parent_session,
        "created": None if item.created_ms is None else iso(item.created_ms),
        "modified": iso(item.modified_ms),
        "messageCount": item.message_count,
        "firstMessage": item.first_message,
        "allMessagesText": item.all_messages_text,
    }
    return {name: value for name, value in shown.items() if value is not None}


def _fork(case_input: dict[str, Any]) -> dict[str, Any]:
    source, folder = Path("source.jsonl").absolute(), Path("sessions").absolute()
    data = data_of(case_input["lines"])
    source.write_bytes(data)
    around = Surroundings(world=real_world(), cwd=CWD)
    try:
        made = trio.run(partial(fork_from, str(source), around, directory=str(folder), session_id=case_input.get("id")))
    except CommandRefused as refused:
        return {"error": str(refused).replace(str(source), "<file>"), "filesMade": len(list(folder.glob("*")))}
    lines = [codec.loads(line) for line in Path(made.path).read_bytes().splitlines()]
    lines[0] = {**_object(lines[0]), "parentSession": "<file>" if _object(lines[0])["parentSession"] == str(source) else "other"}
    log, loaded = open_log(made, attrs.evolve(around, durability="none"))
    log.close()
    tree = tree_of_loaded(loaded.entries)
    leaf = None if loaded.leaf is None else tree.position(loaded.leaf)
    branch = [] if leaf is None else [tree.id_at(position) for position in tree.branch(leaf)]
    return {"file": lines, "branch": branch, "sourceUnchanged": source.read_bytes() == data}


def _object(line: Any) -> dict[str, Any]:
    assert isinstance(line, dict)
    return line
