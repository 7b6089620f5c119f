"""Reading session files: every fault a file can have, and what it costs to open a long one."""

import time
from itertools import count
from typing import Any

import pytest

from camshaft.kernel.entries import CompactionEntry, CustomEntry, MessageEntry, OpaqueEntry
from camshaft.kernel.errors import Rejection
from camshaft.kernel.messages import OpaqueMessage, UserMessage
from camshaft.kernel.projection import project
from camshaft.kernel.session_file import SessionFile, read_entries, read_session
from camshaft.kernel.tree import tree_of
from tests.kernel.made import HEADER, TIME, chain, file_of, label, opened, user

FAULTY_LINES = [
    "{broken",
    "plain text",
    "5",
    "[]",
    "null",
    '"text"',
    '{"type":"custom","id":"x","parentId":null,"timestamp":"t","data":NaN}',
    '{"type":"custom","id":"x","parentId":null,"timestamp":"t","data":-Infinity}',
    '{"type":"custom","parentId":null,"timestamp":"t"}',
    '{"type":"custom","id":5,"parentId":null,"timestamp":"t"}',
    '{"type":"custom","id":"x","data":' + "[" * 6000 + "]" * 6000 + "}",
]


def entry_ids(data: bytes) -> list[str]:
    return list(opened(data).image.ids)


def line(**fields: Any) -> dict[str, Any]:
    return {"type": "message", "timestamp": TIME, "message": {"role": "user", "content": "x", "timestamp": 1}, **fields}


@pytest.mark.rule("SES-7")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n  \n",
        b"\x00\x01\xff",
        b"\xef\xbb\xbf" + file_of(chain(2)),
        file_of([], {"type": "Session", "id": "x"}),
        file_of([], {"type": "session", "id": 5}),
        file_of([], {"type": "session", "id": "x", "version": "three"}),
        file_of([], {"type": "session", "id": "x", "version": []}),
        file_of([HEADER], {"type": "message", "id": "x"}),
    ],
)
def test_a_file_without_a_header_is_refused_with_its_path(data: bytes) -> None:
    assert read_session(data, "a/b.jsonl", str) == Rejection("Session file is not a valid camshaft session: a/b.jsonl")


@pytest.mark.rule("SES-6", "SES-10", "SES-20", "MSG-5")
@pytest.mark.parametrize("fault", FAULTY_LINES)
def test_a_malformed_line_is_skipped_and_reported_with_its_number(fault: str) -> None:
    read = opened(file_of([user("a", None), fault, user("b", "a")]))

    assert list(read.image.ids) == ["a", "b"]
    assert [diagnostic.line for diagnostic in read.diagnostics] == [3]
    assert read.rewritten is None
    assert not read.lacks_newline


def test_malformed_and_blank_lines_before_the_header_are_skipped() -> None:
    data = b'\n   \n5\n{"half\n' + file_of([user("a", None)])

    assert entry_ids(data) == ["a"]
    assert [diagnostic.line for diagnostic in opened(data).diagnostics] == [3, 4]


def test_a_second_header_is_ignored() -> None:
    assert entry_ids(file_of([{**HEADER, "id": "other"}, user("a", None)])) == ["a"]
    assert opened(file_of([{**HEADER, "id": "other"}])).header.id == "demo"


@pytest.mark.rule("SES-8")
def test_a_last_line_without_a_line_end_wants_one() -> None:
    whole = file_of([user("a", None)])

    assert opened(whole[:-1]).lacks_newline
    assert entry_ids(whole[:-1]) == ["a"]
    assert opened(whole + b"  ").lacks_newline
    assert opened(whole + b'{"type":"mess').lacks_newline
    assert entry_ids(whole + b'{"type":"mess') == ["a"]


@pytest.mark.rule("SES-4", "SES-5")
def test_only_line_feeds_end_a_line_and_bad_bytes_are_replaced() -> None:
    text = "a\u2028b\u0085c\x0c"
    entry = user("a", None, text.replace("\x0c", ""))
    data = file_of([entry]).replace(b"\n", b"\r\n") + b'{"type":"message","id":"b","parentId":"a","timestamp":"t","message":'
    data += b'{"role":"user","content":"\xff","timestamp":1}}\n'

    image = opened(data).image

    assert image.entry(0) == entry
    second = image.entry(1)
    assert isinstance(second, MessageEntry)
    assert second.message == UserMessage(content="\ufffd", timestamp=1)


def test_a_body_that_only_the_envelope_could_skip_leaves_a_node_without_content() -> None:
    data = file_of(['{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"user","content":1e999,"timestamp":1}}'])

    entry = opened(data).image.entry(0)

    assert isinstance(entry, OpaqueEntry)
    assert (entry.id, entry.parent_id) == ("a", None)
    assert [each.messages for each in project(tree_of(opened(data).image), 0).context_entries] == [()]


@pytest.mark.rule("MSG-41", "MSG-43")
def test_a_message_of_a_wrong_shape_is_kept_as_it_is() -> None:
    wrong = line(id="a", parentId=None, message={"role": "user", "content": 5, "timestamp": 1})
    missing = {"type": "message", "id": "b", "parentId": "a", "timestamp": TIME}
    image = opened(file_of([wrong, missing])).image

    first = image.entry(0)
    assert isinstance(first, MessageEntry)
    assert isinstance(first.message, OpaqueMessage)
    assert isinstance(image.entry(1), OpaqueEntry)


@pytest.mark.rule("SES-21", "SES-39", "SES-40", "SES-42")
def test_odd_parents_are_reported_and_become_roots() -> None:
    read = opened(file_of([user("a", "gone"), user("b", "b"), user("c", "a"), user("c", "b")]))

    assert list(read.image.parents) == [-1, -1, 0, 1]
    assert list(read.image.depths) == [0, 0, 1, 1]
    assert ["'gone' is missing" in read.diagnostics[1].why, "own parent" in read.diagnostics[2].why] == [True, True]
    assert "'c' occurs again" in read.diagnostics[0].why


def test_children_before_their_parents_have_the_right_depth() -> None:
    read = opened(file_of([user("c", "b"), user("b", "a"), user("a", None), user("d", "c")]))

    assert list(read.image.depths) == [2, 1, 0, 3]
    assert [read.image.ids[position] for position in tree_of(read.image).branch(3)] == ["a", "b", "c", "d"]


@pytest.mark.rule("SES-13")
def test_a_newer_version_is_read_with_a_warning() -> None:
    read = opened(file_of([user("a", None)], {**HEADER, "version": 99}))

    assert read.rewritten is None
    assert "99" in read.diagnostics[0].why


def test_known_header_fields_of_a_wrong_type_are_kept_beside_the_others() -> None:
    header = opened(file_of([], {**HEADER, "version": "3", "cwd": 5, "more": 1})).header

    assert (header.version, header.cwd) == (3, None)
    assert header.extra == {"version": "3", "cwd": 5, "more": 1}


# -- bodies ------------------------------------------------------------------------------


def test_an_entry_is_one_object_as_long_as_it_is_known() -> None:
    image = opened(file_of(chain(3))).image

    assert image.entry(1) is image.entry(1)
    assert image.entry(1) == chain(3)[1]


def test_an_untouched_line_is_the_line_of_the_file() -> None:
    odd = '{ "type":"custom" , "id":"a","parentId":null,"timestamp":"t","customType":"k" }'

    image = opened(file_of([odd])).image

    assert image.line(0) == odd.encode()
    assert isinstance(image.entry(0), CustomEntry)


def test_lines_without_a_header_can_be_read_too() -> None:
    image, diagnostics = read_entries(b"\n".join(file_of(chain(2)).split(b"\n")[1:]))

    assert list(image.ids) == ["e0", "e1"]
    assert diagnostics == ()


# -- migration ---------------------------------------------------------------------------


def migrated(entries: list[Any], version: object = None) -> SessionFile:
    header = {key: value for key, value in HEADER.items() if key != "version"}
    numbers = count(1)
    read = read_session(
        file_of(entries, header if version is None else {**header, "version": version}), "s.jsonl", lambda: f"n{next(numbers)}"
    )
    assert isinstance(read, SessionFile)
    return read


@pytest.mark.rule("SES-12")
def test_a_first_version_file_gets_ids_parents_and_a_kept_id() -> None:
    read = migrated(
        [line(), line(), {"type": "compaction", "timestamp": TIME, "summary": "S", "firstKeptEntryIndex": 2, "tokensBefore": 1}]
    )

    assert [(read.image.entry(position).id, read.image.entry(position).parent_id) for position in range(3)] == [
        ("n1", None),
        ("n2", "n1"),
        ("n3", "n2"),
    ]
    assert read.rewritten is not None
    assert b'"firstKeptEntryId":"n2"' in read.rewritten
    assert b"firstKeptEntryIndex" not in read.rewritten
    assert read.rewritten.startswith(b'{"type":"session","id":"demo"')
    assert read.header.version == 3


@pytest.mark.rule("SES-12")
@pytest.mark.parametrize("index", [0, 3, 99, -1, 0.5])
def test_a_kept_index_that_is_no_earlier_entry_keeps_nothing(index: float) -> None:
    compacted = {"type": "compaction", "timestamp": TIME, "summary": "S", "firstKeptEntryIndex": index, "tokensBefore": 1}

    read = migrated([line(), compacted, line()])

    assert read.rewritten is not None
    assert b"firstKept" not in read.rewritten
    assert [diagnostic.line for diagnostic in read.diagnostics] == [3]


@pytest.mark.rule("SES-9", "SES-12")
@pytest.mark.parametrize(("index", "kept"), [(1, "n1"), (2, None), (3, "n2")])
def test_a_further_header_has_a_place_that_a_kept_index_counts(index: int, kept: str | None) -> None:
    compacted = {"type": "compaction", "timestamp": TIME, "summary": "S", "firstKeptEntryIndex": index, "tokensBefore": 1}

    read = migrated([line(), {"type": "session", "id": "other"}, line(), compacted])

    found = read.image.entry(2)
    assert isinstance(found, CompactionEntry)
    assert (found.parent_id, found.first_kept_entry_id) == ("n2", kept)


@pytest.mark.rule("SES-12", "SES-27")
def test_a_compaction_that_keeps_itself_keeps_nothing_and_says_so_with_its_own_id() -> None:
    compacted = {"type": "compaction", "timestamp": TIME, "summary": "S", "firstKeptEntryIndex": 2, "tokensBefore": 1}

    read = migrated([line(), compacted])

    assert read.rewritten is not None
    assert b'"firstKeptEntryId":"n2"' in read.rewritten
    assert read.diagnostics == ()


def test_a_new_id_that_is_taken_is_drawn_again() -> None:
    numbers = iter(["a", "a", "a", "b"])
    read = read_session(file_of([line(), line()], {"type": "session", "id": "x"}), "s", lambda: next(numbers))

    assert isinstance(read, SessionFile)
    assert list(read.image.ids) == ["a", "b"]


@pytest.mark.rule("SES-14", "SES-15")
def test_migration_leaves_every_other_line_as_it_was() -> None:
    hook = line(id="h", parentId=None, message={"role": "hookMessage", "customType": "k", "content": "c", "display": True, "timestamp": 1})
    kept = ['{ "type":"custom","id":"a","parentId":"h", "timestamp":"t","customType":"k" }', "{broken", "  "]

    read = migrated([hook, *kept], 2)

    assert read.rewritten is not None
    lines = read.rewritten.decode().split("\n")
    assert lines[2:] == [*kept, ""]
    assert '"role":"custom"' in lines[1]
    assert list(read.image.ids) == ["h", "a"]
    assert [diagnostic.line for diagnostic in read.diagnostics] == [4]


def test_a_migrated_file_is_read_again_without_migration() -> None:
    once = migrated([line(), line()])
    assert once.rewritten is not None

    twice = opened(once.rewritten)

    assert twice.rewritten is None
    assert list(twice.image.ids) == list(once.image.ids)


# -- cost --------------------------------------------------------------------------------


@pytest.mark.slow
def test_opening_decodes_no_messages() -> None:
    data = file_of([*chain(20_000), label("l", "e19999", "e3", "here")])
    started = time.process_time()

    tree = tree_of(opened(data).image)
    projection = project(tree, tree.length - 1)

    assert time.process_time() - started < 2
    assert (projection.message_count, tree.label("e3")) == (20_000, "here")
    assert tree.base is not None
    assert len(tree.base._recent) < 5
