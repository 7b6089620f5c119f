"""Importing the modules of extensions: apart from each other, evaluated once per loading, traceless when forgotten.

Theory of operation. What belongs together is a *unit*: a folder that is an extension with all its modules, or one file
with what stands beside it. A unit is a package in `sys.modules` under a name that nobody else has, its modules are
submodules of it, and so two extensions with equally named modules never meet (EXT-14). Its modules find each other

    from . import helper, from .helper import f    as in every package
    import helper, from helper import f            as in every script: beside the file, then in the extension's folder
    from my_extension.helper import f              by the name of the folder that is the extension

The plain forms are looked up by an `__import__` that the modules of the unit have among their builtins; `sys.path`
and `sys.meta_path` are not touched. Who comes first when names are equal: the standard library always; then, in a
folder extension, its own modules and after them what is installed; for a file that stands alone, what is installed
and after that its neighbours, because in a folder of extensions the neighbours are other extensions.

Sources are compiled from the text that is there now: byte code, whose age is only known to the second, is neither read
nor written. An installed extension is imported under its own name like any library (EXT-13).

A `ModuleCache` belongs to one conversation. Loading again from it gives the same modules, as a session replacement
needs; a reload clears it first, and so does a change of the working directory (EXT-28). What was cleared is out of
`sys.modules`; objects that still run keep working, but for imports that they only make then.
"""

import builtins
import importlib
import importlib.machinery
import importlib.util
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Final

import attrs

from camshaft.actors.loading import ExtensionFile, InstalledExtension
from camshaft.kernel import shapes

MODULE_PREFIX: Final = "camshaft_loaded_extension_"
"""Units are called this and a number that no other unit in the process has."""

_LOADERS: Final = (
    (importlib.machinery.ExtensionFileLoader, tuple(importlib.machinery.EXTENSION_SUFFIXES)),
    (importlib.machinery.SourceFileLoader, tuple(importlib.machinery.SOURCE_SUFFIXES)),
)


@shapes.define(eq=False)
class Unit:
    """The modules of one extension, or of all that one folder lists."""

    name: str
    """Of its package in `sys.modules`."""
    folder: str
    """Its package's folder."""
    own_name: str | None = None
    """What its modules may call the package; None: it has no other name."""
    roots: list[str] = attrs.field(factory=list)
    """Folders in which a plain import looks, all at or below `folder`."""
    loaded: list[str] = attrs.field(factory=list)
    """Names in `sys.modules`, in the order of loading."""
    files: list[str] = attrs.field(factory=list)
    """Every file that was begun to be evaluated, also those that failed."""
    _builtins: Mapping[str, Any] = attrs.field(init=False)
    _lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)
    """Threads of an extension may import late; as elsewhere, none of them sees half a module."""

    def __attrs_post_init__(self) -> None:
        self._builtins = {**vars(builtins), "__import__": self._import}

    def entry(self, file: ExtensionFile) -> ModuleType:
        """The module of the extension. Raises what its code raises; then the unit has nothing more than before."""
        before = len(self.loaded)
        done = False
        try:
            module = self._entry(file)
            done = True
        finally:
            if not done:
                self._forget_from(before)
        return module

    def forget(self) -> None:
        """Takes its modules out of `sys.modules`, also those that were imported past it, with `importlib`."""
        for name in [each for each in sys.modules if each == self.name or each.startswith(f"{self.name}.")]:
            del sys.modules[name]
        self.loaded.clear()

    def _entry(self, file: ExtensionFile) -> ModuleType:
        self._package(self.name, self.folder)
        name = self.name
        folder, path = self.folder, os.path.relpath(file.file, self.folder)
        for part in os.path.dirname(path).split(os.sep) if os.path.dirname(path) else ():
            name, folder = f"{name}.{_part(part)}", os.path.join(folder, part)
            self._package(name, folder)
        if os.path.basename(path) == "__init__.py":
            return sys.modules[name]
        name = f"{name}.{_part(os.path.splitext(os.path.basename(path))[0])}"
        return self._loaded(name) or self._by_path(name, file.file)

    def _loaded(self, name: str) -> ModuleType | None:
        return sys.modules.get(name)

    def _package(self, name: str, folder: str) -> None:
        """Makes a folder on the way to a module a package, with its `__init__.py` if it has one."""
        index = os.path.join(folder, "__init__.py")
        if self._loaded(name) is not None:
            return
        if os.path.isfile(index):
            self._by_path(name, index)
        else:
            spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [folder]
            self._executed(spec)

    def _by_path(self, name: str, file: str) -> ModuleType:
        folders = [os.path.dirname(file)] if os.path.basename(file) == "__init__.py" else None
        spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
        if spec is None or spec.loader is None:
            raise ImportError(f"{file!r} is no Python file; expected NAME.py or a folder with __init__.py")
        return self._executed(spec)

    def _executed(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.util.module_from_spec(spec)
        module.__dict__["__builtins__"] = self._builtins
        sys.modules[spec.name] = module
        self.loaded.append(spec.name)
        self.files += [spec.origin] if spec.origin else []
        done = False
        try:
            _run(spec, module)
            done = True
        finally:
            if not done:
                sys.modules.pop(spec.name, None)
        module = sys.modules.get(spec.name, module)  # It may have put something else in its place, as modules may.
        parent, _, last = spec.name.rpartition(".")
        if parent in sys.modules:
            setattr(sys.modules[parent], last, module)
        return module

    def _forget_from(self, count: int) -> None:
        for name in self.loaded[count:]:
            sys.modules.pop(name, None)
        del self.loaded[count:]

    # -- import statements of its modules ----------------------------------------------------

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # the names that `__import__` has
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """As `builtins.__import__`, which it calls when what is wanted is there."""
        with self._lock:
            if level:
                package = (globals or {}).get("__package__")
                if package:
                    self._provide(importlib.util.resolve_name("." * level + name, package), fromlist or ())
                return builtins.__import__(name, globals, locals, fromlist or (), level)
            owned = self._owned(name.partition(".")[0])
            if owned is None:
                return builtins.__import__(name, globals, locals, fromlist or (), 0)
            full = owned + name[len(name.partition(".")[0]) :]
            if self._provide(full, fromlist or ()) is None:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            return builtins.__import__(full, globals, locals, fromlist, 0) if fromlist else sys.modules[owned]

    def _provide(self, full: str, attributes: Sequence[str]) -> ModuleType | None:
        """Loads a module of the unit and those of the wanted attributes that are modules; None if there is no such module."""
        if full != self.name and not full.startswith(f"{self.name}."):
            return None
        module = self._module(full)
        wanted = (getattr(module, "__all__", ()) if attributes[0] == "*" else attributes) if attributes else ()
        for name in wanted:
            if hasattr(module, "__path__") and not hasattr(module, name):
                self._module(f"{full}.{name}")
        return module

    def _module(self, full: str) -> ModuleType | None:
        known = self._loaded(full)
        if known is not None or full == self.name:
            return known
        parent = self._module(full.rpartition(".")[0])
        for folder in getattr(parent, "__path__", ()):
            spec = _spec(full, folder)
            if spec is not None:
                return self._executed(spec)
        return None

    def _owned(self, top: str) -> str | None:
        """The full name of the unit's module that a plain import of `top` means; None if it means none of it."""
        if top in sys.stdlib_module_names or top == "camshaft" or top.startswith(MODULE_PREFIX):
            return None
        if top == self.own_name:
            return self.name
        if self.own_name is None and _is_installed(top):
            return None
        found = [(root, spec) for root in self.roots if (spec := _spec(f"{self.name}.{top}", root)) is not None]
        modules = [root for root, spec in found if spec.loader is not None]
        if not modules and (not found or _is_installed(top)):
            return None
        return self._full_name((modules or [found[0][0]])[0], top)

    def _full_name(self, root: str, top: str) -> str:
        relative = os.path.relpath(root, self.folder)
        parts = [] if relative == os.curdir else [_part(each) for each in relative.split(os.sep)]
        full, folder = self.name, self.folder
        for part, each in zip(parts, relative.split(os.sep)):
            full, folder = f"{full}.{part}", os.path.join(folder, each)
            self._package(full, folder)
        return f"{full}.{top}"


@shapes.define(eq=False)
class ModuleCache:
    """The modules that the extensions of one conversation were loaded from."""

    _units: dict[str, Unit] = attrs.field(factory=dict)
    """By real path of the folder or file."""
    _installed: dict[str, ModuleType] = attrs.field(factory=dict)
    _stale: set[str] = attrs.field(factory=set)
    """Installed modules that are to be evaluated again."""
    _cwd: str | None = None

    def enter(self, cwd: str) -> None:
        """Loading happens for this working directory; another one than before clears the cache (EXT-28)."""
        if self._cwd not in (None, cwd):
            self.clear()
        self._cwd = cwd

    def module_of(self, file: ExtensionFile) -> ModuleType:
        """The module, evaluated now unless it is in the cache. Raises what its code raises."""
        return self._unit(file).entry(file)

    def installed(self, source: InstalledExtension) -> ModuleType:
        """The module of an entry point, likewise."""
        name = source.module
        if name not in self._installed:
            if name in self._stale:
                sys.modules.pop(name, None)
            self._installed[name] = _imported(name)
            self._stale.discard(name)
        return self._installed[name]

    def files_of(self, file: ExtensionFile) -> tuple[str, ...]:
        """The files of the extension's modules, also of those that failed."""
        unit = self._units.get(_key(file))
        return tuple(unit.files) if unit is not None else ()

    def adopt(self, other: "ModuleCache") -> None:
        """Takes over what another cache holds, which is empty then; what was here is forgotten."""
        self.clear()
        self._units, other._units = other._units, self._units
        self._installed, other._installed = other._installed, self._installed
        self._stale, other._stale = self._stale | other._stale, set()
        self._cwd = other._cwd

    def clear(self) -> None:
        """Forgets everything; the next loading evaluates anew."""
        for unit in self._units.values():
            unit.forget()
        self._units.clear()
        self._stale |= set(self._installed)
        self._installed.clear()

    def _unit(self, file: ExtensionFile) -> Unit:
        key = _key(file)
        unit = self._units.get(key)
        if unit is None:
            folder = file.folder or os.path.dirname(file.file)
            unit = Unit(self._free_name(), folder, os.path.basename(file.folder) if file.folder else None)
            self._units[key] = unit
        own = [os.path.dirname(file.file), unit.folder]
        source = [os.path.join(unit.folder, "src")] if file.folder and os.path.isdir(os.path.join(unit.folder, "src")) else []
        unit.roots += [each for each in dict.fromkeys([*own, *source]) if each not in unit.roots]
        return unit

    def _free_name(self) -> str:
        number = len(self._units) + 1
        while f"{MODULE_PREFIX}{id(self):x}_{number}" in sys.modules:
            number += 1
        return f"{MODULE_PREFIX}{id(self):x}_{number}"


def _key(file: ExtensionFile) -> str:
    return os.path.realpath(file.folder or file.file)


def _part(name: str) -> str:
    """A file's name as one part of a module's."""
    return name.replace(".", "_")


def _spec(full: str, folder: str) -> importlib.machinery.ModuleSpec | None:
    """Of the module in a folder as it is now: a finder that lives longer goes by the folder's age."""
    return importlib.machinery.FileFinder(folder, *[(loader, list(suffixes)) for loader, suffixes in _LOADERS]).find_spec(full)


def _is_installed(top: str) -> bool:
    """Whether a plain import finds a module outside; a folder without `__init__.py` somewhere on the path does not count."""
    try:
        spec = importlib.util.find_spec(top)
    except ValueError:  # a name that can be no module's, or a module that something put there without a spec
        return top in sys.modules
    return spec is not None and spec.origin is not None


def _run(spec: importlib.machinery.ModuleSpec, module: ModuleType) -> None:
    """Evaluates a module. One that ends the interpreter only ends its own loading."""
    loader = spec.loader
    try:
        if isinstance(loader, importlib.machinery.SourceFileLoader):
            exec(loader.source_to_code(loader.get_data(loader.path), loader.path), module.__dict__)
        elif loader is not None:
            loader.exec_module(module)
    except SystemExit as error:
        raise _ended(error) from None


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except SystemExit as error:
        raise _ended(error) from None


def _ended(error: SystemExit) -> ImportError:
    said = ImportError(f"the module called sys.exit({error.code!r}) while it was imported")
    return said.with_traceback(error.__traceback__)
