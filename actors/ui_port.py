"""Where extensions meet people: the port that a host implements, and what stands in for it.

A host has three ways. Without a UI it binds nothing, and every call of an extension gives its
fallback at once (UI-2). It may implement `UiPort`: each dialog is a call that returns the
answer and is cancelled when the dialog ended otherwise. Or it binds a `WatchedUi` and shows
what the events say: dialogs are state with ids, answered through the seat or through the
object. The methods of `ScreenPort` are optional: without one its calls behave as without a UI
(UI-8). Whatever a port raises is a diagnostic, never a fault of the extension that asked.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from camshaft.kernel import shapes
from camshaft.kernel.dialogs import Dialog, Placement


@shapes.frozen(kw_only=True)
class ThemeChange:
    """What became of a wish for another theme."""

    success: bool
    error: str | None = None


@shapes.frozen
class PlainTheme:
    """The theme where there is none: every text stays as it is."""

    name: str = "default"

    def fg(self, _colour: str, text: str) -> str:
        """`text` in a colour of the theme."""
        return text

    def bg(self, _colour: str, text: str) -> str:
        """`text` on a colour of the theme."""
        return text

    def bold(self, text: str) -> str:
        """`text` in bold."""
        return text

    def italic(self, text: str) -> str:
        """`text` in italics."""
        return text

    def underline(self, text: str) -> str:
        """`text` underlined."""
        return text


class UiPort(Protocol):
    """What a host implements to show dialogs and lines itself. `timeout_ms` is for counting down; the kernel ends the call."""

    async def select(self, title: str, options: Sequence[str], *, timeout_ms: int | None) -> str | None:
        """The chosen text; None if cancelled."""
        ...

    async def confirm(self, title: str, message: str, *, timeout_ms: int | None) -> bool:
        """Whether it was confirmed."""
        ...

    async def input(self, title: str, placeholder: str | None, *, timeout_ms: int | None) -> str | None:
        """The text; None if cancelled."""
        ...

    async def editor(self, title: str, prefill: str | None) -> str | None:
        """The edited text; None if cancelled."""
        ...

    def notify(self, message: str, level: str) -> None:
        """Shows a message once; `info`, `warning` or `error`."""
        ...

    def set_status(self, key: str, text: str | None) -> None:
        """Shows a status line; None takes it away."""
        ...

    def set_widget(self, key: str, content: Any, *, placement: Placement) -> None:
        """Shows lines beside the editor, or what a factory makes where factories can be used; None takes them away."""
        ...

    def set_title(self, text: str) -> None:
        """Names the window."""
        ...

    def set_editor_text(self, text: str) -> None:
        """Replaces the text that is being written."""
        ...

    def reset(self) -> None:
        """Takes away everything that extensions showed: they were replaced (UI-7)."""
        ...


class ScreenPort(Protocol):
    """What a host with a screen may implement beyond UiPort; each method is optional."""

    theme: Any
    """The current theme."""

    async def custom(self, factory: Callable[..., Any], options: Any) -> Any:
        """The result of a component."""
        ...

    def paste_to_editor(self, text: str) -> None:
        """Pastes at the cursor; without it, `set_editor_text`."""
        ...

    def get_editor_text(self) -> str:
        """The text that is being written."""
        ...

    def set_working_message(self, message: str | None) -> None:
        """What is shown while the model works; None: the default."""
        ...

    def set_working_visible(self, visible: bool) -> None:
        """Whether anything is shown while the model works."""
        ...

    def set_working_indicator(self, options: Any) -> None:
        """How that moves; None: the default."""
        ...

    def set_hidden_thinking_label(self, label: str | None) -> None:
        """What stands for thinking that is not shown; None: the default."""
        ...

    def set_footer(self, factory: Callable[..., Any] | None) -> None:
        """Another footer; None: the default."""
        ...

    def set_header(self, factory: Callable[..., Any] | None) -> None:
        """Another header; None: the default."""
        ...

    def add_autocomplete_provider(self, factory: Callable[..., Any]) -> None:
        """Wraps the completion of what is being written."""
        ...

    def set_editor_component(self, factory: Callable[..., Any] | None) -> None:
        """Another editor; None: the default."""
        ...

    def get_editor_component(self) -> Callable[..., Any] | None:
        """The factory of the editor that an extension set."""
        ...

    def set_tools_expanded(self, expanded: bool) -> None:
        """Whether tool results are shown in full."""
        ...

    def get_tools_expanded(self) -> bool:
        """Whether tool results are shown in full."""
        ...

    def on_terminal_input(self, handler: Callable[[str], Any]) -> Callable[[], None]:
        """Shows raw input to `handler` first; returns its unsubscribe."""
        ...

    def get_all_themes(self) -> Sequence[Any]:
        """The themes."""
        ...

    def get_theme(self, name: str) -> Any:
        """A theme; None if there is none of that name."""
        ...

    def set_theme(self, theme: Any) -> ThemeChange:
        """Uses another theme, given by name or as such."""
        ...


class Answering(Protocol):
    """The dialogs of one conversation."""

    @property
    def dialogs(self) -> tuple[Dialog, ...]:
        """Those that are open."""
        ...

    def answer(self, dialog_id: str, value: object) -> bool:
        """Ends one with an answer; whether it was open."""
        ...

    def cancel(self, dialog_id: str) -> bool:
        """Ends one with its fallback; whether it was open."""
        ...


@shapes.define(eq=False)
class WatchedUi:
    """The UI of a host that watches events and answers by id. One for each conversation.

    It can be used before `Kernel.open` returns, so that a dialog of `session_start` is answerable (EXT-53).
    """

    _answering: Answering | None = None

    @property
    def dialogs(self) -> tuple[Dialog, ...]:
        """The open dialogs, oldest first; none before a conversation uses this object."""
        return () if self._answering is None else self._answering.dialogs

    def answer(self, dialog_id: str, value: object) -> bool:
        """Ends a dialog with an answer, or its fallback if that has the wrong shape; False for one that is not open (UI-4)."""
        return self._answering is not None and self._answering.answer(dialog_id, value)

    def cancel(self, dialog_id: str) -> bool:
        """Ends a dialog with its fallback; False for one that is not open."""
        return self._answering is not None and self._answering.cancel(dialog_id)

    def watch(self, answering: Answering) -> None:
        """Called by the kernel with the dialogs of the conversation that is being opened."""
        self._answering = answering
