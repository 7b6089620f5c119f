"""Samples that add commands, or tell people something."""

from pathlib import Path
from typing import Any

import trio

from camshaft.extensions_std.providers.scripted import Sleep, assistant, text_items, tool_call
from camshaft.extensions_std.samples import (
    bookmark,
    commands,
    confirm_destructive,
    event_bus,
    event_bus_listener,
    notify,
    send_user_message,
    session_name,
    shutdown_command,
)
from camshaft.kernel.stream import Ended, Started
from tests.actors.replacing import sessions
from tests.actors.running import Running, opened, simulate, tool
from tests.extensions_std.samples.trying import answered, compared, people, played, prompting

ANSWER = [assistant("one"), assistant("two"), assistant("three")]


async def says_done(*_: Any) -> Any:
    return {"content": [{"type": "text", "text": "done"}]}


# -- confirm-destructive -----------------------------------------------------------------


async def leaving(running: Running, *answers: bool) -> list[bool]:
    """A prompt, then a new session and a fork; whether each was cancelled."""
    seat = running.seat
    await seat.prompt("first")
    user = next(entry.id for entry in seat.state.tree.entries() if getattr(getattr(entry, "message", None), "role", "") == "user")
    fork = await answered(running, lambda: seat.fork(user), *answers[:1])
    new = await answered(running, seat.new_session, *answers[1:])
    return [fork.cancelled, new.cancelled]


def test_a_session_is_left_only_after_a_yes(tmp_path: Path) -> None:
    async def refusing(running: Running) -> None:
        await leaving(running, False, False)

    difference = compared(confirm_destructive.setup, refusing, ANSWER, **sessions(tmp_path), **people())

    assert difference.missing == []
    assert [line.partition(":")[0] for line in difference.added] == ["system", "user", "assistant"]


def test_without_people_and_after_a_yes_the_session_is_left(tmp_path: Path) -> None:
    async def left(**more: Any) -> list[bool]:
        async with opened(ANSWER, confirm_destructive.setup, **sessions(tmp_path), **more) as running:
            return await leaving(running, True, True)
        raise AssertionError

    assert simulate(left) == [False, False]
    assert simulate(lambda: left(**people())) == [False, False]


# -- names and labels --------------------------------------------------------------------


def test_a_session_gets_the_beginning_of_its_first_prompt_as_a_name() -> None:
    prompts = prompting("Mend the parser.\nIt fails.", "again")

    difference = compared(session_name.setup, prompts, ANSWER)

    assert (difference.added, difference.missing) == (["name: Mend the parser."], [])


def test_a_session_is_named_by_command() -> None:
    difference = compared(session_name.setup, prompting("/session-name The parser", "x" * 99), ANSWER, **people())

    assert difference.added == ["name: The parser"]
    assert "user: /session-name The parser" in difference.missing
    assert difference.notified == ["Session: The parser"]


def test_a_long_prompt_is_cut_for_the_name() -> None:
    difference = compared(session_name.setup, prompting("word " * 40), ANSWER)

    assert [len(line) <= 66 and line.endswith("…") for line in difference.added] == [True]


def test_answers_are_labelled_listed_and_freed() -> None:
    prompts = prompting("/bookmark too early", "first", "/bookmark good one", "/bookmarks", "/unbookmark", "/bookmarks")

    difference = compared(bookmark.setup, prompts, [assistant("an answer")] * 6, **people())

    assert difference.added == ["label: good one", "label: None"]
    assert [line for line in difference.missing if line.startswith("user")] == [
        "user: /bookmark too early",
        "user: /bookmark good one",
        "user: /bookmarks",
        "user: /unbookmark",
        "user: /bookmarks",
    ]
    assert difference.notified == [
        "There is no answer to bookmark yet.",
        "Bookmarked as 'good one': an answer",
        "good one: an answer",
        "There are no bookmarks.",
    ]


# -- what people see ---------------------------------------------------------------------


def slow_answer() -> list[Any]:
    return [Started(), Sleep(7), *text_items(0, "done"), Ended(stop_reason="stop")]


def test_people_are_told_when_a_long_run_is_over_and_see_that_it_works() -> None:
    async def shown(*setups: Any) -> tuple[list[tuple[str, Any]], list[str]]:
        running = await played(prompting("go", "again"), [slow_answer(), assistant("short")], *setups, **people())
        changes = [(event.part, event.value) for event in running.heard if event.type == "ui_changed"]
        return changes, [event.message for event in running.heard if event.type == "notified"]

    without, with_it = simulate(shown), simulate(shown, notify.setup)

    assert without == ([], [])
    once = [
        ("title", "camshaft: / (working)"),
        ("status", "Working …"),
        ("title", "camshaft: / (ready)"),
        ("status", None),
    ]
    assert with_it == (once * 2, ["Done after 7 s. It is your turn."])


def test_what_can_be_called_is_listed_with_where_it_comes_from() -> None:
    prompts = prompting("/commands", "/commands skill", "/commands nonsense")

    difference = compared(commands.setup, prompts, ANSWER, **people())

    assert difference.added == []
    assert [line for line in difference.missing if line.startswith("user")][0] == "user: /commands"
    assert difference.notified == [
        "/commands: List what can be called by name (extension, temporary, <inline:x0>)",
        "There are no commands of the kind skill.",
        "No kind 'nonsense'; the kinds are extension, prompt, skill.",
    ]
    assert [each.value for each in commands.complete("s")] == ["skill"]


# -- ending, sending, telling ------------------------------------------------------------


def test_a_command_and_the_model_can_ask_the_host_to_end() -> None:
    asked: list[str] = []
    script = [assistant([tool_call("finish", {"summary": "All is well."}, id="a")]), assistant("never asked for")]

    difference = compared(
        shutdown_command.setup, prompting("do it", "/shutdown"), script, mode="tui", on_shutdown=lambda: asked.append("end")
    )

    assert asked == ["end", "end"]
    assert "result of finish: All is well." in difference.added
    assert "assistant: never asked for" in difference.missing


def test_a_command_asks_in_the_place_of_the_user_and_several_times() -> None:
    difference = compared(send_user_message.setup, prompting("/steer nobody", "/ask one", "/each two; three"), ANSWER, **people())

    assert [line for line in difference.added if line.startswith("user")] == ["user: one", "user: two", "user: three"]
    assert [line for line in difference.missing if line.startswith("user")] == [
        "user: /steer nobody",
        "user: /ask one",
        "user: /each two; three",
    ]
    assert difference.notified == ["Nothing is under way that could be steered."]


def test_a_run_under_way_is_steered_and_followed() -> None:
    async def act(running: Running) -> None:
        receipt = await running.seat.submit("go")
        await trio.sleep(1)
        for command in ("/ask afterwards", "/steer at once"):
            await running.seat.prompt(command, streaming_behavior="followUp")
        await receipt.wait()

    difference = compared(send_user_message.setup, act, [slow_answer(), assistant("two"), assistant("three")])

    assert difference.added == ["user: at once", "user: afterwards"]
    assert difference.missing == ["user: /ask afterwards", "user: /steer at once"]


def test_two_extensions_meet_on_the_bus() -> None:
    script = [assistant([tool_call("work", id="a"), tool_call("work", id="b"), tool_call("none", id="c")]), assistant("over")]

    together = compared(event_bus_listener.setup, prompting("go"), script, event_bus.setup, tools=[tool(says_done)])
    alone = compared(event_bus_listener.setup, prompting("go"), script, tools=[tool(says_done)])

    assert (together.added, together.missing) == (['custom tool-counts: {"none":1,"work":2}'], [])
    assert (alone.added, alone.missing) == ([], [])
