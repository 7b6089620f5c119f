"""The built-in tools in a real session, called by a scripted model."""

from pathlib import Path
from typing import Any

import pytest
import trio

from camshaft.actors.host import MemorySession, OpenOptions, open_kernel
from camshaft.extensions_std.providers.scripted import ScriptedProvider, assistant, tool_call
from camshaft.extensions_std.tools import builtin_tools
from camshaft.kernel.messages import ToolResultMessage, text_of
from tests.extensions_std.tools.calls import MARK, arrived, gone, open_handles, running

SLEEPER = "export {mark}; sleep 60 & echo [$((6 * 7))]; sleep 60"
"""Prints what its own text does not contain, for events hold that too."""


def options(folder: Path, provider: ScriptedProvider, **more: Any) -> OpenOptions:
    return OpenOptions(cwd=str(folder), session=MemorySession(), providers=(provider,), builtin_tools=builtin_tools(), **more)


def results(seat: Any) -> list[tuple[str, str, bool]]:
    """Name, text and error flag of each tool result of the branch."""
    messages = [message for message in seat.context_messages if isinstance(message, ToolResultMessage)]
    return [(message.tool_name, text_of(message.content), message.is_error) for message in messages]


async def test_a_model_writes_edits_and_reads_a_file_and_looks_at_it_with_a_shell(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    provider.set_responses(
        [
            assistant(tool_call("write", {"path": "a.txt", "content": "one\n"})),
            assistant(tool_call("edit", {"path": "a.txt", "oldText": "one", "newText": "two"})),
            assistant([tool_call("read", {"path": "a.txt"}), tool_call("bash", {"command": "cat a.txt; exit 3"})]),
            assistant("done"),
        ]
    )

    async with open_kernel() as kernel:
        seat = await kernel.open(options(tmp_path, provider))
        await seat.prompt("go")
        found = results(seat)

    assert found == [
        ("write", "Wrote 4 bytes to a.txt", False),
        ("edit", "Replaced 1 block in a.txt", False),
        ("read", "two\n", False),
        ("bash", "two\n\n\nCommand exited with code 3", True),
    ]


@pytest.mark.rule("TOOL-74")
async def test_aborting_a_run_ends_the_shell_it_waits_for(tmp_path: Path) -> None:
    provider, before, going = ScriptedProvider(), open_handles(), trio.Event()
    provider.set_responses([assistant(tool_call("bash", {"command": SLEEPER.format(mark=f"{MARK}={tmp_path}")}))])

    def listen(event: Any) -> None:
        if event.type == "tool_execution_update" and "[42]" in str(event):
            going.set()

    async with open_kernel() as kernel:
        seat = await kernel.open(options(tmp_path, provider))
        seat.subscribe(listen)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(seat.prompt, "go")
            await going.wait()
            was_running = await arrived(tmp_path, 2)
            await seat.abort()
        found = results(seat)

    assert was_running
    assert found == [("bash", "[42]\n\n\nCommand aborted", True)]
    assert await gone(tmp_path), running(tmp_path)
    assert open_handles() <= before


async def test_leaving_the_kernel_ends_the_shell_of_a_run(tmp_path: Path) -> None:
    provider, going = ScriptedProvider(), trio.Event()
    provider.set_responses([assistant(tool_call("bash", {"command": SLEEPER.format(mark=f"{MARK}={tmp_path}")}))])

    with trio.CancelScope() as scope:
        async with open_kernel() as kernel:
            seat = await kernel.open(options(tmp_path, provider))
            seat.subscribe(lambda event: going.set() if event.type == "tool_execution_update" and "[42]" in str(event) else None)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(seat.prompt, "go")
                await going.wait()
                was_running = await arrived(tmp_path, 2)
                scope.cancel()

    assert was_running
    assert await gone(tmp_path), running(tmp_path)
