"""Vector family `tools-bash` (VECTORS.md 5.1)."""

from typing import Any

from camshaft.extensions_std.tools import ShellOptions, create_bash_tool
from tests.conformance.vectors._tool_case import run_tool


async def run(case_input: dict[str, Any]) -> object:
    """The result of the command, or its failure, and the spill file."""
    given = case_input.get("options") or {}
    options = ShellOptions(
        shell_path=given.get("shellPath"),
        command_prefix=given.get("commandPrefix"),
        expose_session=given.get("exposeSessionEnvironment", True),
    )
    return await run_tool(create_bash_tool(options), case_input)
