"""What running a command line takes, whoever asked for it, a model or a person: the shell and the environment (TOOL-70, TOOL-71)."""

import os
from collections.abc import Mapping
from typing import Final

from camshaft.actors.errors import CamshaftError
from camshaft.actors.ports.processes import Processes

SHELLS: Final = ("/bin/bash", "bash", "sh")
"""In order of preference (TOOL-70)."""

FAMILIES: Final = ("PI_", "CAMSHAFT_")
"""Prefixes of the session variables (TOOL-71)."""

SESSION_VARIABLES: Final = ("SESSION_ID", "SESSION_FILE", "PROVIDER", "MODEL", "REASONING_LEVEL")
"""What follows the prefix."""


class NoShell(CamshaftError):
    """There is no shell to run commands in."""


async def find_shell(processes: Processes, environment: Mapping[str, str], configured: str | None = None) -> str:
    """The shell commands run in: the configured one, else the first of SHELLS there is. Raises NoShell."""
    names = (configured,) if configured else SHELLS
    shell = await processes.find_program(names, environment.get("PATH", os.defpath))
    if shell is None:
        raise NoShell(f"No shell: none of {', '.join(names)} can be run; set the shell path")
    return shell


def without_session(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without the variables that name a session: those inherited are of another one (TOOL-71)."""
    stale = {family + name for family in FAMILIES for name in SESSION_VARIABLES}
    return {name: value for name, value in environment.items() if name not in stale}


def prefixed(command: str, prefix: str | None) -> str:
    """The command with the configured prefix on a line before it."""
    return f"{prefix}\n{command}" if prefix else command
