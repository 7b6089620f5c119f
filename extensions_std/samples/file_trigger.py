"""A sample: watches a file, and hands what other programs write into it to the model.

Load it with `camshaft -e file_trigger.py`; `--trigger-file path` names another file than `trigger.txt`. As soon as
the file has a text, the text is sent as a message and begins a run, or steers the one that is active, and the file
is emptied. Whoever can write the file can talk to the model. The message is an entry of the session; nothing else
is kept. The watch is a task that begins with the session and ends with it: a factory must not start anything.
"""

import os
from typing import Final

import trio

from camshaft.actors.api import ExtensionAPI, ExtensionContext, SessionShutdownEvent, SessionStartEvent

FLAG: Final = "trigger-file"
TRIGGER: Final = "file-trigger"
"""Type of the messages."""

LOOK_S: Final = 1.0
"""Between two looks at the file. It is soon enough for people, and costs nothing."""

TEXT_BYTES_MAX: Final = 64 * 1024
"""Of a file that is taken; a larger one is no message, and stops the watch with a report."""


def setup(api: ExtensionAPI) -> None:
    """Registers the flag, and the watch from the beginning of a session to its end."""
    watching = trio.CancelScope()

    def start(_event: SessionStartEvent, ctx: ExtensionContext) -> None:
        path = os.path.join(ctx.cwd, str(api.get_flag(FLAG)))
        ctx.start_task(watch, api, ctx, path, watching)

    def stop(_event: SessionShutdownEvent, _ctx: ExtensionContext) -> None:
        watching.cancel()

    api.register_flag(FLAG, type="string", default="trigger.txt", description="File whose text is sent to the model")
    api.on("session_start", start)
    api.on("session_shutdown", stop)


async def watch(api: ExtensionAPI, ctx: ExtensionContext, path: str, watching: trio.CancelScope) -> None:
    """Looks at the file until it is told to stop."""
    with watching:
        while True:
            text = await taken(ctx, path)
            if text:
                message = {"custom_type": TRIGGER, "content": text, "display": True}
                api.send_message(message, trigger_turn=True, deliver_as="steer")
            await trio.sleep(LOOK_S)


async def taken(ctx: ExtensionContext, path: str) -> str:
    """The text of the file, which is empty afterwards; an empty text if there is no file."""
    files = ctx.world.files
    if await files.kind(path) != "file":
        return ""
    async with files.changing(path):
        text = (await files.read(path, bytes_max=TEXT_BYTES_MAX)).decode("utf-8", "replace").strip()
        if text:
            await files.write(path, b"")
    return text
