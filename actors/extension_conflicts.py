"""What becomes of equal names that several extensions registered while they were loaded (EXT-11, EXT-30).

Which registration counts is decided where it is read; here is what is told of it. What is registered later is told
to nobody (EXT-31).
"""

from collections.abc import Iterator, Sequence

from camshaft.actors.loading import BuiltinExtension, LoadError, LoadWarning, Source
from camshaft.actors.registrations import Extension

Name = tuple[str, str]
"""Kind and name of a registration."""


def conflicts(extensions: Sequence[Extension]) -> tuple[LoadError, ...]:
    """Tools and flags of two extensions: the first wins, the later one is told."""
    owners: dict[Name, str] = {}
    found = []
    for extension in extensions:
        for kind, name in _names(extension):
            shown = {"tool": f'Tool "{name}"', "flag": f'Flag "--{name}"'}.get(kind)
            if shown is not None and (kind, name) in owners:
                found.append(LoadError(path=extension.path, error=f"{shown} conflicts with {owners[kind, name]}"))
            owners.setdefault((kind, name), extension.path)
    return tuple(found)


def without_replaced(loaded: Sequence[tuple[Source, Extension]]) -> tuple[list[Extension], list[LoadWarning]]:
    """The extensions that stay, and why replaceable ones do not: another one registered a name of theirs."""
    owners: dict[Name, str] = {}
    for source, extension in loaded:
        if not _is_replaceable(source):
            for each in _names(extension):
                owners.setdefault(each, extension.path)
    kept, warnings = [], []
    for source, extension in loaded:
        taken = [each for each in _names(extension) if each in owners] if _is_replaceable(source) else []
        if taken:
            kind, name = taken[0]
            said = f'left out, because {owners[taken[0]]} registers the {kind} "{name}" too'
            warnings.append(LoadWarning(path=extension.path, warning=said))
        else:
            kept.append(extension)
    return kept, warnings


def _is_replaceable(source: Source) -> bool:
    return isinstance(source, BuiltinExtension) and source.replaceable


def _names(extension: Extension) -> Iterator[Name]:
    yield from [("tool", name) for name in extension.tools]
    yield from [("command", name) for name in extension.commands]
    yield from [("flag", name) for name in extension.flags]
