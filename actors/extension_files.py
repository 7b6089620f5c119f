"""Which files of a folder are extensions (EXT-3 to EXT-6, EXT-14, EXT-29).

A file `NAME.py` is one. So is a folder with an `__init__.py`, and a folder whose `pyproject.toml` lists files under
`[tool.camshaft] extensions`; the list wins over the `__init__.py`. Any other folder is looked into, one level deep.
Nothing is imported here. What cannot be read is not there; only a list that cannot be understood is an error,
because its author meant something by it.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from camshaft.actors.actor import Failure, guard_now
from camshaft.actors.loading import ExtensionFile, LoadError, LoadWarning
from camshaft.kernel import shapes
from camshaft.kernel.tools import SourceInfo

SUFFIX: Final = ".py"
MANIFEST: Final = "pyproject.toml"
INDEX: Final = "__init__.py"
IGNORE_FILES: Final = (".gitignore", ".ignore", ".fdignore")
SKIPPED_FOLDERS: Final = ("node_modules", "__pycache__", ".venv", "site-packages")
"""Folders of dependencies and leftovers (EXT-5)."""

Found = ExtensionFile | LoadError | LoadWarning


@shapes.frozen(kw_only=True)
class Owner:
    """How and for whom files were found: what their provenance has besides the path (EXT-12)."""

    source: str
    """`local`, `auto` or `cli`."""
    scope: str
    """`user`, `project` or `temporary`."""
    base_dir: str | None = None

    def info(self, path: str) -> SourceInfo:
        """The provenance of what is at `path`."""
        return SourceInfo(path=path, source=self.source, scope=self.scope, base_dir=self.base_dir)


def extensions_at(path: str, owner: Owner) -> tuple[Found, ...]:
    """The extensions of a file, a folder that is an extension, or a folder that holds some; empty if there are none."""
    if os.path.isfile(path):
        return (ExtensionFile(path=path, file=path, source_info=owner.info(path)),)
    return _of_folder(path, owner) or tuple(_scanned(path, owner))


def named(path: str, base: str, owner: Owner) -> tuple[Found, ...]:
    """The extensions at a path that somebody wrote out, or the error that there are none (EXT-8)."""
    full = resolved(path, base)
    if not os.path.exists(full):
        return (LoadError(path=full, error=f"Extension path does not exist: {full}"),)
    said = f"Extension folder has no extension: {full} (expected {INDEX}, files NAME.py, or a {MANIFEST} with [tool.camshaft] extensions)"
    return extensions_at(full, owner) or (LoadError(path=full, error=said),)


def resolved(path: str, base: str) -> str:
    """A written path as an absolute one; `~` is the user's home."""
    return os.path.abspath(os.path.join(base, os.path.expanduser(path)))


def _of_folder(folder: str, owner: Owner) -> tuple[Found, ...]:
    """The extensions that a folder says it is: those of its list, else itself if it is a package."""
    manifest = guard_now(_manifest, os.path.join(folder, MANIFEST))
    if isinstance(manifest, Failure):
        return (LoadError(path=folder, error=f"Failed to load extension: {os.path.join(folder, MANIFEST)}: {manifest.text}"),)
    listed, provided = manifest.value
    warnings: tuple[Found, ...] = ()
    if provided:
        said = f'{MANIFEST} lists "camshaft" among its dependencies; the host provides it, so take it out of the list'
        warnings = (LoadWarning(path=folder, warning=said),)
    found = [_entry(os.path.normpath(os.path.join(folder, each)), folder, owner) for each in listed]
    entries = [each for each in (*found, None if any(found) else _package(folder, owner)) if each is not None]
    return (*entries, *warnings) if entries else ()


def _entry(path: str, folder: str, owner: Owner) -> ExtensionFile | None:
    if os.path.isdir(path):
        return _package(path, owner)
    if not os.path.isfile(path):
        return None
    is_inside = path.startswith(os.path.join(folder, ""))
    return ExtensionFile(path=path, file=path, folder=folder if is_inside else None, source_info=owner.info(path))


def _package(folder: str, owner: Owner) -> ExtensionFile | None:
    index = os.path.join(folder, INDEX)
    return ExtensionFile(path=folder, file=index, folder=folder, source_info=owner.info(folder)) if os.path.isfile(index) else None


def _manifest(path: str) -> tuple[tuple[str, ...], bool]:
    """The list, and whether the dependencies name what the host provides. Raises ValueError if it cannot be understood."""
    try:
        with open(path, "rb") as file:
            manifest: Mapping[str, Any] = tomllib.load(file)
    except OSError:
        return (), False
    own = _table(_table(manifest, "tool"), "camshaft").get("extensions")
    if own is None:
        return (), False
    if not isinstance(own, list) or not all([isinstance(each, str) for each in own]):
        raise ValueError(f"[tool.camshaft] extensions is {own!r}; expected a list of paths")
    needed = _table(manifest, "project").get("dependencies")
    return tuple(own), any([_distribution(each) == "camshaft" for each in needed]) if isinstance(needed, list) else False


def _table(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = parent.get(name)
    return value if isinstance(value, dict) else {}


def _distribution(requirement: object) -> str:
    """The name in a requirement like `Camshaft[x]>=1; python_version > "3.11"`."""
    name = re.match(r"\s*([A-Za-z0-9._-]+)", requirement) if isinstance(requirement, str) else None
    return re.sub(r"[-_.]+", "-", name[1]).lower() if name else ""


def _scanned(folder: str, owner: Owner) -> Iterator[Found]:
    for name in _names(folder):
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            yield from _of_folder(path, owner) if name not in SKIPPED_FOLDERS else ()
        elif name.endswith(SUFFIX) and not name.startswith("_") and os.path.isfile(path):
            yield ExtensionFile(path=path, file=path, source_info=owner.info(path))


def _names(folder: str) -> list[str]:
    """The names in a folder that are neither hidden nor ignored, in byte order (EXT-6)."""
    try:
        names = sorted([name for name in os.listdir(folder) if not name.startswith(".")], key=os.fsencode)
    except OSError:
        return []
    if not any([os.path.isfile(os.path.join(folder, each)) for each in IGNORE_FILES]):
        return names
    kept = _not_ignored(folder)
    return [name for name in names if name in kept]


def _not_ignored(folder: str) -> set[str]:
    """Names that the ignore files in `folder` itself leave; those above it do not count (EXT-5)."""
    import ignore  # On use: few folders have such a file, and the library is a compiled one.

    builder = ignore.WalkBuilder(Path(folder))
    builder = builder.max_depth(1).parents(False).git_global(False).git_exclude(False).require_git(False)
    return {os.path.basename(str(entry.path())) for entry in builder.add_custom_ignore_filename(".fdignore").build()}
