"""The real command on a terminal: what a person sees, in the order they see it.

Standard input, output and error are one pseudo-terminal, as in a shell; what it was shown is read from its other end.
"""

import os
import pty
import re
import signal
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.extensions_std.frontends.command import LIMIT_S, PROGRAM, Place, begins, calls, says, serving

pytestmark = pytest.mark.slow

_SHOUT: Final = """\
from attrs import evolve
from camshaft.actors.api import TextBlock


def shout(event, ctx):
    if event.message.role == "assistant":
        return {"message": evolve(event.message, content=(TextBlock(text=event.message.content[0].text.upper()),))}

def setup(api):
    api.on("message_end", shout)
"""

_CODES: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


async def on_terminal(where: Place, *arguments: str, interrupt_at: str | None = None) -> tuple[int, str]:
    """Exit code and everything shown; SIGINT is sent once `interrupt_at` is on the screen."""
    ours, theirs = pty.openpty()
    seen = b""
    with trio.fail_after(LIMIT_S):
        process = await trio.lowlevel.open_process(
            [PROGRAM, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, cwd=Path(where.project), env=where.environment
        )
        os.close(theirs)
        async with trio.lowlevel.FdStream(ours) as screen:
            try:
                while piece := await screen.receive_some():
                    seen += piece
                    if interrupt_at is not None and interrupt_at.encode() in seen:
                        process.send_signal(signal.SIGINT)
                        interrupt_at = None
            except trio.BrokenResourceError:
                pass  # nobody holds the other end any more
        code = await process.wait()
    return code, _CODES.sub("", seen.decode()).replace("\r\n", "\n")


@pytest.mark.rule("PRINT-2")
async def test_the_answer_is_on_the_screen_once(where: Place) -> None:
    async with serving(where, says("The sum ", "is 7.")):
        code, shown = await on_terminal(where, "-p", "add")

    assert code == 0
    assert shown.count("The sum is 7.") == 1


@pytest.mark.rule("PRINT-2")
async def test_the_answer_is_on_the_screen_while_it_is_written(where: Place) -> None:
    async with serving(where, begins("Half")):
        code, shown = await on_terminal(where, "-p", "go", interrupt_at="Half")

    assert code == 130
    assert shown.count("Half") == 1


@pytest.mark.rule("PRINT-1")
async def test_an_answer_that_an_extension_changed_is_written_as_it_was_kept(where: Place) -> None:
    changes = Path(where.project) / "shout.py"
    changes.write_text(_SHOUT, encoding="utf-8")

    async with serving(where, says("The sum is 7.")):
        _, shown = await on_terminal(where, "-e", "shout.py", "-p", "add")

    assert shown.endswith("THE SUM IS 7.\n")


@pytest.mark.rule("PRINT-2")
async def test_what_is_said_before_the_answer_stands_before_what_follows_it(where: Place) -> None:
    async with serving(where, calls(("ls", {"path": "."})), says("Done.")):
        _, shown = await on_terminal(where, "-p", "look")

    assert shown.count("Calling.") == shown.count("Done.") == 1
    assert shown.index("Calling.") < shown.index("→ ls .") < shown.index("Done.") < shown.index("done: 2 turns")


async def test_the_text_of_an_earlier_prompt_is_shown_too(where: Place) -> None:
    async with serving(where, says("First."), says("Second.")):
        _, shown = await on_terminal(where, "-p", "one", "two")

    assert shown.count("First.") == shown.count("Second.") == 1


async def test_an_interrupt_says_how_to_go_on(where: Place) -> None:
    async with serving(where, begins("Half")):
        code, shown = await on_terminal(where, "go", interrupt_at="Half")

    assert code == 130
    assert shown.endswith("interrupted; continue with: camshaft -c\n")


async def test_an_interrupt_without_a_session_file_says_only_that(where: Place) -> None:
    async with serving(where, begins("Half")):
        code, shown = await on_terminal(where, "--no-session", "go", interrupt_at="Half")

    assert code == 130
    assert shown.endswith("interrupted\n")
