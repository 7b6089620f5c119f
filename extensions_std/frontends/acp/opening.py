"""Opening sessions for a client: each in a folder of its own, with that folder's settings, extensions and trust."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import attrs

from camshaft.actors.api import World
from camshaft.actors.host import (
    CamshaftError,
    FoundSession,
    Kernel,
    MemorySession,
    NewSession,
    OpenSession,
    Seat,
    SessionItem,
    SessionPlaces,
    list_all_sessions,
    list_sessions,
    session_places,
    session_with_id,
    settings_files,
)
from camshaft.extensions_std.frontends import sessions
from camshaft.extensions_std.frontends.acp.records import AUTH_REQUIRED, INTERNAL_ERROR, INVALID_PARAMS, NOT_FOUND, RpcError
from camshaft.extensions_std.frontends.acp.session import Session
from camshaft.extensions_std.frontends.arguments import Arguments
from camshaft.extensions_std.frontends.conversation import StartupFailed
from camshaft.extensions_std.frontends.extension_signs import may_be_there
from camshaft.extensions_std.frontends.reports import report_event, report_opening
from camshaft.extensions_std.frontends.startup import Startup, agent_dir_of, ready_providers, started, unconfigured
from camshaft.extensions_std.providers.scripted import ScriptedProvider

PAGE: Final = 100
"""Sessions in one answer of `session/list`."""
TITLE_CHARACTERS_MAX: Final = 80


@attrs.frozen(kw_only=True)
class Opener:
    """What all sessions of a connection have in common."""

    kernel: Kernel
    words: list[str] = attrs.field(repr=False)
    arguments: Arguments
    """The words, read without knowledge of flags of extensions."""
    world: World
    here: str
    """Where the command was given: relative paths of its arguments start there."""
    scripted: ScriptedProvider | None = None
    """One script for all sessions."""

    @property
    def keeps_sessions(self) -> bool:
        """Whether there are files to load them from."""
        return not self.arguments.no_session

    @property
    def unconfigured(self) -> str:
        """What to do about having no model at all."""
        return unconfigured(agent_dir_of(self.world.environment))

    async def is_configured(self) -> bool:
        """Whether there is a model to be used by what files, variables and the command line say; extensions may bring one, too.

        Raises RpcError.
        """
        if self.scripted is not None or self.arguments.api_key is not None or may_be_there(self.words, dict(self.world.environment)):
            return True
        try:
            chosen = sessions.Chosen(target=MemorySession(), cwd=self.here)
            served, _build = await ready_providers(started(self.arguments, self.world, self.here, chosen, None))
        except (CamshaftError, StartupFailed) as error:
            raise RpcError(INTERNAL_ERROR, str(error)) from None
        return any([each.configured() for each in served.providers])

    async def open(self, session: Session, cwd: str, id: str | None = None) -> Seat:
        """Opens a new session, or that of an id, of whatever folder, in `cwd`. Raises RpcError."""
        folder = _folder(cwd)
        try:
            seat = await self._open(session, folder, id)
        except StartupFailed as error:
            raise RpcError(INTERNAL_ERROR, str(error) or "an extension could not be loaded; standard error tells more") from None
        except OSError as error:
            raise RpcError(INTERNAL_ERROR, str(error)) from None
        if seat.model is None:
            await seat.close(at_once=True)
            raise RpcError(AUTH_REQUIRED, self.unconfigured)
        return seat

    async def _open(self, session: Session, cwd: str, id: str | None) -> Seat:
        target = await self._target(cwd, id)
        chosen = sessions.Chosen(target=target, cwd=cwd, override_cwd=True)
        start = started(self.arguments, self.world, self.here, chosen, self.scripted)
        job = await Startup(words=self.words, start=start, piped="", is_terminal=False).job(self.kernel)
        options = attrs.evolve(
            job.options,
            ui=session.ui,
            followers=(*job.options.followers, session.follower),
            listeners=(*job.options.listeners, session.hear, report_event),
        )
        seat = await self.kernel.open(options)
        if report_opening(seat, options):
            await seat.close(at_once=True)
            raise StartupFailed
        return seat

    async def _target(self, cwd: str, id: str | None) -> sessions.Target:
        where = self._places(cwd)
        if id is None:
            return NewSession(directory=where.folder) if self.keeps_sessions else MemorySession()
        found = await self._found(where, id) if self.keeps_sessions else None
        if found is None:
            raise RpcError(NOT_FOUND, f"there is no session {id!r}")
        return OpenSession(path=found)

    async def _found(self, where: SessionPlaces, id: str) -> str | None:
        """The file of the session with exactly this id; one of this folder first."""
        here: FoundSession | None = await session_with_id(self.world, where, id)
        if here is not None:
            return here.path
        return next((item.path for item in await self._items(where, None) if item.id == id), None)

    def _places(self, cwd: str) -> SessionPlaces:
        environment, agent_dir = self.world.environment, agent_dir_of(self.world.environment)
        found = settings_files(agent_dir, cwd, trusted=False)
        return session_places(self.arguments.session_dir, environment, found.session_dir, agent_dir, cwd)

    async def _items(self, where: SessionPlaces, cwd: str | None) -> Sequence[SessionItem]:
        if cwd is None and where.root is not None:
            return await list_all_sessions(self.world, where.root)
        return await list_sessions(self.world, where.folder, cwd=cwd, is_default=where.is_default)

    async def page(self, cwd: str | None, cursor: str | None) -> dict[str, Any]:
        """The sessions of a folder, or all, latest activity first. Raises RpcError."""
        if not (cursor is None or (cursor.isascii() and cursor.isdigit() and len(cursor) < 10)):
            raise RpcError(INVALID_PARAMS, f"cursor: {cursor!r} is none that was given")
        try:
            items = await self._items(self._places(cwd or self.here), cwd) if self.keeps_sessions else ()
        except CamshaftError as error:
            raise RpcError(INTERNAL_ERROR, str(error)) from None
        first = int(cursor or 0)
        shown = [_item(each, cwd or self.here) for each in items[first : first + PAGE]]
        return {"sessions": shown, **({"nextCursor": str(first + PAGE)} if len(items) > first + PAGE else {})}


def _folder(cwd: str) -> str:
    """The path as everybody writes it. Raises RpcError."""
    if not os.path.isabs(cwd) or "\0" in cwd or not os.path.isdir(cwd):
        raise RpcError(INVALID_PARAMS, f"cwd: {cwd!r} is not the absolute path of a folder")
    return os.path.normpath(cwd)


def _item(item: SessionItem, cwd: str) -> dict[str, Any]:
    """A session, as a list of them shows it."""
    title = item.name or " ".join(item.first_message.split())
    updated = datetime.fromtimestamp(item.modified_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    record = {"sessionId": item.id, "cwd": item.cwd or cwd, "updatedAt": updated}
    return {**record, "title": title[:TITLE_CHARACTERS_MAX]} if title else record
