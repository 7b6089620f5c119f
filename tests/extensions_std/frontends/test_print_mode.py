"""Print mode on the real command, with a real model server."""

import subprocess
from pathlib import Path

import pytest
import trio

from tests.extensions_std.frontends.command import PROGRAM, Place, calls, camshaft, chunk, messages, says, serving, texts
from tests.extensions_std.providers.sse_server import Reply

pytestmark = pytest.mark.slow


async def test_a_job_with_a_tool_finishes_in_a_real_folder(where: Place) -> None:
    (where.project / "numbers.txt").write_text("3\n4\n", encoding="utf-8")
    call = calls(("bash", {"command": "paste -sd+ numbers.txt | tee sum.txt"}), ("read", {"path": "numbers.txt"}))

    async with serving(where, call, says("The sum ", "is 7.")) as server:
        ended = await camshaft(where, "-p", "Add the numbers.")

    (session,) = where.session_files()
    assert (ended.code, ended.out, ended.err) == (0, "The sum is 7.\n", "")
    assert (where.project / "sum.txt").read_text(encoding="utf-8") == "3+4\n"
    assert [message["role"] for message in messages(session)] == ["system", "user", "assistant", "toolResult", "toolResult", "assistant"]
    assert len(server.requests) == 2


async def test_the_first_prompt_is_piped_text_files_and_message_without_gaps(where: Place) -> None:
    (where.project / "a.txt").write_text("A\n", encoding="utf-8")
    (where.project / "empty.txt").write_text("", encoding="utf-8")

    async with serving(where, says("One."), says("Two.")):
        ended = await camshaft(where, "@a.txt", "first", "@empty.txt", "second", stdin=b"  piped\n")

    (session,) = where.session_files()
    asked = [texts(message) for message in messages(session) if message["role"] == "user"]
    assert asked == [f'piped<file name="{where.project / "a.txt"}">\nA\n\n</file>\nfirst', "second"]
    assert ended.out == "Two.\n"


async def test_every_text_block_of_the_answer_is_a_line(where: Place) -> None:
    where.write("two.py", _ANSWERS)

    async with serving(where, says("ignored")):
        ended = await camshaft(where, "-e", str(where.home / "two.py"), "hello")

    assert (ended.code, ended.out) == (0, "one\ntwo\n")


async def test_a_failed_answer_is_told_on_standard_error(where: Place) -> None:
    async with serving(where, Reply(status=401, body=(b'{"error": {"message": "wrong key"}}',))):
        ended = await camshaft(where, "hello")

    assert (ended.code, ended.out) == (1, "")
    assert "wrong key" in ended.err


async def test_a_truncated_answer_is_printed_and_told(where: Place) -> None:
    async with serving(where, says("Half an ans", finish="length")):
        ended = await camshaft(where, "hello")

    assert (ended.code, ended.out) == (1, "Half an ans\n")
    assert ended.err == "Response was truncated: the model reached its output token limit.\n"


@pytest.mark.parametrize("given", [(), ("-p",), ("--mode", "text")])
async def test_without_a_prompt_nothing_is_printed(where: Place, given: tuple[str, ...]) -> None:
    async with serving(where, says("Never asked.")):
        ended = await camshaft(where, *given)

    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith("Nothing to do: give a prompt, for example: camshaft ")
    assert ended.err.count("\n") == 1


async def test_a_retry_is_one_line_on_standard_error(where: Place) -> None:
    where.write(".camshaft/settings.json", '{"retry": {"baseDelayMs": 1}}')

    async with serving(where, Reply(status=503, body=(b"busy",)), says("Fine.")):
        ended = await camshaft(where, "hello")

    assert (ended.code, ended.out) == (0, "Fine.\n")
    assert ended.err == "retry 1 of 3 in 0.0 s (local/m1): 503 busy\n"


async def test_a_prompt_that_a_command_handles_prints_the_answer_before_it(where: Place) -> None:
    where.write("hush.py", "def setup(api):\n    api.register_command('hush', lambda args, ctx: print('hushed'))\n")
    loaded = ("-e", str(where.home / "hush.py"))

    async with serving(where, says("An answer.")):
        alone = await camshaft(where, *loaded, "/hush")
        after = await camshaft(where, *loaded, "hello", "/hush")

    assert (alone.code, alone.out, alone.err) == (0, "", "hushed\n")
    assert (after.code, after.out) == (0, "An answer.\n")


async def test_progress_goes_to_standard_error_when_it_is_asked_for(where: Place) -> None:
    async with serving(where, calls(("bash", {"command": "false"})), says("It ", "failed.\x1b[31m")):
        ended = await camshaft(where, "--verbose", "try")

    assert ended.out == "It failed.\x1b[31m\n"
    assert "→ bash false\n✗ bash " in ended.err
    assert "It failed.[31m\n" in ended.err
    assert "done: 2 turns, 1 tool call, 200 tokens in, 10 out" in ended.err


async def test_a_reader_that_left_ends_the_command_quietly(where: Place) -> None:
    pieces = [chunk({"content": "x" * 20_000}) for _number in range(20)]

    async with serving(where, Reply(body=(*pieces, chunk({}, "stop"), b"data: [DONE]\n\n"))):
        code, told = await _with_closed_reader(where, "--mode", "json", "hello")

    assert (code, told) == (1, b"")


async def test_tools_are_chosen_and_prompts_replaced(where: Place) -> None:
    where.write("system.md", "Be brief.")
    given = ("--system-prompt", str(where.home / "system.md"), "--append-system-prompt", "One.", "--append-system-prompt", "Two.")

    async with serving(where, says("Fine.")):
        await camshaft(where, *given, "--tools", "+grep,-bash", "--exclude-tools", "e*", "hello")

    (session,) = where.session_files()
    system = messages(session)[0]
    assert [tool["name"] for tool in system["toolsAdded"]] == ["read", "write", "grep"]
    assert system["sections"]["preamble"] == "Be brief."
    assert system["sections"]["addendum"] == "<addendum>\nOne.\n\nTwo.\n</addendum>"


async def test_context_files_reach_the_prompt_unless_they_are_not_wanted(where: Place) -> None:
    (where.project / "AGENTS.md").write_text("Write tests.", encoding="utf-8")

    async with serving(where, says("Fine.")):
        await camshaft(where, "hello")
        await camshaft(where, "-nc", "hello")

    sections = [messages(session)[0]["sections"] for session in where.session_files()]
    assert "Write tests." in sections[0]["project_context"]
    assert "project_context" not in sections[1]


async def test_children_see_who_started_them(where: Place) -> None:
    async with serving(where, calls(("bash", {"command": 'echo "$AI_AGENT $CAMSHAFT $CAMSHAFT_OFFLINE"'})), says("Fine.")):
        await camshaft(where, "--offline", "hello")

    (session,) = where.session_files()
    assert texts(messages(session)[3]) == "camshaft true 1\n"


async def _with_closed_reader(where: Place, *arguments: str) -> tuple[int, bytes]:
    """Exit code and standard error of a command whose output nobody reads after the first byte."""
    process = await trio.lowlevel.open_process(
        [PROGRAM, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(where.project),
        env=where.environment,
    )
    assert process.stdout is not None and process.stderr is not None
    with trio.fail_after(60):
        await process.stdout.receive_some(1)
        await process.stdout.aclose()
        told = b"".join([piece async for piece in process.stderr])
        await process.stderr.aclose()
        return await process.wait(), told


_ANSWERS = """
from camshaft.actors.api import MessageEndResult, TextBlock
import attrs

def setup(api):
    def two_blocks(event, ctx):
        if event.message.role == "assistant":
            return MessageEndResult(message=attrs.evolve(event.message, content=(TextBlock(text="one"), TextBlock(text="two"))))
    api.on("message_end", two_blocks)
"""
