"""Making the new session of a fork or a clone (SES-76 to SES-82).

    plan = fork_plan(seat.state.tree, entry_id, "before")
    fork = await write_fork(plan, Source(path=..., header=...), around)
    ... open fork.target ...

What is due at once is written whole before anything of the old session ends; a new session
that has no message yet is only described by its target, and written with its first one.
"""

import os
from typing import Final

from camshaft.actors.errors import CommandRefused, StorageError
from camshaft.actors.logs.new_session import create_session
from camshaft.actors.opening import MemorySession, NewSession, OpenSession, Surroundings, Target, session_file_name
from camshaft.actors.ports.log_files import LogFiles
from camshaft.kernel import codec, shapes
from camshaft.kernel.entries import Entry, SessionHeader
from camshaft.kernel.errors import Rejection
from camshaft.kernel.extract import Extract, extract_branch
from camshaft.kernel.forking import ForkPlan

NOT_SAVED_TEXT: Final = "This session has not been saved yet. Send a message before cloning or forking it."


@shapes.frozen(kw_only=True)
class Source:
    """The session that is forked."""

    path: str | None
    """None in memory."""
    header: SessionHeader


@shapes.frozen(kw_only=True)
class Fork:
    """The new session, made as far as it is due."""

    target: Target
    """How to open it."""
    text: str | None
    """What goes back to the editor (SES-76)."""


@shapes.frozen(kw_only=True)
class NewFile:
    """A session file that is due at once."""

    path: str
    text: bytes


def require_saved(files: LogFiles, path: str | None) -> None:
    """Raises CommandRefused for a session that has a path but no file yet (SES-78)."""
    try:
        missing = path is not None and files.state(path) is None
    except OSError as error:
        raise StorageError(path or "", f"cannot look at the session ({error})", "fix the cause, then try again") from error
    if missing:
        raise CommandRefused(NOT_SAVED_TEXT)


async def write_fork(plan: ForkPlan, source: Source, around: Surroundings) -> Fork:
    """The session of `plan`: in the folder of its source, in memory if that is.

    Raises CommandRefused (SES-78), StorageError; nothing was made then. A cancel comes before the file is made or after.
    """
    require_saved(around.world.log_files, source.path)
    target, due = laid_out(_extract_of(plan, around), source, around)
    if due is not None:
        files, file = around.world.log_files, due
        await files.blocking(lambda: create_session(files, file.path, file.text))
    return Fork(target=target, text=plan.text)


def laid_out(extract: Extract | None, source: Source, around: Surroundings) -> tuple[Target, NewFile | None]:
    """How to open the session of `extract` (None: one without entries), and its file if it is due at once (SES-82)."""
    cwd = source.header.cwd or around.cwd
    if source.path is None:
        return MemorySession(header=around.header(cwd=cwd), entries=_entries(extract)), None
    folder = os.path.dirname(os.path.abspath(source.path))
    if extract is None or not extract.is_worth_a_file:
        return NewSession(directory=folder, cwd=cwd, parent_session=source.path, entries=_entries(extract)), None
    header = around.header(cwd=cwd, parent_session=source.path)
    path = os.path.join(folder, session_file_name(header))
    return OpenSession(path=path), NewFile(path=path, text=codec.line(header) + b"".join(extract.lines()))


def _extract_of(plan: ForkPlan, around: Surroundings) -> Extract | None:
    if plan.leaf_id is None:
        return None
    extract = extract_branch(plan.tree, plan.leaf_id, around.world.ids.entry_id)
    if isinstance(extract, Rejection):
        raise CommandRefused(extract.why)
    return extract


def _entries(extract: Extract | None) -> tuple[Entry, ...]:
    return () if extract is None else tuple(extract.entries())
