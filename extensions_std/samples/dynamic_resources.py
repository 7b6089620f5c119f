"""A sample: adds the skills and prompt templates that a team keeps in its repository.

Load it with `camshaft -e dynamic_resources.py`; `--team-folder path` names another folder than `team`. Skills in
`team/skills` and templates in `team/prompts` can then be called like the user's own. They are texts of a project, so
they count only if that is trusted. It keeps nothing: the folders are looked at when the session begins and at
every reload.
"""

import os
from typing import Final

from camshaft.actors.api import ExtensionAPI, ExtensionContext, ResourcesDiscoverEvent, ResourcesDiscoverResult

FLAG: Final = "team-folder"


def setup(api: ExtensionAPI) -> None:
    """Registers the flag and the answer to where more resources are."""

    async def discover(event: ResourcesDiscoverEvent, ctx: ExtensionContext) -> ResourcesDiscoverResult | None:
        if not ctx.is_project_trusted():
            return None
        folder = os.path.join(event.cwd, str(api.get_flag(FLAG)))
        return ResourcesDiscoverResult(
            skill_paths=await existing(ctx, os.path.join(folder, "skills")),
            prompt_paths=await existing(ctx, os.path.join(folder, "prompts")),
        )

    api.register_flag(FLAG, type="string", default="team", description="Folder with the skills and prompts of the team")
    api.on("resources_discover", discover)


async def existing(ctx: ExtensionContext, folder: str) -> tuple[str, ...]:
    """The folder, if there is one: a path that leads nowhere would be reported."""
    return (folder,) if await ctx.world.files.kind(folder) == "directory" else ()
