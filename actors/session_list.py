"""Listing session files: of one folder, or of all folders of sessions (SES-68, SES-71 to SES-74).

    items = await list_sessions(world, folder, cwd="/srv/app")

Files are read in threads, at most ten at a time, and none is opened as a session, so a listing
takes no lease and repairs nothing. A file that cannot be read, or is no session, is left out; a
folder that cannot be read gives no items. A cancelled listing raises, like everything else.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import attrs
import trio

from camshaft.actors.actor import Failure, guard_now
from camshaft.actors.ports.files import Files, FolderEntry
from camshaft.actors.world import World
from camshaft.kernel import shapes
from camshaft.kernel.session_summary import SessionItem, summary_of

LOADS_MAX: Final = 10
"""Files read at the same time by one listing (SES-74)."""

PARTIAL_EVERY: Final = 50
"""Loads between two partial lists at first; later a quarter of what is loaded, so that sorting stays cheap."""

SESSION_SUFFIX: Final = ".jsonl"

Progress = Callable[[int, int, tuple[SessionItem, ...] | None], object]
"""Called with the number of files read so far, of all files, and now and then with the items so far, newest first."""


@shapes.frozen(kw_only=True)
class SessionFileName:
    """A file that may hold a session."""

    path: str
    modified_ms: int
    """When the file changed last, ms since the epoch."""


async def list_sessions(
    world: World, folder: str, *, cwd: str | None = None, is_default: bool = False, progress: Progress | None = None
) -> tuple[SessionItem, ...]:
    """The sessions in a folder, latest activity first.

    `cwd`: only those of this working directory. `is_default`: the folder is the default one of `cwd`, in
    which a session that says no directory counts too (SES-69). A `progress` that raises is not called again.
    """
    items = await _listed(world.files, await session_files(world.files, folder), progress)
    return items if cwd is None else tuple([item for item in items if belongs(item.cwd, cwd, is_default=is_default)])


async def list_all_sessions(world: World, root: str, *, progress: Progress | None = None) -> tuple[SessionItem, ...]:
    """The sessions in all folders below `root`, one level deep, latest activity first."""
    names = [name for folder in await session_folders(world.files, root) for name in await session_files(world.files, folder)]
    return await _listed(world.files, names, progress)


async def session_files(files: Files, folder: str) -> tuple[SessionFileName, ...]:
    """The files of a folder that may be sessions, by name; none if the folder cannot be read."""
    found = await _entries(files, folder)
    return tuple(
        [
            SessionFileName(path=os.path.join(folder, each.name), modified_ms=each.modified_ms)
            for each in found
            if each.name.endswith(SESSION_SUFFIX) and not each.is_directory
        ]
    )


async def session_folders(files: Files, root: str) -> tuple[str, ...]:
    """The folders directly below `root`, by name; none if it cannot be read."""
    return tuple([os.path.join(root, each.name) for each in await _entries(files, root) if each.is_directory])


def belongs(session_cwd: str, cwd: str, *, is_default: bool) -> bool:
    """Whether a session with this directory in its header counts for the working directory `cwd` (SES-69)."""
    return os.path.normpath(session_cwd) == os.path.normpath(cwd) if session_cwd else is_default


async def _entries(files: Files, folder: str) -> list[FolderEntry]:
    try:
        return sorted(await files.list_folder(folder), key=lambda each: each.name)
    except (OSError, ValueError):
        return []


async def _listed(files: Files, names: Sequence[SessionFileName], progress: Progress | None) -> tuple[SessionItem, ...]:
    listing = _Listing(files=files, names=names, progress=progress, waiting=iter(names))
    async with trio.open_nursery() as nursery:
        for _ in range(min(LOADS_MAX, len(names))):
            nursery.start_soon(listing.work)
    return listing.newest_first()


@shapes.define(kw_only=True)
class _Listing:
    """One listing under way; its workers take the next name from `waiting`."""

    files: Files
    names: Sequence[SessionFileName]
    progress: Progress | None
    waiting: Iterator[SessionFileName]
    loaded: int = 0
    partial_at: int = PARTIAL_EVERY
    items: list[SessionItem] = attrs.field(factory=list)

    async def work(self) -> None:
        """Reads files until none is left."""
        for name in self.waiting:
            item = await self._read(name)
            if item is not None:
                self.items.append(item)
            self.loaded += 1
            self._tell()

    def newest_first(self) -> tuple[SessionItem, ...]:
        """The items so far, latest activity first, equal times by path."""
        return tuple(sorted(self.items, key=lambda item: (-item.modified_ms, item.path)))

    async def _read(self, name: SessionFileName) -> SessionItem | None:
        try:
            return await self.files.digest(name.path, partial(summary_of, path=name.path, file_modified_ms=name.modified_ms))
        except (OSError, ValueError, MemoryError):
            return None

    def _tell(self) -> None:
        if self.progress is None:
            return
        due = self.loaded >= self.partial_at
        if due:
            self.partial_at = self.loaded + max(PARTIAL_EVERY, self.loaded // 4)
        told = guard_now(self.progress, self.loaded, len(self.names), self.newest_first() if due else None)
        if isinstance(told, Failure):
            self.progress = None
