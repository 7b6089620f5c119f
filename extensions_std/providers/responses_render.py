"""Prepared messages and tools as OpenAI's responses take them (WIRE-84 to WIRE-89).

A message becomes one or several input items. An item that the server once sent is sent back as it was:
reasoning from its signature, texts and calls with their item ids, so that the server finds them in its
cache. Texts without an id get one made of their place in the conversation: it stays the same from request
to request, because it rests on the messages before it only.

Histories may hold what the server refuses, and then would for ever. So no id of an item or call is sent twice,
empty, or longer than `ID_MAX`; no reasoning without what it led to; no result of no call whose id a call has.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from camshaft.actors.api import (
    AssistantMessage,
    Content,
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
    loads,
)
from camshaft.extensions_std.providers.compat import ResponsesFlags
from camshaft.extensions_std.providers.constrained import grammar_of, grammar_property, strict_parameters
from camshaft.extensions_std.providers.preparation import NAMELESS, CallId, clean, encoded, in_place_text, sanitised, short_hash
from camshaft.extensions_std.providers.wire_transcript import Form, Wire

NO_OUTPUT: Final = "(no tool output)"
"""Output of a result that says nothing (WIRE-87)."""

ID_MAX: Final = 64
"""Longest id of an item or call that the API takes."""

PHASES: Final = frozenset({"commentary", "final_answer"})
"""What a text may be of an answer (WIRE-85)."""

PAIRING_PROVIDERS: Final = frozenset({"openai", "openai-codex", "opencode"})
"""Those that take a foreign id of two parts as a call id and an item id (WIRE-19b)."""

SKIPPED: Final = "openai_thinking_skipped"
"""Type of the diagnostic about thinking that was left out of a request (WIRE-88)."""


def responses_form(model: Model, flags: ResponsesFlags, skips: "Skips") -> Form:
    """How responses write the messages of `model`; what cannot be sent is told to `skips`."""
    return Form(
        renderer=lambda grammars: ResponsesRenderer(model, flags, grammars, skips),
        call_id=responses_call_id(model),
        grammars=lambda tools: grammars_of(tools, flags),
        keeps_system=flags.supports_mid_convo_system_messages,
        keeps_strays=True,
    )


@attrs.define(eq=False)
class Skips:
    """Thinking that could not be sent, each block told once a conversation, however often it is met."""

    _known: set[tuple[int, int]] = attrs.field(factory=set)
    _untold: list[Wire] = attrs.field(factory=list)

    def add(self, message: AssistantMessage, content_index: int, why: str) -> None:
        """Block number `content_index` of `message` is left out."""
        key = (message.timestamp, content_index)
        if key not in self._known:
            self._known.add(key)
            details = {"messageTimestamp": message.timestamp, "contentIndex": content_index}
            self._untold.append({"type": SKIPPED, "error": {"message": why}, "details": details})

    def taken(self) -> list[Wire]:
        """The diagnostics not told yet; they count as told from now on."""
        taken, self._untold = self._untold, []
        return taken


@attrs.frozen
class _Sent:
    """A call that waits for its result, as it was sent."""

    call_id: str
    is_custom: bool


@attrs.define
class ResponsesRenderer:
    """Prepared messages to input items."""

    _model: Model
    _flags: ResponsesFlags
    _grammars: Mapping[str, str]
    """Names of tools that are called with plain text, to the property that holds it (WIRE-39)."""
    _skips: Skips
    _count: int = 0
    """Messages sent so far, in the way WIRE-85 counts them."""
    _open: dict[str, _Sent] = attrs.field(factory=dict)
    """Calls of the last answer without their results, by the id they were prepared with."""
    _call_ids: set[str] = attrs.field(factory=set)
    """Of all calls, and results of no call, sent so far. Shared with copies, whose tails bring no new ones."""
    _item_ids: set[str] = attrs.field(factory=set)
    """Of all items sent so far; likewise."""

    def add(self, message: ModelMessage) -> list[Wire]:
        """The items of a message; none for one that is not sent."""
        items: list[Wire] = []
        match message:
            case SystemMessage():
                said = in_place_text(message)
                self._count += 1
                return [{"role": system_role(self._model, self._flags), "content": said}] if said else []
            case UserMessage():
                parts = _parts(message.content)
                items = [{"role": "user", "content": parts}] if parts else []
            case AssistantMessage():
                items = self._assistant(message)
            case ToolResultMessage():
                items = self._result(message)
        self._count += bool(items)
        return items

    def tail(self) -> list[Wire]:
        """Nothing: no item waits for another."""
        return []

    def copied(self) -> "ResponsesRenderer":
        """One that goes on from here on its own."""
        return attrs.evolve(self, open=dict(self._open))

    def _assistant(self, message: AssistantMessage) -> list[Wire]:
        self._open = {}
        items: list[Wire] = []
        reasoning: list[Wire] = []
        texts = 0
        for index, block in enumerate(message.content):
            match block:
                case ThinkingBlock(thinking_signature=signature) if signature:
                    reasoning += self._reasoning(message, index, signature)
                case TextBlock():
                    items += [*filter(self._is_new_reasoning, reasoning), self._text(block, texts)]
                    reasoning, texts = [], texts + 1
                case ToolCall():
                    items += [*filter(self._is_new_reasoning, reasoning), self._call(message, block)]
                    reasoning = []
        return items

    def _reasoning(self, message: AssistantMessage, index: int, signature: str) -> list[Wire]:
        """The item of a thinking block, if it holds one."""
        item = _reasoning_item(signature)
        if item is None:
            self._skips.add(message, index, "the thinking signature is no reasoning item; the block was left out of the request")
            return []
        return [item]

    def _is_new_reasoning(self, item: Wire) -> bool:
        id = item.get("id")
        return not isinstance(id, str) or self._is_new_item(id)

    def _text(self, block: TextBlock, number: int) -> Wire:
        """Text number `number` of an answer, from 0 (WIRE-85)."""
        id, phase = _text_id(clean(block.text_signature))
        if id and len(id) > ID_MAX:
            id = f"msg_{short_hash(id)}"
        made = f"msg_pi_{self._count}_{number}" if number else f"msg_pi_{self._count}"
        if not id or not self._is_new_item(id):
            id = made
            while not self._is_new_item(id):
                id += "_"
        content = [{"type": "output_text", "text": block.text, "annotations": []}]
        item: Wire = {"type": "message", "role": "assistant", "content": content, "status": "completed", "id": id}
        return {**item, "phase": phase} if phase else item

    def _call(self, message: AssistantMessage, call: ToolCall) -> Wire:
        """A call with the id of its item, unless another model of this endpoint made it (WIRE-86)."""
        head, _, item_id = call.id.partition("|")
        held_by = self._grammars.get(call.name)
        said = call.arguments.get(held_by) if held_by is not None else None
        is_custom = isinstance(said, str)
        sent = self._open[call.id] = _Sent(self._unique(head), is_custom)
        item: Wire = {"type": "custom_tool_call" if is_custom else "function_call"}
        is_neighbour = (message.provider, message.api) == (self._model.provider, self._model.api) and message.model != self._model.id
        is_fit = item_id.startswith("ctc_" if is_custom else "fc_") and len(item_id) <= ID_MAX
        if is_fit and not is_neighbour and self._is_new_item(item_id):
            item["id"] = item_id
        item.update({"call_id": sent.call_id, "name": call.name})
        return {**item, "input": said} if is_custom else {**item, "arguments": encoded(call.arguments).decode()}

    def _unique(self, wanted: str) -> str:
        """A call id that no other call has: two may have differed only in the part that names the item."""
        id = base = wanted[:ID_MAX] or NAMELESS
        number = 1
        while id in self._call_ids:
            number += 1
            id = f"{base[: ID_MAX - len(str(number)) - 1]}_{number}"
        self._call_ids.add(id)
        return id

    def _is_new_item(self, id: str) -> bool:
        """Whether no item of that id was sent; it counts as sent from now on."""
        is_new = id not in self._item_ids
        self._item_ids.add(id)
        return is_new

    def _result(self, message: ToolResultMessage) -> list[Wire]:
        """The output of a call; one of no call at all is sent as long as it cannot be taken for that of another."""
        sent = self._open.pop(message.tool_call_id, None)
        if sent is None:
            stray = message.tool_call_id.partition("|")[0]
            if not stray or stray in self._call_ids:
                return []
            self._call_ids.add(stray)
            sent = _Sent(stray, is_custom=False)
        kind = "custom_tool_call_output" if sent.is_custom else "function_call_output"
        return [{"type": kind, "call_id": sent.call_id, "output": self._output(message.content)}]

    def _output(self, content: Content) -> Any:
        """A text, or parts if there are images, which prepared results have only for a model that takes them (WIRE-87)."""
        blocks: Sequence[object] = [TextBlock(text=content)] if isinstance(content, str) else content
        said = "\n".join([each.text for each in blocks if isinstance(each, TextBlock)])
        images = [_image_part(each) for each in blocks if isinstance(each, ImageBlock)]
        if images:
            return [*([_text_part(said)] if said else []), *images]
        return said or NO_OUTPUT


def system_role(model: Model, flags: ResponsesFlags) -> str:
    """`developer` for reasoning models of servers that know it."""
    return "developer" if model.reasoning and flags.supports_developer_role else "system"


def wire_tool(tool: ToolDeclaration, flags: ResponsesFlags) -> Wire:
    """A tool as responses take it (WIRE-89). Raises ConstraintRefused."""
    grammar = grammar_of(tool) if flags.supports_open_ai_grammar_tools else None
    if grammar is not None:
        syntax, definition = grammar
        form = {"type": "grammar", "syntax": syntax, "definition": definition}
        return {"type": "custom", "name": tool.name, "description": tool.description, "format": form}
    strict = strict_parameters(tool, is_supported=flags.supports_strict_mode)
    wire: Wire = {"type": "function", "name": tool.name, "description": tool.description}
    wire["parameters"] = tool.parameters if strict is None else strict
    return {**wire, "strict": strict is not None} if flags.supports_strict_mode else wire


def grammars_of(tools: Iterable[ToolDeclaration], flags: ResponsesFlags) -> dict[str, str]:
    """Tools that are called with plain text, to the property that holds it (WIRE-39)."""
    if not flags.supports_open_ai_grammar_tools:
        return {}
    found = {tool.name: grammar_property(tool) for tool in tools}
    return {name: held_by for name, held_by in found.items() if held_by is not None}


def responses_call_id(model: Model) -> CallId:
    """The rule of responses for the ids of foreign calls (WIRE-19b)."""

    def rule(id: str, source: AssistantMessage) -> str:
        if model.provider not in PAIRING_PROVIDERS:
            return sanitised(id)[:ID_MAX]
        head, bar, tail = id.partition("|")
        call_id = sanitised(head)[:ID_MAX].rstrip("_")
        if not bar:
            return call_id
        if (source.provider, source.api) != (model.provider, model.api):
            return f"{call_id}|fc_{short_hash(id)}"
        item_id = sanitised(tail)
        item_id = item_id if item_id.startswith("fc_") else f"fc_{item_id}"
        return f"{call_id}|{item_id[:ID_MAX].rstrip('_')}"

    return rule


def _reasoning_item(signature: str) -> Wire | None:
    """The item that a signature holds; None if it holds something else."""
    try:
        item = loads(signature.encode("utf-8", "surrogatepass"))
    except MalformedJson:
        return None
    return item if isinstance(item, dict) and item.get("type") == "reasoning" else None


def _text_id(signature: str | None) -> tuple[str | None, str | None]:
    """Id and phase that a text's signature holds; a signature of another form is itself the id (WIRE-85)."""
    if not signature or not signature.startswith("{"):
        return signature, None
    try:
        held = loads(signature.encode("utf-8", "surrogatepass"))
    except MalformedJson:
        return signature, None
    if not isinstance(held, dict) or held.get("v") != 1 or not isinstance(held.get("id"), str):
        return signature, None
    phase = held.get("phase")
    return held["id"], phase if isinstance(phase, str) and phase in PHASES else None


def _parts(content: Content) -> list[Wire]:
    """What a user said; blank texts too."""
    if isinstance(content, str):
        return [_text_part(content)]
    done: list[Wire] = []
    for block in content:
        match block:
            case TextBlock():
                done.append(_text_part(block.text))
            case ImageBlock():
                done.append(_image_part(block))
    return done


def _text_part(said: str) -> Wire:
    return {"type": "input_text", "text": said}


def _image_part(image: ImageBlock) -> Wire:
    return {"type": "input_image", "detail": "auto", "image_url": f"data:{image.mime_type};base64,{image.data}"}
