"""The lazy sequence agrees with a list of the same items, however it is read."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camshaft.kernel.view import NEAR_MAX, View


def view(count: int, known: bool) -> View[int]:
    return View(lambda: iter(range(count)), lambda: iter(range(count - 1, -1, -1)), count if known else None)


def items(count: int) -> list[int]:
    return list(range(count))


BOUNDS = st.none() | st.integers(-120, 120)


@given(st.integers(0, 100), st.booleans(), BOUNDS, BOUNDS, st.sampled_from([None, 1, 2, -1]))
def test_slices_are_those_of_a_list(count: int, known: bool, start: int | None, stop: int | None, step: int | None) -> None:
    assert list(view(count, known)[start:stop:step]) == items(count)[start:stop:step]


@given(st.integers(1, 200), st.booleans(), st.data())
def test_items_are_those_of_a_list(count: int, known: bool, data: st.DataObject) -> None:
    index = data.draw(st.integers(-count, count - 1))

    assert view(count, known)[index] == items(count)[index]


@given(st.integers(0, 100), st.booleans())
def test_length_truth_and_both_directions_are_those_of_a_list(count: int, known: bool) -> None:
    found = view(count, known)

    assert bool(found) == (count > 0)
    assert (len(found), list(found), list(reversed(found))) == (count, items(count), items(count)[::-1])
    assert (list(found[:]), list(found), list(reversed(found))) == (items(count), items(count), items(count)[::-1])


@pytest.mark.parametrize("index", [3, -4, 1000, -1000])
@pytest.mark.parametrize("known", [True, False])
def test_an_index_beyond_the_end_is_refused(index: int, known: bool) -> None:
    with pytest.raises(IndexError):
        view(3, known)[index]


def test_items_near_the_end_are_found_without_listing_the_others() -> None:
    walked: list[int] = []

    def backward() -> Iterator[int]:
        for number in range(10**6, 0, -1):
            walked.append(number)
            yield number

    found: View[int] = View(lambda: iter(()), backward, 10**6)

    assert found[-3] == 10**6 - 2
    assert found[10**6 - 1] == 10**6
    assert found[-2:] == (10**6 - 1, 10**6)
    assert len(walked) < NEAR_MAX
