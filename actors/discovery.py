"""Where extensions are looked for, and in which order they are loaded (EXT-1, EXT-7 to EXT-13).

Theory of operation. `discover_extensions` gives a list to load, from what the invocation asks for and what the settings of both
scopes say; it reads folders and the list of installed distributions, and imports nothing. The order is that of the
sections below. The same extension may be found twice; the first time counts, which the loader sees to. What is wrong
with an entry stands in the list as its report.

The entries of a settings list are of four kinds: paths and globs add what they name; `!glob`, `+path` and `-path`
decide about what was found anyway (EXT-9; `kernel/path_entries.py` reads them). About one extension the strongest
word counts: `-` before `+` before `!`.
A project's words about its own extensions and those of its user's list about the user's stay apart; about built-in
and installed extensions both speak, and the project has the last word. A project may also name one of the user's
extensions exactly, with `+` or `-`, and has the last word about that, too.
"""

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, Protocol

import attrs

from camshaft.actors.extension_files import Owner, extensions_at, named, resolved
from camshaft.actors.loading import (
    ENTRY_POINT,
    BuiltinExtension,
    ExtensionFile,
    InlineExtension,
    InstalledExtension,
    LoadError,
    LoadWarning,
    Source,
)
from camshaft.kernel import shapes
from camshaft.kernel.path_entries import PathEntries, path_entries

PROJECT_FOLDER: Final = ".camshaft"
EXTENSIONS_FOLDER: Final = "extensions"
ENTRY_POINTS: Final = "camshaft.extensions"
"""The group of installed extensions (EXT-13)."""

Scope = Literal["project", "user"]
_Offered = InstalledExtension | BuiltinExtension
"""What is there without a path, and named in settings by its own."""


class Distribution(Protocol):
    """An installed distribution, as `importlib.metadata` has it."""

    @property
    def name(self) -> str:
        """As in its metadata."""


class EntryPoint(Protocol):
    """An entry point, as `importlib.metadata` has it."""

    @property
    def name(self) -> str:
        """Of the extension."""

    @property
    def value(self) -> str:
        """`module` or `module:attribute`."""

    @property
    def dist(self) -> Distribution | None:
        """Whose it is."""


def installed_entry_points() -> Iterable[EntryPoint]:
    """Those of this Python environment."""
    import importlib.metadata  # On use: not every program looks for extensions, and this takes a while.

    return importlib.metadata.entry_points(group=ENTRY_POINTS)


@shapes.frozen(kw_only=True)
class Invocation:
    """What a process looks for extensions with; the same for all its conversations."""

    agent_dir: str
    """The user's folder."""
    started_in: str
    """Paths of `explicit` are relative to it."""
    explicit: tuple[str, ...] = ()
    """What `-e` names: paths, `builtin:NAME`, `package:DISTRIBUTION/NAME`."""
    only_explicit: bool = False
    """`--no-extensions`: nothing but `explicit` (EXT-10)."""
    builtins: tuple[BuiltinExtension, ...] = ()
    """Those that the host offers."""
    inline: tuple[InlineExtension, ...] = ()
    """Those that the host hands in."""
    entry_points: Callable[[], Iterable[EntryPoint]] = installed_entry_points
    """The installed ones."""


@shapes.frozen(kw_only=True)
class Place:
    """Where a conversation runs, and what settings say about extensions there."""

    cwd: str
    is_trusted: bool
    """False: the project's folder and list count as empty (TRUST-4)."""
    project: tuple[str, ...] = ()
    """The list `extensions` of the project's settings; relative to its `.camshaft`."""
    user: tuple[str, ...] = ()
    """That of the user's; relative to the agent dir."""


def discover_extensions(invocation: Invocation, place: Place) -> tuple[Source, ...]:
    """The extensions to load, in the order of EXT-1, with reports of what is wrong."""
    installed = _installed(invocation.entry_points)
    explicit = tuple(_explicit(invocation, installed))
    if invocation.only_explicit:
        return explicit
    user = _Words.of(place.user, invocation.agent_dir)
    project = _Words.of(place.project if place.is_trusted else (), os.path.join(place.cwd, PROJECT_FOLDER))
    of_project = _of_scope("project", project, None) if place.is_trusted else ()
    offered: tuple[_Offered, ...] = (*installed, *invocation.builtins)
    both = [each for each in offered if _speaks(each, project, user)]
    return (*explicit, *of_project, *_of_scope("user", user, project), *both, *invocation.inline)


def participants(sources: Sequence[Source]) -> tuple[Source, ...]:
    """Those of a list that may be asked whether a project is trusted: neither the project's own nor built-in ones (EXT-62)."""
    return tuple([each for each in sources if not isinstance(each, BuiltinExtension) and not _is_of_project(each)])


def _is_of_project(source: Source) -> bool:
    return isinstance(source, ExtensionFile) and source.source_info.scope == "project"


def _explicit(invocation: Invocation, installed: Sequence[InstalledExtension]) -> Iterator[Source]:
    offered: tuple[_Offered, ...] = (*invocation.builtins, *installed)
    known = {each.path: each for each in offered}
    owner = Owner(source="cli", scope="temporary")
    for written in invocation.explicit:
        if not written.strip():  # as of a variable that is not set; as a path it would be the folder the command was given in
            yield LoadError(path=written, error="Extension path is empty")
        elif written in known:
            yield known[written]
        elif written.startswith("builtin:"):
            yield LoadError(path=written, error=f"Unknown built-in extension: {written}")
        elif written.startswith("package:"):
            yield LoadError(path=written, error=f"Unknown installed extension: {written}")
        else:
            yield from named(written, invocation.started_in, owner)


def _installed(entry_points: Callable[[], Iterable[EntryPoint]]) -> tuple[InstalledExtension, ...]:
    """By name of distribution, then of entry."""
    found = []
    for each in entry_points():
        module, _, attribute = each.value.partition(":")
        distribution = each.dist.name if each.dist is not None else ""
        attribute = attribute.partition("[")[0].strip() or ENTRY_POINT
        found.append(InstalledExtension(name=each.name, distribution=distribution, module=module.strip(), attribute=attribute))
    return tuple(sorted(found, key=lambda each: (each.distribution, each.name)))


# -- the lists of settings -----------------------------------------------------------------


@shapes.frozen(kw_only=True)
class _Words:
    """A list of settings, sorted by what its entries do."""

    base: str
    named: tuple[str, ...]
    """Paths and globs, as they were written."""
    entries: PathEntries

    @classmethod
    def of(cls, written: Sequence[str], base: str) -> "_Words":
        """The sorted list; an empty entry says nothing. The plain name of a built-in or installed extension is as good as one with `+`."""
        entries = path_entries(written, lambda path: resolved(path, base))
        names = tuple([each for each in entries.includes if _is_name(each)])
        plain = [each for each in written if each.strip() and each[0] not in "!+-" and not _is_name(each)]
        return cls(base=base, named=tuple(plain), entries=attrs.evolve(entries, forced_in=(*entries.forced_in, *names)))

    def exactly(self, source: Source) -> bool | None:
        """What `+` and `-` say about it."""
        spellings = _spellings(source)
        if spellings & set(self.entries.forced_out):
            return False
        return True if spellings & set(self.entries.forced_in) else None

    def say(self, source: Source) -> bool | None:
        """What the list says about it; None if nothing."""
        exactly = self.exactly(source)
        return False if exactly is None and not self.entries.allows(*_spellings(source)) else exactly


def _is_name(written: str) -> bool:
    return written.startswith(("builtin:", "package:"))


def _spellings(source: Source) -> set[str]:
    """What an entry may call it."""
    if isinstance(source, ExtensionFile):
        return {source.path, source.file}
    return {source.path} if isinstance(source, InstalledExtension | BuiltinExtension) else set()


def _of_scope(scope: Scope, own: _Words, above: _Words | None) -> tuple[Source, ...]:
    """What a list names, then what its scope's folder holds; `above` has the last word, but only about exact names."""
    listed = [found for written in own.named for found in _listed(written, own.base, Owner(source="local", scope=scope, base_dir=own.base))]
    folder = os.path.join(own.base, EXTENSIONS_FOLDER)
    found = extensions_at(folder, Owner(source="auto", scope=scope, base_dir=own.base)) if os.path.isdir(folder) else ()
    return tuple([each for each in (*listed, *found) if _is_kept(each, own, above)])


def _is_kept(source: Source, own: _Words, above: _Words | None) -> bool:
    last = None if above is None else above.exactly(source)
    return (own.say(source) if last is None else last) is not False


def _speaks(source: _Offered, project: _Words, user: _Words) -> bool:
    """Whether a built-in or installed extension is wanted."""
    for words in (project, user):
        said = words.say(source)
        if said is not None:
            return said
    return source.enabled if isinstance(source, BuiltinExtension) else True


def _listed(written: str, base: str, owner: Owner) -> Iterator[Source]:
    """What an entry of a list names. A path that is not there any more must not stop every start, so it is a warning."""
    if glob.has_magic(written):
        for path in sorted(glob.glob(resolved(written, base)), key=os.fsencode):
            yield from extensions_at(path, owner)
        return
    for each in named(written, base, owner):
        is_gone = isinstance(each, LoadError) and not os.path.exists(each.path)
        yield LoadWarning(path=each.path, warning=each.error) if is_gone and isinstance(each, LoadError) else each
