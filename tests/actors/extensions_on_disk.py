"""Extensions on disk for tests, and a loader without a conversation around it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import trio

from camshaft.actors.actor import Limbo
from camshaft.actors.event_stream import EventStream
from camshaft.actors.extension_host import ExtensionHost
from camshaft.actors.extension_loading import Loader
from camshaft.actors.extension_modules import ModuleCache
from camshaft.actors.generation import Generation
from camshaft.actors.host import ExtensionMisuse
from camshaft.actors.loading import Source
from camshaft.actors.options import Limits
from camshaft.actors.oversight import Oversight
from camshaft.actors.registrations import Command, Extension, Flag, Handler
from tests.actors.running import simulate, tool


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """The folder, with these files in it; folders on the way are made."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@attrs.define(eq=False)
class SmallAPI:
    """As much of the API of an extension as loading is about."""

    extension: Extension

    def note(self, value: Any) -> None:
        """Keeps a value for the test, as the name of a command."""
        self.command(str(value))

    def checked(self) -> Extension:
        if self.extension.failed:
            raise ExtensionMisuse(f'Extension "{self.extension.path}" failed to load and its API is no longer active.')
        return self.extension

    def command(self, name: str) -> None:
        extension = self.checked()
        extension.commands = {**extension.commands, name: Command(name=name, handler=print)}

    def tool(self, name: str) -> None:
        extension = self.checked()
        extension.tools = {**extension.tools, name: tool(print, name)}

    def flag(self, name: str) -> None:
        extension = self.checked()
        extension.flags = {**extension.flags, name: Flag(name=name, type="boolean")}

    def on(self, hook: str, function: Any) -> None:
        extension = self.checked()
        extension.handlers = (*extension.handlers, Handler(hook, function, False))


@attrs.define(eq=False)
class Generations:
    """One generation of extensions after the other, from one cache of modules."""

    nursery: trio.Nursery
    modules: ModuleCache = attrs.field(factory=ModuleCache)
    host: ExtensionHost = attrs.field(init=False)

    def new(self, cwd: str = "/") -> Loader:
        """A loader for a new generation."""
        limbo, begun = Limbo(self.nursery), Generation(1)
        self.host = ExtensionHost(EventStream(), lambda: 0, begun, Oversight(limbo, Limits(), self.nursery, begun))
        return Loader(self.host, cwd, SmallAPI, limbo, self.modules)

    async def load(self, *sources: Source, cwd: str = "/") -> "Generations":
        """A new generation of these."""
        await self.new(cwd).load(sources)
        return self

    def noted(self) -> list[str]:
        """What the extensions noted, in load order."""
        return [name for extension in self.host.extensions for name in extension.commands]

    def errors(self) -> list[tuple[str, str]]:
        return [(each.path, each.error) for each in self.host.load_errors]

    def warnings(self) -> list[tuple[str, str]]:
        return [(each.path, each.warning) for each in self.host.load_warnings]


def with_generations(test: Any) -> Any:
    """The result of `test(generations)` on a virtual clock."""

    async def run() -> Any:
        async with trio.open_nursery() as nursery:
            generations = Generations(nursery)
            result = await test(generations)
            generations.modules.clear()
            nursery.cancel_scope.cancel()
            return result
        raise AssertionError

    return simulate(run)


def loaded(*sources: Source, cwd: str = "/") -> tuple[list[str], list[tuple[str, str]]]:
    """What one loading noted, and its errors."""

    async def load(generations: Generations) -> tuple[list[str], list[tuple[str, str]]]:
        await generations.load(*sources, cwd=cwd)
        return generations.noted(), generations.errors()

    result: tuple[list[str], list[tuple[str, str]]] = with_generations(load)
    return result


def shown(sources: Sequence[Any], folder: Path) -> list[str]:
    """The paths of a list, below a folder."""
    return [str(getattr(each, "path", getattr(each, "name", ""))).replace(f"{folder}/", "") for each in sources]
