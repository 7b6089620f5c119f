"""Which session the arguments mean: a new one, the newest, one by path or id, a copy, none (CLI-7 to CLI-10)."""

import attrs

from camshaft.actors.api import World
from camshaft.actors.host import (
    FoundSession,
    MemorySession,
    NewSession,
    OpenSession,
    SessionPlaces,
    Surroundings,
    fork_from,
    is_session_path,
    most_recent_session,
    session_head,
    session_named,
    session_path,
    session_with_id,
)
from camshaft.extensions_std.frontends.arguments import Arguments

Target = NewSession | OpenSession | MemorySession


class SessionNotFound(Exception):
    """The session that was asked for cannot be chosen; the text is for people."""


@attrs.frozen(kw_only=True)
class Chosen:
    """The session to open, the directory it runs in, and what to tell about it."""

    target: Target
    """Of a copy: its folder and id; `made` makes it."""
    cwd: str
    override_cwd: bool = False
    fork_of: str | None = None
    """Path of the session to be copied."""
    warnings: tuple[str, ...] = ()


async def choose(arguments: Arguments, where: SessionPlaces, world: World) -> Chosen:
    """The session that the arguments mean; writes nothing. Raises SessionNotFound."""
    new = NewSession(directory=where.folder, id=arguments.session_id)
    if arguments.no_session:
        return Chosen(target=MemorySession(), cwd=where.cwd)
    if arguments.continue_:
        newest = await most_recent_session(world, where)
        return Chosen(target=new if newest is None else OpenSession(path=newest.path), cwd=where.cwd, override_cwd=True)
    if arguments.fork is not None:
        return Chosen(target=new, cwd=where.cwd, fork_of=await _source(arguments, where, world))
    if arguments.session_id is not None:
        return await _by_exact_id(arguments.session_id, new, where, world)
    if arguments.session is not None:
        return await _named(arguments.session, where, world)
    return Chosen(target=new, cwd=where.cwd)


async def made(chosen: Chosen, world: World) -> Target:
    """The session to open, after the copy was made if it is one. Raises CamshaftError; nothing was made then."""
    new = chosen.target
    if chosen.fork_of is None or not isinstance(new, NewSession):
        return new
    around = Surroundings(world=world, cwd=chosen.cwd)
    return await fork_from(chosen.fork_of, around, directory=new.directory, session_id=new.id)


async def _named(given: str, where: SessionPlaces, world: World) -> Chosen:
    if is_session_path(given):
        path = session_path(given, where.cwd)
        head = await session_head(world.files, path)
        return Chosen(target=OpenSession(path=path), cwd=head.cwd if head is not None and head.cwd else where.cwd)
    found = await _found(given, where, world)
    if found.cwd and not found.is_here:
        hint = f"To go on with it there, give its path: --session {found.path}\nFor a copy of it here: --fork {found.id}"
        raise SessionNotFound(f"Session found in different project: {found.cwd}\n{hint}")
    return Chosen(target=OpenSession(path=found.path), cwd=found.cwd or where.cwd)


async def _source(arguments: Arguments, where: SessionPlaces, world: World) -> str:
    """The session to be copied, of whatever working directory."""
    given, id = arguments.fork or "", arguments.session_id
    if id is not None and await session_with_id(world, where, id) is not None:
        raise SessionNotFound(f"Session already exists with id '{id}'")
    return session_path(given, where.cwd) if is_session_path(given) else (await _found(given, where, world)).path


async def _found(given: str, where: SessionPlaces, world: World) -> FoundSession:
    found = await session_named(world, where, given)
    if found is None:
        raise SessionNotFound(f"No session found matching '{given}'")
    return found


async def _by_exact_id(id: str, new: NewSession, where: SessionPlaces, world: World) -> Chosen:
    match = await session_with_id(world, where, id)
    if match is not None:
        return Chosen(target=OpenSession(path=match.path), cwd=match.cwd or where.cwd)
    return Chosen(target=new, cwd=where.cwd, warnings=(f"No session with id '{id}' here; creating it",))
