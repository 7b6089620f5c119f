"""How a prompt is accepted: the steps of PROMPT_STEPS, one performer each (LOOP-1, RPC-60).

What a step decides by is the table ADMISSION of `kernel/run.py`. A step ends the prompt with a
receipt, hands it on, perhaps changed, or raises PromptRefused; then nothing was stored. There
is no checkpoint between finding the session idle and claiming it, so of two prompts at once
one starts and the other sees a busy session (RPC-63).
"""

from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal

import attrs

from camshaft.actors.command_names import ambiguity
from camshaft.actors.errors import CommandRefused
from camshaft.actors.expansion import Expansion
from camshaft.actors.flights import Disposition, Flights, Receipt
from camshaft.actors.seat_parts import SeatParts, input_of
from camshaft.kernel import hook_events, hook_merges
from camshaft.kernel.commands import Enqueue
from camshaft.kernel.messages import Block, ImageBlock, Message, TextBlock, UserMessage
from camshaft.kernel.run import PROMPT_STEPS, Operation, PromptStep, Verdict, admit
from camshaft.kernel.slash_commands import split_command

BUSY_TEXT: Final = "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."
COMPACTING_TEXT: Final = "Cannot submit a prompt while compaction is in progress. Wait for compaction to finish and retry."

Behavior = Literal["steer", "followUp"]


class PromptRefused(CommandRefused):
    """A prompt was not accepted (RPC-60). Nothing was stored."""


@attrs.frozen(kw_only=True)
class Given:
    """A prompt on its way through the steps."""

    text: str
    images: tuple[ImageBlock, ...]
    behavior: Behavior | None
    expand: bool
    source: str
    command_id: str | None = None


@attrs.define(eq=False)
class Prompts:
    """Accepts the prompts of one conversation."""

    _parts: SeatParts
    _flights: Flights
    require_open: Callable[[], None]
    expansion: Expansion
    deferred: deque[Callable[[], Awaitable[Any]]] = attrs.field(factory=deque)
    held: int = 0
    """How many wait for the session to be idle, to be served before what is deferred."""
    """What waits until `agent_settled` was dispatched, in order (LOOP-42)."""

    async def accept(self, given: Given) -> Receipt:
        """The steps in order; each may end the prompt or hand it on (LOOP-1)."""
        heard = await self.hear(given)
        return heard if isinstance(heard, Receipt) else await self.take(heard)

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

    async def _step_defer(self, given: Given) -> Receipt | Given:
        if admit(Operation.PROMPT, self._parts.state.live.activity) is not Verdict.DEFER:
            return given
        self.deferred.append(lambda: self._accept_and_wait(given))
        return Receipt(disposition="deferred")

    async def _accept_and_wait(self, given: Given) -> None:
        await (await self.accept(given)).wait()

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
            return await self.accept(attrs.evolve(given, expand=False))
        return self._flights.start("prompt", self._user_message(given), given.command_id)

    def _user_message(self, given: Given) -> UserMessage:
        blocks: tuple[Block, ...] = (TextBlock(text=given.text), *given.images)
        return UserMessage(content=blocks, timestamp=self._parts.session.now_ms())

    async def queue_text(self, way: Behavior, text: str, images: Sequence[ImageBlock]) -> Disposition:
        """Queues a text after its `input` handlers (QUE-8). Raises PromptRefused for the name of a command."""
        self.require_open()
        called = split_command(text)
        if called is not None and called[0] in self._parts.host.commands():
            raise PromptRefused(
                f'Extension command "/{called[0]}" cannot be queued. Use prompt() or execute the command when not streaming.'
            )
        given = Given(text=text, images=tuple(images), behavior=way, expand=True, source="interactive")
        passed = await self._step_input(given)
        if isinstance(passed, Receipt):
            return passed.disposition
        self.require_open()
        return self.enqueue(way, self._user_message(self._expanded(passed)), None).disposition

    def enqueue(self, way: Behavior, message: Message, command_id: str | None) -> Receipt:
        """Queues a message. Raises CommandRefused when too many wait."""
        commit = self._parts.posted(Enqueue(way=way, message=message, command_id=command_id))
        record = input_of(commit)
        return Receipt(disposition="queued", input_id=record.input_id, entry_id=record.entry_id)


_HEARING: Final = PROMPT_STEPS[: PROMPT_STEPS.index(PromptStep.INPUT) + 1]
_TAKING: Final = PROMPT_STEPS[PROMPT_STEPS.index(PromptStep.INPUT) + 1 :]

_STEPS: Final[Mapping[PromptStep, Callable[[Prompts, Given], Awaitable[Receipt | Given]]]] = {
    PromptStep.DEFER: Prompts._step_defer,
    PromptStep.COMMAND: Prompts._step_command,
    PromptStep.COMPACTING: Prompts._step_compacting,
    PromptStep.INPUT: Prompts._step_input,
    PromptStep.EXPAND: Prompts._step_expand,
    PromptStep.QUEUE: Prompts._step_queue,
    PromptStep.MODEL: Prompts._step_model,
    PromptStep.START: Prompts._step_start,
}
