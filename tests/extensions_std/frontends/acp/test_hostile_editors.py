"""Clients that send nonsense, read nothing, or end early; and the wire as it is."""

import json
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio

from tests.extensions_std.frontends.command import LIMIT_S, PROGRAM, Place, camshaft, left_by, messages, unanswered

pytestmark = pytest.mark.slow

HELLO: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}


def lines(*records: Any) -> bytes:
    return b"".join([json.dumps(record).encode() + b"\n" for record in records])


async def answers(where: Place, sent: bytes) -> list[dict[str, Any]]:
    where.write("script.json", '{"steps": ["Hi."]}')
    ended = await camshaft(where, "acp", "--faux-script", str(where.home / "script.json"), stdin=sent)
    assert ended.code == 0
    assert all(record["jsonrpc"] == "2.0" for record in ended.records)
    return ended.records


@pytest.mark.parametrize(
    ("sent", "id", "code"),
    [
        (b"garbage", None, -32700),
        (b'{"jsonrpc": "2.0", "id": 5, "method": "initialize", "params": {', None, -32700),
        (b"\xef\xbb\xbf{}", None, -32700),
        (b"[" * 100_000, None, -32700),
        (b"[]", None, -32600),
        (b'"text"', None, -32600),
        (b"{}", None, -32600),
        (b'{"id": 5, "method": "initialize"}', 5, -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "initialize"}', None, -32600),
        (b'{"jsonrpc": "2.0", "id": 5, "method": 7}', 5, -32600),
        (b'{"jsonrpc": "2.0", "id": "x", "method": "session/dance"}', "x", -32601),
        (b'{"jsonrpc": "2.0", "id": 5, "method": "session/new", "params": [1]}', 5, -32602),
        (b'{"jsonrpc": "2.0", "id": 5, "method": "session/new", "params": {"cwd": 1, "mcpServers": []}}', 5, -32602),
        (b'{"jsonrpc": "2.0", "id": 5, "method": "session/prompt", "params": {"sessionId": "?", "prompt": []}}', 5, -32002),
        (b'{"jsonrpc": "2.0", "id": 5, "method": "session/list", "params": {"cursor": "-1"}}', 5, -32602),
    ],
)
async def test_nonsense_is_answered_and_the_next_request_too(where: Place, sent: bytes, id: object, code: int) -> None:
    refused, answered = await answers(where, sent + b"\n" + lines(HELLO))

    assert (refused["id"], refused["error"]["code"]) == (id, code)
    assert refused["error"]["data"]["details"]
    assert answered["result"]["protocolVersion"] == 1


@pytest.mark.parametrize(
    "sent",
    [
        b"\r",
        b"  ",
        b'{"jsonrpc": "2.0", "method": "session/dance"}',
        b'{"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "?"}}',
        b'{"jsonrpc": "2.0", "method": "session/cancel", "params": 1}',
        b'{"jsonrpc": "2.0", "id": 77, "result": {}}',
        b'{"jsonrpc": "2.0", "id": "never asked", "error": 1}',
    ],
)
async def test_what_needs_no_answer_gets_none(where: Place, sent: bytes) -> None:
    (answered,) = await answers(where, sent + b"\n" + lines(HELLO))

    assert answered["id"] == 1


async def test_a_last_line_without_its_end_and_a_crlf_are_lines(where: Place) -> None:
    first, second = await answers(where, lines(HELLO)[:-1] + b"\r\n" + lines({**HELLO, "id": None})[:-1])

    assert (first["id"], second["id"]) == (1, None)


@attrs.define(eq=False)
class Raw:
    """The command, line by line."""

    process: trio.Process
    _rest: bytes = b""

    async def send(self, *records: Any) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send_all(lines(*records))

    async def until(self, id: object) -> dict[str, Any]:
        assert self.process.stdout is not None
        while True:
            while b"\n" not in self._rest:
                more = await self.process.stdout.receive_some()
                assert more, "it ended"
                self._rest += more
            line, _, self._rest = self._rest.partition(b"\n")
            record: dict[str, Any] = json.loads(line)
            if record.get("id") == id and "method" not in record:
                return record


@asynccontextmanager
async def raw(where: Place, steps: list[Any]) -> AsyncGenerator[tuple[Raw, str]]:
    """The command with a session that is open, and its id."""
    path = where.write("script.json", json.dumps({"steps": steps}))
    with trio.fail_after(LIMIT_S):
        process = await trio.lowlevel.open_process(
            [PROGRAM, "acp", "--faux-script", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=where.project,
            env=where.environment,
        )
        try:
            client = Raw(process)
            await client.send(HELLO)
            await client.until(1)
            params = {"cwd": str(where.project), "mcpServers": []}
            await client.send({"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": params})
            yield client, (await client.until(2))["result"]["sessionId"]
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    await stream.aclose()


def prompt(session: str, text: str, id: int = 3) -> dict[str, Any]:
    params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
    return {"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params}


async def test_a_cancel_right_behind_its_prompt_is_not_lost(where: Place) -> None:
    async with raw(where, [{"actions": [{"type": "start"}, {"type": "hang"}]}]) as (client, session):
        await client.send(prompt(session, "go"), {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})

        assert (await client.until(3))["result"] == {"stopReason": "cancelled"}


async def test_halves_of_characters_reach_nobody(where: Place) -> None:
    pieces = ["A \ud83c", "\udf39 and \ud83c", " half"]
    script = [{"actions": [{"type": "start"}, {"type": "text", "fragments": pieces}, {"type": "done"}]}]
    async with raw(where, script) as (client, session):
        await client.send(prompt(session, "go"))
        assert client.process.stdout is not None
        said = b""
        while b"stopReason" not in said:
            said += await client.process.stdout.receive_some()

    chunks = [json.loads(line)["params"]["update"] for line in said.split(b"\n") if b"agent_message_chunk" in line]
    assert "".join([chunk["content"]["text"] for chunk in chunks]) == "A 🌹 and \ufffd half"


async def test_a_reader_that_closes_its_end_ends_the_run(where: Place) -> None:
    call = {"type": "toolCall", "id": "s", "name": "bash", "arguments": {"command": "for i in $(seq 600); do echo $i; sleep 0.1; done"}}
    async with raw(where, [{"content": [call]}]) as (client, session):
        await client.send(prompt(session, "go"))
        assert client.process.stdout is not None
        await client.process.stdout.receive_some()
        await client.process.stdout.aclose()

        assert await client.process.wait() == 1

    (file,) = where.session_files()
    assert unanswered(file) == []
    assert messages(file)
    assert await left_by(where) == []


@pytest.mark.parametrize("words", [("--continue",), ("--mode", "json"), ("--session", "x"), ("-p",), ("--list-models",)])
async def test_what_belongs_to_the_client_is_no_option(where: Place, words: tuple[str, ...]) -> None:
    ended = await camshaft(where, "acp", *words)

    assert ended.code == 1
    assert "Error: acp cannot be combined with --" in ended.err


async def test_acp_before_words_begins_a_prompt(where: Place) -> None:
    where.write("script.json", '{"steps": ["Which one?", "A protocol."]}')

    ended = await camshaft(where, "acp", "explained", "--faux-script", str(where.home / "script.json"))

    assert ended.out == "A protocol.\n"
