"""Whole conversations for tests: a world without chance and wall clock, a scripted model, and what happened.

`simulate` runs an async function on a virtual clock (MockClock with autojump), `opened` opens one conversation in
a kernel of its own. Everything is real but the ports: clock, ids, and the files under the log, which are in memory.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio
from trio.testing import MockClock

from camshaft.actors.host import InlineExtension, Kernel, Limits, MemorySession, OpenOptions, OpenSession, Seat, open_kernel
from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.actors.world import World, real_world
from camshaft.extensions_std.providers.scripted import ScriptedProvider, Step
from camshaft.kernel.messages import AssistantMessage, Message, ToolResultMessage, text_of
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.settings import RetrySettings, Settings
from camshaft.kernel.tools import ToolDefinition

PATH = "/sessions/s.jsonl"
STARTED_AT_MS = 1_700_000_000_000
NO_RETRY = Settings(retry=RetrySettings(enabled=False), default_thinking_level="off")


def simulate(test: Callable[..., Awaitable[Any]], *arguments: Any, instruments: Sequence[Any] = ()) -> Any:
    """The result of an async function on a virtual clock: waits take no time."""
    return trio.run(test, *arguments, clock=MockClock(autojump_threshold=0), instruments=instruments)


@attrs.frozen
class VirtualClock:
    """A wall clock that follows Trio's."""

    def now_ms(self) -> int:
        return STARTED_AT_MS + round(trio.current_time() * 1000)


@attrs.define
class CountedIds:
    """Ids in order of asking."""

    _made: int = 0

    def entry_id(self) -> str:
        self._made += 1
        return f"{self._made:08x}"

    def session_id(self) -> str:
        return f"session-{self.entry_id()}"

    def token(self) -> str:
        return f"token-{self.entry_id()}"


def virtual_world(files: MemoryLogFiles | None = None) -> World:
    """A world of which nothing is left to chance; logs are written to `files`."""
    return attrs.evolve(real_world({"HOME": "/home"}), clock=VirtualClock(), ids=CountedIds(), log_files=files or MemoryLogFiles())


@attrs.define
class Running:
    """One open conversation and everything heard of it."""

    kernel: Kernel
    seat: Seat
    provider: ScriptedProvider
    heard: list[Any] = attrs.field(factory=list)

    def types(self) -> list[str]:
        return [event.type for event in self.heard]

    def count(self, event_type: str) -> int:
        return self.types().count(event_type)

    def errors(self) -> list[tuple[str, str, str]]:
        return [(event.extension_path, event.event, event.error) for event in self.heard if event.type == "extension_error"]


@asynccontextmanager
async def opened(
    responses: Sequence[Step],
    *setups: Callable[[Any], Any],
    files: MemoryLogFiles | None = None,
    limits: Limits | None = None,
    tools: Sequence[ToolDefinition] = (),
    **more: Any,
) -> AsyncIterator[Running]:
    """A conversation with a scripted model, in memory or at PATH in `files`; in `world`, if one is given, and in its folder `cwd`."""
    provider = more.pop("provider", None) or ScriptedProvider(chunked=False)
    provider.set_responses(responses)
    async with open_kernel(world=more.pop("world", None) or virtual_world(files), limits=limits) as kernel:
        seat = await kernel.open(options(provider, *setups, files=files, tools=tools, **more))
        running = Running(kernel, seat, provider)
        seat.subscribe(running.heard.append)
        yield running


def options(
    provider: Any,
    *setups: Callable[[Any], Any],
    files: MemoryLogFiles | None = None,
    tools: Sequence[ToolDefinition] = (),
    **more: Any,
) -> OpenOptions:
    """Options of such a conversation; every setup is an extension `x0`, `x1`, …, every tool is active."""
    given: dict[str, Any] = {
        "cwd": "/",
        "session": MemorySession() if files is None else OpenSession(path=PATH),
        "settings": NO_RETRY,
        "tools": tuple([tool.name for tool in tools]) if tools else None,
        **more,
    }
    inline = [InlineExtension(name=f"x{number}", setup=setup) for number, setup in enumerate(setups)]
    extensions = (*inline, *given.pop("sources", ()))
    return OpenOptions(providers=(provider,), builtin_tools=tuple(tools), extensions=extensions, override_cwd=True, **given)


def tool(execute: Callable[..., Any], name: str = "work", **more: Any) -> ToolDefinition:
    """A tool that takes anything."""
    return ToolDefinition(name=name, description="does it", parameters=FrozenDict({"type": "object"}), execute=execute, **more)


def handling(hook: str, handler: Callable[..., Any], **more: Any) -> Callable[[Any], None]:
    """A setup that registers one handler."""

    def setup(api: Any) -> None:
        api.on(hook, handler, **more)

    return setup


def said(messages: Sequence[Message]) -> list[tuple[str | None, str]]:
    """Role and text of each message; for an answer its stop reason instead, if it is none of the good ones."""
    return [(message.role, _text(message)) for message in messages if message.role != "system"]


def _text(message: Any) -> str:
    if isinstance(message, AssistantMessage) and message.stop_reason in ("error", "aborted"):
        return f"{message.stop_reason}: {message.error_message}"
    return text_of(getattr(message, "content", ()))


def results(messages: Sequence[Message]) -> list[tuple[str, str, bool]]:
    """Call id, text and error flag of each tool result."""
    return [(each.tool_call_id, text_of(each.content), each.is_error) for each in messages if isinstance(each, ToolResultMessage)]


def unanswered(messages: Sequence[Message]) -> list[str]:
    """Ids of the calls of good answers that have no result."""
    answered = {each.tool_call_id for each in messages if isinstance(each, ToolResultMessage)}
    good = [each for each in messages if isinstance(each, AssistantMessage) and each.stop_reason not in ("error", "aborted")]
    return [call.id for message in good for call in message.tool_calls if call.id not in answered]
