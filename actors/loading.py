"""What an extension may be loaded from, and what is told of one that was not.

Hosts name a file or a folder (`ExtensionSource`), hand in a function (`InlineExtension`, `BuiltinExtension`), or let
`discovery.py` look in the usual places, which gives files and entry points with their provenance (EXT-12).
"""

from collections.abc import Callable
from typing import Any, Final

from camshaft.kernel import shapes
from camshaft.kernel.tools import SourceInfo

Setup = Callable[[Any], Any]
"""`setup(api)`, sync or async."""

ENTRY_POINT: Final = "setup"
"""The attribute of an extension's module that is called (EXT-25)."""


@shapes.frozen(kw_only=True)
class ExtensionSource:
    """A file or folder with a `setup`, or a folder of such files."""

    path: str
    """Relative to the conversation's working directory."""


@shapes.frozen(kw_only=True)
class InlineExtension:
    """A setup function that the host hands in; its path is `<inline:NAME>`."""

    name: str
    """For messages."""
    setup: Setup
    """`setup(api)`, sync or async."""


@shapes.frozen(kw_only=True)
class BuiltinExtension:
    """A setup function that the host offers by name; its path is `builtin:NAME`."""

    name: str
    """Named like this in settings and by `-e builtin:NAME`."""
    setup: Setup
    """`setup(api)`, sync or async."""
    replaceable: bool = False
    """True: left out if another extension registers a tool, command or flag of its; then setup must only register (EXT-11)."""
    enabled: bool = True
    """Whether it is loaded without being named."""

    @property
    def path(self) -> str:
        """What it is called in settings and reports."""
        return f"builtin:{self.name}"


@shapes.frozen(kw_only=True)
class ExtensionFile:
    """An extension that was found in a file, made by `discover_extensions`; to name a file yourself take ExtensionSource."""

    path: str
    """For reports: the file, or the folder that is a package."""
    file: str
    """What is imported."""
    folder: str | None = None
    """The folder that is one extension with all its modules; None: the file stands alone."""
    source_info: SourceInfo

    @property
    def is_package(self) -> bool:
        """Whether the folder itself is the module."""
        return self.folder is not None and self.path == self.folder


@shapes.frozen(kw_only=True)
class InstalledExtension:
    """An entry point of the group `camshaft.extensions` (EXT-13)."""

    name: str
    distribution: str
    module: str
    attribute: str = ENTRY_POINT
    """Dotted, of the module."""

    @property
    def path(self) -> str:
        """What it is called in settings and reports."""
        return f"package:{self.distribution}/{self.name}"


@shapes.frozen(kw_only=True)
class LoadError:
    """An extension that did not load, or a registration that was refused."""

    path: str
    error: str
    place: str | None = None
    """Of an inline extension that raised: `FILE, line N`. The error of a file names it in its text."""


@shapes.frozen(kw_only=True)
class LoadWarning:
    """Something odd about an extension, or one that was left out on purpose."""

    path: str
    warning: str


Source = ExtensionSource | ExtensionFile | InstalledExtension | BuiltinExtension | InlineExtension | LoadError | LoadWarning
"""One element of a list to load; of what finding already knows to be wrong, the report stands in its place."""


def source_info_of(source: ExtensionFile | InstalledExtension | BuiltinExtension | InlineExtension) -> SourceInfo:
    """Who owns what the extension registers (EXT-12)."""
    match source:
        case ExtensionFile():
            return source.source_info
        case InstalledExtension():
            return SourceInfo(path=source.path, source=source.path, scope="user", origin="package")
        case BuiltinExtension():
            return SourceInfo(path=source.path, source="builtin", scope="user")
        case InlineExtension():
            return SourceInfo(path=f"<inline:{source.name}>", source="inline")
