"""A sample: keeps lines beside the editor, above it or below it.

`/note TEXT` pins a text above the editor, `/note-below TEXT` below it; without a text it is taken away. A widget
has a key, keeps its place when it is set again, and shows ten lines at most.

Load it with `camshaft -e widget_placement.py`. The notes are kept as `custom` entries of the branch, which no model
sees, and are shown again when the session is opened anew or somebody goes to another place in its tree.
"""

from collections.abc import Mapping
from typing import Final, Literal

from camshaft.actors.api import CommandContext, CustomEntry, ExtensionAPI, ExtensionContext, SessionStartEvent, SessionTreeEvent

Placement = Literal["aboveEditor", "belowEditor"]

NOTE: Final = "pinned-note"
"""Type of the entries."""

COMMANDS: Final[Mapping[str, Placement]] = {"note": "aboveEditor", "note-below": "belowEditor"}


def setup(api: ExtensionAPI) -> None:
    """Registers commands and hooks."""

    def register(name: str, placement: Placement) -> None:
        def pin(arguments: str, ctx: CommandContext) -> None:
            """Notes the text, and shows what is noted."""
            api.append_entry(NOTE, {"placement": placement, "text": arguments.strip()})
            show(ctx)

        api.register_command(name, pin, description=f"Pin a text ({placement})")

    for name, placement in COMMANDS.items():
        register(name, placement)
    api.on("session_start", show_again)
    api.on("session_tree", show_again)


def show_again(_event: SessionStartEvent | SessionTreeEvent, ctx: ExtensionContext) -> None:
    """Shows the notes of the branch that is now the current one."""
    show(ctx)


def show(ctx: ExtensionContext) -> None:
    """Shows the last note of each place; an empty one is none."""
    texts: dict[str, str] = {}
    for entry in ctx.session.get_branch():
        if isinstance(entry, CustomEntry) and entry.custom_type == NOTE and isinstance(entry.data, dict):
            texts[str(entry.data["placement"])] = str(entry.data["text"])
    for placement in COMMANDS.values():
        text = texts.get(placement)
        ctx.ui.set_widget(f"{NOTE}-{placement}", text.splitlines() if text else None, placement=placement)
