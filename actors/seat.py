"""One conversation: accepts input, starts runs, and is what extensions and hosts act through.

The seat owns the event stream, the tasks of commands and runs, and the session cell (session,
extension host, loop, executor). What an operation does in each activity is the table
ADMISSION, and the steps a prompt passes are PROMPT_STEPS, both in `kernel/run.py`; this file
walks them. Reads and posts are plain methods; what may take time is awaitable.

Who waits for whom. A prompt's caller waits for the end of its run, never the other way round;
cancelling the wait leaves the run alone (SDK-23). Waiting for a run from inside it raises
SelfWait. What is left if the process dies here: an accepted prompt is an `input` record.

Longer than 400 lines: it is the whole face of a conversation, most of it one line a method.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Final, Literal, Never

import attrs
import trio

from camshaft.actors import choosing, deferred, shortcuts
from camshaft.actors.actor import Failure, guard, refuse_self_wait
from camshaft.actors.cell import Cell, cell_of
from camshaft.actors.children import ChildBlock, ChildOptions
from camshaft.actors.command_names import command_infos
from camshaft.actors.contexts import ReplacedSessionContext
from camshaft.actors.desk import Desk
from camshaft.actors.errors import CamshaftError, CommandRefused
from camshaft.actors.event_stream import DIAGNOSTICS_KEPT_MAX, Follower, Listener
from camshaft.actors.expansion import commands_of
from camshaft.actors.flights import Disposition, Receipt
from camshaft.actors.generation import Checked
from camshaft.actors.loading import LoadError, LoadWarning
from camshaft.actors.model_answers import ask_model
from camshaft.actors.model_asks import ModelAsk
from camshaft.actors.model_registry import ModelRegistry, ModelSource
from camshaft.actors.model_requests import ModelRequests
from camshaft.actors.opening import OpenSession
from camshaft.actors.prompts import Behavior, Given, Position, Preflight, PromptRefused
from camshaft.actors.providers import Provider
from camshaft.actors.registrations import Completion
from camshaft.actors.replacement import REPLACING_TEXT, Replaced, Replacement, WithSession
from camshaft.actors.resources.found import Resources
from camshaft.actors.runtime import CommandInfo
from camshaft.actors.scoped import ScopedModel
from camshaft.actors.seat_parts import SeatParts
from camshaft.actors.session_change import Setup
from camshaft.actors.session_statistics import Statistics, statistics_of
from camshaft.actors.session_transfer import export_session
from camshaft.actors.session_view import SessionView
from camshaft.actors.signal import AbortSignal
from camshaft.actors.surface import ExtensionSurface, surface_of
from camshaft.actors.tree_moves import Wish
from camshaft.actors.virtual_models import limiting_model
from camshaft.actors.watching import Cursor, Watch
from camshaft.actors.world import World
from camshaft.kernel import session_events, shapes
from camshaft.kernel.branch_summaries import NavigationResult
from camshaft.kernel.cache_warming import WarmingStatus
from camshaft.kernel.commands import (
    AppendCustom,
    AppendMessage,
    ClearQueues,
    QueueName,
    SelectTools,
    SetLabel,
    SetName,
    SetQueueMode,
    UseSettings,
)
from camshaft.kernel.compaction import CompactionResult
from camshaft.kernel.dialogs import Dialog, UiState
from camshaft.kernel.events import DiagnosticEvent, ExtensionErrorEvent, SessionInfoChanged
from camshaft.kernel.forking import NO_LEAF_TEXT, ForkPosition
from camshaft.kernel.hook_events import CustomInput
from camshaft.kernel.messages import AssistantMessage, BashExecutionMessage, ImageBlock, Message, ModelMessage, UserMessage
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import EMPTY, FrozenDict, Json
from camshaft.kernel.prompt import PromptOptions, prompt_text
from camshaft.kernel.run_data import State
from camshaft.kernel.starting import with_tools_of
from camshaft.kernel.state import Activity, SessionState
from camshaft.kernel.tools import CallOutcome, RegisteredTool, Signal, ToolDefinition, after_registration, with_active

CLOSED_TEXT: Final = "the conversation was closed; open the session again"


class SeatClosed(CamshaftError):
    """The conversation was closed."""


@shapes.frozen(kw_only=True)
class Cleared:
    """What was taken out of the queues (QUE-14)."""

    steering: tuple[str, ...]
    follow_up: tuple[str, ...]
    custom: tuple[Message, ...] = ()


@shapes.define(eq=False)
class Seat:
    """The host's face of one conversation."""

    _parts: SeatParts
    """Of the cell."""
    _cell: Cell = attrs.field(init=False)
    _shown: tuple[PromptOptions, PromptOptions | None] | None = None
    """The prompt options of the run under way, and those its handlers were shown, once they are done; None: the base."""
    _kept: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    """An active set that handlers selected for a run, and the selection of the base options (PB-6)."""
    _reported: set[DiagnosticEvent] = attrs.field(factory=set)
    """Diagnostics that a host took."""
    _prompt: tuple[tuple[Any, ...], PromptOptions] | None = None
    """What the prompt options were made from, and them."""
    _children: list["Seat"] = attrs.field(factory=list)
    """Conversations beneath this one that are open."""
    _closed: bool = False

    replacement: Replacement = attrs.field(init=False)
    """What goes on in another session, or loads extensions anew."""

    def __attrs_post_init__(self) -> None:
        self.replacement = Replacement(self)
        self.take(self._parts)

    @property
    def cell(self) -> Cell:
        """The session and what acts on it; another one after a replacement."""
        return self._cell

    def take(self, parts: SeatParts) -> None:
        """From here on the conversation is about these parts."""
        self._parts = parts
        self._cell = cell_of(parts, self, self, self.require_open)
        self._shown = self._kept = self._prompt = None

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
        return self._parts.options.mode

    @property
    def is_closed(self) -> bool:
        """Whether the conversation was closed."""
        return self._closed

    @property
    def is_idle(self) -> bool:
        """No run and no compaction (LOOP-37)."""
        return self.state.is_idle

    @property
    def is_streaming(self) -> bool:
        """A run is being prepared or is under way (SDK-10)."""
        return self.state.is_busy

    @property
    def pending_message_count(self) -> int:
        """How many user messages wait in the queues; those of extensions do not count."""
        return len(self.queue.steering) + len(self.queue.follow_up)

    @property
    def retry_attempt(self) -> int:
        """Which retry in a row the run is at; 0 outside of retries (RTY-3)."""
        return 0 if self._cell.flights.current is None else self._cell.flights.current.loop.run.attempt

    @property
    def retry_after_ms(self) -> int | None:
        """The wait that the server asked for when it refused the last request of the run, or of the last run; None if it did not.

        A hint for hosts that decide themselves when to go on; the run's own retries do not heed it (WIRE-22).
        """
        flights = self._cell.flights
        run = flights.compactions.earlier if flights.current is None else flights.current.loop.run
        return None if run is None or run.last is None else run.last.retry_after_ms

    @property
    def is_waiting_to_retry(self) -> bool:
        """Whether the run waits before it asks again (RTY-2)."""
        return self._cell.flights.current is not None and self._cell.flights.current.loop.run.state is State.WAITING

    @property
    def signal(self) -> AbortSignal | None:
        """The abort signal of the active run; None outside `agent_start` … `agent_before_settle`."""
        return self._cell.flights.current.loop.signal if self._cell.flights.current is not None and self.state.live.signal else None

    @property
    def run_signal(self) -> AbortSignal | None:
        """The signal whose stages bound what handlers do: of the run that starts, is active or settles, of a compaction or navigation."""
        flights = self._cell.flights
        if flights.current is not None:
            return flights.current.loop.signal
        return None if flights.exclusives.current is None else flights.exclusives.current.signal

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
    def model_registry(self) -> ModelRegistry:
        """The models they serve, and what is known of their credentials."""
        return ModelRegistry(lambda: self.model_source)

    @property
    def model_source(self) -> ModelSource:
        """What the registry asks at each call."""
        parts = self._parts
        faults, is_offline = parts.options.provider_faults, parts.world.is_offline
        return ModelSource(registry=parts.host.registry, faults=faults, is_offline=is_offline, asks=ModelRequests(parts))

    @property
    def scoped_models(self) -> tuple[ScopedModel, ...]:
        """The models that are cycled through; empty: all that can be used."""
        return choosing.scoped_models(self._parts)[0]

    @property
    def is_project_trusted(self) -> bool:
        """Whether the files of the working directory may decide what runs."""
        return self._parts.options.project_trusted

    @property
    def session(self) -> SessionView:
        """The session, to read, as extensions do; ask again after a replacement, the old view raises StaleContext."""
        return SessionView(self, self._parts.host.generation)

    @property
    def session_file(self) -> str | None:
        """Path of the session file, whether it exists yet or not; None in memory."""
        return self._parts.session.log.path

    @property
    def system_prompt(self) -> str:
        """The effective prompt text: that of the run under way, or of the base options."""
        if self._shown is None:
            return prompt_text(self.prompt_options())
        options, shown = self._shown
        return prompt_text(options if shown is None else with_tools_of(options, self.prompt_options(), shown))

    async def statistics(self) -> Statistics:
        """Counts, tokens and cost over all entries of all branches (SES-63, SES-64)."""
        return await statistics_of(self.state, self.session_file, limiting_model(self.state, self.providers))

    async def export_jsonl(self, path: str | None = None) -> str:
        """Writes the active branch as a session file; its path. None: `session-<time>.jsonl` in the process's directory (SES-86)."""
        return await export_session(self.state, self.world, path, own=self.session_file)

    @property
    def cache_warming(self) -> WarmingStatus:
        """Whether the provider's prompt cache is kept from expiring, and why not (CACHE-11)."""
        return self._cell.flights.warming.status

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
    def load_warnings(self) -> tuple[LoadWarning, ...]:
        """What was odd about extensions, and which were left out on purpose."""
        return tuple(self._parts.host.load_warnings)

    @property
    def diagnostics(self) -> tuple[DiagnosticEvent, ...]:
        """The last 100 diagnostics, oldest first, `found` included; a listener that failed is one."""
        return (*self.found, *self._parts.stream.diagnostics)[-DIAGNOSTICS_KEPT_MAX:]

    def take_unreported_diagnostics(self) -> tuple[DiagnosticEvent, ...]:
        """What of `diagnostics` no earlier call gave; each source and message once, however often it happened (SDK-21)."""
        fresh = [each for each in dict.fromkeys(self.diagnostics) if each not in self._reported]
        self._reported.update(fresh)
        return tuple(fresh)

    @property
    def found(self) -> tuple[DiagnosticEvent, ...]:
        """What opening noticed before anybody could listen: damaged lines, an unfinished run."""
        return self._parts.found

    @property
    def extension_surface(self) -> ExtensionSurface:
        """What extensions offer to frontends at this moment: flags, shortcuts, renderers, transformers."""
        return surface_of(self._parts.host.extensions)

    async def run_shortcut(self, key: str) -> bool:
        """Runs the shortcut of `key`; False if no extension has one. What it raises is reported (CTXT-10)."""
        return await shortcuts.run_shortcut(self._parts.host, key)

    async def complete_command(self, name: str, prefix: str) -> tuple[Completion, ...]:
        """Completions of a command's arguments, of which `prefix` is written; empty if it knows none or fails (CMD-8)."""
        return await self._parts.host.complete_command(name, prefix)

    def commands(self) -> tuple[CommandInfo, ...]:
        """What can be called as `/name`: commands of extensions, then templates, then skills (API-19)."""
        return (*command_infos(self._parts.host.commands()), *commands_of(self.resources))

    @property
    def resources(self) -> Resources:
        """The skills and templates that texts are expanded with."""
        return self._cell.prompts.expansion.resources

    def use_resources(self, resources: Resources) -> None:
        """Replaces skills and templates, for texts and for the system prompt of the next run (RES-3)."""
        self._cell.prompts.expansion.resources = resources

    # -- what extensions ask and show ----------------------------------------------------

    @property
    def desk(self) -> Desk:
        """Where extensions ask and show things."""
        return self._parts.ground.desk

    @property
    def ui(self) -> UiState:
        """Everything extensions show now."""
        return self.desk.state

    @property
    def dialogs(self) -> tuple[Dialog, ...]:
        """The open dialogs, oldest first."""
        return self.desk.dialogs

    def answer_dialog(self, dialog_id: str, value: object) -> bool:
        """Ends a dialog with an answer, or its fallback if that has the wrong shape; False for one that is not open (UI-4)."""
        return self.desk.answer(dialog_id, value)

    def cancel_dialog(self, dialog_id: str) -> bool:
        """Ends a dialog with its fallback; False for one that is not open."""
        return self.desk.cancel(dialog_id)

    @property
    def quarantined(self) -> tuple[str, ...]:
        """Paths of the extensions that failed too often and do nothing until they are loaded anew."""
        return tuple([extension.path for extension in self._parts.host.oversight.quarantined])

    # -- events --------------------------------------------------------------------------

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` with every event, in order, inside the step that made it true; returns its unsubscribe."""
        return self._parts.stream.subscribe(listener)

    def follow(self) -> AbstractAsyncContextManager[Follower[Never]]:
        """A lossless async iterator over events; one that falls behind slows the run."""
        return self._parts.stream.follow()

    @contextmanager
    def watch(self, after: Cursor | None = None) -> Iterator[Watch]:
        """For a frontend: a snapshot of everything, and an async iterator of what happens from that moment on.

        With a cursor of an earlier watch, also of another process, the snapshot has the entries since then instead of all.
        It never slows a run: a slow frontend gets deltas joined, and in the worst case a gap with a new snapshot.
        Raises SeatClosed.
        """
        if self._closed:
            raise SeatClosed(CLOSED_TEXT)
        stream = self._parts.stream
        stream.id = stream.id or self.world.ids.token()
        watch = Watch(lambda: self._parts, stream)
        with stream.watched_by(watch):
            watch.go_on(after)
            yield watch

    # -- prompts -------------------------------------------------------------------------

    async def prompt(  # noqa: PLR0913  # the arguments of SDK-8, all but the text optional and by name
        self,
        text: str,
        *,
        images: Sequence[ImageBlock] = (),
        streaming_behavior: Behavior | None = None,
        expand: bool = True,
        source: str = "interactive",
        command_id: str | None = None,
        expected: Position | None = None,
    ) -> Receipt:
        """Submits, and waits until the run it started has settled, deferred runs included (SDK-8).

        Raises PromptRefused before acceptance, and what ended the run abnormally (LOOP-34).
        """
        receipt = await self.submit(
            text,
            images=images,
            streaming_behavior=streaming_behavior,
            expand=expand,
            source=source,
            command_id=command_id,
            expected=expected,
        )
        await receipt.wait()
        return receipt

    async def submit(  # noqa: PLR0913  # as for prompt
        self,
        text: str,
        *,
        images: Sequence[ImageBlock] = (),
        streaming_behavior: Behavior | None = None,
        expand: bool = True,
        source: str = "interactive",
        command_id: str | None = None,
        expected: Position | None = None,
        preflight: Preflight | None = None,
    ) -> Receipt:
        """Passes a prompt through PROMPT_STEPS; a receipt as soon as it is accepted. Raises PromptRefused.

        A `command_id`, which the client draws and never uses twice, makes it safe to send the prompt again: the second
        one does nothing and gets the first one's receipt. With `expected` it is refused, as PositionMoved, if the session
        does not stand where the client believes.

        A run that it starts is still to be prepared then, and may be refused on the way, which `Receipt.wait` raises.
        `preflight` is told of the disposition when that is over (LOOP-7 f), before the first event of the run; of a
        deferred prompt it is also told the error that refused it in the end.
        """
        if streaming_behavior not in (None, "steer", "followUp"):
            raise PromptRefused(f"streamingBehavior {streaming_behavior!r}; expected 'steer' or 'followUp'")
        given = Given(
            text=text,
            images=tuple(images),
            behavior=streaming_behavior,
            expand=expand,
            source=source,
            command_id=command_id,
            expected=expected,
            preflight=preflight,
        )
        return await self._cell.prompts.accept(given)

    # -- other sessions ------------------------------------------------------------------

    async def new_session(
        self, *, parent_session: str | None = None, setup: Setup | None = None, with_session: WithSession | None = None
    ) -> Replaced:
        """Goes on in a new session, kept where this one is (EXT-42). Raises CommandRefused, StorageError, SelfWait."""
        self.require_open()
        return await self.replacement.new_session(parent_session=parent_session, setup=setup, with_session=with_session)

    async def switch_session(
        self, path: str, *, cwd_override: str | None = None, create: bool = False, with_session: WithSession | None = None
    ) -> Replaced:
        """Goes on in another session file; one that does not exist has to be allowed by `create`.

        Raises SessionFileMissing, MissingWorkingDirectory, NotASession, SessionLocked and others; this session is intact then.
        """
        self.require_open()
        return await self.replacement.switch_session(path, cwd_override=cwd_override, create=create, with_session=with_session)

    async def fork(self, entry_id: str, *, position: ForkPosition = "before", with_session: WithSession | None = None) -> Replaced:
        """Goes on in a new session that holds the branch up to an entry (SES-76). Raises CommandRefused if that cannot be."""
        self.require_open()
        return await self.replacement.fork(entry_id, position=position, with_session=with_session)

    async def clone(self, *, with_session: WithSession | None = None) -> Replaced:
        """Goes on in a copy of the active branch. Raises CommandRefused for a session without entries."""
        leaf = self.state.leaf_id
        if leaf is None:
            raise CommandRefused(NO_LEAF_TEXT)
        return await self.fork(leaf, position="at", with_session=with_session)

    async def import_session(self, path: str, *, cwd_override: str | None = None) -> Replaced:
        """Copies a session file beside this one's and goes on there (SES-85). Raises as `switch_session`."""
        self.require_open()
        return await self.replacement.import_session(path, cwd_override=cwd_override)

    async def reload(self) -> None:
        """Loads extensions, settings and resources anew (EXT-49). Raises CommandRefused while busy."""
        self.require_open()
        await self.replacement.reload()

    def replaced_context(self, extension: str) -> ReplacedSessionContext:
        """A context of the session of now, for what goes on after a replacement."""
        return ReplacedSessionContext(self, self._parts.host.generation, extension, self.wait_idle)

    def open_child(self, options: ChildOptions | None = None, signal: Signal | None = None) -> ChildBlock:
        """A conversation beneath this one, for the length of an `async with` block; see `children.py`."""
        self.require_open()
        return ChildBlock(self._parts, options or ChildOptions(), signal, self._children)

    # -- queues --------------------------------------------------------------------------

    async def steer(
        self, text: str, *, images: Sequence[ImageBlock] = (), source: str = "interactive", command_id: str | None = None
    ) -> Disposition:
        """Queues a steering message; `queued` or `handled` (QUE-8), once for a command id. Raises PromptRefused for a command."""
        return await self._cell.prompts.queue_text("steer", text, images, source, command_id)

    async def follow_up(
        self, text: str, *, images: Sequence[ImageBlock] = (), source: str = "interactive", command_id: str | None = None
    ) -> Disposition:
        """Queues a follow-up; `queued` or `handled` (QUE-8), once for a command id. Raises PromptRefused for a command."""
        return await self._cell.prompts.queue_text("followUp", text, images, source, command_id)

    def clear_queue(self) -> Cleared:
        """Empties both queues and returns what was in them; a message already taken is delivered all the same (QUE-14)."""
        queues = self.state.queues
        dropped = attrs.evolve(queues, taken=())
        before = _queue_of(attrs.evolve(self.state, queues=dropped))
        self._parts.posted(ClearQueues())
        return before

    def set_auto_compaction(self, enabled: bool) -> None:
        """Whether this session compacts without being asked, from now on (CMP-9)."""
        settings = self.state.settings
        self._parts.posted(UseSettings(settings=attrs.evolve(settings, compaction=attrs.evolve(settings.compaction, enabled=enabled))))

    def set_auto_retry(self, enabled: bool) -> None:
        """Whether this session asks again after a failed answer, from now on (RTY-1)."""
        settings = self.state.settings
        self._parts.posted(UseSettings(settings=attrs.evolve(settings, retry=attrs.evolve(settings.retry, enabled=enabled))))

    def set_queue_mode(self, queue: QueueName, mode: Literal["one-at-a-time", "all"]) -> None:
        """How a queue is polled from now on (QUE-1)."""
        self._parts.posted(SetQueueMode(queue=queue, mode=mode))

    # -- compaction and the tree ---------------------------------------------------------

    @property
    def is_compacting(self) -> bool:
        """Whether a compaction or a navigation is under way, automatic ones included."""
        return self.state.live.activity is Activity.COMPACTING or self._cell.flights.compactions.is_active

    async def compact(self, custom_instructions: str | None = None) -> CompactionResult:
        """Shortens the context now; a run that is active is ended first and not continued (CMP-18).

        Raises CompactionFailed with the reason, StorageError if the log refused, SelfWait from inside a run.
        Cancelling it ends it: then the session is as before, or the compaction is whole.
        """
        self.require_open()
        return await self._cell.moves.compact(custom_instructions)

    def request_compaction(
        self,
        custom_instructions: str | None,
        on_complete: Callable[[CompactionResult], Any] | None,
        on_error: Callable[[Exception], Any] | None,
    ) -> None:
        """As `compact`, for extensions: returns at once, failures go to `on_error` or are reported (CTXT-7)."""
        self._cell.moves.request_compaction(custom_instructions, on_complete, on_error)

    def abort_compaction(self) -> None:
        """Asks the compaction or navigation under way to stop; a run that an automatic one belongs to goes on (SDK-10)."""
        self._cell.flights.abort_compaction()

    async def navigate_tree(  # the arguments of SDK-13
        self,
        target: str,
        *,
        summarize: bool = False,
        custom_instructions: str | None = None,
        replace_instructions: bool | None = None,
        label: str | None = None,
    ) -> NavigationResult:
        """Moves to another entry, on request with a summary of the branch that is left (CMP-60 to CMP-72).

        Raises NavigationFailed while anything is under way, for an unknown entry, and when the summary failed.
        """
        self.require_open()
        wish = Wish(summarize=summarize, custom_instructions=custom_instructions, replace_instructions=replace_instructions, label=label)
        return await self._cell.moves.navigate(target, wish)

    # -- abort and waiting ---------------------------------------------------------------

    def request_abort(self) -> None:
        """Asks the active run to stop; returns at once."""
        self._cell.flights.request_abort()

    async def abort(self) -> None:
        """Asks the active run to stop and waits until it has settled. Raises SelfWait from inside it."""
        await self._cell.flights.abort()

    def cancel_retry(self) -> None:
        """Ends a retry wait without aborting the run (LOOP-66)."""
        self._cell.flights.cancel_retry()

    async def wait_idle(self) -> None:
        """Returns when no run is active, at once if none is. Raises SelfWait from inside a run."""
        await self._cell.flights.wait_idle()

    def shutdown(self) -> None:
        """Asks the host to end when no run is active any more; nothing where the host has no such wish (CTXT-6)."""
        if self._parts.options.on_shutdown is not None:
            self._parts.options.on_shutdown()

    # -- messages of extensions ----------------------------------------------------------

    async def send_custom(self, message: CustomInput, *, trigger_turn: bool | None = None, deliver_as: str | None = None) -> Receipt | None:
        """Sends a custom message by QUE-11; when it is appended at once, handlers have heard of it on return (EVT-39)."""
        return await self._cell.sends.send_custom(message, trigger_turn=trigger_turn, deliver_as=deliver_as)

    def send_message(self, message: CustomInput, trigger_turn: bool | None, deliver_as: str | None) -> None:
        """As `send_custom` for extensions: failures are reported, handlers hear of it later (API-12)."""
        self._cell.sends.send_message(message, trigger_turn, deliver_as)

    def send_user_message(self, text: str, images: Sequence[ImageBlock], deliver_as: str | None, expand: bool) -> None:
        """Sends a user message for an extension; returns at once, failures are reported (QUE-13)."""
        self._cell.sends.send_user_message(text, images, deliver_as, expand)

    @property
    def has_sends(self) -> bool:
        """Whether a user message that a handler sent was not accepted or refused yet."""
        return self._cell.sends.pending

    async def sends_begun(self) -> None:
        """Lets what a handler just sent begin (QUE-13)."""
        await self._cell.sends.begun()

    async def sends_queued(self) -> None:
        """Returns when every message that handlers asked to send was accepted or refused (EVT-51)."""
        await self._cell.sends.sends_queued()

    @property
    def has_deferred(self) -> bool:
        """Whether prompts wait for the end of `agent_settled` (LOOP-42)."""
        return bool(self._cell.prompts.deferred) and not self._cell.prompts.held

    async def run_deferred(self) -> None:
        """Runs the next deferred prompt as a whole run; a failure is reported."""
        await self._cell.sends.run_deferred()

    # -- appends and settings ------------------------------------------------------------

    def append_entry(self, custom_type: str, data: Json = None, extra: FrozenDict = EMPTY) -> str:
        """Appends a `custom` entry now; its id. `extra` has further fields by their JSON names, a written-out null among them."""
        return self._parts.posted(AppendCustom(custom_type=custom_type, data=data, extra=extra)).entries[0].id

    def append_message(self, message: Message) -> str:
        """Appends a message entry as it is; its id. Raises CommandRefused for what cannot be stored (MSG-24, MSG-36)."""
        return self._parts.posted(AppendMessage(message=message)).entries[0].id

    def set_label(self, entry_id: str, label: str | None) -> None:
        """Labels an entry; None clears. Raises CommandRefused for an unknown id."""
        self._parts.posted(SetLabel(target_id=entry_id, label=label))

    def set_session_name(self, name: str) -> None:
        """Names the session; empty clears."""
        self._parts.posted(SetName(name=name))
        self._parts.host.notify("session_info_changed", SessionInfoChanged(name=self.state.tree.name))

    def set_active_tools(self, names: Sequence[str]) -> None:
        """Replaces the active set; unknown and hidden names are ignored (EXPO-3)."""
        self._kept = None
        self._parts.posted(SelectTools(active_tools=with_active(self.active_tools, names, self.tools)))

    def tool_registered(self, definition: ToolDefinition) -> None:
        """Activates a tool just registered, by its exposure or because the branch has it active (API-3, EXPO-7)."""
        selection = self.state.selection
        wanted = after_registration(selection.active_tools, definition, is_awaited=definition.name in selection.awaited_tools)
        active = with_active(selection.active_tools, wanted, self.tools)
        awaited = tuple([name for name in selection.awaited_tools if name != definition.name])
        self._parts.posted(SelectTools(active_tools=active, awaited=awaited))

    def record_bash(self, message: BashExecutionMessage) -> None:
        """Stores the result of a command the user ran; held to the end of the run while one is active (LOOP-35)."""
        self._cell.bash.record(message)

    async def user_bash(
        self, command: str, *, exclude_from_context: bool = False, command_id: str | None = None
    ) -> session_events.UserBashOutput:
        """Runs a command of the person and records it; what it prints is told as `bash_execution_update` (UB-1 to UB-6).

        Several may run at once, and beside a run. Raises UserBashFailed if a handler blocks it or it cannot be run.
        """
        self.require_open()
        return await self._cell.bash.run(command, exclude_from_context=exclude_from_context, command_id=command_id)

    def abort_bash(self) -> None:
        """Kills every command of the person that runs; each is recorded as cancelled (RPC-78)."""
        self._cell.bash.abort()

    @property
    def is_bash_running(self) -> bool:
        """Whether a command of the person runs; a screen with room for one refuses another (UB-2)."""
        return self._cell.bash.is_running

    async def set_model(self, reference: str | Model) -> bool:
        """Uses another model; False if it has no credentials. Raises UnknownModel."""
        return await self.select_model(reference, "set")

    async def select_model(self, model: Model | str, source: str) -> bool:
        """As `set_model`, telling handlers where the wish came from."""
        return await choosing.select_model(self._parts, model, source)

    async def cycle_model(self, direction: choosing.Direction = "forward") -> choosing.Cycled | None:
        """Uses the next scoped model, else the next usable one; None if there is no other (RPC-40)."""
        return await choosing.cycle_model(self._parts, direction)

    def set_thinking_level(self, level: str) -> None:
        """Uses another level, clamped to the model; nothing if that changes nothing. Raises CommandRefused for an unknown one."""
        choosing.set_thinking_level(self._parts, level)

    def cycle_thinking_level(self) -> str | None:
        """Uses the next level of the model, after the last the first; None if it does not reason (RPC-42)."""
        return choosing.cycle_thinking_level(self._parts)

    # -- what the loop asks --------------------------------------------------------------

    @property
    def continuations_max(self) -> int | None:
        """Continuations extensions may ask for in one run; None: no limit (BND-35)."""
        return self._parts.ground.limits.continuations_max

    def prompt_options(self) -> PromptOptions:
        """The base options of the system prompt, with the tools as they are now; the same object while those are the same."""
        made_from = (self.active_tools, self.tools, self.resources, self._parts.host.loadouts.current)
        if self._prompt is not None and all([one is other for one, other in zip(self._prompt[0], made_from)]):
            return self._prompt[1]
        prepared = self._parts.host.loadouts.apply(self.tools, self.active_tools)
        active = [self.tools[name].definition for name in self.active_tools if name in self.tools]
        shown = [tool for tool in active if tool.name not in prepared.hidden]
        options = attrs.evolve(
            self._parts.base_prompt,
            selected_tools=tuple([tool.name for tool in active]),
            tool_snippets=FrozenDict({tool.name: " ".join(tool.prompt_snippet.split()) for tool in shown if tool.prompt_snippet}),
            tool_guidelines=FrozenDict({tool.name: tool.prompt_guidelines for tool in shown if tool.prompt_guidelines}),
            skills=self.resources.skills,
        )
        self._prompt = ((*made_from[:3], prepared), options)
        return options

    def starting_options(self) -> PromptOptions:
        """What a run starts from: the base options, which a selection that handlers made for a run leaves alone (PB-4, PB-6)."""
        kept = self._kept
        if kept is None or kept[0] != self.active_tools:
            return self.prompt_options()
        return attrs.evolve(self.prompt_options(), selected_tools=kept[1])

    def keep_selection(self, active: tuple[str, ...], base: tuple[str, ...]) -> None:
        """Handlers selected `active` for a run: `starting_options` go on to name `base` as long as that set is active."""
        self._kept = (active, base)

    def show_prompt(self, options: PromptOptions | None, shown: PromptOptions | None = None) -> None:
        """What `system_prompt` shows: these options; made of the ones `shown`, with the tools as they are; None: the base."""
        self._shown = None if options is None else (options, shown)

    async def ask_model(self, standing: Checked, ask: ModelAsk) -> AssistantMessage:
        """Asks a model for an extension, outside the conversation. Raises ModelFailed."""
        self.require_open()
        return await ask_model(self._parts, standing, ask)

    def start_task(self, path: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """Runs a task of the extension at `path` until its generation ends (EXT-23)."""
        self._parts.host.start_task(path, function, arguments)

    async def execute_nested(
        self, caller: Any, name: str, arguments: Any, signal: Signal | None, on_update: Callable[[Any], None] | None
    ) -> CallOutcome:
        """Runs a callable tool for the call `caller` (NEST)."""
        return await self._cell.executor.execute_nested(caller, name, arguments, signal, on_update)

    # -- answers that come later ---------------------------------------------------------

    async def fetch_deferred(self, handle: Mapping[str, Any], *, wait_ms: int = 0, signal: Signal | None = None) -> AssistantMessage:
        """What the `deferred` of a stored message stands for: the answer, or again a message with the handle (STR-41, MSG-30).

        Nothing is stored and no run starts: give the answer to `append_message`, if it shall be part of the conversation.
        `wait_ms`: how long the provider may wait for it. A failure is a message with the stop reason `error`.
        """
        self.require_open()
        return await deferred.fetch_deferred(self._parts, handle, wait_ms, signal)

    async def cancel_deferred(self, handle: Mapping[str, Any]) -> None:
        """Asks the provider not to make the answer behind a handle. Raises DeferredUnsupported, ModelFailed."""
        self.require_open()
        await deferred.cancel_deferred(self._parts, handle)

    # -- life ----------------------------------------------------------------------------

    async def start(self) -> None:
        """Tells extensions that the session is bound; once."""
        if isinstance(self._parts.options.session, OpenSession):  # only what was there already is held from the start
            self._parts.rest.soon()
        await self._cell.start("startup")

    async def close(self, at_once: bool = False, *, shutdown_s: float | None = None) -> None:
        """Aborts, runs shutdown hooks, closes the log. Idempotent; bounded, also under cancellation (SDK-22, SDK-23).

        `at_once` ends what runs without the grace; `shutdown_s`: seconds for the hooks instead of what the limits say.
        Raises SelfWait from inside a run; nothing is closed then.
        Raises StorageError if the log could not be synced; everything else is closed all the same.
        """
        if self._closed:
            return
        if self._cell.flights.current is not None:
            refuse_self_wait(f"run {self._cell.flights.current.run_id}", "close()")
        self.replacement.change.refuse_self_wait("close()")
        self._closed = True
        with trio.CancelScope(shield=True):
            await self.replacement.change.ended()
            await self._cell.stop(at_once)
            for child in tuple(self._children):
                await guard(child.close, at_once)
            await self._cell.shut_down("quit", within_s=shutdown_s)
            closed = await guard(self._parts.session.log.aclose)
            self._parts.stream.close()
            self._parts.ground.modules.clear()
        error = closed.error if isinstance(closed, Failure) else self._parts.rest.error
        if error is not None:
            raise error

    def require_open(self) -> None:
        """Raises SeatClosed after a close, CommandRefused between two sessions."""
        if self._closed:
            raise SeatClosed(CLOSED_TEXT)
        if self.replacement.change.is_under_way:
            raise CommandRefused(REPLACING_TEXT)


def _queue_of(state: SessionState) -> Cleared:
    queued = (*state.queues.steering, *state.queues.follow_up)
    custom = tuple([item.message for item in queued if not isinstance(item.message, UserMessage)])
    return Cleared(steering=state.pending_texts("steer"), follow_up=state.pending_texts("followUp"), custom=custom)
