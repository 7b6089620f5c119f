"""The reference's own client drives `camshaft --mode rpc` through every method it has (RPC-110 to RPC-123)."""

import json
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
import trio

from camshaft.actors.api import encode
from camshaft.actors.host import OpenOptions, OpenSession, Seat, open_kernel
from camshaft.extensions_std.providers.scripted import ScriptedProvider
from tests.extensions_std.frontends.command import PROGRAM, Place, messages, place
from tests.extensions_std.frontends.rpc.model_server import Answers, provider
from tests.extensions_std.providers.sse_server import scripted_server
from tests.reference.places import NODE, NODE_MODULES, missing

pytestmark = [pytest.mark.reference, pytest.mark.slow]

DRIVER: Final = Path(__file__).with_name("rpc_driver.mjs")
LIMIT_S: Final = 60.0
NODE_INSTEAD: Final = '#!/bin/sh\nshift\nexec "{program}" "$@"\n'
"""What the client finds as `node` on its PATH: it drops the script's path and runs camshaft (RPC-110)."""

OTHERS: Final = {"newSession", "switchSession", "fork", "clone", "exportHtml"}
"""Methods that the first test leaves to those after it; together they are all that the class has."""


class ClientError(Exception):
    """A call of the client threw."""


@attrs.define(eq=False)
class Client:
    """The client in its process."""

    process: trio.Process
    _rest: bytes = b""

    async def ask(self, **request: Any) -> dict[str, Any]:
        """One line there, one line back."""
        assert self.process.stdin is not None and self.process.stdout is not None
        await self.process.stdin.send_all(json.dumps(request).encode() + b"\n")
        while b"\n" not in self._rest:
            more = await self.process.stdout.receive_some()
            assert more, "the client's process has ended"
            self._rest += bytes(more)
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def call(self, name: str, *arguments: Any) -> Any:
        """What a method resolves to. Raises ClientError."""
        return _result(await self.ask(call=name, args=list(arguments)))

    async def begin(self, name: str, *arguments: Any) -> None:
        """Calls a method without waiting."""
        await self.ask(start=name, args=list(arguments))

    async def wait(self) -> Any:
        """What the begun call resolves to. Raises ClientError."""
        return _result(await self.ask(wait=True))

    async def events(self) -> list[dict[str, Any]]:
        """What listeners heard since the last time."""
        heard: list[dict[str, Any]] = (await self.ask(events=True))["result"]
        return heard


def _result(answer: dict[str, Any]) -> Any:
    if "error" in answer:
        raise ClientError(answer["error"])
    return answer.get("result")


@asynccontextmanager
async def connected(where: Place, *arguments: str) -> AsyncGenerator[Client, None]:
    """A client that is not started yet, for a server with the scripted model server."""
    programs = where.home / "programs"
    programs.mkdir()
    instead = programs / "node"
    instead.write_text(NODE_INSTEAD.format(program=PROGRAM))
    instead.chmod(0o755)
    environment = {**where.environment, "PATH": f"{programs}:{where.environment['PATH']}"}
    async with scripted_server(choose=Answers().to) as server:
        where.write(".camshaft/models.json", json.dumps({"providers": {"fake": provider(server.port)}}))
        where.write(".camshaft/settings.json", json.dumps({"compaction": {"keepRecentTokens": 1}, "retry": {"baseDelayMs": 20000}}))
        with trio.fail_after(LIMIT_S):
            process = await trio.lowlevel.open_process(
                [str(NODE), str(DRIVER), str(NODE_MODULES)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=where.project,
                env={**where.environment, "PATH": str(NODE.parent)},
            )
            try:
                client = Client(process)
                options = {"cwd": str(where.project), "env": environment, "provider": "fake", "model": "m1"}
                await client.ask(new={**options, "cliPath": "x.js", "args": ["--thinking", "off", *arguments]})
                yield client
            finally:
                process.kill()
                with trio.CancelScope(shield=True):
                    await process.wait()


@pytest.fixture
def where(tmp_path: Path) -> Place:
    """An empty home and an empty project; skipped without the reference."""
    why = missing()
    if why is not None:
        pytest.skip(why)
    return place(tmp_path)


async def test_every_method_of_the_client_gives_what_the_host_face_says(where: Place) -> None:
    async with connected(where) as client:
        await client.call("start")
        await client.call("onEvent", None)
        first = await client.call("getState")
        assert (first["model"]["id"], first["thinkingLevel"], first["messageCount"]) == ("m1", "off", 0)
        await _choose(client, where)
        await _prompt(client)
        await _run_beside(client)
        await _retry(client)
        await _compact(client)
        found = await _read(client)
        await client.call("stop")
        assert [line for line in (await client.call("getStderr")).splitlines() if not line.startswith("Warning: compaction: ")] == []
        names = (await client.ask(methods=True))["result"]

    assert set(names["all"]) - set(names["called"]) == OTHERS
    await _compare(found, where)


async def _choose(client: Client, where: Place) -> None:
    """Models, levels, modes and toggles: what the client is told is what counts, and what is written."""
    models = await client.call("getAvailableModels")
    assert [each["id"] for each in models] == ["m1", "m2"]
    assert (await client.call("setModel", "fake", "m2"))["id"] == "m2"
    assert await client.call("getAvailableThinkingLevels") == ["off", "minimal", "low", "medium", "high"]
    await client.call("setThinkingLevel", "high")
    assert await client.call("cycleThinkingLevel") == {"level": "off"}
    cycled = await client.call("cycleModel")
    assert (cycled["model"]["id"], cycled["thinkingLevel"], cycled["isScoped"]) == ("m1", "off", False)
    assert await client.call("cycleThinkingLevel") is None
    with pytest.raises(ClientError, match="Model not found: fake/nix"):
        await client.call("setModel", "fake", "nix")
    await client.call("setSteeringMode", "all")
    await client.call("setFollowUpMode", "all")
    await client.call("setAutoCompaction", False)
    await client.call("setAutoRetry", True)
    state = await client.call("getState")
    assert (state["steeringMode"], state["followUpMode"], state["autoCompactionEnabled"]) == ("all", "all", False)
    written = json.loads((where.agent_dir / "settings.json").read_text())
    assert (written["steeringMode"], written["followUpMode"]) == ("all", "all")
    assert (written["compaction"]["enabled"], written["retry"]["enabled"]) == (False, True)


async def _prompt(client: Client) -> None:
    """Prompts, queues and aborts."""
    events = await client.call("promptAndWait", "hello")
    assert events[-1]["type"] == "agent_settled" and [each["type"] for each in events].count("agent_start") == 1
    await client.begin("collectEvents")
    assert await client.call("prompt", "SLOW3 a") == "started"
    with pytest.raises(ClientError, match="Agent is already processing"):
        await client.call("prompt", "no")
    assert await client.call("steer", "and b") == "queued"
    assert await client.call("followUp", "and c") == "queued"
    assert await client.call("clearQueue") == {"steering": ["and b"], "followUp": ["and c"]}
    assert (await client.wait())[-1]["type"] == "agent_settled"
    assert await client.call("prompt", "SLOW30 b") == "started"
    await client.begin("waitForIdle")
    await client.call("abort")
    await client.wait()
    heard = await client.events()
    assert [each["aborted"] for each in heard if each["type"] == "agent_settled"] == [False, False, True]


async def _run_beside(client: Client) -> None:
    ran = await client.call("bash", "echo beside; exit 3")
    assert ran == {"output": "beside\n", "exitCode": 3, "cancelled": False, "truncated": False}
    await client.begin("bash", "sleep 30")
    await client.call("abortBash")
    assert (await client.wait())["cancelled"] is True


async def _retry(client: Client) -> None:
    await client.begin("promptAndWait", "FAIL529x1 r")
    await client.ask(until="auto_retry_start")
    await client.call("abortRetry")
    events = await client.wait()
    assert [each["finalError"] for each in events if each["type"] == "auto_retry_end"] == ["Retry cancelled"]


async def _compact(client: Client) -> None:
    compacted = await client.call("compact", "Short.")
    assert compacted["summary"].startswith("## Goal")
    with pytest.raises(ClientError, match="Already compacted"):
        await client.call("compact")
    await client.call("setSessionName", "  driven ")


async def _read(client: Client) -> dict[str, Any]:
    """Everything that can be read of the session as it is now."""
    names = ("getState", "getMessages", "getEntries", "getTree", "getSessionStats", "getForkMessages", "getCommands")
    found = {name: await client.call(name) for name in names}
    found["getLastAssistantText"] = await client.call("getLastAssistantText")
    entries = found["getEntries"]["entries"]
    later = await client.call("getEntries", entries[2]["id"])
    assert later["entries"] == entries[3:]
    return found


async def _compare(found: dict[str, Any], where: Place) -> None:
    """What the client read is what the host face says of the same session."""
    async with opened(found["getState"]["sessionFile"], where) as seat:
        session, statistics = seat.session, await seat.statistics()
        state, told, totals = found["getState"], found["getSessionStats"], statistics.totals
        entries = _plain([encode(each) for each in session.get_entries()])
        assert entries[: len(found["getEntries"]["entries"])] == found["getEntries"]["entries"]
        assert found["getEntries"]["leafId"] == found["getTree"]["leafId"] == found["getEntries"]["entries"][-1]["id"]
        assert _ids(found["getTree"]["tree"]) == [each["id"] for each in found["getEntries"]["entries"]]
        assert found["getMessages"] == _plain([encode(each) for each in seat.context_messages])
        assert (state["sessionId"], state["sessionName"]) == (session.get_session_id(), session.get_session_name())
        assert (state["messageCount"], state["isStreaming"]) == (len(seat.context_messages), seat.is_streaming)
        assert (told["userMessages"], told["assistantMessages"]) == (totals.user_messages, totals.assistant_messages)
        assert (told["totalMessages"], told["cost"]) == (totals.total_messages, pytest.approx(totals.cost))
        assert told["tokens"] == _plain(encode(totals.tokens))
        assert [each["text"] for each in found["getForkMessages"]] == ["hello", "SLOW3 a", "SLOW30 b", "FAIL529x1 r"]
        assert found["getCommands"] == [encode(each) for each in seat.commands()]


@asynccontextmanager
async def opened(path: str, where: Place) -> AsyncGenerator[Seat, None]:
    """The session in this process, opened like any host would."""
    options = OpenOptions(
        cwd=str(where.project), agent_dir=str(where.agent_dir), session=OpenSession(path=path), providers=(ScriptedProvider(),)
    )
    async with open_kernel() as kernel:
        yield await kernel.open(options)


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=dict))


def _ids(nodes: list[dict[str, Any]]) -> list[str]:
    """In file order, of a tree without branches."""
    found = []
    while nodes:
        (node,) = nodes
        found.append(node["entry"]["id"])
        nodes = node["children"]
    return found


async def test_a_process_that_ends_rejects_what_is_pending(where: Place) -> None:
    async with connected(
        where,
        "-e",
        str(where.write("leave.py", "import os\ndef setup(api):\n    api.register_command('leave', lambda a, c: os._exit(7))\n")),
    ) as client:
        await client.call("start")

        with pytest.raises(ClientError, match=r"Agent process exited \(code=7"):
            await client.call("prompt", "/leave")


async def test_stop_in_the_middle_of_a_tool_is_over_before_it_kills(where: Place) -> None:
    async with connected(where) as client:
        await client.call("start")
        await client.call("onEvent", None)
        await client.call("prompt", 'TOOL bash {"command":"sleep 100"}')
        await client.ask(until="tool_execution_start")
        file = (await client.call("getState"))["sessionFile"]
        started = trio.current_time()

        await client.call("stop")

        took_s = trio.current_time() - started
    results = [each for each in messages(Path(file)) if each["role"] == "toolResult"]
    assert took_s < 0.95
    assert [each["isError"] for each in results] == [True]


async def test_the_client_goes_through_sessions(where: Place) -> None:
    async with connected(where) as client:
        await client.call("start")
        await client.call("promptAndWait", "first")
        await client.call("promptAndWait", "second")
        file = (await client.call("getState"))["sessionFile"]
        second = (await client.call("getForkMessages"))[1]["entryId"]

        assert await client.call("fork", second) == {"text": "second", "cancelled": False}
        assert (await client.call("getState"))["messageCount"] == 3
        assert await client.call("clone") == {"cancelled": False}
        assert await client.call("newSession", file) == {"cancelled": False}
        assert (await client.call("getState"))["messageCount"] == 0
        assert await client.call("switchSession", file) == {"cancelled": False}
        assert (await client.call("getState"))["sessionFile"] == file
        with pytest.raises(ClientError, match="HTML export is not available"):
            await client.call("exportHtml")
        await client.call("stop")
        names = (await client.ask(methods=True))["result"]["called"]

    assert set(names) >= OTHERS
