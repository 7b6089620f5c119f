"""Where sessions are, and opening one: in memory, as a new file, or at a path.

Opening gives the store and what it found. Nothing is written by it that was not there, save
the folder and repairs of an existing session (SES-54).
"""

import os
import re
from typing import Final

import attrs

from camshaft.actors.errors import InvalidOptions
from camshaft.actors.logs.jsonl import JsonlOptions, open_jsonl
from camshaft.actors.logs.memory import open_memory
from camshaft.actors.logs.port import Durability, Loaded, Log
from camshaft.actors.world import World
from camshaft.kernel import shapes
from camshaft.kernel.clock import iso
from camshaft.kernel.entries import Entry, SessionHeader

SESSION_ID: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
SESSION_ID_TEXT: Final = (
    "Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', "
    "and start and end with an alphanumeric character"
)


@shapes.frozen(kw_only=True)
class NewSession:
    """A new session file, made with its first message (SES-55)."""

    directory: str | None = None
    """Folder for the file; None: the default folder of the working directory (SES-65)."""
    id: str | None = None
    """Letters, digits, `-`, `_` and `.`; None: a new one."""
    cwd: str | None = None
    """What its header says; None: the working directory it is opened in."""
    parent_session: str | None = None
    """What its header says about where it came from; not checked (RPC-51)."""
    entries: tuple[Entry, ...] = ()
    """What it begins with, each with its parent."""


@shapes.frozen(kw_only=True)
class OpenSession:
    """The session file at `path`; made there if it does not exist (SES-16)."""

    path: str
    """Relative to the process's working directory."""


@shapes.frozen(kw_only=True)
class MemorySession:
    """A session without a file; may begin with entries (SES-47)."""

    entries: tuple[Entry, ...] = ()
    """In order, each with its parent."""
    header: SessionHeader | None = None
    """None: a new one."""


def _absolute(path: str) -> str:
    return os.path.abspath(path)


Target = NewSession | OpenSession | MemorySession


@shapes.frozen(kw_only=True)
class Surroundings:
    """What new sessions are made of and where."""

    world: World
    cwd: str = attrs.field(converter=_absolute)
    """Working directory; a relative one is the process's at this moment."""
    agent_dir: str | None = None
    """Folder of user files and sessions; None: `~/.camshaft`."""
    durability: Durability = "commit"

    def header(self, session_id: str | None = None, cwd: str | None = None, parent_session: str | None = None) -> SessionHeader:
        """The header of a session that begins now; `cwd` None: the one of these surroundings.

        Raises InvalidOptions for an id that cannot name a file.
        """
        if session_id is not None and not SESSION_ID.fullmatch(session_id):
            raise InvalidOptions(f"{SESSION_ID_TEXT}; got {session_id!r}")
        return SessionHeader(
            id=session_id or self.world.ids.session_id(),
            timestamp=iso(self.world.clock.now_ms()),
            cwd=cwd or self.cwd,
            parent_session=parent_session,
        )

    @property
    def folder(self) -> str:
        """The default folder for sessions of the working directory (SES-65)."""
        return session_folder(self.agent_dir or _default_agent_dir(self.world), self.cwd)

    def store(self, header: SessionHeader) -> JsonlOptions:
        """What the store needs; `header` is for a session that does not exist yet."""
        started = iso(self.world.clock.now_ms())
        return JsonlOptions(
            files=self.world.log_files,
            new_header=lambda: header,
            new_entry_id=self.world.ids.entry_id,
            holder=f"process {os.getpid()}, since {started}",
            durability=self.durability,
        )


def open_log(target: Target, around: Surroundings) -> tuple[Log, Loaded]:
    """The session's store, open for writing, and what is in it.

    Raises InvalidOptions for an id that cannot name a file, NotASession, SessionLocked and
    other StorageErrors; nothing has changed then.
    """
    if isinstance(target, MemorySession):
        return open_memory(target.header or around.header(), target.entries)
    if isinstance(target, OpenSession):
        return open_jsonl(_place(os.path.abspath(target.path)), around.store(around.header()))
    header = around.header(target.id, target.cwd, target.parent_session)
    path = os.path.join(os.path.abspath(target.directory or around.folder), session_file_name(header))
    log, loaded = open_jsonl(path, around.store(header))
    return log, _begun(log, loaded, target.entries)


def _place(path: str) -> str:
    """Where a link leads: the lock and the side file of a session stand beside the file itself, whatever it is called."""
    return os.path.realpath(path) if os.path.islink(path) else path


def _begun(log: Log, loaded: Loaded, entries: tuple[Entry, ...]) -> Loaded:
    """A new session with its first entries, in one commit; its file is made later (SES-55)."""
    if not entries:
        return loaded
    written = False
    try:
        log.append(entries)
        written = True
    finally:
        if not written:
            log.close()
    return attrs.evolve(loaded, entries=entries, leaf=entries[-1].id)


def session_folder(agent_dir: str, cwd: str) -> str:
    """The default folder for sessions of a working directory (SES-65)."""
    flat = re.sub(r"[/\\:]", "-", re.sub(r"^[/\\]", "", os.path.abspath(cwd)))
    return os.path.join(agent_dir, "sessions", f"--{flat}--")


def session_file_name(header: SessionHeader) -> str:
    """Name of a new session's file (SES-66)."""
    return f"{re.sub('[:.]', '-', header.timestamp)}_{header.id}.jsonl"


def _default_agent_dir(world: World) -> str:
    return os.path.join(home_folder(world), ".camshaft")


def home_folder(world: World) -> str:
    """The user's own folder."""
    return world.environment.get("HOME") or os.path.expanduser("~")
