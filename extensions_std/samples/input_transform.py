"""A sample: changes what a person types before anybody else sees it, and answers some of it itself.

`?quick TEXT` asks for a short answer to TEXT. `ping` is answered on the spot: no model is asked and nothing
is stored. Every other text passes as it is.

Load it with `camshaft -e input_transform.py`. It keeps nothing.
"""

from typing import Final

from camshaft.actors.api import ExtensionAPI, ExtensionContext, InputEvent, InputResult

QUICK: Final = "?quick "
"""What a text begins with that wants a short answer."""


def setup(api: ExtensionAPI) -> None:
    """Registers the hook."""
    api.on("input", transform)


def transform(event: InputEvent, ctx: ExtensionContext) -> InputResult | None:
    """The text to go on with; `handled` for one that was answered here."""
    if event.source == "extension":  # Texts that extensions send are not typed by anybody, and could come from here.
        return None
    if event.text == "ping":
        ctx.ui.notify("pong")
        return InputResult(action="handled")
    if event.text.startswith(QUICK):
        question = event.text.removeprefix(QUICK)
        return InputResult(action="transform", text=f"Answer in one or two sentences: {question}")
    return None
