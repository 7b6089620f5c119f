"""Where in an extension's code an error came from: its own last line, not the depths of what it called."""

import importlib
import inspect
import os
from collections.abc import Sequence
from types import TracebackType
from typing import Final

_PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OWN_FOLDERS: Final = (os.path.join(_PACKAGE, "actors", ""), os.path.join(_PACKAGE, "kernel", ""))
"""Frames of these stand around every call of foreign code; they say nothing to an author."""
_IMPORT_SYSTEM: Final = ("<frozen importlib", os.path.join(os.path.dirname(importlib.__file__), ""))


def place_of(error: BaseException, path: str = "", files: Sequence[str] = ()) -> str | None:
    """`FILE, line N` of the innermost frame in the extension at `path`, a file or a folder, or in one of its `files`.

    If none is there, as for an inline extension, of the innermost frame in the file whose function was called; None
    if that call never began, as with a wrong number of arguments.
    """
    frames = _frames(error.__traceback__)
    own = [frame for frame in frames if path and (frame[0] == path or frame[0].startswith(path + os.sep) or frame[0] in files)]
    called = [frame for frame in frames if not os.path.abspath(frame[0]).startswith(OWN_FOLDERS)]
    found = own or [frame for frame in called if frame[0] == called[0][0]]
    return f"{found[-1][0]}, line {found[-1][1]}" if found else None


def defined_at(function: object) -> str | None:
    """`FILE, line N` where a function of an extension is defined; None for what is no plain function, or one of ours."""
    code = getattr(inspect.unwrap(function) if callable(function) else None, "__code__", None)
    if code is None or code.co_filename.startswith(OWN_FOLDERS):
        return None
    return f"{code.co_filename}, line {code.co_firstlineno}"


def located(error: Exception, text: str, path: str, files: Sequence[str] = ()) -> str:
    """`text` with the class of the error and its place; a syntax error has a place of its own."""
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return f"{error.msg} ({error.filename or path}, line {error.lineno})"
    name = type(error).__name__
    said = text if text.startswith(name) else f"{name}: {text}"
    return f"{said} ({place_of(error, path, files) or path})"


def _frames(trace: TracebackType | None) -> list[tuple[str, int]]:
    """File and line of each frame, outermost first; those of the import system are nobody's."""
    frames = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_IMPORT_SYSTEM):
            frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return frames
