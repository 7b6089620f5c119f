"""Samples of the UI: timed_confirm, status_line, widget_placement, message_renderer, entry_renderer."""

from collections.abc import Sequence
from typing import Any

import pytest
import trio

from camshaft.actors.api import CustomEntry, CustomMessage, RenderView, thaw
from camshaft.actors.host import OpenSession, WatchedUi, render_entry, render_message
from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.extensions_std.providers.scripted import Hang, assistant, tool_call
from camshaft.extensions_std.samples import entry_renderer, message_renderer, status_line, timed_confirm, widget_placement
from tests.actors.running import PATH, Running, tool
from tests.extensions_std.samples.trying import prompting
from tests.extensions_std.samples.with_and_without import Left, left, virtual_sleep, without_and_with


def custom(entries: Sequence[Any], custom_type: str) -> list[Any]:
    return [thaw(entry.data) for entry in entries if entry.type == "custom" and entry.custom_type == custom_type]


def statuses(left: Left) -> list[Any]:
    return [event.value for event in left.heard if event.type == "ui_changed" and event.part == "status"]


# -- timed_confirm -----------------------------------------------------------------------


@pytest.mark.parametrize(("after_s", "confirmed"), [(2, True), (8, False)])
def test_who_does_not_confirm_in_time_has_not_confirmed(after_s: int, confirmed: bool) -> None:
    async def act(running: Running) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(running.seat.prompt, "/timed")
            await virtual_sleep(after_s)
            for dialog in running.seat.dialogs:
                running.seat.answer_dialog(dialog.id, True)

    with_it = left([], act, timed_confirm.setup, ui=WatchedUi(), mode="rpc")

    assert custom(with_it.entries, "timed-confirm") == [{"way": "timeout", "confirmed": confirmed}]


def test_a_dialog_ends_with_the_run_it_belongs_to() -> None:
    async def act(running: Running) -> None:
        await running.seat.submit("go")
        await virtual_sleep(1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(running.seat.prompt, "/timed-signal")
            await virtual_sleep(1)
            await running.seat.abort()

    with_it = left([[Hang()]], act, timed_confirm.setup, ui=WatchedUi())

    assert custom(with_it.entries, "timed-confirm") == [{"way": "signal", "confirmed": False}]


def test_the_question_is_not_part_of_the_conversation() -> None:
    without, with_it = without_and_with([assistant("what?")], prompting("/timed"), timed_confirm.setup)

    assert without.lines == ["user: /timed", "assistant: what?"]
    assert with_it.lines == ["(timed-confirm)"]


# -- status_line -------------------------------------------------------------------------


async def work(*_: Any) -> Any:
    return {"content": [{"type": "text", "text": "worked"}]}


WORKING: list[Any] = [assistant(tool_call("work"), stop_reason="toolUse"), assistant("done")]


def test_the_status_tells_the_turn_and_the_log_how_many_there_were() -> None:
    without, with_it = without_and_with(WORKING, prompting("go"), status_line.setup, tools=[tool(work)], ui=WatchedUi())

    assert statuses(without) == []
    assert statuses(with_it)[-3:] == ["Turn 1 …", "Turn 2 …", "Done after 2 turns"]
    assert [line for line in with_it.lines if line not in without.lines] == ["(turns)"]
    assert custom(with_it.entries, "turns") == [{"turns": 2, "aborted": False}]


# -- widget_placement --------------------------------------------------------------------


def widgets(running: Running) -> list[tuple[str, tuple[str, ...], str]]:
    return [(key, widget.lines, widget.placement) for key, widget in running.seat.ui.widgets]


def test_notes_stay_beside_the_editor_with_their_branch() -> None:
    shown: list[Any] = []

    async def act(running: Running) -> None:
        await running.seat.prompt("/note read the log")
        before = running.seat.state.leaf_id
        await running.seat.prompt("/note-below and sleep")
        shown.append(widgets(running))
        assert before is not None
        await running.seat.navigate_tree(before)
        shown.append(widgets(running))
        await running.seat.prompt("/note")
        shown.append(widgets(running))

    with_it = left([], act, widget_placement.setup, ui=WatchedUi())

    above = ("pinned-note-aboveEditor", ("read the log",), "aboveEditor")
    below = ("pinned-note-belowEditor", ("and sleep",), "belowEditor")
    assert shown == [[above, below], [above], []]
    assert len(custom(with_it.entries, "pinned-note")) == 3


def test_without_the_extension_a_note_is_a_prompt() -> None:
    without, with_it = without_and_with([assistant("ok")], prompting("/note read"), widget_placement.setup, ui=WatchedUi())

    assert without.lines == ["user: /note read", "assistant: ok"]
    assert with_it.lines == ["(pinned-note)"]


def test_a_session_that_is_opened_again_shows_its_notes() -> None:
    where: dict[str, Any] = {"log_files": MemoryLogFiles(), "session": OpenSession(path=PATH), "ui": WatchedUi()}
    shown: list[Any] = []

    async def look(running: Running) -> None:
        shown.append(widgets(running))

    async def talk(running: Running) -> None:
        await running.seat.prompt("hi")
        await running.seat.prompt("/note read")

    left([assistant("hello")], talk, widget_placement.setup, **where)
    left([], look, widget_placement.setup, **where)

    assert shown == [[("pinned-note-aboveEditor", ("read",), "aboveEditor")]]


# -- message_renderer --------------------------------------------------------------------


def test_a_message_is_shown_with_its_mark_and_reaches_the_model_as_text() -> None:
    rendered: list[Any] = []

    async def act(running: Running) -> None:
        await running.seat.prompt("/status-update good All tests pass\nin two seconds")
        surface = running.seat.extension_surface
        for message in running.seat.context_messages:
            if isinstance(message, CustomMessage):
                rendered.extend([render_message(surface, message, RenderView(expanded=way)).value for way in (False, True)])

    without, with_it = without_and_with([assistant("ok")], act, message_renderer.setup)

    assert without.lines == ["user: /status-update good All tests pass\nin two seconds", "assistant: ok"]
    assert with_it.lines == ["status-update: All tests pass\nin two seconds"]
    assert rendered == ["✓ All tests pass", "✓ All tests pass\nin two seconds"]


def test_a_wrong_update_is_not_sent() -> None:
    with_it = left([], prompting("/status-update great news", "/status-update good"), message_renderer.setup, ui=WatchedUi())

    assert with_it.lines == []
    assert [event.level for event in with_it.heard if event.type == "notified"] == ["error", "error"]


# -- entry_renderer ----------------------------------------------------------------------


def test_a_card_of_each_run_is_shown_to_people_only() -> None:
    rendered: list[Any] = []

    async def act(running: Running) -> None:
        await running.seat.prompt("go")
        cards = [entry for entry in running.seat.state.tree.entries() if isinstance(entry, CustomEntry)]
        surface = running.seat.extension_surface
        rendered.extend([render_entry(surface, card, RenderView(expanded=way)).value for card in cards for way in (False, True)])

    async def slow(*_: Any) -> Any:
        await virtual_sleep(1.5)
        return await work()

    without, with_it = without_and_with(WORKING, act, entry_renderer.setup, tools=[tool(slow)])

    assert [line for line in with_it.lines if line not in without.lines] == ["(run-card)"]
    assert custom(with_it.entries, "run-card") == [{"tookMs": 1500, "tools": {"work": 1}}]
    assert rendered == ["The run took 1.5 s", "The run took 1.5 s and used work ×1"]
