"""Request bodies of the Anthropic API against the request types of the vendor's own package.

Those of random histories are in test_random_requests.py.
"""

import json
from typing import Any, Final

import pytest

from tests.conformance.recorded import DATA
from tests.extensions_std.providers.sdk_types import anthropic_faults

CASES: Final = json.loads((DATA / "wire" / "requests-anthropic.json").read_text("utf-8"))["cases"]
NAMES: Final = {case["name"]: case["expect"]["request"]["body"] for case in CASES}
WRONG: Final[list[dict[str, Any]]] = [
    {"unknown": 1},
    {"max_tokens": "many"},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "unknown": 1}]}]},
    {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "", "unknown": 1}]}]},
    {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "b", "input": {}, "index": 0}]}]},
    {"tools": [{"name": "a", "description": "", "input_schema": {"type": "object"}, "unknown": 1}]},
    {"thinking": {"type": "enabled", "budget_tokens": 1, "effort": "low"}},
    {"system": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "2h"}}]},
]


@pytest.mark.parametrize("name", NAMES)
def test_recorded_request_is_of_the_vendors_types(name: str) -> None:
    assert anthropic_faults(NAMES[name]) == []


@pytest.mark.parametrize("change", WRONG)
def test_what_the_types_do_not_know_is_refused(change: dict[str, Any]) -> None:
    assert anthropic_faults({**NAMES["an-minimal"], **change}) != []
