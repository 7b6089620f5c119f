"""A sample: asks before the model runs a dangerous shell command, and refuses it where nobody can be asked.

Load it with `camshaft -e permission_gate.py`. It keeps nothing: every command is looked at anew. The patterns
catch mistakes, not malice; a command can be written in ways that no list foresees. Whoever needs a wall runs
the agent in a container.
"""

import re
from typing import Final

from camshaft.actors.api import ExtensionAPI, ExtensionContext, ToolCallEvent, ToolCallResult

SAME: Final = r"[^\n;|&]*"
"""Anything that still belongs to the same command."""

DANGERS: Final = (
    (rf"\brm\b{SAME}\s(-\w*[rRf]|--recursive|--force)", "deletes files without asking"),
    (r"\b(sudo|doas|su)\b", "runs as another user"),
    (rf"\b(chmod|chown)\b{SAME}(\b777\b|\s-\w*R|--recursive)", "changes who may use files"),
    (rf"\b(mkfs\S*|fdisk|shred)\b|\bdd\b{SAME}\bof=|>\s*/dev/(sd|nvme|disk)", "overwrites a disk"),
    (rf"\bgit\b.{{0,60}}\b(push|reset|clean)\b{SAME}\s(--force|--hard|-\w*f)", "throws away work in git"),
    (r"\b(curl|wget)\b[^\n;|]*\|\s*(ba|z|da)?sh\b", "runs a program from the network"),
    (r"\b(shutdown|reboot|halt|poweroff)\b", "stops the computer"),
)
"""Patterns of commands, and what those do."""

CHARACTERS_MAX: Final = 4_000
"""Of a command that is looked at. Patterns take long for long texts, and nobody reads such a command in a dialog."""


def setup(api: ExtensionAPI) -> None:
    """Registers the gate. A gate that raises blocks the call, so a mistake in here lets nothing through."""
    api.on("tool_call", gate)


async def gate(event: ToolCallEvent, ctx: ExtensionContext) -> ToolCallResult | None:
    """Lets everything pass but dangerous commands that nobody allowed."""
    if event.tool_name != "bash":
        return None
    command = str(event.input.get("command", ""))
    danger = danger_of(command)
    if danger is None:
        return None
    if not ctx.has_ui:
        return ToolCallResult(block=True, reason=f"Blocked: this command {danger}, and there is nobody to ask. Find another way.")
    if await ctx.ui.confirm(f"This command {danger}. Run it?", command, signal=ctx.signal):
        return None
    return ToolCallResult(block=True, reason=f"Blocked by the user: this command {danger}.")


def danger_of(command: str) -> str | None:
    """What a command does that should be asked about; None if nothing is known."""
    if len(command) > CHARACTERS_MAX:
        return "is too long to be looked at"
    return next((danger for pattern, danger in DANGERS if re.search(pattern, command, re.IGNORECASE)), None)
