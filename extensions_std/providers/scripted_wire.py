"""What the servers of the three wire APIs would send for a scripted message, as bytes (FAUX-26).

`wire_stream("anthropic-messages", assistant("Hello."))` is a whole body of server-sent events, to be split at will. A
message that ends with `error` is told as the API tells an error inside a stream; `aborted`, `deferred` and `pending` are
nothing that a server says. Ids and usage are those of the message; a call without id gets `call_<n>`, and the items of a
response get ids that are the same for the same content only, because a client may know an item by its id.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from camshaft.actors.api import AssistantMessage, Json, TextBlock, ThinkingBlock, ToolCall, dumps, encode
from camshaft.extensions_std.providers.preparation import short_hash

FRAGMENT_CHARS: Final = 8
"""Characters of a text that one event carries."""

MODEL: Final = "scripted"
"""Model that a stream names if the message has no `response_model`; readers take another name than asked for as `responseModel`."""


def wire_stream(api: str, message: AssistantMessage) -> bytes:
    """The body that a server of this wire API would send. Raises ValueError for an unknown api, or what no server says."""
    if api not in STREAMS:
        raise ValueError(f"api is {api!r}; expected one of {', '.join(STREAMS)}")
    return STREAMS[api](message)


def _reason(message: AssistantMessage, names: Mapping[str, str]) -> str:
    if message.raw_stop_reason:
        return message.raw_stop_reason
    if message.stop_reason not in names:
        raise ValueError(f"stop_reason is {message.stop_reason!r}; a server says {', '.join(names)} or error")
    return names[message.stop_reason]


def _fragments(value: str) -> Iterator[str]:
    for start in range(0, len(value), FRAGMENT_CHARS):
        yield value[start : start + FRAGMENT_CHARS]


def _calls(message: AssistantMessage) -> Iterator[tuple[int, ToolCall, str]]:
    """Place, call, and id of each call."""
    for number, (index, block) in enumerate([pair for pair in enumerate(message.content) if isinstance(pair[1], ToolCall)], 1):
        yield index, block, block.id or f"call_{number}"  # type: ignore[misc, union-attr]  # only calls were kept


def _arguments(call: ToolCall) -> str:
    return dumps(call.arguments).decode()


def _event(name: str, payload: Mapping[str, Json]) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + dumps({"type": name, **payload}) + b"\n\n"


# -- chat completions --------------------------------------------------------------------

COMPLETIONS_REASONS: Final[Mapping[str, str]] = {"stop": "stop", "length": "length", "toolUse": "tool_calls"}


def completions_stream(message: AssistantMessage) -> bytes:
    """Of `openai-completions`: thinking as `reasoning_content`, usage in a chunk of its own, `[DONE]`."""
    head = {"id": message.response_id or "chatcmpl-1", "object": "chat.completion.chunk", "model": message.response_model or MODEL}
    chunks: list[dict[str, Any]] = [{**head, "choices": [{"index": 0, "delta": delta}]} for delta in _completions_deltas(message)]
    if message.stop_reason == "error":
        chunks.append({"error": {"message": message.error_message or "scripted error"}})
    else:
        chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _reason(message, COMPLETIONS_REASONS)}]})
        chunks.append({**head, "choices": [], "usage": _completions_usage(message)})
    return b"".join([b"data: " + dumps(chunk) + b"\n\n" for chunk in chunks]) + b"data: [DONE]\n\n"


def _completions_deltas(message: AssistantMessage) -> Iterator[dict[str, Any]]:
    ids = {index: (number, id) for number, (index, _call, id) in enumerate(_calls(message))}
    for index, block in enumerate(message.content):
        match block:
            case TextBlock():
                yield from [{"content": piece} for piece in _fragments(block.text)]
            case ThinkingBlock():
                yield from [{"reasoning_content": piece} for piece in _fragments(block.thinking)]
            case ToolCall():
                number, id = ids[index]
                function = {"name": block.name, "arguments": ""}
                yield {"tool_calls": [{"index": number, "id": id, "type": "function", "function": function}]}
                for piece in _fragments(_arguments(block)):
                    yield {"tool_calls": [{"index": number, "function": {"arguments": piece}}]}


def _completions_usage(message: AssistantMessage) -> dict[str, Any]:
    usage = message.usage
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
    }


# -- anthropic messages ------------------------------------------------------------------

ANTHROPIC_REASONS: Final[Mapping[str, str]] = {"stop": "end_turn", "length": "max_tokens", "toolUse": "tool_use"}


def anthropic_stream(message: AssistantMessage) -> bytes:
    """Of `anthropic-messages`: a redacted thinking block has its signature as data."""
    usage = message.usage
    counts = {"input_tokens": usage.input, "cache_read_input_tokens": usage.cache_read, "cache_creation_input_tokens": usage.cache_write}
    start: dict[str, Any] = {
        "id": message.response_id or "msg_1",
        "type": "message",
        "role": "assistant",
        "model": message.response_model or MODEL,
        "content": [],
        "stop_reason": None,
        "usage": {**counts, "output_tokens": 1},
    }
    events = [_event("message_start", {"message": start}), _event("ping", {}), *_anthropic_blocks(message)]
    if message.stop_reason == "error":
        error = {"type": "api_error", "message": message.error_message or "scripted error"}
        return b"".join([*events, _event("error", {"error": error})])
    delta = {"stop_reason": _reason(message, ANTHROPIC_REASONS), "stop_sequence": None}
    return b"".join(
        [*events, _event("message_delta", {"delta": delta, "usage": {"output_tokens": usage.output}}), _event("message_stop", {})]
    )


def _anthropic_blocks(message: AssistantMessage) -> Iterator[bytes]:
    ids = {index: id for index, _call, id in _calls(message)}
    for index, block in enumerate(message.content):
        deltas: Sequence[dict[str, Any]] = ()
        match block:
            case TextBlock():
                opened: dict[str, Any] = {"type": "text", "text": ""}
                deltas = [{"type": "text_delta", "text": piece} for piece in _fragments(block.text)]
            case ThinkingBlock(redacted=True):
                opened = {"type": "redacted_thinking", "data": block.thinking_signature or ""}
            case ThinkingBlock():
                opened = {"type": "thinking", "thinking": "", "signature": ""}
                signed = [{"type": "signature_delta", "signature": block.thinking_signature}] if block.thinking_signature else []
                deltas = [*[{"type": "thinking_delta", "thinking": piece} for piece in _fragments(block.thinking)], *signed]
            case ToolCall():
                opened = {"type": "tool_use", "id": ids[index], "name": block.name, "input": {}}
                deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in _fragments(_arguments(block))]
            case _:
                raise ValueError(f"content[{index}]: {block!r} is nothing that a server sends")
        yield _event("content_block_start", {"index": index, "content_block": opened})
        yield from [_event("content_block_delta", {"index": index, "delta": delta}) for delta in deltas]
        yield _event("content_block_stop", {"index": index})


# -- responses ---------------------------------------------------------------------------

RESPONSES_REASONS: Final[Mapping[str, str]] = {"stop": "completed", "length": "incomplete", "toolUse": "completed"}


def responses_stream(message: AssistantMessage) -> bytes:
    """Of `openai-responses`: an id `a|b` of a call is its call id and its item id."""
    response: dict[str, Any] = {
        "id": message.response_id or "resp_1",
        "object": "response",
        "status": "in_progress",
        "model": message.response_model or MODEL,
        "output": [],
    }
    events = [_event("response.created", {"response": response}), *_response_items(message)]
    if message.stop_reason == "error":
        error = {"code": "server_error", "message": message.error_message or "scripted error"}
        return b"".join([*events, _event("response.failed", {"response": {**response, "status": "failed", "error": error}})])
    if message.stop_reason not in RESPONSES_REASONS:
        raise ValueError(f"stop_reason is {message.stop_reason!r}; a server says {', '.join(RESPONSES_REASONS)} or error")
    status = RESPONSES_REASONS[message.stop_reason]
    details = {"incomplete_details": {"reason": "max_output_tokens"}} if status == "incomplete" else {}
    ended = {**response, "status": status, **details, "usage": _responses_usage(message)}
    return b"".join([*events, _event(f"response.{status}", {"response": ended})])


def _response_items(message: AssistantMessage) -> Iterator[bytes]:
    ids, tag = {index: id for index, _call, id in _calls(message)}, short_hash(dumps(encode(message.content)).decode())
    for index, block in enumerate(message.content):
        at = {"output_index": index}
        match block:
            case TextBlock():
                item: dict[str, Any] = {"id": f"msg_{tag}_{index}", "type": "message", "role": "assistant"}
                yield _event("response.output_item.added", {**at, "item": {**item, "status": "in_progress", "content": []}})
                for piece in _fragments(block.text):
                    yield _event("response.output_text.delta", {**at, "item_id": item["id"], "content_index": 0, "delta": piece})
                content = [{"type": "output_text", "text": block.text, "annotations": []}]
                yield _event("response.output_item.done", {**at, "item": {**item, "status": "completed", "content": content}})
            case ThinkingBlock():
                item = {"id": f"rs_{tag}_{index}", "type": "reasoning"}
                yield _event("response.output_item.added", {**at, "item": {**item, "summary": []}})
                for piece in _fragments(block.thinking):
                    delta = {**at, "item_id": item["id"], "summary_index": 0, "delta": piece}
                    yield _event("response.reasoning_summary_text.delta", delta)
                summary = [{"type": "summary_text", "text": block.thinking}] if block.thinking else []
                yield _event("response.output_item.done", {**at, "item": {**item, "summary": summary}})
            case ToolCall():
                yield from _response_call(at, block, ids[index], f"fc_{tag}_{index}")
            case _:
                raise ValueError(f"content[{index}]: {block!r} is nothing that a server sends")


def _response_call(at: Mapping[str, Json], call: ToolCall, id: str, usual: str) -> Iterator[bytes]:
    call_id, _, item_id = id.partition("|")
    item = {"id": item_id or usual, "type": "function_call", "call_id": call_id, "name": call.name}
    whole = _arguments(call)
    yield _event("response.output_item.added", {**at, "item": {**item, "arguments": ""}})
    for piece in _fragments(whole):
        yield _event("response.function_call_arguments.delta", {**at, "item_id": item["id"], "delta": piece})
    yield _event("response.function_call_arguments.done", {**at, "item_id": item["id"], "arguments": whole})
    yield _event("response.output_item.done", {**at, "item": {**item, "status": "completed", "arguments": whole}})


def _responses_usage(message: AssistantMessage) -> dict[str, Any]:
    usage = message.usage
    given = usage.input + usage.cache_read + usage.cache_write
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": given + usage.output,
    }


STREAMS: Final[Mapping[str, Callable[[AssistantMessage], bytes]]] = {
    "openai-completions": completions_stream,
    "anthropic-messages": anthropic_stream,
    "openai-responses": responses_stream,
}
"""By wire API."""
