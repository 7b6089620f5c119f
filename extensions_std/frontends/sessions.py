"""Which session the arguments mean: a new one, the newest, one by path or id, none (SES-65 to SES-70, CLI-7 to CLI-10).

Only first lines are read here. A file whose header cannot be read is passed over in searches and left to
the store when it is named, which says what is wrong with it.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from camshaft.actors.api import MalformedJson, loads
from camshaft.actors.host import MemorySession, NewSession, OpenSession, session_folder
from camshaft.extensions_std.frontends.arguments import Arguments

HEADER_BYTES_MAX: Final = 64 * 1024
"""Where a header is looked for: blank and broken lines may stand before it (SES-6)."""

SESSION_DIR_VARIABLE: Final = "CAMSHAFT_SESSION_DIR"

Target = NewSession | OpenSession | MemorySession


class SessionNotFound(Exception):
    """The session that was asked for cannot be chosen; the text is for people."""


@attrs.frozen(kw_only=True)
class Places:
    """Where sessions of a working directory are."""

    cwd: str
    folder: str
    """Where new ones go, and where is looked first."""
    is_default: bool
    """Whether that is the default folder of `cwd`, in which a header without `cwd` counts (SES-69)."""
    all_folders: tuple[str, ...]
    """Where an id is looked for last (SES-70)."""


@attrs.frozen(kw_only=True)
class Found:
    """A session file and what its header says."""

    path: str
    id: str
    cwd: str | None
    modified_s: float


@attrs.frozen(kw_only=True)
class Chosen:
    """The session to open, the directory it runs in, and what to tell about it."""

    target: Target
    cwd: str
    override_cwd: bool = False
    warnings: tuple[str, ...] = ()


def places(arguments: Arguments, environment: Mapping[str, str], setting: str | None, agent_dir: str, cwd: str) -> Places:
    """The folder of the option, else of the variable, the setting, the default (SES-67)."""
    default = session_folder(agent_dir, cwd)
    given = arguments.session_dir or environment.get(SESSION_DIR_VARIABLE) or setting
    if given:
        folder = os.path.abspath(os.path.join(cwd, os.path.expanduser(given)))
        return Places(cwd=cwd, folder=folder, is_default=folder == default, all_folders=(folder,))
    root = os.path.dirname(default)
    everything = tuple([os.path.join(root, name) for name in _names(root)])
    return Places(cwd=cwd, folder=default, is_default=True, all_folders=everything)


def choose(arguments: Arguments, where: Places) -> Chosen:
    """The session that the arguments mean. Raises SessionNotFound."""
    new = NewSession(directory=where.folder)
    if arguments.no_session:
        return Chosen(target=MemorySession(), cwd=where.cwd)
    if arguments.continue_:
        newest = max(_here(where), key=lambda found: found.modified_s, default=None)
        target = new if newest is None else OpenSession(path=newest.path)
        return Chosen(target=target, cwd=where.cwd, override_cwd=True)
    if arguments.session_id is not None:
        return _by_exact_id(arguments.session_id, where)
    if arguments.session is not None:
        return _named(arguments.session, where)
    return Chosen(target=new, cwd=where.cwd)


def _named(given: str, where: Places) -> Chosen:
    if "/" in given or "\\" in given or given.endswith(".jsonl"):
        path = os.path.abspath(os.path.join(where.cwd, os.path.expanduser(given)))
        found = header_of(path)
        stored = found.cwd if found is not None else None
        return Chosen(target=OpenSession(path=path), cwd=stored or where.cwd)
    here = sorted(_here(where), key=lambda found: -found.modified_s)
    match = _match(given, here)
    if match is not None:
        return Chosen(target=OpenSession(path=match.path), cwd=match.cwd or where.cwd)
    elsewhere = sorted([found for folder in where.all_folders for found in _sessions_in(folder)], key=lambda found: -found.modified_s)
    match = _match(given, elsewhere)
    if match is None:
        raise SessionNotFound(f"No session found matching '{given}'")
    raise SessionNotFound(f"Session found in different project: {match.cwd}\nTo go on with it there, give its path: --session {match.path}")


def _by_exact_id(id: str, where: Places) -> Chosen:
    match = next((found for found in _here(where) if found.id == id), None)
    if match is not None:
        return Chosen(target=OpenSession(path=match.path), cwd=match.cwd or where.cwd)
    said = f"No session with id '{id}' here; creating it"
    return Chosen(target=NewSession(directory=where.folder, id=id), cwd=where.cwd, warnings=(said,))


def _match(id: str, found: list[Found]) -> Found | None:
    """The exact id, else the newest that begins so."""
    exact = [each for each in found if each.id == id]
    return next(iter([*exact, *[each for each in found if each.id.startswith(id)]]), None)


def _here(where: Places) -> Iterator[Found]:
    """The sessions of this working directory."""
    for found in _sessions_in(where.folder):
        if found.cwd == where.cwd or (not found.cwd and where.is_default):
            yield found


def _sessions_in(folder: str) -> Iterator[Found]:
    for name in _names(folder):
        found = header_of(os.path.join(folder, name)) if name.endswith(".jsonl") else None
        if found is not None:
            yield found


def header_of(path: str) -> Found | None:
    """What the header of a session file says; None if there is none to be read."""
    try:
        with open(path, "rb") as file:
            start = file.read(HEADER_BYTES_MAX)
        modified_s = os.stat(path).st_mtime
    except OSError:
        return None
    for line in start.split(b"\n"):
        header = _json(line)
        if not isinstance(header, dict):
            continue
        if header.get("type") != "session" or not isinstance(header.get("id"), str):
            return None
        cwd = header.get("cwd")
        return Found(path=path, id=header["id"], cwd=cwd if isinstance(cwd, str) and cwd else None, modified_s=modified_s)
    return None


def _json(line: bytes) -> object:
    try:
        return loads(line) if line.strip() else None
    except MalformedJson:
        return None


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
