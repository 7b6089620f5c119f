"""Extensions that ask people, for tests."""

from collections.abc import Callable
from typing import Any

import trio

from tests.actors.running import Running

DIALOGS: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "select": (lambda ui: ui.select("Which?", ["a", "b"]), "b", None),
    "confirm": (lambda ui: ui.confirm("Sure?", "It is gone then."), True, False),
    "input": (lambda ui: ui.input("Name?", "name"), "ada", None),
    "editor": (lambda ui: ui.editor("Edit", "text"), "more text", None),
}
"""Asking, an answer, and the fallback."""


def asking(ask: Callable[[Any], Any], got: list[Any]) -> Callable[[Any], None]:
    """A setup whose command `/ask` asks and keeps the answer."""

    def setup(api: Any) -> None:
        async def command(_arguments: str, ctx: Any) -> None:
            got.append(await ask(ctx.ui))

        api.register_command("ask", command)

    return setup


async def until_open(running: Running, count: int = 1) -> list[str]:
    """The ids of the dialogs, when so many are open."""
    await trio.testing.wait_all_tasks_blocked()
    ids = [dialog.id for dialog in running.seat.dialogs]
    assert len(ids) == count
    return ids


def endings(running: Running) -> list[str]:
    return [event.ending for event in running.heard if event.type == "dialog_closed"]
