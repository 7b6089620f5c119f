"""The demo: a scripted model mends a small project with the real tools, in a real session.

The model's words are scripted, nothing else is. Each step looks at the results of the tools before it, as a
model would: whether the tests are red, whether the edit found its text. The edit is for the fault of the
demo's own project; on another one it fails, the tests stay red, and the exit code is 1. A sample extension
notes each turn and asks for one review before the run settles.
"""

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from camshaft.actors.api import AssistantMessage, ModelRequest, ToolResultMessage, World, text_of
from camshaft.actors.host import (
    Event,
    ExtensionSource,
    Kernel,
    MemorySession,
    MessageEnd,
    NewSession,
    OpenOptions,
    Seat,
)
from camshaft.extensions_std.frontends.arguments import Arguments
from camshaft.extensions_std.frontends.conversation import Job, run_job
from camshaft.extensions_std.frontends.file_arguments import Prompt
from camshaft.extensions_std.frontends.streams import Output, say
from camshaft.extensions_std.providers.scripted import ScriptedProvider, Step, assistant, faux_model, text, tool_call
from camshaft.extensions_std.tools import builtin_tools

PROJECT: Final = Path(__file__).with_name("demo_project")
REVIEWER: Final = Path(__file__).parents[1] / "samples" / "review_note.py"

TASK: Final = "A test of this project fails. Find out why, mend the code, and show that the tests pass."
FILE: Final = "basket/prices.py"
WRONG: Final = "    if pieces > BULK_FROM:\n"
RIGHT: Final = "    if pieces >= BULK_FROM:\n"

TOKENS_PER_SECOND: Final = 150.0
"""Pace of the scripted model where somebody watches; elsewhere it does not wait."""


@attrs.define(eq=False)
class Verdict:
    """What the demo says of itself in the end: read from the results that are in the session."""

    session_file: str | None = None
    is_green: bool = False
    """Whether the last run of the tests passed."""

    def watch(self, seat: Seat) -> None:
        """Follows the conversation."""
        self.session_file = seat.session_file
        seat.subscribe(self.see)

    def see(self, event: Event) -> None:
        """A listener."""
        if isinstance(event, MessageEnd) and isinstance(event.message, ToolResultMessage) and event.message.tool_name == "bash":
            self.is_green = not event.message.is_error


async def run_demo(arguments: Arguments, world: World, out: Output) -> int:
    """The exit code: 0 only if the last run of the tests passed."""
    folder = Path(tempfile.mkdtemp(prefix="camshaft-demo-"))
    project = folder / "project"
    try:
        shutil.copytree(arguments.demo_project or PROJECT, project, ignore=shutil.ignore_patterns("__pycache__"))
    except (OSError, shutil.Error) as error:
        say(f"Error: cannot copy the project: {error}")
        return 1
    verdict = Verdict()
    say(f"camshaft demo: a scripted model works on a copy of a small project in {project}")

    async def prepare(_kernel: Kernel) -> Job:
        return _job(arguments, folder, verdict, out)

    code = await run_job(prepare, world, out)
    if code == 0:
        code = 0 if verdict.is_green else 1
        say(f"Tests:   {'green' if verdict.is_green else 'red'}")
    say(f"Project: {project}")
    say(f"Session: {verdict.session_file or 'in memory only'}")
    return code


def _job(arguments: Arguments, folder: Path, verdict: Verdict, out: Output) -> Job:
    sessions = arguments.session_dir or str(folder / "sessions")
    options = OpenOptions(
        cwd=str(folder / "project"),
        agent_dir=str(folder / "agent"),
        session=MemorySession() if arguments.no_session else NewSession(directory=os.path.abspath(sessions)),
        providers=(scripted_model(is_watched=out.is_terminal),),
        extensions=() if arguments.no_extensions else (ExtensionSource(path=str(REVIEWER)),),
        builtin_tools=builtin_tools(),
        mode="json" if arguments.mode == "json" else "print",
    )
    return Job(
        options=options,
        prompts=(Prompt(text=TASK),),
        mode=arguments.mode or "text",
        is_live=arguments.mode != "json" or arguments.verbose,
        name="demo",
        watch=verdict.watch,
    )


def scripted_model(*, is_watched: bool = False) -> ScriptedProvider:
    """The model of the demo."""
    model = faux_model("scripted-1", provider="demo", name="Scripted model")
    provider = ScriptedProvider(name="demo", models=(model,), tokens_per_second=TOKENS_PER_SECOND if is_watched else None)
    provider.set_responses(_script())
    return provider


# -- the script --------------------------------------------------------------------------


def _script() -> Sequence[Step]:
    return (_read_the_code, _run_the_tests, _mend, _run_the_tests_again, _conclude, _review)


def _read_the_code(_request: ModelRequest) -> AssistantMessage:
    return _calling("I will read the code first.", "read", path=FILE)


def _run_the_tests(request: ModelRequest) -> AssistantMessage:
    lines = text_of(_results(request)[-1].content).count("\n")
    return _calling(f"{lines} lines. Now the tests, to see what fails.", "bash", command=_tests())


def _mend(request: ModelRequest) -> AssistantMessage:
    run = _results(request)[-1]
    if not run.is_error:
        return assistant("The tests pass already; there is nothing to mend.")
    failing = [line.split()[1] for line in text_of(run.content).split("\n") if line.startswith(("FAIL:", "ERROR:"))]
    said = f"Red: {', '.join(failing) or 'the tests do not even run'}. The price is lower from ten pieces on, so `>` should be `>=`."
    return _calling(said, "edit", path=FILE, edits=[{"oldText": WRONG, "newText": RIGHT}])


def _run_the_tests_again(request: ModelRequest) -> AssistantMessage:
    edit = _results(request)[-1]
    said = "The edit found no such line. Whether the tests are red all the same:" if edit.is_error else "Changed. The tests once more:"
    return _calling(said, "bash", command=_tests())


def _conclude(request: ModelRequest) -> AssistantMessage:
    results = _results(request)
    if results[-1].is_error:
        return assistant("The tests are still red: the fault is not the one I know how to mend.")
    changed = [result for result in results if result.tool_name == "edit" and not result.is_error]
    return assistant(f"The tests are green. I changed {len(changed)} line in {FILE}: ten pieces are already cheaper.")


def _review(request: ModelRequest) -> AssistantMessage:
    results = _results(request)
    if results[-1].is_error:
        return assistant("Review: the tests are red, so the problem is not solved. My edit changed nothing that would have to be undone.")
    return assistant("Review: the one changed line is what the failing tests asked for, and the others still pass. Nothing to take back.")


def _calling(said: str, tool: str, **arguments: Any) -> AssistantMessage:
    return assistant([text(said), tool_call(tool, arguments)], stop_reason="toolUse")


def _results(request: ModelRequest) -> list[ToolResultMessage]:
    """What tools gave so far, as the model is told."""
    return [message for message in request.messages if isinstance(message, ToolResultMessage)]


def _tests() -> str:
    return f"{shlex.quote(sys.executable)} -m unittest"
