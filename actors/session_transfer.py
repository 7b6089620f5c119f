"""Session files from elsewhere and to elsewhere: import, fork from another project, export (SES-83 to SES-86).

A source is read and judged before anything is written, and never changed. What is made appears
whole or not at all. Paths may be relative to the process's working directory.
"""

import os
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from camshaft.actors.errors import CommandRefused, MissingWorkingDirectory, NotASession, SessionFileMissing, StorageError
from camshaft.actors.logs.new_session import create_session, put_whole, replace_whole
from camshaft.actors.opening import OpenSession, Surroundings, session_file_name
from camshaft.actors.ports.log_files import LogFiles
from camshaft.actors.world import World
from camshaft.kernel.clock import iso
from camshaft.kernel.entries import SessionHeader
from camshaft.kernel.errors import Rejection
from camshaft.kernel.extract import exported, fork_copy
from camshaft.kernel.session_file import read_session
from camshaft.kernel.state import SessionState

IMPORT_NAMES_MAX: Final = 10_000
"""Numbers tried for an imported file whose name is taken; a folder with so many namesakes has another problem."""


async def import_session(source: str, directory: str, around: Surroundings, *, require_cwd: bool = True) -> OpenSession:
    """A copy of the session file `source` in `directory`, `-1`, `-2`, … added to a name that is taken (SES-85).

    A file that is in that folder already is used in place. The copy is byte for byte: a session of
    an older version is migrated when it is opened. `require_cwd`: whether its working directory
    must exist, as where nothing overrides it.

    Raises SessionFileMissing, NotASession, MissingWorkingDirectory, StorageError; nothing was made then.
    """
    token = around.world.ids.token()
    return OpenSession(path=await _apart(around.world, lambda: _imported(source, directory, around, token, require_cwd)))


async def fork_from(source: str, around: Surroundings, *, directory: str | None = None, session_id: str | None = None) -> OpenSession:
    """A new session with all entries of the file `source`, for the working directory of `around` (SES-83, SES-84).

    It goes to `directory`, or the default one. Raises CommandRefused for a source that is missing,
    empty or no session, InvalidOptions for a bad id, StorageError; nothing was made then.
    """
    header = around.header(session_id)
    return OpenSession(path=await _apart(around.world, lambda: _forked(source, directory or around.folder, around, header)))


async def export_session(state: SessionState, world: World, path: str | None = None, own: str | None = None) -> str:
    """Writes the active branch as a session file of its own; its absolute path (SES-86).

    `path` None: `session-<time>.jsonl` in the process's working directory. A file that is there is
    replaced, one that is the session's `own` is not. Raises CommandRefused, StorageError.
    """
    now = iso(world.clock.now_ms())
    text = exported(state.tree, state.projection.leaf, SessionHeader(id=state.header.id, timestamp=now, cwd=state.header.cwd))
    name = path or f"session-{now.replace(':', '-').replace('.', '-')}.jsonl"
    token = world.ids.token()
    return await _apart(world, lambda: _exported(text, name, own, world.log_files, token))


def _imported(source: str, directory: str, around: Surroundings, token: str, require_cwd: bool) -> str:
    files, source = around.world.log_files, os.path.abspath(source)
    data = _read(files, source)
    found = read_session(data, source, around.world.ids.entry_id)
    if isinstance(found, Rejection):
        raise NotASession(source, found.why)
    stored = found.header.cwd
    if require_cwd and stored and not os.path.isdir(stored):
        # It names the source: there is no copy to be removed again.
        raise MissingWorkingDirectory(stored, source, around.cwd)
    target = os.path.join(os.path.abspath(directory), os.path.basename(source))
    if _is_same(files, source, target):
        return target
    _make_folder(files, target)
    return put_whole(files, _numbered(target), data, beside=f"{target}.{token}.new")


def _forked(source: str, directory: str, around: Surroundings, header: SessionHeader) -> str:
    files, source = around.world.log_files, os.path.abspath(source)
    try:
        data = _read(files, source)
    except SessionFileMissing:
        data = b""
    text = fork_copy(data, source, attrs.evolve(header, parent_session=source), around.world.ids.entry_id)
    if isinstance(text, Rejection):
        raise CommandRefused(text.why)
    path = os.path.join(os.path.abspath(directory), session_file_name(header))
    _make_folder(files, path)
    create_session(files, path, text)
    return path


def _exported(text: bytes, path: str, own: str | None, files: LogFiles, token: str) -> str:
    path = os.path.abspath(path)
    place = os.path.realpath(path)
    if own is not None and (place == os.path.realpath(own) or _is_same(files, own, place)):
        raise CommandRefused(f"Cannot export a session over its own file: {path}")
    _make_folder(files, place)
    replace_whole(files, place, text, beside=f"{place}.{token}.new")
    return path


def _read(files: LogFiles, path: str) -> bytes:
    try:
        return files.read(path)
    except FileNotFoundError:
        raise SessionFileMissing(path) from None
    except OSError as error:
        raise StorageError(path, f"cannot read the session ({error})", "check the path and its permissions") from error


def _is_same(files: LogFiles, one: str, other: str) -> bool:
    """Whether both names lead to one file."""
    try:
        states = files.state(one), files.state(other)
    except OSError:
        return False
    return states[0] is not None and states[1] is not None and states[0].identity == states[1].identity


def _make_folder(files: LogFiles, path: str) -> None:
    try:
        files.make_folder(path)
    except OSError as error:
        raise StorageError(path, f"cannot make the folder ({error})", "check its permissions") from error


def _numbered(path: str) -> Iterator[str]:
    """The path, then with -1, -2, … before its extension."""
    yield path
    stem, extension = os.path.splitext(path)
    for number in range(1, IMPORT_NAMES_MAX):
        yield f"{stem}-{number}{extension}"


async def _apart(world: World, made: Callable[[], str]) -> str:
    """What a job that blocks makes; a cancel comes before it or after."""
    found: list[str] = []
    await world.log_files.blocking(lambda: found.append(made()))
    return found[0]
