"""What the scripted provider remembers of requests, how it renders them, and the usage it estimates (FAUX-5, FAUX-23, FAUX-24)."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import trio

from camshaft.actors.api import (
    EMPTY,
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
    freeze,
    text_of,
)
from camshaft.extensions_std.providers.preparation import Preparation, PromptReplay

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
    headers: FrozenDict = attrs.field(default=EMPTY, repr=False)
    """The request's headers as header handlers left them, those that may be secret hidden."""
    replaced_payload: Json = None
    """The body as payload handlers left it (FAUX-23); None if there were none."""
    outcome: str = "pending"
    """The stop reason; `dropped`: no terminal item; `raised`; `cancelled`: scope was cancelled."""

    @property
    def payload(self) -> Json:
        """The body that would have been sent: as handlers left it, else as `payload_of` renders the request. O(messages)."""
        if self.replaced_payload is not None:
            return self.replaced_payload
        return freeze(payload_of(self.model, self.thinking_level, self.messages, self.options))


def record_of(request: ModelRequest, number: int, *, keeps_messages: bool) -> RecordedRequest:
    """A record of a request that arrives now."""
    options, model = request.options, request.model
    headers = hidden_headers(options.headers)
    return RecordedRequest(
        number=number,
        model=attrs.evolve(model, headers=hidden_headers(model.headers)) if model.headers else model,
        thinking_level=request.thinking_level,
        messages=tuple(request.messages) if keeps_messages else (),
        options=attrs.evolve(options, headers=headers) if options.headers else options,
        headers=headers,
        at_s=trio.current_time(),
    )


def payload_of(model: Model, thinking_level: str, messages: Sequence[ModelMessage], options: RequestOptions) -> dict[str, Any]:
    """A stable JSON rendering of a request: one system message, the messages after preparation, tools, options (FAUX-23).

    Messages have their persisted form. Headers are not part of it. O(messages).
    """
    replay, preparation = PromptReplay(), Preparation(model, _same_id)
    prepared: list[ModelMessage] = []
    for message in messages:
        if isinstance(message, SystemMessage):
            replay.add(message)
        else:
            prepared += preparation.add(message)
    prepared += preparation.tail()
    head = [{"role": "system", "content": replay.text}] if replay.text else []
    return {
        "model": model.id,
        "thinkingLevel": thinking_level,
        "messages": [*head, *map(encode, prepared)],
        "tools": [{"name": each.name, "description": each.description, "parameters": each.parameters} for each in replay.tools.values()],
        "options": _options_json(options),
    }


def _same_id(id: str, _source: AssistantMessage) -> str:
    return id


def _options_json(options: RequestOptions) -> dict[str, Any]:
    """Options that were given, under their names of STR-3."""
    given = attrs.asdict(options, recurse=False, filter=lambda field, value: field.name != "headers" and value != field.default)
    return {re.sub("_(.)", lambda found: found[1].upper(), name): value for name, value in given.items()}


@attrs.define
class ScriptState:
    """Counters of FAUX-2."""

    call_count: int = 0
    unexpected_count: int = 0
    """Requests that found no step."""
    deferred_fetch_count: int = 0
    cancelled_deferred: list[FrozenDict] = attrs.field(factory=list)
    """Handles of deferred answers that were cancelled, known ones or not."""


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


def hidden_headers(headers: Mapping[str, Json]) -> FrozenDict:
    """The headers with values hidden that may be secret."""
    return FrozenDict({name: HIDDEN if any(word in name.lower() for word in _SECRET_WORDS) else value for name, value in headers.items()})
