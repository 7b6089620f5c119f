"""What the servers of the three wire APIs refuse, as far as it hangs on the history: one checker for each.

The rules are those that servers are known to answer with status 400; a checker names each one that a
body breaks. What only a server's own state can tell (whether an encrypted item is its own) is not here.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from camshaft.kernel.models import Model

Body = dict[str, Any]
Rule = Callable[[Body, Model], Iterator[str]]

NAME: Final = re.compile("[A-Za-z0-9_-]{1,128}")
ID: Final = re.compile("[A-Za-z0-9_-]{1,64}")
IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
MARKS_MAX: Final = 4
BUDGET_MIN: Final = 1024


def faults(body: bytes, model: Model) -> list[str]:
    """The rules that a body breaks; none for one that is accepted."""
    try:
        read = json.loads(body.decode("utf-8"), object_pairs_hook=_once)
    except (UnicodeDecodeError, ValueError) as error:
        return [f"not JSON: {error}"]
    found = [f"half a character: {text!r}" for text in _texts(read) if any(["\ud800" <= letter <= "\udfff" for letter in text])]
    if read["model"] != model.id or read["stream"] is not True:
        found.append("model or stream is missing")
    if "image" not in model.input and "aW1n" in body.decode():
        found.append("an image for a model that takes none")
    return [*found, *RULES[model.api](read, model)]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose members have different names; one may win over the other once its halves are cut out."""
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError(f"a name twice: {[name for name, _ in pairs]}")
    return dict(pairs)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


# -- Anthropic Messages ------------------------------------------------------------------


def anthropic(body: Body, _model: Model) -> Iterator[str]:
    """Messages of one role in a row are joined by the server."""
    for block in body.get("system", ()):
        yield from _said(block["text"], "system")
    yield from _anthropic_tools(body.get("tools", ()))
    thinking = body.get("thinking", {})
    if thinking.get("type") == "enabled" and not BUDGET_MIN <= thinking["budget_tokens"] < body["max_tokens"]:
        yield f"budget {thinking['budget_tokens']} of {body['max_tokens']}"
    if json.dumps(body).count('"cache_control"') > MARKS_MAX:
        yield "too many cache marks"
    roles = [message["role"] for message in body["messages"] if message["role"] != "system"]
    if roles[:1] != ["user"]:
        yield "the first message is not the user's"
    yield from _anthropic_pairs(body["messages"])
    for message in body["messages"]:
        for block in _anthropic_content(message):
            yield from _anthropic_block(block, message["role"])


def _anthropic_tools(tools: Sequence[Body]) -> Iterator[str]:
    yield from _unique([tool["name"] for tool in tools if "name" in tool], "tool")
    for tool in tools:
        if tool["input_schema"].get("type") != "object":
            yield f"schema of {tool['name']} is no object"


def _anthropic_content(message: Body) -> list[Body]:
    content: Any = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _anthropic_pairs(messages: Sequence[Body]) -> Iterator[str]:
    """The results of an answer's calls are the beginning of the very next message."""
    waiting: list[str] = []
    seen: list[str] = []
    for message in messages:
        content = _anthropic_content(message)
        if not content:
            yield "empty content"
        answered = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        if [block["type"] for block in content[: len(answered)]] != ["tool_result"] * len(answered):
            yield "tool results are not first"
        if Counter(answered) != Counter(waiting):
            yield f"results {answered} for calls {waiting}"
        waiting = [block["id"] for block in content if block["type"] == "tool_use"]
        seen += waiting
    if waiting:
        yield f"no results for {waiting}"
    yield from _unique(seen, "call")


ANTHROPIC_BLOCKS: Final[Mapping[str, Sequence[str]]] = {
    "user": ("text", "image", "tool_result"),
    "assistant": ("text", "thinking", "redacted_thinking", "tool_use"),
    "system": ("text", "tool_addition", "tool_removal"),
}


def _anthropic_block(block: Body, role: str) -> Iterator[str]:
    if block["type"] not in ANTHROPIC_BLOCKS[role]:
        yield f"{block['type']} in a message of role {role}"
        return
    match block:
        case {"type": "text", "text": said}:
            yield from _said(said, role)
        case {"type": "image"}:
            yield from _anthropic_image(block)
        case {"type": "thinking", "signature": str()} | {"type": "redacted_thinking", "data": str()}:
            pass
        case {"type": "thinking" | "redacted_thinking"}:
            yield "thinking without its signature"
        case {"type": "tool_use"}:
            if not ID.fullmatch(block["id"]):
                yield f"id {block['id']!r}"
            yield from _name(block["name"])
            if not isinstance(block["input"], dict):
                yield "input is no object"
        case {"type": "tool_result", "content": list(inside)}:
            for inner in inside:
                yield from _anthropic_inner(inner, is_error=block.get("is_error"))


def _anthropic_inner(inner: Body, *, is_error: object) -> Iterator[str]:
    if inner["type"] == "text":
        yield from _said(inner["text"], "result")
    elif inner["type"] != "image" or is_error:
        yield f"{inner['type']} in a result"
    else:
        yield from _anthropic_image(inner)


def _anthropic_image(block: Body) -> Iterator[str]:
    source = block["source"]
    if source["type"] != "base64" or source["media_type"] not in IMAGE_TYPES or not source["data"]:
        yield f"image {source}"


# -- Chat Completions --------------------------------------------------------------------


def completions(body: Body, model: Model) -> Iterator[str]:
    """Every call is answered by a message of role `tool` directly behind it."""
    messages: list[Body] = body["messages"]
    if not any([message["role"] == "user" for message in messages]):
        yield "no message of a user"
    yield from _unique([_of_kind(tool)["name"] for tool in body.get("tools", ())], "tool")
    waiting: list[str] = []
    before = ""
    for message in messages:
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"result without call: {message['tool_call_id']!r}"
            else:
                waiting.remove(message["tool_call_id"])
            if not isinstance(message["content"], (str, list)) or message["content"] == []:
                yield "result without content"
            if model.compat.get("requiresToolResultName") and not message.get("name"):
                yield "result without name"
        else:
            if waiting:
                yield f"no result for {waiting} before {role}"
            yield from _completions_message(message, before, model)
            waiting = [call["id"] for call in message.get("tool_calls", ())]
            yield from _unique(waiting, "call")
        before = role
    if waiting:
        yield f"no result for {waiting} at the end"


def _completions_message(message: Body, before: str, model: Model) -> Iterator[str]:
    role, content, calls = message["role"], message.get("content"), message.get("tool_calls")
    if role == "assistant" and not content and not calls:
        yield "empty answer"
    elif role == "user" and (content is None or content == []):
        yield "user without content"
    elif role in ("system", "developer") and not content and not message.get("tools"):
        yield "empty system message"
    elif role not in ("system", "developer", "user", "assistant"):
        yield f"role {role}"
    if role == "user" and before == "tool" and model.compat.get("requiresAssistantAfterToolResult"):
        yield "user directly after a result"
    for part in content if isinstance(content, list) else ():
        yield from _completions_part(part, role)
    if calls == []:
        yield "empty list of calls"
    for call in calls or ():
        if not call["id"] or (model.provider == "openai" and len(call["id"]) > 40):
            yield f"id {call['id']!r}"
        yield from _name(_of_kind(call)["name"])
        if call["type"] == "function":
            yield from _arguments(call["function"]["arguments"])


def _completions_part(part: Body, role: str) -> Iterator[str]:
    if part["type"] == "text":
        if not part["text"]:
            yield "empty text part"
    elif part["type"] != "image_url" or role != "user" or not part["image_url"]["url"].startswith("data:image/"):
        yield f"part {part['type']} of role {role}"


def _of_kind(value: Body) -> Body:
    found: Body = value[value["type"]]
    return found


# -- Responses ---------------------------------------------------------------------------


def responses(body: Body, _model: Model) -> Iterator[str]:
    """Items refer to each other by id: each id once, every call has its output, and a reasoning item what it led to.

    An output whose call is nowhere in the history is let through: a recorded trace sends it.
    """
    items: list[Body] = body["input"]
    yield from _unique([tool["name"] for tool in body.get("tools", ()) if "name" in tool], "tool")
    yield from _unique([item["id"] for item in items if item.get("id")], "item")
    if not any([item.get("role") == "user" for item in items]):
        yield "no message of a user"
    yield from _responses_pairs(items)
    for item, following in zip(items, [*items[1:], {}], strict=True):
        if len(item.get("id", "")) > 64:
            yield f"id {item['id']!r}"
        if item.get("type") == "reasoning":
            leads = following.get("type") in ("reasoning", *OUTPUTS) or following.get("role") == "assistant"
            if not leads:
                yield "reasoning without what follows it"
            if not isinstance(item.get("summary"), list):
                yield "reasoning without summary"
        elif item.get("type") in OUTPUTS:
            yield from _responses_call(item)
        elif item.get("type", "message") == "message":
            yield from _responses_message(item)


OUTPUTS: Final[Mapping[str, str]] = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}


def _responses_pairs(items: Sequence[Body]) -> Iterator[str]:
    called = [item["call_id"] for item in items if item.get("type") in OUTPUTS]
    yield from _unique(called, "call")
    waiting: dict[str, str] = {}
    for item in items:
        kind = item.get("type", "message")
        if kind in OUTPUTS:
            waiting[item["call_id"]] = OUTPUTS[kind]
        elif kind in OUTPUTS.values():
            if item["call_id"] in called and waiting.pop(item["call_id"], None) != kind:
                yield f"output without call: {item['call_id']!r}"
            if not isinstance(item["output"], str) and not item["output"]:
                yield "empty output list"
        elif waiting and item.get("role") in ("user", "system", "developer"):
            yield f"no output for {list(waiting)} before {item['role']}"
    if waiting:
        yield f"no output for {list(waiting)}"


def _responses_call(item: Body) -> Iterator[str]:
    if not 1 <= len(item["call_id"]) <= 64:
        yield f"call id {item['call_id']!r}"
    if "id" in item and not item["id"].startswith("fc_" if item["type"] == "function_call" else "ctc_"):
        yield f"id {item['id']!r} of a {item['type']}"
    yield from _name(item["name"])
    if item["type"] == "function_call":
        yield from _arguments(item["arguments"])


def _responses_message(item: Body) -> Iterator[str]:
    role, content = item["role"], item["content"]
    if not content:
        yield f"message of {role} without content"
    if role in ("system", "developer"):
        return
    allowed = {"user": ("input_text", "input_image"), "assistant": ("output_text", "refusal")}[role]
    for part in content if isinstance(content, list) else ():
        if part["type"] not in allowed:
            yield f"{part['type']} in a message of role {role}"
    if role == "assistant" and not item.get("id", "msg_x"):
        yield "a message with an empty id"


# -- all ---------------------------------------------------------------------------------


def _said(text: str, where: str) -> Iterator[str]:
    if not text.strip():
        yield f"blank text in {where}"


def _name(name: str) -> Iterator[str]:
    if not NAME.fullmatch(name):
        yield f"name {name!r}"


def _arguments(text: str) -> Iterator[str]:
    try:
        if not isinstance(json.loads(text), dict):
            yield "arguments are no object"
    except ValueError:
        yield f"arguments {text!r}"


def _unique(values: Sequence[str], what: str) -> Iterator[str]:
    twice = [value for value, times in Counter(values).items() if times > 1]
    if twice:
        yield f"{what} twice: {twice}"


RULES: Final[Mapping[str, Rule]] = {
    "anthropic-messages": anthropic,
    "openai-completions": completions,
    "openai-responses": responses,
}
