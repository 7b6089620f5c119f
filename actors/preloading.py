"""Extensions that are loaded before their conversation is opened (EXT-40, EXT-62 to EXT-64, TRUST-8).

A host that must know something of extensions first (whether they trust the project, which flags they register, whether
they load at all) loads them with `Kernel.preload` and hands the result to `open`, in `OpenOptions.preloaded`. The
conversation goes on with these very extensions; no factory runs twice. A result that is not handed on is `discard`ed.
"""

from collections.abc import Callable, Mapping, Sequence

from camshaft.actors.actor import Failure, Limbo, guard, guard_now
from camshaft.actors.bus import EventBus
from camshaft.actors.config_provider import BuildProvider
from camshaft.actors.desk import Desk
from camshaft.actors.event_stream import EventStream
from camshaft.actors.extension_api import ExtensionAPI
from camshaft.actors.extension_host import ExtensionHost
from camshaft.actors.extension_loading import Loader
from camshaft.actors.extension_modules import ModuleCache
from camshaft.actors.loading import LoadError, LoadWarning, Source
from camshaft.actors.providers import Provider
from camshaft.actors.registrations import Extension, Flag
from camshaft.actors.trust import TrustAnswer
from camshaft.actors.trust_context import trust_context
from camshaft.actors.world import World
from camshaft.kernel import codec, shapes
from camshaft.kernel.session_events import ProjectTrustEvent, ProjectTrustResult

Say = Callable[[str], None]
"""Tells a person one line: warnings, and notifications of extensions while there is no UI (EXT-64)."""


@shapes.define(eq=False)
class Preloaded:
    """Loaded extensions without a conversation."""

    cwd: str
    """Absolute; the conversation must run there."""
    _host: ExtensionHost
    _loader: Loader
    _desk: Desk
    _say: Say
    _is_taken: bool = False

    async def load(self, sources: Sequence[Source]) -> None:
        """Loads these and leaves out all others; those loaded before are used as they are, those that failed are not tried again."""
        await self._loader.load(sources)

    @property
    def load_errors(self) -> tuple[LoadError, ...]:
        """What did not load, or was refused while loading."""
        return tuple(self._host.load_errors)

    @property
    def load_warnings(self) -> tuple[LoadWarning, ...]:
        """What was odd, and what was left out on purpose."""
        return tuple(self._host.load_warnings)

    @property
    def flags(self) -> Mapping[str, Flag]:
        """The flags by name; of two extensions with one flag the last says its type (EXT-30)."""
        return {name: flag for extension in self._host.extensions for name, flag in extension.flags.items()}

    @property
    def registers_providers(self) -> bool:
        """Whether extensions registered providers or virtual models: the conversation serves them, in the end, besides its host's."""
        return self._host.registry.is_awaited

    def serve(self, providers: tuple[Provider, ...], build: BuildProvider | None) -> tuple[Provider, ...]:
        """What a conversation with these providers would serve; for listing models, before `discard`.

        Registrations that fail are among `load_errors` (PRV-3).
        """
        failed = self._host.registry.begin(providers, build, self._host.report)
        self._host.load_errors += [LoadError(path=path, error=error) for path, error in failed]
        return self._host.registry.providers

    async def ask_trust(self, cwd: str) -> TrustAnswer | None:
        """What the `project_trust` handlers say about a folder: the first yes or no; None if none says either (EXT-63)."""
        event = ProjectTrustEvent(cwd=cwd)
        for extension, handler in self._host.handlers.get("project_trust", ()):
            context = trust_context(self._desk, self._host.generation, cwd, extension.path, self._say)
            outcome = await guard(handler.function, event, context)
            read = outcome if isinstance(outcome, Failure) else guard_now(_result, getattr(outcome, "value", None))
            if isinstance(read, Failure):
                self._say(f'Extension "{extension.path}" project_trust error: {read.text}')
            elif read.value.trusted != "undecided":
                return TrustAnswer(trusted=read.value.trusted == "yes", remember=read.value.remember is True)
        return None

    def discard(self) -> None:
        """Ends these extensions without a conversation."""
        if not self._is_taken:
            self._host.generation.stale = True
            self._loader.modules.clear()

    def take(self, stream: EventStream, bus: EventBus, modules: ModuleCache, generation: int) -> tuple[ExtensionHost, Loader] | None:
        """The host and its loader, from now on part of a conversation that has these; None if they were taken before."""
        if self._is_taken:
            return None
        self._is_taken = True
        modules.adopt(self._loader.modules)
        self._loader.modules = modules
        bus.take_in(self._host.bus)
        self._host.bus = bus
        self._host.stream = stream
        self._host.generation.number = generation
        return self._host, self._loader


def loader_for(host: ExtensionHost, cwd: str, limbo: Limbo, modules: ModuleCache, world: World) -> Loader:
    """What fills the host: its extensions get the API of its generation."""

    def api_for(extension: Extension) -> ExtensionAPI:
        return ExtensionAPI(extension, host, host.generation, cwd, world)

    return Loader(host, cwd, api_for, limbo, modules)


def _result(value: object) -> ProjectTrustResult:
    if value is None:
        raise ValueError("the handler returned nothing; expected trusted to be yes, no or undecided")
    return codec.python(ProjectTrustResult, value)
