"""The agent in a thread of the editor's own process, over pipes: nothing of it needs the command."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import acp
import trio

from camshaft.actors.host import open_kernel, real_world
from camshaft.extensions_std.frontends.acp.mode import Invoked, opener_of, serve
from camshaft.extensions_std.frontends.arguments import parse
from camshaft.extensions_std.frontends.streams import Input, Output
from tests.extensions_std.frontends.acp.editor import Editor
from tests.extensions_std.frontends.command import Place


@asynccontextmanager
async def pipes(ours_in: int, ours_out: int) -> AsyncGenerator[tuple[asyncio.StreamWriter, asyncio.StreamReader]]:
    """The editor's ends."""
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    read, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours_in, "rb"))
    write, protocol = await loop.connect_write_pipe(lambda: asyncio.streams.FlowControlMixin(), os.fdopen(ours_out, "wb"))
    try:
        yield asyncio.StreamWriter(write, protocol, None, loop), reader
    finally:
        write.close()
        read.close()


def test_a_client_in_the_same_process_is_served_until_it_closes_its_end(where: Place) -> None:
    script = where.write("script.json", json.dumps({"steps": ["Hello from here."]}))
    from_editor, to_agent = os.pipe()
    from_agent, to_editor = os.pipe()
    words = ["acp", "--faux-script", str(script), "--no-session"]

    async def agent() -> int:
        world = real_world(where.environment)
        invoked = Invoked(words=words, arguments=parse(words, None), world=world)
        async with open_kernel(world=world) as kernel:
            return await serve(opener_of(invoked, kernel), Input(from_editor), Output(to_editor))

    async def editor() -> str:
        seen = Editor()
        running = asyncio.get_running_loop().run_in_executor(None, trio.run, agent)
        async with asyncio.timeout(30), pipes(from_agent, to_agent) as (writer, reader):
            connection = acp.connect_to_agent(seen, writer, reader, observers=[seen.see])
            said = await connection.initialize(protocol_version=1)
            assert said.agent_capabilities is not None and not said.agent_capabilities.load_session
            session = (await connection.new_session(cwd=str(where.project), mcp_servers=[])).session_id
            answer = await connection.prompt(session_id=session, prompt=[acp.text_block("hi")])
            assert answer.stop_reason == "end_turn"
            await connection.close()
        assert await running == 0
        assert seen.faults == []
        return seen.text_of("agent_message_chunk")

    try:
        assert asyncio.run(editor()) == "Hello from here."
    finally:
        for fd in (from_editor, to_editor):
            os.close(fd)
    assert where.session_files() == []
