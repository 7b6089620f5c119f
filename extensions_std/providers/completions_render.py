"""Prepared messages and tools as chat completions take them (WIRE-63 to WIRE-65, WIRE-68).

A `Renderer` takes prepared messages one by one and gives the wire messages that are settled. Images of
tool results cannot stand in a result: they follow the last one of a run of results in a user message.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from camshaft.actors.api import (
    AssistantMessage,
    ImageBlock,
    MalformedJson,
    Model,
    ModelMessage,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolDeclaration,
    ToolResultMessage,
    UserMessage,
    dumps,
    loads,
)
from camshaft.extensions_std.providers.compat import CompletionsFlags
from camshaft.extensions_std.providers.constrained import grammar_of, grammar_property, strict_parameters
from camshaft.extensions_std.providers.preparation import completions_call_id, encoded, in_place_text
from camshaft.extensions_std.providers.wire_transcript import Form, Wire

ATTACHED: Final = "Attached image(s) from tool result:"
SEE_IMAGE: Final = "(see attached image)"
NO_OUTPUT: Final = "(no tool output)"
BRIDGE: Final = "I have processed the tool results."
"""Texts put into requests (WIRE-63, WIRE-64)."""

REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "reasoning_text")
"""Where servers put reasoning, in order of preference (WIRE-71)."""


def completions_form(model: Model, flags: CompletionsFlags) -> Form:
    """How chat completions write the messages of `model`."""
    return Form(
        renderer=lambda grammars: CompletionsRenderer(model, flags, grammars),
        call_id=completions_call_id(model.provider),
        grammars=lambda tools: grammars_of(tools, flags),
        keeps_system=flags.supports_mid_convo_system_messages,
        keeps_tools=flags.supports_mid_convo_tool_additions,
        can_bear_mark=has_text if flags.cache_control_format else lambda _wire: False,
        with_mark=with_mark,
    )


@attrs.define
class CompletionsRenderer:
    """Prepared messages to wire messages."""

    _model: Model
    _flags: CompletionsFlags
    _grammars: Mapping[str, str]
    """Names of tools that are called with plain text, to the property that holds it (WIRE-39)."""
    _images: list[ImageBlock] = attrs.field(factory=list)
    """Of the tool results since the last other message."""
    _after_result: bool = False

    def add(self, message: ModelMessage) -> list[Wire]:
        """The wire messages that are settled now."""
        match message:
            case ToolResultMessage():
                return [self._result(message)]
            case UserMessage():
                return self._user_like(self._user(message))
            case AssistantMessage():
                done, wire = self.tail(), self._assistant(message)
                self._after_result = self._after_result and wire is None
                return done if wire is None else [*done, wire]
            case SystemMessage():
                return [*self.tail(), *self._system(message)]
        return []

    def tail(self) -> list[Wire]:
        """Images of the last tool results; what was waiting is given once."""
        if not self._images:
            return []
        parts = [text_part(ATTACHED), *map(_image_part, self._images)]
        self._images = []
        done = [*self._bridge(), {"role": "user", "content": parts}]
        self._after_result = False
        return done

    def copied(self) -> "CompletionsRenderer":
        """One that goes on from here on its own."""
        return attrs.evolve(self, images=list(self._images))

    def _bridge(self) -> list[Wire]:
        if self._after_result and self._flags.requires_assistant_after_tool_result:
            return [{"role": "assistant", "content": BRIDGE}]
        return []

    def _user_like(self, wire: Wire | None) -> list[Wire]:
        done = self.tail()
        if wire is not None:
            done += [*self._bridge(), wire]
            self._after_result = False
        return done

    def _user(self, message: UserMessage) -> Wire | None:
        if isinstance(message.content, str):
            return {"role": "user", "content": message.content}
        parts = [text_part(each.text) for each in message.content if isinstance(each, TextBlock) and each.text]
        if any(isinstance(each, ImageBlock) for each in message.content):
            parts = [part for part in map(_part, message.content) if part is not None]
        return {"role": "user", "content": parts} if parts else None

    def _system(self, message: SystemMessage) -> list[Wire]:
        said = in_place_text(message)
        done: list[Wire] = []
        if self._flags.supports_mid_convo_tool_additions and message.tools_added:
            done.append({"role": "system", "tools": [wire_tool(tool, self._flags) for tool in message.tools_added]})
        return [*done, {"role": system_role(self._model, self._flags), "content": said}] if said else done

    def _result(self, message: ToolResultMessage) -> Wire:
        self._after_result = True
        images = [each for each in message.content if isinstance(each, ImageBlock)]
        self._images += images
        said = "\n".join([each.text for each in message.content if isinstance(each, TextBlock)])
        wire: Wire = {"role": "tool", "content": said or (SEE_IMAGE if images else NO_OUTPUT), "tool_call_id": message.tool_call_id}
        if self._flags.requires_tool_result_name and message.tool_name:
            wire["name"] = message.tool_name
        return wire

    def _assistant(self, message: AssistantMessage) -> Wire | None:
        flags = self._flags
        said = "".join([each.text for each in message.content if isinstance(each, TextBlock) and each.text.strip()])
        non_null = flags.requires_assistant_after_tool_result or flags.requires_non_null_assistant_content
        wire: Wire = {"role": "assistant", "content": said or ("" if non_null else None)}
        thinking = [each for each in message.content if isinstance(each, ThinkingBlock)]
        shown = [each.thinking for each in thinking if each.thinking.strip()]
        if shown and flags.requires_thinking_as_text:
            wire["content"] = [text_part("\n\n".join(shown)), *([text_part(said)] if said else [])]
        elif thinking:
            wire.update(_reasoning(thinking, shown))
        calls = [self._call(each) for each in message.content if isinstance(each, ToolCall)]
        if calls:
            wire["tool_calls"] = calls
        if not wire["content"] and not calls:
            return None
        if flags.requires_reasoning_content_on_assistant_messages and self._model.reasoning:
            wire.setdefault("reasoning_content", "")
        return wire

    def _call(self, call: ToolCall) -> Wire:
        held_by = self._grammars.get(call.name)
        if held_by is not None and isinstance(call.arguments.get(held_by), str):
            return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments[held_by]}}
        arguments = encoded(call.arguments).decode()
        return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def system_role(model: Model, flags: CompletionsFlags) -> str:
    """`developer` for reasoning models of servers that know it."""
    return "developer" if model.reasoning and flags.supports_developer_role else "system"


def leading_message(role: str, text: str, cache_control: Wire | None) -> Wire:
    """The system message before all others."""
    content: Any = [{**text_part(text), "cache_control": cache_control}] if cache_control else text
    return {"role": role, "content": content}


def wire_tool(tool: ToolDeclaration, flags: CompletionsFlags) -> Wire:
    """A tool as chat completions take it (WIRE-68). Raises ConstraintRefused."""
    grammar = grammar_of(tool) if flags.supports_open_ai_grammar_tools else None
    if grammar is not None:
        syntax, definition = grammar
        form = {"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}}
        return {"type": "custom", "custom": {"name": tool.name, "description": tool.description, "format": form}}
    function: Wire = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    strict = strict_parameters(tool, is_supported=flags.supports_strict_mode)
    if strict is not None:
        function["parameters"] = strict
    if flags.supports_strict_mode:
        function["strict"] = strict is not None
    return {"type": "function", "function": function}


def wire_tools(tools: Sequence[ToolDeclaration], flags: CompletionsFlags, cache_control: Wire | None) -> bytes:
    """The top-level `tools` list, as JSON. Raises ConstraintRefused."""
    made = [wire_tool(tool, flags) for tool in tools]
    if cache_control is not None and made:
        made[-1] = {**made[-1], "cache_control": cache_control}
    return b"[" + b",".join(map(encoded, made)) + b"]" if made else dumps([])


def grammars_of(tools: Iterable[ToolDeclaration], flags: CompletionsFlags) -> dict[str, str]:
    """Tools that are called with plain text, to the property that holds it (WIRE-39)."""
    if not flags.supports_open_ai_grammar_tools:
        return {}
    found = {tool.name: grammar_property(tool) for tool in tools}
    return {name: held_by for name, held_by in found.items() if held_by is not None}


def _reasoning(thinking: list[ThinkingBlock], shown: list[str]) -> Wire:
    """Own thinking in the field it came from, or as the details it came as (WIRE-65)."""
    details = [each for block in thinking for each in _details(block.thinking_signature)]
    if details:
        return {"reasoning_details": details}
    field = next((block.thinking_signature for block in thinking if block.thinking.strip()), None)
    return {field: "\n".join(shown)} if field in REASONING_FIELDS and shown else {}


def _details(signature: str | None) -> list[Wire]:
    if not signature or not signature.startswith("["):
        return []
    try:
        listed = loads(signature.encode("utf-8", "surrogatepass"))
    except MalformedJson:
        return []
    if not isinstance(listed, list):
        return []
    return listed if all(isinstance(each, dict) and _is_detail(each) for each in listed) else []


def _is_detail(entry: Wire) -> bool:
    return isinstance(entry.get("type"), str) and entry["type"].startswith("reasoning.")


def _part(block: object) -> Wire | None:
    match block:
        case TextBlock(text=said) if said:
            return text_part(said)
        case ImageBlock():
            return _image_part(block)
    return None


def text_part(said: str) -> Wire:
    """A text as a part of list content."""
    return {"type": "text", "text": said}


def _image_part(image: ImageBlock) -> Wire:
    return {"type": "image_url", "image_url": {"url": f"data:{image.mime_type};base64,{image.data}"}}


def has_text(wire: Wire) -> bool:
    """Whether a user, assistant or tool message has text, so that a cache mark can stand in it (WIRE-69)."""
    content = wire.get("content")
    if wire["role"] not in ("user", "assistant", "tool") or not content:
        return False
    return isinstance(content, str) or any(part["type"] == "text" for part in content)


def with_mark(wire: Wire, cache_control: Wire) -> Wire:
    """A message that has text, its last text marked."""
    content = wire["content"]
    parts = [text_part(content)] if isinstance(content, str) else list(content)
    last = max(index for index, part in enumerate(parts) if part["type"] == "text")
    parts[last] = {**parts[last], "cache_control": cache_control}
    return {**wire, "content": parts}
