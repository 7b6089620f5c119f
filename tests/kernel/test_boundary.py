"""The boundary fold: proposals of several handlers, what they see, what is committed, and what it costs.

MATRIX is that of agent loop spec 2.6, with each handler's doing on its own axis. The expected commit is told by a
naive reading of the rules in `expected`, which knows nothing of projections.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import attrs
import pytest

from camshaft.kernel import boundary
from camshaft.kernel.boundary import BoundaryKind, BoundaryResult, Proposal, begin, can_continue, reduce, seal
from camshaft.kernel.commands import AppendCustom, CommitBatch
from camshaft.kernel.entries import CompactionDraft, ContextEditDraft, CustomDraft, CustomMessageDraft, SessionHeader
from camshaft.kernel.errors import Rejection
from camshaft.kernel.messages import CustomMessage, UserMessage, text_of
from camshaft.kernel.records import Decision
from camshaft.kernel.settings import Settings
from camshaft.kernel.state import Queued, Queues, SessionState, Stamps, decide, evolve, initial
from camshaft.kernel.tree import tree_of
from tests.kernel.made import TIME, assistant, chain, user

HEADER = SessionHeader(id="s", timestamp=TIME, cwd="/")
AT_MS = 1_772_355_600_000
GOOD, OTHER = CustomDraft(custom_type="audit"), CustomMessageDraft(custom_type="redo", content="again", display=False)
BAD = ContextEditDraft(target_id="gone", replacement=None)
NOT_FOUND = "Invalid boundary entries: Entry gone not found"


def session(entries: Sequence[Any] = (user("u", None), assistant("a", "u")), **queues: Any) -> SessionState:
    state = initial(HEADER, tree_of(entries=list(entries)), len(entries) - 1, (), Settings())
    return attrs.evolve(state, queues=attrs.evolve(state.queues, **queues))


def queued(text: str) -> Queued:
    return Queued(input_id=text, entry_id=f"e-{text}", way="steer", message=UserMessage(content=text, timestamp=1))


# -- the matrix --------------------------------------------------------------------------

Handler = tuple[str, bool | None]
"""What it proposes (`none`, `raises`, `replace`, `append`, `bad`), and what it says about continuing."""

DOINGS = ("none", "raises", "replace", "append", "bad")
CONTINUES = (None, True, False)
ONE = [(handler,) for handler in product(DOINGS, CONTINUES)]
TWO = [(first, second) for first, second in product(product(DOINGS, (None, True)), product(DOINGS, CONTINUES))]
WAITING: dict[str, dict[str, Any]] = {
    "no queue": {},
    "steering": {"steering": (queued("s"),)},
    "follow-up": {"follow_up": (queued("f"),)},
    "held": {"held": (CustomMessage(custom_type="k", content="h", timestamp=1),)},
}
MATRIX = [(), *ONE, *TWO]


def returned(doing: str, go: bool | None, seen: Proposal) -> BoundaryResult | None:
    match doing:
        case "none":
            return None if go is None else BoundaryResult(continue_=go)
        case "replace":
            return BoundaryResult(entries=(OTHER,), continue_=go)
        case "append":
            return BoundaryResult(entries=(*seen.entries, GOOD), continue_=go)
        case "bad":
            return BoundaryResult(entries=(*seen.entries, BAD), continue_=go)
        case _:
            return None


def folded(handlers: Sequence[Handler], state: SessionState, kind: BoundaryKind = "turn_end") -> tuple[Proposal, list[tuple[str, str]]]:
    proposal, reports = begin(kind, state), list[tuple[str, str]]()
    for number, (doing, go) in enumerate(handlers):
        proposal, report = reduce(proposal, returned(doing, go, proposal), state, AT_MS, f"x{number}")
        reports += [(f"x{number}", report)] if report is not None else []
    return proposal, reports


def expected(handlers: Sequence[Handler]) -> tuple[list[Any], bool, list[str]]:
    """Drafts and decision in the end, and who is reported."""
    entries: list[Any] = []
    go, blamed = False, list[str]()
    for number, (doing, says) in enumerate(handlers):
        was_valid = BAD not in entries
        entries = {"replace": [OTHER], "append": [*entries, GOOD], "bad": [*entries, BAD]}.get(doing, entries)
        go = says if says is not None and doing != "raises" else go
        returned_something = doing in ("replace", "append", "bad") or (says is not None and doing != "raises")
        blamed += [f"x{number}"] if BAD in entries and (was_valid or returned_something) else []
    return (entries, go, blamed) if BAD not in entries else ([], False, blamed)


@pytest.mark.rule("BND-10", "BND-11", "BND-12", "BND-20", "BND-21", "BND-22")
@pytest.mark.parametrize("waiting", WAITING)
def test_the_commit_is_what_the_rules_say_for_every_pair_of_handlers(waiting: str) -> None:
    state = session(**WAITING[waiting])

    found = {handlers: _committed(handlers, state) for handlers in MATRIX}

    assert found == {handlers: expected(handlers) for handlers in MATRIX}


def _committed(handlers: Sequence[Handler], state: SessionState) -> tuple[list[Any], bool, list[str]]:
    proposal, reports = folded(handlers, state)
    batch = seal(proposal, state, "a", Stamps(now_ms=AT_MS, ids=("n1", "n2", "n3")))
    assert isinstance(batch, CommitBatch) and batch.decision is not None
    assert all(text.startswith("Invalid boundary entries: ") for _, text in reports)
    assert [entry.parent_id for entry in batch.entries] == ["a", "n1", "n2"][: len(batch.entries)]
    drafts = [{"custom": GOOD, "custom_message": OTHER}[entry.type] for entry in batch.entries]
    return drafts, batch.decision.continue_, [extension for extension, _ in reports]


# -- what handlers see -------------------------------------------------------------------


@pytest.mark.rule("BND-3", "BND-24")
def test_a_preview_shows_the_drafts_with_ids_that_are_not_in_the_session() -> None:
    state = session()

    proposal, _ = folded([("append", None), ("append", None)], state)
    ids = [each.entry.id for each in proposal.context.context_entries]
    targeted, report = reduce(
        proposal, BoundaryResult(entries=(GOOD, ContextEditDraft(target_id="preview-1", replacement=None))), state, AT_MS, "x"
    )

    assert ids == ["u", "a", "preview-1", "preview-2"]
    assert state.tree.position("preview-1") is None
    assert (targeted.valid, report) == (False, "Invalid boundary entries: entries[1]: Entry preview-1 not found")


@pytest.mark.rule("BND-22")
def test_an_invalid_proposal_shows_the_last_valid_context_as_a_whole_and_its_own_entries() -> None:
    state = session()
    valid, _ = folded([("replace", True)], state)
    later = session(steering=(queued("s"),))

    invalid, report = reduce(valid, BoundaryResult(entries=(BAD,)), later, AT_MS, "x1")
    silent, nothing = reduce(invalid, None, later, AT_MS, "x2")
    repaired, none = reduce(silent, BoundaryResult(entries=(GOOD,)), later, AT_MS, "x3")

    assert (report, nothing, none) == (NOT_FOUND, None, None)
    assert invalid.context is silent.context is valid.context
    assert silent.entries == (BAD,)
    assert (repaired.valid, repaired.entries, repaired.continue_) == (True, (GOOD,), True)
    assert [text_of(message.content) for message in repaired.context.pending_messages if isinstance(message, UserMessage)] == ["s"]


@pytest.mark.rule("BND-14", "BND-15")
def test_a_preview_is_rebuilt_on_what_handlers_did_to_the_session_meanwhile() -> None:
    state = session()
    proposal, _ = folded([("append", None)], state)
    commit = decide(state, AppendCustom(custom_type="now"), Stamps(now_ms=AT_MS, ids=("n1", "n2")))
    assert not isinstance(commit, Rejection)
    moved = attrs.evolve(evolve(state, commit), queues=Queues(follow_up=(queued("f"),)))

    rebuilt, _ = reduce(proposal, None, moved, AT_MS, "x1")

    assert [each.entry.id for each in rebuilt.context.context_entries] == ["u", "a", "n1", "preview-1"]
    assert len(rebuilt.context.pending_messages) == 1


def test_an_extension_that_breaks_a_proposal_by_what_it_does_is_the_one_that_is_blamed() -> None:
    branched = session((user("u", None), assistant("a", "u"), user("side", None)))
    on_branch = attrs.evolve(branched, projection=session().projection)
    proposal, report = reduce(
        begin("turn_end", on_branch), BoundaryResult(entries=(ContextEditDraft(target_id="a", replacement=None),)), session(), AT_MS, "x0"
    )
    elsewhere = session((user("other", None),))

    broken, blamed = reduce(proposal, None, elsewhere, AT_MS, "x1")
    again, once = reduce(broken, None, elsewhere, AT_MS, "x2")

    assert (report, blamed, once) == (None, "Invalid boundary entries: Entry a not found", None)
    assert (proposal.valid, broken.valid, again.valid) == (True, False, False)


# -- drafts that are none ----------------------------------------------------------------


@pytest.mark.rule("BND-25", "BND-28", "BND-29")
@pytest.mark.parametrize(
    ("draft", "part"),
    [
        ({"type": "surprise"}, "surprise"),
        ({"type": "custom"}, "custom_type"),
        ({"type": "custom", "custom_type": 3}, "custom_type"),
        ({"type": "custom_message", "custom_type": "k", "content": "x"}, "display"),
        ({"type": "compaction"}, "summary"),
        ({"type": "compaction", "summary": "s", "first_kept_entry_id": "gone"}, "Entry gone is not on the active branch"),
        ({"type": "context_edit", "target_id": "c", "replacement": None}, "c"),
        (None, "None"),
        ("text", "text"),
        ({"type": "custom", "custom_type": "k", "data": object()}, "is not JSON"),
    ],
)
def test_a_draft_that_is_none_is_invalid_and_named_by_its_place(draft: Any, part: str) -> None:
    state = evolve(session(), decided(session(), AppendCustom(custom_type="k"), "c", "d"))

    alone = reduce(begin("turn_end", state), BoundaryResult(entries=(draft,)), state, AT_MS, "x")
    second = reduce(begin("turn_end", state), BoundaryResult(entries=(GOOD, draft)), state, AT_MS, "x")

    assert (alone[0].valid, second[0].valid) == (False, False)
    assert alone[1] is not None and alone[1].startswith("Invalid boundary entries: ") and part in alone[1]
    assert second[1] is not None and second[1].startswith("Invalid boundary entries: entries[1]: ") and part in second[1]


def decided(state: SessionState, command: Any, *ids: str) -> Any:
    commit = decide(state, command, Stamps(now_ms=AT_MS, ids=ids))
    assert not isinstance(commit, Rejection), commit
    return commit


def test_a_draft_may_be_a_dict_with_its_fields() -> None:
    state = session()
    given = {"type": "custom_message", "custom_type": "redo", "content": "again", "display": False}

    proposal, report = reduce(begin("turn_end", state), BoundaryResult(entries=(given,)), state, AT_MS, "x")

    assert (proposal.entries, report) == ((OTHER,), None)


@pytest.mark.rule("BND-13", "A06")
def test_what_a_handler_keeps_and_changes_later_changes_nothing() -> None:
    state, data = session(), {"list": [1]}
    proposal, _ = reduce(begin("turn_end", state), BoundaryResult(entries=(CustomDraft(custom_type="k", data=data),)), state, AT_MS, "x")
    data["list"].append(2)

    batch = seal(proposal, state, "a", Stamps(now_ms=AT_MS, ids=("n1",)))

    assert isinstance(batch, CommitBatch)
    assert batch.entries[0].data == {"list": (1,)}  # type: ignore[union-attr]  # a custom entry


# -- sealing -----------------------------------------------------------------------------


@pytest.mark.rule("BND-43")
def test_sealing_looks_at_the_session_as_it_is_then() -> None:
    state = session()
    edit = BoundaryResult(entries=(ContextEditDraft(target_id="a", replacement=None),), continue_=True)
    proposal, _ = reduce(begin("turn_end", state), edit, state, AT_MS, "x")
    longer = evolve(state, decided(state, AppendCustom(custom_type="k"), "c", "d"))

    follows = seal(proposal, longer, "a", Stamps(now_ms=AT_MS, ids=("n1",)))
    refused = seal(proposal, session((user("other", None),)), "a", Stamps(now_ms=AT_MS, ids=("n1",)))

    assert isinstance(follows, CommitBatch) and follows.entries[0].parent_id == "c"
    assert refused == Rejection("Invalid boundary entries: Entry a not found")


def test_an_invalid_proposal_seals_to_a_decision_alone() -> None:
    proposal, _ = folded([("bad", True)], session())

    assert seal(proposal, session(), "a", Stamps(now_ms=AT_MS)) == CommitBatch(
        entries=(), decision=Decision(turn_entry_id="a", continue_=False)
    )


@pytest.mark.rule("BND-28")
def test_a_compaction_draft_counts_the_context_at_its_place() -> None:
    state = session()
    drafts = (CompactionDraft(summary="S"), CompactionDraft(summary="T", first_kept_entry_id="a"))
    proposal, report = reduce(begin("turn_end", state), BoundaryResult(entries=drafts), state, AT_MS, "x")

    batch = seal(proposal, state, "a", Stamps(now_ms=AT_MS, ids=("n1", "n2")))

    assert report is None and isinstance(batch, CommitBatch)
    kept = [(entry.first_kept_entry_id, entry.from_hook) for entry in batch.entries]  # type: ignore[union-attr]  # compactions
    assert kept == [("n1", True), ("a", True)]


# -- continuing --------------------------------------------------------------------------

KINDS: tuple[BoundaryKind, ...] = ("turn_end", "agent_before_settle")
ENDS_WITH = {
    "nothing": (),
    "a user message": (user("u", None),),
    "an answer": (user("u", None), assistant("a", "u")),
}
RUNNABLE: dict[tuple[str, str, BoundaryKind], bool] = {
    **{("a user message", waiting, kind): True for waiting in WAITING for kind in KINDS},
    **{(end, "held", kind): True for end in ENDS_WITH for kind in KINDS},
    **{(end, "no queue", kind): False for end in ("nothing", "an answer") for kind in KINDS},
    **{(end, waiting, "turn_end"): True for end in ("nothing", "an answer") for waiting in ("steering", "follow-up")},
    **{("an answer", waiting, "agent_before_settle"): True for waiting in ("steering", "follow-up")},
    **{("nothing", waiting, "agent_before_settle"): False for waiting in ("steering", "follow-up")},
}


def test_every_end_queue_and_boundary_is_listed() -> None:
    assert set(RUNNABLE) == set(product(ENDS_WITH, WAITING, KINDS))


@pytest.mark.rule("BND-30")
@pytest.mark.parametrize(("end", "waiting", "kind"), RUNNABLE)
def test_when_a_continuation_can_run(end: str, waiting: str, kind: BoundaryKind) -> None:
    entries = ENDS_WITH[end]
    state = session(entries, **WAITING[waiting]) if entries else empty(**WAITING[waiting])

    assert can_continue(kind, state) is RUNNABLE[end, waiting, kind]
    assert begin(kind, state).context.can_continue is RUNNABLE[end, waiting, kind]


def empty(**queues: Any) -> SessionState:
    state = initial(HEADER, tree_of(entries=[]), None, (), Settings())
    return attrs.evolve(state, queues=attrs.evolve(state.queues, **queues))


# -- cost --------------------------------------------------------------------------------


@attrs.define(slots=False)
class CountedTree:
    """A tree that counts the entries that were read."""

    _tree: Any
    reads: list[int]

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._tree, name)
        if name not in ("entry", "kind", "id_at", "parent", "append", "entries", "branch", "kinds"):
            return value

        def counted(*arguments: Any) -> Any:
            result = value(*arguments)
            self.reads.append(len(arguments[0]) if name == "kinds" else 1)
            return CountedTree(result, self.reads) if name == "append" else result

        return counted


@pytest.mark.slow
@pytest.mark.parametrize("drafts", [1, 3])
def test_a_preview_reads_as_much_of_a_long_session_as_of_a_short_one(drafts: int) -> None:
    def reads(length: int) -> int:
        state, counter = session(chain(length)), list[int]()
        counted: Any = CountedTree(state.tree, counter)
        state = attrs.evolve(state, tree=counted, projection=attrs.evolve(state.projection, tree=counted))
        proposal, report = reduce(begin("turn_end", state), BoundaryResult(entries=(GOOD, OTHER, GOOD)[:drafts]), state, AT_MS, "x")
        assert (proposal.valid, report, proposal.context.can_continue) == (True, None, drafts > 1)
        return sum(counter)

    short, long = reads(200), reads(20_000)

    assert short == long
    assert short <= 12 * drafts


def test_there_are_two_boundaries_and_their_rules() -> None:
    assert set(boundary.RULES) == set(KINDS)
    assert boundary.RULES["turn_end"].continues_after == frozenset({"completed"})
    assert boundary.RULES["agent_before_settle"].continues_after == frozenset({"completed", "error"})
