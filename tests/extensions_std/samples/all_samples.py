"""One conversation with every sample extension loaded, in a world without chance: what its session file holds.

Programs are answered by a table, because how long a real one takes is chance; everything else is real. Run as a
program it writes the session file to standard output, so that a test can look at it from processes of their own.
"""

import pkgutil
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

import attrs
import trio
from trio.testing import MockClock

from camshaft.actors.api import AssistantMessage, ModelRequest, text_of
from camshaft.actors.host import WatchedUi, open_kernel
from camshaft.actors.ports.processes import ProcessCommand, ProcessEnd
from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.extensions_std import samples, tools
from camshaft.extensions_std.providers.scripted import ScriptedProvider, assistant, tool_call
from camshaft.kernel.settings import CompactionSettings
from tests.actors.running import NO_RETRY, PATH, Running, options, virtual_world
from tests.extensions_std.samples.with_and_without import at_rest

NAMES = sorted([each.name for each in pkgutil.iter_modules(samples.__path__)])
"""Every sample there is."""

IDLE_S = 0.02
"""The virtual clock goes on when nothing has happened for so long: a read from disk takes real time and no virtual one."""

OUTPUTS = {"git status --porcelain": "", "sh -c echo deep": "deep\n"}
"""What programs print; one that is not listed prints its own name."""


class TableOfPrograms:
    """Processes that take no time and print what OUTPUTS says."""

    async def run(self, command: ProcessCommand, on_output: Any, **_: Any) -> ProcessEnd:
        line = " ".join(command.arguments)
        await on_output(OUTPUTS.get(line, f"{line}\n").encode())
        return ProcessEnd(why="exited", exit_code=0, exited_after_s=0.0)

    async def find_program(self, names: Sequence[str], _search_path: str) -> str | None:
        return names[0] if names else None


def calls(*named: tuple[str, dict[str, Any]]) -> AssistantMessage:
    return assistant([tool_call(name, given, id=f"c{at}") for at, (name, given) in enumerate(named)], stop_reason="toolUse")


LOOK = calls(
    ("todo", {"action": "add", "text": "look"}),
    ("todo", {"action": "toggle", "id": 1}),
    ("search_all", {"pattern": "loop"}),
    ("echo_session", {"text": "hi"}),
    ("read", {"path": "notes.txt"}),
    ("read", {"path": ".env"}),
    ("bash", {"command": "rm -rf build"}),
)
CHANGE = calls(("question", {"question": "Which?", "options": ["a", "b"]}), ("write", {"path": "new.txt", "content": "new"}), ("edit", {}))
REPORT = calls(("final_report", {"headline": "Done", "summary": "All of it", "next_steps": []}))

ANSWERS = {"Look around": LOOK, "Change it": CHANGE, "Report": REPORT, "Make a plan": assistant("Plan:\n1. Look\n2. Change")}
"""What the model does when the last message holds a text; else it says so."""


def answered(request: ModelRequest) -> AssistantMessage:
    last = text_of(request.messages[-1].content)
    return next((answer for text, answer in ANSWERS.items() if last.startswith(text)), assistant(f"Heard {len(last)} characters."))


TYPED = (
    "?quick Why?",
    "Look around !{echo deep}",
    "/note read it",
    "/add-echo shout HEY",
    "Change it",
    "/status-update good fine",
    "/pirate",
    "/plan",
    "Make a plan",
    "/summarize",
    "/qna",
    "/session-name All of them",
    "/bookmark here",
    "Report",
    "/trigger-compact",
)


def session_file(folder: str) -> tuple[bytes, list[str], list[tuple[str, str, str]]]:
    """The session file, what could not be loaded, and the errors of the extensions."""
    return trio.run(_talk, folder, clock=MockClock(autojump_threshold=IDLE_S))


async def _talk(folder: str) -> tuple[bytes, list[str], list[tuple[str, str, str]]]:
    files, provider = MemoryLogFiles(), ScriptedProvider(chunked=False)
    provider.set_responses([answered] * 100)
    setups = [import_module(f"{samples.__name__}.{name}").setup for name in NAMES]
    given = options(
        provider,
        *setups,
        files=files,
        tools=tools.builtin_tools(),
        settings=attrs.evolve(NO_RETRY, compaction=CompactionSettings(keep_recent_tokens=1)),
        ui=WatchedUi(),
        mode="rpc",
    )
    world = attrs.evolve(virtual_world(files), processes=TableOfPrograms())
    async with open_kernel(world=world) as kernel:
        running = Running(kernel, await kernel.open(attrs.evolve(given, cwd=folder, tools=None)), provider)
        running.seat.subscribe(running.heard.append)
        running.seat.subscribe(partial(_answer, running))
        for text in TYPED:
            await running.seat.prompt(text)
            await at_rest(running)
        unloaded = [f"{each.path}: {each.error}" for each in running.seat.load_errors]
    return files.photo().content(PATH) or b"", unloaded, running.errors()


def _answer(running: Running, event: Any) -> None:
    """Confirms everything, takes the first choice and what is written already."""
    if event.type == "dialog_opened":
        dialog = event.dialog
        answer: object = {"confirm": True, "select": dialog.options[:1], "input": "text", "editor": dialog.prefill}[dialog.kind]
        running.seat.answer_dialog(dialog.id, answer[0] if isinstance(answer, tuple) else answer)


if __name__ == "__main__":
    sys.stdout.buffer.write(session_file(sys.argv[1])[0])
