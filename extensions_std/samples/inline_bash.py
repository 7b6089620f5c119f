"""A sample: runs `!{command}` inside a prompt and puts the output in its place.

    What changed since !{git describe --tags --abbrev=0}?

The commands of one text run one after the other, in the session's folder. A text that as a whole begins with
`!` is the user's own shell command and no business of this extension; so is a text that an extension sent,
because a model may have written it.

Load it with `camshaft -e inline_bash.py`. It keeps nothing; the session holds the text with the outputs.
"""

import re
from typing import Final

from camshaft.actors.api import ExecResult, ExtensionAPI, ExtensionContext, InputEvent, InputResult, truncate_tail

COMMAND: Final = re.compile(r"!\{([^{}]+)\}")
"""A command in a text; it cannot hold braces."""

TIMEOUT_MS: Final = 30_000
"""A person waits for the prompt to be sent."""


def setup(api: ExtensionAPI) -> None:
    """Registers the hook."""

    async def expand(event: InputEvent, ctx: ExtensionContext) -> InputResult | None:
        """The text with the outputs; None for one without commands."""
        commands = COMMAND.findall(event.text)
        if event.source == "extension" or event.text.startswith("!") or not commands:
            return None
        outputs = [await run(api, ctx, command) for command in commands]
        replaced = iter(outputs)
        return InputResult(action="transform", text=COMMAND.sub(lambda _found: next(replaced), event.text))

    api.on("input", expand)


async def run(api: ExtensionAPI, ctx: ExtensionContext, command: str) -> str:
    """What takes the place of a command: its output without the last line end, or what went wrong."""
    ended = await api.exec("sh", ["-c", command], timeout=TIMEOUT_MS, cwd=ctx.cwd)
    if ended.code != 0:
        ctx.ui.notify(f"{command!r} ended with {ended.code}", "warning")
    return shown(command, ended)


def shown(command: str, ended: ExecResult) -> str:
    """The text for the model: the end of a long output, because what matters mostly comes last."""
    if ended.code == 0:
        return truncate_tail(ended.stdout).content.rstrip("\n")
    why = "took too long" if ended.killed else f"ended with {ended.code}"
    return f"[{command!r} {why}: {truncate_tail(ended.stderr).content.strip()}]"
