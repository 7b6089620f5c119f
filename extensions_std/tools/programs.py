"""Where the programs are that the tools need."""

import os
import sys
import sysconfig
from collections.abc import Mapping

from camshaft.actors.api import NoShell, Processes, find_shell
from camshaft.extensions_std.tools.failures import ToolFailure


async def shell_path(processes: Processes, environment: Mapping[str, str], configured: str | None = None) -> str:
    """The shell commands run in. Raises ToolFailure if there is none."""
    try:
        return await find_shell(processes, environment, configured)
    except NoShell as error:
        raise ToolFailure(str(error)) from None


async def ripgrep_path(processes: Processes, environment: Mapping[str, str]) -> str:
    """The `rg` that was installed with this package, else one on PATH. Raises ToolFailure if there is none."""
    installed = [os.path.join(folder, "rg") for folder in (os.path.dirname(sys.executable), sysconfig.get_path("scripts"))]
    found = await processes.find_program([*installed, "rg"], environment.get("PATH", os.defpath))
    if found is None:
        raise ToolFailure("ripgrep (rg) was found neither beside Python nor on PATH; install the package 'ripgrep' again")
    return found
