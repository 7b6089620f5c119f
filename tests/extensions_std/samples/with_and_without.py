"""What one script leaves in a session, with an extension and without it, as lines that a person can compare."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import attrs
import trio

from camshaft.actors.host import open_kernel
from camshaft.extensions_std.providers.scripted import ScriptedProvider, Step
from camshaft.kernel.messages import text_of
from tests.actors.running import Running, options, simulate, virtual_world

Setup = Callable[[Any], Any]
Act = Callable[[Running], Awaitable[Any]]


@attrs.frozen
class Left:
    """What a conversation left behind."""

    entries: tuple[Any, ...]
    """Of all branches, in file order."""
    errors: list[tuple[str, str, str]]
    heard: list[Any]

    @property
    def lines(self) -> list[str]:
        """One line an entry; system messages are told by `sections`."""
        return [line for entry in self.entries for line in _lines(entry)]

    @property
    def sections(self) -> list[dict[str, Any]]:
        """What each system message sets and removes."""
        messages = [entry.message for entry in self.entries if entry.type == "message" and entry.message.role == "system"]
        return [dict(message.sections or {}) for message in messages]


def left(script: Sequence[Step], act: Act, *setups: Setup, **more: Any) -> Left:
    """What `act` leaves in a conversation with these extensions, on a virtual clock."""
    return simulate(_left, script, act, setups, more)  # type: ignore[no-any-return]  # as the function gives it


def left_in_real_time(script: Sequence[Step], act: Act, *setups: Setup, **more: Any) -> Left:
    """As `left`, for what uses programs and files, which do not wait for a virtual clock."""
    return trio.run(_left, script, act, setups, more)


def without_and_with(script: Sequence[Step], act: Act, setup: Setup, **more: Any) -> tuple[Left, Left]:
    """The same script without the extension, and with it."""
    return left(script, act, **more), left(script, act, setup, **more)


async def at_rest(running: Running) -> None:
    """Returns when what extensions asked for has begun and ended, on a virtual clock."""
    await trio.sleep(1)
    await running.seat.wait_idle()


async def virtual_sleep(seconds: float) -> None:
    """Returns when nothing has more to do for so long."""
    await trio.sleep(seconds)


async def _left(script: Sequence[Step], act: Act, setups: Sequence[Setup], more: dict[str, Any]) -> Left:
    given = dict(more)
    cwd, log_files = given.pop("cwd", "/"), given.pop("log_files", None)
    provider = ScriptedProvider(chunked=False)
    provider.set_responses(script)
    async with open_kernel(world=virtual_world(log_files)) as kernel:
        running = Running(kernel, await kernel.open(attrs.evolve(options(provider, *setups, **given), cwd=cwd)), provider)
        running.seat.subscribe(running.heard.append)
        await act(running)
        return Left(tuple(running.seat.state.tree.entries()), running.errors(), running.heard)
    raise AssertionError


def _lines(entry: Any) -> list[str]:
    match entry.type:
        case "message" if entry.message.role == "system":
            return []
        case "message" if entry.message.role == "toolResult":
            failed = " failed" if entry.message.is_error else ""
            return [f"{entry.message.tool_name}{failed}: {text_of(entry.message.content)}"]
        case "message" if entry.message.role == "assistant":
            calls = "".join([f" -> {call.name}" for call in entry.message.tool_calls])
            return [f"assistant: {text_of(entry.message.content)}{calls}"]
        case "message":
            return [f"{entry.message.role}: {text_of(entry.message.content)}"]
        case "custom_message":
            return [f"{entry.custom_type}: {text_of(entry.content)}"]
        case "custom":
            return [f"({entry.custom_type})"]
        case "usage":
            return [f"(usage {entry.kind})"]
        case "compaction" | "branch_summary":
            return [f"{entry.type}: {entry.summary}"]
        case _:
            return []
