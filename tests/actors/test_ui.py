"""Dialogs and lines of extensions in whole conversations: with a UI that is watched, with a port, and without one."""

from collections.abc import Callable
from typing import Any

import pytest
import trio

from camshaft.actors.desk import TooMuchShown
from camshaft.actors.generation import StaleContext
from camshaft.actors.host import UiState, WatchedUi
from camshaft.actors.signal import AbortSignal
from camshaft.extensions_std.providers.scripted import assistant
from camshaft.kernel.dialogs import DIALOGS_MAX, NOTHING_SHOWN
from tests.actors.asking import DIALOGS, asking, endings, until_open
from tests.actors.running import Running, handling, opened, simulate

# -- dialogs -----------------------------------------------------------------------------


@pytest.mark.rule("UI-1")
@pytest.mark.parametrize("kind", DIALOGS)
def test_a_dialog_waits_as_state_until_it_is_answered(kind: str) -> None:
    ask, answer, _ = DIALOGS[kind]
    got: list[Any] = []

    async def asked() -> None:
        async with opened([], asking(ask, got), ui=WatchedUi(), mode="rpc") as running, trio.open_nursery() as nursery:
            nursery.start_soon(running.seat.prompt, "/ask")
            (dialog_id,) = await until_open(running)
            opening = [event for event in running.heard if event.type == "dialog_opened"]
            assert [event.dialog for event in opening] == list(running.seat.dialogs)
            assert (opening[0].dialog.kind, opening[0].dialog.extension) == (kind, "<inline:x0>")
            assert got == []
            assert running.seat.answer_dialog(dialog_id, answer)
            assert running.seat.dialogs == ()
            assert not running.seat.answer_dialog(dialog_id, answer)
            await trio.testing.wait_all_tasks_blocked()
            assert endings(running) == ["answered"]

    simulate(asked)

    assert got == [answer]


@pytest.mark.rule("UI-2", "RPC-105")
@pytest.mark.parametrize("kind", DIALOGS)
@pytest.mark.parametrize("fields", [{}, {"ui": WatchedUi(), "mode": "json"}, {"ui": WatchedUi(), "mode": "print"}])
def test_without_a_ui_a_dialog_gives_its_fallback_at_once(kind: str, fields: dict[str, Any]) -> None:
    ask, _, fallback = DIALOGS[kind]
    got: list[Any] = []

    async def asked() -> list[str]:
        async with opened([], asking(ask, got), handling("ui_prompt_start", got.append), **fields) as running:
            await running.seat.prompt("/ask")
            return running.types()
        raise AssertionError

    assert simulate(asked) == []
    assert got == [fallback]


ENDS: dict[str, Callable[[Running, str], Any]] = {
    "cancelled": lambda running, dialog_id: running.seat.cancel_dialog(dialog_id),
    "answered": lambda running, dialog_id: running.seat.answer_dialog(dialog_id, {"wrong": "shape"}),
}


@pytest.mark.rule("UI-4", "RPC-99")
@pytest.mark.parametrize("ending", ENDS)
@pytest.mark.parametrize("kind", DIALOGS)
def test_a_cancelled_or_misanswered_dialog_gives_its_fallback(kind: str, ending: str) -> None:
    ask, _, fallback = DIALOGS[kind]
    got: list[Any] = []

    async def asked() -> list[str]:
        async with opened([], asking(ask, got), ui=WatchedUi()) as running, trio.open_nursery() as nursery:
            nursery.start_soon(running.seat.prompt, "/ask")
            (dialog_id,) = await until_open(running)
            assert not running.seat.answer_dialog("no such id", "a")
            assert not running.seat.cancel_dialog("no such id")
            ENDS[ending](running, dialog_id)
            await trio.testing.wait_all_tasks_blocked()
            return endings(running)
        raise AssertionError

    assert simulate(asked) == [ending]
    assert got == [fallback]


@pytest.mark.rule("UI-3", "RPC-100")
def test_a_dialog_ends_with_its_fallback_when_its_time_is_over() -> None:
    got: list[Any] = []

    async def asked() -> tuple[float, list[str]]:
        async with opened([], asking(lambda ui: ui.confirm("Sure?", timeout=1500), got), ui=WatchedUi()) as running:
            begun = trio.current_time()
            await running.seat.prompt("/ask")
            return trio.current_time() - begun, endings(running)
        raise AssertionError

    assert simulate(asked) == (1.5, ["timeout"])
    assert got == [False]


@pytest.mark.rule("UI-3", "RPC-101")
def test_a_signal_ends_a_dialog_and_one_already_set_shows_none() -> None:
    got: list[Any] = []
    signal = AbortSignal()

    async def asked() -> tuple[int, list[str]]:
        async with opened([], asking(lambda ui: ui.input("Name?", signal=signal), got), ui=WatchedUi()) as running:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(running.seat.prompt, "/ask")
                await until_open(running)
                signal.request()
            await running.seat.prompt("/ask")
            return running.count("dialog_opened"), endings(running)
        raise AssertionError

    assert simulate(asked) == (1, ["signal"])
    assert got == [None, None]


@pytest.mark.rule("UI-5", "RPC-102", "UI-10")
def test_stacked_dialogs_are_answered_in_any_order_and_are_one_span() -> None:
    got: list[Any] = []
    spans: list[Any] = []

    async def ask(ui: Any) -> list[Any]:
        answers: dict[int, Any] = {}

        async def one(number: int) -> None:
            answers[number] = await ui.input(f"Question {number}?")

        async with trio.open_nursery() as nursery:
            for number in range(3):
                nursery.start_soon(one, number)
                await trio.testing.wait_all_tasks_blocked()
        return [answers[number] for number in range(3)]

    def spanning(api: Any) -> None:
        for hook in ("ui_prompt_start", "ui_prompt_end"):
            api.on(hook, lambda event, _ctx: spans.append((event.type, event.reason, event.kind, event.title)))

    async def asked() -> None:
        async with opened([], asking(ask, got), spanning, ui=WatchedUi()) as running, trio.open_nursery() as nursery:
            nursery.start_soon(running.seat.prompt, "/ask")
            await trio.sleep(1)
            ids = [dialog.id for dialog in running.seat.dialogs]
            for place in (2, 0, 1):
                assert running.seat.answer_dialog(ids[place], f"answer {place}")
                await trio.sleep(1)

    simulate(asked)

    assert got == [["answer 0", "answer 1", "answer 2"]]
    assert spans == [
        ("ui_prompt_start", "ui_prompt", "input", "Question 0?"),
        ("ui_prompt_end", "ui_prompt", "input", "Question 0?"),
    ]


@pytest.mark.rule("UI-10", "EVT-6")
def test_a_prompt_is_open_before_slow_handlers_of_its_start_ran_and_does_not_wait_for_them() -> None:
    got: list[Any] = []

    async def slow(_event: Any, _ctx: Any) -> None:
        await trio.sleep(3)
        got.append("told")

    async def asked() -> None:
        setups = (asking(lambda ui: ui.confirm("Sure?"), got), handling("ui_prompt_start", slow))
        async with opened([], *setups, ui=WatchedUi()) as running, trio.open_nursery() as nursery:
            nursery.start_soon(running.seat.prompt, "/ask")
            (dialog_id,) = await until_open(running)
            running.seat.answer_dialog(dialog_id, True)

    simulate(asked)

    assert got == [True, "told"]


@pytest.mark.rule("EXT-53")
def test_a_dialog_of_session_start_is_answerable_before_open_returns() -> None:
    got: list[Any] = []

    async def start(_event: Any, ctx: Any) -> None:
        got.append((ctx.has_ui, await ctx.ui.confirm("Load the rules?")))

    async def asked() -> None:
        ui = WatchedUi()

        def listen(event: Any) -> None:
            if event.type == "dialog_opened":
                assert [event.dialog] == list(ui.dialogs)
                ui.answer(event.dialog.id, True)

        async with opened([], handling("session_start", start), ui=ui, mode="rpc", listeners=(listen,)):
            pass

    simulate(asked)

    assert got == [(True, True)]


@pytest.mark.rule("UI-6", "RPC-103")
def test_closing_gives_open_dialogs_their_fallback_and_takes_away_what_is_shown() -> None:
    got: list[Any] = []
    kept: list[Any] = []

    async def ask(_event: Any, ctx: Any) -> None:
        ctx.ui.set_status("s", "working")
        got.append(await ctx.ui.select("Which?", ["a"]))
        kept.append(ctx.ui)

    async def asked() -> tuple[float, UiState, list[str]]:
        async with opened([assistant("done")], handling("agent_start", ask), ui=WatchedUi()) as running:
            await running.seat.submit("go")
            await until_open(running)
            begun = trio.current_time()
            await running.seat.close()
            return trio.current_time() - begun, running.seat.ui, running.types()[-1:]
        raise AssertionError

    took, shown, last = simulate(asked)

    assert (took, shown, last) == (0, NOTHING_SHOWN, ["ui_reset"])
    assert got == [None]
    with pytest.raises(StaleContext):
        kept[0].notify("late")


def test_whoever_asked_and_is_cancelled_withdraws_the_dialog() -> None:
    got: list[Any] = []

    async def ask(ui: Any) -> str:
        with trio.move_on_after(3):
            await ui.confirm("Sure?")
        return "moved on"

    async def asked() -> tuple[list[str], int]:
        async with opened([], asking(ask, got), ui=WatchedUi()) as running:
            await running.seat.prompt("/ask")
            return endings(running), len(running.seat.dialogs)
        raise AssertionError

    assert simulate(asked) == (["withdrawn"], 0)
    assert got == ["moved on"]


def test_more_dialogs_than_anybody_can_answer_are_refused() -> None:
    got: list[Any] = []

    async def ask(ui: Any) -> str:
        async with trio.open_nursery() as nursery:
            for number in range(DIALOGS_MAX):
                nursery.start_soon(ui.input, f"Question {number}?")
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(TooMuchShown, match="100 dialogs are open"):
                await ui.input("One more?")
            nursery.cancel_scope.cancel()
        return "refused"

    async def asked() -> None:
        async with opened([], asking(ask, got), ui=WatchedUi()) as running:
            await running.seat.prompt("/ask")

    simulate(asked)

    assert got == ["refused"]
