"""Everything true about one session, as one snapshot, and the only ways it changes.

`decide(state, command, stamps)` answers a command with a Commit or a Rejection; nothing has
changed then. `evolve(state, commit)` folds a commit. What a commit makes true together:
entries and records (durable, written first), changes of the live parts, events to publish.

Durable is what the log holds: header, entries (tree) and open records (queued inputs, the
unfinished run). Derived is what is a fold of them: the projection with the leaf, the names.
Live is what dies with the process: activity, abort flag, held messages, selection.

Activity has five readable states. IDLE and SETTLED read as idle; START (a run is claimed,
its preflight runs) and RUN are busy; COMPACTING refuses prompts. A claim made while SETTLED
is deferred by the seat until the dispatch of `agent_settled` is over (LOOP-42).

A queued input has one fate. Its record is written when it is accepted, its entry id is
reserved then. It leaves the queues when its delivery is announced, and its record is open
until that entry is appended or a fate record ends it.

Longer than 400 lines because `decide` is one table of every command: what a commit may change
is read in one place, and the folds stand beside it.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final, assert_never

import attrs

from camshaft.kernel import edits, shapes
from camshaft.kernel.clock import iso
from camshaft.kernel.commands import (
    AnnounceDelivery,
    AppendBranchSummary,
    AppendCompaction,
    AppendContextEdit,
    AppendCustom,
    AppendCustomMessage,
    AppendMessage,
    AppendSummary,
    AppendUsage,
    BecomeActive,
    BecomeCompacting,
    BecomeIdle,
    BecomeSettled,
    ClaimRun,
    ClearQueues,
    Command,
    CommitBatch,
    Enqueue,
    FinishCall,
    FlushHeld,
    Hold,
    MoveLeaf,
    OmitEntries,
    PlanCalls,
    PlanRun,
    QueueName,
    RecordSelection,
    RequestAbort,
    SelectLevel,
    SelectModel,
    SelectTools,
    SetLabel,
    SetName,
    SetQueueMode,
    Take,
    Unclaim,
    UseSettings,
)
from camshaft.kernel.compaction import compaction_entry
from camshaft.kernel.entries import (
    BranchSummaryEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    LabelEntry,
    MessageEntry,
    ModelChangeEntry,
    SessionHeader,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
    UsageEntry,
)
from camshaft.kernel.errors import Rejection
from camshaft.kernel.events import EntryAppended, Event, QueueUpdate, SessionInfoChanged
from camshaft.kernel.messages import (
    BLANKS,
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Message,
    OpaqueMessage,
    UserMessage,
    text_of,
)
from camshaft.kernel.models import Model
from camshaft.kernel.projection import Projection, extend, project
from camshaft.kernel.records import (
    CallsRecord,
    Decision,
    FateRecord,
    FinishedRecord,
    InputRecord,
    LeafRecord,
    PlannedCall,
    Record,
    RunRecord,
    SettledRecord,
    WaitRecord,
    Way,
)
from camshaft.kernel.settings import QueueMode, Settings
from camshaft.kernel.tree import Tree

QUEUED_MAX: Final = 1024
"""Queued inputs per session, then refused: an unattended sender must notice, not fill memory."""

NO_LEAF: Final = "root"
"""What a branch summary names as the branch that was left when there was none (SES-30)."""


class Activity(Enum):
    """What the session is doing."""

    IDLE = "idle"
    START = "start"
    RUN = "run"
    SETTLED = "settled"
    COMPACTING = "compacting"


@shapes.frozen(kw_only=True)
class Queued:
    """An accepted input that is not yet in the log."""

    input_id: str
    entry_id: str
    """Reserved for the entry that will deliver it."""
    way: Way
    message: Message
    """As it was when queued, time included (QUE-5)."""
    command_id: str | None = None


@shapes.frozen(kw_only=True)
class Queues:
    """Everything that waits for delivery, each in order of arrival."""

    steering: tuple[Queued, ...] = ()
    follow_up: tuple[Queued, ...] = ()
    taken: tuple[Queued, ...] = ()
    """Polled for delivery; still count as queued until the delivery is announced (QUE-6)."""
    announced: tuple[Queued, ...] = ()
    """Their delivery was announced; one whose entry was refused is queued again when the run settles."""
    next_turn: tuple[Queued, ...] = ()
    """For the starting messages of the next run (LOOP-8)."""
    held: tuple[CustomMessage, ...] = ()
    """Context-only custom messages, appended at the end of the turn (LOOP-36)."""
    held_shell: tuple[BashExecutionMessage, ...] = ()
    """Results of user commands, appended at the end of the run (LOOP-35)."""
    steering_mode: QueueMode = "one-at-a-time"
    follow_up_mode: QueueMode = "one-at-a-time"

    @property
    def waiting(self) -> bool:
        """Whether a steering or follow-up message can be polled."""
        return bool(self.steering or self.follow_up)


@shapes.frozen(kw_only=True)
class Live:
    """What the session is doing right now."""

    activity: Activity = Activity.IDLE
    run_id: str | None = None
    aborting: bool = False
    """An abort was requested since the run was claimed."""
    signal: bool = False
    """Whether a cancel signal exists: from `agent_start` to the end of `agent_before_settle`."""


@shapes.frozen(kw_only=True)
class Selection:
    """What the next request uses."""

    model: Model | None = None
    thinking_level: str = "off"
    active_tools: tuple[str, ...] = ()
    awaited_tools: tuple[str, ...] = ()
    """Recorded as active by the branch, but not registered yet (EXPO-7)."""


@shapes.frozen(kw_only=True)
class Work:
    """The unfinished run, as far as records tell it."""

    run: RunRecord | None = None
    calls: tuple[PlannedCall, ...] = ()
    wait: WaitRecord | None = None


@shapes.frozen(kw_only=True)
class SessionState:
    """One snapshot. Unchanged parts stay the same objects."""

    header: SessionHeader
    tree: Tree
    projection: Projection
    """The active branch and its leaf."""
    queues: Queues = Queues()
    live: Live = Live()
    selection: Selection = Selection()
    work: Work = Work()
    settings: Settings = Settings()

    @property
    def is_idle(self) -> bool:
        """No run and no compaction; true while `agent_settled` is dispatched (LOOP-40)."""
        return self.live.activity in (Activity.IDLE, Activity.SETTLED)

    @property
    def is_busy(self) -> bool:
        """A run is claimed or active: what is sent now is queued into it (LOOP-6)."""
        return self.live.activity in (Activity.START, Activity.RUN)

    @property
    def leaf_id(self) -> str | None:
        """Id of the leaf entry; None without entries."""
        leaf = self.projection.leaf
        return None if leaf is None else self.tree.id_at(leaf)

    @property
    def leaf_entry(self) -> Entry | None:
        """The leaf; None without entries."""
        leaf = self.projection.leaf
        return None if leaf is None else self.tree.entry(leaf)

    @property
    def has_pending_messages(self) -> bool:
        """Whether a user message waits in a queue; custom messages do not count (CTXT-2)."""
        queues = self.queues
        return any(isinstance(item.message, UserMessage) for item in (*queues.taken, *queues.steering, *queues.follow_up))

    def pending_texts(self, way: QueueName) -> tuple[str, ...]:
        """The texts of the user messages waiting in one queue, taken ones first (QUE-6)."""
        queue = self.queues.steering if way == "steer" else self.queues.follow_up
        waiting = [item for item in self.queues.taken if item.way == way] + list(queue)
        return tuple([text_of(item.message.content) for item in waiting if isinstance(item.message, UserMessage)])


def initial(header: SessionHeader, tree: Tree, leaf: int | None, records: Sequence[Record], settings: Settings) -> SessionState:
    """The state of a session just opened: its entries, and what its open records say is still queued or unfinished."""
    queues = Queues(steering_mode=settings.steering_mode, follow_up_mode=settings.follow_up_mode)
    state = SessionState(header=header, tree=tree, projection=project(tree, leaf), queues=queues, settings=settings)
    for record in records:
        state = _with_record(state, record)
    return state


# -- deciding and folding ---------------------------------------------------------------


@shapes.frozen(kw_only=True)
class Stamps:
    """Time and fresh ids for one command, drawn from the world by the session actor."""

    now_ms: int
    ids: tuple[str, ...] = ()
    """At least `ids_needed`, none of them in the session."""


@shapes.frozen(kw_only=True)
class Commit:
    """What becomes true together."""

    entries: tuple[Entry, ...] = ()
    records: tuple[Record, ...] = ()
    decision: Decision | None = None
    queues: Queues | None = None
    """The queues from now on; None: unchanged."""
    live: Live | None = None
    selection: Selection | None = None
    settings: Settings | None = None
    leaf: int | None = None
    """Position of the new leaf, if `moved`."""
    moved: bool = False
    events: tuple[Event, ...] = ()
    """Published after the commit is true."""


NOTHING: Final = Commit()


def ids_needed(state: SessionState, command: Command) -> int:
    """How many fresh entry ids the decision may use."""
    match command:
        case OmitEntries():
            return len(command.entry_ids)
        case FlushHeld():
            return len(state.queues.held if command.kind == "custom" else state.queues.held_shell)
        case AppendCustom() | SetLabel() | SetName() | SelectModel() | SelectLevel() | RecordSelection():
            return 2
        case AppendMessage() | AppendCustomMessage():
            return 0 if command.entry_id else 1
        case AppendUsage() | AppendContextEdit() | AppendCompaction():
            return 1
        case AppendBranchSummary() | MoveLeaf():
            return 2
        case Enqueue() | ClaimRun():
            return 2
        case _:
            return 0


def decide(state: SessionState, command: Command, stamps: Stamps) -> Commit | Rejection:
    """What `command` makes true, or why not. Raises nothing for bad input."""
    match command:
        case AppendMessage() | AppendCustomMessage() | AppendCustom() | SetLabel() | SetName() | CommitBatch() | OmitEntries():
            return _decide_append(state, command, stamps)
        case AppendUsage() | AppendContextEdit() | AppendCompaction() | AppendBranchSummary():
            return _decide_summary(state, command, stamps)
        case RecordSelection() | SelectModel() | SelectLevel() | SelectTools():
            return _decide_selection(state, command, stamps)
        case Enqueue() | Take() | AnnounceDelivery() | ClearQueues() | Hold() | FlushHeld() | SetQueueMode():
            return _decide_queue(state, command, stamps)
        case MoveLeaf():
            return _decide_leaf(state, command, stamps)
        case UseSettings(settings=settings):
            return NOTHING if settings == state.settings else Commit(settings=settings)
        case _:
            return _decide_run(state, command, stamps)


def evolve(state: SessionState, commit: Commit) -> SessionState:
    """The state after `commit`. O(change), never O(session)."""
    changes: dict[str, Any] = {}
    if commit.queues is not None:
        changes["queues"] = commit.queues
    if commit.live is not None:
        changes["live"] = commit.live
    if commit.selection is not None:
        changes["selection"] = commit.selection
    if commit.settings is not None:
        changes["settings"] = commit.settings
    if commit.moved:
        changes["projection"] = project(state.tree, commit.leaf)
    if commit.entries:
        changes.update(_appended(state, commit))
    if changes:
        state = attrs.evolve(state, **changes)
    for record in commit.records:
        state = _with_record(state, record)
    return state


def entry_stamp(stamps: Stamps) -> str:
    """The time of an entry made now."""
    return iso(stamps.now_ms)


# -- appends -----------------------------------------------------------------------------


def _decide_append(
    state: SessionState,
    command: AppendMessage | AppendCustomMessage | AppendCustom | SetLabel | SetName | CommitBatch | OmitEntries,
    stamps: Stamps,
) -> Commit | Rejection:
    parent, at = state.leaf_id, iso(stamps.now_ms)
    match command:
        case AppendMessage(message=message):
            refused = _unstorable(message)
            entry_id = command.entry_id or stamps.ids[0]
            return refused or Commit(entries=(MessageEntry(id=entry_id, parent_id=parent, timestamp=at, message=message),))
        case AppendCustomMessage(message=message):
            return Commit(entries=(_custom_entry(message, command.entry_id or stamps.ids[0], parent, at),))
        case AppendCustom():
            custom = _state_entry(command, stamps.ids[0], parent, at)
            return Commit(entries=(custom,), events=(EntryAppended(entry=custom),))
        case SetLabel(target_id=target):
            if state.tree.position(target) is None:
                return Rejection(f"Entry {target} not found")
            return Commit(entries=(_label(stamps.ids[0], parent, stamps, target, command.label),))
        case SetName():
            name = " ".join([part for part in command.name.replace("\r", "\n").split("\n") if part]).strip(BLANKS)
            named = SessionInfoEntry(id=stamps.ids[0], parent_id=parent, timestamp=at, name=name)
            return Commit(entries=(named,), events=(SessionInfoChanged(name=name or None),))
        case CommitBatch():
            return _decide_batch(state, command)
        case OmitEntries():
            return _decide_omission(state, command, stamps)
        case _:
            assert_never(command)


def _unstorable(message: Message) -> Rejection | None:
    """Which messages the log does not take (MSG-24, MSG-36)."""
    if isinstance(message, (BranchSummaryMessage, CompactionSummaryMessage)):
        return Rejection(f"a {message.role} message exists in projections only; append its entry instead")
    if isinstance(message, AssistantMessage) and message.stop_reason == "pending":
        return Rejection("a message with stop reason 'pending' is not finished; only final messages are stored")
    if isinstance(message, OpaqueMessage) and message.role in _KNOWN_ROLES:
        return Rejection(f"the {message.role} message has a field of a wrong type; it would be unreadable when loaded again")
    return None


_KNOWN_ROLES: Final = frozenset(
    {"system", "user", "assistant", "toolResult", "bashExecution", "custom", "branchSummary", "compactionSummary"}
)


def _custom_entry(message: CustomMessage, entry_id: str, parent: str | None, at: str) -> CustomMessageEntry:
    return CustomMessageEntry(
        id=entry_id,
        parent_id=parent,
        timestamp=at,
        custom_type=message.custom_type,
        content=message.content,
        display=message.display,
        details=message.details,
        extra=message.extra,
    )


def _state_entry(command: AppendCustom, entry_id: str, parent: str | None, at: str) -> CustomEntry:
    return CustomEntry(id=entry_id, parent_id=parent, timestamp=at, custom_type=command.custom_type, data=command.data, extra=command.extra)


def _decide_batch(state: SessionState, command: CommitBatch) -> Commit | Rejection:
    """The session may have moved since the batch was sealed; then the sealer must look again (BND-43)."""
    if command.entries and command.entries[0].parent_id != state.leaf_id:
        return Rejection(f"the batch continues {command.entries[0].parent_id!r}, but the leaf is {state.leaf_id!r}")
    return Commit(
        entries=command.entries,
        decision=command.decision,
        events=tuple([EntryAppended(entry=entry) for entry in command.entries]),
    )


def _decide_omission(state: SessionState, command: OmitEntries, stamps: Stamps) -> Commit | Rejection:
    parent, made = state.leaf_id, []
    for target, entry_id in zip(command.entry_ids, stamps.ids, strict=False):
        checked = edits.checked_replacement(state.tree, state.projection, target, None)
        if isinstance(checked, Rejection):
            return checked
        made.append(ContextEditEntry(id=entry_id, parent_id=parent, timestamp=iso(stamps.now_ms), target_id=target, replacement=None))
        parent = entry_id
    wait = () if command.wait is None else (attrs.evolve(command.wait, of=made[0].id if made else None),)
    return Commit(entries=tuple(made), records=wait, events=tuple([EntryAppended(entry=entry) for entry in made]))


def _decide_summary(state: SessionState, command: AppendSummary, stamps: Stamps) -> Commit | Rejection:
    """Usage and context edits are announced, compactions and branch summaries are not (LOOP-47, CACHE-10)."""
    own, parent, at = stamps.ids[0], state.leaf_id, iso(stamps.now_ms)
    match command:
        case AppendUsage():
            entry = UsageEntry(
                id=own,
                parent_id=parent,
                timestamp=at,
                kind=command.kind,
                provider=command.provider,
                model=command.model,
                usage=command.usage,
                note=command.note or None,
            )
            return Commit(entries=(entry,), events=(EntryAppended(entry=entry),))
        case AppendContextEdit(target_id=target):
            checked = edits.checked_replacement(state.tree, state.projection, target, command.replacement)
            if isinstance(checked, Rejection):
                return checked
            edit = ContextEditEntry(id=own, parent_id=parent, timestamp=at, target_id=target, replacement=checked)
            return Commit(entries=(edit,), events=(EntryAppended(entry=edit),))
        case AppendCompaction():
            compaction = compaction_entry(command, state.projection, own, stamps.now_ms)
            return compaction if isinstance(compaction, Rejection) else Commit(entries=(compaction,))
        case AppendBranchSummary():
            return _decide_branch_summary(state, command, stamps)
        case _:
            assert_never(command)


def _decide_branch_summary(state: SessionState, command: AppendBranchSummary, stamps: Stamps) -> Commit | Rejection:
    target = command.entry_id
    position = None if target is None else state.tree.position(target)
    if target is not None and position is None:
        return Rejection(f"Entry {target} not found")
    entry = BranchSummaryEntry(
        id=stamps.ids[0],
        parent_id=target,
        timestamp=iso(stamps.now_ms),
        from_id=state.leaf_id or NO_LEAF,
        summary=command.summary,
        details=command.details,
        usage=command.usage,
        from_hook=command.from_hook,
        extra=command.extra,
    )
    labels = () if command.label is None else (_label(stamps.ids[1], entry.id, stamps, entry.id, command.label),)
    return Commit(entries=(entry, *labels), moved=True, leaf=position)


def _decide_leaf(state: SessionState, command: MoveLeaf, stamps: Stamps) -> Commit | Rejection:
    """A label, which is an entry of its own, says where the leaf is; without one a record does."""
    position = None if command.entry_id is None else state.tree.position(command.entry_id)
    if command.entry_id is not None and position is None:
        return Rejection(f"Entry {command.entry_id} not found")
    if command.label is None or command.label_target is None:
        return Commit(records=(LeafRecord(id=command.entry_id),), moved=True, leaf=position)
    if state.tree.position(command.label_target) is None:
        return Rejection(f"Entry {command.label_target} not found")
    label = _label(stamps.ids[0], command.entry_id, stamps, command.label_target, command.label)
    return Commit(entries=(label,), moved=True, leaf=position)


def _label(own: str, parent: str | None, stamps: Stamps, target: str, text: str | None) -> LabelEntry:
    return LabelEntry(id=own, parent_id=parent, timestamp=iso(stamps.now_ms), target_id=target, label=text)


def _decide_selection(
    state: SessionState, command: RecordSelection | SelectModel | SelectLevel | SelectTools, stamps: Stamps
) -> Commit | Rejection:
    match command:
        case SelectTools():
            awaited = command.awaited
            if command.active_tools == state.selection.active_tools and awaited in (None, state.selection.awaited_tools):
                return NOTHING
            return Commit(selection=attrs.evolve(state.selection, active_tools=command.active_tools, awaited_tools=awaited or ()))
        case SelectModel(model=model, thinking_level=level):
            selection = attrs.evolve(state.selection, model=model, thinking_level=level)
            if not command.record:
                return Commit(selection=selection)
            changed = level != state.selection.thinking_level
            entries = _selection_entries(state, (model.provider, model.id), level if changed else None, stamps)
            return Commit(entries=entries, selection=selection)
        case SelectLevel(thinking_level=level):
            selection = attrs.evolve(state.selection, thinking_level=level)
            return Commit(entries=_selection_entries(state, None, level, stamps), selection=selection)
        case RecordSelection():
            return Commit(entries=_selection_entries(state, command.model, command.thinking_level, stamps))
        case _:
            assert_never(command)


def _selection_entries(state: SessionState, model: tuple[str, str] | None, level: str | None, stamps: Stamps) -> tuple[Entry, ...]:
    """A model change, then a level change, chained (SES-23)."""
    at, parent, made, ids = iso(stamps.now_ms), state.leaf_id, list[Entry](), iter(stamps.ids)
    if model is not None:
        made.append(ModelChangeEntry(id=next(ids), parent_id=parent, timestamp=at, provider=model[0], model_id=model[1]))
        parent = made[-1].id
    if level is not None:
        made.append(ThinkingLevelChangeEntry(id=next(ids), parent_id=parent, timestamp=at, thinking_level=level))
    return tuple(made)


# -- queues ------------------------------------------------------------------------------


def _decide_queue(
    state: SessionState, command: Enqueue | Take | AnnounceDelivery | ClearQueues | Hold | FlushHeld | SetQueueMode, stamps: Stamps
) -> Commit | Rejection:
    queues = state.queues
    match command:
        case Enqueue():
            return _decide_enqueue(state, command, stamps)
        case Take(queue=name):
            waiting = queues.steering if name == "steer" else queues.follow_up
            mode = queues.steering_mode if name == "steer" else queues.follow_up_mode
            polled = waiting if mode == "all" else waiting[:1]
            rest: dict[str, Any] = {"steering" if name == "steer" else "follow_up": waiting[len(polled) :]}
            return Commit(queues=attrs.evolve(queues, taken=queues.taken + polled, **rest))
        case AnnounceDelivery(input_id=input_id):
            shown = any(item.input_id == input_id and isinstance(item.message, UserMessage) for item in queues.taken)
            open_ = [item for item in queues.announced if state.tree.position(item.entry_id) is None]
            now = [item for item in queues.taken if item.input_id == input_id]
            taken = tuple([item for item in queues.taken if item.input_id != input_id])
            left = attrs.evolve(queues, taken=taken, announced=(*open_, *now))
            return Commit(queues=left, events=(queue_update(attrs.evolve(state, queues=left)),) if shown else ())
        case ClearQueues():
            dropped = queues.steering + queues.follow_up
            emptied = attrs.evolve(queues, steering=(), follow_up=())
            fates = tuple([FateRecord(input_id=item.input_id, fate="cleared") for item in dropped])
            return Commit(records=fates, queues=emptied, events=(queue_update(attrs.evolve(state, queues=emptied)),))
        case Hold(message=message):
            if isinstance(message, BashExecutionMessage):
                return Commit(queues=attrs.evolve(queues, held_shell=(*queues.held_shell, message)))
            return Commit(queues=attrs.evolve(queues, held=(*queues.held, message)))
        case FlushHeld():
            return _decide_flush(state, command, stamps)
        case SetQueueMode(queue=name, mode=mode):
            changed: dict[str, Any] = {"steering_mode" if name == "steer" else "follow_up_mode": mode}
            return Commit(queues=attrs.evolve(queues, **changed))
        case _:
            assert_never(command)


def queue_update(state: SessionState) -> QueueUpdate:
    """What a frontend shows as waiting (QUE-6)."""
    return QueueUpdate(steering=state.pending_texts("steer"), follow_up=state.pending_texts("followUp"))


def _decide_enqueue(state: SessionState, command: Enqueue, stamps: Stamps) -> Commit | Rejection:
    queues = state.queues
    waiting = len(queues.steering) + len(queues.follow_up) + len(queues.next_turn)
    if waiting >= QUEUED_MAX:
        return Rejection(f"{waiting} inputs are queued already; the limit is {QUEUED_MAX}. Clear the queue or wait")
    record = InputRecord(
        input_id=stamps.ids[0], entry_id=stamps.ids[1], way=command.way, message=command.message, command_id=command.command_id
    )
    after = _with_record(state, record)
    shown = command.way in ("steer", "followUp") and isinstance(command.message, UserMessage)
    return Commit(records=(record,), events=(queue_update(after),) if shown else ())


def _decide_flush(state: SessionState, command: FlushHeld, stamps: Stamps) -> Commit:
    at, parent, made = iso(stamps.now_ms), state.leaf_id, list[Entry]()
    held: Sequence[Message] = state.queues.held if command.kind == "custom" else state.queues.held_shell
    for message, entry_id in zip(held, stamps.ids, strict=False):
        if isinstance(message, CustomMessage):
            made.append(_custom_entry(message, entry_id, parent, at))
        else:
            made.append(MessageEntry(id=entry_id, parent_id=parent, timestamp=at, message=message))
        parent = entry_id
    emptied: dict[str, Any] = {"held": ()} if command.kind == "custom" else {"held_shell": ()}
    return Commit(entries=tuple(made), queues=attrs.evolve(state.queues, **emptied)) if made else NOTHING


# -- the run -----------------------------------------------------------------------------


def _decide_run(
    state: SessionState,
    command: ClaimRun
    | Unclaim
    | PlanRun
    | PlanCalls
    | FinishCall
    | BecomeActive
    | RequestAbort
    | BecomeSettled
    | BecomeIdle
    | BecomeCompacting,
    stamps: Stamps,
) -> Commit | Rejection:
    live = state.live
    match command:
        case ClaimRun():
            record = InputRecord(
                input_id=stamps.ids[0],
                entry_id=stamps.ids[1],
                way=command.way,
                message=command.message,
                command_id=command.command_id,
            )
            return _busy(live) or Commit(records=(record,), live=Live(activity=Activity.START, run_id=command.run_id))
        case Unclaim():
            return Commit(records=(FateRecord(input_id=command.input_id, fate="cancelled"),), live=Live())
        case PlanRun():
            record_ = RunRecord(run_id=command.run_id, input_ids=command.input_ids, starting=command.starting)
            return Commit(records=(record_,), queues=attrs.evolve(state.queues, next_turn=()))
        case PlanCalls():
            return Commit(records=(CallsRecord(calls=command.calls),))
        case FinishCall():
            return Commit(records=(FinishedRecord(result_entry_id=command.result_entry_id, message=command.message),))
        case BecomeActive():
            return Commit(live=attrs.evolve(live, activity=Activity.RUN, signal=True))
        case RequestAbort():
            return NOTHING if live.aborting or state.is_idle else Commit(live=attrs.evolve(live, aborting=True))
        case BecomeSettled():
            known = live.run_id is not None and command.outcome is not None
            settled = (SettledRecord(run_id=live.run_id or "", outcome=command.outcome or ""),) if known else ()
            queues = _undelivered(state)
            shown = queue_update(attrs.evolve(state, queues=queues))
            events = () if shown == queue_update(state) else (shown,)
            now = attrs.evolve(live, activity=Activity.SETTLED, signal=False)
            return Commit(records=settled, queues=queues, live=now, events=events)
        case BecomeIdle():
            return Commit(live=Live())
        case BecomeCompacting():
            return _busy(live) or Commit(live=Live(activity=Activity.COMPACTING))
        case _:
            assert_never(command)


def _busy(live: Live) -> Rejection | None:
    return None if live.activity is Activity.IDLE else Rejection(f"the session is not idle ({live.activity.value})")


def _undelivered(state: SessionState) -> Queues:
    """The queues with every message that was taken, but has no entry, in front of the one it came from."""
    queues = state.queues
    if not queues.taken and not queues.announced:
        return queues
    refused = [item for item in queues.announced if state.tree.position(item.entry_id) is None]
    back = [*refused, *queues.taken]
    steering = tuple([item for item in back if item.way == "steer"])
    follow_up = tuple([item for item in back if item.way != "steer"])
    return attrs.evolve(queues, taken=(), announced=(), steering=steering + queues.steering, follow_up=follow_up + queues.follow_up)


# -- folding -----------------------------------------------------------------------------


def _appended(state: SessionState, commit: Commit) -> dict[str, Any]:
    tree, projection = state.tree, state.projection
    if commit.moved:
        projection = project(tree, commit.leaf)
    for entry in commit.entries:
        tree = tree.append(entry)
        projection = extend(projection, tree, tree.length - 1)
    return {"tree": tree, "projection": projection}


def _with_record(state: SessionState, record: Record) -> SessionState:
    match record:
        case InputRecord():
            return _with_input(state, record)
        case RunRecord():
            return attrs.evolve(state, work=Work(run=record))
        case CallsRecord():
            return attrs.evolve(state, work=attrs.evolve(state.work, calls=record.calls))
        case WaitRecord():
            return attrs.evolve(state, work=attrs.evolve(state.work, wait=record))
        case SettledRecord():
            return attrs.evolve(state, work=Work())
        case _:
            return state


def _with_input(state: SessionState, record: InputRecord) -> SessionState:
    """A prompt or a triggering message that starts a run is in no queue while the run is claimed for it."""
    item = Queued(
        input_id=record.input_id,
        entry_id=record.entry_id,
        way=record.way,
        message=record.message,
        command_id=record.command_id,
    )
    queues = state.queues
    match record.way:
        case "steer":
            return attrs.evolve(state, queues=attrs.evolve(queues, steering=(*queues.steering, item)))
        case "followUp":
            return attrs.evolve(state, queues=attrs.evolve(queues, follow_up=(*queues.follow_up, item)))
        case "nextTurn":
            return attrs.evolve(state, queues=attrs.evolve(queues, next_turn=(*queues.next_turn, item)))
        case "prompt" | "custom":
            return state
        case _:
            assert_never(record.way)
