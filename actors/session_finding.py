"""Which session file is meant: the most recent one, one by its id or the beginning of it (SES-65 to SES-70).

    places = session_places(option, world.environment, setting, agent_dir, cwd)
    found = await most_recent_session(world, places)

Only the beginnings of files are read here, one after another, and as few as decide the question.
A file whose header cannot be read is passed over; naming it is what tells what is wrong with it.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Final

from camshaft.actors.opening import session_folder
from camshaft.actors.ports.files import Files
from camshaft.actors.session_list import SESSION_SUFFIX, SessionFileName, belongs, session_files, session_folders
from camshaft.actors.world import World
from camshaft.kernel import shapes
from camshaft.kernel.session_summary import SessionHead, head_of, summary_of

SESSION_DIR_VARIABLE: Final = "CAMSHAFT_SESSION_DIR"


@shapes.frozen(kw_only=True)
class SessionPlaces:
    """Where sessions of a working directory are."""

    cwd: str
    folder: str
    """Where new ones go, and where is looked first."""
    is_default: bool
    """Whether that is the default folder of `cwd`, in which a session that says no directory counts (SES-69)."""
    root: str | None
    """The folder whose folders hold sessions of all working directories; None: `folder` is all there is."""


@shapes.frozen(kw_only=True)
class FoundSession:
    """A session file and what its header says."""

    path: str
    id: str
    cwd: str
    """Empty if the header says none."""
    is_here: bool
    """Whether it counts for the working directory it was looked for from."""


def session_places(option: str | None, environment: Mapping[str, str], setting: str | None, agent_dir: str, cwd: str) -> SessionPlaces:
    """The folder of the option, else of the variable, else of the setting, else the default (SES-67).

    A given folder may begin with `~` and is relative to `cwd`.
    """
    default = session_folder(agent_dir, cwd)
    given = option or environment.get(SESSION_DIR_VARIABLE) or setting
    if not given:
        return SessionPlaces(cwd=cwd, folder=default, is_default=True, root=os.path.dirname(default))
    folder = session_path(given, cwd)
    return SessionPlaces(cwd=cwd, folder=folder, is_default=folder == default, root=None)


def is_session_path(text: str) -> bool:
    """Whether an argument that names a session is a path, not an id (SES-70)."""
    return "/" in text or "\\" in text or text.endswith(SESSION_SUFFIX)


def session_path(text: str, cwd: str) -> str:
    """The absolute path that a person wrote."""
    return os.path.abspath(os.path.join(cwd, os.path.expanduser(text)))


async def session_head(files: Files, path: str) -> SessionHead | None:
    """The header of a session file; None if there is none to be read."""
    try:
        return await files.digest(path, head_of)
    except (OSError, ValueError):
        return None


async def most_recent_session(world: World, places: SessionPlaces) -> FoundSession | None:
    """The session of the working directory whose file changed last (SES-69)."""
    names = await session_files(world.files, places.folder)
    for name in sorted(names, key=lambda each: (-each.modified_ms, each.path)):
        found = await _found(world.files, name.path, places)
        if found is not None and found.is_here:
            return found
    return None


async def session_with_id(world: World, places: SessionPlaces, id: str) -> FoundSession | None:
    """The session of the working directory with exactly this id, the first by name (SES-70)."""
    for name in await session_files(world.files, places.folder):
        found = await _found(world.files, name.path, places)
        if found is not None and found.is_here and found.id == id:
            return found
    return None


async def session_named(world: World, places: SessionPlaces, beginning: str) -> FoundSession | None:
    """The session with this id, else the one with the latest activity whose id begins so (SES-70).

    Those of the working directory come first, then all others.
    """
    if not beginning:
        return None
    files = world.files
    here = await session_files(files, places.folder)
    found = await _best(files, here, places, beginning, only_here=True)
    if found is not None:
        return found
    folders = (places.folder,) if places.root is None else await session_folders(files, places.root)
    everywhere = [name for folder in folders for name in await session_files(files, folder)]
    return await _best(files, everywhere, places, beginning, only_here=False)


async def _best(
    files: Files, names: Sequence[SessionFileName], places: SessionPlaces, beginning: str, *, only_here: bool
) -> FoundSession | None:
    matches = []
    for name in names:
        found = await _found(files, name.path, places)
        if found is not None and found.id.startswith(beginning) and (found.is_here or not only_here):
            matches.append((found, name))
    exact = [match for match in matches if match[0].id == beginning]
    return await _latest(files, exact or matches)


async def _latest(files: Files, matches: Sequence[tuple[FoundSession, SessionFileName]]) -> FoundSession | None:
    """The one with the latest activity, as a listing has it; whole files are read only to choose among several."""
    if len(matches) <= 1:
        return next((found for found, _ in matches), None)
    times = [(await _activity_ms(files, name), found) for found, name in matches]
    return max(times, key=lambda each: each[0])[1]


async def _activity_ms(files: Files, name: SessionFileName) -> int:
    try:
        item = await files.digest(name.path, lambda pieces: summary_of(pieces, name.path, name.modified_ms))
    except (OSError, ValueError):
        return name.modified_ms
    return name.modified_ms if item is None else item.modified_ms


async def _found(files: Files, path: str, places: SessionPlaces) -> FoundSession | None:
    head = await session_head(files, path)
    if head is None:
        return None
    is_here = belongs(head.cwd, places.cwd, is_default=places.is_default and os.path.dirname(path) == places.folder)
    return FoundSession(path=path, id=head.id, cwd=head.cwd, is_here=is_here)
