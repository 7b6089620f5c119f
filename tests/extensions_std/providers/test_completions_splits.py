"""A reply is read the same wherever its bytes were cut, down to halves of characters and of escapes."""

import json
from typing import Any, Final

import pytest

from camshaft.kernel.messages import AssistantMessage, TextBlock, ThinkingBlock, ToolCall
from camshaft.kernel.persistent import FrozenDict
from tests.extensions_std.providers.asking import FakeHttp, FakeResponse, ask, completions, local_model


def _chunk(delta: dict[str, Any], **fields: Any) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": None, **fields}
    return f"data: {json.dumps({'id': 'r', 'choices': [choice]}, ensure_ascii=False)}\n\n"


REPLY: Final = "".join(
    [
        ": hello\n\n",
        _chunk({"reasoning_content": "Hm\u2028 é"}),
        _chunk({"content": "Grüße 😀"}),
        _chunk({"tool_calls": [{"index": 0, "function": {"name": "read", "arguments": '{"path": "\\u00'}}]}),
        _chunk({"tool_calls": [{"index": 1, "id": "b", "function": {"name": "bash", "arguments": "{}"}}]}),
        _chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": 'e9"}'}}]}),
        _chunk({}, finish_reason="tool_calls"),
        "data: [DONE]\n\n",
    ]
)

CONTENT: Final = (
    ThinkingBlock(thinking="Hm\u2028 é", thinking_signature="reasoning_content"),
    TextBlock(text="Grüße 😀"),
    ToolCall(id="a", name="read", arguments=FrozenDict({"path": "é"})),
    ToolCall(id="b", name="bash"),
)


async def _read(*pieces: bytes) -> AssistantMessage | None:
    return (await ask(completions(FakeHttp([FakeResponse(body=pieces)]), local_model()))).message


@pytest.mark.slow
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
async def test_reply_does_not_depend_on_where_it_was_cut(line_end: str) -> None:
    raw = REPLY.replace("\n", line_end).encode()

    whole = await _read(raw)
    cut = [await _read(raw[:at], raw[at:]) for at in range(0, len(raw), 3)]
    bytewise = await _read(*[raw[at : at + 1] for at in range(len(raw))])

    assert whole is not None
    assert whole.content == CONTENT
    assert (whole.stop_reason, whole.raw_stop_reason, whole.response_id) == ("toolUse", "tool_calls", "r")
    assert all(message == whole for message in [*cut, bytewise])


@pytest.mark.parametrize(
    "delta",
    [
        {"content": 7, "tool_calls": "x", "reasoning": []},
        {"tool_calls": [7, None, {"index": "x", "id": 5, "function": "f"}]},
        {"reasoning_details": [7, {"type": 1}]},
        "delta",
        None,
    ],
)
async def test_delta_of_a_wrong_shape_breaks_nothing(delta: Any) -> None:
    odd = f"data: {json.dumps({'choices': [{'delta': delta, 'usage': 7}], 'usage': {'prompt_tokens': 'x'}, 'id': 9, 'model': []})}\n\n"
    end = _chunk({"content": "ok"}, finish_reason="stop")

    message = await _read(odd.encode(), end.encode())

    assert message is not None
    assert message.stop_reason == "stop"
    assert TextBlock(text="ok") in message.content


@pytest.mark.parametrize("ids", [("", ""), ("call_1", ""), ("", "call_2")])
async def test_call_without_an_id_of_its_own_gets_one(ids: tuple[str, str]) -> None:
    calls = [{"index": at, "id": id, "function": {"name": "read", "arguments": "{}"}} for at, id in enumerate(ids)]
    separate = [_chunk({"tool_calls": [call]}).encode() for call in calls]

    message = await _read(*separate, _chunk({}, finish_reason="tool_calls").encode())

    assert message is not None
    assert [call.id for call in message.tool_calls] == ["call_1", "call_2"]
