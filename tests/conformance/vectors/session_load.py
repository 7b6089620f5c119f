"""Vector family `session-load`: what opening a session file finds and does (VECTORS.md 5.5)."""

import base64
from itertools import count
from pathlib import Path
from typing import Any

from camshaft.actors.errors import NotASession
from camshaft.actors.logs.jsonl import JsonlOptions, open_jsonl
from camshaft.actors.logs.port import Loaded
from camshaft.actors.ports.log_files import RealLogFiles
from camshaft.kernel import codec
from camshaft.kernel.entries import SessionHeader
from camshaft.kernel.errors import MalformedJson
from camshaft.kernel.migration import lines_of
from camshaft.kernel.session_file import SessionImage
from camshaft.kernel.tree import Tree, tree_of
from tests.conformance.session_lines import data_of


def run(case_input: dict[str, Any]) -> object:
    """The loaded session and the state of its file afterwards."""
    path = Path("session.jsonl").absolute()
    before = _bytes(case_input)
    if before is not None:
        path.write_bytes(before)
    try:
        log, loaded = open_jsonl(str(path), _options())
    except NotASession as refused:
        return {"error": str(refused).replace(str(path), "<file>"), "file": _file(path, before)}
    shown = _loaded(loaded, case_input)
    log.close()
    return {**shown, "file": _file(path, before)}


def _options() -> JsonlOptions:
    numbers = count(1)
    return JsonlOptions(
        files=RealLogFiles(),
        new_header=lambda: SessionHeader(id="fresh", timestamp="2026-03-01T09:00:00.000Z", cwd=str(Path.cwd())),
        new_entry_id=lambda: f"{next(numbers):08x}",
        holder="vectors",
    )


def _bytes(case_input: dict[str, Any]) -> bytes | None:
    if "base64" in case_input:
        return base64.b64decode(case_input["base64"])
    if "lines" not in case_input:
        return None
    data = data_of(case_input["lines"])
    return data[:-1] if case_input.get("noNewline") else data


def _loaded(loaded: Loaded, case_input: dict[str, Any]) -> dict[str, Any]:
    found = loaded.entries
    tree = tree_of(found) if isinstance(found, SessionImage) else tree_of(entries=found)
    leaf = None if loaded.leaf is None else tree.position(loaded.leaf)
    shown: dict[str, Any] = {
        "cwd": case_input.get("cwdOverride") or loaded.header.cwd or str(Path.cwd()),
        "header": codec.encode(loaded.header),
        "entries": [codec.encode(entry) for entry in tree.entries()],
        "leaf": loaded.leaf,
        "branch": [] if leaf is None else [tree.id_at(position) for position in tree.branch(leaf)],
        "labels": [[entry.target_id, entry.label] for entry in tree.labels()],
        "name": tree.name,
    }
    return {**shown, "tree": _outline(tree)} if case_input.get("tree") else shown


def _outline(tree: Tree) -> list[Any]:
    outline = tree.outline()

    def node(position: int) -> list[Any]:
        return [tree.id_at(position), [node(child) for child in outline.children(position)]]

    return [node(root) for root in outline.roots]


def _file(path: Path, before: bytes | None) -> dict[str, Any]:
    if not path.exists():
        return {"status": "missing"}
    after = path.read_bytes()
    if after == before:
        return {"status": "unchanged"}
    if before and after == before + b"\n":
        return {"status": "newline-appended"}
    return {"status": "rewritten", "lines": [_line(line) for _, line in lines_of(after)]}


def _line(line: bytes) -> Any:
    try:
        value = codec.loads(line)
    except MalformedJson:
        value = None
    return value if isinstance(value, dict) else {"malformed": line.decode("utf-8", "replace")}
