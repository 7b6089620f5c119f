"""Session lines of a case as a tree (VECTORS.md section 2)."""

from collections.abc import Iterable, Mapping
from typing import Any

from camshaft.kernel import codec
from camshaft.kernel.errors import Rejection
from camshaft.kernel.session_file import SessionFile, read_session
from camshaft.kernel.tree import Tree, tree_of


def data_of(lines: Iterable[Any]) -> bytes:
    """The bytes of the file: objects as compact JSON, texts as they are, each with its LF."""
    return b"".join([(line.encode("utf-8", "replace") if isinstance(line, str) else codec.dumps(line)) + b"\n" for line in lines])


def session_of(case_input: Mapping[str, Any]) -> SessionFile:
    """The session of the case's `lines`; they must be a sound file."""
    read = read_session(data_of(case_input["lines"]), "session.jsonl", lambda: "0")
    assert not isinstance(read, Rejection), read.why
    return read


def tree_of_lines(case_input: Mapping[str, Any]) -> Tree:
    """The tree of the case's `lines`."""
    return tree_of(session_of(case_input).image)
