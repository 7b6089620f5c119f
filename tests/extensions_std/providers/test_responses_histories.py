"""Any history becomes a request that OpenAI's responses take, and the same one however it was followed."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from camshaft.actors.api import ModelRequest
from camshaft.extensions_std.providers.openai_responses import RESPONSES
from camshaft.kernel.messages import ModelMessage
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import freeze
from tests.extensions_std.providers.sdk_types_openai import faults_of
from tests.extensions_std.providers.test_preparation import HISTORIES, INPUTS, LONE_HALF

COMPATS = st.fixed_dictionaries({}, optional={"supportsMidConvoSystemMessages": st.booleans(), "supportsStrictMode": st.booleans()})
PROVIDERS = st.sampled_from(["openai", "local"])


def _body(model: Model, history: list[ModelMessage], at: int = 0) -> dict[str, Any]:
    """The body for a history that was first seen up to `at`, and then in full."""
    conversation = RESPONSES.begin(model)
    for messages in (history[:at], history):
        conversation.follow(messages)
        raw = conversation.body(ModelRequest(model=model, thinking_level="off", messages=messages))
    body: dict[str, Any] = json.loads(raw.decode("utf-8"))
    return body


def _model(compat: dict[str, bool], provider: str = "openai", takes: tuple[str, ...] = ("text",)) -> Model:
    return Model(id="gpt", provider=provider, api="openai-responses", reasoning=True, compat=freeze(compat), input=takes)


def _misplaced(items: list[dict[str, Any]]) -> list[str]:
    """Calls whose results are missing, twice, or not next; results of no call are let through, as they are sent on purpose."""
    faults, waiting = [], list[str]()
    for item in items:
        kind = item.get("type", "")
        if kind == "function_call":
            faults += [f"two calls share an id: {item}"] if item["call_id"] in waiting else []
            waiting.append(item["call_id"])
        elif kind == "function_call_output":
            waiting = [id for id in waiting if id != item["call_id"]]
        elif waiting and (item.get("role") != "assistant" and kind != "reasoning"):
            faults.append(f"no result for {waiting} before {item}")
    return [*faults, *([f"no result at the end for {waiting}"] if waiting else [])]


@pytest.mark.slow
@settings(max_examples=200)
@given(HISTORIES, COMPATS, PROVIDERS, INPUTS)
def test_any_history_becomes_a_valid_request(
    history: list[ModelMessage], compat: dict[str, bool], provider: str, takes: tuple[str, ...]
) -> None:
    body = _body(_model(compat, provider, takes), history)

    assert _misplaced(body["input"]) == []
    assert faults_of("openai-responses", body) == []
    assert LONE_HALF.search(repr(body)) is None
    assert all(len(item.get("id", "")) <= 64 and len(item.get("call_id", "")) <= 64 for item in body["input"])


@pytest.mark.slow
@settings(max_examples=300)
@given(HISTORIES, COMPATS, st.integers(0, 14))
def test_following_in_two_steps_gives_the_same_request_as_at_once(history: list[ModelMessage], compat: dict[str, bool], at: int) -> None:
    """WIRE-85: ids that are made up stay, so what the server has cached stays good."""
    assert _body(_model(compat), history, at) == _body(_model(compat), history)
