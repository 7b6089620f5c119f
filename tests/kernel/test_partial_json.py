"""Previews of streamed arguments and their strict parse at the end."""

import json
import math
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camshaft.kernel.partial_json import DEPTH_MAX, final_arguments, preview

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OBJECT = st.dictionaries(st.text(), JSON, max_size=5)

PREVIEWS: list[tuple[str, Any]] = [
    ("", {}),
    ("[1]", {}),
    ('"{}"', {}),
    ("true", {}),
    ('Here you are: {"a":1}', {"a": 1}),
    ('{"a":NaN,"b":[1,Infinity,-Infinity,2],"c":3}', {"b": [1, 2], "c": 3}),
    ('{"a":1e400,"b":1.5e3}', {"b": 1500.0}),
    ('{"a":' + "9" * 5000 + ',"b":1}', {"b": 1}),
    ('{"a":"x\\ud83d\\ude00"}', {"a": "x😀"}),
    ('{"a":"\\d\\u12"', {"a": "\\d\\u12"}),
    ('{"a":"x\\u12', {"a": "x"}),
    ('{"a":[1,[2,{"b":tr', {"a": [1, [2, {"b": True}]]}),
    ('{"a":None', {}),
    ('{"a":1 "b":2}', {"a": 1, "b": 2}),
    ('{"a":1}{"b":2}', {"a": 1}),
    ('{"a":{"b":}', {"a": {}}),
    ('{"a":[1}2],"b":2', {"a": [1]}),
    ('{"a":{]1},"b":2', {"a": {}}),
    ('{{"b":1},"c":2', {"c": 2}),
    ('{["b":1],"c":2', {"c": 2}),
    ('{"a"::2', {"a": 2}),
    ('{"a"[1', {"a": [1]}),
    ('{"a":1e,"b":[2e+,3]', {"b": [3]}),
    ('{"a":1e', {"a": 1}),
    ('{"a":1/,"b":2\\', {}),
    ('{"a":[x{"b":2', {"a": [{"b": 2}]}),
    ('{"a":[1x"y" 2', {"a": ["y", 2]}),
    ('1x {"a":1', {"a": 1}),
    ('1 {"a":1', {}),
    ('{"a":[tru,', {"a": []}),
]

PIECES: list[tuple[list[str], Any]] = [
    (['{"a":[tru', ","], {"a": [True]}),
    (['{"a":[tru', ", ", "1."], {"a": []}),
    (['{"a":[tr', "u,"], {"a": []}),
    (['{"a":[tru', "]"], {"a": []}),
    (['{"a":[1e', ","], {"a": [1]}),
    (['{"a":tru', ',"b":'], {"a": True}),
    (['{"a":tru', ',"b":2'], {"b": 2}),
    (['{"a":1,"a":tru', ","], {"a": True}),
    (['{"a":1,"a":tru', ",", '"b":[]'], {"a": 1, "b": []}),
    (['{"a":tru', ", {"], {}),
    (['{"a":{"b":nul', ",", "}"], {"a": {}}),
]


@pytest.mark.parametrize(("text", "shown"), PREVIEWS)
def test_preview_shows_what_reads_as_json_so_far(text: str, shown: Any) -> None:
    assert json.loads(json.dumps(preview(text))) == shown


@pytest.mark.parametrize(("pieces", "shown"), PIECES)
def test_value_shown_at_the_end_of_a_piece_stays_until_the_next_one_begins(pieces: list[str], shown: Any) -> None:
    assert json.loads(json.dumps(preview("".join(pieces), pieces))) == shown


@given(OBJECT)
def test_preview_of_complete_text_is_its_value(value: Any) -> None:
    text = json.dumps(value)

    assert json.dumps(preview(text)) == json.dumps(value)
    assert json.dumps(final_arguments(text)[0]) == json.dumps(value)


@given(OBJECT, st.data())
def test_preview_of_any_beginning_never_raises_and_has_only_keys_of_the_whole(value: Any, data: Any) -> None:
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()))

    shown = preview(text[: data.draw(st.integers(0, len(text)))])

    assert set(shown) <= set(value)


@given(st.text(st.sampled_from('{}[]",:\\ue0123456789-+.tfn aé\n\ud83d\ude00'), max_size=80))
def test_garbage_never_raises(text: str) -> None:
    preview(text)
    arguments, error = final_arguments(text)

    assert error is None or (arguments == {} and error.endswith(f"\n\nReceived arguments:\n{text}"))


MALFORMED = ["[1]", "null", "1", '{"a":1', '{"a":1}x', "{'a':1}", '{"a":1e400}', '{"a":NaN}', '{"a":' + "9" * 5000 + "}"]


@pytest.mark.parametrize("text", MALFORMED)
def test_text_that_is_no_object_gives_no_arguments_and_says_why(text: str) -> None:
    """STR-26; a reason, an empty line, and the raw text."""
    arguments, error = final_arguments(text)

    assert arguments == {}
    assert error is not None
    why, _, rest = error.partition("\n\n")
    assert why
    assert rest == f"Received arguments:\n{text}"


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_blank_text_is_the_empty_object(text: str) -> None:
    assert final_arguments(text) == ({}, None)


REPAIRED = [
    ('{"a":"one\ntwo\ttab"}', "one\ntwo\ttab"),
    ('{"a":"C:\\dir"}', "C:\\dir"),
    ('{"a":"\\u12G4"}', "\\u12G4"),
    ('{"a":"ok \\\\ \\" \\d\x01"}', 'ok \\ " \\d\x01'),
]


@pytest.mark.parametrize(("text", "value"), REPAIRED)
def test_two_slips_inside_strings_are_repaired(text: str, value: str) -> None:
    assert final_arguments(text) == ({"a": value}, None)


def test_nesting_is_bounded_in_both_parses() -> None:
    text = '{"a":' * 100_000

    shown = preview(text)

    depth = 0
    while shown:
        shown, depth = shown["a"], depth + 1
    assert depth == DEPTH_MAX - 1
    assert "deeper" in (final_arguments(text)[1] or "")


@pytest.mark.slow
def test_cost_is_linear_in_the_text() -> None:
    """Texts that could make a careless parser look back or ahead again and again."""
    shapes = [
        '{"a":"' + "x\\" * 10_000,
        '{"a":"' + "\\u00e9" * 10_000,
        "{" + '"k":1,' * 10_000,
        "n" * 20_000,
        "1" * 20_000,
        '{"' * 10_000,
        '{"k":' + "t," * 10_000,
    ]

    for shape in shapes:
        short, long = (min(_cost(shape[:1] + shape[1:] * times) for _ in range(3)) for times in (1, 8))
        assert long < 40 * max(short, 1e-4), shape[:12]


def _cost(text: str) -> float:
    begun = time.process_time()
    preview(text, list(text))
    return time.process_time() - begun


def test_numbers_keep_their_kind() -> None:
    shown = preview('{"i":12345678901234567890,"f":1.0,"e":1e3}')

    assert (shown["i"], type(shown["f"]), math.isclose(shown["e"], 1000)) == (12345678901234567890, float, True)
