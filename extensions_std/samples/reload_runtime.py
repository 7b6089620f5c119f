"""A sample: lets the model load extensions, settings and skills anew, say after it changed one.

Load it with `camshaft -e reload_runtime.py`. Only a command can reload, and only while nothing is under way. So the
tool `reload_runtime` merely notes the wish, and when the run has settled the command `/reload-runtime` is sent, as
if somebody had typed it. The wish is kept in memory; after the reload this is another extension, which knows
nothing of it.
"""

from typing import Final

from camshaft.actors.api import AgentSettled, CommandContext, ExtensionAPI, ExtensionContext

COMMAND: Final = "reload-runtime"


def setup(api: ExtensionAPI) -> None:
    """Registers the command, the tool, and the moment between them."""
    wishes: list[str] = []

    def reload_runtime(reason: str) -> str:
        """Load extensions, settings, skills and prompt templates anew as soon as you have answered."""
        wishes.append(reason)
        return "They are loaded anew when this run is over. Finish your answer."

    def on_settled(_event: AgentSettled, _ctx: ExtensionContext) -> None:
        if wishes:
            wishes.clear()
            api.send_user_message(f"/{COMMAND}", expand_prompt_templates=True)

    api.register_tool(reload_runtime)
    api.register_command(COMMAND, reload, description="Load extensions, settings and skills anew")
    api.on("agent_settled", on_settled)


async def reload(_arguments: str, ctx: CommandContext) -> None:
    """The last thing this extension does: `ctx` and `api` are stale afterwards."""
    ctx.ui.notify("Loading extensions anew …")
    await ctx.reload()
