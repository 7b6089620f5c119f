"""What an extension shows to people, as data: open dialogs, status lines, widgets, title.

Dialogs are state with ids, so that a frontend that comes late sees what is open and several can
show the same one; the first answer counts. A dialog always ends with a value: the answer, or
its *fallback*, which is the careful one (UI-2): nothing chosen, not confirmed.
"""

from typing import Final, Literal

import attrs

from camshaft.kernel import shapes
from camshaft.kernel.persistent import EMPTY, FrozenDict

DialogKind = Literal["select", "confirm", "input", "editor"]

Ending = Literal["answered", "cancelled", "timeout", "signal", "withdrawn", "reset"]
"""Why a dialog is closed: a person answered or cancelled it, its time was over, its signal was set, whoever asked was
ended, or the extensions were replaced."""

WIDGET_LINES_MAX: Final = 10
"""Lines of a widget that a screen shows; what follows is one line that says how many there are more (UI-1)."""
DIALOGS_MAX: Final = 100
"""Open dialogs of one conversation: nobody answers more, and each keeps code waiting."""
KEYS_MAX: Final = 100
"""Status lines, and widgets, of one conversation: no screen shows more."""


@shapes.frozen(kw_only=True)
class Dialog:
    """A question that waits for a person."""

    id: str
    """Unique among all dialogs of the kernel."""
    kind: DialogKind
    title: str
    message: str | None = None
    """Of a `confirm`."""
    options: tuple[str, ...] = ()
    """Of a `select`; an answer may be another text (RPC-98)."""
    placeholder: str | None = None
    """Of an `input`."""
    prefill: str | None = None
    """Of an `editor`."""
    timeout_ms: int | None = None
    """How long it is open; whoever shows it may count down, the kernel ends it. None: until it is answered."""
    extension: str
    """Path of the extension that asks."""

    @property
    def fallback(self) -> bool | None:
        """What it ends with when nobody answers: not confirmed, or nothing (UI-3)."""
        return False if self.kind == "confirm" else None

    def read(self, value: object) -> bool | str | None:
        """The answer; the fallback for one of the wrong shape, which is as good as cancelled (UI-4)."""
        if isinstance(value, bool) if self.kind == "confirm" else isinstance(value, str):
            return value  # type: ignore[return-value]  # the line above looked
        return self.fallback


Placement = Literal["aboveEditor", "belowEditor"]


@shapes.frozen(kw_only=True)
class Widget:
    """Lines that stay beside the editor."""

    lines: tuple[str, ...]
    placement: Placement = "aboveEditor"

    @property
    def shown(self) -> tuple[str, ...]:
        """The lines for a screen: the first ten, and how many more there are."""
        more = len(self.lines) - WIDGET_LINES_MAX
        return self.lines if more <= 0 else (*self.lines[:WIDGET_LINES_MAX], f"… ({more} more {'line' if more == 1 else 'lines'})")


@shapes.frozen(kw_only=True)
class UiState:
    """Everything extensions show now; what a frontend that comes late draws first."""

    dialogs: tuple[Dialog, ...] = ()
    """Open, oldest first; each can be answered, in any order (UI-5)."""
    statuses: FrozenDict = EMPTY
    """Text by key, in the order in which the keys were first set."""
    widgets: tuple[tuple[str, Widget], ...] = ()
    """By key, in the order in which the keys were first set."""
    title: str | None = None
    """Of the window; None: the frontend's own."""
    working_message: str | None = None
    """Shown while the model works; None: the frontend's own."""
    working_visible: bool = True
    hidden_thinking_label: str | None = None
    """Stands for thinking that is not shown; None: the frontend's own."""

    def with_status(self, key: str, text: str | None) -> "UiState":
        """Sets or clears a status line."""
        statuses = {each: kept for each, kept in self.statuses.items() if each != key or text is not None}
        return attrs.evolve(self, statuses=FrozenDict(statuses if text is None else {**statuses, key: text}))

    def with_widget(self, key: str, widget: Widget | None) -> "UiState":
        """Sets or clears a widget; one that is set again keeps its place."""
        kept = {each: shown for each, shown in self.widgets if each != key or widget is not None}
        return attrs.evolve(self, widgets=tuple((kept if widget is None else {**kept, key: widget}).items()))

    def without_dialog(self, dialog_id: str) -> "UiState":
        """Closes a dialog."""
        return attrs.evolve(self, dialogs=tuple([each for each in self.dialogs if each.id != dialog_id]))


NOTHING_SHOWN: Final = UiState()
"""Nothing is shown: before extensions act, and after they were replaced (UI-7)."""

UiValue = str | bool | Widget | None
"""What a change of the UI set: a text, a flag, a widget; None: cleared."""
