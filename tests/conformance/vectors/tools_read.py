"""Vector family `tools-read` (VECTORS.md 5.1)."""

from typing import Any

from camshaft.extensions_std.tools import create_read_tool
from tests.conformance.vectors._tool_case import run_tool


async def run(case_input: dict[str, Any]) -> object:
    """The result of the call, or its failure, and what it changed."""
    return await run_tool(create_read_tool(), case_input)
