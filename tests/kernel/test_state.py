"""What one session decides: each command's effect, what is refused, and queues and entries against a naive model."""

from typing import Any, get_args

import attrs
import pytest

from camshaft.kernel.commands import (
    AnnounceDelivery,
    AppendBranchSummary,
    AppendCustom,
    AppendCustomMessage,
    AppendMessage,
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
from camshaft.kernel.entries import (
    BranchSummaryEntry,
    CustomEntry,
    LabelEntry,
    ModelChangeEntry,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
)
from camshaft.kernel.errors import Rejection
from camshaft.kernel.events import EntryAppended, QueueUpdate, SessionInfoChanged
from camshaft.kernel.messages import (
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    Message,
    OpaqueMessage,
)
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.records import FateRecord, InputRecord, SettledRecord
from camshaft.kernel.settings import Settings
from camshaft.kernel.state import QUEUED_MAX, Activity, Commit
from tests.kernel.made import TIME, assistant, user
from tests.kernel.posting import Session, custom, opened, said

MODEL = Model(id="m2", name="M2", provider="p2", api="a", context_window=1000, max_tokens=100)
BASH = BashExecutionMessage(command="ls", output="", cancelled=False, truncated=False, timestamp=1)


# -- every command in every activity -----------------------------------------------------

COMMANDS: dict[type[Any], Any] = {
    AppendMessage: AppendMessage(message=said("x")),
    AppendCustomMessage: AppendCustomMessage(message=custom("x")),
    AppendCustom: AppendCustom(custom_type="k"),
    SetLabel: SetLabel(target_id="u", label="x"),
    SetName: SetName(name="x"),
    RecordSelection: RecordSelection(model=("p", "m"), thinking_level="low"),
    OmitEntries: OmitEntries(entry_ids=("a",)),
    CommitBatch: CommitBatch(entries=(CustomEntry(id="b", parent_id="a", timestamp=TIME, custom_type="k"),), decision=None),
    Enqueue: Enqueue(way="steer", message=said("x")),
    ClaimRun: ClaimRun(way="prompt", message=said("x"), run_id="r"),
    Unclaim: Unclaim(input_id="i"),
    PlanRun: PlanRun(run_id="r", input_ids=(), starting=()),
    Take: Take(queue="steer"),
    AnnounceDelivery: AnnounceDelivery(input_id="i"),
    ClearQueues: ClearQueues(),
    Hold: Hold(message=custom("x")),
    FlushHeld: FlushHeld(kind="custom"),
    PlanCalls: PlanCalls(calls=()),
    FinishCall: FinishCall(result_entry_id="x", message=said("x")),
    BecomeActive: BecomeActive(),
    RequestAbort: RequestAbort(),
    BecomeSettled: BecomeSettled(outcome="completed"),
    BecomeIdle: BecomeIdle(),
    BecomeCompacting: BecomeCompacting(),
    SelectModel: SelectModel(model=MODEL, thinking_level="low"),
    SelectLevel: SelectLevel(thinking_level="low"),
    SelectTools: SelectTools(active_tools=("read",)),
    SetQueueMode: SetQueueMode(queue="steer", mode="all"),
    MoveLeaf: MoveLeaf(entry_id="u"),
    UseSettings: UseSettings(settings=Settings(default_model="m")),
}
ELSEWHERE = {"AppendUsage", "AppendContextEdit", "AppendCompaction", "AppendBranchSummary"}
"""Commands of the session writer; their tests stand beside theirs."""
REFUSED_WHEN = {each: set(Activity) - {Activity.IDLE} for each in (ClaimRun, BecomeCompacting)}
CHANGES_ACTIVITY = {
    ClaimRun: Activity.START,
    Unclaim: Activity.IDLE,
    BecomeActive: Activity.RUN,
    BecomeSettled: Activity.SETTLED,
    BecomeIdle: Activity.IDLE,
    BecomeCompacting: Activity.COMPACTING,
}


def in_activity(activity: Activity) -> Session:
    session = Session()
    session.state = attrs.evolve(session.state, live=attrs.evolve(session.state.live, activity=activity))
    return session


def test_every_command_is_listed() -> None:
    assert {command.__name__ for command in get_args(Command)} == {each.__name__ for each in COMMANDS} | ELSEWHERE


@pytest.mark.parametrize("activity", Activity)
@pytest.mark.parametrize("command", COMMANDS.values(), ids=lambda each: type(each).__name__)
def test_a_command_is_decided_in_every_activity(command: Any, activity: Activity) -> None:
    session = in_activity(activity)
    before = session.state

    commit = session.post(command)

    refused = activity in REFUSED_WHEN.get(type(command), ())
    assert isinstance(commit, Rejection) is refused
    assert (session.state is before) >= refused, "a refusal changes nothing"
    expected = activity if refused else CHANGES_ACTIVITY.get(type(command), activity)
    assert session.state.live.activity is expected


@pytest.mark.parametrize("activity", Activity)
def test_an_abort_is_kept_while_something_is_active_and_only_then(activity: Activity) -> None:
    session = in_activity(activity)

    session.post(RequestAbort())

    assert session.state.live.aborting is (activity not in (Activity.IDLE, Activity.SETTLED))


# -- appends -----------------------------------------------------------------------------


@pytest.mark.rule("SES-33")
@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("plan", "plan"),
        ("  plan  ", "plan"),
        ("two\nlines", "two lines"),
        ("two\r\n\r\nlines", "two lines"),
        ("a\rb", "a b"),
        ("\r\n", None),
        ("", None),
        ("a \n b", "a   b"),
        ("a  b", "a  b"),
        ("\ufeffplan\u00a0", "plan"),
        ("\x1cplan\x85", "\x1cplan\x85"),
    ],
)
def test_runs_of_line_ends_in_a_name_become_one_space_and_its_ends_are_trimmed(given: str, name: str | None) -> None:
    session = Session()

    commit = session.posted(SetName(name=given))

    assert session.state.tree.name == name
    assert commit == Commit(
        entries=(SessionInfoEntry(id="n0", parent_id="a", timestamp=TIME, name=name or ""),), events=(SessionInfoChanged(name=name),)
    )


@pytest.mark.rule("SES-52")
def test_a_label_needs_an_entry_of_any_branch() -> None:
    session = Session(state=opened(user("u", None), user("side", None), assistant("a", "u")))

    labelled = session.posted(SetLabel(target_id="side", label="x"))
    missing = session.post(SetLabel(target_id="gone", label="x"))

    assert labelled.entries == (LabelEntry(id="n0", parent_id="a", timestamp=TIME, target_id="side", label="x"),)
    assert session.state.tree.label("side") == "x"
    assert missing == Rejection("Entry gone not found")


@pytest.mark.rule("MSG-24", "MSG-36")
@pytest.mark.parametrize(
    ("message", "why"),
    [
        (
            AssistantMessage(content=(), api="a", provider="p", model="m", stop_reason="pending", timestamp=1),
            "only final messages are stored",
        ),
        (BranchSummaryMessage(summary="s", from_id="root", timestamp=1), "exists in projections only"),
        (CompactionSummaryMessage(summary="s", tokens_before=1, timestamp=1), "exists in projections only"),
        (OpaqueMessage(role="user", raw=FrozenDict({"role": "user", "content": 3})), "unreadable when loaded again"),
    ],
    ids=["pending", "branch summary", "compaction summary", "half read"],
)
def test_a_message_that_no_reader_could_take_is_refused_and_nothing_changed(message: Message, why: str) -> None:
    session = Session()
    before = session.state

    refused = session.post(AppendMessage(message=message))

    assert isinstance(refused, Rejection) and why in refused.why
    assert session.state is before


def test_a_batch_that_was_sealed_against_another_leaf_is_refused() -> None:
    session = Session()
    batch = COMMANDS[CommitBatch]
    session.posted(AppendCustom(custom_type="meanwhile"))

    assert session.post(batch) == Rejection("the batch continues 'a', but the leaf is 'n0'")


def test_selecting_a_model_records_a_level_only_if_it_changes() -> None:
    session = Session()

    first = session.posted(SelectModel(model=MODEL, thinking_level="low"))
    second = session.posted(SelectModel(model=MODEL, thinking_level="low"))
    resumed = session.posted(SelectModel(model=MODEL, thinking_level="high", record=False))

    assert [type(entry) for entry in first.entries] == [ModelChangeEntry, ThinkingLevelChangeEntry]
    assert [entry.parent_id for entry in first.entries] == ["a", "n0"]
    assert [type(entry) for entry in second.entries] == [ModelChangeEntry]
    assert resumed.entries == ()
    assert (session.state.selection.model, session.state.selection.thinking_level) == (MODEL, "high")


@pytest.mark.parametrize("target", ["u", None])
def test_the_leaf_can_be_moved_and_the_next_entry_begins_a_branch_there(target: str | None) -> None:
    session = Session()

    session.posted(MoveLeaf(entry_id=target))
    session.posted(AppendMessage(message=said("again")))

    assert session.state.leaf_entry is not None and session.state.leaf_entry.parent_id == target
    assert session.post(MoveLeaf(entry_id="gone")) == Rejection("Entry gone not found")


def test_omissions_are_chained_and_an_entry_that_cannot_be_omitted_refuses_them_all() -> None:
    session = Session()

    commit = session.posted(OmitEntries(entry_ids=("a", "u")))
    refused = session.post(OmitEntries(entry_ids=("gone", "a")))

    assert [(entry.id, entry.parent_id) for entry in commit.entries] == [("n0", "a"), ("n1", "n0")]
    assert commit.events == tuple([EntryAppended(entry=entry) for entry in commit.entries])
    assert list(session.state.projection.messages) == []
    assert isinstance(refused, Rejection)


# -- queues ------------------------------------------------------------------------------


@pytest.mark.rule("QUE-6")
def test_a_message_counts_as_queued_until_its_delivery_is_announced_and_custom_ones_never_show() -> None:
    session = Session()
    shown = [QueueUpdate(steering=("one",), follow_up=())]

    first = session.posted(Enqueue(way="steer", message=said("one")))
    quiet = session.posted(Enqueue(way="steer", message=custom("hidden")))
    taken = session.posted(Take(queue="steer"))
    record = first.records[0]
    assert isinstance(record, InputRecord)
    pending = session.state.has_pending_messages
    announced = session.posted(AnnounceDelivery(input_id=record.input_id))

    assert [list(commit.events) for commit in (first, quiet, taken, announced)] == [shown, [], [], [QueueUpdate(steering=(), follow_up=())]]
    assert (pending, session.state.has_pending_messages) == (True, False)


@pytest.mark.rule("QUE-14")
def test_clearing_empties_both_queues_but_for_taken_and_next_turn_messages() -> None:
    session = Session()
    for way, text in (("steer", "taken"), ("steer", "one"), ("followUp", "two"), ("nextTurn", "three")):
        session.posted(Enqueue(way=way, message=said(text)))  # type: ignore[arg-type]  # a Way
    session.posted(Take(queue="steer"))

    commit = session.posted(ClearQueues())

    queues = session.state.queues
    assert (queues.steering, queues.follow_up) == ((), ())
    assert [[item.message for item in part] for part in (queues.taken, queues.next_turn)] == [[said("taken")], [said("three")]]
    assert commit.records == (FateRecord(input_id="n2", fate="cleared"), FateRecord(input_id="n4", fate="cleared"))
    assert commit.events == (QueueUpdate(steering=("taken",), follow_up=()),)


def test_a_full_queue_refuses_with_its_limit() -> None:
    session = Session()
    for _ in range(QUEUED_MAX):
        session.posted(Enqueue(way="followUp", message=said("x")))

    refused = session.post(Enqueue(way="steer", message=said("one more")))

    assert isinstance(refused, Rejection) and f"the limit is {QUEUED_MAX}" in refused.why


@pytest.mark.rule("A16")
def test_what_was_taken_or_announced_without_an_entry_is_queued_again_in_order_when_the_run_settles() -> None:
    session = Session()
    session.posted(SetQueueMode(queue="steer", mode="all"))
    inputs = [session.posted(Enqueue(way="steer", message=said(text))).records[0] for text in ("one", "two", "three")]
    session.posted(Take(queue="steer"))
    session.posted(Enqueue(way="steer", message=said("four")))
    for record in inputs[:2]:
        assert isinstance(record, InputRecord)
        session.posted(AnnounceDelivery(input_id=record.input_id))
    assert isinstance(inputs[0], InputRecord)
    session.posted(AppendMessage(message=said("one"), entry_id=inputs[0].entry_id))

    commit = session.posted(BecomeSettled(outcome="error"))

    queues = session.state.queues
    assert [item.message for item in queues.steering] == [said("two"), said("three"), said("four")]
    assert (queues.taken, queues.announced) == ((), ())
    assert commit.events == (QueueUpdate(steering=("two", "three", "four"), follow_up=()),)


def test_a_run_that_settles_is_recorded_unless_the_log_refused_that() -> None:
    session = Session()
    session.posted(ClaimRun(way="prompt", message=said("go"), run_id="r"))

    assert session.posted(BecomeSettled(outcome="completed")).records == (SettledRecord(run_id="r", outcome="completed"),)
    assert session.posted(BecomeSettled(outcome=None)).records == ()


def test_held_results_of_user_commands_are_appended_in_order() -> None:
    session = Session()
    session.posted(Hold(message=BASH))
    session.posted(Hold(message=attrs.evolve(BASH, command="pwd")))

    commit = session.posted(FlushHeld(kind="shell"))
    nothing = session.posted(FlushHeld(kind="shell"))

    assert [(entry.id, entry.parent_id) for entry in commit.entries] == [("n0", "a"), ("n1", "n0")]
    assert nothing == Commit()


@pytest.mark.rule("CMP-71", "SES-37")
def test_a_move_with_a_label_writes_the_label_at_the_new_place_and_nothing_else() -> None:
    session = Session(state=opened(user("u", None), assistant("a", "u")))

    commit = session.posted(MoveLeaf(entry_id="u", label="here", label_target="a"))

    (label,) = commit.entries
    assert isinstance(label, LabelEntry)
    assert (label.parent_id, label.target_id, commit.records) == ("u", "a", ())
    assert session.state.leaf_id == label.id


@pytest.mark.rule("CMP-70", "CMP-71")
def test_a_branch_summary_and_its_label_are_one_commit() -> None:
    session = Session(state=opened(user("u", None), assistant("a", "u")))

    commit = session.posted(AppendBranchSummary(entry_id=None, summary="s", label="here"))

    summary, label = commit.entries
    assert isinstance(summary, BranchSummaryEntry)
    assert isinstance(label, LabelEntry)
    assert (summary.parent_id, summary.from_id) == (None, "a")
    assert (label.parent_id, label.target_id, session.state.leaf_id) == (summary.id, summary.id, label.id)


@pytest.mark.parametrize("command", [MoveLeaf(entry_id="u", label="x", label_target="no"), AppendBranchSummary(entry_id="no", summary="s")])
def test_a_move_to_or_for_an_unknown_entry_changes_nothing(command: Any) -> None:
    session = Session(state=opened(user("u", None), assistant("a", "u")))
    before = session.state

    assert session.post(command) == Rejection("Entry no not found")
    assert session.state is before
