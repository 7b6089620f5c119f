"""What a `project_trust` handler can ask, by mode."""

from typing import Any

import pytest
import trio

from camshaft.actors.desk import Desk
from camshaft.actors.event_stream import EventStream
from camshaft.actors.generation import Generation
from camshaft.actors.host import WatchedUi
from camshaft.actors.trust_context import TrustContext, trust_context
from tests.actors.running import simulate


async def asked(mode: str, ui: WatchedUi | None) -> tuple[TrustContext, list[Any], list[str], list[str]]:
    """The context, what its dialogs gave, what was said without a UI, and what the stream heard."""
    said: list[str] = []
    heard: list[Any] = []
    stream = EventStream()

    def listen(event: Any) -> None:
        heard.append(event.type)
        if event.type == "dialog_opened" and ui is not None:
            ui.answer(event.dialog.id, True if event.dialog.kind == "confirm" else "yes")

    stream.subscribe(listen)
    async with trio.open_nursery() as nursery:
        desk = Desk(stream, nursery, lambda: f"d{len(heard)}", ui, mode)
        context = trust_context(desk, Generation(1), "/project", "x.py", said.append)
        context.ui.notify("hello")
        got = [await context.ui.select("Trust?", ["yes", "no"]), await context.ui.confirm("Trust?"), await context.ui.input("Trust?")]
        return context, got, said, heard
    raise AssertionError


@pytest.mark.rule("EXT-64", "TRUST-3")
@pytest.mark.parametrize(("mode", "ui"), [("rpc", WatchedUi()), ("json", WatchedUi()), ("print", None), ("tui", None)])
def test_where_nobody_can_be_asked_yet_dialogs_fall_back_and_the_host_says_what_is_said(mode: str, ui: WatchedUi | None) -> None:
    context, got, said, heard = simulate(asked, mode, ui)

    assert (context.cwd, context.mode, context.has_ui) == ("/project", mode, False)
    assert (got, said, heard) == ([None, False, None], ["hello"], [])


@pytest.mark.rule("EXT-64")
def test_with_a_screen_trust_can_be_asked_for() -> None:
    context, got, said, heard = simulate(asked, "tui", WatchedUi())

    assert context.has_ui
    assert (got, said) == (["yes", True, "yes"], [])
    assert heard == ["notified", *["dialog_opened", "dialog_closed"] * 3]
