"""Classes that are cheap to make behave as those of attrs."""

from typing import Any

import attrs
import pytest

from camshaft.kernel import shapes

SAME = (shapes.frozen, attrs.frozen)


def plain(make: Any, **options: Any) -> Any:
    """A class of several kinds of fields."""

    @make(kw_only=True, **options)
    class Thing:
        name: str
        count: int = 0
        _hidden: str = attrs.field(default="secret", repr=False)
        left_out: int = attrs.field(default=0, eq=False)
        shown: int = attrs.field(default=0, repr=lambda value: f"<{value}>")

    return Thing


def one_field(make: Any) -> Any:
    """A class of one field."""

    @make
    class One:
        value: object

    return One


def no_field(make: Any) -> Any:
    """A class of none."""

    @make
    class Empty:
        pass

    return Empty


def test_it_is_shown_as_attrs_shows_it() -> None:
    ours, theirs = [plain(make)(name="a", shown=3) for make in SAME]

    assert repr(ours) == repr(theirs) == "Thing(name='a', count=0, left_out=0, shown=<3>)"
    assert "secret" not in repr(ours)


@pytest.mark.parametrize("of", [plain, one_field, no_field])
def test_an_object_of_another_class_with_the_same_fields_is_another(of: Any) -> None:
    fields = {"name": "a"} if of is plain else {"value": 1} if of is one_field else {}

    assert of(shapes.frozen)(**fields) != of(shapes.frozen)(**fields)


@pytest.mark.parametrize("make", SAME)
def test_equal_fields_make_equal_objects_with_equal_hashes(make: Any) -> None:
    thing = plain(make)
    one, same, other = thing(name="a", left_out=1), thing(name="a", left_out=2), thing(name="b")

    assert (one == same, one == other, hash(one) == hash(same)) == (True, False, True)
    assert {one, same, other} == {one, other}
    assert one != "a"


@pytest.mark.parametrize("make", SAME)
def test_one_field_and_none_compare_too(make: Any) -> None:
    one, empty = one_field(make), no_field(make)

    assert (one((1,)) == one((1,)), one((1,)) == one(1), empty() == empty()) == (True, False, True)
    assert len({one(1), one(1), empty(), empty()}) == 2


@pytest.mark.parametrize("make", [shapes.define, attrs.define])
def test_what_can_change_has_no_hash_and_compares_as_it_is_now(make: Any) -> None:
    one, other = plain(make)(name="a"), plain(make)(name="a")
    twin = type(one)(name="a")
    one.count = 3

    assert (one == twin, one == other) == (False, False)
    with pytest.raises(TypeError):
        hash(one)


@pytest.mark.parametrize("make", [shapes.define, attrs.define])
def test_identity_is_all_where_comparing_is_off(make: Any) -> None:
    thing = plain(make, eq=False)
    one = thing(name="a")

    assert (one == one, one == thing(name="a"), len({one})) == (True, False, 1)  # identity is the point


def test_what_holds_itself_can_be_shown() -> None:
    made = one_field(shapes.define)(None)
    made.value = [made]

    assert "..." in repr(made)


@pytest.mark.parametrize("make", SAME)
def test_what_a_class_says_itself_stays(make: Any) -> None:
    @make
    class Own:
        value: int

        def __repr__(self) -> str:
            return "mine"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 1

    own: Any = Own
    assert (repr(own(1)), own(1) == 5, hash(own(1))) == ("mine", True, 1)


@pytest.mark.parametrize("make", SAME)
def test_exceptions_stay_exceptions(make: Any) -> None:
    @make
    class Failed(Exception):
        code: int

    with pytest.raises(Failed) as caught:
        raise Failed(3)

    assert caught.value.code == 3
    assert Failed(3) != Failed(3)


def test_fields_cannot_be_set_and_a_changed_copy_can_be_made() -> None:
    thing = plain(shapes.frozen)(name="a")

    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        thing.name = "b"
    assert attrs.evolve(thing, name="b") == type(thing)(name="b")


def test_what_lives_is_only_named_inside_another() -> None:
    """All that lives knows each other: shown in full, one context would show the whole kernel, many times over."""
    owner, data = one_field(shapes.define), one_field(shapes.frozen)

    assert repr(data((owner(1), data(2)))) == "One(value=(One(...), One(value=2)))"
    assert repr(owner(data(owner(1)))) == "One(value=One(value=One(...)))"
