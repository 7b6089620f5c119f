"""A client of RPC mode for tests: raw bytes out, records in, one by one."""

import json
import os
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

import attrs
import trio

from camshaft.actors.host import World, real_world
from camshaft.extensions_std.frontends.arguments import parse
from camshaft.extensions_std.frontends.conversation import run_job
from camshaft.extensions_std.frontends.startup import startup_of
from camshaft.extensions_std.frontends.streams import Input, Output
from tests.extensions_std.frontends.command import LIMIT_S, PROGRAM, Place

Record = dict[str, Any]


class Server(Protocol):
    """The other end."""

    async def send(self, content: bytes) -> None:
        """Writes to its standard input."""
        ...

    async def receive(self) -> bytes:
        """Reads from its standard output; none at the end."""
        ...

    async def close(self) -> None:
        """Ends its standard input."""
        ...

    async def ended(self) -> int:
        """Its exit code, once it is over."""
        ...


@attrs.define(eq=False)
class Talk:
    """A conversation with a server."""

    server: Server
    records: list[Record] = attrs.field(factory=list)
    """All that came, in order."""
    _rest: bytes = b""

    async def send(self, record: Record) -> None:
        """Sends a command."""
        await self.server.send(json.dumps(record).encode() + b"\n")

    async def next(self) -> Record | None:
        """The next record; None at the end. Only LF ends a line, and every line is a record."""
        while b"\n" not in self._rest:
            more = await self.server.receive()
            if not more:
                assert self._rest == b"", "the last line has no end"
                return None
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        record: Record = json.loads(line)
        self.records.append(record)
        return record

    async def until(self, **fields: Any) -> Record:
        """The first record from here on that has these fields."""
        while (record := await self.next()) is not None:
            if all([record.get(name) == value for name, value in fields.items()]):
                return record
        raise AssertionError(f"no record with {fields} among {[(each.get('type'), each.get('id')) for each in self.records]}")

    async def ask(self, type: str, id: Any = "ask", **fields: Any) -> Record:
        """The answer to a command."""
        await self.send({"id": id, "type": type, **fields})
        return await self.until(type="response", id=id)

    async def data(self, type: str, **fields: Any) -> Any:
        """What the answer to a command that succeeds holds."""
        record = await self.ask(type, **fields)
        assert record["success"], record
        return record.get("data")

    async def rest(self) -> list[Record]:
        """Everything up to the end."""
        before = len(self.records)
        while await self.next() is not None:
            pass
        return self.records[before:]

    async def end(self) -> int:
        """Ends the input and takes what comes; the exit code."""
        await self.server.close()
        await self.rest()
        return await self.server.ended()


@attrs.define(eq=False)
class Process:
    """A process as the server."""

    process: trio.Process
    errors: bytearray = attrs.field(factory=bytearray)

    async def send(self, content: bytes) -> None:
        """As the port says."""
        assert self.process.stdin is not None
        await self.process.stdin.send_all(content)

    async def receive(self) -> bytes:
        """As the port says."""
        assert self.process.stdout is not None
        return bytes(await self.process.stdout.receive_some(1 << 20))

    async def close(self) -> None:
        """As the port says."""
        assert self.process.stdin is not None
        await self.process.stdin.aclose()

    async def ended(self) -> int:
        """As the port says."""
        return await self.process.wait()

    async def listen(self) -> None:
        """Takes what comes on standard error."""
        assert self.process.stderr is not None
        async for chunk in self.process.stderr:
            self.errors += chunk

    @property
    def said(self) -> str:
        """Standard error so far."""
        return self.errors.decode()


RPC: Final = ("--mode", "rpc")


@asynccontextmanager
async def talking(where: Place, *arguments: str, limit_s: float = LIMIT_S, **environment: str) -> AsyncGenerator[Talk, None]:
    """A server process, which is killed at the end of the block if it still runs."""
    with trio.fail_after(limit_s):
        process = await trio.lowlevel.open_process(
            [PROGRAM, *RPC, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=where.project,
            env={**where.environment, **environment},
        )
        server = Process(process)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(server.listen)
                yield Talk(server)
                nursery.cancel_scope.cancel()
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
                for stream in (process.stdin, process.stdout, process.stderr):
                    if stream is not None:
                        await stream.aclose()


@attrs.define(eq=False)
class InProcess:
    """The same program inside this process, at the other ends of two pipes."""

    _to: trio.lowlevel.FdStream
    _back: trio.lowlevel.FdStream
    _code: int | None = None
    _over: trio.Event = attrs.field(factory=trio.Event)

    async def send(self, content: bytes) -> None:
        """As the port says."""
        await self._to.send_all(content)

    async def receive(self) -> bytes:
        """As the port says."""
        return bytes(await self._back.receive_some(1 << 20))

    async def close(self) -> None:
        """As the port says."""
        await self._to.aclose()

    async def ended(self) -> int:
        """As the port says."""
        await self._over.wait()
        assert self._code is not None
        return self._code

    async def serve(self, words: list[str], world: World, ends: tuple[int, int]) -> None:
        """Runs the job that the words ask for to its end, and closes its ends of the pipes."""
        reading, writing = ends
        arguments = parse(words, None)
        startup = await trio.to_thread.run_sync(lambda: startup_of(words, arguments, world, is_terminal=False))
        self._code = await run_job(startup.job, world, Output(writing), Input(reading))
        os.close(writing)
        self._over.set()


@asynccontextmanager
async def talking_inside(where: Place, *arguments: str) -> AsyncGenerator[Talk, None]:
    """A server in this process, whose working directory is the project's; it ends with the block."""
    reading, to = os.pipe()
    back, writing = os.pipe()
    server = InProcess(trio.lowlevel.FdStream(to), trio.lowlevel.FdStream(back))
    world = real_world({**where.environment, "AI_AGENT": "camshaft"})
    with trio.fail_after(LIMIT_S):
        async with server._to, server._back, trio.open_nursery() as nursery:
            nursery.start_soon(server.serve, [*RPC, *arguments], world, (reading, writing))  # noqa: ASYNC113  # it has nothing to tell before its client speaks
            yield Talk(server)
            nursery.cancel_scope.cancel()
