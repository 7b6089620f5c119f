"""JSON mode on the real command, and against the recorded transcript of the reference."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.extensions_std.frontends.command import Place, calls, camshaft, chunk, says, serving
from tests.extensions_std.providers.sse_server import Reply

pytestmark = pytest.mark.slow

TRANSCRIPT: Final = Path(__file__).parent / "data" / "json-mode.jsonl"
RATES: Final = {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0}
USAGE: Final = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105, "completion_tokens_details": {"reasoning_tokens": 0}}

NOISY: Final = """
import os, subprocess, sys
print("printed while loading")
def setup(api):
    print("printed in setup")
    def loud(event, ctx):
        print("printed in a handler")
        sys.stdout.write("written\\n")
        os.write(1, b"written to the descriptor\\n")
        subprocess.run(["echo", "a child process"])
    api.on("session_start", loud)
    api.on("turn_end", loud)
    api.on("session_shutdown", loud)
"""


async def test_two_prompts_give_the_records_of_the_transcript(where: Place) -> None:
    recorded = [json.loads(line) for line in TRANSCRIPT.read_text(encoding="utf-8").split("\n") if line]
    expected = [_comparable(step["record"]) for step in recorded if step.get("dir") == "out"]
    pieces = [_with_usage(chunk({"content": text})) for text in ("Hello ", "from ", "script.")]
    answer = Reply(body=(*pieces, _with_usage(chunk({}, "stop")), b"data: [DONE]\n\n"))

    async with serving(where, answer) as server:
        model = {"id": "m1", "cost": RATES}
        where.write(".camshaft/models.json", json.dumps({"providers": {"fake": _provider(server.base_url, model)}}))
        ended = await camshaft(where, "--mode", "json", "--thinking", "off", "hello", "second")

    assert ended.code == 0, ended.err
    assert [_comparable(record) for record in ended.records] == expected


async def test_whatever_extensions_and_their_children_print_goes_to_standard_error(where: Place) -> None:
    noisy = where.write("noisy.py", NOISY)

    async with serving(where, says("Quiet.")):
        ended = await camshaft(where, "--mode", "json", "-e", str(noisy), "hello")

    assert ended.code == 0, ended.err
    assert [record["type"] for record in ended.records][0] == "session"
    assert "printed" not in ended.out and "written" not in ended.out and "child" not in ended.out
    for line in ("printed while loading", "printed in setup", "printed in a handler", "written to the descriptor", "a child process"):
        assert line in ended.err


async def test_a_handler_that_raises_is_told_on_standard_error_only(where: Place) -> None:
    raising = where.write("raising.py", "def setup(api):\n    api.on('turn_end', lambda event, ctx: 1 / 0)\n")

    async with serving(where, says("Fine.")):
        ended = await camshaft(where, "--mode", "json", "-e", str(raising), "hello")

    assert ended.code == 0
    assert "extension_error" not in {record["type"] for record in ended.records}
    told = f"Extension error ({raising}): division by zero [ZeroDivisionError, in turn_end, {raising}, line 2]"
    assert told in ended.err


async def test_a_failed_answer_is_an_event_and_no_exit_code(where: Place) -> None:
    async with serving(where, Reply(status=400, body=(b'{"error": {"message": "no such thing"}}',))):
        ended = await camshaft(where, "--mode", "json", "hello")

    (message,) = [record["message"] for record in ended.records if record["type"] == "turn_end"]
    assert ended.code == 0
    assert message["stopReason"] == "error" and "no such thing" in message["errorMessage"]


async def test_the_start_of_a_tool_call_names_its_id_and_tool(where: Place) -> None:
    async with serving(where, calls(("ls", {"path": "."}), ("read", {"path": "x"})), says("Done.")):
        ended = await camshaft(where, "--mode", "json", "--tools", "ls,read", "look")

    told = [record["assistantMessageEvent"] for record in ended.records if record["type"] == "message_update"]
    starts = [event for event in told if event["type"] == "toolcall_start"]
    assert starts == [
        {"type": "toolcall_start", "contentIndex": 1, "id": "call_0", "toolName": "ls"},
        {"type": "toolcall_start", "contentIndex": 2, "id": "call_1", "toolName": "read"},
    ]
    assert all(set(record) == {"type", "usage", "assistantMessageEvent"} for record in ended.records if record["type"] == "message_update")


@pytest.mark.parametrize("session", [(), ("--no-session",)])
async def test_without_a_prompt_there_is_only_the_header(where: Place, session: tuple[str, ...]) -> None:
    async with serving(where, says("Never asked.")):
        ended = await camshaft(where, "--mode", "json", *session)

    assert (ended.code, ended.err) == (0, "")
    (header,) = ended.records
    assert (header["type"], header["version"], header["cwd"]) == ("session", 3, str(where.project))


async def test_without_a_model_the_header_comes_and_the_rest_is_told(where: Place) -> None:
    ended = await camshaft(where, "--mode", "json", "hello")

    assert ended.code == 1
    assert [record["type"] for record in ended.records] == ["session"]
    assert "models.json" in ended.err


def _provider(base_url: str, model: dict[str, Any]) -> dict[str, Any]:
    return {"baseUrl": f"{base_url}/v1", "api": "openai-completions", "models": [model]}


def _with_usage(piece: bytes) -> bytes:
    value = json.loads(piece.removeprefix(b"data: "))
    return b"data: " + json.dumps({**value, "usage": USAGE}).encode() + b"\n\n"


def _comparable(value: Any) -> Any:
    """The value without what differs from run to run: times, ids, folders, prompt texts, tool texts."""
    if isinstance(value, list):
        return [_comparable(each) for each in value]
    if not isinstance(value, dict):
        return round(value, 12) if isinstance(value, float) else value
    done = {name: _comparable(each) for name, each in value.items() if name not in ("durationMs", "constrainedSampling")}
    for name in ("timestamp", "cwd"):
        if name in done:
            done[name] = type(done[name]).__name__
    if value.get("type") == "session":
        done["id"] = bool(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", value["id"]))
    if "sections" in value:
        done["sections"] = sorted(value["sections"])
    if "toolsAdded" in value:
        done["toolsAdded"] = [tool["name"] for tool in value["toolsAdded"]]
    return done
