"""What the scripted provider remembers of requests, and the usage it estimates for them (FAUX-5, FAUX-24)."""

import math
from typing import Any, Final

import attrs

from camshaft.actors.api import (
    AssistantMessage,
    Cost,
    FrozenDict,
    Json,
    Model,
    ModelMessage,
    ModelRequest,
    RequestOptions,
    SystemMessage,
    ThinkingBlock,
    ToolCall,
    Usage,
    dumps,
    encode,
    text_of,
)

CHARS_PER_TOKEN: Final = 4
"""Estimate of FAUX-5 and FAUX-6; rounded up."""

HIDDEN: Final = "<hidden>"
"""What a recorded request has in place of a header that carries a secret."""

_SECRET_WORDS: Final = ("auth", "key", "token", "secret", "cookie")
"""A header whose name contains one of these may carry a credential."""


@attrs.frozen(kw_only=True)
class RecordedRequest:
    """A request as it arrived (FAUX-24)."""

    number: int
    """Counted from 0, in order of arrival."""
    model: Model
    thinking_level: str
    messages: tuple[ModelMessage, ...]
    """Empty if the provider was made with `records_messages=False`."""
    options: RequestOptions
    """Header values that may be secret are hidden."""
    at_s: float
    """Trio's time, virtual under a virtual clock."""
    payload: Json = None
    """The body as payload handlers left it (FAUX-23); None if there were none."""
    outcome: str = "pending"
    """The stop reason; `dropped`: no terminal item; `raised`; `cancelled`: scope was cancelled."""


def payload_of(request: ModelRequest) -> dict[str, Any]:
    """A stable JSON rendering of a request: model, level, messages in their persisted form. O(messages)."""
    messages = [encode(each) for each in request.messages]
    return {"model": request.model.id, "thinkingLevel": request.thinking_level, "messages": messages}


@attrs.define
class ScriptState:
    """Counters of FAUX-2."""

    call_count: int = 0
    unexpected_count: int = 0
    """Requests that found no step."""


@attrs.define
class UsageEstimate:
    """Usage from the lengths of texts; a session reads from the cache what its last prompt began with."""

    _prompts: dict[str, str] = attrs.field(factory=dict, init=False)
    """Session id to its last prompt."""

    def usage_of(self, request: ModelRequest, answer: AssistantMessage | None) -> Usage:
        """The estimate for a request; without an answer, for its prompt. O(prompt)."""
        prompt = "\n\n".join([f"{each.role}:{_prompt_text(each)}" for each in request.messages])
        total = tokens_of(prompt)
        output = tokens_of(_prompt_text(answer)) if answer is not None else 0
        session = request.options.session_id
        if session is None or request.options.cache_retention == "none":
            return Usage(input=total, output=output, total_tokens=total + output, cost=Cost(total_from_provider=False))
        cached = tokens_of(_common_prefix(self._prompts.get(session, ""), prompt))
        self._prompts[session] = prompt
        return Usage(output=output, cache_read=cached, cache_write=total - cached, total_tokens=total + output)


def tokens_of(value: str) -> int:
    """Estimated tokens of a text."""
    return math.ceil(len(value) / CHARS_PER_TOKEN)


def _prompt_text(message: ModelMessage) -> str:
    """Texts, thinking, calls and prompt sections of a message, one a line."""
    parts = [each for each in (message.sections or {}).values() if each] if isinstance(message, SystemMessage) else []
    if isinstance(message.content, str):
        return "\n".join([message.content, *parts])
    for block in message.content:
        match block:
            case ThinkingBlock():
                parts.append(block.thinking)
            case ToolCall():
                parts.append(f"{block.name}:{dumps(encode(block.arguments)).decode()}")
            case _:
                parts.append(text_of((block,)))
    return "\n".join(parts)


def _common_prefix(old: str, new: str) -> str:
    """The longest text both start with; the usual case, a prompt that grew, is one comparison."""
    if new.startswith(old):
        return old
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if new.startswith(old[:middle]):
            low = middle
        else:
            high = middle - 1
    return old[:low]


def without_secrets(options: RequestOptions) -> RequestOptions:
    """The options with header values hidden that may be secret."""
    headers = options.headers
    if not headers:
        return options
    shown = {name: HIDDEN if any(word in name.lower() for word in _SECRET_WORDS) else value for name, value in headers.items()}
    return attrs.evolve(options, headers=FrozenDict(shown))
