"""Projections: what is selected, and that growing one costs the same however long the branch is."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from camshaft.kernel import codec
from camshaft.kernel.convert import model_messages
from camshaft.kernel.entries import Entry, ModelChangeEntry
from camshaft.kernel.messages import AssistantMessage, BashExecutionMessage, CustomMessage, SystemMessage, UserMessage, text_of
from camshaft.kernel.projection import Projection, extend, project
from camshaft.kernel.tree import Tree, tree_of
from tests.kernel.made import (
    STEPS,
    TIME,
    Facts,
    Step,
    assistant,
    chain,
    compaction,
    edit,
    entries_of,
    file_of,
    naive,
    opened,
    said,
    system,
    user,
)


def facts(projection: Projection) -> Facts:
    return Facts(
        selected=[(each.entry.id, list(each.messages)) for each in projection.context_entries],
        thinking_level=projection.thinking_level,
        model=projection.model,
        system=projection.system,
    )


def grown(entries: list[Entry]) -> Projection:
    """The projection of the last entry, made entry by entry from the last one's branch."""
    tree, projection = tree_of(), project(tree_of(), None)
    for entry in entries:
        tree = tree.append(entry)
        projection = extend(projection, tree, tree.length - 1)
    return projection


def of(*entries: Entry) -> Projection:
    return project(tree_of(entries=entries), len(entries) - 1)


def calls_in(work: Callable[[], object]) -> list[str]:
    """The names of all functions that `work` calls, in Python or in C."""
    names: list[str] = []

    def note(frame: Any, event: str, argument: Any) -> None:
        names.append(frame.f_code.co_qualname if event == "call" else f"{event} {getattr(argument, '__name__', '')}")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return names


# -- against the naive way ---------------------------------------------------------------


@given(STEPS)
def test_a_projection_from_scratch_is_what_the_specification_tells(steps: list[Step]) -> None:
    entries = entries_of(steps)
    tree = tree_of(entries=entries)

    found = [facts(project(tree, position)) for position in range(tree.length)]

    assert found == [naive(entries, entry.id) for entry in entries]


@given(STEPS)
def test_growing_entry_by_entry_equals_starting_from_scratch(steps: list[Step]) -> None:
    entries = entries_of(steps)
    tree, projections = tree_of(), [project(tree_of(), None)]

    for entry in entries:
        tree = tree.append(entry)
        above = -1 if entry.parent_id is None else tree.position(entry.parent_id)
        assert above is not None
        projections.append(extend(projections[above + 1], tree, tree.length - 1))

    for position, projection in enumerate(projections[1:]):
        whole = project(tree, position)
        assert facts(projection) == facts(whole)
        assert projection.message_count == whole.message_count
        assert (projection.edit_index, projection.compaction_index) == (whole.edit_index, whole.compaction_index)
        assert projection.selected_model == whole.selected_model
        assert (projection.edited, projection.runnable, projection.last_assistant) == (whole.edited, whole.runnable, whole.last_assistant)


@given(STEPS)
def test_an_opened_file_projects_like_the_entries_in_memory(steps: list[Step]) -> None:
    entries = entries_of(steps)
    tree = tree_of(opened(file_of(entries)).image)

    found = [facts(project(tree, position)) for position in range(tree.length)]

    assert found == [naive(entries, entry.id) for entry in entries]


@given(STEPS)
def test_the_views_agree_with_each_other(steps: list[Step]) -> None:
    projection = grown(entries_of(steps))
    messages = list(projection.messages)

    assert len(projection.messages) == projection.message_count == len(messages)
    assert list(reversed(projection.messages)) == messages[::-1]
    assert list(projection.llm_messages) == list(model_messages(messages))
    assert list(reversed(projection.llm_messages)) == list(model_messages(messages))[::-1]
    assert len(projection.context_entries) == projection.selected_count == len(list(projection.context_entries))
    assert [message for each in projection.context_entries for message in each.messages] == messages


@given(STEPS)
def test_every_position_knows_whether_it_is_on_the_branch(steps: list[Step]) -> None:
    projection = grown(entries_of(steps))
    tree, leaf = projection.tree, projection.leaf
    branch = set() if leaf is None else set(tree.branch(leaf))

    assert [projection.is_on_branch(position) for position in range(tree.length)] == [each in branch for each in range(tree.length)]


# -- cost --------------------------------------------------------------------------------


def grow_and_look(projection: Projection) -> Callable[[], object]:
    """Appending a message and an edit of it, and reading what every turn reads."""
    tree = projection.tree
    last = tree.id_at(tree.length - 1)

    def work() -> object:
        answered = tree.append(user("q", last)).append(assistant("a", "q")).append(edit("e", "a", "q", "other"))
        grown = projection
        for position in range(tree.length, answered.length):
            grown = extend(grown, answered, position)
        entry = grown.last_assistant
        return (len(grown.messages), grown.messages[-1], grown.context_entries[-1], grown.llm_messages[-1], grown.runnable, entry)

    return work


@pytest.mark.slow
def test_growing_visits_as_much_of_a_long_branch_as_of_a_short_one() -> None:
    short = calls_in(grow_and_look(grown(chain(200))))
    long = calls_in(grow_and_look(grown(chain(20_000))))

    assert long.count("Tree.entry") == short.count("Tree.entry") < 40
    assert abs(len(long) - len(short)) < 60


@pytest.mark.slow
def test_growing_an_opened_session_does_not_walk_its_branch() -> None:
    def of_file(count: int) -> Projection:
        tree = tree_of(opened(file_of(chain(count))).image)
        return project(tree, tree.length - 1)

    short = calls_in(grow_and_look(of_file(200)))
    long = calls_in(grow_and_look(of_file(20_000)))

    assert len(long) == len(short)


def test_an_entry_elsewhere_in_the_tree_is_projected_from_scratch() -> None:
    entries = [user("u", None), assistant("a", "u"), user("v", "u")]
    tree = tree_of(entries=entries)

    moved = extend(project(tree, 1), tree, 2)

    assert facts(moved) == naive(entries, "v")


# -- identity ----------------------------------------------------------------------------


def test_messages_are_the_same_objects_however_often_and_wherefrom_they_are_read() -> None:
    first = grown([user("u", None), said("b", "u", bash(None)), edit("e", "b", "u", "other"), compaction("c", "e", "u")])
    later = extend(first, first.tree.append(user("v", "c")), 4)

    assert [id(message) for message in first.messages] == [id(message) for message in list(later.messages)[:-1]]
    assert [id(message) for message in first.llm_messages] == [id(message) for message in list(later.llm_messages)[:-1]]
    assert later.messages[-1] is later.llm_messages[-1]


def test_the_entry_of_a_message_is_found_by_the_very_object() -> None:
    projection = grown([user("u", None, "x"), user("v", "u", "x"), edit("e", "v", "u", "x")])

    assert [projection.entry_of(message) for message in projection.messages] == [projection.tree.entry(0), projection.tree.entry(1)]
    assert projection.entry_of(UserMessage(content="x", timestamp=1)) is None


# -- cases -------------------------------------------------------------------------------


def bash(excluded: bool | None) -> BashExecutionMessage:
    return BashExecutionMessage(command="ls", output="x", cancelled=False, truncated=False, exclude_from_context=excluded, timestamp=1)


def texts(projection: Projection) -> list[str]:
    with_content = UserMessage | AssistantMessage | CustomMessage
    return [text_of(message.content) for message in projection.messages if isinstance(message, with_content)]


def test_no_leaf_is_an_empty_context() -> None:
    projection = project(tree_of(entries=[user("u", None)]), None)

    assert (projection.length, projection.message_count, list(projection.messages)) == (0, 0, [])
    assert (projection.thinking_level, projection.model, projection.system) == ("off", None, None)
    assert not projection.runnable


@pytest.mark.rule("CTX-6", "MSG-3")
def test_an_explicit_null_among_the_details_of_a_custom_message_stays_one() -> None:
    stored = {"type": "custom_message", "id": "a", "parentId": None, "timestamp": TIME, "customType": "k", "content": "x", "display": True}

    shown = [codec.encode(of(codec.decode_entry({**stored, **more})).messages[0]) for more in ({"details": None}, {})]

    assert ["details" in message for message in shown] == [True, False]


@pytest.mark.rule("CTX-8")
def test_an_omission_taken_back_by_a_replacement_shows_the_message_again() -> None:
    projection = grown([user("u", None), edit("e", "u", "u"), edit("f", "e", "u", "again")])

    assert (texts(projection), projection.message_count) == (["again"], 1)


@pytest.mark.rule("CTX-3", "CTX-16")
def test_kept_system_messages_are_dropped_without_a_checkpoint() -> None:
    projection = grown([said("s", None, system("Base")), user("u", "s"), said("t", "u", system("More")), compaction("c", "t", "u")])

    assert [message.role for message in projection.messages] == ["compactionSummary", "user"]
    assert projection.system is None


@pytest.mark.rule("CTX-15", "CTX-20")
def test_later_system_messages_are_replayed_on_top_of_the_checkpoint() -> None:
    checkpoint = system("Base", sections={"a": "1"})
    projection = grown([user("u", None), compaction("c", "u", "c", system_message=checkpoint), said("s", "c", system("More", 9))])

    assert projection.system is not None
    assert (projection.system.content, projection.system.sections, projection.system.timestamp) == ("Base\n\nMore", {"a": "1"}, 5)


@pytest.mark.rule("CTX-2", "SES-22")
def test_a_selection_holds_although_another_model_answered() -> None:
    chosen = ModelChangeEntry(id="m", parent_id=None, timestamp=TIME, provider="virtual", model_id="v")

    projection = grown([chosen, assistant("a", "m")])

    assert (projection.model, projection.selected_model) == (("acme", "m"), ("virtual", "v"))


def test_an_omitted_system_message_no_longer_counts_for_the_state() -> None:
    projection = grown([said("s", None, system("Base")), edit("e", "s", "s"), said("t", "e", system("Other", 7))])

    assert projection.system is not None
    assert (projection.system.content, projection.system.timestamp) == ("Other", 7)


@pytest.mark.rule("CTX-36")
@pytest.mark.parametrize(
    ("entries", "runnable"),
    [
        ([said("s", None, system("Base"))], False),
        ([user("u", None)], True),
        ([user("u", None), assistant("a", "u")], False),
        ([user("u", None), said("s", "u", system("late"))], True),
        ([user("u", None), assistant("a", "u"), said("s", "a", system("late"))], True),
        ([user("u", None), assistant("a", "u"), said("b", "a", bash(True))], False),
        ([user("u", None), assistant("a", "u"), said("b", "a", bash(None))], True),
        ([user("u", None), assistant("a", "u"), edit("e", "a", "a")], True),
        ([user("u", None), assistant("a", "u"), compaction("c", "a", "c")], True),
    ],
)
def test_a_request_can_be_made_unless_the_assistant_spoke_last(entries: list[Entry], runnable: bool) -> None:
    assert grown(entries).runnable is runnable


def test_a_trailing_system_message_hides_the_assistant_but_is_no_request_by_itself() -> None:
    assert isinstance(grown([user("u", None), said("s", "u", system("x"))]).llm_messages[-1], SystemMessage)


def test_positions_of_the_latest_compaction_and_edit_are_known() -> None:
    projection = grown([user("u", None), compaction("c", "u", "u"), edit("e", "c", "u", "x"), user("v", "e")])

    assert (projection.compaction_position, projection.edit_position, projection.edited) == (1, 2, True)


def test_an_edit_before_the_kept_range_no_longer_counts_but_is_still_the_latest_edit_of_the_branch() -> None:
    projection = grown([user("u", None), edit("e", "u", "u", "x"), user("v", "e"), compaction("c", "v", "v")])

    assert (projection.edited, projection.edit_position) == (False, 1)


def test_a_path_through_a_cycle_stops_at_the_first_repeated_entry() -> None:
    tree = tree_of(opened(file_of([user("a", "b"), user("b", "a"), user("c", "b")])).image)

    projection = project(tree, 2)

    assert [each.entry.id for each in projection.context_entries] == ["a", "b", "c"]
    assert [projection.is_on_branch(position) for position in range(3)] == [True, True, True]
    assert facts(extend(projection, tree.append(user("d", "c")), 3)).selected[-1][0] == "d"


def test_a_preview_leaves_the_tree_it_grew_from_alone() -> None:
    tree: Tree = tree_of(entries=[user("u", None, "one")])
    base = project(tree, 0)

    preview = extend(base, tree.append(edit("p", "u", "u", "draft")), 1)
    commit = extend(base, tree.append(edit("p", "u", "u", "final")), 1)

    assert (texts(base), texts(preview), texts(commit)) == (["one"], ["draft"], ["final"])
