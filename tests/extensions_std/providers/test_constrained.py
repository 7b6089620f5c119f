"""Tool schemas made strict: what can be, what cannot, and that no schema breaks the attempt."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camshaft.extensions_std.providers.constrained import UNCONVERTIBLE, ConstraintRefused, strict_parameters
from camshaft.kernel.messages import ToolDeclaration
from camshaft.kernel.persistent import freeze

NODES = st.one_of(st.none(), st.booleans(), st.integers(), st.sampled_from(["object", "array", "string", "null", "a"]))
KEYWORDS = st.sampled_from(
    ["type", "properties", "required", "items", "anyOf", "enum", "const", "additionalProperties", "a", *UNCONVERTIBLE]
)
SCHEMAS = st.recursive(
    NODES, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYWORDS, inner, max_size=4)), max_leaves=12
)


def _tool(parameters: Any, strict: str = "prefer") -> ToolDeclaration:
    wish = freeze({"type": "json_schema", "strict": strict})
    return ToolDeclaration(name="t", description="", parameters=freeze(parameters), constrained_sampling=wish)


def test_optional_properties_become_required_and_may_be_null() -> None:
    inner = {"type": "object", "properties": {"x": {"enum": ["a", None]}}}
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "o": inner, "n": {"type": ["integer", "null"]}}, "required": ["a"]}

    made = strict_parameters(_tool(schema), is_supported=True)

    strict_inner = {**inner, "required": ["x"], "additionalProperties": False}
    assert freeze(made) == freeze(
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "o": {"anyOf": [strict_inner, {"type": "null"}]}, "n": {"type": ["integer", "null"]}},
            "required": ["a", "o", "n"],
            "additionalProperties": False,
        }
    )


@pytest.mark.parametrize("keyword", UNCONVERTIBLE)
def test_keyword_that_strict_mode_does_not_know_is_named(keyword: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", keyword: {}}}}

    with pytest.raises(ConstraintRefused) as refused:
        strict_parameters(_tool(schema, "require"), is_supported=True)

    assert str(refused.value) == f'Tool "t" requires JSON-schema constrained sampling, but parameters.a uses {keyword}.'
    assert strict_parameters(_tool(schema), is_supported=True) is None


def test_model_without_strict_mode_refuses_what_requires_it() -> None:
    with pytest.raises(ConstraintRefused) as refused:
        strict_parameters(_tool({"type": "object"}, "require"), is_supported=False)

    assert str(refused.value) == 'Tool "t" requires JSON-schema constrained sampling, but strict tools are unsupported.'


def test_what_an_api_refuses_besides_is_named_too() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}}

    with pytest.raises(ConstraintRefused, match="but parameters.a uses minimum"):
        strict_parameters(_tool(schema, "require"), is_supported=True, refusal=lambda node: "minimum" if "minimum" in node else None)


@given(st.dictionaries(KEYWORDS, SCHEMAS))
def test_no_schema_whatever_its_shape_breaks_the_attempt(schema: dict[str, Any]) -> None:
    made = strict_parameters(_tool({"type": "object", **schema}), is_supported=True)

    assert made is None or made["additionalProperties"] is False
