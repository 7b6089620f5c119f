"""How the tests call a tool: a context, a signal, and looks at what is left behind."""

import os
import signal as signals
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import trio

from camshaft.actors.ports.files import Files, RealFiles
from camshaft.actors.ports.processes import Processes, RealProcesses
from camshaft.kernel.messages import TextBlock, text_of
from camshaft.kernel.models import Model
from camshaft.kernel.tools import ToolDefinition, ToolResult

MARK = "CAMSHAFT_TEST_MARK"
"""Environment variable that a test's processes inherit, and are found by."""


@attrs.define(eq=False)
class Switch:
    """A signal that a test gives."""

    cancelled: bool = False
    _given: trio.Event = attrs.field(factory=trio.Event)

    def give(self) -> None:
        self.cancelled = True
        self._given.set()

    async def wait(self) -> None:
        await self._given.wait()


@attrs.define(eq=False)
class Tokens:
    """Ids in order."""

    count: int = 0

    def token(self) -> str:
        self.count += 1
        return f"{self.count:016x}"


@attrs.frozen(kw_only=True)
class CallWorld:
    """The ports of a call."""

    environment: Mapping[str, str]
    files: Files = attrs.field(factory=RealFiles)
    processes: Processes = attrs.field(factory=RealProcesses)
    ids: Tokens = attrs.field(factory=Tokens)


@attrs.frozen(kw_only=True)
class CallContext:
    """The session of a call."""

    cwd: str
    world: CallWorld
    model: Model | None = None
    thinking_level: str = "off"
    session_id: str | None = None
    session_file: str | None = None


def context(folder: Path, **ports: Any) -> CallContext:
    """A context in the folder, with its `scratch` for temporary files; processes carry the folder as their mark."""
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(scratch), MARK: str(folder)}
    return CallContext(cwd=str(folder), world=CallWorld(environment=environment, **ports))


async def call(
    tool: ToolDefinition,
    params: dict[str, Any],
    ctx: CallContext,
    signal: Switch | None = None,
    on_update: Callable[[Any], None] = lambda update: None,
) -> ToolResult:
    """The result of one call, its arguments taken as valid."""
    result: ToolResult = await tool.execute("call", params, signal or Switch(), on_update, ctx)
    return result


def text(result: ToolResult) -> str:
    """The text of a result."""
    return text_of(result.content or ())


def update_text(update: ToolResult) -> str:
    """The text of an update; empty for the first one."""
    return "".join([block.text for block in update.content or () if isinstance(block, TextBlock)])


def running(folder: Path) -> list[str]:
    """Command lines of the processes that carry the folder's mark and still run."""
    return list(_marked(folder).values())


def end_all(folder: Path) -> None:
    """Ends the processes with the folder's mark that a test left running on purpose."""
    for number in _marked(folder):
        os.kill(number, signals.SIGKILL)


def _marked(folder: Path) -> dict[int, str]:
    found = {}
    mark = f"{MARK}={folder}".encode()
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and mark in Path("/proc", entry, "environ").read_bytes().split(b"\0"):
                found[int(entry)] = Path("/proc", entry, "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # It ended, or is somebody else's.
    return found


async def gone(folder: Path, *, within_s: float = 5.0) -> bool:
    """Whether all processes with the mark are gone within the time: a killed one needs a moment to end."""
    return await _settles(lambda: not running(folder), within_s)


async def arrived(folder: Path, count: int, *, within_s: float = 5.0) -> bool:
    """Whether so many processes with the mark run within the time: they carry it once they run their program."""
    return await _settles(lambda: len(running(folder)) == count, within_s)


async def _settles(is_so: Callable[[], bool], within_s: float) -> bool:
    with trio.move_on_after(within_s):
        while not is_so():  # noqa: ASYNC110  the system tells nobody about processes that are not our children
            await trio.sleep(0.005)
        return True
    return False


def open_handles() -> set[str]:
    """What this process has open."""
    return set(os.listdir("/proc/self/fd"))
