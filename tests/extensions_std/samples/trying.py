"""One script, played once with and once without an extension: what differs in the log of the session."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import trio

from camshaft.actors.api import (
    AssistantMessage,
    BranchSummaryEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    LabelEntry,
    MessageEntry,
    SessionInfoEntry,
    SystemMessage,
    ToolResultMessage,
    dumps,
    text_of,
)
from camshaft.actors.host import WatchedUi
from camshaft.actors.world import World, real_world
from camshaft.extensions_std.providers.scripted import Step
from tests.actors.running import Running, opened, simulate

Act = Callable[[Running], Awaitable[Any]]
"""What is done with a conversation; the same with and without the extension."""
Setup = Callable[[Any], Any]


@attrs.frozen(kw_only=True)
class Difference:
    """How the log with the extension differs from the one without, and what people were shown with it."""

    added: list[str]
    missing: list[str]
    notified: list[str]
    errors: list[tuple[str, str, str]]


async def tried(setup: Setup, act: Act, script: Sequence[Step] = (), *others: Setup, **more: Any) -> Difference:
    """The difference that `setup` makes; `others` are extensions of both conversations."""
    without = await played(act, script, *others, **more)
    with_it = await played(act, script, setup, *others, **more)
    before, after = log_of(without), log_of(with_it)
    return Difference(
        added=_beyond(after, before),
        missing=_beyond(before, after),
        notified=[event.message for event in with_it.heard if event.type == "notified"],
        errors=[(event.extension_path, event.event, event.error) for event in with_it.seat.errors],
    )


def compared(setup: Setup, act: Act, script: Sequence[Step] = (), *others: Setup, **more: Any) -> Difference:
    """As `tried`, on a virtual clock."""
    difference: Difference = simulate(lambda: tried(setup, act, script, *others, **more))
    return difference


async def played(act: Act, script: Sequence[Step], *setups: Setup, **more: Any) -> Running:
    """A conversation after `act`, closed; its log can still be read."""
    async with opened(script, *setups, **more) as running:
        await act(running)
        await running.seat.wait_idle()
    return running


def prompting(*texts: str) -> Act:
    """Sends these prompts, one after the other."""

    async def act(running: Running) -> None:
        for text in texts:
            await running.seat.prompt(text)

    return act


def answering(prompt: str, *answers: object) -> Act:
    """Sends a prompt and answers the dialogs that open meanwhile, in order; for a conversation with a WatchedUi."""

    async def act(running: Running) -> None:
        await answered(running, lambda: running.seat.prompt(prompt), *answers)

    return act


async def answered(running: Running, call: Callable[[], Awaitable[Any]], *answers: object) -> Any:
    """What a call gives while the dialogs it opens are answered."""
    rest = list(answers)

    def answer(event: Any) -> None:
        if event.type == "dialog_opened" and rest:
            nursery.start_soon(_answer, running, event.dialog.id, rest.pop(0))

    async with trio.open_nursery() as nursery:
        unsubscribe = running.seat.subscribe(answer)
        result = await call()
        unsubscribe()
    return result


async def _answer(running: Running, dialog_id: str, answer: object) -> None:
    running.seat.answer_dialog(dialog_id, answer)
    await trio.lowlevel.checkpoint()


def people() -> dict[str, Any]:
    """Options of a conversation with people in front of it."""
    return {"ui": WatchedUi(), "mode": "tui"}


def log_of(running: Running) -> list[str]:
    """Every entry of the session as a line without ids and times."""
    return [line_of(entry) for entry in running.seat.state.tree.entries()]


def line_of(entry: Entry) -> str:
    """What an entry says."""
    match entry:
        case MessageEntry():
            return _message(entry.message)
        case CustomEntry():
            return f"custom {entry.custom_type}: {dumps(entry.data).decode()}"
        case CustomMessageEntry():
            return f"custom_message {entry.custom_type}: {text_of(entry.content)}"
        case LabelEntry():
            return f"label: {entry.label}"
        case SessionInfoEntry():
            return f"name: {entry.name}"
        case BranchSummaryEntry():
            return f"branch_summary: {entry.summary}"
        case _:
            return entry.type


def _message(message: Any) -> str:
    match message:
        case SystemMessage():
            added = [f"+{tool.name}" for tool in message.tools_added or ()]
            removed = [f"-{tool.name}" for tool in message.tools_removed or ()]
            return f"system: {' '.join([*(message.sections or ()), *added, *removed])}"
        case AssistantMessage(stop_reason="error"):
            return f"assistant error: {message.error_message}"
        case AssistantMessage():
            return f"assistant: {' '.join([text_of(message.content), *[f'[{call.name}]' for call in message.tool_calls]]).strip()}"
        case ToolResultMessage():
            return f"{'error' if message.is_error else 'result'} of {message.tool_name}: {text_of(message.content)}"
        case _:
            return f"{message.role}: {text_of(getattr(message, 'content', ''))}"


def _beyond(lines: Sequence[str], others: Sequence[str]) -> list[str]:
    """The lines that are not among the others as often, in order."""
    room = Counter(others)
    beyond = []
    for line in lines:
        if room[line]:
            room[line] -= 1
        else:
            beyond.append(line)
    return beyond


# -- folders and repositories ------------------------------------------------------------


def world_with_programs(home: Path) -> World:
    """The real world, with a home of its own and the usual programs; git finds no configuration but the repository's."""
    return real_world({"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1"})


async def git(folder: Path, *arguments: str) -> str:
    """What a git command says. Raises CalledProcessError."""
    environment = world_with_programs(folder.parent).environment
    done = await trio.run_process(["git", *arguments], cwd=folder, env=dict(environment), capture_stdout=True, capture_stderr=True)
    return done.stdout.decode().strip()


async def repository(folder: Path) -> Path:
    """A new repository with one committed file, `kept.txt`, which says `one`."""
    await trio.Path(folder).mkdir()
    await git(folder, "init", "--quiet", "--initial-branch=main")
    for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org"), ("commit.gpgsign", "false")):
        await git(folder, "config", key, value)
    await trio.Path(folder / "kept.txt").write_text("one\n")
    await git(folder, "add", ".")
    await git(folder, "commit", "--quiet", "--message=first")
    return folder
