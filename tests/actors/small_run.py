"""The small run that faults are tried on: an answer with two calls, their batch, a second answer."""

from typing import Any

import trio

from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.extensions_std.providers.scripted import assistant, tool_call
from camshaft.kernel.messages import AssistantMessage
from tests.actors.running import Running, opened, tool

OK = {"content": [{"type": "text", "text": "ok"}]}
CALLS = assistant([tool_call("work", id="a"), tool_call("work", id="b")])
SCRIPT = [CALLS, assistant("done"), *[assistant("again")] * 3]


async def works(_id: str, _params: Any, _signal: Any, _on_update: Any, _ctx: Any) -> Any:
    await trio.sleep(1)
    return OK


def stored(running: Running) -> list[Any]:
    return [message for message in running.seat.context_messages if message.role != "system"]


async def next_prompt_is_answered(running: Running) -> bool:
    """Sends one more prompt, in whatever state the conversation is; the first run has to end by itself."""
    await running.seat.wait_idle()
    await running.seat.prompt("next")
    last = stored(running)[-1]
    return isinstance(last, AssistantMessage) and last.stop_reason == "stop"


async def reopened(files: MemoryLogFiles) -> tuple[list[Any], tuple[Any, ...], bool]:
    async with opened([assistant("again")], files=files, tools=[tool(works)]) as running:
        return stored(running), running.seat.found, await next_prompt_is_answered(running)
    raise AssertionError
