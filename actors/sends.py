"""Messages that extensions send: the table of QUE-11, and user messages in a person's place (QUE-13).

What an extension calls returns at once; a failure is reported, never raised into it. A user
message passes the same steps as a prompt. Without `input` handlers none of them waits, so it
is queued, or starts a run, within the call. With some, they run as soon as the sending handler
returns, and the message is queued after the next handler; messages stay in the order sent.
`sends_queued` lets a settle boundary wait for `input` handlers that take their time (EVT-51).
"""

from collections.abc import Sequence
from typing import Any, Final

import attrs
import trio

from camshaft.actors.actor import HEARING_ROUNDS_MAX, Failure, Value, apart, guard, guard_at_once
from camshaft.actors.delivery import Delivery
from camshaft.actors.errors import CommandRefused
from camshaft.actors.flights import Flights, Receipt
from camshaft.actors.prompts import COMPACTING_TEXT, Behavior, Deferred, Given, Prompts
from camshaft.actors.seat_parts import SeatParts, input_of
from camshaft.kernel import shapes
from camshaft.kernel.commands import AppendCustomMessage, Enqueue, Hold
from camshaft.kernel.hook_events import CustomInput
from camshaft.kernel.messages import ImageBlock, Message
from camshaft.kernel.run import Operation, Verdict, admit
from camshaft.kernel.starting import custom_message

OTHERS_ROUNDS: Final = 2
"""Rounds of the scheduler until every task that could run has run."""


@shapes.define(eq=False)
class Sends:
    """Sends for the extensions of one conversation, and custom messages for its host."""

    _parts: SeatParts
    _flights: Flights
    _prompts: Prompts
    _delivery: Delivery
    _waiting: list[Given] = attrs.field(factory=list)
    """User messages whose `input` handlers did not run yet, in order."""
    _passing: trio.Event | None = None
    """Set when all of them were accepted or refused; None while there are none."""
    _task: trio.lowlevel.Task | None = None
    """The task that passes them on."""
    _fresh: bool = False
    """Something was sent and could not begin yet."""
    _heard: list[Any] = attrs.field(factory=list)
    """What came of the `input` handlers of each message of a batch, until it is queued."""
    _is_expected: bool = False
    """A dispatch is under way, and says when what was heard is to be queued."""

    async def send_custom(self, message: CustomInput, *, trigger_turn: bool | None = None, deliver_as: str | None = None) -> Receipt | None:
        """Sends a custom message by QUE-11; when it is appended at once, handlers have heard of it on return (EVT-39)."""
        self._prompts.require_open()
        made = custom_message(message, self._parts.session.now_ms())
        done = self._send(made, trigger_turn, deliver_as)
        if done is None:
            await self._delivery.notify(made)
        return done

    def send_message(self, message: CustomInput, trigger_turn: bool | None, deliver_as: str | None) -> None:
        """As `send_custom` for extensions: failures are reported, handlers hear of it later (API-12)."""
        made = custom_message(message, self._parts.session.now_ms())
        try:
            done = self._send(made, trigger_turn, deliver_as)
        except CommandRefused as error:
            self._parts.host.report_failure("<runtime>", "send_message", Failure(error))
            return
        if done is None:
            self._delivery.notify_later(made)

    def _send(self, message: Any, trigger_turn: bool | None, deliver_as: str | None) -> Receipt | None:
        """The table of QUE-11; None if the message was appended now."""
        if deliver_as == "nextTurn":
            commit = self._parts.posted(Enqueue(way="nextTurn", message=message))
            record = input_of(commit)
            return Receipt(disposition="queued", input_id=record.input_id, entry_id=record.entry_id)
        quiet = trigger_turn is False or (trigger_turn is None and not self._parts.state.is_busy)
        verdict = admit(Operation.CUSTOM_QUIET if quiet else Operation.CUSTOM_TRIGGER, self._parts.state.live.activity)
        if verdict is Verdict.HOLD:
            self._parts.posted(Hold(message=message))
            return Receipt(disposition="queued")
        if verdict is Verdict.QUEUE:
            return self._prompts.enqueue("followUp" if deliver_as == "followUp" else "steer", message, None)
        if verdict is Verdict.START:
            return self._start_custom(message)
        if verdict is Verdict.DEFER:
            self._prompts.deferred.append(Deferred(lambda: self._start_and_wait(message)))
            return Receipt(disposition="deferred")
        if verdict is Verdict.REFUSE:
            raise CommandRefused(COMPACTING_TEXT)
        self._parts.posted(AppendCustomMessage(message=message))
        self._delivery.tell(message)
        return None

    def _start_custom(self, message: Message) -> Receipt:
        self._prompts.require_open()
        refused = self._parts.unready()
        if refused is not None:
            raise CommandRefused(refused)
        return self._flights.start("custom", message)

    async def _start_and_wait(self, message: Message) -> None:
        await self._start_custom(message).wait()

    def send_user_message(self, text: str, images: Sequence[ImageBlock], deliver_as: str | None, expand: bool) -> None:
        """Sends a user message for an extension; returns at once, failures are reported (QUE-13)."""
        behavior: Behavior | None = "steer" if deliver_as == "steer" else "followUp" if deliver_as == "followUp" else None
        given = Given(text=text, images=tuple(images), behavior=behavior, expand=expand, source="extension")
        if admit(Operation.PROMPT, self._parts.state.live.activity) is Verdict.DEFER:
            self._prompts.deferred.append(Deferred(lambda: self._send_user(given, wait=True)))
            return
        if self._prompts.names_command(given):
            self._parts.nursery.start_soon(self._run_command, given)
            self._fresh = True
        elif self._parts.host.has("input"):
            self._pass_on(given)
        else:
            self._report_failed(guard_at_once(self._prompts.accept, given))

    async def _run_command(self, given: Given) -> None:
        """Nobody waits for a command, so it may wait for the run it was sent from (CTXT-9)."""
        with apart():
            await self._send_user(given, wait=False)

    def _pass_on(self, given: Given) -> None:
        self._waiting.append(given)
        self._fresh = True
        if self._passing is None:
            self._passing = trio.Event()
            self._parts.nursery.start_soon(self._pass_all)

    async def _pass_all(self) -> None:
        """The `input` handlers of everything sent so far; then it is queued, in order: when a dispatch says so, else when others
        had their turn."""
        self._task = trio.lowlevel.current_task()
        done = self._passing
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                self._heard = [await guard(self._prompts.hear, given) for given in batch]
                for _ in range(HEARING_ROUNDS_MAX if self._is_expected else OTHERS_ROUNDS):
                    if self._heard:
                        await trio.lowlevel.checkpoint()
                self._take_heard()
        finally:
            self._passing = self._task = None
            if done is not None:
                done.set()

    async def _send_user(self, given: Given, *, wait: bool) -> None:
        outcome = await guard(self._prompts.accept, given)
        if wait and isinstance(outcome, Value):
            outcome = await guard(outcome.value.wait)
        self._report_failed(outcome)

    def _report_failed(self, outcome: Any) -> None:
        if isinstance(outcome, Failure):
            self._parts.host.report_failure("<runtime>", "send_user_message", outcome)

    @property
    def pending(self) -> bool:
        """Whether a message that a handler sent was not accepted or refused yet."""
        return self._fresh or self._passing is not None

    async def begun(self) -> None:
        """Lets what a handler just sent begin: its `input` handlers run now, unless they wait for something.

        It is queued when the next handler of the event has run, or the event is over.
        """
        self._fresh = False
        if self._task is trio.lowlevel.current_task():
            return
        if self._heard:
            self._take_heard()
            return
        self._is_expected = self._passing is not None
        await _others()
        for _ in range(HEARING_ROUNDS_MAX):
            if self._passing is None or self._heard:
                return
            await trio.lowlevel.checkpoint()

    def _take_heard(self) -> None:
        heard, self._heard, self._is_expected = self._heard, [], False
        for outcome in heard:
            if isinstance(outcome, Value) and isinstance(outcome.value, Given):
                outcome = guard_at_once(self._prompts.take, outcome.value)
            self._report_failed(outcome)

    async def sends_queued(self) -> None:
        """Returns when every message that handlers asked to send was accepted or refused (EVT-51)."""
        while self._passing is not None:
            await self._passing.wait()

    async def run_deferred(self) -> None:
        """Runs the next deferred prompt as a whole run; a failure is reported."""
        outcome = await guard(self._prompts.deferred.popleft().go)
        self._report_failed(outcome)


async def _others() -> None:
    """Every task that can run does, once: after one checkpoint it may still be the turn of some."""
    for _ in range(OTHERS_ROUNDS):
        await trio.lowlevel.checkpoint()
