"""What becomes of dialogs, lines, tasks and quarantine when extensions are loaded anew or the session is replaced."""

from collections.abc import Callable
from typing import Any

import pytest
import trio

from camshaft.actors.generation import StaleContext
from camshaft.actors.host import WatchedUi
from camshaft.extensions_std.providers.scripted import assistant
from tests.actors.asking import endings, until_open
from tests.actors.running import Running, handling, opened, simulate

REPLACING: dict[str, Callable[[Running], Any]] = {
    "reload": lambda running: running.seat.reload(),
    "new session": lambda running: running.seat.new_session(),
}


@pytest.mark.rule("UI-6", "UI-7", "EXT-47", "RPC-103")
@pytest.mark.parametrize("way", REPLACING)
def test_a_dialog_of_the_old_extensions_has_its_fallback_and_what_they_showed_is_gone(way: str) -> None:
    got: list[Any] = []
    starts: list[str] = []

    def setup(api: Any) -> None:
        def start(event: Any, ctx: Any) -> None:
            starts.append(event.reason)
            ctx.ui.set_status("state", f"start {len(starts)}")
            ctx.ui.set_widget(f"widget {len(starts)}", ["x"])
            ctx.ui.set_title(f"title {len(starts)}")

        async def ask(_arguments: str, ctx: Any) -> None:
            ui = ctx.ui
            got.append(await ui.select("Which?", ["a"]))
            with pytest.raises(StaleContext):
                ui.notify("late")
            with pytest.raises(StaleContext):
                await ui.confirm("late?")
            got.append("stale")

        api.on("session_start", start)
        api.register_command("ask", ask)

    async def replaced() -> tuple[list[str], list[str], Any]:
        async with opened([], setup, ui=WatchedUi()) as running, trio.open_nursery() as nursery:
            nursery.start_soon(running.seat.prompt, "/ask")
            (dialog_id,) = await until_open(running)
            await REPLACING[way](running)
            assert not running.seat.answer_dialog(dialog_id, "a")
            await trio.testing.wait_all_tasks_blocked()
            ui = running.seat.ui
            return endings(running), [key for key, _ in ui.widgets], (dict(ui.statuses), ui.title)
        raise AssertionError

    assert simulate(replaced) == (["reset"], ["widget 2"], ({"state": "start 2"}, "title 2"))
    assert got == [None, "stale"]


@pytest.mark.rule("EXT-48", "A28")
@pytest.mark.parametrize("way", REPLACING)
def test_tasks_end_with_their_generation_and_the_next_one_starts_its_own(way: str) -> None:
    told: list[str] = []

    def setup(api: Any) -> None:
        async def task(number: int) -> None:
            told.append(f"begins {number}")
            try:
                await trio.sleep_forever()
            finally:
                told.append(f"ends {number}")

        api.on("session_start", lambda _event, ctx: ctx.start_task(task, len(told)))

    async def replaced() -> list[Any]:
        async with opened([], setup) as running:
            await trio.sleep(1)
            await REPLACING[way](running)
            await trio.sleep(1)
            return running.errors()
        raise AssertionError

    assert simulate(replaced) == []
    assert told == ["begins 0", "ends 0", "begins 2", "ends 2"]


@pytest.mark.parametrize("way", REPLACING)
def test_an_extension_in_quarantine_has_another_chance_when_it_is_loaded_anew(way: str) -> None:
    def fails(*_: Any) -> None:
        raise ValueError("bad")

    async def replaced() -> tuple[tuple[str, ...], tuple[str, ...], int]:
        async with opened([assistant("done")] * 4, handling("agent_start", fails)) as running:
            for _ in range(3):
                await running.seat.prompt("go")
            before = running.seat.quarantined
            await REPLACING[way](running)
            await running.seat.prompt("go")
            return before, running.seat.quarantined, [text for _, _, text in running.errors()].count("bad")
        raise AssertionError

    assert simulate(replaced) == (("<inline:x0>",), (), 4)
