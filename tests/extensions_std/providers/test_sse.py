"""Server-sent events come out the same wherever their bytes were cut."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from camshaft.extensions_std.providers.sse import SseEvent, SseOverflow, SseParser

TEXT = '\ufeff: hello\nevent: ping\ndata: 1\n\ndata:{"é": "a\u2028b\u0085c😀"}\ndata:  two\nid: 7\nretry: 3\n\n\n: bye\ndata: last'
EVENTS = [SseEvent("ping", b"1"), SseEvent("", '{"é": "a\u2028b\u0085c😀"}\n two'.encode()), SseEvent("", b"last")]


def _parse(*chunks: bytes) -> list[SseEvent]:
    parser = SseParser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return [*events, *parser.finish()]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_events_do_not_depend_on_where_the_bytes_are_cut(line_end: str) -> None:
    raw = TEXT.replace("\n", line_end).encode()

    parsed = [_parse(raw[:cut], raw[cut:]) for cut in range(len(raw) + 1)]

    assert parsed == [EVENTS] * (len(raw) + 1)
    assert _parse(*[raw[at : at + 1] for at in range(len(raw))]) == EVENTS


@settings(max_examples=50)
@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
def test_any_bytes_parse_the_same_in_pieces(raw: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(raw), *[min(cut, len(raw)) for cut in cuts]})

    pieces = [raw[start:end] for start, end in zip(places, places[1:], strict=False)]

    assert _parse(*pieces) == _parse(raw)


def test_line_without_end_is_refused_before_it_fills_memory() -> None:
    parser = SseParser(line_max_bytes=100)

    parser.feed(b"x" * 60)

    with pytest.raises(SseOverflow, match="line is longer than 100 bytes"):
        parser.feed(b"x" * 60)


def test_event_of_endless_data_lines_is_refused() -> None:
    parser = SseParser(line_max_bytes=100)

    parser.feed(b"data: 0123456789\n" * 10)

    with pytest.raises(SseOverflow, match="event is longer than 100 bytes"):
        parser.feed(b"data: 0\n")
