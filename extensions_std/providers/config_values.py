"""Templates in configured keys and headers: environment variables and commands (MOD-60, MOD-61, MOD-63)."""

import re
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import trio

from camshaft.extensions_std.providers.credentials import AuthUnresolved

COMMAND_TIMEOUT_S: Final = 10.0
"""Longest run of a command that prints a key (MOD-60)."""

RunCommand = Callable[[str], Awaitable[str | None]]
"""The trimmed output of a shell command, or None if it failed, took too long, or printed nothing."""

_PIECE: Final = re.compile(r"\$\$|\$!|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)")


async def shell_output(command: str) -> str | None:
    """Runs `command` in the shell, without input and with its errors discarded."""
    with trio.move_on_after(COMMAND_TIMEOUT_S):
        done = await trio.run_process(
            ["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, capture_stdout=True, stderr=subprocess.DEVNULL, check=False
        )
        said = done.stdout.decode("utf-8", "replace").strip()
        return said if done.returncode == 0 and said else None
    return None


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
