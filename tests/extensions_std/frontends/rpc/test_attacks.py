"""Clients that do everything wrong, at once, or not at all: the process answers, stays small and ends in order."""

import json
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from tests.extensions_std.frontends.command import Place, left_by, messages, unanswered
from tests.extensions_std.frontends.rpc.model_server import Answers, provider
from tests.extensions_std.frontends.rpc.talking import Process, Talk, talking
from tests.extensions_std.providers.sse_server import scripted_server

pytestmark = pytest.mark.slow

UI: Final = str(Path(__file__).with_name("ui_extension.py"))
MEGABYTE: Final = 1 << 20
SLOW_HOOK: Final = """
import trio
def setup(api):
    async def hang(event, ctx):
        await trio.sleep_forever()
    api.on("session_shutdown", hang)
"""
ASKS_FIRST: Final = """
def setup(api):
    async def ask(event, ctx):
        api.append_entry("answer", await ctx.ui.input("Who?"))
    api.on("session_start", ask)
"""
SAYS_GOODBYE: Final = """
def setup(api):
    api.on("session_start", lambda event, ctx: ctx.shutdown())
"""
READS_INPUT: Final = """
import subprocess, sys
def setup(api):
    async def steal(arguments, ctx):
        api.append_entry("stolen", [sys.stdin.read(), subprocess.run(["cat"], capture_output=True, text=True).stdout])
    api.register_command("steal", steal)
"""


@asynccontextmanager
async def served(where: Place, *arguments: str) -> AsyncGenerator[Talk, None]:
    """A server with the scripted model server."""
    async with scripted_server(choose=Answers().to) as server:
        where.write(".camshaft/models.json", json.dumps({"providers": {"fake": provider(server.port)}}))
        async with talking(where, "--provider", "fake", "--model", "m1", "--thinking", "off", *arguments) as talk:
            yield talk


def process_of(talk: Talk) -> trio.Process:
    """The process under attack."""
    assert isinstance(talk.server, Process)
    return talk.server.process


def memory_mb(talk: Talk) -> float:
    """Resident memory of the process."""
    lines = Path(f"/proc/{process_of(talk).pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


GARBAGE: Final = (
    b"\xff\xfe\x00",
    b"{",
    b"[[[[",
    b"nul",
    b'"',
    b"\x1b[31m",
    b"{}",
    b"[]",
    b"true",
    b'{"type":null}',
    b'{"type":["a"]}',
    b"[" * 200_000,
)


async def test_garbage_is_answered_line_by_line_and_nothing_ends(where: Place) -> None:
    async with served(where) as talk:
        await talk.server.send(b"\n".join(GARBAGE) + b"\n")
        answers = [await talk.next() for _ in GARBAGE]

        assert all([answer is not None and answer["success"] is False for answer in answers])
        assert (await talk.ask("get_state"))["success"]
        assert await talk.end() == 0


async def test_a_line_of_fifty_megabytes_is_one_command(where: Place) -> None:
    async with served(where) as talk:
        line = b'{"id":"big","type":"set_session_name","name":" n","zzz":"' + b"x" * (50 * MEGABYTE) + b'"}\n'
        await talk.server.send(line)

        assert (await talk.until(type="response", id="big"))["success"]
        assert (await talk.data("get_state"))["sessionName"] == "n"


async def test_a_fault_is_told_without_the_megabytes_it_was_in(where: Place) -> None:
    async with served(where) as talk:
        refused = await talk.ask("set_steering_mode", mode="x" * (5 * MEGABYTE))

    assert not refused["success"] and len(refused["error"]) < 1000
    assert refused["error"].startswith("Invalid set_steering_mode command: mode: ")


async def test_the_input_ends_in_the_middle_of_a_line(where: Place) -> None:
    async with served(where) as talk:
        await talk.server.send(b'{"id":1,"type":"get_state"}\n{"id":2,"type":"get_st')
        await talk.server.close()
        records = await talk.rest()

        assert [(record["command"], record["success"]) for record in records] == [("get_state", True), ("parse", False)]
        assert await talk.server.ended() == 0


async def test_ten_thousand_commands_at_once_are_answered_in_order(where: Place) -> None:
    async with served(where) as talk:
        count = 10_000
        lines = b"".join([b'{"id":%d,"type":"abort_bash"}\n' % number for number in range(count)])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(talk.server.send, lines)
            ids = [(await talk.next() or {})["id"] for _ in range(count)]

    assert ids == list(range(count))


async def test_who_sends_and_never_reads_is_held_up_and_loses_nothing(where: Place) -> None:
    async with served(where) as talk:
        await talk.data("get_state")
        line, sent = b'{"id":1,"type":"get_commands"}\n' * 2000, 0
        with trio.move_on_after(3):
            while sent < 2_000_000:
                await talk.server.send(line)
                sent += 2000
        held_mb = memory_mb(talk)
        answers = [await talk.next() for _ in range(40_000)]

    assert held_mb < 600
    assert all([answer is not None and answer["success"] for answer in answers])


async def test_a_slow_reader_of_a_long_output_gets_all_of_it_and_costs_no_memory(where: Place) -> None:
    async with served(where) as talk:
        await talk.data("get_state")
        before_mb = memory_mb(talk)
        await talk.send({"id": "b", "type": "bash", "command": "head -c 60000000 /dev/zero | tr '\\0' 'x'"})
        await trio.sleep(1.5)  # real time: the process writes as far as it can, and nobody reads
        held_mb = memory_mb(talk) - before_mb
        done = await talk.until(type="response", id="b")

    told = [len(record["delta"]) for record in talk.records if record["type"] == "bash_execution_update"]
    assert sum(told) == 60_000_000
    assert done["data"]["truncated"] is True
    assert held_mb < 150


async def test_a_reader_that_is_gone_ends_the_process_with_1(where: Place) -> None:
    async with served(where) as talk:
        await talk.data("prompt", message="SLOW30 a")
        process = process_of(talk)
        assert process.stdout is not None
        await process.stdout.aclose()

        assert await process.wait() == 1
    (session,) = where.session_files()
    assert messages(session)[-1]["stopReason"] == "aborted"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
async def test_a_signal_in_mid_tool_leaves_no_child_and_no_open_call(where: Place, number: signal.Signals, code: int) -> None:
    async with served(where) as talk:
        await talk.data("prompt", message='TOOL bash {"command":"echo ready; sleep 300 & sleep 300"}')
        await talk.until(type="tool_execution_start")
        await talk.send({"id": "b", "type": "bash", "command": "echo here; sleep 300"})
        await talk.until(type="bash_execution_update")
        started = trio.current_time()
        process_of(talk).send_signal(number)
        await talk.rest()

        assert await talk.server.ended() == code
        assert trio.current_time() - started < 1
    (session,) = where.session_files()
    assert unanswered(session) == []
    assert await left_by(where) == []


async def test_hooks_that_hang_are_cut_after_the_end_of_the_input(where: Place) -> None:
    slow = where.write("slow.py", SLOW_HOOK)
    async with served(where, "-e", str(slow)) as talk:
        await talk.data("get_state")
        started = trio.current_time()

        assert await talk.end() == 0
        assert 0.7 < trio.current_time() - started < 2


SIGNALS: Final = [
    ("eof", [signal.SIGTERM], 0),
    ("eof", [signal.SIGTERM, signal.SIGTERM], 143),
    (None, [signal.SIGTERM, signal.SIGHUP], 129),
]


@pytest.mark.parametrize(("begun", "numbers", "code"), SIGNALS)
async def test_further_signals_during_the_end(where: Place, begun: str | None, numbers: list[int], code: int) -> None:
    slow = where.write("slow.py", SLOW_HOOK)
    async with served(where, "-e", str(slow)) as talk:
        await talk.data("get_state")
        if begun is not None:
            await talk.server.close()
            await trio.sleep(0.3)  # real time: nothing tells that the end has begun
        for number in numbers:
            process_of(talk).send_signal(number)
            await trio.sleep(0.1)  # real time: two signals at once would be one

        assert await talk.server.ended() == code


async def test_two_prompts_at_once_are_one_run_and_one_refusal(where: Place) -> None:
    async with served(where) as talk:
        await talk.server.send(b'{"id":1,"type":"prompt","message":"one"}\n{"id":2,"type":"prompt","message":"two"}\n')
        await talk.until(type="agent_settled")
        await talk.ask("get_state")
        answers = {record["id"]: record for record in talk.records if record["type"] == "response"}

    assert answers[1]["data"] == {"disposition": "started"}
    assert answers[2]["error"].startswith("Agent is already processing")
    assert [record["type"] for record in talk.records].count("agent_settled") == 1


async def test_texts_that_are_queued_at_once_keep_their_order(where: Place) -> None:
    async with served(where) as talk:
        texts = [f"text {number}" for number in range(50)]
        lines = [json.dumps({"id": text, "type": "steer", "message": text}) for text in texts]
        await talk.server.send("\n".join([*lines, ""]).encode())
        await talk.until(type="response", id=texts[-1])

        assert await talk.data("clear_queue") == {"steering": texts, "followUp": []}


async def test_a_dialog_is_answered_once(where: Place) -> None:
    async with served(where, "-e", UI) as talk:
        await talk.send({"id": "p", "type": "prompt", "message": "/sel"})
        id = (await talk.until(type="extension_ui_request"))["id"]
        for value in ("B", "A", 7):
            await talk.send({"type": "extension_ui_response", "id": id, "value": value})
        await talk.until(type="response", id="p")
        entries = (await talk.data("get_entries"))["entries"]

    assert [entry["data"] for entry in entries if entry.get("customType") == "result"] == [{"value": "B"}]


async def test_a_dialog_of_session_start_is_answered_while_commands_wait(where: Place) -> None:
    asks = where.write("asks.py", ASKS_FIRST)
    async with served(where, "-e", str(asks)) as talk:
        await talk.send({"id": "early", "type": "get_entries"})
        id = (await talk.until(type="extension_ui_request"))["id"]
        await talk.send({"type": "extension_ui_response", "id": id, "value": "me"})
        answer = await talk.until(type="response")

    assert answer["id"] == "early"
    assert answer["data"]["entries"][-1]["data"] == "me"
    assert [record["type"] for record in talk.records] == ["extension_ui_request", "entry_appended", "response"]


async def test_a_dialog_of_session_start_that_nobody_can_answer_ends_with_the_input(where: Place) -> None:
    asks = where.write("asks.py", ASKS_FIRST)
    async with served(where, "-e", str(asks)) as talk:
        await talk.send({"id": 1, "type": "get_state"})

        assert await talk.end() == 0
        assert talk.records[-1]["id"] == 1


async def test_a_wish_to_end_in_session_start_ends_it_at_once(where: Place) -> None:
    goodbye = where.write("goodbye.py", SAYS_GOODBYE)
    async with served(where, "-e", str(goodbye)) as talk:
        assert await talk.rest() == []
        assert await talk.server.ended() == 0


async def test_extensions_and_their_children_do_not_read_what_the_client_writes(where: Place) -> None:
    steals = where.write("steals.py", READS_INPUT)
    async with served(where, "-e", str(steals)) as talk:
        await talk.send({"id": "s", "type": "prompt", "message": "/steal"})
        await talk.send({"id": "after", "type": "get_entries"})
        answer = await talk.until(type="response", id="after")

    assert [entry["data"] for entry in answer["data"]["entries"] if entry["type"] == "custom"] == [["", ""]]


REFUSED: Final[dict[str, dict[str, Any]]] = {
    "prompt": {"message": 5},
    "steer": {},
    "follow_up": {"message": "x", "images": [{"type": "image"}]},
    "new_session": {"parentSession": 7},
    "set_model": {"provider": "fake"},
    "set_thinking_level": {"level": "bogus"},
    "set_steering_mode": {"mode": "bogus"},
    "set_follow_up_mode": {},
    "compact": {"customInstructions": ["x"]},
    "set_auto_compaction": {"enabled": "yes"},
    "set_auto_retry": {"enabled": 1},
    "bash": {},
    "export_html": {"outputPath": {}},
    "switch_session": {"sessionPath": ""},
    "fork": {"entryId": None},
    "get_entries": {"since": 3},
    "set_session_name": {"name": False},
}


async def test_a_command_with_a_wrong_field_is_refused_and_changes_nothing(where: Place) -> None:
    async with served(where) as talk:
        await talk.data("set_session_name", name="before")
        names = ("get_state", "get_entries", "get_messages")
        before = [await talk.data(name) for name in names]
        refused = {type: await talk.ask(type, id=type, **fields) for type, fields in REFUSED.items()}

        assert [await talk.data(name) for name in names] == before
    assert list(where.agent_dir.glob("settings*")) == []
    assert all([not answer["success"] and answer["error"].startswith(f"Invalid {type} command: ") for type, answer in refused.items()])


async def test_a_session_as_long_as_its_tree_is_deep_can_be_read(where: Place) -> None:
    count = 20_000
    lines = [json.dumps({"type": "session", "version": 3, "id": "0", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": str(where.project)})]
    lines += [
        json.dumps(
            {
                "type": "custom",
                "customType": "k",
                "id": f"{number:08x}",
                "parentId": f"{number - 1:08x}" if number else None,
                "timestamp": "2026-01-01T00:00:00.000Z",
            }
        )
        for number in range(count)
    ]
    deep = where.write("deep.jsonl", "\n".join([*lines, ""]))
    async with served(where, "--session", str(deep)) as talk:
        await talk.send({"id": "t", "type": "get_tree"})
        rest = b""
        while b"\n" not in rest:
            rest += await talk.server.receive()

    assert rest.count(b'"children":[') >= count
