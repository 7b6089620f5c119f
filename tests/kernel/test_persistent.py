"""The persistent containers: which vector it is, what is frozen, what the index of ids finds."""

import copy
import gc
import json
import os
import pickle
import time
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camshaft.kernel.persistent import EMPTY, TAIL_MAX, FrozenDict, IdIndex, NotJson, freeze, index_of, thaw, vector

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
CHANGES: list[Callable[[Any], object]] = [
    lambda value: value.__setitem__("a", 2),
    lambda value: value.__delitem__("a"),
    lambda value: value.__ior__({"b": 1}),
    lambda value: value.update(b=1),
    lambda value: value.pop("a"),
    lambda value: value.popitem(),
    lambda value: value.setdefault("b", 1),
    lambda value: value.clear(),
]


@attrs.define
class Draft:
    body: str


def _lost_object() -> Draft:
    """Two dead versions that share a node, held by an exception's frame, and an item of theirs that lives on."""
    old = vector(Draft("kept") for _ in range(40))
    new = old.append(Draft("rejected"))
    kept = new[39]
    error = ValueError("rejected", old, new)
    error.args = (*error.args, error)
    return kept


def test_the_vector_is_the_one_written_in_python() -> None:
    assert type(vector([1, 2])).__module__ == "pyrsistent._pvector"


def test_no_environment_variable_switches_the_other_vector_off() -> None:
    assert "PYRSISTENT_NO_C_EXTENSION" not in os.environ


def test_an_item_outlives_the_rejected_versions_that_held_it() -> None:
    kept = [_lost_object() for _ in range(50)]

    gc.collect()

    assert [draft.body for draft in kept] == ["kept"] * 50


@pytest.mark.slow
def test_appending_costs_the_same_at_a_hundred_times_the_length() -> None:
    short, long = vector(range(1_000)), vector(range(100_000))

    assert _seconds(lambda: long.append(1)) < 10 * _seconds(lambda: short.append(1))


@given(JSON)
def test_freezing_and_thawing_gives_the_value_back(value: Any) -> None:
    assert thaw(freeze(value)) == value


@given(JSON)
def test_a_frozen_value_is_written_as_the_same_text(value: Any) -> None:
    assert json.dumps(freeze(value)) == json.dumps(value)


@pytest.mark.parametrize("change", CHANGES)
def test_a_frozen_object_refuses_every_change(change: Callable[[Any], object]) -> None:
    value = FrozenDict({"a": 1})

    with pytest.raises(TypeError, match=r"use thaw\(\)"):
        change(value)

    assert value == {"a": 1}


def test_freezing_shares_what_is_frozen_already() -> None:
    inner = FrozenDict({"a": 1})

    assert freeze({"inner": inner})["inner"] is inner
    assert copy.deepcopy(inner) is inner


def test_a_frozen_object_survives_pickling() -> None:
    value = freeze({"b": [1, {"a": None}], "a": 2})

    again = pickle.loads(pickle.dumps(value))

    assert (again, type(again), list(again)) == (value, FrozenDict, ["b", "a"])


@pytest.mark.parametrize(
    ("value", "named"),
    [({"a": [1, {2, 3}]}, r"value\.a\[1\]: \{2, 3\} \(set\)"), ({"a": {1: 2}}, r"value\.a: key 1"), (b"x", r"value: b'x' \(bytes\)")],
)
def test_what_is_not_json_is_refused_by_path(value: object, named: str) -> None:
    with pytest.raises(NotJson, match=named):
        freeze(value)


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers()), max_size=40), st.dictionaries(st.sampled_from("abcd"), st.integers())
)
def test_the_index_finds_what_a_plain_dict_finds(changes: list[tuple[str, int]], base: dict[str, int]) -> None:
    index, plain = index_of(dict(base)), dict(base)

    for key, value in changes:
        index, plain = index.set(key, value), {**plain, key: value}

    assert {key: index.get(key) for key in "abcdefgh"} == {key: plain.get(key) for key in "abcdefgh"}
    assert sorted(index.keys()) == sorted(plain)


def test_an_older_index_does_not_see_what_was_set_later() -> None:
    older = IdIndex[int]().set("a", 1)

    older.set("a", 2).set("b", 3)

    assert (older.get("a"), older.get("b"), "b" in older) == (1, None, False)


def test_the_index_finds_every_id_after_its_tail_was_sealed_many_times() -> None:
    count = 20 * TAIL_MAX + 7
    index: IdIndex[int] = IdIndex()

    for number in range(count):
        index = index.set(f"{number}", number)

    assert [index.get(f"{number}") for number in range(count)] == list(range(count))


def test_the_shared_empty_object_is_empty_and_stays_so() -> None:
    assert EMPTY == {}
    with pytest.raises(TypeError):
        EMPTY["a"] = 1


def _seconds(action: Callable[[], object]) -> float:
    """The best of several runs of 1,000, which is what the action costs when nobody disturbs it."""
    runs = []
    for _ in range(7):
        begun = time.perf_counter()
        for _ in range(1_000):
            action()
        runs.append(time.perf_counter() - begun)
    return min(runs)
