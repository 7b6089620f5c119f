"""How a prompt is accepted: the steps of PROMPT_STEPS, one performer each (LOOP-1, RPC-60).

What a step decides by is the table ADMISSION of `kernel/run.py`. A step ends the prompt with a
receipt, hands it on, perhaps changed, or raises PromptRefused; then nothing was stored. There
is no checkpoint between finding the session idle and claiming it, so of two prompts at once
one starts and the other sees a busy session (RPC-63).

A client that lost its connection does not know whether its prompt arrived. With a command id it may
send it again: the same id gives the same receipt and does nothing, also while the first is still on its
way, and, for what reached the log or its side file, also in another process (`design/log.md`).
"""

from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Literal

import attrs
import trio

from camshaft.actors.command_names import ambiguity
from camshaft.actors.errors import CamshaftError, CommandRefused
from camshaft.actors.expansion import Expansion
from camshaft.actors.flights import Disposition, Flights, Receipt
from camshaft.actors.seat_parts import SeatParts, input_of
from camshaft.kernel import hook_events, hook_merges, shapes
from camshaft.kernel.commands import Enqueue
from camshaft.kernel.messages import Block, ImageBlock, Message, TextBlock, UserMessage
from camshaft.kernel.run import PROMPT_STEPS, Operation, PromptStep, Verdict, admit
from camshaft.kernel.slash_commands import split_command

BUSY_TEXT: Final = "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."
COMPACTING_TEXT: Final = "Cannot submit a prompt while compaction is in progress. Wait for compaction to finish and retry."

Behavior = Literal["steer", "followUp"]

Preflight = Callable[[Disposition | Exception], object]
"""Told once what became of a prompt, inside the step that made it true (SDK-8): what it was accepted as; of a deferred one
also what refused it later."""


RECEIPTS_KEPT_MAX: Final = 1024
"""Receipts of this process that are kept for commands given again; older ones are read from the log."""


class PromptRefused(CommandRefused):
    """A prompt was not accepted (RPC-60). Nothing was stored."""


@shapes.frozen(kw_only=True)
class Position:
    """Where a session stands: at this leaf."""

    leaf_id: str | None
    """None: before the first entry."""


class PositionMoved(PromptRefused):
    """The session does not stand where the client expected, so its prompt would answer something else."""

    def __init__(self, expected: str | None, found: str | None) -> None:
        super().__init__(f"the session stands at entry {found}; expected {expected}. Look at what happened since, and send again")
        self.expected, self.found = expected, found


@shapes.frozen(kw_only=True)
class Given:
    """A prompt on its way through the steps."""

    text: str
    images: tuple[ImageBlock, ...]
    behavior: Behavior | None
    expand: bool
    source: str
    command_id: str | None = None
    expected: Position | None = None
    """Where the client believes the session stands; None: it does not care."""
    preflight: Preflight | None = None


@shapes.frozen
class Deferred:
    """A prompt that waits until `agent_settled` was dispatched."""

    go: Callable[[], Awaitable[None]]
    """Accepts it, and waits for the end of its run."""
    preflight: Preflight | None = None


@shapes.define(eq=False)
class Prompts:
    """Accepts the prompts of one conversation."""

    _parts: SeatParts
    _flights: Flights
    require_open: Callable[[], None]
    expansion: Expansion
    deferred: deque[Deferred] = attrs.field(factory=deque)
    """What waits until `agent_settled` was dispatched, in order (LOOP-42)."""
    held: int = 0
    """How many wait for the session to be idle, to be served before what is deferred."""
    _on_their_way: dict[str, trio.Event] = attrs.field(factory=dict)
    """Command ids of prompts that are being accepted."""
    _receipts: OrderedDict[str, Receipt] = attrs.field(factory=OrderedDict)
    """What became of commands that had an id."""

    async def accept(self, given: Given) -> Receipt:
        """The steps in order; each may end the prompt or hand it on (LOOP-1). One given again only gets its receipt."""
        if given.command_id is None:
            receipt = await self._accepted(given)
        else:
            receipt = await self._once(given.command_id, lambda: self._accepted(given))
        if given.preflight is not None and (receipt.is_repeated or receipt.disposition in ("handled", "queued")):
            given.preflight(receipt.disposition)
        return receipt

    async def _accepted(self, given: Given) -> Receipt:
        heard = await self.hear(given)
        return heard if isinstance(heard, Receipt) else await self.take(heard)

    async def _once(self, command_id: str, accept: Callable[[], Awaitable[Receipt]]) -> Receipt:
        """What `accept` gives, or gave. One that was refused may be tried again."""
        while command_id in self._on_their_way:
            await self._on_their_way[command_id].wait()
        known = self._given_before(command_id)
        if known is not None:
            return attrs.evolve(known, is_repeated=True)
        arrived = self._on_their_way[command_id] = trio.Event()
        try:
            receipt = self._receipts[command_id] = await accept()
            if len(self._receipts) > RECEIPTS_KEPT_MAX:
                self._receipts.popitem(last=False)
            return receipt
        finally:
            del self._on_their_way[command_id]
            arrived.set()

    def _given_before(self, command_id: str) -> Receipt | None:
        """The receipt of this process, else what the log says: the input has an entry, or waits for it."""
        if command_id in self._receipts:
            return self._receipts[command_id]
        entry_id = self._parts.session.entry_of_command(command_id)
        if entry_id is None:
            return None
        is_delivered = self._parts.state.tree.position(entry_id) is not None
        return Receipt(disposition="started" if is_delivered else "queued", entry_id=entry_id)

    async def hear(self, given: Given) -> Receipt | Given:
        """The first half: the steps up to the `input` handlers, which may end the prompt or change it."""
        self.require_open()
        return await self._through(_HEARING, given)

    async def take(self, heard: Given) -> Receipt:
        """The second half: the prompt is queued or starts a run, without waiting for anybody."""
        self.require_open()
        taken = await self._through(_TAKING, heard)
        assert isinstance(taken, Receipt)
        return taken

    async def _through(self, steps: Sequence[PromptStep], given: Given) -> Receipt | Given:
        for step in steps:
            ended = await _STEPS[step](self, given)
            if isinstance(ended, Receipt):
                return ended
            given = ended
        return given

    def names_command(self, given: Given) -> bool:
        """Whether this text runs an extension command instead of reaching the model (LOOP-4)."""
        called = split_command(given.text) if given.expand else None
        return called is not None and called[0] in self._parts.host.commands()

    async def _step_position(self, given: Given) -> Receipt | Given:
        found = self._parts.state.leaf_id
        if given.expected is not None and given.expected.leaf_id != found:
            raise PositionMoved(given.expected.leaf_id, found)
        return given

    async def _step_defer(self, given: Given) -> Receipt | Given:
        if admit(Operation.PROMPT, self._parts.state.live.activity) is not Verdict.DEFER:
            return given
        self.deferred.append(Deferred(lambda: self._accept_and_wait(given), given.preflight))
        return Receipt(disposition="deferred")

    async def _accept_and_wait(self, given: Given) -> None:
        try:
            receipt = await self.accept(given)
        except CamshaftError as error:
            if given.preflight is not None:
                given.preflight(error)
            raise
        await receipt.wait()

    async def _step_command(self, given: Given) -> Receipt | Given:
        called = split_command(given.text) if given.expand else None
        if called is None:
            return given
        unclear = ambiguity(self._parts.host.commands(), called[0]) if self._parts.options.ambiguous_commands == "refuse" else None
        if unclear is not None:
            raise PromptRefused(unclear)
        ran = await self._parts.host.run_command(*called, self._flights.wait_idle)
        return Receipt(disposition="handled") if ran else given

    async def _step_compacting(self, given: Given) -> Receipt | Given:
        if admit(Operation.PROMPT, self._parts.state.live.activity) is Verdict.REFUSE:
            raise PromptRefused(COMPACTING_TEXT)
        return given

    async def _step_input(self, given: Given) -> Receipt | Given:
        if not self._parts.host.has("input"):
            return given
        event = hook_events.InputEvent(
            text=given.text,
            images=given.images or None,
            source=given.source,
            streaming_behavior=given.behavior if self._parts.state.is_busy else None,
        )
        self._parts.host.hearing += 1
        try:
            plan = await self._parts.host.dispatch("input", hook_merges.InputPlan(event=event))
        finally:
            self._parts.host.hearing -= 1
        if plan.handled:
            return Receipt(disposition="handled")
        return attrs.evolve(given, text=plan.event.text, images=plan.event.images or ())

    async def _step_expand(self, given: Given) -> Receipt | Given:
        return self._expanded(given) if given.expand else given

    def _expanded(self, given: Given) -> Given:
        return attrs.evolve(given, text=self.expansion.expanded(given.text))

    async def _step_queue(self, given: Given) -> Receipt | Given:
        if admit(Operation.PROMPT, self._parts.state.live.activity) is not Verdict.QUEUE_IF_TOLD:
            return given
        if given.behavior is None:
            raise PromptRefused(BUSY_TEXT)
        return self.enqueue(given.behavior, self._user_message(given), given.command_id)

    async def _step_model(self, given: Given) -> Receipt | Given:
        refused = self._parts.unready()
        if refused is not None:
            raise PromptRefused(refused)
        return given

    async def _step_start(self, given: Given) -> Receipt | Given:
        verdict = admit(Operation.PROMPT, self._parts.state.live.activity)
        if verdict is not Verdict.START:
            return await self._accepted(attrs.evolve(given, expand=False))
        return self._flights.start("prompt", self._user_message(given), given.command_id, given.preflight)

    def _user_message(self, given: Given) -> UserMessage:
        blocks: tuple[Block, ...] = (TextBlock(text=given.text), *given.images)
        return UserMessage(content=blocks, timestamp=self._parts.session.now_ms())

    async def queue_text(
        self, way: Behavior, text: str, images: Sequence[ImageBlock], source: str, command_id: str | None = None
    ) -> Disposition:
        """Queues a text after its `input` handlers (QUE-8), once for a command id. Raises PromptRefused for the name of a command."""
        given = Given(text=text, images=tuple(images), behavior=way, expand=True, source=source, command_id=command_id)
        if command_id is None:
            return (await self._queue_text(way, given)).disposition
        return (await self._once(command_id, lambda: self._queue_text(way, given))).disposition

    async def _queue_text(self, way: Behavior, given: Given) -> Receipt:
        self.require_open()
        called = split_command(given.text)
        if called is not None and called[0] in self._parts.host.commands():
            raise PromptRefused(
                f'Extension command "/{called[0]}" cannot be queued. Use prompt() or execute the command when not streaming.'
            )
        passed = await self._step_input(given)
        if isinstance(passed, Receipt):
            return passed
        self.require_open()
        return self.enqueue(way, self._user_message(self._expanded(passed)), given.command_id)

    def enqueue(self, way: Behavior, message: Message, command_id: str | None) -> Receipt:
        """Queues a message. Raises CommandRefused when too many wait."""
        commit = self._parts.posted(Enqueue(way=way, message=message, command_id=command_id))
        record = input_of(commit)
        return Receipt(disposition="queued", input_id=record.input_id, entry_id=record.entry_id)


_HEARING: Final = PROMPT_STEPS[: PROMPT_STEPS.index(PromptStep.INPUT) + 1]
_TAKING: Final = PROMPT_STEPS[PROMPT_STEPS.index(PromptStep.INPUT) + 1 :]

_STEPS: Final[Mapping[PromptStep, Callable[[Prompts, Given], Awaitable[Receipt | Given]]]] = {
    PromptStep.POSITION: Prompts._step_position,
    PromptStep.DEFER: Prompts._step_defer,
    PromptStep.COMMAND: Prompts._step_command,
    PromptStep.COMPACTING: Prompts._step_compacting,
    PromptStep.INPUT: Prompts._step_input,
    PromptStep.EXPAND: Prompts._step_expand,
    PromptStep.QUEUE: Prompts._step_queue,
    PromptStep.MODEL: Prompts._step_model,
    PromptStep.START: Prompts._step_start,
}
