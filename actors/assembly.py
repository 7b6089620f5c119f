"""Putting together what a conversation acts through: session, extensions, providers, prompt.

Done when a conversation is opened, and again when its session is replaced or its extensions
are loaded anew. Nothing here tells anybody; the seat does, once the parts are in place.
"""

import os

import attrs

from camshaft.actors.errors import MissingWorkingDirectory
from camshaft.actors.extension_host import ExtensionHost
from camshaft.actors.generation import Generation
from camshaft.actors.loading import LoadError
from camshaft.actors.logs.port import Loaded, Log
from camshaft.actors.opening import OpenSession
from camshaft.actors.options import OpenOptions, require_folder
from camshaft.actors.oversight import Oversight
from camshaft.actors.preloading import loader_for
from camshaft.actors.rest import Rest
from camshaft.actors.seat_parts import Ground, SeatParts
from camshaft.actors.session import SessionActor, loaded_state
from camshaft.kernel.commands import UseSettings
from camshaft.kernel.events import DiagnosticEvent
from camshaft.kernel.prompt import PromptOptions
from camshaft.kernel.records import RunRecord
from camshaft.kernel.state import SessionState
from camshaft.kernel.tools import allows


async def assembled(ground: Ground, options: OpenOptions, log: Log, loaded: Loaded, generation: int = 1) -> SeatParts:
    """Parts around the session in `log`; its extensions are loaded, and nothing was told to them yet.

    Raises InvalidOptions, MissingWorkingDirectory.
    """
    state = loaded_state(loaded, options.settings)
    cwd = effective_cwd(options, state, log)
    session = SessionActor(log, ground.world.clock, ground.world.ids, ground.stream, state)
    return SeatParts(
        ground=ground,
        options=options,
        session=session,
        host=await _loaded_host(ground, options, cwd, generation),
        rest=Rest(session, ground.stream, ground.nursery),
        base_prompt=_base_prompt(options, cwd),
        found=_found(loaded),
    )


async def reassembled(parts: SeatParts, options: OpenOptions, cwd: str | None = None) -> SeatParts:
    """The same session with a new generation of extensions, and with what `options` say now; `cwd` None: where it is."""
    cwd = cwd or parts.base_prompt.cwd
    parts.session.post(UseSettings(settings=options.settings))
    return attrs.evolve(
        parts,
        options=options,
        host=await _loaded_host(parts.ground, options, cwd, parts.host.generation.number + 1),
        base_prompt=_base_prompt(options, cwd),
    )


async def _loaded_host(ground: Ground, options: OpenOptions, cwd: str, generation: int) -> ExtensionHost:
    """The host of a new generation; one that was preloaded for this folder is used, once."""
    taken = None
    if options.preloaded is not None and options.preloaded.cwd == cwd:
        taken = options.preloaded.take(ground.stream, ground.bus, ground.modules, generation)
    if taken is None:
        begun = Generation(generation)
        oversight = Oversight(ground.limbo, ground.limits, ground.nursery, begun, ground.watchdog)
        host = ExtensionHost(ground.stream, ground.world.clock.now_ms, begun, oversight)
        loader = loader_for(host, cwd, ground.limbo, ground.modules, ground.world)
    else:
        host, loader = taken
    host.bus, host.flag_values = ground.bus, dict(options.flags)
    host.use_tools(options.builtin_tools, lambda name: allows(options.tools, options.exclude_tools, name))
    is_loaded = False
    try:
        await loader.load(options.extensions)
        base, build = tuple(options.providers), options.build_provider
        failed = host.registry.begin(base, build, host.report, options.model_lists, options.model_overlay)
        host.load_errors += [LoadError(path=path, error=error) for path, error in failed]
        is_loaded = True
    finally:
        host.generation.stale = not is_loaded
    return host


def effective_cwd(options: OpenOptions, state: SessionState, log: Log) -> str:
    """Where the conversation runs: an opened session's own directory, unless overridden (SES-17, SES-18)."""
    here = os.path.abspath(options.cwd)
    stored = state.header.cwd
    if options.override_cwd or not isinstance(options.session, OpenSession) or not stored:
        require_folder(here)
        return here
    if not os.path.isdir(stored):
        raise MissingWorkingDirectory(stored, log.path or "", here)
    return stored


def _base_prompt(options: OpenOptions, cwd: str) -> PromptOptions:
    return PromptOptions(
        cwd=cwd,
        custom_prompt=options.system_prompt or None,
        append_system_prompt="\n\n".join(options.append_system_prompt) or None,
        context_files=options.context_files,
    )


def _found(loaded: Loaded) -> tuple[DiagnosticEvent, ...]:
    """What opening noticed: damaged lines, an unfinished run. It acts on nothing."""
    found = [DiagnosticEvent(source="session", message=str(each)) for each in loaded.diagnostics]
    unfinished = [record for record in loaded.records if isinstance(record, RunRecord)]
    if unfinished:
        text = f"the last run was cut off (run {unfinished[-1].run_id}); nothing was resumed: go on with a new prompt"
        found.append(DiagnosticEvent(source="session", message=text))
    return tuple(found)
