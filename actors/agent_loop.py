"""Carries out one run: performs the effects and actions that the table of `kernel/run.py` asks for.

No rule of what comes next is here. The loop holds the run, asks `chosen` which row fits, performs
the row's actions one after the other, and then the effect of the new state. It owns nothing
durable: entries and records are posts to the session. It waits for extension handlers and routers, for the
provider, for the executor and for a due time, each under the run's abort signal. After an event it
gives way to what hosts started on hearing of it, so that a message queued then is seen by the next
poll, and a prompt made on `agent_settled` is deferred (LOOP-14, LOOP-42). It does not wait for the session, the stream or the seat.

If this actor dies at an await, the session is as its last post left it. The supervisor starts
it once more at `settling` with the error, so that the run always ends with `agent_settled`.

Longer than 400 lines: each effect and each action of the table is one short method, and the list is complete.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import attrs
import trio

from camshaft.actors.actor import Abandoned, Cut, Failure, Limbo, Value, guard
from camshaft.actors.answers import Answers
from camshaft.actors.cache_warming import CacheWarming
from camshaft.actors.compactions import Compactions
from camshaft.actors.delivery import Delivery, RunFailed
from camshaft.actors.event_stream import EventStream
from camshaft.actors.extension_host import ExtensionHost
from camshaft.actors.providers import Provider
from camshaft.actors.routing import Dispatch, RouteFailed, Routing
from camshaft.actors.session import SessionActor
from camshaft.actors.signal import AbortSignal
from camshaft.actors.tool_executor import ABORTED_TEXT, LOST_TEXT, TRUNCATED_TEXT, ToolExecutor
from camshaft.actors.virtual_models import answered_model, is_virtual
from camshaft.kernel import boundary, events, hook_events, hook_merges, retries, shapes
from camshaft.kernel.boundary import BoundaryKind, Proposal
from camshaft.kernel.commands import (
    AnnounceDelivery,
    BecomeActive,
    BecomeIdle,
    BecomeSettled,
    FlushHeld,
    OmitEntries,
    PlanCalls,
    PlanRun,
    RecordSelection,
    SelectTools,
    Take,
    Unclaim,
)
from camshaft.kernel.compaction_checks import due_before_request, due_between_turns
from camshaft.kernel.errors import Rejection
from camshaft.kernel.messages import (
    FAILED,
    NO_USAGE,
    AssistantMessage,
    SystemMessage,
    TextBlock,
    ToolResultMessage,
    UserMessage,
)
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import EMPTY
from camshaft.kernel.prompt import PromptOptions
from camshaft.kernel.recorded import level_to_record
from camshaft.kernel.records import PlannedCall, StartingMessage, WaitRecord
from camshaft.kernel.routing import model_to_record
from camshaft.kernel.run import chosen, moved, raised
from camshaft.kernel.run_data import Do, Last, On, Pending, Row, Run, State, View
from camshaft.kernel.run_guards import retryable
from camshaft.kernel.starting import Beginning, WantedPrompt, prompt_patch, starting_messages, wanted_prompt, with_tool_patch
from camshaft.kernel.state import Commit, Queued, SessionState
from camshaft.kernel.tools import CallOutcome, RegisteredTool, is_sequential, with_active

CANCELLED_TEXT: Final = "Retry cancelled"


class Conversation(Protocol):
    """What the loop needs of the seat."""

    @property
    def providers(self) -> Sequence[Provider]:
        """The model providers."""
        ...

    @property
    def continuations_max(self) -> int | None:
        """Continuations extensions may ask for in one run (BND-35)."""
        ...

    @property
    def has_deferred(self) -> bool:
        """Whether prompts wait for the end of `agent_settled`."""
        ...

    def prompt_options(self) -> PromptOptions:
        """The base options of the system prompt, with the tools as they are now."""
        ...

    def starting_options(self) -> PromptOptions:
        """As `prompt_options`, for the handlers of `before_agent_start`."""
        ...

    def keep_selection(self, active: tuple[str, ...], base: tuple[str, ...]) -> None:
        """Handlers selected `active` for a run: `starting_options` go on to name `base` as long as that set is active."""
        ...

    def show_prompt(self, options: PromptOptions | None, shown: PromptOptions | None = None) -> None:
        """What `get_system_prompt` shows: these options, made of the ones `shown` with the tools as they are, or the base."""
        ...

    async def run_deferred(self) -> None:
        """Runs the next deferred prompt as a whole run."""
        ...

    async def sends_queued(self) -> None:
        """Returns when every message that handlers asked to send is queued (EVT-51)."""
        ...


@shapes.define(eq=False)
class AgentLoop:
    """One run of one session."""

    run: Run
    signal: AbortSignal
    _session: SessionActor
    _host: ExtensionHost
    _stream: EventStream
    _executor: ToolExecutor
    _limbo: Limbo
    _conversation: Conversation
    _compactions: Compactions
    _routing: Routing
    _warming: CacheWarming
    _when_prepared: Callable[[], object] | None = None
    """Called when nothing of the start can be refused any more (LOOP-7 f)."""
    retry_cancelled: trio.Event = attrs.field(factory=trio.Event)
    """Set by the host to end a retry wait without aborting the run (LOOP-66); a new one with each announced retry."""
    _planned: tuple[PlannedCall, ...] = ()
    _wanted: WantedPrompt | None = None
    """The prompt as last compared."""
    _shown: PromptOptions | None = None
    """What the handlers of `before_agent_start` were shown first."""
    _delivery: Delivery = attrs.field(init=False)
    _answers: Answers = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._delivery = Delivery(self._session, self._host, self._stream)
        self._answers = Answers(self.signal, self._session, self._host, self._stream, self._limbo, self._warming)

    # -- the engine ----------------------------------------------------------------------

    async def serve(self) -> None:
        """Runs to the end; the error of the run, if any, is left in `run.error`."""
        while self.run.state is not State.IDLE:
            if self._stream.is_full:
                await self._stream.wait_for_followers()
            outcome = await guard(self._advance)
            if isinstance(outcome, Failure):
                self._stumble(outcome.error)

    async def _advance(self) -> None:
        """The effect of the state, then the row that fits, and the rows under it as long as rows say so."""
        effect = _EFFECTS.get(self.run.state)
        on: On = "-" if effect is None else await effect(self)
        below: Row | None = None
        while True:
            row = chosen(self.run, on, self._view(), below)
            for action in row.does:
                await _ACTIONS[action](self)
            self.run = moved(self.run, row)
            if row.next is not None:
                return
            below = row

    def _stumble(self, error: Exception) -> None:
        """An effect or an action raised: where the run goes is the table's (rows 6, 66 to 68)."""
        self.run = raised(self.run, error)
        if self.run.state in (State.AFTER, State.IDLE) and self._state.live.run_id == self.run.id:
            self._session.post(BecomeIdle())

    def _view(self) -> View:
        return View(
            state=self._session.state,
            barren=self._compactions.barren,
            continuations_max=self._conversation.continuations_max,
            deferred=self._conversation.has_deferred,
            answered=answered_model(self._session.state, self._conversation.providers),
        )

    @property
    def _state(self) -> SessionState:
        return self._session.state

    def _post(self, command: Any) -> Commit:
        """A post that must not be refused. Raises RunFailed with the reason if it is."""
        commit = self._session.post(command)
        if isinstance(commit, Rejection):
            raise RunFailed(commit.why)
        return commit

    def _change(self, **changes: Any) -> None:
        self.run = attrs.evolve(self.run, **changes)

    # -- before the run ------------------------------------------------------------------

    async def _precheck(self) -> On:
        """Compaction before the run (RTY-30)."""
        self.run = await self._compactions.before_prompt(self.run, self.signal)
        return "done"

    async def _prepare(self) -> On:
        """Handlers of before_agent_start, then the starting messages (LOOP-7, LOOP-8)."""
        if self.run.error is not None:
            return "raised"
        assert self.run.input is not None
        options = self._shown = self._conversation.starting_options()
        plan = hook_merges.StartPlan(message=self.run.input.message, prompt=None, images=None, options=options)
        if self._host.has("before_agent_start"):
            plan = await self._host.dispatch("before_agent_start", _shown_plan(plan), self._follow_plan)
        if plan.options.selected_tools != options.selected_tools:
            self._select_tools(plan.options.selected_tools)
        self._change(options=plan.options, forced_prompt=plan.options.force_system_prompt)
        self._conversation.show_prompt(plan.options, options)
        self._change(pending=self._starting(plan))
        return "done"

    def _follow_plan(self, plan: hook_merges.StartPlan) -> None:
        """What `get_system_prompt` says to the next handler (CTXT-2)."""
        self._conversation.show_prompt(plan.options)

    def _select_tools(self, names: Sequence[str]) -> None:
        """An edited selection wins over the live one and is durable (PB-6)."""
        active = with_active(self._state.selection.active_tools, names, self._host.tools)
        base = self._conversation.starting_options().selected_tools
        self._post(SelectTools(active_tools=active))
        self._conversation.keep_selection(active, base)

    def _starting(self, plan: hook_merges.StartPlan) -> tuple[Pending, ...]:
        assert self.run.input is not None
        stamps = self._session.stamps(len(plan.added) + 1)
        beginning = Beginning(patch=self._prompt_patch(), input=self.run.input, next_turn=self._state.queues.next_turn, added=plan.added)
        return starting_messages(beginning, stamps.ids, stamps.now_ms)

    def _prompt_patch(self) -> SystemMessage | None:
        """What of the prompt differs from the transcript. Raises RunFailed for a bad section name."""
        if self.run.options is None:
            return None
        shown = self._shown or self.run.options
        wanted = wanted_prompt(self.run.options, self._conversation.prompt_options(), self._wanted, shown)
        if isinstance(wanted, Rejection):
            raise RunFailed(wanted.why)
        self._wanted = wanted
        return prompt_patch(wanted, self._state.projection.system, self._now())

    def _with_tool_patch(self, pending: tuple[Pending, ...]) -> tuple[Pending, ...]:
        tools = self._host.tools
        active = self._state.selection.active_tools
        prepared = self._host.loadouts.apply(tools, active)
        wanted = [prepared.declared(tools[name].declaration) for name in active if name in tools]
        return with_tool_patch(pending, wanted, self._state.projection.system, self._now())

    async def _plan_run(self) -> None:
        starting = tuple(
            [StartingMessage(entry_id=item.entry_id, message=item.message) for item in self.run.pending if item.entry_id is not None]
        )
        inputs = [item.input_id for item in self._state.queues.next_turn]
        own = [] if self.run.input is None else [self.run.input.input_id]
        self._post(PlanRun(run_id=self.run.id, input_ids=tuple(own + inputs), starting=starting))
        if self._when_prepared is not None:
            self._when_prepared()

    async def _record_selection(self) -> None:
        """What the branch says otherwise, for instance after navigation (SES-24, VM-16)."""
        level = level_to_record(self._state)
        model = model_to_record(self._state, lambda key: is_virtual(self._conversation.providers, key))
        if level is not None or model is not None:
            self._post(RecordSelection(model=model, thinking_level=level))

    async def _give_up_tools(self) -> None:
        self._post(SelectTools(active_tools=self._state.selection.active_tools, awaited=()))

    async def _unclaim(self) -> None:
        assert self.run.input is not None
        self._conversation.show_prompt(None)
        self._post(Unclaim(input_id=self.run.input.input_id))

    # -- a low-level run -----------------------------------------------------------------

    async def _open(self) -> On:
        self._change(pending=self._with_tool_patch(self.run.pending))
        return "done"

    async def _between(self) -> On:
        """Between turns: compaction, second steering poll, then prompt and tool patches (LOOP-14)."""
        await self._host.give_way()
        if due_between_turns(self._view()):
            await self._compactions.between_turns(self.signal)
        if not self._state.live.aborting and not self.run.pending and self._state.queues.steering:
            await self._take_queue("steer")
        patch = self._prompt_patch()
        pending = self.run.pending if patch is None else (Pending(message=patch), *self.run.pending)
        self._change(pending=self._with_tool_patch(pending))
        return "done"

    async def _become_active(self) -> None:
        if not self._state.live.signal:
            self._post(BecomeActive())

    async def _agent_start(self) -> None:
        await self._host.announce(events.AgentStart())
        await self._host.give_way()

    async def _turn_start(self) -> None:
        if self._host.has("turn_start"):
            await self._host.dispatch("turn_start", hook_events.TurnStartEvent(turn_index=self.run.turn, timestamp=self._now()))
        self._stream.publish(events.TurnStart())
        await self._host.give_way()

    async def _deliver_pending(self) -> None:
        while self.run.pending:
            item = self.run.pending[0]
            if item.input is not None:
                self._post(AnnounceDelivery(input_id=item.input.input_id))
            stored, _ = await self._delivery.deliver(item.message, item.entry_id)
            tried = self.run.tried and not isinstance(stored, UserMessage)
            self._change(added=(*self.run.added, stored), pending=self.run.pending[1:], tried=tried)

    async def _take_steering(self) -> None:
        await self._take_queue("steer")

    async def _take_follow_ups(self) -> None:
        await self._take_queue("followUp")

    async def _take_queue(self, name: Any) -> None:
        before = self._state.queues.taken
        self._post(Take(queue=name))
        taken: tuple[Queued, ...] = self._state.queues.taken[len(before) :]
        items = [Pending(message=item.message, entry_id=item.entry_id, input=item) for item in taken]
        self._change(pending=(*self.run.pending, *items))

    # -- asking the model ----------------------------------------------------------------

    async def _ask(self) -> On:
        """One request: what it uses is read first, a virtual model is routed, then the context handlers run (LOOP-15, WIRE-100)."""
        selection = self._state.selection
        self._change(tools=selection.active_tools, results=(), result_ids=(), more=False, go=False)
        if selection.model is None:
            raise RunFailed("No model selected")
        going = Dispatch(model=selection.model, thinking_level=selection.thinking_level)
        if selection.model.is_virtual and not self._state.live.aborting:
            going = await self._routed(selection.model, selection.thinking_level)
        messages = await self._answers.context(self.run.forced_prompt)
        answer = await self._answers.ask(going.model, going.thinking_level, messages, self._conversation.providers)
        deliver = self._delivery.end if answer.announced else self._delivery.deliver
        stored, entry_id = await deliver(answer.message)
        assert isinstance(stored, AssistantMessage)
        good = stored.stop_reason not in FAILED and stored.stop_reason != "length"
        last = Last(message=stored, entry_id=entry_id, retry_after_ms=answer.retry_after_ms)
        self._change(last=last, added=(*self.run.added, stored), tried=self.run.tried and not good)
        return "message"

    async def _routed(self, model: Model, level: str) -> Dispatch:
        """Where the request goes; what does not fit there is compacted, and the route stands (VM-14). Raises RouteFailed."""
        going = await self._routing.of_run(self.run, model, level, self.signal)
        if due_before_request(self._view(), going.model):
            await self._compactions.between_turns(self.signal)
        return going

    # -- tool calls ----------------------------------------------------------------------

    async def _plan_calls(self) -> None:
        """Ids of the results are reserved, and the calls written, before anything starts (K11a, K12)."""
        assert self.run.last is not None
        calls, entry_id = self.run.last.message.tool_calls, self.run.last.entry_id
        ids = self._session.stamps(len(calls)).ids
        self._planned = tuple(
            [
                PlannedCall(call_id=call.id, ordinal=ordinal, of=entry_id, result_entry_id=ids[ordinal], replay=self._replay(call.name))
                for ordinal, call in enumerate(calls)
            ]
        )
        self._post(PlanCalls(calls=self._planned))

    def _replay(self, name: str) -> Any:
        tool = self._host.tools.get(name)
        return "never" if tool is None else tool.definition.replay

    async def _batch(self) -> On:
        """Every call has exactly one result afterwards, also when the executor dies or the scope around is cancelled."""
        assert self.run.last is not None
        calls = self.run.last.message.tool_calls
        tools = {name: self._host.tools[name] for name in self.run.tools if name in self._host.tools}
        try:
            outcome = await guard(self._run_batch, calls, tools)
        except trio.Cancelled:
            self._close_calls(ABORTED_TEXT)
            raise
        if isinstance(outcome, Failure):
            self._host.report_failure("<runtime>", "tool_call", outcome)
            self._close_calls(LOST_TEXT)
            self._change(more=True)
            return "lost"
        return "results"

    async def _run_batch(self, calls: Sequence[Any], tools: Mapping[str, RegisteredTool]) -> None:
        terminating = []
        if is_sequential(calls, self.run.tools, self._host.tools, session_mode="parallel"):
            for call, planned in zip(calls, self._planned, strict=True):
                ended = await self._executor.run_one(call, tools, self.signal)
                terminating.append(ended.result.terminate is True)
                await self._deliver_result(ended, planned.result_entry_id)
        else:
            outcomes = await self._executor.run_parallel(tuple(zip(calls, self._planned, strict=True)), tools, self.signal)
            for ended, planned in zip(outcomes, self._planned, strict=True):
                terminating.append(ended.result.terminate is True)
                await self._deliver_result(ended, planned.result_entry_id)
        self._change(more=not all(terminating))

    async def _fail_calls(self) -> On:
        """Calls of a truncated answer: none runs, each is answered (LOOP-23)."""
        assert self.run.last is not None
        await self._plan_calls()
        for call, planned in zip(self.run.last.message.tool_calls, self._planned, strict=True):
            ended = await self._executor.fail(call, TRUNCATED_TEXT)
            await self._deliver_result(ended, planned.result_entry_id)
        return "results"

    async def _deliver_result(self, outcome: CallOutcome, entry_id: str) -> None:
        stored, stored_id = await self._delivery.deliver(self._executor.message(outcome), entry_id)
        assert isinstance(stored, ToolResultMessage)
        self._add_result(stored, stored_id)

    def _add_result(self, message: ToolResultMessage, entry_id: str) -> None:
        self._change(
            results=(*self.run.results, message),
            result_ids=(*self.run.result_ids, entry_id),
            added=(*self.run.added, message),
        )

    def _close_calls(self, text: str) -> None:
        """Synchronously: an error result for every call of the batch that has none."""
        assert self.run.last is not None
        for call, planned in zip(self.run.last.message.tool_calls, self._planned, strict=True):
            if planned.result_entry_id in self.run.result_ids:
                continue
            message = ToolResultMessage(
                tool_call_id=call.id,
                tool_name=call.name,
                content=(TextBlock(text=text),),
                details=EMPTY,
                is_error=True,
                timestamp=self._now(),
            )
            self._delivery.append(message, planned.result_entry_id)
            self._delivery.tell(message)
            self._add_result(message, planned.result_entry_id)

    # -- boundaries ----------------------------------------------------------------------

    async def _bound_turn(self) -> On:
        """The fold of `turn_end`; nothing is built without handlers (BND-7)."""
        self._change(go=False)
        if not self._host.has("turn_end"):
            return "sealed"
        assert self.run.last is not None
        subject = hook_merges.TurnSubject(
            proposal=boundary.begin("turn_end", self._state),
            turn_index=self.run.turn,
            message=self.run.last.message,
            tool_results=self.run.results,
            message_entry_id=self.run.last.entry_id,
            tool_result_entry_ids=self.run.result_ids,
            outcome=self.run.outcome,
        )
        subject = await self._host.dispatch("turn_end", subject)
        self._seal("turn_end", subject.proposal)
        return "sealed"

    async def _bound_settle(self) -> On:
        """The fold of `agent_before_settle`, then what is held (BND-38). What `turn_end` asked for is over (BND-33)."""
        self._change(go=False)
        if self._host.has("agent_before_settle"):
            subject = hook_merges.SettleSubject(proposal=boundary.begin("agent_before_settle", self._state), outcome=self.run.outcome)
            subject = await self._host.dispatch("agent_before_settle", subject)
            await self._conversation.sends_queued()
            self._seal("agent_before_settle", subject.proposal)
            await self._flush_held()
        return "sealed"

    def _seal(self, kind: BoundaryKind, proposal: Proposal) -> None:
        """One commit; then a continuation that is not runnable is reported and dropped (BND-31)."""
        entry_id = None if self.run.last is None else self.run.last.entry_id
        stamps = self._session.stamps(len(proposal.entries))
        batch = boundary.seal(proposal, self._state, entry_id, stamps)
        if isinstance(batch, Rejection):
            self._host.report("<boundary>", kind, batch.why)
            return
        self._post(batch)
        if not (proposal.valid and proposal.continue_):
            return
        aborting = self._state.live.aborting
        if not boundary.can_continue(kind, self._state):
            if kind == "turn_end" or not aborting:
                self._host.report("<boundary>", kind, f"{kind} requested continuation without runnable model context")
            return
        if self.run.outcome in boundary.RULES[kind].continues_after:
            self._change(go=True, continued_by=proposal.continued_by)

    async def _turn_end(self) -> None:
        assert self.run.last is not None
        self._stream.publish(events.TurnEnd(message=self.run.last.message, tool_results=self.run.results))

    async def _report_limit(self) -> None:
        limit = self._conversation.continuations_max
        text = f"the run was continued {limit} times by extensions, which is the limit; it settles instead of going on"
        self._host.report(self.run.continued_by or "<boundary>", "turn_end", text)

    # -- the end of a low-level run ------------------------------------------------------

    async def _fault(self) -> On:
        """The loop failed: an error message takes the place of the turn (LOOP-55). One of routing names the virtual model (VM-9)."""
        model = self.run.error.model if isinstance(self.run.error, RouteFailed) else self._state.selection.model
        message = AssistantMessage(
            content=(TextBlock(text=""),),
            api="" if model is None else model.api,
            provider="" if model is None else model.provider,
            model="" if model is None else model.id,
            usage=NO_USAGE,
            stop_reason="aborted" if self._state.live.aborting else "error",
            error_message=str(self.run.error) or type(self.run.error).__name__,
            timestamp=self._now(),
        )
        stored, entry_id = await self._delivery.deliver(message)
        assert isinstance(stored, AssistantMessage)
        self._change(last=Last(message=stored, entry_id=entry_id), added=(stored,), error=None)
        return "message"

    async def _agent_end_x(self) -> None:
        await self._host.give_way()
        if self._host.has("agent_end"):
            await self._host.dispatch("agent_end", hook_events.AgentEndEvent(messages=self.run.added))

    async def _agent_end_p(self) -> None:
        will_retry = not self._state.live.aborting and retryable(self.run, self._view())
        self._stream.publish(events.AgentEnd(messages=self.run.added, will_retry=will_retry))
        await self._host.give_way()

    async def _retry_start(self) -> None:
        settings = self._state.settings.retry
        assert self.run.last is not None
        self.retry_cancelled = trio.Event()
        self._stream.publish(
            events.AutoRetryStart(
                attempt=self.run.attempt + 1,
                max_attempts=settings.max_retries,
                delay_ms=self._delay_ms(self.run.attempt + 1),
                error_message=self.run.last.message.error_message or "",
            )
        )

    def _delay_ms(self, attempt: int) -> int:
        settings = self._state.settings.retry
        return round(retries.retry_delay_ms(settings.base_delay_ms, attempt, settings.max_agent_delay_ms))

    async def _omit_for_retry(self) -> None:
        assert self.run.last is not None
        attempt = self.run.attempt + 1
        due = self._now() + self._delay_ms(attempt)
        wait = WaitRecord(of=None, kind="retry", attempt=attempt, due=due)
        self._post(OmitEntries(entry_ids=(self.run.last.entry_id, *self.run.result_ids), wait=wait))

    async def _wait(self) -> On:
        """Until due, an abort, or the host's cancel of the retry."""
        woken: list[On] = []
        with trio.move_on_after(self._delay_ms(self.run.attempt) / 1000):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._first, nursery, self.signal.wait, "aborted", woken)
                nursery.start_soon(self._first, nursery, self.retry_cancelled.wait, "cancelled", woken)
        return woken[0] if woken else "woke"

    async def _first(self, nursery: trio.Nursery, wait: Callable[[], Awaitable[None]], on: On, woken: list[On]) -> None:
        await wait()
        woken.append(on)
        nursery.cancel_scope.cancel()

    async def _retry_succeeded(self) -> None:
        self._stream.publish(events.AutoRetryEnd(success=True, attempt=self.run.attempt))

    async def _retry_cancelled(self) -> None:
        self._stream.publish(events.AutoRetryEnd(success=False, attempt=self.run.attempt, final_error=CANCELLED_TEXT))

    async def _retry_failed(self) -> None:
        assert self.run.last is not None
        final = self.run.last.message.error_message
        self._stream.publish(events.AutoRetryEnd(success=False, attempt=self.run.attempt, final_error=final))

    async def _omit_for_compaction(self) -> None:
        self._compactions.omit(self.run)

    async def _report_overflow(self) -> None:
        await self._compactions.report_beyond(self.run)

    async def _compact(self) -> On:
        self.run = await self._compactions.after_run(self.run, self.signal)
        return "done"

    # -- settling ------------------------------------------------------------------------

    async def _flush_shell(self) -> None:
        if self._state.queues.held_shell:
            self._post(FlushHeld(kind="shell"))

    async def _flush_held(self) -> None:
        """Append held custom messages; hosts hear of all of them, then handlers (LOOP-36, EVT-39)."""
        held = self._state.queues.held
        if not held:
            return
        self._post(FlushHeld(kind="custom"))
        for message in held:
            self._delivery.tell(message)
        for message in held:
            await self._delivery.notify(message)

    async def _settle(self) -> None:
        """Every step is done even if one raises (LOOP-33); the first error is the run's."""
        aborted = self._state.live.aborting
        for action in (self._flush_shell, self._flush_held, self._become_settled):
            self._note(await guard(action))
        if not self._state.is_idle:
            self._post(BecomeSettled(outcome=None))
        self._warming.settled()
        self._conversation.show_prompt(None)
        if self._host.has("agent_settled"):
            self._note(await guard(self._host.dispatch, "agent_settled", events.AgentSettled(aborted=aborted)))
        self._stream.publish(events.AgentSettled(aborted=aborted))
        await self._host.give_way()
        self._session.post(BecomeIdle())

    async def _become_settled(self) -> None:
        outcome = "aborted" if self._state.live.aborting else self.run.outcome
        self._post(BecomeSettled(outcome=outcome))

    def _note(self, outcome: Value[Any] | Failure | Cut | Abandoned) -> None:
        if isinstance(outcome, Failure) and self.run.error is None:
            self._change(error=outcome.error)

    async def _run_deferred(self) -> None:
        await self._conversation.run_deferred()

    async def _release(self) -> None:
        """The log is given back; who waits is answered by the seat when `serve` returns."""
        await self._session.log.settle()
        self._session.rest()

    def _now(self) -> int:
        return self._session.now_ms()


def _shown_plan(plan: hook_merges.StartPlan) -> hook_merges.StartPlan:
    """The plan with prompt text and images of a user message, as handlers see them."""
    if not isinstance(plan.message, UserMessage):
        return plan
    text, images = hook_merges.prompt_parts(plan.message)
    return attrs.evolve(plan, prompt=text, images=images)


_EFFECTS: Final[Mapping[State, Callable[[AgentLoop], Awaitable[On]]]] = {
    State.PRECHECKING: AgentLoop._precheck,
    State.PREPARING: AgentLoop._prepare,
    State.OPENING: AgentLoop._open,
    State.ASKING: AgentLoop._ask,
    State.FAILING_CALLS: AgentLoop._fail_calls,
    State.BATCHING: AgentLoop._batch,
    State.BOUNDING: AgentLoop._bound_turn,
    State.BETWEEN: AgentLoop._between,
    State.FAULTING: AgentLoop._fault,
    State.WAITING: AgentLoop._wait,
    State.COMPACTING: AgentLoop._compact,
    State.SETTLE_BOUNDING: AgentLoop._bound_settle,
}

_ACTIONS: Final[Mapping[Do, Callable[[AgentLoop], Awaitable[None]]]] = {
    Do.FLUSH_SHELL: AgentLoop._flush_shell,
    Do.FLUSH_HELD: AgentLoop._flush_held,
    Do.PLAN_RUN: AgentLoop._plan_run,
    Do.RECORD_SELECTION: AgentLoop._record_selection,
    Do.GIVE_UP_TOOLS: AgentLoop._give_up_tools,
    Do.UNCLAIM: AgentLoop._unclaim,
    Do.BECOME_ACTIVE: AgentLoop._become_active,
    Do.AGENT_START: AgentLoop._agent_start,
    Do.TURN_START: AgentLoop._turn_start,
    Do.DELIVER_PENDING: AgentLoop._deliver_pending,
    Do.TAKE_STEERING: AgentLoop._take_steering,
    Do.TAKE_FOLLOW_UPS: AgentLoop._take_follow_ups,
    Do.RETRY_SUCCEEDED: AgentLoop._retry_succeeded,
    Do.RETRY_CANCELLED: AgentLoop._retry_cancelled,
    Do.RETRY_FAILED: AgentLoop._retry_failed,
    Do.PLAN_CALLS: AgentLoop._plan_calls,
    Do.TURN_END: AgentLoop._turn_end,
    Do.REPORT_LIMIT: AgentLoop._report_limit,
    Do.AGENT_END_X: AgentLoop._agent_end_x,
    Do.AGENT_END_P: AgentLoop._agent_end_p,
    Do.RETRY_START: AgentLoop._retry_start,
    Do.OMIT_FOR_RETRY: AgentLoop._omit_for_retry,
    Do.OMIT_FOR_COMPACTION: AgentLoop._omit_for_compaction,
    Do.REPORT_OVERFLOW: AgentLoop._report_overflow,
    Do.SETTLE: AgentLoop._settle,
    Do.RUN_DEFERRED: AgentLoop._run_deferred,
    Do.RELEASE: AgentLoop._release,
}
"""One performer an action."""
