"""Where the programs are that the tools need."""

import os
import sys
import sysconfig
from collections.abc import Mapping
from typing import Final

from camshaft.actors.api import Processes
from camshaft.extensions_std.tools.failures import ToolFailure

SHELLS: Final = ("/bin/bash", "bash", "sh")
"""In order of preference (TOOL-70)."""


async def shell_path(processes: Processes, environment: Mapping[str, str], configured: str | None = None) -> str:
    """The shell commands run in: the configured one, else the first of SHELLS there is. Raises ToolFailure if there is none."""
    names = (configured,) if configured else SHELLS
    shell = await processes.find_program(names, environment.get("PATH", os.defpath))
    if shell is None:
        raise ToolFailure(f"No shell: none of {', '.join(names)} can be run; set the shell path")
    return shell


async def ripgrep_path(processes: Processes, environment: Mapping[str, str]) -> str:
    """The `rg` that was installed with this package, else one on PATH. Raises ToolFailure if there is none."""
    installed = [os.path.join(folder, "rg") for folder in (os.path.dirname(sys.executable), sysconfig.get_path("scripts"))]
    found = await processes.find_program([*installed, "rg"], environment.get("PATH", os.defpath))
    if found is None:
        raise ToolFailure("ripgrep (rg) was found neither beside Python nor on PATH; install the package 'ripgrep' again")
    return found
