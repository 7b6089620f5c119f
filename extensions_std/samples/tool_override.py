"""A sample: puts its own `read` in the place of the built-in one, to refuse some files and to note each access.

A tool of an extension replaces the built-in tool of its name. This one is the built-in definition with another
`execute`, so that the model sees the same description and schema and frontends show it in the same way.

Load it with `camshaft -e tool_override.py`; `/reads` shows what was read. Each access is noted as a `custom`
entry, which no model sees and which stays with its branch.
"""

from typing import Any, Final

import attrs

from camshaft.actors.api import CommandContext, CustomEntry, ExtensionAPI, OnUpdate, Signal, ToolContext, ToolResult
from camshaft.extensions_std.tools import ToolFailure, create_read_tool, resolve_path

ACCESS: Final = "read-access"
"""Type of the notes."""

SECRET_NAMES: Final = (".env", "id_rsa", "credentials.json")
SECRET_FOLDERS: Final = (".ssh", ".aws", ".gnupg")


def setup(api: ExtensionAPI) -> None:
    """Registers the tool and the command."""
    builtin = create_read_tool()

    async def execute(call_id: str, params: dict[str, Any], signal: Signal, on_update: OnUpdate, ctx: ToolContext) -> ToolResult:
        """Notes the access, then reads, if it is allowed."""
        allowed = not is_secret(resolve_path(params["path"], ctx.cwd, ctx.world.environment))
        api.append_entry(ACCESS, {"path": params["path"], "allowed": allowed})
        if not allowed:
            raise ToolFailure(f"Access to {params['path']!r} is not allowed: it may hold secrets")
        result: ToolResult = await builtin.execute(call_id, params, signal, on_update, ctx)
        return result

    api.register_tool(attrs.evolve(builtin, execute=execute))
    api.register_command("reads", show_reads, description="Show which files were read")


def is_secret(path: str) -> bool:
    """Whether a file may hold secrets, by its name and the folders above it; where a link leads is not looked at."""
    *folders, name = path.split("/")
    return name in SECRET_NAMES or any(folder in SECRET_FOLDERS for folder in folders)


def show_reads(_arguments: str, ctx: CommandContext) -> None:
    """The command: the accesses on the branch."""
    found = [entry.data for entry in ctx.session.get_branch() if isinstance(entry, CustomEntry) and entry.custom_type == ACCESS]
    lines = [f"{'read' if access['allowed'] else 'refused'} {access['path']}" for access in found if isinstance(access, dict)]
    ctx.ui.notify("\n".join(lines) or "Nothing was read")
