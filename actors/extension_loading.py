"""Running the factories of one generation of extensions, one after the other, and what came of it.

Theory of operation. A factory that returned has an `Extension` in the host, in load order; one that failed is
dropped as a whole: everything it registered hangs on its `Extension`, so that nothing of it stays anywhere
(EXT-24). What did not load is data in the host, `load_errors` and `load_warnings`; whether that is fatal is the
affair of who opens the conversation (EXT-26).

A loader may be asked twice, first for those that are asked about trust and then for all (EXT-62, TRUST-8): what was
loaded is used as it is, what failed is not tried again, what is not wanted any more is left out.

An async factory has `FACTORY_LIMIT_S`; then it is ended by force and did not load. One that blocks without awaiting
blocks everything: nothing here can end it.
"""

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from camshaft.actors.actor import Abandoned, Bounds, Cut, Failure, Limbo, guard_now, is_awaitable
from camshaft.actors.command_names import reserved_names
from camshaft.actors.extension_conflicts import conflicts, without_replaced
from camshaft.actors.extension_files import Owner, named
from camshaft.actors.extension_host import ExtensionHost
from camshaft.actors.extension_modules import ModuleCache
from camshaft.actors.loading import (
    BuiltinExtension,
    ExtensionFile,
    ExtensionSource,
    InlineExtension,
    InstalledExtension,
    LoadError,
    LoadWarning,
    Setup,
    Source,
    source_info_of,
)
from camshaft.actors.places import located, place_of
from camshaft.actors.registrations import Extension
from camshaft.kernel import shapes

FACTORY_LIMIT_S: Final = 60.0
"""For an async `setup`: enough to ask a slow server once, short enough to find out that nothing will come."""

_Key = tuple[str, int]
Loadable = ExtensionFile | InstalledExtension | BuiltinExtension | InlineExtension


@shapes.define(eq=False)
class Loader:
    """Fills one host with extensions."""

    _host: ExtensionHost
    _cwd: str
    _api_for: Callable[[Extension], Any]
    _limbo: Limbo
    modules: ModuleCache
    """Of the conversation; more than one generation may load from it."""
    _known: dict[_Key, Extension | LoadError] = attrs.field(factory=dict)

    async def load(self, sources: Sequence[Source]) -> None:
        """Runs every factory, one after the other (EXT-20), and leaves the host with these extensions and reports only."""
        self.modules.enter(self._cwd)
        wanted: dict[_Key, Loadable] = {}
        failures: list[LoadError] = []
        warnings: list[LoadWarning] = []
        for source in _resolved(sources, self._cwd):
            if isinstance(source, LoadError):
                failures.append(source)
            elif isinstance(source, LoadWarning):
                warnings.append(source)
            else:
                key = _key(source, wanted)
                if key in wanted:
                    continue
                wanted[key] = source
                if key not in self._known:
                    self._known[key] = await self._load(source)
                outcome = self._known[key]
                failures += [outcome] if isinstance(outcome, LoadError) else []
        loaded = [(source, each) for key, source in wanted.items() if isinstance(each := self._known[key], Extension)]
        kept, replaced = without_replaced(loaded)
        for extension in set(self._host.extensions) - set(kept):
            extension.failed = extension.left_out = True
        self._host.extensions[:] = kept
        self._host.load_errors[:] = [*failures, *conflicts(kept)]
        self._host.load_warnings[:] = [*warnings, *replaced, *reserved_names(kept)]
        self._host.rebuild()

    async def _load(self, source: Loadable) -> Extension | LoadError:
        info = source_info_of(source)
        found = guard_now(self._setup_of, source)
        if isinstance(found, Failure):
            return self._error(source, found)
        if not callable(found.value):
            return LoadError(path=info.path, error=f"Extension does not export a valid factory function: {info.path}")
        name = source.name if isinstance(source, InlineExtension) else info.path
        extension = Extension(path=info.path, name=name, source_info=info)
        self._host.extensions.append(extension)
        is_loaded = False
        try:
            failure = await self._run(found.value, extension)
            is_loaded = extension.is_loaded = failure is None
        finally:
            if not is_loaded:
                extension.failed = True
                self._host.extensions.remove(extension)
        return extension if failure is None else self._error(source, failure)

    async def _run(self, setup: Setup, extension: Extension) -> Failure | None:
        begun = guard_now(_unless_exit, setup, self._api_for(extension))
        if isinstance(begun, Failure):
            return begun
        if not is_awaitable(begun.value):
            return None
        bounds = Bounds()
        bounds.end_after(FACTORY_LIMIT_S)
        outcome = await self._limbo.run(f"setup of {extension.path}", _awaited, begun.value, bounds=bounds)
        if isinstance(outcome, Cut | Abandoned):
            return Failure(TimeoutError(f"setup did not return within {FACTORY_LIMIT_S:g} s"))
        return outcome if isinstance(outcome, Failure) else None

    def _setup_of(self, source: Loadable) -> object:
        """The entry point, None if there is none (EXT-25). Raises what the module raises."""
        if isinstance(source, InlineExtension | BuiltinExtension):
            return source.setup
        if isinstance(source, ExtensionFile):
            return getattr(self.modules.module_of(source), "setup", None)
        value: object = self.modules.installed(source)
        for part in source.attribute.split("."):
            value = getattr(value, part, None)
        return value

    def _error(self, source: Loadable, failure: Failure) -> LoadError:
        """Its text names file and line; of an inline one it is the bare message (EXT-24)."""
        path = source_info_of(source).path
        if isinstance(source, InlineExtension):
            return LoadError(path=path, error=failure.text, place=place_of(failure.error))
        files = self.modules.files_of(source) if isinstance(source, ExtensionFile) else ()
        shown = source.file if isinstance(source, ExtensionFile) else path
        return LoadError(path=path, error=f"Failed to load extension: {located(failure.error, failure.text, shown, files)}")


def _resolved(sources: Sequence[Source], cwd: str) -> Iterator[Loadable | LoadError | LoadWarning]:
    """What a host named by path becomes the files it means, or the report that there are none (EXT-8)."""
    for source in sources:
        if isinstance(source, ExtensionSource):
            yield from named(source.path, cwd, Owner(source="cli", scope="temporary"))
        else:
            yield source


def _key(source: Loadable, taken: Mapping[_Key, Loadable]) -> _Key:
    """What makes a source the same as another: its real path (EXT-7); inline ones are never the same."""
    if isinstance(source, ExtensionFile):
        return os.path.realpath(source.file), 0
    path = source_info_of(source).path
    count = sum([1 for key in taken if key[0] == path]) if isinstance(source, InlineExtension) else 0
    return path, count


def _unless_exit(setup: Setup, api: Any) -> Any:
    """Calls `setup`. One that ends the interpreter only ends its own loading."""
    try:
        return setup(api)
    except SystemExit as error:
        raise _ended(error) from None


async def _awaited(begun: Awaitable[object]) -> None:
    try:
        await begun
    except SystemExit as error:
        raise _ended(error) from None


def _ended(error: SystemExit) -> RuntimeError:
    return RuntimeError(f"setup called sys.exit({error.code!r})").with_traceback(error.__traceback__)
