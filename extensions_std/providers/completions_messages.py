"""Prepared messages as chat-completions messages, encoded once each (WIRE-63 to WIRE-65).

Theory of operation. A `Transcript` follows the message list of one session. While the list only
grows, a request costs its new messages: the JSON of all settled wire messages is kept in one buffer,
and a request copies that once. Two things can undo that, and then everything is made again from the
first message on: the list is not a continuation of the last one (a compaction, another branch), or
what the old bytes rest on has changed (model, flags, grammar tools, a replay of the prompt that
folds what stood in place). Lists are compared element by element, and the comparison of a message
with itself is one of identity, so finding out that nothing changed is cheap.

Wire messages that could still change stay out of the kept list: results made up for open calls,
held system messages, and images of tool results, which follow the last result of a run of them.
"""

from collections.abc import Callable, Sequence
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
from camshaft.extensions_std.providers.budget import InputEstimate
from camshaft.extensions_std.providers.compat import CompletionsFlags
from camshaft.extensions_std.providers.constrained import grammar_of, grammar_property, strict_parameters
from camshaft.extensions_std.providers.preparation import (
    Preparation,
    PromptReplay,
    completions_call_id,
    encoded,
    in_place_text,
)

ATTACHED: Final = "Attached image(s) from tool result:"
SEE_IMAGE: Final = "(see attached image)"
NO_OUTPUT: Final = "(no tool output)"
BRIDGE: Final = "I have processed the tool results."
"""Texts put into requests (WIRE-63, WIRE-64)."""

REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "reasoning_text")
"""Where servers put reasoning, in order of preference (WIRE-71)."""

Wire = dict[str, Any]


@attrs.define
class Renderer:
    """Prepared messages to wire messages. Small: copied for every request's tail."""

    _model: Model
    _flags: CompletionsFlags
    _grammars: dict[str, str]
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
        parts = [_text_part(ATTACHED), *map(_image_part, self._images)]
        self._images = []
        done = [*self._bridge(), {"role": "user", "content": parts}]
        self._after_result = False
        return done

    def copied(self) -> "Renderer":
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
        parts = [_text_part(each.text) for each in message.content if isinstance(each, TextBlock) and each.text]
        if any(isinstance(each, ImageBlock) for each in message.content):
            parts = [part for part in map(_part, message.content) if part is not None]
        return {"role": "user", "content": parts} if parts else None

    def _system(self, message: SystemMessage) -> list[Wire]:
        said = in_place_text(message)
        done: list[Wire] = []
        if self._flags.supports_mid_convo_tool_additions and message.tools_added:
            done.append({"role": "system", "tools": [wire_tool(tool, self._flags) for tool in message.tools_added]})
        return [*done, {"role": self.system_role, "content": said}] if said else done

    @property
    def system_role(self) -> str:
        """`developer` for reasoning models of servers that know it."""
        return "developer" if self._model.reasoning and self._flags.supports_developer_role else "system"

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
            wire["content"] = [_text_part("\n\n".join(shown)), *([_text_part(said)] if said else [])]
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


@attrs.define(eq=False)
class Transcript:
    """The wire messages of one session, kept from request to request; see the header."""

    model: Model
    flags: CompletionsFlags
    _seen: list[ModelMessage] = attrs.field(factory=list, init=False)
    _settled: bytearray = attrs.field(factory=bytearray, init=False)
    """Settled wire messages as JSON, with commas between them, without the leading system message."""
    _marked: tuple[int, int, Wire] | None = attrs.field(default=None, init=False)
    """Start, end and value of the last settled message that has text, for the cache mark (WIRE-69)."""
    _preparation: Preparation = attrs.field(init=False)
    _renderer: Renderer = attrs.field(init=False)
    _prompt: PromptReplay = attrs.field(init=False)
    """All system messages so far, replayed."""
    _leading: PromptReplay = attrs.field(init=False)
    """Those that the leading system message tells."""
    _declared: set[str] = attrs.field(init=False)
    """Names of tools declared so far, also since removed (WIRE-79)."""
    _has_others: bool = attrs.field(default=False, init=False)
    """Whether a message other than system ones was seen."""
    _has_tools: bool = attrs.field(default=False, init=False)
    """Whether a call or result was seen."""
    _made: dict[str, tuple[object, bytes]] = attrs.field(factory=dict, init=False)
    """The last JSON of the leading message and of the tools, with what it was made of."""
    estimate: InputEstimate = attrs.field(factory=InputEstimate, init=False)

    def __attrs_post_init__(self) -> None:
        self._restart([])

    def follow(self, messages: Sequence[ModelMessage]) -> None:
        """Takes the message list of a request. O(new messages) plus one comparison of the old ones."""
        now = list(messages)
        known = len(self._seen)
        if len(now) < known or now[:known] != self._seen:
            self._restart(now)
            return
        for index in range(known, len(now)):
            if not self._add(now[index]):
                self._restart(now)
                return
        self._seen = now

    def wire_messages(self, cache_control: Wire | None) -> list[bytes | bytearray]:
        """The `messages` list as JSON, in pieces to be joined at once."""
        renderer = self._renderer.copied()
        rest: list[Wire] = []
        for message in self._preparation.tail():
            rest += renderer.add(message)
        rest += renderer.tail()
        settled: list[bytes | bytearray] = [self._settled] if self._settled else []
        if cache_control is not None:
            settled = self._mark(rest, cache_control)
        pieces: list[bytes | bytearray] = [b"["]
        text = self._leading.text
        if text:
            pieces += [self._remade("leading", (text, cache_control), self._leading_json), b"," if settled or rest else b""]
        pieces += settled
        for index, wire in enumerate(rest):
            pieces += [b"," if settled or index else b"", encoded(wire)]
        return [*pieces, b"]"]

    def _leading_json(self, key: tuple[str, Wire | None]) -> bytes:
        text, cache_control = key
        content: Any = [{**_text_part(text), "cache_control": cache_control}] if cache_control else text
        return encoded({"role": self._renderer.system_role, "content": content})

    def tools_json(self, cache_control: Wire | None) -> bytes:
        """The top-level `tools` list, as JSON. Raises ConstraintRefused."""
        return self._remade("tools", (self.tools, cache_control), lambda key: wire_tools(key[0], self.flags, key[1]))

    def _remade(self, name: str, key: Any, make: Callable[[Any], bytes]) -> bytes:
        """What was made last, if it was made of the same."""
        known = self._made.get(name)
        if known is None or known[0] != key:
            known = self._made[name] = (key, make(key))
        return known[1]

    @property
    def tools(self) -> tuple[ToolDeclaration, ...]:
        """The tools of the top-level list: the current ones, without those sent in place (WIRE-79)."""
        in_place = self.flags.supports_mid_convo_system_messages and self.flags.supports_mid_convo_tool_additions
        return tuple((self._leading if in_place else self._prompt).tools.values())

    @property
    def has_tool_history(self) -> bool:
        """Whether the history has calls or results."""
        return self._has_tools

    def grammars(self) -> dict[str, str]:
        """Current tools that are called with plain text, to the property that holds it."""
        return _grammars(self._prompt.tools.values(), self.flags)

    def _restart(self, messages: list[ModelMessage]) -> None:
        """Makes everything again: the leading message tells what cannot stay in place."""
        folded = self._fold_end(messages)
        self._settled, self._marked, self._seen = bytearray(), None, messages
        self._prompt, self._leading, self._declared = PromptReplay(), PromptReplay(), set()
        self._has_others = self._has_tools = False
        self.estimate = InputEstimate()
        keeps = self.flags.supports_mid_convo_system_messages
        self._preparation = Preparation(self.model, completions_call_id(self.model.provider), keeps)
        everything = PromptReplay()
        for message in messages:
            if isinstance(message, SystemMessage):
                everything.add(message)
        self._renderer = Renderer(self.model, self.flags, _grammars(everything.tools.values(), self.flags))
        for index, message in enumerate(messages):
            self._take(message, is_leading=index < folded)

    def _fold_end(self, messages: list[ModelMessage]) -> int:
        """How many messages from the start have their system messages told by the leading one (WIRE-11, WIRE-79)."""
        if not self.flags.supports_mid_convo_system_messages:
            return len(messages)
        end, declared, at_start = 0, set[str](), True
        in_place_tools = self.flags.supports_mid_convo_tool_additions
        for index, message in enumerate(messages):
            if not isinstance(message, SystemMessage):
                at_start = False
                continue
            added = [tool.name for tool in message.tools_added or ()]
            changes_tools = in_place_tools and (message.tools_removed or not declared.isdisjoint(added))
            if at_start or message.replace or changes_tools:
                end = index + 1
            declared.update(added)
        return end

    def _add(self, message: ModelMessage) -> bool:
        """Continues with one message; False if what was made so far no longer fits."""
        if not isinstance(message, SystemMessage):
            self._take(message, is_leading=False)
            return True
        keeps = self.flags.supports_mid_convo_system_messages
        added = [tool.name for tool in message.tools_added or ()]
        in_place_tools = keeps and self.flags.supports_mid_convo_tool_additions
        if message.replace or (in_place_tools and (message.tools_removed or not self._declared.isdisjoint(added))):
            return False
        self._take(message, is_leading=not keeps or not self._has_others)
        return self.grammars() == self._renderer._grammars

    def _take(self, message: ModelMessage, *, is_leading: bool) -> None:
        self.estimate.add(message)
        if isinstance(message, SystemMessage):
            self._prompt.add(message)
            self._declared.update([tool.name for tool in message.tools_added or ()])
            if is_leading:
                self._leading.add(message)
                return
        else:
            self._has_others = True
            self._has_tools = self._has_tools or isinstance(message, ToolResultMessage) or _has_calls(message)
        for prepared in self._preparation.add(message):
            for wire in self._renderer.add(prepared):
                self._settle(wire)

    def _settle(self, wire: Wire) -> None:
        made = encoded(wire)
        if self._settled:
            self._settled += b","
        start = len(self._settled)
        self._settled += made
        if self.flags.cache_control_format and _has_text(wire):
            self._marked = (start, start + len(made), wire)

    def _mark(self, rest: list[Wire], cache_control: Wire) -> list[bytes | bytearray]:
        """The settled messages; the last text of the last message that has one is marked, here or in `rest`."""
        settled: list[bytes | bytearray] = [self._settled] if self._settled else []
        for index in reversed(range(len(rest))):
            if _has_text(rest[index]):
                rest[index] = _with_mark(rest[index], cache_control)
                return settled
        if self._marked is None:
            return settled
        start, end, wire = self._marked
        return [bytes(self._settled[:start]), encoded(_with_mark(wire, cache_control)), bytes(self._settled[end:])]


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


def _grammars(tools: Any, flags: CompletionsFlags) -> dict[str, str]:
    if not flags.supports_open_ai_grammar_tools:
        return {}
    found = {tool.name: grammar_property(tool) for tool in tools}
    return {name: held_by for name, held_by in found.items() if held_by is not None}


def _has_calls(message: ModelMessage) -> bool:
    return isinstance(message, AssistantMessage) and any(isinstance(block, ToolCall) for block in message.content)


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
            return _text_part(said)
        case ImageBlock():
            return _image_part(block)
    return None


def _text_part(said: str) -> Wire:
    return {"type": "text", "text": said}


def _image_part(image: ImageBlock) -> Wire:
    return {"type": "image_url", "image_url": {"url": f"data:{image.mime_type};base64,{image.data}"}}


def _has_text(wire: Wire) -> bool:
    content = wire.get("content")
    if wire["role"] not in ("user", "assistant", "tool") or not content:
        return False
    return isinstance(content, str) or any(part["type"] == "text" for part in content)


def _with_mark(wire: Wire, cache_control: Wire) -> Wire:
    content = wire["content"]
    parts = [_text_part(content)] if isinstance(content, str) else list(content)
    last = max(index for index, part in enumerate(parts) if part["type"] == "text")
    parts[last] = {**parts[last], "cache_control": cache_control}
    return {**wire, "content": parts}


def wire_tools(tools: Sequence[ToolDeclaration], flags: CompletionsFlags, cache_control: Wire | None) -> bytes:
    """The top-level `tools` list, as JSON. Raises ConstraintRefused."""
    made = [wire_tool(tool, flags) for tool in tools]
    if cache_control is not None and made:
        made[-1] = {**made[-1], "cache_control": cache_control}
    return b"[" + b",".join(map(encoded, made)) + b"]" if made else dumps([])
