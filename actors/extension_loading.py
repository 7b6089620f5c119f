"""Running the factories of one generation of extensions, one after the other, and what came of it.

Theory of operation. A factory that returned has an `Extension` in the host, in load order; one that failed is
dropped as a whole: everything it registered hangs on its `Extension`, so that nothing of it stays anywhere
(EXT-24). What did not load is data in the host, `load_errors`; whether that is fatal is the affair of who opens
the conversation (EXT-26).
"""

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from camshaft.actors.actor import Failure, guard
from camshaft.actors.extension_host import ExtensionHost
from camshaft.actors.loading import ExtensionSource, InlineExtension, LoadError, setup_of
from camshaft.actors.places import located, place_of
from camshaft.actors.registrations import Extension
from camshaft.kernel.tools import SourceInfo


@attrs.define(eq=False)
class Loader:
    """Fills one host with extensions."""

    _host: ExtensionHost
    _cwd: str
    _api_for: Callable[[Extension], Any]

    async def load(self, sources: Sequence[ExtensionSource | InlineExtension]) -> None:
        """Runs every factory, one after the other (EXT-20); a failing one is dropped as a whole (EXT-24)."""
        for source in sources:
            await self._load(source)
        self._host.rebuild()
        self._report_conflicts()

    async def _load(self, source: ExtensionSource | InlineExtension) -> None:
        found = setup_of(source, self._cwd)
        if isinstance(found, LoadError):
            self._host.load_errors.append(found)
            return
        path, setup = found
        inline = isinstance(source, InlineExtension)
        info = SourceInfo(path=path, source="inline" if inline else "cli")
        extension = Extension(path=path, name=source.name if isinstance(source, InlineExtension) else path, source_info=info)
        self._host.extensions.append(extension)
        outcome = await guard(setup, self._api_for(extension))
        if isinstance(outcome, Failure):
            self._drop(extension, outcome, inline)

    def _drop(self, extension: Extension, failure: Failure, inline: bool) -> None:
        extension.failed = True
        self._host.extensions.remove(extension)
        text = failure.text if inline else f"Failed to load extension: {located(failure.error, failure.text, extension.path)}"
        place = place_of(failure.error) if inline else None
        self._host.load_errors.append(LoadError(path=extension.path, error=text, place=place))

    def _report_conflicts(self) -> None:
        """A tool name of two extensions: the first wins, the later one is told (EXT-30)."""
        owners: dict[str, str] = {}
        for extension in self._host.extensions:
            for name in extension.tools:
                if name in owners:
                    self._host.load_errors.append(LoadError(path=extension.path, error=f'Tool "{name}" conflicts with {owners[name]}'))
                owners.setdefault(name, extension.path)
