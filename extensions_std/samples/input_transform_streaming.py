"""A sample: treats a text that comes while the agent works differently from one that starts new work.

A text that steers the run is marked as a remark, so that the model does not drop what it is doing. One that
waits for the end of the run is marked as the next task. A text that arrives while nothing runs is left alone.

Load it with `camshaft -e input_transform_streaming.py`. It keeps nothing: whether the agent works is said by
the event, in `streaming_behavior`.
"""

from collections.abc import Mapping
from typing import Final

from camshaft.actors.api import ExtensionAPI, ExtensionContext, InputEvent, InputResult

MARKS: Final[Mapping[str, str]] = {
    "steer": "A remark while you work; keep it in mind and go on: ",
    "followUp": "When you are done with that, the next task: ",
}
"""What is put before a text, by how it is queued."""


def setup(api: ExtensionAPI) -> None:
    """Registers the hook."""
    api.on("input", mark)


def mark(event: InputEvent, _ctx: ExtensionContext) -> InputResult | None:
    """The marked text; None for one that is not queued."""
    if event.source == "extension" or event.streaming_behavior is None:
        return None
    return InputResult(action="transform", text=MARKS[event.streaming_behavior] + event.text)
