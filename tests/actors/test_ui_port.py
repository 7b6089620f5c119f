"""What a host with a UI of its own is told, and what every call gives where it has none."""

import math
from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.desk import TooMuchShown
from camshaft.actors.host import PlainTheme, ThemeChange, UiPort, UiState, WatchedUi, Widget
from camshaft.actors.ui_context import UiMisuse
from camshaft.kernel.dialogs import KEYS_MAX
from camshaft.kernel.persistent import FrozenDict
from tests.actors.asking import DIALOGS, asking, endings, until_open
from tests.actors.running import handling, opened, simulate


@attrs.define
class Port:
    """A host's own UI: answers what it is told to, and keeps what it was asked."""

    answer: Any = None
    calls: list[tuple[Any, ...]] = attrs.field(factory=list)
    cancelled: int = 0

    async def select(self, title: str, options: Any, *, timeout_ms: int | None) -> Any:
        return await self._asked("select", title, tuple(options), timeout_ms)

    async def confirm(self, title: str, message: str, *, timeout_ms: int | None) -> Any:
        return await self._asked("confirm", title, message, timeout_ms)

    async def input(self, title: str, placeholder: str | None, *, timeout_ms: int | None) -> Any:
        return await self._asked("input", title, placeholder, timeout_ms)

    async def editor(self, title: str, prefill: str | None) -> Any:
        return await self._asked("editor", title, prefill)

    def notify(self, message: str, level: str) -> None:
        self.calls.append(("notify", message, level))

    def set_status(self, key: str, text: str | None) -> None:
        self.calls.append(("set_status", key, text))

    def set_widget(self, key: str, content: Any, *, placement: str) -> None:
        self.calls.append(("set_widget", key, content, placement))

    def set_title(self, text: str) -> None:
        self.calls.append(("set_title", text))

    def set_editor_text(self, text: str) -> None:
        self.calls.append(("set_editor_text", text))

    def reset(self) -> None:
        self.calls.append(("reset",))

    async def _asked(self, *what: Any) -> Any:
        self.calls.append(what)
        try:
            await trio.sleep(1)
        except trio.Cancelled:
            self.cancelled += 1
            raise
        return self.answer() if callable(self.answer) else self.answer


def as_port(port: Port) -> UiPort:
    """What a host writes is a port for the type checker."""
    return port


ASKED: dict[str, tuple[Any, ...]] = {
    "select": ("select", "Which?", ("a", "b"), None),
    "confirm": ("confirm", "Sure?", "It is gone then.", None),
    "input": ("input", "Name?", "name", None),
    "editor": ("editor", "Edit", "text"),
}


@pytest.mark.rule("UI-8")
@pytest.mark.parametrize("kind", DIALOGS)
def test_a_port_is_asked_and_its_answer_counts(kind: str) -> None:
    ask, answer, fallback = DIALOGS[kind]
    got: list[Any] = []
    port = Port(answer)

    async def asked() -> list[str]:
        async with opened([], asking(ask, got), ui=as_port(port), mode="tui") as running:
            await running.seat.prompt("/ask")
            port.answer = None
            await running.seat.prompt("/ask")
            return endings(running)
        raise AssertionError

    assert simulate(asked) == ["answered", "cancelled"]
    assert got == [answer, fallback]
    assert port.calls == [ASKED[kind], ASKED[kind], ("reset",)]


def test_an_answer_from_elsewhere_takes_the_dialog_from_the_port() -> None:
    got: list[Any] = []
    port = Port("late")

    async def asked() -> None:
        async with opened([], asking(lambda ui: ui.input("Name?"), got), ui=port) as running, trio.open_nursery() as nursery:
            nursery.start_soon(running.seat.prompt, "/ask")
            (dialog_id,) = await until_open(running)
            running.seat.answer_dialog(dialog_id, "first")
            await trio.sleep(5)

    simulate(asked)

    assert (got, port.cancelled) == (["first"], 1)


def test_a_port_that_raises_is_a_diagnostic_and_the_dialog_has_its_fallback() -> None:
    got: list[Any] = []

    def broken() -> Any:
        raise ValueError("no screen")

    async def asked() -> tuple[list[str], list[Any]]:
        async with opened([], asking(lambda ui: ui.confirm("Sure?"), got), ui=Port(broken)) as running:
            await running.seat.prompt("/ask")
            return [each.message for each in running.seat.diagnostics], running.errors()
        raise AssertionError

    assert simulate(asked) == (["the UI port failed in confirm: ValueError: no screen"], [])
    assert got == [False]


def test_what_is_shown_reaches_port_state_and_events_and_is_reset_with_the_conversation() -> None:
    port = Port()

    def show(_event: Any, ctx: Any) -> None:
        ui = ctx.ui
        ui.notify("hello")
        ui.notify("careful", "warning")
        ui.set_status("s", "busy")
        ui.set_widget("w", ["one", "two"], placement="belowEditor")
        ui.set_widget("made", len)
        ui.set_title("camshaft")
        ui.set_editor_text("draft")
        ui.paste_to_editor("pasted")
        ui.set_working_message("thinking")

    async def shown() -> tuple[UiState, list[Any]]:
        async with opened([], handling("session_start", show), ui=port, mode="tui", listeners=(heard.append,)) as running:
            return running.seat.ui, [(event.part, event.key) for event in heard if event.type == "ui_changed"]
        raise AssertionError

    heard: list[Any] = []
    state, changes = simulate(shown)

    widget = Widget(lines=("one", "two"), placement="belowEditor")
    assert state == UiState(statuses=FrozenDict(s="busy"), widgets=(("w", widget),), title="camshaft", working_message="thinking")
    assert changes == [
        ("status", "s"),
        ("widget", "w"),
        ("title", None),
        ("editor_text", None),
        ("editor_text", None),
        ("working_message", None),
    ]
    assert port.calls == [
        ("notify", "hello", "info"),
        ("notify", "careful", "warning"),
        ("set_status", "s", "busy"),
        ("set_widget", "w", ["one", "two"], "belowEditor"),
        ("set_widget", "made", len, "aboveEditor"),
        ("set_title", "camshaft"),
        ("set_editor_text", "draft"),
        ("set_editor_text", "pasted"),
        ("reset",),
    ]
    assert [(event.message, event.level) for event in heard if event.type == "notified"] == [("hello", "info"), ("careful", "warning")]
    assert heard[-1].type == "ui_reset"


def test_more_status_lines_than_a_screen_has_are_refused() -> None:
    refused: list[str] = []

    def show(_event: Any, ctx: Any) -> None:
        for number in range(KEYS_MAX):
            ctx.ui.set_status(f"s{number}", "x")
            ctx.ui.set_widget(f"w{number}", ["x"])
        with pytest.raises(TooMuchShown) as status:
            ctx.ui.set_status("more", "x")
        with pytest.raises(TooMuchShown) as widget:
            ctx.ui.set_widget("more", ["x"])
        refused.extend([str(status.value), str(widget.value)])
        ctx.ui.set_status("s0", "still changeable")

    async def shown() -> None:
        async with opened([], handling("session_start", show), ui=WatchedUi()) as running:
            assert running.errors() == []

    simulate(shown)

    assert refused == [
        "100 status lines are shown; clear one before 'more' is added",
        "100 widgets are shown; clear one before 'more' is added",
    ]


# -- every other method ------------------------------------------------------------------

FALLBACKS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "notify": (lambda ui: ui.notify("x", "error"), None),
    "set_status": (lambda ui: ui.set_status("s", "x"), None),
    "set_widget": (lambda ui: ui.set_widget("w", ["x"]), None),
    "set_title": (lambda ui: ui.set_title("x"), None),
    "set_editor_text": (lambda ui: ui.set_editor_text("x"), None),
    "paste_to_editor": (lambda ui: ui.paste_to_editor("x"), None),
    "get_editor_text": (lambda ui: ui.get_editor_text(), ""),
    "set_working_message": (lambda ui: ui.set_working_message("x"), None),
    "set_working_visible": (lambda ui: ui.set_working_visible(False), None),
    "set_working_indicator": (lambda ui: ui.set_working_indicator({"frames": ["."]}), None),
    "set_hidden_thinking_label": (lambda ui: ui.set_hidden_thinking_label("x"), None),
    "set_footer": (lambda ui: ui.set_footer(len), None),
    "set_header": (lambda ui: ui.set_header(len), None),
    "add_autocomplete_provider": (lambda ui: ui.add_autocomplete_provider(len), None),
    "set_editor_component": (lambda ui: ui.set_editor_component(len), None),
    "get_editor_component": (lambda ui: ui.get_editor_component(), None),
    "set_tools_expanded": (lambda ui: ui.set_tools_expanded(True), None),
    "get_tools_expanded": (lambda ui: ui.get_tools_expanded(), False),
    "on_terminal_input": (lambda ui: ui.on_terminal_input(len)(), None),
    "theme": (lambda ui: ui.theme, PlainTheme()),
    "get_all_themes": (lambda ui: ui.get_all_themes(), []),
    "get_theme": (lambda ui: ui.get_theme("dark"), None),
}


@pytest.mark.rule("UI-1", "UI-2", "UI-8", "RPC-104")
@pytest.mark.parametrize("fields", [{}, {"ui": WatchedUi(), "mode": "rpc"}, {"ui": Port(), "mode": "tui"}], ids=["none", "watched", "port"])
@pytest.mark.parametrize("name", FALLBACKS)
def test_a_call_that_the_host_cannot_do_gives_its_fallback(name: str, fields: dict[str, Any]) -> None:
    call, fallback = FALLBACKS[name]
    got: list[Any] = []

    async def called() -> list[Any]:
        async with opened([], handling("session_start", lambda _event, ctx: got.append(call(ctx.ui))), **fields) as running:
            return [*running.errors(), *running.seat.diagnostics]
        raise AssertionError

    assert simulate(called) == []
    assert got == [fallback]


@pytest.mark.rule("UI-1", "RPC-104", "UI-10")
@pytest.mark.parametrize(("mode", "error"), [("rpc", "Theme switching not supported in RPC mode"), ("print", "UI not available")])
def test_themes_and_components_say_that_there_is_no_screen_for_them(mode: str, error: str) -> None:
    got: list[Any] = []

    async def ask(ui: Any) -> Any:
        return ui.set_theme("dark"), await ui.custom(lambda *_: "component")

    async def asked() -> None:
        spans = (handling("ui_prompt_start", lambda event, _ctx: got.append(event.kind)),)
        async with opened([], asking(ask, got), *spans, ui=WatchedUi(), mode=mode) as running:
            await running.seat.prompt("/ask")

    simulate(asked)

    assert (ThemeChange(success=False, error=error), None) in got
    assert ("custom" in got) == (mode == "rpc")


MISTAKES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "options as one text": (lambda ui: ui.select("Which?", "abc"), "options of select are 'abc'; expected a list of texts"),
    "an option that is none": (lambda ui: ui.select("Which?", ["a", 1]), "options of select are ['a', 1]; expected a list of texts"),
    "a title that is none": (lambda ui: ui.confirm(3), "title is 3; expected a text"),
    "options without an order": (lambda ui: ui.select("Which?", {"a"}), "options of select are {'a'}; expected a list of texts"),
    "no options": (lambda ui: ui.select("Which?", None), "options of select are None; expected a list of texts"),
    "a timeout that is no number": (lambda ui: ui.input("x", timeout=math.nan), "timeout of input is nan; expected milliseconds, or None"),
    "a timeout without end": (lambda ui: ui.input("x", timeout=math.inf), "timeout of input is inf; expected milliseconds, or None"),
    "a timeout that is none": (lambda ui: ui.input("x", timeout="5s"), "timeout of input is '5s'; expected milliseconds, or None"),
    "an unknown level": (lambda ui: ui.notify("x", "fatal"), "type is 'fatal'; expected one of info, warning, error"),
    "lines as one text": (lambda ui: ui.set_widget("w", "abc"), "content of widget 'w' is 'abc'; expected a list of lines, or a function"),
    "an unknown place": (
        lambda ui: ui.set_widget("w", ["x"], placement="left"),
        "placement is 'left'; expected one of aboveEditor, belowEditor",
    ),
    "a status that is none": (lambda ui: ui.set_status("s", 3), "text is 3; expected a text"),
}


@pytest.mark.parametrize("fields", [{}, {"ui": WatchedUi()}], ids=["without a UI", "with a UI"])
@pytest.mark.parametrize(("call", "text"), MISTAKES.values(), ids=MISTAKES)
def test_what_cannot_be_shown_is_refused_where_it_is_written(call: Any, text: str, fields: dict[str, Any]) -> None:
    said: list[str] = []

    async def start(_event: Any, ctx: Any) -> None:
        try:
            outcome = call(ctx.ui)
            await outcome
        except UiMisuse as error:
            said.append(str(error))

    async def called() -> None:
        async with opened([], handling("session_start", start), **fields) as running:
            assert running.errors() == []

    simulate(called)

    assert said == [text]
