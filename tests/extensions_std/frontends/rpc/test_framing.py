"""Lines and records, whatever is in them and however they are cut (RPC-1 to RPC-10)."""

import json
from itertools import accumulate, pairwise
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from camshaft.actors.api import dumps
from camshaft.actors.host import MalformedJson
from camshaft.extensions_std.frontends.rpc.lines import Lines, value_of
from camshaft.extensions_std.frontends.rpc.records import NOTHING, Ready, line_of, success

CODE_POINTS: Final = 0x110000
BLOCK: Final = 0x1000
OTHER_LINE_ENDS: Final = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
texts = st.text(st.characters() | st.sampled_from(OTHER_LINE_ENDS), max_size=40)
"""Any characters, halves of surrogate pairs included, and often what others take for the end of a line."""
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def read(content: bytes, sizes: list[int]) -> tuple[list[bytes], bytes]:
    """The lines of `content`, fed in pieces of these sizes and the rest in one, and what follows the last of them."""
    lines, found = Lines(), list[bytes]()
    ends = [*[end for end in accumulate(sizes) if end < len(content)], len(content)]
    for start, end in pairwise([0, *ends]):
        found += lines.feed(content[start:end])
    return found, lines.rest()


@given(st.lists(st.binary(max_size=80).map(lambda each: each.replace(b"\n", b"")), max_size=8), st.binary(max_size=9), st.data())
def test_lines_are_the_same_however_they_are_cut(lines: list[bytes], rest: bytes, data: st.DataObject) -> None:
    rest = rest.replace(b"\n", b"")
    content = b"".join([line + b"\n" for line in lines]) + rest

    sizes = data.draw(st.lists(st.integers(1, 40), max_size=60))

    assert read(content, sizes) == (lines, rest)


@pytest.mark.parametrize("length", [0, 1, 4095, 4096, 65535, 65536, 65537, 1 << 20])
def test_a_line_of_any_length_is_one_line(length: int) -> None:
    line = json.dumps({"type": "prompt", "message": "é" * length}, ensure_ascii=False).encode()

    assert read(line + b"\n", [4093] * (len(line) // 4093)) == ([line], b"")
    assert value_of(line) == {"type": "prompt", "message": "é" * length}


@pytest.mark.parametrize("first", range(0, CODE_POINTS, BLOCK))
def test_every_code_point_goes_out_and_comes_in_as_it_is(first: int) -> None:
    text = "".join([chr(point) + "x" for point in range(first, first + BLOCK)])

    line = line_of({"name": text})

    assert (line.count(b"\n"), line[-1:], line.count(b"\r")) == (1, b"\n", 0)
    assert value_of(line[:-1]) == {"name": text}
    assert json.loads(line) == {"name": text}


@settings(max_examples=300)
@given(values, values, st.data())
def test_a_record_goes_through_whole_whatever_is_in_it(id: Any, result: Any, data: st.DataObject) -> None:
    record = success(id, "get_state", result)
    line = line_of(record)

    (found,), rest = read(line, data.draw(st.lists(st.integers(1, 7), max_size=200)))

    assert rest == b""
    assert value_of(found) == json.loads(json.dumps(record))
    assert value_of(found + b"\r") == value_of(found)


@given(values)
def test_a_result_that_is_json_already_is_put_in_as_it_is(result: Any) -> None:
    plain = line_of(success(7, "get_tree", result))

    assert json.loads(line_of(success(7, "get_tree", Ready(dumps(result))))) == json.loads(plain)


def test_an_answer_without_id_or_result_has_no_such_field() -> None:
    assert line_of(success(NOTHING, "abort")) == b'{"type":"response","command":"abort","success":true}\n'
    assert (
        line_of(success(None, "cycle_model", None)) == b'{"id":null,"type":"response","command":"cycle_model","success":true,"data":null}\n'
    )


@given(st.binary(max_size=30))
def test_bytes_that_are_no_characters_read_as_replacements(junk: bytes) -> None:
    clean = junk.replace(b"\n", b"").replace(b'"', b"").replace(b"\\", b"")
    printable = bytes([each for each in clean if each >= 0x20])

    assert value_of(b'{"name":"' + printable + b'"}') == {"name": printable.decode("utf-8", "replace")}


@pytest.mark.parametrize(
    "line", [b"", b"  ", b"\r", b"{", b"\xef\xbb\xbf{}", b"{}\r\r{", b"NaN", b'{"a":1e999}', b"[" * 100_000, b'{"a":' * 100_000]
)
def test_what_is_no_json_is_refused(line: bytes) -> None:
    with pytest.raises(MalformedJson):
        value_of(line)
