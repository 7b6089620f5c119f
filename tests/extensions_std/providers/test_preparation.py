"""What is made of single messages before they are written down; random histories are in test_random_requests.py."""

import json
from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from camshaft.actors.api import Model, freeze
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from camshaft.kernel.messages import (
    AssistantMessage,
    Block,
    ModelMessage,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from tests.extensions_std.providers.random_requests import request_of

GO = UserMessage(content="go", timestamp=1)


def _answer(*blocks: Block, model: str = "other") -> AssistantMessage:
    return AssistantMessage(content=blocks, api="openai-completions", provider="acme", model=model, stop_reason="stop", timestamp=1)


def _result(call_id: str, name: str = "read") -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=call_id, tool_name=name, content=(TextBlock(text=call_id),), is_error=False, timestamp=1)


def _sent(messages: Sequence[ModelMessage], api: str = "openai-completions", **compat: bool) -> dict[str, Any]:
    model = Model(id="m", provider="acme", api=api, base_url="http://model.test", compat=freeze(compat))
    conversation = WIRE_APIS[api].begin(model)
    conversation.follow(messages)
    body: dict[str, Any] = json.loads(conversation.body(request_of(model, messages)))
    return body


def test_messages_are_never_changed() -> None:
    message = _answer(ThinkingBlock(thinking="t"), ToolCall(id="c|d", name="two words"))
    before = attrs.evolve(message)

    _sent([GO, message, _result("c|d")])

    assert message == before


@pytest.mark.parametrize(
    ("name", "sent"),
    [("read", "read"), ("functions.read:0", "functions_read_0"), ("a" * 90, "a" * 64), ("", "_"), ("\ud800", "_"), ("re\ud800ad", "read")],
)
def test_the_name_of_another_models_call_is_one_that_every_server_takes(name: str, sent: str) -> None:
    talk = _sent([GO, _answer(ToolCall(id="c", name=name)), _result("c", name)], requiresToolResultName=True)["messages"]

    assert [talk[1]["tool_calls"][0]["function"]["name"], talk[2]["name"]] == [sent, sent]


@pytest.mark.parametrize(("name", "sent"), [("functions.read:0", "functions.read:0"), ("", "_"), ("re\ud800ad", "read")])
def test_the_name_of_an_own_call_stays_but_is_never_empty(name: str, sent: str) -> None:
    talk = _sent([GO, _answer(ToolCall(id="c", name=name), model="m"), _result("c", name)])["messages"]

    assert talk[1]["tool_calls"][0]["function"]["name"] == sent


def test_ids_that_differ_in_half_a_character_stay_different_and_keep_their_results() -> None:
    ids = ("c", "c\ud800", "", "\udc00")

    history: list[ModelMessage] = [GO, _answer(*[ToolCall(id=id, name="read") for id in ids]), *[_result(id) for id in ids]]

    talk = _sent(history)["messages"]

    assert [call["id"] for call in talk[1]["tool_calls"]] == ["c", "c_2", "_", "__2"]
    assert [message["tool_call_id"] for message in talk[2:]] == ["c", "c_2", "_", "__2"]


def test_a_history_that_begins_with_an_answer_gets_a_user_before_it_where_the_api_wants_one() -> None:
    history: list[ModelMessage] = [UserMessage(content=" ", timestamp=1), _answer(TextBlock(text="hi")), GO]

    talk = _sent(history, "anthropic-messages")["messages"]

    assert talk[0] == {"role": "user", "content": "(earlier messages are not shown)"}
    assert [message["role"] for message in talk] == ["user", "assistant", "user"]
    assert [message["role"] for message in _sent(history)["messages"]] == ["user", "assistant", "user"]


def test_a_prompt_of_blanks_is_no_prompt_where_the_api_takes_none() -> None:
    history: list[ModelMessage] = [SystemMessage(content="\n\t", timestamp=0), GO]

    assert "system" not in _sent(history, "anthropic-messages")
