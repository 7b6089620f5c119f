"""What hooks and records see of a scripted request (FAUX-10, FAUX-23, FAUX-24), and what a broken adapter would send (FAUX-22)."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.api import Model, ModelRequest, RequestHooks, RequestOptions
from camshaft.extensions_std.providers.scripted import (
    Fail,
    Malformed,
    Respond,
    ScriptedProvider,
    Sleep,
    assistant,
    message_items,
    text,
    tool_call,
)
from camshaft.kernel.messages import ModelMessage, SystemMessage, TextBlock, ToolCall, ToolDeclaration, Usage, UserMessage
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.stream import Ended, Started, TextDelta, Violation, begin, fold
from tests.extensions_std.providers.asking import AskSignal, ask

HELLO: tuple[ModelMessage, ...] = (UserMessage(content="hi", timestamp=1),)


def _provider(*steps: Any, **fields: Any) -> ScriptedProvider:
    provider = ScriptedProvider(**fields)
    provider.set_responses(steps)
    return provider


async def _heard(provider: ScriptedProvider, **request: Any) -> list[Any]:
    """What handlers heard, in order: statuses with headers, then events."""
    heard: list[Any] = []

    async def on_response(status: int, headers: Mapping[str, str]) -> None:
        await trio.lowlevel.checkpoint()
        heard.append((status, dict(headers)))

    async def on_stream_event(event: Any) -> None:
        await trio.lowlevel.checkpoint()
        heard.append(event)

    async def emit(_item: object) -> None:
        await trio.lowlevel.checkpoint()

    hooks = RequestHooks(on_response=on_response, on_stream_event=on_stream_event)
    asked = ModelRequest(model=provider.models[0], thinking_level="off", messages=HELLO, hooks=hooks, **request)
    await provider.stream(asked, AskSignal(), emit)
    return heard


RESPONSES: list[tuple[Any, tuple[int, dict[str, str]]]] = [
    (assistant("x"), (200, {})),
    ([Respond(200, {"x-request-id": "r"}), Started(), Ended("stop")], (200, {"x-request-id": "r"})),
    ([Respond(429, {"retry-after": "3"}), Fail("slow down", 429)], (429, {"retry-after": "3"})),
    ([Sleep(0), Fail("busy", 503)], (503, {})),
    ([Fail("broken")], (200, {})),
]


@pytest.mark.rule("FAUX-23")
@pytest.mark.parametrize(("step", "response"), RESPONSES)
async def test_response_has_the_scripted_status_and_headers(step: Any, response: tuple[int, dict[str, str]]) -> None:
    assert (await _heard(_provider(step)))[0] == response


async def test_every_item_of_a_message_is_an_event_by_the_name_of_the_normalised_stream() -> None:
    message = assistant(
        [text("ab"), tool_call("read", {"path": "a"}, id="c")], stop_reason="toolUse", response_id="r", usage=Usage(input=1)
    )

    _, *events = await _heard(_provider(message, chunked=False))

    call = {"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "a"}}
    assert [{name: event[name] for name in event if name != "usage"} for event in events] == [
        {"type": "start", "responseId": "r"},
        {"type": "text_start", "contentIndex": 0},
        {"type": "text_delta", "contentIndex": 0, "delta": "ab"},
        {"type": "text_end", "contentIndex": 0},
        {"type": "toolcall_start", "contentIndex": 1, "id": "c", "name": "read"},
        {"type": "toolcall_delta", "contentIndex": 1, "delta": '{"path":"a"}'},
        {"type": "toolcall_end", "contentIndex": 1, "toolCall": call},
        {"type": "done", "reason": "toolUse"},
    ]


async def test_what_is_no_item_is_sent_all_the_same() -> None:
    items: list[Any] = []

    async def emit(item: Any) -> None:
        await trio.lowlevel.checkpoint()
        items.append(item)

    provider = _provider([Started(), Malformed({"type": "text_delta"}), TextDelta(9, "nowhere"), Ended("stop"), Ended("stop")])
    request = ModelRequest(model=provider.models[0], thinking_level="off", messages=HELLO)
    await provider.stream(request, AskSignal(), emit)

    partial, violations = begin("a", "p", "m", 1), []
    for item in items:
        folded = fold(partial, item)
        if isinstance(folded, Violation):
            violations.append(folded.text)
        else:
            partial = folded
    assert len(violations) == 3
    assert partial.message.stop_reason == "stop"


def test_a_response_comes_first_or_not_at_all() -> None:
    with pytest.raises(TypeError, match="is action 2 of a list; it says how the answer begins, and comes first"):
        _provider([Started(), Respond(500)])


async def test_items_of_a_message_can_be_taken_apart() -> None:
    message = assistant([text("ab")], stop_reason="length", raw_stop_reason="max_tokens", diagnostics=({"type": "d", "timestamp": 1},))
    first, *rest = message_items(message)

    asked = await ask(_provider([first, Sleep(0), *rest]))

    assert asked.message is not None
    told = asked.message
    assert (told.content, told.stop_reason, told.raw_stop_reason) == ((TextBlock(text="ab"),), "length", "max_tokens")
    assert told.diagnostics == ({"type": "d", "timestamp": 1},)


@pytest.mark.rule("FAUX-23", "FAUX-24")
async def test_payload_is_the_prepared_request() -> None:
    tool = ToolDeclaration(name="read", description="Reads.", parameters=FrozenDict({"type": "object"}))
    messages: Sequence[ModelMessage] = (
        SystemMessage(content="be brief", tools_added=(tool,), timestamp=0),
        UserMessage(content="hi", timestamp=1),
        assistant([ToolCall(id="c", name="read")], stop_reason="toolUse"),
        UserMessage(content="never mind", timestamp=2),
        assistant("lost", stop_reason="error"),
    )
    options = RequestOptions(session_id="s", max_tokens=5, headers=FrozenDict({"x-key": "canary"}))
    provider = _provider(assistant("x"))

    await ask(provider, messages, options=options)

    payload: Any = provider.requests[0].payload
    assert [(each["role"], each["content"]) for each in payload["messages"] if isinstance(each["content"], str)] == [
        ("system", "be brief"),
        ("user", "hi"),
        ("user", "never mind"),
    ]
    assert [each["role"] for each in payload["messages"]] == ["system", "user", "assistant", "toolResult", "user"]
    assert payload["tools"] == ({"name": "read", "description": "Reads.", "parameters": {"type": "object"}},)
    assert payload["options"] == {"sessionId": "s", "maxTokens": 5}
    assert "canary" not in repr(payload)


async def test_secrets_of_model_and_header_handlers_are_not_recorded() -> None:
    provider = _provider(assistant("x"))
    provider.models = tuple([_with_headers(model) for model in provider.models])

    async def on_headers(headers: FrozenDict) -> FrozenDict:
        await trio.lowlevel.checkpoint()
        return FrozenDict({**headers, "authorization": "canary", "x-team": "red"})

    async def emit(_item: object) -> None:
        await trio.lowlevel.checkpoint()

    hooks = RequestHooks(on_headers=on_headers)
    await provider.stream(ModelRequest(model=provider.models[0], thinking_level="off", messages=HELLO, hooks=hooks), AskSignal(), emit)

    record = provider.requests[0]
    assert record.headers == {"authorization": "<hidden>", "x-team": "red"}
    assert record.model.headers == {"x-api-key": "<hidden>"}


def _with_headers(model: Model) -> Model:
    return attrs.evolve(model, headers=FrozenDict({"x-api-key": "canary"}))
