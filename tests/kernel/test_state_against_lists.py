"""Queues and entries of a session against plain lists, and folding in pieces against folding whole."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from camshaft.kernel.commands import (
    AnnounceDelivery,
    AppendCustom,
    AppendCustomMessage,
    AppendMessage,
    BecomeSettled,
    ClearQueues,
    Enqueue,
    FlushHeld,
    Hold,
    MoveLeaf,
    SetQueueMode,
    Take,
)
from camshaft.kernel.messages import (
    CustomMessage,
    Message,
    UserMessage,
)
from camshaft.kernel.projection import project
from camshaft.kernel.records import InputRecord
from camshaft.kernel.settings import Settings
from camshaft.kernel.state import Commit, evolve, initial
from camshaft.kernel.tree import tree_of
from tests.kernel.posting import HEADER, Session, custom, said

# -- against a naive model ---------------------------------------------------------------

TEXTS = st.sampled_from(["one", "two", "three"])
MESSAGES = st.one_of(TEXTS.map(said), TEXTS.map(custom))


class AgainstLists(RuleBasedStateMachine):
    """The same operations on a session and on plain lists; at the end also on another session in other pieces."""

    def __init__(self) -> None:
        super().__init__()
        self.session = Session()
        self.first = self.session.state
        self.entries = ["u", "a"]
        self.parents: dict[str, str | None] = {"u": None, "a": "u"}
        self.leaf: str | None = "a"
        self.queues: dict[str, list[tuple[str, Message]]] = {"steer": [], "followUp": [], "nextTurn": []}
        self.taken: list[tuple[str, str, Message]] = []
        self.modes = {"steer": "one-at-a-time", "followUp": "one-at-a-time"}
        self.held: list[Message] = []

    def note(self, commit: Commit) -> None:
        for entry in commit.entries:
            self.entries.append(entry.id)
            self.parents[entry.id] = self.leaf
            self.leaf = entry.id

    @rule(message=MESSAGES)
    def append(self, message: Message) -> None:
        command = AppendCustomMessage if isinstance(message, CustomMessage) else AppendMessage
        self.note(self.session.posted(command(message=message)))  # type: ignore[arg-type]  # each class takes its message

    @rule(data=st.integers())
    def append_custom(self, data: int) -> None:
        self.note(self.session.posted(AppendCustom(custom_type="k", data=data)))

    @rule(pick=st.integers(0, 1000))
    def move(self, pick: int) -> None:
        self.leaf = [None, *self.entries][pick % (len(self.entries) + 1)]
        self.session.posted(MoveLeaf(entry_id=self.leaf))

    @rule(way=st.sampled_from(["steer", "followUp", "nextTurn"]), message=MESSAGES)
    def enqueue(self, way: Any, message: Message) -> None:
        record = self.session.posted(Enqueue(way=way, message=message)).records[0]
        assert isinstance(record, InputRecord)
        self.queues[way].append((record.input_id, message))

    @rule(queue=st.sampled_from(["steer", "followUp"]))
    def take(self, queue: Any) -> None:
        count = len(self.queues[queue]) if self.modes[queue] == "all" else 1
        polled, self.queues[queue] = self.queues[queue][:count], self.queues[queue][count:]
        self.taken += [(queue, *item) for item in polled]
        self.session.posted(Take(queue=queue))

    @precondition(lambda self: bool(self.taken))
    @rule(is_refused=st.booleans())
    def deliver(self, is_refused: bool) -> None:
        way, input_id, message = self.taken[0]
        entry_id = self.session.state.queues.taken[0].entry_id
        self.session.posted(AnnounceDelivery(input_id=input_id))
        if is_refused:
            self.settle()
            return
        self.taken.pop(0)
        self.note(self.session.posted(AppendMessage(message=message, entry_id=entry_id)))

    @rule()
    def settle(self) -> None:
        for way in ("steer", "followUp"):
            self.queues[way] = [item[1:] for item in self.taken if item[0] == way] + self.queues[way]
        self.taken = []
        self.session.posted(BecomeSettled(outcome="completed"))

    @rule()
    def clear(self) -> None:
        self.queues["steer"], self.queues["followUp"] = [], []
        self.session.posted(ClearQueues())

    @rule(queue=st.sampled_from(["steer", "followUp"]), mode=st.sampled_from(["one-at-a-time", "all"]))
    def set_mode(self, queue: Any, mode: Any) -> None:
        self.modes[queue] = mode
        self.session.posted(SetQueueMode(queue=queue, mode=mode))

    @rule(text=TEXTS)
    def hold(self, text: str) -> None:
        self.held.append(custom(text))
        self.session.posted(Hold(message=custom(text)))

    @rule()
    def flush(self) -> None:
        commit = self.session.posted(FlushHeld(kind="custom"))
        assert len(commit.entries) == len(self.held)
        self.held = []
        self.note(commit)

    @invariant()
    def entries_are_those_of_the_lists(self) -> None:
        tree = self.session.state.tree
        assert [(entry.id, entry.parent_id) for entry in tree.entries()] == [(each, self.parents[each]) for each in self.entries]
        assert self.session.state.leaf_id == self.leaf

    @invariant()
    def queues_are_those_of_the_lists(self) -> None:
        queues = self.session.state.queues
        assert [(item.input_id, item.message) for item in queues.steering] == self.queues["steer"]
        assert [(item.input_id, item.message) for item in queues.follow_up] == self.queues["followUp"]
        assert [(item.input_id, item.message) for item in queues.next_turn] == self.queues["nextTurn"]
        assert [(item.way, item.input_id, item.message) for item in queues.taken] == self.taken
        assert list(queues.held) == self.held

    @invariant()
    def texts_and_counts_are_those_of_user_messages(self) -> None:
        state = self.session.state
        waiting = [
            *self.taken,
            *[("steer", *item) for item in self.queues["steer"]],
            *[("followUp", *item) for item in self.queues["followUp"]],
        ]
        texts = {way: [each[2].content for each in waiting if each[0] == way and isinstance(each[2], UserMessage)] for way in self.modes}
        assert (list(state.pending_texts("steer")), list(state.pending_texts("followUp"))) == (texts["steer"], texts["followUp"])
        assert state.has_pending_messages == bool(texts["steer"] or texts["followUp"])

    @invariant()
    def the_projection_kept_is_the_projection_made_anew(self) -> None:
        state = self.session.state
        assert list(state.projection.messages) == list(project(state.tree, state.projection.leaf).messages)

    def teardown(self) -> None:
        whole = self.first
        for commit in self.session.commits:
            whole = evolve(whole, commit)
        assert (whole.queues, whole.live, whole.leaf_id) == (self.session.state.queues, self.session.state.live, self.session.state.leaf_id)
        reopened = initial(HEADER, tree_of(entries=list(whole.tree.entries())), whole.projection.leaf, (), Settings())
        assert list(reopened.projection.messages) == list(whole.projection.messages)


AgainstLists.TestCase.settings = settings(max_examples=40, stateful_step_count=40)
TestAgainstLists = pytest.mark.slow(AgainstLists.TestCase)
