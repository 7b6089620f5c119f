"""A sample: keeps the tools that change files away from paths that are nobody's to change.

Load it with `camshaft -e protected_paths.py`. It needs no UI and keeps nothing. It looks at what a path says:
a link with a harmless name is followed, and a shell command can write anywhere. See `permission_gate.py` for those.
"""

import os
from fnmatch import fnmatch
from pathlib import PurePath
from typing import Final
from urllib.parse import unquote

from camshaft.actors.api import ExtensionAPI, ExtensionContext, ToolCallEvent, ToolCallResult

CHANGING: Final = ("edit", "write")
"""Tools that change the file at their argument `path`."""

PROTECTED: Final = (".env", ".env.*", ".git", ".ssh", ".venv", "node_modules", "id_*", "*.key", "*.pem")
"""Names, with `*`, that protect a file or everything in a folder."""


def setup(api: ExtensionAPI) -> None:
    """Registers the gate."""
    api.on("tool_call", gate)


def gate(event: ToolCallEvent, ctx: ExtensionContext) -> ToolCallResult | None:
    """Blocks a change of a protected file."""
    if event.tool_name not in CHANGING:
        return None
    path = str(event.input.get("path", ""))
    # The tools take file URLs as well, and do not mind an @ in front of a path.
    said = unquote(path).removeprefix("@")
    rule = rule_for(os.path.normpath(os.path.join(ctx.cwd, said)))
    if rule is None:
        return None
    ctx.ui.notify(f"Kept {event.tool_name} from {path}", "warning")
    return ToolCallResult(block=True, reason=f"{path} is protected by the rule {rule!r} and must not be changed.")


def rule_for(path: str) -> str | None:
    """The first rule that one of the names in a path follows, in whatever case: some file systems do not care."""
    names = [name.lower() for name in PurePath(path).parts]
    return next((rule for rule in PROTECTED if any(fnmatch(name, rule) for name in names)), None)
