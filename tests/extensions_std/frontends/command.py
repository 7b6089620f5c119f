"""The real command in a process of its own: a fresh home, a bare environment, a project folder, a model server."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from tests.extensions_std.providers.sse_server import Pause, Reply, ScriptedServer, Silence, scripted_server

PROGRAM: Final = str(Path(sys.executable).with_name("camshaft"))
LIMIT_S: Final = 60.0
"""A command takes about a second; one that hangs is a failure."""

SETTLE_S: Final = 2.0
"""In which a killed process is gone."""


@attrs.frozen(kw_only=True)
class Ended:
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        """Standard output as lines of JSON; LF is the only line end."""
        return [json.loads(line) for line in self.out.split("\n")[:-1]]


@attrs.frozen(kw_only=True)
class Place:
    """Where a command runs."""

    home: Path
    project: Path

    @property
    def agent_dir(self) -> Path:
        """The folder of the user's files."""
        return self.home / ".camshaft"

    @property
    def environment(self) -> dict[str, str]:
        """All of it; where these tests are told to look for modules, the command looks, too."""
        ours = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        return {"HOME": str(self.home), "PATH": os.defpath, "TMPDIR": str(self.home.parent / "tmp"), **ours}

    def configure(self, base_url: str, **fields: Any) -> None:
        """Describes one local model server in models.json."""
        local = {"baseUrl": f"{base_url}/v1", "api": "openai-completions", "models": [{"id": "m1"}, {"id": "m2"}], **fields}
        self.write(".camshaft/models.json", json.dumps({"providers": {"local": local}}))

    def write(self, name: str, text: str) -> Path:
        """A file in the home."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def session_files(self) -> list[Path]:
        """Session files in the default places, oldest name first."""
        return sorted(self.agent_dir.glob("sessions/*/*.jsonl"), key=lambda path: path.name)


def place(folder: Path) -> Place:
    """An empty home and an empty project."""
    for name in ("home", "project", "tmp"):
        (folder / name).mkdir()
    return Place(home=folder / "home", project=folder / "project")


async def camshaft(where: Place, *arguments: str, stdin: bytes = b"", **environment: str) -> Ended:
    """Runs the command to its end."""
    with trio.fail_after(LIMIT_S):
        done = await trio.run_process(
            [PROGRAM, *arguments],
            stdin=stdin,
            cwd=where.project,
            env={**where.environment, **environment},
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
    return Ended(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())


@attrs.define(eq=False)
class Running:
    """A command under way, in JSON mode: its records are read one by one."""

    process: trio.Process
    records: list[dict[str, Any]] = attrs.field(factory=list)
    _rest: bytes = b""

    async def next_record(self) -> dict[str, Any] | None:
        """The next line of standard output; None at its end."""
        assert self.process.stdout is not None
        while b"\n" not in self._rest:
            more = await self.process.stdout.receive_some()
            if not more:
                return None
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        record: dict[str, Any] = json.loads(line)
        self.records.append(record)
        return record

    async def until(self, type: str, text: str = "") -> dict[str, Any]:
        """The first record of that type whose JSON, but for the arguments of a call, holds `text`."""
        while (record := await self.next_record()) is not None:
            if record["type"] == type and text in json.dumps({**record, "args": None}):
                return record
        raise AssertionError(f"no {type} with {text!r} among {[each['type'] for each in self.records]}")

    async def interrupted(self, number: int = signal.SIGINT) -> int:
        """The exit code after this signal."""
        self.process.send_signal(number)
        while await self.next_record() is not None:
            pass
        return await self.process.wait()


@asynccontextmanager
async def running(where: Place, *arguments: str) -> AsyncGenerator[Running, None]:
    """A command that goes on in the block, and is killed at its end if it still runs."""
    with trio.fail_after(LIMIT_S):
        process = await trio.lowlevel.open_process(
            [PROGRAM, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=where.project,
            env=where.environment,
        )
        try:
            yield Running(process)
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
            if process.stdout is not None:
                await process.stdout.aclose()


# -- the model server --------------------------------------------------------------------


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    """One piece of a stream of chat completions."""
    piece: dict[str, Any] = {"id": "c1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    if finish is not None:
        piece["usage"] = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
    return b"data: " + json.dumps(piece).encode() + b"\n\n"


def says(*fragments: str, finish: str = "stop") -> Reply:
    """An answer in these fragments."""
    pieces = [chunk({"content": fragment}) for fragment in fragments]
    return Reply(body=(*pieces, chunk({}, finish), b"data: [DONE]\n\n"))


def begins(*fragments: str) -> Reply:
    """An answer that never ends."""
    return Reply(body=(*[chunk({"content": fragment}) for fragment in fragments], Silence()))


def calls(*given: tuple[str, dict[str, Any]]) -> Reply:
    """An answer that calls tools, arguments in two pieces."""
    body: list[bytes | Pause | Silence] = [chunk({"content": "Calling."})]
    for index, (name, arguments) in enumerate(given):
        text = json.dumps(arguments)
        body.append(chunk({"tool_calls": [{"index": index, "id": f"call_{index}", "function": {"name": name, "arguments": text[:5]}}]}))
        body.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": text[5:]}}]}))
    return Reply(body=(*body, chunk({}, "tool_calls"), b"data: [DONE]\n\n"))


@asynccontextmanager
async def serving(where: Place, *replies: Reply) -> AsyncGenerator[ScriptedServer, None]:
    """A model server that the place is configured for."""
    async with scripted_server(*replies) as server:
        where.configure(server.base_url)
        yield server


# -- processes ---------------------------------------------------------------------------


async def left_by(where: Place) -> list[str]:
    """Command lines of the processes that began in this place and still run; a killed one gets a moment to end."""
    found = _living(where)
    with trio.move_on_after(SETTLE_S):
        while found:
            await trio.sleep(0.01)  # nobody tells when a process of another is gone
            found = _living(where)
    return found


def _living(where: Place) -> list[str]:
    mark = f"HOME={where.home}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it ended while we looked
    return found


# -- session files -----------------------------------------------------------------------


def entries(path: Path) -> list[dict[str, Any]]:
    """The lines of a session file after its header."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[1:-1]]


def messages(path: Path) -> list[dict[str, Any]]:
    """The messages of a session file."""
    return [entry["message"] for entry in entries(path) if entry["type"] == "message"]


def unanswered(path: Path) -> list[str]:
    """Ids of calls without a result."""
    said = messages(path)
    called = [
        block["id"] for message in said if message["role"] == "assistant" for block in message["content"] if block["type"] == "toolCall"
    ]
    answered = {message["toolCallId"] for message in said if message["role"] == "toolResult"}
    return [id for id in called if id not in answered]


def texts(message: dict[str, Any]) -> str:
    """The texts of a message."""
    content: str | Sequence[dict[str, Any]] = message["content"]
    return content if isinstance(content, str) else "".join([block["text"] for block in content if block["type"] == "text"])
