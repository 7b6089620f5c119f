"""`ctx.ui`: what an extension asks and shows. No call raises for lack of a UI (UI-2).

Every call checks that its extension is still the one in use (EXT-47). A wrong argument raises
UiMisuse where it is written, with or without a UI: a dialog that would fail only where people
see it would be found by them.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from camshaft.actors.desk import Desk
from camshaft.actors.errors import CamshaftError
from camshaft.actors.generation import Checked
from camshaft.actors.ui_port import PlainTheme, ThemeChange
from camshaft.kernel import shapes
from camshaft.kernel.dialogs import Dialog, DialogKind, Placement, Widget
from camshaft.kernel.tools import Signal

Level = Literal["info", "warning", "error"]
LEVELS: Final = ("info", "warning", "error")
PLACEMENTS: Final = ("aboveEditor", "belowEditor")
NO_THEMES: Final = "UI not available"
NO_THEMES_IN_RPC: Final = "Theme switching not supported in RPC mode"


class UiMisuse(CamshaftError):
    """A dialog, notification or line was given what cannot be shown; the text says what was expected."""


@shapes.frozen(eq=False)
class ExtensionUi:
    """Dialogs and lines of one extension. `timeout` is in ms; it and `signal` end a dialog with its fallback (UI-3)."""

    _desk: Desk
    _standing: Checked
    _extension: str

    # -- dialogs -------------------------------------------------------------------------

    async def select(self, title: str, options: Sequence[str], *, timeout: int | None = None, signal: Signal | None = None) -> str | None:  # noqa: ASYNC109  # the spec's argument, a deadline people see
        """The chosen option; None if cancelled, and without a UI."""
        if isinstance(options, str) or not isinstance(options, Sequence) or not all([isinstance(option, str) for option in options]):
            raise UiMisuse(f"options of select are {options!r}; expected a list of texts")
        answer = await self._ask("select", title, timeout, signal, options=tuple(options))
        return answer if isinstance(answer, str) else None

    async def confirm(self, title: str, message: str = "", *, timeout: int | None = None, signal: Signal | None = None) -> bool:  # noqa: ASYNC109  # as for select
        """Whether it was confirmed; False if not, and without a UI."""
        return await self._ask("confirm", title, timeout, signal, message=_text("message", message)) is True

    async def input(
        self,
        title: str,
        placeholder: str | None = None,
        *,
        timeout: int | None = None,  # noqa: ASYNC109  # as for select
        signal: Signal | None = None,
    ) -> str | None:
        """The text; None if cancelled, and without a UI."""
        answer = await self._ask("input", title, timeout, signal, placeholder=_optional("placeholder", placeholder))
        return answer if isinstance(answer, str) else None

    async def editor(self, title: str, prefill: str | None = None) -> str | None:
        """The edited text; None if cancelled, and without a UI. It waits for ever."""
        answer = await self._ask("editor", title, None, None, prefill=_optional("prefill", prefill))
        return answer if isinstance(answer, str) else None

    async def custom(self, factory: Callable[..., Any], options: Any = None) -> Any:
        """What a component gives on a screen that can show it; None elsewhere."""
        return await self._live.custom(factory, options)

    # -- what is shown -------------------------------------------------------------------

    def notify(self, message: str, type: Level = "info") -> None:  # the spec's name
        """Says something once."""
        _choice("type", type, LEVELS)
        self._standing.count()
        self._desk.notify(_text("message", message), type, self._extension)

    def set_status(self, key: str, text: str | None = None) -> None:
        """Shows a status line; without a text it is taken away."""
        self._live.set_status(_text("key", key), _optional("text", text))

    def set_widget(
        self, key: str, content: Sequence[str] | Callable[..., Any] | None = None, *, placement: Placement = "aboveEditor"
    ) -> None:
        """Shows lines beside the editor, or what a factory makes on a screen; without content it is taken away."""
        _choice("placement", placement, PLACEMENTS)
        desk, key = self._live, _text("key", key)
        if callable(content):
            desk.set_component(key, content, placement)
        elif content is None:
            desk.set_widget(key, None)
        elif isinstance(content, str) or not all([isinstance(line, str) for line in content]):
            raise UiMisuse(f"content of widget {key!r} is {content!r}; expected a list of lines, or a function")
        else:
            desk.set_widget(key, Widget(lines=tuple(content), placement=placement))

    def set_title(self, text: str) -> None:
        """Names the window."""
        self._live.set_text("title", _text("title", text))

    def set_editor_text(self, text: str) -> None:
        """Replaces the text that is being written."""
        self._live.set_text("editor_text", _text("text", text))

    def paste_to_editor(self, text: str) -> None:
        """Pastes into the text that is being written."""
        self._live.paste(_text("text", text))

    def get_editor_text(self) -> str:
        """The text that is being written; empty where nobody knows."""
        text: str = self._live.call("get_editor_text", "")
        return text

    def set_working_message(self, message: str | None = None) -> None:
        """What is shown while the model works; None: the default."""
        self._live.set_text("working_message", _optional("message", message))

    def set_working_visible(self, visible: bool) -> None:
        """Whether anything is shown while the model works."""
        self._live.set_text("working_visible", bool(visible))

    def set_working_indicator(self, options: Any = None) -> None:
        """How that moves; None: the default."""
        self._live.call("set_working_indicator", None, options)

    def set_hidden_thinking_label(self, label: str | None = None) -> None:
        """What stands for thinking that is not shown; None: the default."""
        self._live.set_text("hidden_thinking_label", _optional("label", label))

    # -- screens only --------------------------------------------------------------------

    def set_footer(self, factory: Callable[..., Any] | None) -> None:
        """Another footer; None: the default."""
        self._live.call("set_footer", None, factory)

    def set_header(self, factory: Callable[..., Any] | None) -> None:
        """Another header; None: the default."""
        self._live.call("set_header", None, factory)

    def add_autocomplete_provider(self, factory: Callable[..., Any]) -> None:
        """Wraps the completion of what is being written."""
        self._live.call("add_autocomplete_provider", None, factory)

    def set_editor_component(self, factory: Callable[..., Any] | None) -> None:
        """Another editor; None: the default."""
        self._live.call("set_editor_component", None, factory)

    def get_editor_component(self) -> Callable[..., Any] | None:
        """The factory of the editor that an extension set, if one did."""
        factory: Callable[..., Any] | None = self._live.call("get_editor_component", None)
        return factory

    def set_tools_expanded(self, expanded: bool) -> None:
        """Whether tool results are shown in full."""
        self._live.call("set_tools_expanded", None, bool(expanded))

    def get_tools_expanded(self) -> bool:
        """Whether tool results are shown in full."""
        return bool(self._live.call("get_tools_expanded", False))

    def on_terminal_input(self, handler: Callable[[str], Any]) -> Callable[[], None]:
        """Shows raw input of a screen to `handler` first; returns its unsubscribe."""
        unsubscribe: Callable[[], None] = self._live.call("on_terminal_input", _nothing, handler)
        return unsubscribe

    @property
    def theme(self) -> Any:
        """The current theme; one that leaves texts as they are where there is none."""
        return self._live.read("theme", _PLAIN)

    def get_all_themes(self) -> list[Any]:
        """The themes of a screen."""
        return list(self._live.call("get_all_themes", ()))

    def get_theme(self, name: str) -> Any:
        """A theme of a screen; None if there is none of that name."""
        return self._live.call("get_theme", None, name)

    def set_theme(self, theme: Any) -> ThemeChange:
        """Uses another theme, given by name or as such; says whether that was done."""
        desk = self._live
        refused = ThemeChange(success=False, error=NO_THEMES_IN_RPC if desk.mode == "rpc" else NO_THEMES)
        change: ThemeChange = desk.call("set_theme", refused, theme)
        return change

    @property
    def _live(self) -> Desk:
        self._standing.check()
        return self._desk

    async def _ask(self, kind: DialogKind, title: str, limit_ms: int | None, signal: Signal | None, **shown: Any) -> bool | str | None:
        desk = self._live
        dialog = _dialog(desk, kind, title, limit_ms, extension=self._extension, **shown)
        return await desk.ask(dialog, signal)


def _dialog(desk: Desk, kind: DialogKind, title: str, limit_ms: int | None, **shown: Any) -> Dialog:
    if limit_ms is not None and (isinstance(limit_ms, bool) or not isinstance(limit_ms, int | float) or not 0 <= limit_ms < math.inf):
        raise UiMisuse(f"timeout of {kind} is {limit_ms!r}; expected milliseconds, or None")
    dialog_id = desk.new_id() if desk.has_ui else ""
    return Dialog(id=dialog_id, kind=kind, title=_text("title", title), timeout_ms=limit_ms or None, **shown)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise UiMisuse(f"{name} is {value!r}; expected a text")
    return value


def _optional(name: str, value: object) -> str | None:
    return None if value is None else _text(name, value)


def _choice(name: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise UiMisuse(f"{name} is {value!r}; expected one of {', '.join(choices)}")


def _nothing() -> None:
    """Unsubscribes from what was never subscribed to."""


_PLAIN: Final = PlainTheme()
