"""A session writer on files in memory, with commands to give it, and what stands in the files."""

import errno
import json
from typing import Any

import attrs

from camshaft.actors.host import OpenSession, SessionWriter, World, open_writer, real_world
from camshaft.actors.simulation.log_files import Fault, MemoryLogFiles
from camshaft.kernel.commands import Append, AppendCustomMessage, AppendMessage, SetName
from camshaft.kernel.entries import Entry
from camshaft.kernel.messages import AssistantMessage, BashExecutionMessage, CustomMessage, SystemMessage, TextBlock, Usage, UserMessage

PATH = "/sessions/s.jsonl"
HELLO = AppendMessage(message=UserMessage(content="hello", timestamp=1))
ANSWER = AppendMessage(
    message=AssistantMessage(
        content=(TextBlock(text="hi"),), api="x", provider="acme", model="m", usage=Usage(), stop_reason="stop", timestamp=2
    )
)
PROMPT = AppendMessage(message=SystemMessage(content="Be brief.", timestamp=3))
NAMED = SetName(name="demo")
NOTE = AppendCustomMessage(message=CustomMessage(custom_type="k", content="c", display=True, timestamp=4))
SHELL = AppendMessage(message=BashExecutionMessage(command="ls", output="x", exit_code=0, cancelled=False, truncated=False, timestamp=5))
NO_SPACE = Fault(error=OSError(errno.ENOSPC, "no space"))


NOW_MS = 1_700_000_000_000


@attrs.frozen
class FixedClock:
    """It is always the same moment."""

    def now_ms(self) -> int:
        return NOW_MS


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


def world(files: MemoryLogFiles) -> World:
    return attrs.evolve(real_world({"HOME": "/home"}), clock=FixedClock(), ids=CountedIds(), log_files=files)


def opened(files: MemoryLogFiles) -> SessionWriter:
    return open_writer(OpenSession(path=PATH), world(files), cwd="/srv/app")


def appended(writer: SessionWriter, *commands: Append) -> list[str]:
    """The ids of the entries made."""
    return [entry.id for command in commands for entry in writer.append(command)]


def lines(files: MemoryLogFiles, path: str | None = PATH) -> list[Any]:
    data = files.photo().content(path or "")
    return [json.loads(line) for line in (data or b"").splitlines()]


def ids(files: MemoryLogFiles, path: str | None = PATH) -> list[str]:
    return [line["id"] for line in lines(files, path)[1:]]


def only(made: tuple[Entry, ...]) -> Any:
    (entry,) = made
    return entry
