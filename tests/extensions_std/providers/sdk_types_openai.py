"""Request bodies against the types of OpenAI's own SDK: unknown keys, missing keys and wrong types are faults.

The SDK is a tool of the tests only. What other vendors add to the API, and we send to them, stands in a table.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any, Final

from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import ConfigDict, TypeAdapter, ValidationError

PARAMS: Final[Mapping[str, type[Any]]] = {
    "openai-completions": CompletionCreateParamsStreaming,
    "openai-responses": ResponseCreateParamsStreaming,
}
"""By API the SDK's type of a request that streams."""

VENDOR_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "openai-completions": (
        "chat_template_args",
        "chat_template_kwargs",
        "enable_thinking",
        "priority",
        "provider",
        "providerOptions",
        "reasoning",
        "thinking",
        "thinking_budget",
        "thinking_budget_tokens",
        "thinking_token_budget",
        "tool_stream",
    ),
    "openai-responses": (),
}
"""By API the fields of a body that the SDK does not know."""

VENDOR_MESSAGE_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "assistant": ("reasoning", "reasoning_content", "reasoning_details", "reasoning_text"),
    "system": ("tools",),
    "tool": ("name",),
}
"""By role the fields of a message of chat completions that the SDK does not know."""

CACHE_MARK: Final = "cache_control"
"""Stands in text parts and tools of chat completions for servers with caches of Anthropic's kind."""


def openai_faults(api: str, body: Mapping[str, Any], own: Collection[str] = ()) -> list[str]:
    """What the SDK's types refuse of a body, each with its place; empty if it is sound. `own`: fields that the caller asked for."""
    left = {name: value for name, value in body.items() if name not in (*VENDOR_FIELDS[api], *own)}
    known = _known_items(left) if api == "openai-responses" else _known_messages(left)
    try:
        _drain(_adapter(api).validate_python((known,)))
    except ValidationError as error:
        return [f"{'.'.join(map(str, each['loc'][-3:]))}: {each['msg']}" for each in error.errors(include_url=False)]
    return []


@cache
def _adapter(api: str) -> TypeAdapter[Any]:
    """A tuple of one body, because only so the configuration reaches all types within."""
    return TypeAdapter(tuple[PARAMS[api]], config=ConfigDict(extra="forbid"))  # type: ignore[valid-type]  # known when it runs only


def _drain(value: object) -> None:
    """Reads to the end: an `Iterable` of the SDK's types is checked only while it is read."""
    if isinstance(value, Mapping):
        value = value.values()
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        for each in value:
            _drain(each)


def _known_items(body: dict[str, Any]) -> dict[str, Any]:
    """With what the SDK's types require and the API does not: `strict` of a tool, which may be null, and the id of reasoning.

    Reasoning is sent back as the server gave it, and without stored responses some give it no id.
    """
    done = {**body, "input": [{"id": "", **item} if item.get("type") == "reasoning" else item for item in body["input"]]}
    if "tools" in body:
        done["tools"] = [{"strict": None, **tool} if tool["type"] == "function" else tool for tool in body["tools"]]
    return done


def _known_messages(body: dict[str, Any]) -> dict[str, Any]:
    done = {**body, "messages": [_known_message(message) for message in body["messages"]]}
    if "tools" in body:
        done["tools"] = [_unmarked(tool) for tool in body["tools"]]
    return done


def _known_message(message: Mapping[str, Any]) -> dict[str, Any]:
    own = VENDOR_MESSAGE_FIELDS.get(message["role"], ())
    done = {name: value for name, value in message.items() if name not in own}
    if isinstance(done.get("content"), list):
        done["content"] = [_unmarked(part) for part in done["content"]]
    if "tools" in message and "content" not in message:
        done["content"] = ""
    return done


def _unmarked(part: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name != CACHE_MARK}
