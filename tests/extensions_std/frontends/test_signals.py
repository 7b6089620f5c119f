"""Signals on the real command: the turn is stored, every call answered, no child left, the exit code is the signal's."""

import signal
from pathlib import Path
from typing import Final

import pytest
import trio

from camshaft.actors.host import OpenOptions, OpenSession, open_kernel
from tests.extensions_std.frontends.command import (
    Place,
    begins,
    calls,
    camshaft,
    left_by,
    messages,
    running,
    says,
    serving,
    texts,
    unanswered,
)

pytestmark = pytest.mark.slow

CODES: Final = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
SLOW: Final = ("bash", {"command": "sleep 300 & echo ready; sleep 300"})
"""A command with a child of its own."""

DEAF: Final = """
import trio

def setup(api):
    async def deaf(call_id, params, signal, on_update, ctx):
        on_update({"content": [{"type": "text", "text": "deaf to it"}]})
        await trio.sleep_forever()
    api.register_tool({"name": "deaf", "description": "", "parameters": {"type": "object"}, "execute": deaf})
    api.on("session_shutdown", hang)

async def hang(event, ctx):
    await trio.sleep_forever()
"""

FRACTION: Final = range(1, 41, 4)
"""Every fourth of the records of a run with a tool."""


@pytest.mark.parametrize("number", CODES)
async def test_a_signal_in_mid_answer_stores_what_came(where: Place, number: signal.Signals) -> None:
    async with serving(where, begins("Half ", "an answer")), running(where, "--mode", "json", "go") as run:
        await run.until("message_update", "an answer")

        code = await run.interrupted(number)

    (session,) = where.session_files()
    last = messages(session)[-1]
    assert code == CODES[number]
    assert (last["role"], texts(last), last["stopReason"]) == ("assistant", "Half an answer", "aborted")


@pytest.mark.parametrize("number", CODES)
async def test_a_signal_in_mid_tool_leaves_no_child_and_no_call_open(where: Place, number: signal.Signals) -> None:
    async with serving(where, calls(SLOW, ("ls", {"path": "."})), says("Never.")), running(where, "--mode", "json", "go") as run:
        await run.until("tool_execution_update", "ready")

        code = await run.interrupted(number)

    (session,) = where.session_files()
    assert code == CODES[number]
    assert unanswered(session) == []
    assert await left_by(where) == []


async def test_nothing_is_written_after_the_signal(where: Place) -> None:
    async with serving(where, begins("Half")), running(where, "--mode", "json", "go") as run:
        await run.until("message_update", "Half")
        await run.interrupted()

    assert run.records[-1]["type"] == "message_update"


async def test_a_second_signal_ends_what_does_not_listen(where: Place) -> None:
    deaf = where.write("deaf.py", DEAF)
    started = trio.current_time()

    async with serving(where, calls(("deaf", {}), SLOW)), running(where, "--mode", "json", "-e", str(deaf), "go") as run:
        await run.until("tool_execution_update", "deaf to it")
        await run.until("tool_execution_update", "ready")
        run.process.send_signal(signal.SIGINT)
        await trio.sleep(0.2)  # real time: the first signal must be seen as one of its own
        code = await run.interrupted(signal.SIGTERM)

    assert code == 143
    assert trio.current_time() - started < 9, "the grace of the first signal alone is ten seconds"
    assert await left_by(where) == []


async def test_an_interrupted_session_goes_on(where: Place) -> None:
    async with serving(where, calls(SLOW), says("Here again.")):
        async with running(where, "--mode", "json", "go") as run:
            await run.until("tool_execution_update", "ready")
            await run.interrupted()
        ended = await camshaft(where, "-c", "go on")

    (session,) = where.session_files()
    assert (ended.code, ended.out) == (0, "Here again.\n")
    assert [texts(message) for message in messages(session) if message["role"] == "user"] == ["go", "go on"]


@pytest.mark.parametrize("seen", FRACTION)
async def test_sigint_after_any_record_leaves_a_whole_session(where: Place, seen: int) -> None:
    await _interrupt_after(where, seen)


@pytest.mark.long
@pytest.mark.parametrize("seen", range(1, 201))
async def test_sigint_after_each_of_the_first_200_records_leaves_a_whole_session(where: Place, seen: int) -> None:
    await _interrupt_after(where, seen)


async def _interrupt_after(where: Place, seen: int) -> None:
    fragments = [f"{number} " for number in range(200)]
    slow = ("bash", {"command": "sleep 300 & echo ready; sleep 0.05; kill $!"})

    async with serving(where, calls(slow), begins(*fragments)), running(where, "--mode", "json", "go") as run:
        while len(run.records) < seen:
            assert await run.next_record() is not None
        code = await run.interrupted()

    assert code == 130
    assert await left_by(where) == []
    for session in where.session_files():
        assert unanswered(session) == []
        await _opens_without_complaint(session)


async def _opens_without_complaint(session: Path) -> None:
    async with open_kernel() as kernel:
        seat = await kernel.open(OpenOptions(cwd="/", session=OpenSession(path=str(session))))
        assert seat.found == ()
