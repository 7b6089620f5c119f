"""A sample: tells the model of the rules that a project keeps in `.claude/rules/`.

The files are looked for when a session starts and only named in the prompt: the model reads those that matter
for what it does, with its own `read` tool, so that many rules cost few tokens.

Load it with `camshaft -e claude_rules.py`. Rules are instructions, so those of a project that is not trusted are
left alone. The names are kept in memory; a session that starts looks again.
"""

from typing import Final

from camshaft.actors.api import BeforeAgentStartEvent, ExtensionAPI, ExtensionContext, SessionStartEvent

FOLDER: Final = ".claude/rules"
RULES_MAX: Final = 200
"""More names would fill the prompt."""


class Rules:
    """The rules of one session, as paths from its working directory."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def look(self, _event: SessionStartEvent, ctx: ExtensionContext) -> None:
        """Looks for the files; a project without the folder has none."""
        self.paths = []
        if not ctx.is_project_trusted():
            return
        folder = f"{ctx.cwd.rstrip('/')}/{FOLDER}"
        if await ctx.world.files.kind(folder) != "directory":
            return
        found = await ctx.world.files.walk(folder, lambda path: path.endswith(".md"), found_max=RULES_MAX)
        self.paths = sorted([f"{FOLDER}/{each.path}" for each in found if not each.is_directory])

    def name_them(self, event: BeforeAgentStartEvent, _ctx: ExtensionContext) -> None:
        """Adds a section with the names to the prompt of the run."""
        if self.paths:
            event.system_prompt_options.sections["project-rules"] = rules_text(self.paths)


def rules_text(paths: list[str]) -> str:
    """The section."""
    names = "\n".join([f"- {path}" for path in paths])
    return f"This project has rules for how to work in it. Read those that are about what you do, before you do it:\n{names}"


def setup(api: ExtensionAPI) -> None:
    """Registers the hooks."""
    rules = Rules()
    api.on("session_start", rules.look)
    api.on("before_agent_start", rules.name_them)
