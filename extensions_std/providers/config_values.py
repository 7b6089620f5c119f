"""Templates in configured keys and headers: environment variables and commands (MOD-60, MOD-61, MOD-63)."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from camshaft.actors.api import ProcessCommand, Processes
from camshaft.extensions_std.providers.credentials import AuthUnresolved

COMMAND_TIMEOUT_S: Final = 10.0
"""Longest run of a command that prints a key (MOD-60)."""

RunCommand = Callable[[str], Awaitable[str | None]]
"""The trimmed output of a shell command, or None if it failed, took too long, or printed nothing."""

_PIECE: Final = re.compile(r"\$\$|\$!|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)")


OUTPUT_MAX_BYTES: Final = 64 * 1024
"""How much of a command's output is kept; a key is shorter."""


def shell(processes: Processes, environment: Mapping[str, str], cwd: str) -> RunCommand:
    """Runs commands in the shell of `processes`, without input and with their errors discarded."""

    async def run(command: str) -> str | None:
        said = bytearray()

        async def keep(piece: bytes) -> None:
            if len(said) < OUTPUT_MAX_BYTES:
                said.extend(piece)

        async def discard(_piece: bytes) -> None:
            return

        asked = ProcessCommand(arguments=("/bin/sh", "-c", command), cwd=cwd, environment=environment, timeout_s=COMMAND_TIMEOUT_S)
        try:
            end = await processes.run(asked, keep, on_errors=discard)
        except OSError:
            return None
        text = said.decode("utf-8", "replace").strip()
        return text if end.why == "exited" and end.exit_code == 0 and text else None

    return run


async def resolved(template: str, what: str, environment: Mapping[str, str], run: RunCommand) -> str:
    """The value of `template`. Raises AuthUnresolved, which names `what` and the variables or the command, never a value."""
    if template.startswith("!"):
        said = await run(template[1:])
        if said is None:
            raise AuthUnresolved(f"Failed to resolve {what} from shell command: {template[1:]}")
        return said
    missing = missing_variables(template, environment)
    if missing:
        plural = "s" if len(missing) > 1 else ""
        raise AuthUnresolved(f"Failed to resolve {what} from environment variable{plural}: {', '.join(missing)}")
    return _PIECE.sub(lambda found: _value(found, environment), template)


def missing_variables(template: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Variables of `template` that are unset or blank, in order, each once; none for a command."""
    if template.startswith("!"):
        return ()
    names = [found[1] or found[2] for found in _PIECE.finditer(template) if found[1] or found[2]]
    return tuple(dict.fromkeys([name for name in names if not environment.get(name, "").strip()]))


def _value(found: re.Match[str], environment: Mapping[str, str]) -> str:
    name = found[1] or found[2]
    return environment[name] if name else found[0][1]
