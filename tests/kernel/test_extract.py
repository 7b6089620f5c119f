"""Branch extraction, fork copies and export."""

from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camshaft.kernel import codec
from camshaft.kernel.entries import CompactionEntry, Entry, LabelEntry, OpaqueEntry, SessionHeader
from camshaft.kernel.errors import Rejection
from camshaft.kernel.extract import Extract, exported, extract_branch, fork_copy, is_worth_a_file, stored_line
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.projection import project
from camshaft.kernel.tree import Tree, tree_of
from tests.kernel.made import STEPS, TIME, Step, chain, compaction, edit, entries_of, file_of, label, naive, opened, said, system, user

NEW = SessionHeader(id="new", timestamp=TIME, cwd="/other", parent_session="old.jsonl")


def ids() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"n{next(numbers)}"


def extracted(tree: Tree, leaf: str) -> Extract:
    found = extract_branch(tree, leaf, ids())
    assert isinstance(found, Extract)
    return found


@given(STEPS, st.integers(0, 40))
def test_an_extracted_branch_has_the_context_it_had(steps: list[Step], choice: int) -> None:
    entries = [user("first", None), *entries_of(steps)]
    leaf = entries[choice % len(entries)]

    found = list(extracted(tree_of(entries=entries), leaf.id).entries())

    after, before = naive(found, found[-1].id if found else None), naive(entries, leaf.id)
    assert after.messages == before.messages
    assert (after.model, after.thinking_level, after.system) == (before.model, before.thinking_level, before.system)
    assert [entry.parent_id for entry in found] == [None, *[entry.id for entry in found[:-1]]][: len(found)]


@given(STEPS)
def test_the_lines_of_an_extract_read_as_its_entries(steps: list[Step]) -> None:
    entries = [user("first", None), *entries_of(steps)]
    tree = tree_of(opened(file_of(entries[: len(entries) // 2])).image, entries[len(entries) // 2 :])

    found = extracted(tree, entries[-1].id)

    assert [codec.decode_entry(codec.loads(line)) for line in found.lines()] == list(found.entries())
    assert len(list(found.lines())) == len(list(found.entries()))


@pytest.mark.rule("SES-79", "SES-80", "SES-81")
def test_labels_move_to_the_end_and_what_hung_below_them_moves_up() -> None:
    entries: list[Entry] = [
        user("u", None),
        label("l1", "u", "u", "start"),
        label("l2", "l1", "gone", "x"),
        user("v", "l2"),
        compaction("c", "v", "l1"),
        compaction("d", "c", "d"),
        user("elsewhere", "u"),
        label("l3", "elsewhere", "v", "late"),
        label("l4", "l3", "elsewhere", "off"),
    ]

    found = list(extracted(tree_of(entries=entries), "d").entries())

    assert [(entry.id, entry.parent_id) for entry in found] == [("u", None), ("v", "u"), ("c", "v"), ("d", "c"), ("n1", "d"), ("n2", "n1")]
    assert [entry.first_kept_entry_id for entry in found if isinstance(entry, CompactionEntry)] == ["v", "d"]
    assert [(entry.target_id, entry.label, entry.timestamp) for entry in found if isinstance(entry, LabelEntry)] == [
        ("u", "start", TIME),
        ("v", "late", TIME),
    ]


def test_a_branch_of_labels_only_has_no_entries() -> None:
    found = extracted(tree_of(entries=[label("l", None, "x", "text"), user("x", None)]), "l")

    assert list(found.entries()) == []
    assert not found.is_worth_a_file


@pytest.mark.rule("SES-82")
def test_an_unknown_leaf_is_refused() -> None:
    assert extract_branch(tree_of(), "x", ids()) == Rejection("Entry x not found")


@pytest.mark.rule("SES-55", "SES-82")
def test_a_session_without_a_word_of_user_or_assistant_is_not_worth_a_file() -> None:
    silent: list[Entry] = [said("s", None, system("x")), edit("e", "s", "s")]

    assert not extracted(tree_of(entries=silent), "e").is_worth_a_file
    assert extracted(tree_of(entries=[*silent, user("u", "e")]), "u").is_worth_a_file
    assert [is_worth_a_file(entry) for entry in [*silent, *chain(2)]] == [False, False, True, True]


def test_an_unchanged_entry_is_copied_byte_for_byte() -> None:
    odd = '{"id":"a", "type":"future" ,"parentId":null,"timestamp":"t","x":1.50}'
    tree = tree_of(opened(file_of([odd])).image, [user("b", "a")])

    assert next(extracted(tree, "b").lines()) == odd.encode() + b"\n"
    assert stored_line(tree, 1) == codec.dumps(user("b", "a"))


def test_an_entry_of_unknown_type_is_moved_up_with_everything_it_has() -> None:
    raw = FrozenDict({"type": "future", "id": "f", "parentId": "l", "timestamp": TIME, "x": 1})
    entries: list[Entry] = [user("u", None), label("l", "u", "q", "x"), codec.decode_entry(raw)]

    moved = list(extracted(tree_of(entries=entries), "f").entries())[1]

    assert isinstance(moved, OpaqueEntry)
    assert (moved.parent_id, moved.raw) == ("u", {**raw, "parentId": "u"})


# -- fork --------------------------------------------------------------------------------


@pytest.mark.rule("SES-83")
def test_a_fork_copies_every_line_behind_a_new_header() -> None:
    source = file_of([*chain(2), "{broken", user("side", "e0")])

    copied = fork_copy(source, "old.jsonl", NEW, ids())

    assert isinstance(copied, bytes)
    assert copied.split(b"\n")[0] == codec.dumps(NEW)
    assert copied.split(b"\n")[1:] == [line for line in source.split(b"\n")[1:] if line != b"{broken"]
    assert opened(copied).header.parent_session == "old.jsonl"


@pytest.mark.rule("SES-84")
def test_a_fork_of_an_old_file_is_migrated() -> None:
    message = {"type": "message", "timestamp": TIME, "message": {"role": "user", "content": "x", "timestamp": 1}}
    source = file_of([message, message], {"type": "session", "id": "old"})

    copied = fork_copy(source, "old.jsonl", NEW, ids())

    assert isinstance(copied, bytes)
    tree = tree_of(opened(copied).image)
    assert project(tree, 1).message_count == 2


@pytest.mark.parametrize("source", [b"", b"x\n", file_of([], {"type": "message", "id": "x"})])
def test_a_fork_of_nothing_is_refused(source: bytes) -> None:
    assert fork_copy(source, "a.jsonl", NEW, ids()) == Rejection("Cannot fork: source session file is empty or invalid: a.jsonl")


@pytest.mark.rule("SES-86")
def test_an_export_is_a_plain_chain_with_its_labels() -> None:
    tree = tree_of(entries=[user("a", "lost"), label("l", "a", "a", "x"), user("side", "a"), user("b", "l")])

    found = opened(exported(tree, 3, NEW))

    entries = [found.image.entry(position) for position in range(len(found.image.ids))]
    assert [(entry.id, entry.parent_id) for entry in entries] == [("a", None), ("l", "a"), ("b", "l")]
    assert found.header == NEW
    assert exported(tree, None, NEW) == codec.line(NEW)


@pytest.mark.rule("SES-86")
def test_an_export_keeps_the_bytes_of_what_needs_no_change() -> None:
    odd = '{"id":"b", "type":"future" ,"parentId":"a","timestamp":"t","x":1.50}'
    tree = tree_of(opened(file_of([user("a", "lost"), odd])).image)

    assert exported(tree, 1, NEW).split(b"\n")[2] == odd.encode()
