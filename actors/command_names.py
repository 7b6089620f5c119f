"""The names by which commands are called, when several extensions registered the same one (CMD-5, CMD-7, EXT-30)."""

from collections.abc import Mapping, Sequence
from typing import Final

from camshaft.actors.loading import LoadWarning
from camshaft.actors.registrations import Command, Extension
from camshaft.actors.runtime import CommandInfo
from camshaft.kernel import codec

BUILTIN_COMMANDS: Final = frozenset(
    {
        *("settings", "model", "tree", "thinking", "scoped-models", "export", "import", "share", "bug", "copy", "name"),
        *("session", "changelog", "hotkeys", "fork", "clone", "trust", "login", "logout", "new", "compact", "resume"),
        *("reload", "quit"),
    }
)
"""Commands of an interactive frontend; it matches them before those of extensions (CMD-7)."""

Named = Mapping[str, tuple[Extension, Command]]
"""Commands and their owners by the name they are called by."""


def named_commands(extensions: Sequence[Extension]) -> Named:
    """Commands by invocation name; a name of several extensions gets numbers for all of them."""
    listed = [(extension, command) for extension in extensions for command in extension.commands.values()]
    counts: dict[str, int] = {}
    for _, command in listed:
        counts[command.name] = counts.get(command.name, 0) + 1
    named: dict[str, tuple[Extension, Command]] = {}
    for extension, command in listed:
        name, number = command.name, 0
        while (counts[command.name] > 1 and number == 0) or name in named:
            number += 1
            name = f"{command.name}:{number}"
        named[name] = (extension, command)
    return named


def command_infos(named: Named) -> tuple[CommandInfo, ...]:
    """The commands as extensions list them (API-19)."""
    return tuple(
        [
            CommandInfo(name=name, description=command.description, source="extension", source_info=codec.encode(extension.source_info))
            for name, (extension, command) in named.items()
        ]
    )


def ambiguity(named: Named, name: str) -> str | None:
    """What to say of a bare name that several extensions registered, so that it calls none of them; None for any other."""
    meant = [called for called, (_, command) in named.items() if command.name == name]
    if name in named or not meant:
        return None
    owners = ", ".join([f"/{called} ({named[called][0].path})" for called in meant])
    return f'The command "/{name}" is ambiguous; call one of {owners}'


def reserved_names(extensions: Sequence[Extension]) -> tuple[LoadWarning, ...]:
    """What to warn of: commands that an interactive frontend takes for its own."""
    return tuple(
        [
            LoadWarning(path=extension.path, warning=f'Command "/{name}" has the name of a built-in command of interactive frontends')
            for extension in extensions
            for name in extension.commands
            if name in BUILTIN_COMMANDS
        ]
    )
