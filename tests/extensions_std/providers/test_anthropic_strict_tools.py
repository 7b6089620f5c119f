"""A session that was refused for its strict tools goes on with plain ones (WIRE-38)."""

import json
from typing import Any, Final

import pytest

from camshaft.actors.api import ModelRequest, RequestHooks, RequestOptions
from camshaft.extensions_std.providers import conversations
from camshaft.extensions_std.providers.conversations import Conversations
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from camshaft.kernel.messages import AssistantMessage, ModelMessage, SystemMessage, ToolDeclaration
from camshaft.kernel.persistent import FrozenDict, freeze
from tests.extensions_std.providers.asking import HELLO, AskSignal, FakeHttp, FakeResponse, anthropic, anthropic_model, ask

REFUSED: Final = FakeResponse(
    status=400, body=(b'{"type":"error","error":{"type":"invalid_request_error","message":"The compiled grammar is too large"}}',)
)
GOOD: Final = FakeResponse(
    body=(b'event: message_delta\ndata: {"delta":{"stop_reason":"end_turn"}}\n\n', b"event: message_stop\ndata: {}\n\n")
)
STRICT: Final = FrozenDict({"supportsStrictTools": True})
BAD_WORDS: Final = [
    (400, b'{"error":{"type":"invalid_request_error","message":"no"}}'),
    (400, b'{"error":{"type":"other","message":"The compiled grammar is too large"}}'),
    (429, b'{"error":{"type":"invalid_request_error","message":"The compiled grammar is too large"}}'),
]


def _tool(name: str, strict: str | None) -> ToolDeclaration:
    wish = freeze({"type": "json_schema", "strict": strict}) if strict else None
    return ToolDeclaration(name=name, description="", parameters=freeze({"type": "object"}), constrained_sampling=wish)


def _messages(*tools: ToolDeclaration) -> tuple[ModelMessage, ...]:
    return (SystemMessage(content="", tools_added=tools, timestamp=0), *HELLO)


BOTH: Final = _messages(_tool("a", "prefer"), _tool("b", "require"))


def _strict_names(http: FakeHttp) -> list[list[str]]:
    return [[tool["name"] for tool in json.loads(request.body)["tools"] if tool.get("strict")] for request in http.requests]


async def _asked(provider: Any, session: str | None, messages: tuple[ModelMessage, ...] = BOTH) -> AssistantMessage:
    message = (await ask(provider, messages, options=RequestOptions(session_id=session))).message
    assert message is not None
    return message


async def test_refused_session_stays_with_plain_tools_and_says_so_once() -> None:
    http = FakeHttp([REFUSED, GOOD])
    provider = anthropic(http, compat=STRICT, clock=lambda: 77)

    first, second = await _asked(provider, "s"), await _asked(provider, "s")

    assert _strict_names(http) == [["a", "b"], ["b"], ["b"]]
    assert first.diagnostics == (
        {
            "type": "anthropic_strict_tools_fallback",
            "timestamp": 77,
            "error": {"message": f"400 {REFUSED.body[0].decode()}"},  # type: ignore[union-attr]  # bytes, as above
            "details": {"reason": "strict_tool_limits_exceeded"},
        },
    )
    assert (first.stop_reason, second.diagnostics) == ("stop", None)


@pytest.mark.parametrize("session", ["other", None])
async def test_other_sessions_are_not_affected(session: str | None) -> None:
    http = FakeHttp([REFUSED, GOOD])
    provider = anthropic(http, compat=STRICT)

    await _asked(provider, "s")
    await _asked(provider, session)

    assert _strict_names(http)[-1] == ["a", "b"]


async def test_request_without_a_session_is_sent_again_but_nothing_is_remembered() -> None:
    http = FakeHttp([REFUSED, GOOD])
    provider = anthropic(http, compat=STRICT)

    await _asked(provider, None)
    await _asked(provider, None)

    assert _strict_names(http) == [["a", "b"], ["b"], ["a", "b"]]


async def test_second_refusal_is_final_and_is_told_with_the_first() -> None:
    http = FakeHttp([REFUSED])

    message = await _asked(anthropic(http, compat=STRICT), "s")

    assert len(http.requests) == 2
    assert message.error_message == f"400 {REFUSED.body[0].decode()}"  # type: ignore[union-attr]  # bytes, as above
    assert message.diagnostics is not None


@pytest.mark.parametrize(("status", "body"), BAD_WORDS)
async def test_other_refusals_are_final_at_once(status: int, body: bytes) -> None:
    http = FakeHttp([FakeResponse(status=status, body=(body,)), GOOD])

    assert (await _asked(anthropic(http, compat=STRICT), "s")).stop_reason == "error"
    assert len(http.requests) == 1


@pytest.mark.parametrize("tools", [(_tool("b", "require"),), (_tool("c", None),)])
async def test_request_that_would_be_the_same_is_not_sent_again(tools: tuple[ToolDeclaration, ...]) -> None:
    http = FakeHttp([REFUSED, GOOD])

    await _asked(anthropic(http, compat=STRICT), "s", _messages(*tools))

    assert len(http.requests) == 1


@pytest.mark.rule("WIRE-105")
async def test_payload_handlers_see_the_rebuilt_body_too() -> None:
    seen: list[Any] = []

    async def on_payload(payload: Any) -> Any:
        seen.append([tool.get("strict") for tool in payload["tools"]])
        return payload

    async def emit(_item: object) -> None:
        return

    provider = anthropic(FakeHttp([REFUSED, GOOD]), compat=STRICT)
    request = ModelRequest(model=provider.models[0], thinking_level="off", messages=BOTH, hooks=RequestHooks(on_payload=on_payload))
    await provider.stream(request, AskSignal(), emit)

    assert seen == [[True, True], [None, True]]


@pytest.mark.rule("WIRE-37")
async def test_tool_that_requires_what_the_model_lacks_fails_the_request() -> None:
    http = FakeHttp([GOOD])

    message = await _asked(anthropic(http), "s")

    assert message.error_message == 'Tool "b" requires JSON-schema constrained sampling, but strict tools are unsupported.'
    assert http.requests == []


def test_memory_is_bounded_and_far_longer_than_that_of_conversations() -> None:
    kept, api, model = Conversations(), WIRE_APIS["anthropic-messages"], anthropic_model()
    for number in range(conversations.CHANGED_OVER_MAX + 1):
        kept.change_over(str(number))

    plain = [kept.of(api, model, session) for session in ("0", "1", str(conversations.CHANGED_OVER_MAX), None)]

    assert [each._is_plain for each in plain] == [False, True, True, False]  # type: ignore[attr-defined]  # of this API
