"""The built-in tools: read, bash, edit, write; and, inactive unless chosen, grep, find, ls, powershell."""

from camshaft.actors.api import ToolDefinition
from camshaft.extensions_std.tools.bash import ShellOptions, create_bash_tool, create_powershell_tool
from camshaft.extensions_std.tools.edit import create_edit_tool
from camshaft.extensions_std.tools.failures import ToolFailure
from camshaft.extensions_std.tools.find import create_find_tool
from camshaft.extensions_std.tools.grep import create_grep_tool
from camshaft.extensions_std.tools.ls import create_ls_tool
from camshaft.extensions_std.tools.paths import resolve_path
from camshaft.extensions_std.tools.read import create_read_tool
from camshaft.extensions_std.tools.write import create_write_tool

__all__ = [
    "ShellOptions",
    "ToolFailure",
    "builtin_tools",
    "create_bash_tool",
    "create_edit_tool",
    "create_find_tool",
    "create_grep_tool",
    "create_ls_tool",
    "create_powershell_tool",
    "create_read_tool",
    "create_write_tool",
    "resolve_path",
]


def builtin_tools(shell: ShellOptions | None = None) -> tuple[ToolDefinition, ...]:
    """All built-in tools in their usual order, working in the world of whoever calls them."""
    return (
        create_read_tool(),
        create_bash_tool(shell),
        create_edit_tool(),
        create_write_tool(),
        create_grep_tool(),
        create_find_tool(),
        create_ls_tool(),
        create_powershell_tool(),
    )
