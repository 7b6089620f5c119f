"""Request bodies of the Anthropic API against the request types of the vendor's own package."""

import json
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from camshaft.actors.api import ModelRequest, RequestOptions
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from camshaft.kernel.messages import ModelMessage
from camshaft.kernel.persistent import FrozenDict
from tests.conformance.recorded import DATA
from tests.extensions_std.providers.asking import anthropic_model
from tests.extensions_std.providers.sdk_types import anthropic_faults
from tests.extensions_std.providers.test_preparation import HISTORIES

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
COMPATS: Final = st.fixed_dictionaries(
    {},
    optional={
        name: st.booleans()
        for name in ("supportsMidConvoSystemMessages", "forceAdaptiveThinking", "allowEmptySignature", "supportsEagerToolInputStreaming")
    },
)
LEVELS: Final = st.sampled_from(["off", "low", "high", "max"])
RETENTIONS: Final = st.sampled_from(["none", "short", "long"])


@pytest.mark.parametrize("name", NAMES)
def test_recorded_request_is_of_the_vendors_types(name: str) -> None:
    assert anthropic_faults(NAMES[name]) == []


@pytest.mark.parametrize("change", WRONG)
def test_what_the_types_do_not_know_is_refused(change: dict[str, Any]) -> None:
    assert anthropic_faults({**NAMES["an-minimal"], **change}) != []


@pytest.mark.slow
@settings(max_examples=400)
@given(HISTORIES, COMPATS, LEVELS, RETENTIONS)
def test_any_history_gives_a_request_of_the_vendors_types(
    history: list[ModelMessage], compat: dict[str, bool], level: str, retention: str
) -> None:
    model = anthropic_model(compat=FrozenDict(compat), reasoning=True, input=("text", "image"))
    conversation = WIRE_APIS[model.api].begin(model)
    conversation.follow(history)
    request = ModelRequest(model=model, thinking_level=level, messages=history, options=RequestOptions(cache_retention=retention))

    body = json.loads(conversation.body(request))

    assert anthropic_faults(body) == []
    assert _misplaced(body["messages"]) == []


@pytest.mark.slow
@settings(max_examples=300)
@given(HISTORIES, COMPATS, st.integers(0, 14))
def test_following_in_two_steps_gives_the_same_bytes_as_at_once(history: list[ModelMessage], compat: dict[str, bool], at: int) -> None:
    model = anthropic_model(compat=FrozenDict(compat), input=("text", "image"))
    stepwise, anew = WIRE_APIS[model.api].begin(model), WIRE_APIS[model.api].begin(model)
    first, whole = [ModelRequest(model=model, thinking_level="off", messages=messages) for messages in (history[:at], history)]

    stepwise.follow(first.messages)
    stepwise.body(first)
    stepwise.follow(whole.messages)
    anew.follow(whole.messages)

    assert stepwise.body(whole) == anew.body(whole)


def _misplaced(messages: list[dict[str, Any]]) -> list[str]:
    """Calls without result and results without call, ids used twice, messages and texts that say nothing."""
    faults, ids = [], list[str]()
    for number, message in enumerate(messages):
        blocks = message["content"] if isinstance(message["content"], list) else [{"type": "text", "text": message["content"]}]
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        following = messages[number + 1]["content"] if number + 1 < len(messages) else []
        results = [block["tool_use_id"] for block in following if isinstance(block, dict) and block["type"] == "tool_result"]
        if sorted(calls) != sorted(results):
            faults.append(f"calls {calls} are answered by {results}")
        ids += calls
        faults += [f"{message['role']} says nothing" for _ in range(not blocks)]
        faults += [f"blank text in {message}" for block in blocks if block["type"] == "text" and not block["text"].strip()]
    return [*faults, *[f"two calls have id {id}" for id in set(ids) if ids.count(id) > 1]]
