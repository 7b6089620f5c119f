"""One session of a connection: its prompts, its updates, its questions.

Everything a client is told of a session goes through the queue of one lossless follower, answers that have to stand behind
updates among them; so the order on the wire is the order in which things became true. A client that does not read holds
the run up at its next step. Until the client knows the id of the session, what happens is kept, and questions of
extensions get their fallback, because nobody could be asked.
"""

import math
from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs
import trio

from camshaft.actors.api import AssistantMessage
from camshaft.actors.host import (
    AgentSettled,
    CamshaftError,
    Dialog,
    DialogClosed,
    DialogOpened,
    Event,
    Follower,
    FollowerStalled,
    MessageEnd,
    PromptRefused,
    Seat,
    SessionReplaced,
    ToolExecutionUpdate,
    WatchedUi,
)
from camshaft.extensions_std.frontends.acp import asking
from camshaft.extensions_std.frontends.acp.choices import commands_of, options_of
from camshaft.extensions_std.frontends.acp.history import history_of
from camshaft.extensions_std.frontends.acp.peer import Peer
from camshaft.extensions_std.frontends.acp.records import AUTH_REQUIRED, INTERNAL_ERROR, INVALID_REQUEST, RpcError, notification
from camshaft.extensions_std.frontends.acp.tool_calls import ShownCall, Tools
from camshaft.extensions_std.frontends.acp.updates import Update, Updates, note
from camshaft.extensions_std.frontends.acp.wire import SLICE_BYTES
from camshaft.extensions_std.frontends.file_arguments import Prompt

CANCEL_S: Final = 15.0
"""After a cancel: until the prompt is answered, whatever still runs. More than the kernel's own grace, which ends a run."""


@attrs.frozen
class _Opened:
    """From here on the client knows the session."""

    lines: bytes
    """The answer that tells it, and what stands before it."""


@attrs.define(eq=False)
class Turn:
    """A prompt that is not answered yet."""

    is_cancelled: bool = False
    done: trio.Event = attrs.field(factory=trio.Event)
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)


@attrs.define(eq=False)
class Session:
    """A conversation and the client; made before the conversation is opened."""

    _peer: Peer
    _nursery: trio.Nursery
    has_forms: bool
    """Whether the client can ask for a text."""
    notes: list[str] = attrs.field(factory=list)
    """What people are told at the beginning of the next prompt."""
    id: str = ""
    """As the client knows it; empty until then. A conversation that goes on in another session keeps it."""
    ui: WatchedUi = attrs.field(factory=WatchedUi)
    follower: Follower[bytes | _Opened] = attrs.field(factory=Follower)
    _known: trio.Event = attrs.field(factory=trio.Event)
    """Set when the client knows the session."""
    _told_all: trio.Event = attrs.field(factory=trio.Event)
    """Set when everything is written, or nobody reads any more."""
    _seat: Seat | None = None
    _updates: Updates | None = None
    _turns: list[Turn] = attrs.field(factory=list)
    """Prompts that are not answered: one, and those that wait for the end of cancelled ones."""
    _questions: dict[str, tuple[trio.CancelScope, ShownCall, bool]] = attrs.field(factory=dict)
    """By the id of the dialog: the task that asks, the call it is about, whether that was made up."""
    _early: list[Event] = attrs.field(factory=list)
    """What happened while the conversation opened."""
    _last: AssistantMessage | None = None
    _was_aborted: bool = False
    _shown: tuple[list[dict[str, Any]], list[dict[str, Any]]] = attrs.field(factory=lambda: ([], []))
    """The options and commands the client was told of."""

    @property
    def seat(self) -> Seat:
        """The conversation."""
        assert self._seat is not None
        return self._seat

    # -- events --------------------------------------------------------------------------

    def hear(self, event: Event) -> None:
        """A listener: how the run of a prompt ends."""
        if isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage):
            self._last = event.message
        elif isinstance(event, AgentSettled):
            self._was_aborted = event.aborted

    def begin(self, seat: Seat) -> None:
        """The conversation is open; the client is to be told."""
        self._seat = seat
        self._updates = self.new_updates()

    def new_updates(self) -> Updates:
        """A translator that has translated nothing."""
        return Updates(Tools(self.seat))

    def told(self, is_replayed: bool, answer: bytes) -> None:
        """Tells the client of the session: on request its history, then the answer, then what it can call."""
        assert self._updates is not None
        history = history_of(self.seat, self._updates) if is_replayed else []
        self.follower.put(_Opened(b"".join([self._line(update) for update in history]) + answer))

    def tell_again(self) -> None:
        """Tells the history once more, behind what was told so far."""
        for update in history_of(self.seat, self.new_updates()):
            self.tell(update)

    def put(self, line: bytes) -> None:
        """Puts a line behind what was told so far."""
        self.follower.put(line)

    def tell(self, update: Update) -> None:
        """Puts an update behind what was told so far."""
        self.follower.put(self._line(update))

    async def serve(self) -> None:
        """Writes until the conversation is closed, or nobody reads any more."""
        wire = self._peer.wire
        wire.at_work.append(self.follower.progress)
        try:
            async for first in self.follower:
                batch = [first]
                while self.follower.waiting:
                    batch.append(await anext(self.follower))
                await self._write(batch)
        except FollowerStalled:
            wire.break_off()
        finally:
            wire.at_work.remove(self.follower.progress)
            self._told_all.set()

    async def _write(self, batch: list[Event | bytes | _Opened]) -> None:
        last = {item.tool_call_id: at for at, item in enumerate(batch) if isinstance(item, ToolExecutionUpdate)}
        lines, size = list[bytes](), 0
        for at, item in enumerate(batch):
            if isinstance(item, ToolExecutionUpdate) and last[item.tool_call_id] != at:
                continue  # a later one says as much
            for line in self._lines(item):
                lines.append(line)
                size += len(line)
            if size >= SLICE_BYTES:
                await self._peer.wire.write(b"".join(lines))
                lines, size = [], 0
        await self._peer.wire.write(b"".join(lines))

    def _lines(self, item: Event | bytes | _Opened) -> list[bytes]:
        if isinstance(item, bytes):
            return [item]
        if isinstance(item, _Opened):
            return self._begun(item)
        if self._updates is None or not self._known.is_set():
            if isinstance(item, DialogOpened):
                self.ui.cancel(item.dialog.id)
            self._early.append(item)
            return []
        if isinstance(item, DialogOpened):
            return [self._line(update) for update in self._asked(item.dialog)]
        if isinstance(item, DialogClosed):
            return [self._line(update) for update in self._closed(item.id)]
        changed = self._changes() if isinstance(item, MessageEnd | AgentSettled | SessionReplaced) else []
        return [self._line(update) for update in (*self._updates.of_event(item), *self._usage(item), *changed)]

    def _usage(self, event: Event) -> list[Update]:
        """How full the context is, after an answer that says so."""
        answer = event.message if isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage) else None
        model = self.seat.model
        if answer is None or model is None or not (answer.usage.total_tokens and model.context_window):
            return []
        return [{"sessionUpdate": "usage_update", "used": answer.usage.total_tokens, "size": model.context_window}]

    def _begun(self, item: _Opened) -> list[bytes]:
        assert self._updates is not None
        self._known.set()
        early, self._early = self._early, []
        told = [update for event in early for update in self._updates.of_event(event)]
        return [item.lines, *[self._line(update) for update in (*self._changes(), *told)]]

    def _changes(self) -> list[Update]:
        """What can be chosen and called, if that is another than the client was told."""
        seat = self.seat
        if seat.is_closed:
            return []
        options, commands = self._shown
        self._shown = (options_of(seat), commands_of(seat))
        changes: list[Update] = []
        if self._shown[0] != options:
            changes.append({"sessionUpdate": "config_option_update", "configOptions": self._shown[0]})
        if self._shown[1] != commands:
            changes.append({"sessionUpdate": "available_commands_update", "availableCommands": self._shown[1]})
        return changes

    def options(self) -> list[dict[str, Any]]:
        """What can be chosen, told to the client by whoever asks."""
        self._shown = (options_of(self.seat), self._shown[1])
        return self._shown[0]

    def _line(self, update: Update) -> bytes:
        return notification("session/update", {"sessionId": self.id, "update": update})

    # -- questions -----------------------------------------------------------------------

    def _asked(self, dialog: Dialog) -> list[Update]:
        """Begins to ask; a call that is made up for the question is told of before."""
        if not asking.can_ask(dialog, has_forms=self.has_forms):
            self.ui.cancel(dialog.id)
            return [note(f"{dialog.extension} asked for a text, which this client cannot ask for: {dialog.title}")]
        assert self._updates is not None
        current = self._updates.current_call
        call = current or asking.made_up_call(dialog)
        scope = trio.CancelScope()
        self._questions[dialog.id] = (scope, call, current is None)
        self._nursery.start_soon(self._ask, dialog, call, scope)
        return [] if current is not None else [{"sessionUpdate": "tool_call", "status": "pending", **call.fields()}]

    async def _ask(self, dialog: Dialog, call: ShownCall, scope: trio.CancelScope) -> None:
        with scope:
            try:
                answer = await asking.ask(self._peer, self.id, dialog, call)
            except RpcError as error:
                self.tell(note(f"the client could not ask {dialog.title!r}: {error}"))
                answer = asking.CANCELLED
            if answer is asking.CANCELLED:
                self.ui.cancel(dialog.id)
            else:
                self.ui.answer(dialog.id, answer)

    def _closed(self, dialog_id: str) -> list[Update]:
        """However it was closed, nobody waits for the answer any more; a client sees it by the state of the call."""
        scope, call, is_made_up = self._questions.pop(dialog_id, (None, None, False))
        if scope is None or call is None:
            return []
        scope.cancel()
        return [{"sessionUpdate": "tool_call_update", "toolCallId": call.id, "status": "completed" if is_made_up else "in_progress"}]

    # -- prompts -------------------------------------------------------------------------

    async def prompt(self, prompt_of: Callable[[], Awaitable[Prompt]]) -> str:
        """Runs a prompt to its end; the stop reason. Raises RpcError, to stand behind what was told.

        Only one at a time; but one that was cancelled is waited for.
        """
        if any([not turn.is_cancelled for turn in self._turns]):
            raise RpcError(INVALID_REQUEST, "a prompt of this session is under way; cancel it, or wait for its answer")
        before, turn = self._turns[-1:], Turn()
        self._turns.append(turn)
        try:
            with turn.scope:
                for earlier in before:
                    await earlier.done.wait()
                await self._run(turn, await prompt_of())
        except CamshaftError as error:
            if not turn.is_cancelled:
                raise self._failure(error) from None
        finally:
            self._turns.remove(turn)
            turn.done.set()
        return self._stop_reason(turn)

    async def _run(self, turn: Turn, prompt: Prompt) -> None:
        await self._known.wait()
        assert self._updates is not None
        if turn.is_cancelled:
            return
        for text in self.notes:
            self.tell(note(text))
        self.notes.clear()
        self._last, self._was_aborted, self._updates.awaits_prompt = None, False, True
        receipt = await self.seat.submit(prompt.text, images=prompt.images, streaming_behavior="followUp")
        if turn.is_cancelled:
            self.seat.request_abort()
        self._updates.awaits_prompt = self._updates.awaits_prompt and receipt.disposition != "handled"
        await receipt.wait()
        await self.seat.wait_idle()

    def _stop_reason(self, turn: Turn) -> str:
        last = self._last
        if turn.is_cancelled or self._was_aborted:
            return "cancelled"
        if last is not None and last.stop_reason == "error":
            raise RpcError(INTERNAL_ERROR, last.error_message or "the model failed", put=self.put)
        return "max_tokens" if last is not None and last.stop_reason == "length" else "end_turn"

    def _failure(self, error: CamshaftError) -> RpcError:
        if isinstance(error, RpcError):
            return RpcError(error.code, str(error), put=self.put)
        model = self.seat.model
        is_locked = isinstance(error, PromptRefused) and (model is None or not self.seat.model_registry.has_configured_auth(model))
        return RpcError(AUTH_REQUIRED if is_locked else INTERNAL_ERROR, str(error), put=self.put)

    def cancel(self) -> None:
        """Ends what runs; the prompt under way is answered with `cancelled`, after CANCEL_S at the latest."""
        for turn in self._turns:
            turn.is_cancelled = True
            turn.scope.deadline = min(turn.scope.deadline, trio.current_time() + CANCEL_S)
        for dialog in self.ui.dialogs:
            self.ui.cancel(dialog.id)
        self.seat.request_abort()
        self.seat.abort_compaction()

    async def close(self, *, grace_s: float = math.inf, hooks_s: float | None = None) -> None:
        """Ends the conversation, after prompts under way were answered; with a grace, what runs is ended by force after it."""
        self.cancel()
        with trio.move_on_after(grace_s):
            await self.seat.abort()
            for turn in tuple(self._turns):
                await turn.done.wait()
        await self.seat.close(at_once=grace_s < math.inf, shutdown_s=hooks_s)
        if grace_s == math.inf:  # then the client is there, and reads the answers in their order
            await self._told_all.wait()
