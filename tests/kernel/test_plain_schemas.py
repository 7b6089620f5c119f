"""The quick answer must never disagree with the full check."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camshaft.kernel.arguments import _validator
from camshaft.kernel.coercion import coerced
from camshaft.kernel.persistent import thaw
from camshaft.kernel.plain_schemas import fits_plainly
from camshaft.kernel.schema_errors import errors_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.sampled_from(["", "a", "1", "true"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=8,
)


def _schemas() -> Any:
    leaf = st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "number", "integer", "boolean", "array", "object"])},
        optional={"enum": st.lists(st.sampled_from(["a", "1", ""]), min_size=1, max_size=2), "description": st.just("d")},
    )
    return st.recursive(
        leaf,
        lambda inner: (
            st.fixed_dictionaries(
                {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)},
                optional={"required": st.lists(st.sampled_from(["a", "b"]), max_size=2), "additionalProperties": st.booleans()},
            )
            | st.fixed_dictionaries({"type": st.just("array")}, optional={"items": inner})
        ),
        max_leaves=6,
    )


@given(schema=_schemas(), value=VALUES)
def test_what_fits_plainly_passes_the_full_check_unchanged(schema: dict[str, Any], value: Any) -> None:
    plainly = fits_plainly(schema, value)

    validator = _validator(schema)
    after = coerced(validator, thaw(value))
    fits_fully = not errors_of(validator, after) and repr(after) == repr(value)

    assert fits_fully or not plainly


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object"}, {}),
        ({"type": "object", "properties": {"x": {"type": "number"}}}, {"x": 1}),
        ({"type": "object", "properties": {"x": {"type": "array", "items": {"type": "string"}}}, "required": ["x"]}, {"x": ["a"]}),
    ],
)
def test_ordinary_arguments_fit_plainly(schema: dict[str, Any], value: Any) -> None:
    assert fits_plainly(schema, value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object", "minProperties": 1}, {"x": 1}),
        ({"type": "integer"}, True),
        ({"type": "integer"}, "1"),
        ({"type": ["string", "null"]}, "a"),
        ({"$ref": "#/x"}, {}),
        (True, {}),
    ],
)
def test_everything_else_is_left_to_the_full_check(schema: Any, value: Any) -> None:
    assert not fits_plainly(schema, value)
