"""The codec and bytes: difficult JSON in both directions."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camshaft.kernel import codec
from camshaft.kernel.errors import MalformedJson

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.rule("MSG-5")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"  ",
        b"{",
        b"nothing",
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":-Infinity}',
        b'{"a":1e999}',
        b'{"a":-1e999}',
        b'{"a":' + b"1" * 5000 + b"}",
        b'{"a":"\x01"}',
        b"\xef\xbb\xbf{}",
        b'{"a":1}{"b":2}',
        b"{'a':1}",
        b"[" * 5000 + b"]" * 5000,
        b"[" * (codec.DEPTH_MAX + 1) + b"]" * (codec.DEPTH_MAX + 1),
    ],
)
def test_what_is_no_json_is_refused_with_a_reason(data: bytes) -> None:
    with pytest.raises(MalformedJson, match=r"\w"):
        codec.loads(data)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a":1,"a":2}', {"a": 2}),
        (b'{"a":9223372036854775808}', {"a": 2**63}),
        (b'{"a":18446744073709551616}', {"a": 2**64}),
        (b'{"a":-123456789012345678901234567890}', {"a": -123456789012345678901234567890}),
        (b'{"a":1}\r', {"a": 1}),
        (b'"\\ud800"', "\ud800"),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\xff"', "\ufffd"),
        (b'"\xe2\x80\xa8"', "\u2028"),
        (b"1e2", 100.0),
        (b"[" * 400 + b"]" * 400, None),
        (b"[" + b"[]," * 5000 + b"[]]", [[]] * 5001),
    ],
)
def test_difficult_json_is_read_exactly(data: bytes, value: object) -> None:
    assert codec.loads(data) == value or value is None


@pytest.mark.rule("MSG-4")
@pytest.mark.parametrize(
    ("value", "data"),
    [
        (math.nan, b"null"),
        ([math.inf, -math.inf, 1.5], b"[null,null,1.5]"),
        ({"a": "\ud800", "n": math.nan}, b'{"a":"\\ud800","n":null}'),
        ("\udc00x\ud83d", b'"\\udc00x\\ud83d"'),
        ("é\u2028\x7f\U0001f600", '"é\u2028\x7f\U0001f600"'.encode()),
        ("\x01\n", b'"\\u0001\\n"'),
        (2**64 + 1, b"18446744073709551617"),
        ({"b": 1, "a": [True, None]}, b'{"b":1,"a":[true,null]}'),
        ((), b"[]"),
    ],
)
def test_values_are_written_compactly_and_never_refused(value: object, data: bytes) -> None:
    assert codec.dumps(value) == data
    assert codec.line(value) == data + b"\n"


@given(JSON)
def test_bytes_round_trip(value: Any) -> None:
    assert codec.loads(codec.dumps(value)) == value


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_round_trips_lone_surrogates_included(text: str) -> None:
    assert codec.loads(codec.dumps({"a": text})) in ({"a": text}, {"a": text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")})
