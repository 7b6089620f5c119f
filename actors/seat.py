"""One conversation: accepts input, starts runs, and is what extensions and hosts act through.

The seat owns the event stream, the tasks of commands and runs, and the session cell (session,
extension host, loop, executor). What an operation does in each activity is the table
ADMISSION, and the steps a prompt passes are PROMPT_STEPS, both in `kernel/run.py`; this file
walks them. Reads and posts are plain methods; what may take time is awaitable.

Who waits for whom. A prompt's caller waits for the end of its run, never the other way round;
cancelling the wait leaves the run alone (SDK-23). Waiting for a run from inside it raises
SelfWait. What is left if the process dies here: an accepted prompt is an `input` record.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Literal

import attrs
import trio

from camshaft.actors.actor import Failure, Limbo, guard, operation, refuse_self_wait
from camshaft.actors.agent_loop import AgentLoop
from camshaft.actors.delivery import Delivery
from camshaft.actors.errors import CamshaftError, CommandRefused
from camshaft.actors.event_stream import EventStream, Follower, Listener
from camshaft.actors.extension_host import ExtensionHost
from camshaft.actors.loading import LoadError
from camshaft.actors.providers import Provider, find_model, provider_of
from camshaft.actors.runtime import CommandInfo
from camshaft.actors.session import SessionActor
from camshaft.actors.signal import AbortSignal
from camshaft.actors.supervision import ChildSpec, supervise
from camshaft.actors.tool_executor import CallOutcome, ToolExecutor
from camshaft.actors.world import World
from camshaft.kernel import hook_events, hook_merges
from camshaft.kernel.commands import (
    AppendCustom,
    AppendCustomMessage,
    AppendMessage,
    BecomeIdle,
    ClaimRun,
    ClearQueues,
    Command,
    Enqueue,
    Hold,
    QueueName,
    RequestAbort,
    SelectLevel,
    SelectModel,
    SelectTools,
    SetLabel,
    SetName,
    SetQueueMode,
)
from camshaft.kernel.errors import Rejection
from camshaft.kernel.events import DiagnosticEvent, ExtensionErrorEvent, ThinkingLevelChanged
from camshaft.kernel.hook_events import CustomInput
from camshaft.kernel.messages import BashExecutionMessage, Block, ImageBlock, Message, ModelMessage, TextBlock, UserMessage
from camshaft.kernel.models import THINKING_LEVELS, Model, clamp_level
from camshaft.kernel.persistent import FrozenDict, Json
from camshaft.kernel.prompt import PromptOptions, prompt_text
from camshaft.kernel.run import Operation, PromptStep, Verdict, admit
from camshaft.kernel.run_data import Run, State
from camshaft.kernel.starting import custom_message
from camshaft.kernel.state import Commit, Queued, SessionState
from camshaft.kernel.tools import RegisteredTool, Signal, with_active

BUSY_TEXT: Final = "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."
COMPACTING_TEXT: Final = "Cannot submit a prompt while compaction is in progress. Wait for compaction to finish and retry."
NO_MODEL_TEXT: Final = "No model selected. Configure a model in models.json, or name one with --model or the option `model`."
SHUTDOWN_S: Final = 5.0
"""Time for shutdown hooks (RPC-95): a hook that hangs must not keep a process from ending."""

Disposition = Literal["handled", "queued", "started", "deferred"]
Behavior = Literal["steer", "followUp"]


class PromptRefused(CommandRefused):
    """A prompt was not accepted (RPC-60). Nothing was stored."""


class UnknownModel(CommandRefused):
    """A model reference names no model, or several."""


class SeatClosed(CamshaftError):
    """The conversation was closed."""


@attrs.define(eq=False)
class _Flight:
    """A run under way and who waits for it."""

    run_id: str
    loop: AgentLoop
    done: trio.Event = attrs.field(factory=trio.Event)
    error: Exception | None = None


@attrs.frozen(kw_only=True)
class Receipt:
    """What became of an input (SDK-8)."""

    disposition: Disposition
    input_id: str | None = None
    entry_id: str | None = None
    """Id its entry has, or will have when it is delivered."""
    run_id: str | None = None
    _flight: _Flight | None = attrs.field(default=None, repr=False)

    async def wait(self) -> None:
        """Returns when the run it started has settled, deferred runs included. Raises what ended the run abnormally.

        Returns at once if it started none. Raises SelfWait from inside that run.
        """
        if self._flight is None:
            return
        refuse_self_wait(f"run {self._flight.run_id}", "waiting for a prompt")
        await self._flight.done.wait()
        if self._flight.error is not None:
            raise self._flight.error


@attrs.frozen(kw_only=True)
class Cleared:
    """What was taken out of the queues (QUE-14)."""

    steering: tuple[str, ...]
    follow_up: tuple[str, ...]
    custom: tuple[Message, ...] = ()


@attrs.frozen(kw_only=True)
class SeatParts:
    """What a seat is made of; put together by `open_kernel`."""

    world: World
    session: SessionActor
    host: ExtensionHost
    stream: EventStream
    limbo: Limbo
    nursery: trio.Nursery
    providers: tuple[Provider, ...]
    base_prompt: PromptOptions
    mode: str
    abort_grace_s: float | None
    continuations_max: int | None
    found: tuple[DiagnosticEvent, ...] = ()


@attrs.define(eq=False)
class Seat:
    """The host's face of one conversation."""

    _parts: SeatParts
    _executor: ToolExecutor = attrs.field(init=False)
    _delivery: Delivery = attrs.field(init=False)
    _flight: _Flight | None = None
    _deferred: deque[Callable[[], Awaitable[Any]]] = attrs.field(factory=deque)
    _sending: int = 0
    _sent: trio.Event = attrs.field(factory=trio.Event)
    _forced: str | None = None
    _prompt: tuple[tuple[str, ...], Mapping[str, RegisteredTool], PromptOptions] | None = None
    """The prompt options, and the active set and tools they were made from."""
    _closed: bool = False
    _started: bool = False

    def __attrs_post_init__(self) -> None:
        parts = self._parts
        self._delivery = Delivery(parts.session, parts.host, parts.stream)
        self._executor = ToolExecutor(parts.session, parts.host, parts.stream, parts.limbo, parts.nursery)

    # -- reads ---------------------------------------------------------------------------

    @property
    def state(self) -> SessionState:
        """The session's snapshot."""
        return self._parts.session.state

    @property
    def world(self) -> World:
        """The host's ports."""
        return self._parts.world

    @property
    def cwd(self) -> str:
        """The working directory, absolute."""
        return self._parts.base_prompt.cwd

    @property
    def mode(self) -> str:
        """How the host shows things."""
        return self._parts.mode

    @property
    def is_idle(self) -> bool:
        """No run and no compaction (LOOP-37)."""
        return self.state.is_idle

    @property
    def signal(self) -> AbortSignal | None:
        """The abort signal of the active run; None outside `agent_start` … `agent_before_settle`."""
        return self._flight.loop.signal if self._flight is not None and self.state.live.signal else None

    @property
    def run_signal(self) -> AbortSignal | None:
        """The signal whose stages bound what handlers do: of the run that is starting, active or settling."""
        return self._flight.loop.signal if self._flight is not None else None

    @property
    def model(self) -> Model | None:
        """The selected model."""
        return self.state.selection.model

    @property
    def thinking_level(self) -> str:
        """The effective thinking level."""
        return self.state.selection.thinking_level

    @property
    def active_tools(self) -> tuple[str, ...]:
        """The active set, in order."""
        return self.state.selection.active_tools

    @property
    def tools(self) -> Mapping[str, RegisteredTool]:
        """The visible tools by name."""
        return self._parts.host.tools

    @property
    def providers(self) -> tuple[Provider, ...]:
        """The model providers."""
        return self._parts.providers

    @property
    def session_file(self) -> str | None:
        """Path of the session file, whether it exists yet or not; None in memory."""
        return self._parts.session.log.path

    @property
    def system_prompt(self) -> str:
        """The effective prompt text: the one forced for this run, or that of the base options."""
        return self._forced if self._forced is not None else prompt_text(self.prompt_options())

    @property
    def context_messages(self) -> Sequence[Message]:
        """The messages in context; a lazy view."""
        return self.state.projection.messages

    @property
    def llm_messages(self) -> Sequence[ModelMessage]:
        """The context converted for a model; a lazy view."""
        return self.state.projection.llm_messages

    @property
    def queue(self) -> Cleared:
        """What waits in the queues."""
        return _queue_of(self.state)

    @property
    def errors(self) -> tuple[ExtensionErrorEvent, ...]:
        """The last extension errors, oldest first."""
        return tuple(self._parts.host.errors)

    @property
    def load_errors(self) -> tuple[LoadError, ...]:
        """Extensions and registrations that were refused while loading."""
        return tuple(self._parts.host.load_errors)

    @property
    def found(self) -> tuple[DiagnosticEvent, ...]:
        """What opening noticed before anybody could listen: damaged lines, an unfinished run."""
        return self._parts.found

    def commands(self) -> tuple[CommandInfo, ...]:
        """What can be called as `/name`."""
        return self._parts.host.command_infos()

    # -- events --------------------------------------------------------------------------

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` with every event, in order, inside the step that made it true; returns its unsubscribe."""
        return self._parts.stream.subscribe(listener)

    def follow(self) -> AbstractAsyncContextManager[Follower]:
        """A lossless async iterator over events; one that falls behind slows the run."""
        return self._parts.stream.follow()

    # -- prompts -------------------------------------------------------------------------

    async def prompt(
        self,
        text: str,
        *,
        images: Sequence[ImageBlock] = (),
        streaming_behavior: Behavior | None = None,
        expand: bool = True,
        source: str = "interactive",
        command_id: str | None = None,
    ) -> Receipt:
        """Submits, and waits until the run it started has settled, deferred runs included (SDK-8).

        Raises PromptRefused before acceptance, and what ended the run abnormally (LOOP-34).
        """
        receipt = await self.submit(
            text, images=images, streaming_behavior=streaming_behavior, expand=expand, source=source, command_id=command_id
        )
        await receipt.wait()
        return receipt

    async def submit(
        self,
        text: str,
        *,
        images: Sequence[ImageBlock] = (),
        streaming_behavior: Behavior | None = None,
        expand: bool = True,
        source: str = "interactive",
        command_id: str | None = None,
    ) -> Receipt:
        """Passes a prompt through PROMPT_STEPS; a receipt as soon as it is accepted. Raises PromptRefused."""
        if streaming_behavior not in (None, "steer", "followUp"):
            raise PromptRefused(f"streamingBehavior {streaming_behavior!r}; expected 'steer' or 'followUp'")
        given = _Given(text=text, images=tuple(images), behavior=streaming_behavior, expand=expand, source=source, command_id=command_id)
        return await self._pass(given)

    async def _pass(self, given: "_Given") -> Receipt:
        """The steps in order; each may end the prompt or hand it on (LOOP-1)."""
        self._require_open()
        for step in PromptStep:
            ended = await _STEPS[step](self, given)
            if isinstance(ended, Receipt):
                return ended
            given = ended
        raise AssertionError("the last step starts a run")

    async def _step_defer(self, given: "_Given") -> "Receipt | _Given":
        if admit(Operation.PROMPT, self.state.live.activity) is not Verdict.DEFER:
            return given
        self._deferred.append(lambda: self._pass_and_wait(given))
        return Receipt(disposition="deferred")

    async def _pass_and_wait(self, given: "_Given") -> None:
        await (await self._pass(given)).wait()

    async def _step_command(self, given: "_Given") -> "Receipt | _Given":
        if not given.expand or not given.text.startswith("/"):
            return given
        name, _, arguments = given.text[1:].partition(" ")
        ran = await self._parts.host.run_command(name, arguments, self.wait_idle)
        return Receipt(disposition="handled") if ran else given

    async def _step_compacting(self, given: "_Given") -> "Receipt | _Given":
        if admit(Operation.PROMPT, self.state.live.activity) is Verdict.REFUSE:
            raise PromptRefused(COMPACTING_TEXT)
        return given

    async def _step_input(self, given: "_Given") -> "Receipt | _Given":
        if not self._parts.host.has("input"):
            return given
        event = hook_events.InputEvent(
            text=given.text,
            images=given.images or None,
            source=given.source,
            streaming_behavior=given.behavior if self.state.is_busy else None,
        )
        plan = await self._parts.host.dispatch("input", hook_merges.InputPlan(event=event))
        if plan.handled:
            return Receipt(disposition="handled")
        return attrs.evolve(given, text=plan.event.text, images=plan.event.images or ())

    async def _step_expand(self, given: "_Given") -> "Receipt | _Given":
        return given

    async def _step_queue(self, given: "_Given") -> "Receipt | _Given":
        if admit(Operation.PROMPT, self.state.live.activity) is not Verdict.QUEUE_IF_TOLD:
            return given
        if given.behavior is None:
            raise PromptRefused(BUSY_TEXT)
        return self._enqueue(given.behavior, self._user_message(given), given.command_id)

    async def _step_model(self, given: "_Given") -> "Receipt | _Given":
        refused = self._unready()
        if refused is not None:
            raise PromptRefused(refused)
        return given

    async def _step_start(self, given: "_Given") -> "Receipt | _Given":
        verdict = admit(Operation.PROMPT, self.state.live.activity)
        if verdict is not Verdict.START:
            return await self._pass(attrs.evolve(given, expand=False))
        return self._start("prompt", self._user_message(given), given.command_id)

    def _unready(self) -> str | None:
        """Why no request can be made, or None."""
        model = self.model
        if model is None:
            return NO_MODEL_TEXT
        provider = provider_of(self.providers, model)
        if provider is not None and not provider.configured():
            return f"No API key found for {model.provider}. Set it in models.json, in the environment, or with an option."
        return None

    def _user_message(self, given: "_Given") -> UserMessage:
        blocks: tuple[Block, ...] = (TextBlock(text=given.text), *given.images)
        return UserMessage(content=blocks, timestamp=self._now())

    def _start(self, way: Literal["prompt", "custom"], message: Message, command_id: str | None = None) -> Receipt:
        """Claims the session and starts the run, without a checkpoint in between (LOOP-6)."""
        parts = self._parts
        run_id = parts.world.ids.token()
        commit = self._posted(ClaimRun(way=way, message=message, run_id=run_id, command_id=command_id))
        record: Any = commit.records[0]
        item = Queued(input_id=record.input_id, entry_id=record.entry_id, way=way, message=message, command_id=command_id)
        loop = AgentLoop(
            run=Run(id=run_id, input=item),
            signal=AbortSignal(parts.abort_grace_s),
            session=parts.session,
            host=parts.host,
            stream=parts.stream,
            executor=self._executor,
            limbo=parts.limbo,
            conversation=self,
        )
        outer, self._flight = self._flight, _Flight(run_id, loop)
        parts.nursery.start_soon(self._fly, self._flight, outer)
        return Receipt(disposition="started", input_id=item.input_id, entry_id=item.entry_id, run_id=run_id, flight=self._flight)

    async def _fly(self, flight: _Flight, outer: _Flight | None) -> None:
        """Runs the loop under supervision; whoever waits is answered, whatever happens."""
        try:
            with operation(f"run {flight.run_id}"):
                await supervise((ChildSpec(name="agent_loop", start=flight.loop.serve, restart=self._close_crashed),))
            flight.error = flight.loop.run.error
        finally:
            if self._flight is flight:
                self._flight = outer if outer is not None and not outer.done.is_set() else None
            flight.done.set()

    def _close_crashed(self, error: Exception) -> bool:
        """The loop crashed: once more from `settling`, so that the run ends in order; then no more."""
        flight = self._flight
        assert flight is not None
        self._parts.stream.publish(DiagnosticEvent(source="agent_loop", message=f"the agent loop crashed: {error!r}"))
        if flight.loop.run.state in (State.SETTLING, State.AFTER):
            self._parts.session.post(BecomeIdle())
            flight.loop.run = attrs.evolve(flight.loop.run, state=State.IDLE, error=flight.loop.run.error or error)
            return False
        flight.loop.run = attrs.evolve(flight.loop.run, state=State.SETTLING, error=error)
        return True

    # -- queues --------------------------------------------------------------------------

    async def steer(self, text: str, *, images: Sequence[ImageBlock] = ()) -> Disposition:
        """Queues a steering message; `queued` or `handled` (QUE-8). Raises PromptRefused for a command."""
        return await self._queue_text("steer", text, images)

    async def follow_up(self, text: str, *, images: Sequence[ImageBlock] = ()) -> Disposition:
        """Queues a follow-up; `queued` or `handled` (QUE-8). Raises PromptRefused for a command."""
        return await self._queue_text("followUp", text, images)

    async def _queue_text(self, way: Behavior, text: str, images: Sequence[ImageBlock]) -> Disposition:
        self._require_open()
        name = text[1:].partition(" ")[0]
        if text.startswith("/") and name in self._parts.host.commands():
            raise PromptRefused(f'Extension command "/{name}" cannot be queued. Use prompt() or execute the command when not streaming.')
        given = _Given(text=text, images=tuple(images), behavior=way, expand=True, source="interactive")
        passed = await self._step_input(given)
        if isinstance(passed, Receipt):
            return passed.disposition
        return self._enqueue(way, self._user_message(passed), None).disposition

    def _enqueue(self, way: Behavior, message: Message, command_id: str | None) -> Receipt:
        commit = self._posted(Enqueue(way=way, message=message, command_id=command_id))
        record: Any = commit.records[0]
        return Receipt(disposition="queued", input_id=record.input_id, entry_id=record.entry_id)

    def clear_queue(self) -> Cleared:
        """Empties both queues and returns what was in them; a message already taken is delivered all the same (QUE-14)."""
        queues = self.state.queues
        dropped = attrs.evolve(queues, taken=())
        before = _queue_of(attrs.evolve(self.state, queues=dropped))
        self._posted(ClearQueues())
        return before

    def set_queue_mode(self, queue: QueueName, mode: Literal["one-at-a-time", "all"]) -> None:
        """How a queue is polled from now on (QUE-1)."""
        self._posted(SetQueueMode(queue=queue, mode=mode))

    # -- abort and waiting ---------------------------------------------------------------

    def request_abort(self) -> None:
        """Asks the active run to stop; returns at once."""
        if self._flight is None or admit(Operation.ABORT, self.state.live.activity) is not Verdict.NOW:
            return
        self._posted(RequestAbort())
        self._flight.loop.signal.request()

    async def abort(self) -> None:
        """Asks the active run to stop and waits until it has settled. Raises SelfWait from inside it."""
        flight = self._flight
        self.request_abort()
        if flight is not None:
            refuse_self_wait(f"run {flight.run_id}", "abort()")
        await self.wait_idle()

    def cancel_retry(self) -> None:
        """Ends a retry wait without aborting the run (LOOP-66)."""
        if self._flight is not None:
            self._flight.loop.retry_cancelled.set()

    async def wait_idle(self) -> None:
        """Returns when no run is active and none is deferred; at once if so. Raises SelfWait from inside a run."""
        while self._flight is not None and not self.state.is_idle:
            refuse_self_wait(f"run {self._flight.run_id}", "wait_idle()")
            await self._flight.done.wait()

    # -- messages of extensions ----------------------------------------------------------

    async def send_custom(self, message: CustomInput, *, trigger_turn: bool | None = None, deliver_as: str | None = None) -> Receipt | None:
        """Sends a custom message by QUE-11; when it is appended at once, handlers have heard of it on return (EVT-39)."""
        self._require_open()
        made = custom_message(message, self._now())
        done = self._send(made, trigger_turn, deliver_as)
        if done is None:
            await self._delivery.notify(made)
        return done

    def send_message(self, message: CustomInput, trigger_turn: bool | None, deliver_as: str | None) -> None:
        """As `send_custom` for extensions: failures are reported, handlers hear of it later (API-12)."""
        made = custom_message(message, self._now())
        try:
            done = self._send(made, trigger_turn, deliver_as)
        except CommandRefused as error:
            self._parts.host.report("<runtime>", "send_message", str(error))
            return
        if done is None:
            self._delivery.notify_later(made)

    def _send(self, message: Any, trigger_turn: bool | None, deliver_as: str | None) -> Receipt | None:
        """The table of QUE-11; None if the message was appended now."""
        if deliver_as == "nextTurn":
            commit = self._posted(Enqueue(way="nextTurn", message=message))
            record: Any = commit.records[0]
            return Receipt(disposition="queued", input_id=record.input_id, entry_id=record.entry_id)
        quiet = trigger_turn is False or (trigger_turn is None and not self.state.is_busy)
        verdict = admit(Operation.CUSTOM_QUIET if quiet else Operation.CUSTOM_TRIGGER, self.state.live.activity)
        if verdict is Verdict.HOLD:
            self._posted(Hold(message=message))
            return Receipt(disposition="queued")
        if verdict is Verdict.QUEUE:
            return self._enqueue("followUp" if deliver_as == "followUp" else "steer", message, None)
        if verdict is Verdict.START:
            return self._start_custom(message)
        if verdict is Verdict.DEFER:
            self._deferred.append(lambda: self._start_and_wait(message))
            return Receipt(disposition="deferred")
        if verdict is Verdict.REFUSE:
            raise CommandRefused(COMPACTING_TEXT)
        self._posted(AppendCustomMessage(message=message))
        self._delivery.tell(message)
        return None

    def _start_custom(self, message: Message) -> Receipt:
        self._require_open()
        refused = self._unready()
        if refused is not None:
            raise CommandRefused(refused)
        return self._start("custom", message)

    async def _start_and_wait(self, message: Message) -> None:
        await self._start_custom(message).wait()

    def send_user_message(self, text: str, images: Sequence[ImageBlock], deliver_as: str | None, expand: bool) -> None:
        """Sends a user message for an extension; returns at once, failures are reported (QUE-13)."""
        behavior: Behavior | None = "steer" if deliver_as == "steer" else "followUp" if deliver_as == "followUp" else None
        given = _Given(text=text, images=tuple(images), behavior=behavior, expand=expand, source="extension")
        if admit(Operation.PROMPT, self.state.live.activity) is Verdict.DEFER:
            self._deferred.append(lambda: self._send_user(given, wait=True))
            return
        self._sending += 1
        self._parts.nursery.start_soon(self._counted_send, given)

    async def _counted_send(self, given: "_Given") -> None:
        try:
            await self._send_user(given, wait=False)
        finally:
            self._sending -= 1
            if not self._sending:
                self._sent.set()
                self._sent = trio.Event()

    async def _send_user(self, given: "_Given", *, wait: bool) -> None:
        outcome = await guard(self._pass, given)
        if isinstance(outcome, Failure):
            self._parts.host.report("<runtime>", "send_user_message", outcome.text)
        elif wait:
            self._report_failed(await guard(_receipt_of(outcome).wait))

    def _report_failed(self, outcome: Any) -> None:
        if isinstance(outcome, Failure):
            self._parts.host.report("<runtime>", "send_user_message", outcome.text)

    async def sends_queued(self) -> None:
        """Returns when every message that handlers asked to send was accepted or refused (EVT-51)."""
        while self._sending:
            await self._sent.wait()

    @property
    def has_deferred(self) -> bool:
        """Whether prompts wait for the end of `agent_settled` (LOOP-42)."""
        return bool(self._deferred)

    async def run_deferred(self) -> None:
        """Runs the next deferred prompt as a whole run; a failure is reported."""
        outcome = await guard(self._deferred.popleft())
        self._report_failed(outcome)

    # -- appends and settings ------------------------------------------------------------

    def append_entry(self, custom_type: str, data: Json) -> str:
        """Appends a `custom` entry now; its id."""
        return self._posted(AppendCustom(custom_type=custom_type, data=data)).entries[0].id

    def append_message(self, message: Message) -> str:
        """Appends a message entry as it is; its id. Raises CommandRefused for what cannot be stored (MSG-24, MSG-36)."""
        return self._posted(AppendMessage(message=message)).entries[0].id

    def set_label(self, entry_id: str, label: str | None) -> None:
        """Labels an entry; None clears. Raises CommandRefused for an unknown id."""
        self._posted(SetLabel(target_id=entry_id, label=label))

    def set_session_name(self, name: str) -> None:
        """Names the session; empty clears."""
        self._posted(SetName(name=name))
        self._parts.host.notify("session_info_changed", hook_events.SessionInfoChangedEvent(name=self.state.tree.name))

    def set_active_tools(self, names: Sequence[str]) -> None:
        """Replaces the active set; unknown and hidden names are ignored (EXPO-3)."""
        self._posted(SelectTools(active_tools=with_active(self.active_tools, names, self.tools)))

    def record_bash(self, message: BashExecutionMessage) -> None:
        """Stores the result of a command the user ran; held to the end of the run while one is active (LOOP-35)."""
        if admit(Operation.SHELL, self.state.live.activity) is Verdict.HOLD:
            self._posted(Hold(message=message))
        else:
            self._posted(AppendMessage(message=message))

    async def set_model(self, reference: str | Model) -> bool:
        """Uses another model; False if it has no credentials. Raises UnknownModel."""
        return await self.select_model(reference, "set")

    async def select_model(self, model: Model | str, source: str) -> bool:
        """As `set_model`, telling handlers where the wish came from."""
        found = find_model(self.providers, model) if isinstance(model, str) else model
        if found is None:
            known = ", ".join([each.reference for provider in self.providers for each in provider.models]) or "none"
            raise UnknownModel(f"no model {model!r}; the models are: {known}")
        provider = provider_of(self.providers, found)
        if provider is not None and not provider.configured():
            return False
        previous = self.model
        level = clamp_level(found, self.thinking_level)
        before = self.thinking_level
        self._posted(SelectModel(model=found, thinking_level=level))
        if level != before:
            self._tell_level(level, before)
        if previous != found and self._parts.host.has("model_select"):
            event = hook_events.ModelSelectEvent(model=found, previous_model=previous, source=source)
            await self._parts.host.dispatch("model_select", event)
        return True

    def set_thinking_level(self, level: str) -> None:
        """Uses another level, clamped to the model; nothing if that changes nothing. Raises CommandRefused for an unknown one."""
        if level not in THINKING_LEVELS:
            raise CommandRefused(f"thinking level {level!r}; expected one of {', '.join(THINKING_LEVELS)}")
        before = self.thinking_level
        effective = clamp_level(self.model, level) if self.model is not None else level
        if effective != before:
            self._posted(SelectLevel(thinking_level=effective))
            self._tell_level(effective, before)

    def _tell_level(self, level: str, before: str) -> None:
        self._parts.stream.publish(ThinkingLevelChanged(level=level))
        event = hook_events.ThinkingLevelSelectEvent(level=level, previous_level=before)
        self._parts.host.notify("thinking_level_select", event)

    # -- what the loop asks --------------------------------------------------------------

    @property
    def continuations_max(self) -> int | None:
        """Continuations extensions may ask for in one run; None: no limit (BND-35)."""
        return self._parts.continuations_max

    def prompt_options(self) -> PromptOptions:
        """The base options of the system prompt, with the tools as they are now; the same object while those are the same."""
        known = self._prompt
        if known is not None and known[0] is self.active_tools and known[1] is self.tools:
            return known[2]
        active = [self.tools[name].definition for name in self.active_tools if name in self.tools]
        options = attrs.evolve(
            self._parts.base_prompt,
            selected_tools=tuple([tool.name for tool in active]),
            tool_snippets=FrozenDict({tool.name: " ".join(tool.prompt_snippet.split()) for tool in active if tool.prompt_snippet}),
            tool_guidelines=FrozenDict({tool.name: tool.prompt_guidelines for tool in active if tool.prompt_guidelines}),
        )
        self._prompt = (self.active_tools, self.tools, options)
        return options

    def force_prompt(self, text: str | None) -> None:
        """What `system_prompt` shows during this run; None: the base options."""
        self._forced = text

    async def execute_nested(
        self, caller: Any, name: str, arguments: Any, signal: Signal | None, on_update: Callable[[Any], None] | None
    ) -> CallOutcome:
        """Runs a callable tool for the call `caller` (NEST)."""
        return await self._executor.execute_nested(caller, name, arguments, signal, on_update)

    # -- life ----------------------------------------------------------------------------

    async def start(self, reason: str = "startup") -> None:
        """Tells extensions that the session is bound; once."""
        self._started = True
        if self._parts.host.has("session_start"):
            await self._parts.host.dispatch("session_start", hook_events.SessionStartEvent(reason=reason))

    async def close(self, at_once: bool = False) -> None:
        """Aborts, runs shutdown hooks, closes the log. Idempotent; bounded, also under cancellation (SDK-22, SDK-23).

        `at_once` ends what runs without the grace. Raises SelfWait from inside a run; nothing is closed then.
        """
        if self._closed:
            return
        if self._flight is not None:
            refuse_self_wait(f"run {self._flight.run_id}", "close()")
        self._closed = True
        with trio.CancelScope(shield=True):
            while self._flight is not None:
                await self._end(self._flight, at_once)
            with trio.move_on_after(SHUTDOWN_S):
                if self._started and self._parts.host.has("session_shutdown"):
                    await self._parts.host.dispatch("session_shutdown", hook_events.SessionShutdownEvent(reason="quit"))
                await self._parts.host.drained()
            self._parts.host.generation.stale = True
            await self._parts.session.log.aclose()
            self._parts.stream.close()

    async def _end(self, flight: _Flight, at_once: bool) -> None:
        """Asks a run to stop and waits for its end; one that is settling as well, which an abort leaves alone."""
        self.request_abort()
        flight.loop.signal.request()
        if at_once:
            flight.loop.signal.force()
        await flight.done.wait()

    def _require_open(self) -> None:
        if self._closed:
            raise SeatClosed("the conversation was closed; open the session again")

    def _posted(self, command: Command) -> Commit:
        """Posts; a refusal is raised."""
        commit = self._parts.session.post(command)
        if isinstance(commit, Rejection):
            raise CommandRefused(commit.why)
        return commit

    def _now(self) -> int:
        return self._parts.world.clock.now_ms()


@attrs.frozen(kw_only=True)
class _Given:
    """A prompt on its way through the steps."""

    text: str
    images: tuple[ImageBlock, ...]
    behavior: Behavior | None
    expand: bool
    source: str
    command_id: str | None = None


_STEPS: Final[Mapping[PromptStep, Callable[[Seat, _Given], Awaitable[Receipt | _Given]]]] = {
    PromptStep.DEFER: Seat._step_defer,
    PromptStep.COMMAND: Seat._step_command,
    PromptStep.COMPACTING: Seat._step_compacting,
    PromptStep.INPUT: Seat._step_input,
    PromptStep.EXPAND: Seat._step_expand,
    PromptStep.QUEUE: Seat._step_queue,
    PromptStep.MODEL: Seat._step_model,
    PromptStep.START: Seat._step_start,
}


def _queue_of(state: SessionState) -> Cleared:
    queued = (*state.queues.steering, *state.queues.follow_up)
    custom = tuple([item.message for item in queued if not isinstance(item.message, UserMessage)])
    return Cleared(steering=state.pending_texts("steer"), follow_up=state.pending_texts("followUp"), custom=custom)


def _receipt_of(outcome: Any) -> Receipt:
    receipt: Receipt = outcome.value
    return receipt
