"""From an extension source to its `setup` callable: files, packages, inline functions.

A module is imported fresh, under a name of its own, for every loading: two extensions with
equally named modules never see each other's, and module globals do not survive a reload.
"""

import importlib.util
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

import attrs

from camshaft.actors.actor import Failure, guard_now
from camshaft.actors.places import located

Setup = Callable[[Any], Any]
"""`setup(api)`, sync or async."""

MODULE_PREFIX: Final = "camshaft_loaded_extension_"
"""Modules of extensions are called this and a number that no other loading in the process has."""


@attrs.frozen(kw_only=True)
class ExtensionSource:
    """A file or package folder with a `setup`."""

    path: str
    """Relative to the conversation's working directory."""


@attrs.frozen(kw_only=True)
class InlineExtension:
    """A setup function that the host hands in; its path is `<inline:NAME>`."""

    name: str
    """For messages."""
    setup: Setup
    """`setup(api)`, sync or async."""


@attrs.frozen(kw_only=True)
class LoadError:
    """An extension that did not load, or a registration that was refused."""

    path: str
    error: str
    place: str | None = None
    """Of an inline extension that raised: `FILE, line N`. The error of a file names it in its text."""


def setup_of(source: ExtensionSource | InlineExtension, cwd: str) -> tuple[str, Setup] | LoadError:
    """The path of the extension and its entry point (EXT-8, EXT-25)."""
    if isinstance(source, InlineExtension):
        return f"<inline:{source.name}>", source.setup
    path = os.path.abspath(os.path.join(cwd, os.path.expanduser(source.path)))
    file = os.path.join(path, "__init__.py") if os.path.isdir(path) else path
    if not os.path.exists(file):
        return LoadError(path=path, error=f"Extension path does not exist: {file if os.path.isdir(path) else path}")
    module = guard_now(_imported, file)
    if isinstance(module, Failure):
        return LoadError(path=path, error=f"Failed to load extension: {located(module.error, module.text, file)}")
    setup = getattr(module.value, "setup", None)
    if not callable(setup):
        return LoadError(path=path, error=f"Extension does not export a valid factory function: {path}")
    return path, setup


def _imported(file: str) -> ModuleType:
    number = 1 + sum([1 for name in sys.modules if name.startswith(MODULE_PREFIX)])
    name = f"{MODULE_PREFIX}{number}"
    folder = [os.path.dirname(file)] if os.path.basename(file) == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folder)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file!r} is no Python file; expected NAME.py or a folder with __init__.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loaded = guard_now(spec.loader.exec_module, module)
    if isinstance(loaded, Failure):
        del sys.modules[name]
        raise loaded.error
    return module
