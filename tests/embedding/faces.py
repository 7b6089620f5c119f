"""What the tests of both faces share: a scripted conversation in a folder, tools that wait, and asyncio without leftovers."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import trio

from camshaft.actors.host import InlineExtension, MemorySession, NewSession, OpenOptions
from camshaft.extensions_std.providers.scripted import ScriptedProvider, Step, assistant, tool_call
from camshaft.kernel.settings import RetrySettings, Settings

CALLING = [assistant([tool_call("work")]), assistant("done"), *[assistant("again")] * 3]
"""An answer that calls the tool `work`, and one that ends the run."""
LIMIT_S = 20
"""A test of threads that takes longer hangs."""


def options(responses: Sequence[Step], *tools: Callable[..., Any], folder: Path | None = None, **more: Any) -> OpenOptions:
    """A scripted conversation, in memory or with a file in `folder`; each function is a tool."""
    provider = ScriptedProvider(chunked=False)
    provider.set_responses(responses)

    def setup(api: Any) -> None:
        for tool in tools:
            api.register_tool(tool)

    return OpenOptions(
        cwd=str(folder or "/"),
        session=MemorySession() if folder is None else NewSession(directory=str(folder)),
        settings=Settings(retry=RetrySettings(enabled=False), default_thinking_level="off"),
        providers=(provider,),
        builtin_tools=(),
        extensions=(InlineExtension(name="tools", setup=setup),),
        override_cwd=True,
        **more,
    )


class Holding:
    """A tool `work` that begins and then goes on until it is cancelled or told to end."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.ended = threading.Event()
        self.go_on = trio.Event()

    def tool(self) -> Callable[[], Coroutine[Any, Any, str]]:
        async def work() -> str:
            """Does it."""
            self.begun.set()
            try:
                await self.go_on.wait()
            finally:
                self.ended.set()
            return "worked"

        return work

    async def wait_begun(self) -> None:
        """In asyncio."""
        await asyncio.to_thread(self.begun.wait, LIMIT_S)
        assert self.begun.is_set()


def in_asyncio(test: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> Any:
    """Runs it in a new loop, within the limit."""

    async def bounded() -> Any:
        async with asyncio.timeout(LIMIT_S):
            return await test(*arguments)

    return asyncio.run(bounded())
