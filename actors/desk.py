"""The desk of a conversation: what extensions ask and show, whoever shows it to people.

The desk owns `UiState` and says every change on the event stream. It belongs to the seat, so
it outlives the extensions: when those are replaced, `reset` gives every open dialog its
fallback and takes away what was shown (UI-6, UI-7). A dialog is an await of the extension's
task on the desk; the port, the signal and the clock run beside it, and the first of answer,
cancel, timeout, signal and reset ends it. Whoever asked and is cancelled withdraws its dialog.

Nothing here waits for a port: its dialogs run in tasks of the seat and are cancelled, and not
waited for, when their dialog ended. What is left if the process dies: no dialog outlives it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import attrs
import trio

from camshaft.actors.actor import Cut, Failure, guard, guard_now
from camshaft.actors.errors import CamshaftError
from camshaft.actors.event_stream import EventStream
from camshaft.actors.standing import CALL
from camshaft.actors.ui_port import UiPort, WatchedUi
from camshaft.kernel import shapes
from camshaft.kernel.dialogs import DIALOGS_MAX, KEYS_MAX, NOTHING_SHOWN, Dialog, Ending, UiState, UiValue, Widget
from camshaft.kernel.events import DiagnosticEvent, DialogClosed, DialogOpened, Event, Notified, UiChanged, UiReset
from camshaft.kernel.session_events import UiPromptEndEvent, UiPromptStartEvent
from camshaft.kernel.tools import Signal

SILENT_MODES: Final = ("json", "print")
"""Modes that never have a UI, whatever is bound (UI-1)."""


class TooMuchShown(CamshaftError):
    """An extension opened more dialogs, or shows more lines, than a person could follow; the text names the limit."""


@shapes.define(eq=False)
class _Open:
    """An open dialog, and who is waiting for it and showing it."""

    dialog: Dialog
    value: bool | str | None = None
    closed: trio.Event = attrs.field(factory=trio.Event)
    beside: list[trio.CancelScope] = attrs.field(factory=list)
    """Scopes of the tasks beside it: the port's call, the wait for its signal."""


@shapes.define(eq=False)
class Desk:
    """Dialogs, status lines, widgets and title of one conversation."""

    _stream: EventStream
    _nursery: trio.Nursery
    _new_id: Callable[[], str]
    _port: UiPort | WatchedUi | None
    mode: str
    state: UiState = NOTHING_SHOWN
    """Everything that is shown now."""
    _open: dict[str, _Open] = attrs.field(factory=dict)
    _custom: list[trio.CancelScope] = attrs.field(factory=list)
    _prompts: int = 0
    _span: tuple[str, str | None] = ("", None)
    """Kind and title of the first of the prompts that are open (UI-10)."""
    _notify: Callable[[str, Any], None] | None = None
    _told: Callable[[str, Any], None] | None = None
    """Who heard of the start of the prompts that are open, and shall hear of their end: no later generation."""

    def __attrs_post_init__(self) -> None:
        if isinstance(self._port, WatchedUi):
            self._port.watch(self)

    def bind(self, notify: Callable[[str, Any], None]) -> None:
        """Handlers hear of prompts through `notify(hook, event)` from now on (UI-10)."""
        self._notify = notify

    @property
    def has_ui(self) -> bool:
        """Whether anybody can see what is shown."""
        return self._port is not None and self.mode not in SILENT_MODES

    # -- dialogs -------------------------------------------------------------------------

    @property
    def dialogs(self) -> tuple[Dialog, ...]:
        """The open dialogs, oldest first."""
        return self.state.dialogs

    def new_id(self) -> str:
        """An id for a dialog: never given before, so that a late answer cannot meet another one."""
        return self._new_id()

    async def ask(self, dialog: Dialog, signal: Signal | None) -> bool | str | None:
        """The answer, or the fallback (UI-3). A signal already set shows nothing. Raises TooMuchShown."""
        if not self.has_ui or (signal is not None and signal.cancelled):
            return dialog.fallback
        if len(self._open) >= DIALOGS_MAX:
            raise TooMuchShown(f"{DIALOGS_MAX} dialogs are open; no more can be asked until one of them is closed")
        waiting = _Open(dialog)
        with self._prompting(dialog.kind, dialog.title):
            self._show(waiting, signal)
            call = CALL.get()
            if call is not None:
                call.stop_clock()
            try:
                with trio.move_on_after(_seconds(dialog.timeout_ms)) as patience:
                    await waiting.closed.wait()
                if patience.cancelled_caught:
                    self._close(waiting, dialog.fallback, "timeout")
                return waiting.value
            finally:
                self._close(waiting, dialog.fallback, "withdrawn")
                if call is not None:
                    call.start_clock()

    def answer(self, dialog_id: str, value: object) -> bool:
        """Ends an open dialog with `value`, or its fallback if that has the wrong shape; False if it is not open (UI-4)."""
        waiting = self._open.get(dialog_id)
        return waiting is not None and self._close(waiting, waiting.dialog.read(value), "answered")

    def cancel(self, dialog_id: str) -> bool:
        """Ends an open dialog with its fallback; False if it is not open."""
        waiting = self._open.get(dialog_id)
        return waiting is not None and self._close(waiting, waiting.dialog.fallback, "cancelled")

    async def custom(self, factory: Callable[..., Any], options: Any) -> Any:
        """What a component of the extension gives; None without a screen that can show it. Raises what the component raises."""
        if not self.has_ui:
            return None
        with self._prompting("custom", None):
            method = getattr(self._port, "custom", None)
            if method is None:
                return None
            scope = trio.CancelScope()
            self._custom.append(scope)
            try:
                outcome = await guard(method, factory, options, scope=scope)
            finally:
                self._custom.remove(scope)
        if isinstance(outcome, Failure):
            raise outcome.error
        return None if isinstance(outcome, Cut) else outcome.value

    def dismiss(self) -> None:
        """Gives every open dialog its fallback: the conversation is about to be closed or replaced (UI-6)."""
        for waiting in tuple(self._open.values()):
            self._close(waiting, waiting.dialog.fallback, "reset")
        for scope in self._custom:
            scope.cancel()

    def reset(self) -> None:
        """Ends every dialog and takes away everything that is shown: its extensions are gone (UI-6, UI-7)."""
        self.dismiss()
        if self.has_ui:
            self.state = NOTHING_SHOWN
            self._stream.publish(UiReset())
            self.call("reset", None)

    def _show(self, waiting: _Open, signal: Signal | None) -> None:
        dialog = waiting.dialog
        self._open[dialog.id] = waiting
        self._change(attrs.evolve(self.state, dialogs=(*self.state.dialogs, dialog)), DialogOpened(dialog=dialog))
        method = getattr(self._port, dialog.kind, None)
        if method is not None:
            self._beside(waiting, self._ask_port, method)
        if signal is not None:
            self._beside(waiting, self._mind, signal)

    def _beside(self, waiting: _Open, task: Callable[..., Any], what: Any) -> None:
        scope = trio.CancelScope()
        waiting.beside.append(scope)
        self._nursery.start_soon(task, waiting, scope, what)

    async def _ask_port(self, waiting: _Open, scope: trio.CancelScope, method: Callable[..., Any]) -> None:
        """The host shows it; None is what it returns when the person cancelled."""
        dialog = waiting.dialog
        timed: dict[str, Any] = {} if dialog.kind == "editor" else {"timeout_ms": dialog.timeout_ms}
        outcome = await guard(lambda: method(*_arguments(dialog), **timed), scope=scope)
        if isinstance(outcome, Failure):
            self._complain(dialog.kind, outcome)
            self._close(waiting, dialog.fallback, "cancelled")
        elif not isinstance(outcome, Cut):
            self._close(waiting, dialog.read(outcome.value), "cancelled" if outcome.value is None else "answered")

    async def _mind(self, waiting: _Open, scope: trio.CancelScope, signal: Signal) -> None:
        outcome = await guard(signal.wait, scope=scope)
        if not isinstance(outcome, Cut):
            self._close(waiting, waiting.dialog.fallback, "signal")

    def _close(self, waiting: _Open, value: bool | str | None, ending: Ending) -> bool:
        """The first end counts; False if it was closed before."""
        if waiting.closed.is_set():
            return False
        waiting.value = value
        waiting.closed.set()
        for scope in waiting.beside:
            scope.cancel()
        del self._open[waiting.dialog.id]
        self._change(self.state.without_dialog(waiting.dialog.id), DialogClosed(id=waiting.dialog.id, ending=ending))
        return True

    @contextmanager
    def _prompting(self, kind: str, title: str | None) -> Iterator[None]:
        """One span for prompts that overlap; it says what the first of them is (UI-10)."""
        if self._prompts == 0:
            self._span, self._told = (kind, title), self._notify
            self._tell("ui_prompt_start", UiPromptStartEvent(kind=kind, title=title))
        self._prompts += 1
        try:
            yield
        finally:
            self._prompts -= 1
            if self._prompts == 0:
                self._tell("ui_prompt_end", UiPromptEndEvent(kind=self._span[0], title=self._span[1]))

    def _tell(self, hook: str, event: Any) -> None:
        if self._told is not None:
            self._told(hook, event)

    # -- what is shown -------------------------------------------------------------------

    def notify(self, message: str, level: str, extension: str) -> None:
        """Says something once."""
        if self.has_ui:
            self._stream.publish(Notified(message=message, level=level, extension=extension))
            self.call("notify", None, message, level)

    def set_status(self, key: str, text: str | None) -> None:
        """Sets or clears a status line. Raises TooMuchShown."""
        if self.has_ui:
            _require_room(self.state.statuses, key, text, "status lines")
            self._change(self.state.with_status(key, text), UiChanged(part="status", key=key, value=text))
            self.call("set_status", None, key, text)

    def set_widget(self, key: str, widget: Widget | None) -> None:
        """Sets or clears the lines of a widget. Raises TooMuchShown."""
        if self.has_ui:
            _require_room(dict(self.state.widgets), key, widget, "widgets")
            self._change(self.state.with_widget(key, widget), UiChanged(part="widget", key=key, value=widget))
            placement = "aboveEditor" if widget is None else widget.placement
            self._call("set_widget", None, (key, None if widget is None else list(widget.lines)), {"placement": placement})

    def set_component(self, key: str, factory: Callable[..., Any], placement: str) -> None:
        """Hands a widget's factory to a screen; one that cannot use factories shows nothing (UI-1)."""
        if self.has_ui:
            self._call("set_widget", None, (key, factory), {"placement": placement})

    def set_text(self, part: str, value: UiValue) -> None:
        """Sets the title, the text of the editor, or what is said while the model works."""
        if self.has_ui:
            kept: dict[str, Any] = {} if part == "editor_text" else {part: value}
            state = attrs.evolve(self.state, **kept)
            self._change(state, UiChanged(part=part, value=value))
            self.call(f"set_{part}", None, value)

    def paste(self, text: str) -> None:
        """Pastes into the editor; where that cannot be done, it sets the text."""
        if self.has_ui and getattr(self._port, "paste_to_editor", None) is not None:
            self.call("paste_to_editor", None, text)
        else:
            self.set_text("editor_text", text)

    def call(self, name: str, fallback: Any, *arguments: Any) -> Any:
        """What the port's method `name` gives; the fallback without a UI, without that method, and when it raises (UI-8)."""
        return self._call(name, fallback, arguments, {})

    def read(self, name: str, fallback: Any) -> Any:
        """An attribute of the port; the fallback if there is none."""
        return getattr(self._port, name, fallback) if self.has_ui else fallback

    def _call(self, name: str, fallback: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        method = getattr(self._port, name, None) if self.has_ui else None
        if method is None:
            return fallback
        outcome = guard_now(lambda: method(*arguments, **named))
        if isinstance(outcome, Failure):
            self._complain(name, outcome)
            return fallback
        return outcome.value

    def _complain(self, name: str, failure: Failure) -> None:
        said = f"the UI port failed in {name}: {type(failure.error).__name__}: {failure.text}"
        self._stream.publish(DiagnosticEvent(source="ui", message=said))

    def _change(self, state: UiState, event: Event) -> None:
        self.state = state
        self._stream.publish(event)


def _arguments(dialog: Dialog) -> tuple[Any, ...]:
    """What the port's method for it takes."""
    match dialog.kind:
        case "select":
            return dialog.title, list(dialog.options)
        case "confirm":
            return dialog.title, dialog.message or ""
        case "input":
            return dialog.title, dialog.placeholder
        case "editor":
            return dialog.title, dialog.prefill


def _seconds(timeout_ms: int | None) -> float:
    """0 or none is for ever (RPC-103)."""
    return timeout_ms / 1000 if timeout_ms else float("inf")


def _require_room(shown: Any, key: str, value: object, what: str) -> None:
    if value is not None and key not in shown and len(shown) >= KEYS_MAX:
        raise TooMuchShown(f"{KEYS_MAX} {what} are shown; clear one before {key!r} is added")
