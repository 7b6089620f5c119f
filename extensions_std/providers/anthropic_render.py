"""Prepared messages and tools as the Anthropic API takes them (WIRE-42 to WIRE-46, WIRE-57).

A `Renderer` takes prepared messages one by one and gives the wire messages that are settled. Two kinds
wait: tool results, because a run of them is one user message, and later system messages, which
stand directly before the next answer that is sent, or at the end.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from camshaft.actors.api import (
    AssistantMessage,
    ImageBlock,
    Json,
    Model,
    ModelMessage,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolDeclaration,
    ToolResultMessage,
    UserMessage,
)
from camshaft.extensions_std.providers.anthropic_compat import AnthropicFlags
from camshaft.extensions_std.providers.constrained import strict_parameters
from camshaft.extensions_std.providers.preparation import anthropic_call_id, clean, encoded, in_place_text
from camshaft.extensions_std.providers.wire_transcript import Form, Wire

SEE_IMAGE: Final = "(see attached image)"
IMAGE_BELOW: Final = "(image attached after the tool results)"
"""Texts put into results (WIRE-44, WIRE-45)."""

IMAGE_KINDS: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""What the API takes; a single image of another kind would have the whole conversation refused for ever."""

NOT_SHOWN: Final = "(earlier messages are not shown)"
"""What the user is made to say before an answer with which the history begins: the first message must be the user's."""

KEPT_KEYWORDS: Final = ("additionalProperties", "$defs", "definitions")
"""Root keywords of a schema that are sent besides properties and what is required (WIRE-46)."""

UNSTRICT_KEYWORDS: Final = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "maxItems",
    "uniqueItems",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
)
STRICT_FORMATS: Final = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"})
"""What the API takes in strict schemas, and what not (WIRE-36)."""


def anthropic_form(model: Model, flags: AnthropicFlags) -> Form:
    """How the messages of `model` are written."""
    return Form(
        renderer=lambda _grammars: AnthropicRenderer(flags),
        call_id=anthropic_call_id,
        unique_call_ids=True,
        keeps_system=flags.supports_mid_convo_system_messages,
        can_bear_mark=lambda wire: bool(wire["role"] != "assistant"),
        with_mark=with_mark,
        marks_only_last=True,
    )


@attrs.define
class AnthropicRenderer:
    """Prepared messages to wire messages."""

    _flags: AnthropicFlags
    _has_begun: bool = False
    """Whether the user has said something."""
    _results: list[Wire] = attrs.field(factory=list)
    """Blocks of the tool results since the last other message."""
    _error_images: list[Wire] = attrs.field(factory=list)
    """What follows them: images may not stand inside a result that is an error."""
    _systems: list[Wire] = attrs.field(factory=list)

    def add(self, message: ModelMessage) -> Sequence[Wire]:
        """The wire messages that are settled now."""
        match message:
            case ToolResultMessage():
                self._result(message)
            case UserMessage():
                content = _user_content(message)
                self._has_begun = self._has_begun or bool(content)
                return [*self._run(), *([{"role": "user", "content": content}] if content else [])]
            case AssistantMessage():
                blocks = [block for each in message.content for block in self._block(each)]
                return [*self._run(), *self._opening(), *self._held(), {"role": "assistant", "content": blocks}] if blocks else self._run()
            case SystemMessage():
                said = in_place_text(message)
                if not is_blank(said):
                    self._systems.append({"role": "system", "content": [text_block(said)]})
        return []

    def tail(self) -> Sequence[Wire]:
        """What still waits, given once."""
        return [*self._run(), *self._held()]

    def copied(self) -> "AnthropicRenderer":
        """One that goes on from here on its own."""
        return attrs.evolve(self, results=list(self._results), error_images=list(self._error_images), systems=list(self._systems))

    def _run(self) -> list[Wire]:
        """The message of the results that wait."""
        blocks = [*self._results, *self._error_images]
        self._results, self._error_images = [], []
        return [{"role": "user", "content": blocks}] if blocks else []

    def _opening(self) -> list[Wire]:
        """What stands before the first answer if the user has said nothing: an edit took it out, or it was blank."""
        if self._has_begun:
            return []
        self._has_begun = True
        return [{"role": "user", "content": NOT_SHOWN}]

    def _held(self) -> list[Wire]:
        held, self._systems = self._systems, []
        return held

    def _result(self, message: ToolResultMessage) -> None:
        shown = list(map(_told, message.content))
        images = [_image(each) for each in shown if isinstance(each, ImageBlock)]
        texts = [each.text for each in shown if isinstance(each, TextBlock)]
        content: Any = "\n".join(texts)
        if images and message.is_error:
            content = "\n".join([*texts, IMAGE_BELOW])
            whose = f"Images from the error result of tool call {message.tool_call_id} ({message.tool_name}):"
            self._error_images += [text_block(whose), *images]
        elif images:
            content = list(_blocks(shown))
            if len(content) == len(images):
                content.insert(0, text_block(SEE_IMAGE))
        result = {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content, "is_error": message.is_error}
        self._results.append(result)

    def _block(self, block: object) -> list[Wire]:
        """A block of an answer; none if it says nothing."""
        match block:
            case TextBlock(text=said) if not is_blank(said):
                return [text_block(said)]
            case ThinkingBlock():
                return self._thinking(block)
            case ToolCall():
                return [{"type": "tool_use", "id": block.id, "name": block.name, "input": block.arguments}]
        return []

    def _thinking(self, block: ThinkingBlock) -> list[Wire]:
        if block.redacted:
            return [{"type": "redacted_thinking", "data": block.thinking_signature}] if block.thinking_signature else []
        if block.thinking_signature or (self._flags.allow_empty_signature and not is_blank(block.thinking)):
            return [{"type": "thinking", "thinking": block.thinking, "signature": block.thinking_signature or ""}]
        return [] if is_blank(block.thinking) else [text_block(block.thinking)]


def is_blank(text: str) -> bool:
    """Whether nothing of a text can be seen once it is sent; the API refuses such texts."""
    return not clean(text).strip()


def text_block(said: str) -> Wire:
    """A text as a block."""
    return {"type": "text", "text": said}


def with_mark(wire: Wire, cache_control: Wire) -> Wire:
    """A user or system message whose last block bears a cache mark (WIRE-50)."""
    content = wire["content"]
    blocks = [text_block(content)] if isinstance(content, str) else list(content)
    blocks[-1] = {**blocks[-1], "cache_control": cache_control}
    return {**wire, "content": blocks}


def wire_tool(tool: ToolDeclaration, flags: AnthropicFlags, *, is_plain: bool) -> Wire:
    """A tool as the API takes it (WIRE-46); `is_plain`: strict only if it has to be (WIRE-38). Raises ConstraintRefused."""
    strict = None if is_plain and prefers_strict(tool) else _strict(tool, flags)
    schema = tool.parameters if strict is None else strict
    properties, required = schema.get("properties"), schema.get("required")
    wire: Wire = {"name": tool.name, "description": tool.description}
    if flags.supports_eager_tool_input_streaming:
        wire["eager_input_streaming"] = True
    if strict is not None:
        wire["strict"] = True
    wire["input_schema"] = {
        "type": "object",
        "properties": properties if isinstance(properties, Mapping) else {},
        "required": required if isinstance(required, (list, tuple)) else [],
        **{keyword: schema[keyword] for keyword in KEPT_KEYWORDS if keyword in schema},
    }
    return wire


def wire_tools(tools: Sequence[ToolDeclaration], flags: AnthropicFlags, cache_control: Wire | None, *, is_plain: bool) -> bytes:
    """The `tools` list, as JSON, its last one marked. Raises ConstraintRefused."""
    made = [wire_tool(tool, flags, is_plain=is_plain) for tool in tools]
    if cache_control is not None and made:
        made[-1] = {**made[-1], "cache_control": cache_control}
    return encoded(made)


def prefers_strict(tool: ToolDeclaration) -> bool:
    """Whether a tool is sent strict where that is possible, and plain otherwise."""
    wish = tool.constrained_sampling
    return isinstance(wish, Mapping) and wish.get("type") == "json_schema" and wish.get("strict") != "require"


def _strict(tool: ToolDeclaration, flags: AnthropicFlags) -> Any:
    return strict_parameters(tool, is_supported=flags.supports_strict_tools, refusal=_refusal)


def _refusal(schema: Mapping[str, Json]) -> str | None:
    for keyword in UNSTRICT_KEYWORDS:
        if keyword in schema:
            return keyword
    if schema.get("minItems", 0) not in (0, 1):
        return f"minItems {schema['minItems']}"
    form = schema.get("format")
    return None if form is None or (isinstance(form, str) and form in STRICT_FORMATS) else f"format {form}"


def _user_content(message: UserMessage) -> str | list[Wire]:
    """The content of a user message; empty if it says nothing (WIRE-42)."""
    if isinstance(message.content, str):
        return "" if is_blank(message.content) else message.content
    return list(_blocks(map(_told, message.content)))


def _told(block: object) -> object:
    """A block, or instead of an image of a kind that the API refuses a text that tells of it."""
    if isinstance(block, ImageBlock) and block.mime_type not in IMAGE_KINDS:
        return TextBlock(text=f"(image omitted: {block.mime_type} is not supported)")
    return block


def _blocks(content: Iterable[object]) -> Iterable[Wire]:
    for each in content:
        if isinstance(each, ImageBlock):
            yield _image(each)
        elif isinstance(each, TextBlock) and not is_blank(each.text):
            yield text_block(each.text)


def _image(image: ImageBlock) -> Wire:
    return {"type": "image", "source": {"type": "base64", "media_type": image.mime_type, "data": image.data}}
