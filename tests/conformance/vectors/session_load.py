"""Vector family `session-load`: what opening a session file finds and does (VECTORS.md 5.5)."""

import base64
from itertools import count
from pathlib import Path
from typing import Any

from camshaft.kernel import codec
from camshaft.kernel.errors import MalformedJson, Rejection
from camshaft.kernel.migration import lines_of
from camshaft.kernel.session_file import SessionFile, read_session
from camshaft.kernel.tree import Tree, tree_of
from tests.conformance.session_lines import data_of


def run(case_input: dict[str, Any]) -> object:
    """The loaded session and the state of its file afterwards."""
    path = Path("session.jsonl").absolute()
    before = _bytes(case_input)
    if before is not None:
        path.write_bytes(before)
    numbers = count(1)
    read = _opened(path, lambda: f"{next(numbers):08x}")
    shown = {"error": read.why.replace(str(path), "<file>")} if isinstance(read, Rejection) else _loaded(read, case_input)
    return {**shown, "file": _file(path, before)}


def _bytes(case_input: dict[str, Any]) -> bytes | None:
    if "base64" in case_input:
        return base64.b64decode(case_input["base64"])
    if "lines" not in case_input:
        return None
    data = data_of(case_input["lines"])
    return data[:-1] if case_input.get("noNewline") else data


def _opened(path: Path, new_id: Any) -> SessionFile | Rejection:
    """Does to the file what the kernel's answer asks for, as a log does (SES-8, SES-12, SES-16)."""
    fresh = {"type": "session", "version": 3, "id": "fresh", "timestamp": "2026-03-01T09:00:00.000Z", "cwd": str(Path.cwd())}
    if not path.exists():
        return _sound(read_session(codec.line(fresh), str(path), new_id))
    data = path.read_bytes()
    if not data:
        path.write_bytes(codec.line(fresh))
        return _sound(read_session(codec.line(fresh), str(path), new_id))
    read = read_session(data, str(path), new_id)
    if isinstance(read, SessionFile) and read.rewritten is not None:
        path.write_bytes(read.rewritten)
    if isinstance(read, SessionFile) and read.lacks_newline:
        path.write_bytes(data + b"\n")
    return read


def _sound(read: SessionFile | Rejection) -> SessionFile:
    assert isinstance(read, SessionFile)
    return read


def _loaded(read: SessionFile, case_input: dict[str, Any]) -> dict[str, Any]:
    tree = tree_of(read.image)
    shown: dict[str, Any] = {
        "cwd": case_input.get("cwdOverride") or read.header.cwd or str(Path.cwd()),
        "header": codec.encode(read.header),
        "entries": [codec.encode(entry) for entry in tree.entries()],
        "leaf": None if read.leaf is None else tree.id_at(read.leaf),
        "branch": [] if read.leaf is None else [tree.id_at(position) for position in tree.branch(read.leaf)],
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
