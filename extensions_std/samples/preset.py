"""A sample: named presets of model, thinking level, tools and instructions.

Load it with `camshaft -e preset.py`. `--preset plan` begins with one, `/preset build` changes to one, `/preset off`
goes back to how it was before, `/preset` lists them. Which preset is on, and what was before, is a `custom` entry: it
belongs to the branch, and is there again when the session is opened. Instructions are a section of the system prompt
of each run; the stored conversation does not repeat them. Copy this file and write your own PRESETS.
"""

from typing import Any, Final

import attrs

from camshaft.actors.api import (
    BeforeAgentStartEvent,
    CommandContext,
    CustomEntry,
    ExtensionAPI,
    ExtensionContext,
    SessionStartEvent,
    SessionTreeEvent,
)

PRESET: Final = "preset"
"""Name of the flag, the command, the section of the prompt, and type of the entries."""


@attrs.frozen(kw_only=True)
class Settings:
    """What a preset says; None: it stays as it is."""

    model: str | None = None
    """`provider/id`."""
    thinking_level: str | None = None
    tools: tuple[str, ...] | None = None
    """Names; those that are not there are left out."""
    instructions: str | None = None


PRESETS: Final = {
    "plan": Settings(
        thinking_level="high",
        tools=("read", "grep", "find", "ls"),
        instructions="Plan only. Read what you need, change nothing, and end with numbered steps that somebody else can carry out.",
    ),
    "build": Settings(
        thinking_level="medium",
        tools=("read", "bash", "edit", "write"),
        instructions="Carry out the plan step by step, and run the tests after each step.",
    ),
}


def setup(api: ExtensionAPI) -> None:
    """Registers the flag, the command, and the moments at which a preset counts."""
    preset = Preset(api)
    api.register_flag(PRESET, type="string", description=f"Begin with a preset: {', '.join(PRESETS)}")
    api.register_command(PRESET, preset.command, description="Change to a preset, or list them")
    api.on("session_start", preset.on_start)
    api.on("session_tree", preset.on_tree)
    api.on("before_agent_start", preset.on_run)


@attrs.define(eq=False)
class Preset:
    """The preset that is on: the last one that the active branch names."""

    api: ExtensionAPI

    async def command(self, arguments: str, ctx: CommandContext) -> None:
        """Changes, or lists."""
        name = arguments.strip()
        if name in PRESETS or name == "off":
            await self.change(name, ctx)
        on = stored(ctx).get("name")
        ctx.ui.notify("\n".join(f"[{'x' if each == on else ' '}] {each}" for each in PRESETS))

    async def on_start(self, event: SessionStartEvent, ctx: ExtensionContext) -> None:
        """The flag counts when the program starts; otherwise the session says what was on."""
        wanted = self.api.get_flag(PRESET)
        if event.reason == "startup" and isinstance(wanted, str):
            if wanted not in PRESETS:
                raise ValueError(f"no preset {wanted!r}; the presets are {', '.join(PRESETS)}")
            await self.change(wanted, ctx)
        else:
            await self.apply(stored(ctx).get("name"))

    async def on_tree(self, _event: SessionTreeEvent, ctx: ExtensionContext) -> None:
        """Another branch, another preset."""
        await self.apply(stored(ctx).get("name"))

    def on_run(self, event: BeforeAgentStartEvent, ctx: ExtensionContext) -> None:
        """Adds the instructions to the prompt of this run."""
        settings = PRESETS.get(stored(ctx).get("name") or "")
        if settings is not None and settings.instructions:
            event.system_prompt_options.sections[PRESET] = settings.instructions

    async def change(self, name: str, ctx: ExtensionContext) -> None:
        """Makes and stores the change."""
        before = stored(ctx).get("before") or {
            "model": None if ctx.model is None else ctx.model.reference,
            "thinking_level": ctx.thinking_level,
            "tools": list(self.api.get_active_tools()),
        }
        if name == "off":
            await self.use(Settings(**before))
            self.api.append_entry(PRESET, {"name": None})
        else:
            await self.apply(name)
            self.api.append_entry(PRESET, {"name": name, "before": before})

    async def apply(self, name: str | None) -> None:
        """Uses a preset that is known; one that this file no longer has changes nothing."""
        if name in PRESETS:
            await self.use(PRESETS[name])

    async def use(self, settings: Settings) -> None:
        """Model first: the level is clamped to it."""
        if settings.model is not None:
            await self.api.set_model(settings.model)
        if settings.thinking_level is not None:
            self.api.set_thinking_level(settings.thinking_level)
        if settings.tools is not None:
            self.api.set_active_tools(settings.tools)


def stored(ctx: ExtensionContext) -> dict[str, Any]:
    """What the last entry of the active branch says; nothing if there is none."""
    for entry in reversed(ctx.session.get_branch()):
        if isinstance(entry, CustomEntry) and entry.custom_type == PRESET and isinstance(entry.data, dict):
            return entry.data
    return {}
