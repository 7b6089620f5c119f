"""The model server behind the recorded transcripts: what it answers follows from the last text it is sent.

    SLOW10 x                w0 to w9, one after the other
    FAIL529x2 x             two failures with that status, then the usual answer
    TOOL name {json}        a call, whose arguments come in two pieces
    THINK                   thinking, then a text
    SEPS x                  a text with line ends of other conventions
    the result of a tool    says what the tool said, up to 60 characters of it
    a conversation to sum   a summary; later, if SLOWSUM is in it

Anything else is answered with the usual three pieces.
"""

import json
import re
from typing import Any, Final

import attrs

from tests.extensions_std.frontends.command import chunk
from tests.extensions_std.providers.sse_server import Pause, Received, Reply

USAGE: Final = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105, "completion_tokens_details": {"reasoning_tokens": 0}}
HELLO: Final = ("Hello ", "from ", "script.")
WORD_S: Final = 0.1
"""Between the words of a slow answer: time for a client to do something."""
SLOW_SUMMARY_S: Final = 1.0
REFUSAL: Final = b'{"error":{"message":"overloaded for test","type":"server_error"}}'
MODEL: Final[dict[str, Any]] = {
    "contextWindow": 128000,
    "maxTokens": 4096,
    "input": ["text", "image"],
    "cost": {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 0.2},
}
MODELS: Final = ({"id": "m1", "name": "m1", "reasoning": False, **MODEL}, {"id": "m2", "name": "m2", "reasoning": True, **MODEL})


def provider(port: int) -> dict[str, Any]:
    """The provider `fake` in models.json."""
    return {"baseUrl": f"http://127.0.0.1:{port}/v1", "apiKey": "k", "api": "openai-completions", "models": list(MODELS)}


@attrs.define(eq=False)
class Answers:
    """What each request is answered with."""

    _failed: dict[str, int] = attrs.field(factory=dict)

    def to(self, request: Received) -> Reply:
        """The reply to one request."""
        messages = json.loads(request.body)["messages"]
        last = _text(messages[-1])
        if "<conversation>" in last or last.startswith("# Conversation"):
            return _says(Pause(SLOW_SUMMARY_S if "SLOWSUM" in last else 0), "## Goal\nscripted summary")
        if messages[-1]["role"] == "tool":
            return _says("Tool said: ", last[:60])
        failing = re.match(r"FAIL(\d+)x(\d+)", last)
        if failing is not None and self._failed.get(last, 0) < int(failing[2]):
            self._failed[last] = self._failed.get(last, 0) + 1
            return Reply(status=int(failing[1]), headers=(("content-type", "application/json"),), body=(REFUSAL,))
        return _reply(last)


def _reply(last: str) -> Reply:
    if slow := re.match(r"SLOW(\d+)", last):
        words = [each for number in range(int(slow[1])) for each in (f"w{number} ", Pause(WORD_S))]
        return _says(*words)
    if called := re.match(r"TOOL (\w+) (.*)", last, re.DOTALL):
        return _calls(called[1], called[2])
    if last.startswith("THINK"):
        thinking = [chunk({"reasoning_content": each}) for each in ("pondering", " more")]
        return _reply_of([*thinking, chunk({"content": "thought out"})], "stop")
    return _says("a\u2028b\u2029c\u0085d") if last.startswith("SEPS") else _says(*HELLO)


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join([part.get("text", "") for part in content if part["type"] == "text"])


def _says(*pieces: str | Pause) -> Reply:
    return _reply_of([chunk({"content": each}) if isinstance(each, str) else each for each in pieces], "stop")


def _calls(name: str, arguments: str) -> Reply:
    half = len(arguments) // 2
    begun = {"index": 0, "id": "call_1", "function": {"name": name, "arguments": ""}}
    pieces = [{"index": 0, "function": {"arguments": each}} for each in (arguments[:half], arguments[half:])]
    return _reply_of([chunk({"tool_calls": [each]}) for each in (begun, *pieces)], "tool_calls")


def _reply_of(pieces: list[Any], finish: str) -> Reply:
    value = json.loads(chunk({}, finish).removeprefix(b"data: "))
    last = b"data: " + json.dumps({**value, "usage": USAGE}).encode() + b"\n\n"
    return Reply(body=(*pieces, last, b"data: [DONE]\n\n"))
