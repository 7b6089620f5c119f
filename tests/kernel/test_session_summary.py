"""What a listing shows of a session file."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camshaft.kernel import codec
from camshaft.kernel.entries import MessageEntry, SessionInfoEntry
from camshaft.kernel.session_summary import HEADER_BYTES_MAX, SessionItem, head_of, summary_of
from tests.kernel.made import HEADER, STEPS, Step, assistant, chain, entries_of, file_of, opened, user

FILE_MS = 77


def pieces(data: bytes, size: int = 7) -> Iterator[bytes]:
    return iter([data[at : at + size] for at in range(0, len(data), size)])


def item(data: bytes, size: int = 7) -> SessionItem:
    found = summary_of(pieces(data, size), "s.jsonl", FILE_MS)
    assert found is not None
    return found


def line(**fields: object) -> bytes:
    return codec.dumps({"id": "x", "parentId": None, "timestamp": "1970-01-01T00:00:09.000Z", **fields})


def with_lines(*lines: bytes) -> bytes:
    return file_of([]) + b"".join([each + b"\n" for each in lines])


@given(STEPS, st.integers(1, 4000))
def test_a_file_counts_as_it_does_when_it_is_opened(steps: list[Step], size: int) -> None:
    data = file_of(entries_of(steps))

    found, image = item(data, size), opened(data).image

    entries = [image.entry(position) for position in range(len(image.ids))]
    assert found.message_count == sum(isinstance(entry, MessageEntry) for entry in entries)
    names = [entry.name for entry in entries if isinstance(entry, SessionInfoEntry)]
    assert found.name == ((names[-1] or None) if names else None)


@given(st.lists(st.one_of(st.binary(max_size=40), st.sampled_from([b"{", b"\n", b'{"type":"message"}', b'{"type":"session","id":"a"}\n']))))
def test_whatever_stands_in_a_file_it_is_an_item_or_none(parts: list[bytes]) -> None:
    for data in (b"".join(parts), file_of([]) + b"".join(parts)):
        found = summary_of(pieces(data), "s.jsonl", FILE_MS)
        assert found is None or found.path == "s.jsonl"


@pytest.mark.rule("SES-72")
def test_texts_of_one_message_and_of_all_are_joined_with_a_space() -> None:
    block = {"type": "text", "text": "one"}
    odd = [block, {"type": "image", "data": "A"}, {"type": "text", "text": "two"}, {"type": "text", "text": 3}, "x"]
    data = with_lines(
        line(type="message", message={"role": "assistant", "content": [block]}),
        line(type="message", message={"role": "user", "content": odd}),
        line(type="message", message={"role": "toolResult", "content": [block]}),
    )

    assert (item(data).first_message, item(data).all_messages_text) == ("one two", "one one two")


@pytest.mark.rule("SES-73")
@pytest.mark.parametrize("content", [None, 5, {}, [], [None], "missing"])
def test_content_that_is_none_is_no_text_but_a_message(content: object) -> None:
    fields = {} if content == "missing" else {"content": content}
    found = item(with_lines(line(type="message", message={"role": "user", **fields}), codec.dumps(user("u", None, "q"))))

    assert (found.message_count, found.first_message, found.all_messages_text) == (2, "q", "q")


@pytest.mark.rule("SES-71")
@pytest.mark.parametrize(
    ("at_ms", "timestamp", "expected"),
    [
        (5000, "1970-01-01T00:00:09.000Z", 5000),
        (5000.9, "1970-01-01T00:00:09.000Z", 5000),
        ("soon", "1970-01-01T00:00:09.000Z", 9000),
        (None, "1970-01-01T00:00:09.000Z", 9000),
        (True, "1970-01-01T00:00:09.000Z", 9000),
        (None, "never", 1000),
        (0, "1970-01-01T00:00:09.000Z", 1000),
        (10**30, "1970-01-01T00:00:09.000Z", 1000),
    ],
)
def test_activity_is_the_time_of_a_message_else_of_its_entry_else_of_the_header(at_ms: object, timestamp: str, expected: int) -> None:
    header = {**HEADER, "timestamp": "1970-01-01T00:00:01.000Z"}
    said = {"type": "message", "id": "x", "timestamp": timestamp, "message": {"role": "user", "content": "q", "timestamp": at_ms}}

    assert item(file_of([said], header)).modified_ms == expected


@pytest.mark.rule("SES-71")
def test_without_any_time_the_file_has_one() -> None:
    found = item(file_of([], {"type": "session", "id": "a"}))

    assert (found.created_ms, found.modified_ms, found.cwd, found.first_message) == (None, FILE_MS, "", "(no messages)")


@pytest.mark.rule("SES-20")
def test_an_entry_without_an_id_counts_in_the_first_version_only() -> None:
    said = {"type": "message", "message": {"role": "user", "content": "q"}}
    odd = {**said, "name": 5}

    assert item(file_of([said, odd], {"type": "session", "id": "a"})).message_count == 2
    assert item(file_of([said, odd], {"type": "session", "id": "a", "version": "2"})).message_count == 0


@pytest.mark.rule("SES-6", "SES-7", "SES-9")
@pytest.mark.parametrize("before", [b"", b"\n \n", b"junk\n", b"5\n[]\nnull\n"])
def test_odd_lines_before_the_header_are_passed_over_and_later_headers_too(before: bytes) -> None:
    data = before + file_of(chain(1)) + file_of([], {"type": "session", "id": "later", "cwd": "/later"})

    assert item(data).cwd == item(file_of(chain(1))).cwd
    assert item(data).message_count == 1


@pytest.mark.rule("SES-7", "SES-12")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"junk",
        b'{"type":"message","id":"a"}\n',
        b'{"type":"session"}',
        b'{"type":"session","id":"a","version":"new"}\n',
        b"\xef\xbb\xbf",
    ],
)
def test_what_has_no_header_is_no_session(data: bytes) -> None:
    data = data + file_of(chain(1)) if data == b"\xef\xbb\xbf" else data

    assert summary_of(pieces(data), "s.jsonl", FILE_MS) is None
    assert head_of(pieces(data)) is None


@pytest.mark.rule("SES-19")
def test_a_header_is_looked_for_in_the_first_mebibyte_only_and_no_more_is_read() -> None:
    asked = []

    def endless() -> Iterator[bytes]:
        while True:
            asked.append(1)
            yield b"x" * (HEADER_BYTES_MAX // 4)

    assert head_of(endless()) is None
    assert summary_of(endless(), "s.jsonl", FILE_MS) is None
    assert len(asked) == 8


def test_one_huge_line_is_read_whole() -> None:
    text = "x" * 5_000_000
    data = file_of([user("u", None, text), assistant("a", "u", "yes")])

    assert item(data, 65536).all_messages_text == f"{text} yes"


def test_a_line_nested_too_deeply_is_no_message() -> None:
    deep = b'{"type":"message","id":"d","message":{"role":"user","content":' + b"[" * 3000 + b"]" * 3000 + b"}}"

    assert item(with_lines(deep, codec.dumps(user("u", None, "q")))).message_count == 1
