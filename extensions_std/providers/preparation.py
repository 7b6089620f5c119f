"""From any list of messages to one that a model accepts: the steps that all wire APIs share.

Theory of operation. A `Preparation` takes messages one by one and gives back those that are settled:
nothing that comes later can change them. So a longer list costs only its new messages, and what was
made of the old ones can be kept. `tail()` gives what must be added if the list ended here, without
changing anything.

It is total: whatever a branch holds (turns that failed, calls nobody answered, answers nobody asked
for, calls of other models, unknown blocks), what comes out keeps these promises:

    every tool call is followed by exactly one result, before anything else comes (WIRE-19)
    no result of a call that is not sent (WIRE-19a), and no second one; no two calls of one message share an id,
    for an API that wants it so, no two calls at all
    no result of a call that never was, unless the API is sent those
    no failed or aborted answer (WIRE-18); no thinking of another model (WIRE-16)
    no image for a model that takes none (WIRE-14)
    a system message that stays in place never stands between a call and its result (WIRE-11)

Input messages are never changed. Lone surrogates are left to the encoder (`clean`), which sees every text;
only in ids and names they are cut out here, because two that differ in them alone would become one.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs

from camshaft.actors.api import (
    FAILED,
    AssistantMessage,
    Block,
    Content,
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
    dumps,
    encode,
    joined_halves,
    text_of,
)

NO_RESULT: Final = "No result provided"
"""Text of the result that is made up for a call without one (WIRE-19)."""

NO_IMAGES: Final = "(image omitted: model does not support images)"
NO_TOOL_IMAGES: Final = "(tool image omitted: model does not support images)"

CallId = Callable[[str, AssistantMessage], str]
"""The target's rule for the id of a foreign call, and the message it stands in (WIRE-19b)."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_MAYBE_SURROGATE: Final = b"\\ud"


# -- system messages (WIRE-10, CTX-19 to CTX-23) ------------------------------------------


@attrs.define
class PromptReplay:
    """System messages replayed into one: texts, sections, tools. Add them in order."""

    texts: list[str] = attrs.field(factory=list)
    sections: dict[str, str] = attrs.field(factory=dict)
    tools: dict[str, ToolDeclaration] = attrs.field(factory=dict)

    def add(self, message: SystemMessage) -> None:
        """Replays one more message; one with `replace` starts anew (CTX-21)."""
        if message.replace:
            self.texts, self.sections, self.tools = [], {}, {}
        said = text_of(message.content)
        if said:
            self.texts.append(said)
        for name, section in (message.sections or {}).items():
            if section is None:
                self.sections.pop(name, None)
            elif isinstance(section, str):
                self.sections[name] = section
        for gone in message.tools_removed or ():
            self.tools.pop(gone.name, None)
        for tool in message.tools_added or ():
            self.tools[tool.name] = tool

    @property
    def text(self) -> str:
        """The rendered prompt."""
        return "\n\n".join([*self.texts, *[section for section in self.sections.values() if section]])


def in_place_text(message: SystemMessage) -> str:
    """A later system message as the model reads it where it stands (WIRE-11)."""
    parts = [text_of(message.content)]
    for name, section in (message.sections or {}).items():
        if section is None:
            parts.append(f'Removed system prompt section "{name}".')
        elif isinstance(section, str) and section:
            parts.append(f'Updated system prompt section "{name}":\n\n{section}')
    return "\n\n".join([part for part in parts if part])


# -- messages ----------------------------------------------------------------------------


@attrs.define
class _Open:
    """A call that waits for its result."""

    original: str
    sent: str
    """Its id in the request."""
    name: str
    """That of its tool in the request."""


@attrs.define
class Preparation:
    """See the header."""

    _model: Model
    _call_id: CallId
    _keeps_system: bool = False
    """Whether system messages given to `add` stay in place; otherwise they are dropped here and replayed elsewhere."""
    _keeps_strays: bool = False
    """Whether a result stays whose call was never seen; otherwise it is dropped."""
    _are_ids_once: bool = False
    """Whether no two calls of the whole transcript may share an id; otherwise no two of one message."""
    _sent: set[str] = attrs.field(factory=set)
    """Ids that calls were sent with, if they have to differ."""
    _calls: set[str] = attrs.field(factory=set)
    """Ids of all calls seen, as they stood in their messages."""
    _open: list[_Open] = attrs.field(factory=list)
    _held: list[SystemMessage] = attrs.field(factory=list)
    """Wait for the results of the open calls."""

    def add(self, message: ModelMessage) -> list[ModelMessage]:
        """The messages that are settled now."""
        match message:
            case AssistantMessage():
                return self._assistant(message)
            case ToolResultMessage():
                return self._result(message)
            case UserMessage():
                return [*self._closed(), self._user(message)]
            case SystemMessage() if self._keeps_system:
                if self._open:
                    self._held.append(message)
                    return []
                return [message]
        return []

    def tail(self) -> list[ModelMessage]:
        """What is missing if nothing follows. Changes nothing."""
        return [*map(_no_result, self._open), *self._held]

    def _closed(self) -> list[ModelMessage]:
        done = self.tail()
        self._open, self._held = [], []
        return done

    def _assistant(self, message: AssistantMessage) -> list[ModelMessage]:
        self._calls.update([call.id for call in message.tool_calls])
        if message.stop_reason in FAILED:
            return []
        before = self._closed()
        is_own = (message.provider, message.api, message.model) == (self._model.provider, self._model.api, self._model.id)
        content = tuple(self._blocks(message, is_own=is_own))
        return [*before, attrs.evolve(message, content=content)]

    def _blocks(self, message: AssistantMessage, *, is_own: bool) -> Iterator[Block]:
        for block in message.content:
            match block:
                case ThinkingBlock():
                    if is_own and (block.redacted or block.thinking_signature or block.thinking.strip()):
                        yield block
                case TextBlock():
                    yield block if is_own or block.text_signature is None else attrs.evolve(block, text_signature=None)
                case ToolCall():
                    sent = self._unique(clean(block.id if is_own else self._call_id(block.id, message)) or NAMELESS)
                    name = (clean(block.name) if is_own else sanitised(clean(block.name))[:NAME_MAX]) or NAMELESS
                    self._open.append(_Open(block.id, sent, name))
                    signature = block.thought_signature if is_own else None
                    yield attrs.evolve(block, id=sent, name=name, thought_signature=signature)

    def _unique(self, wanted: str) -> str:
        taken = self._sent if self._are_ids_once else {call.sent for call in self._open}
        id, number = wanted, 1
        while id in taken:
            number += 1
            suffix = f"_{number}"
            id = wanted[: ID_MAX - len(suffix)] + suffix
        if self._are_ids_once:
            self._sent.add(id)
        return id

    def _result(self, message: ToolResultMessage) -> list[ModelMessage]:
        """The answer to an open call; anything else answers a call that is not sent, is answered already, or never was."""
        content = message.content if "image" in self._model.input else _without_images(message.content, NO_TOOL_IMAGES)
        call = next((call for call in self._open if call.original == message.tool_call_id), None)
        if call is None:
            is_stray = message.tool_call_id not in self._calls
            return [attrs.evolve(message, content=content)] if is_stray and self._keeps_strays else []
        self._open.remove(call)
        done: list[ModelMessage] = [attrs.evolve(message, tool_call_id=call.sent, tool_name=call.name, content=content)]
        if not self._open:
            done += self._held
            self._held = []
        return done

    def _user(self, message: UserMessage) -> UserMessage:
        if isinstance(message.content, str) or "image" in self._model.input:
            return message
        return attrs.evolve(message, content=_without_images(message.content, NO_IMAGES))


def _no_result(call: _Open) -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=call.sent, tool_name=call.name, content=(TextBlock(text=NO_RESULT),), is_error=True, timestamp=0)


def _without_images(content: Content, placeholder: str) -> tuple[Block, ...]:
    """A run of images becomes one text."""
    done: list[Block] = []
    after_image = False
    for block in content:
        is_image = isinstance(block, ImageBlock)
        if not is_image:
            done.append(block)  # type: ignore[arg-type]  # the caller has ruled out a plain text
        elif not after_image:
            done.append(TextBlock(text=placeholder))
        after_image = is_image
    return tuple(done)


# -- ids (WIRE-19b) ----------------------------------------------------------------------

ID_MAX: Final = 40
"""Longest tool-call id that OpenAI's chat completions take; an id that is made different gets no longer for any API."""
ANTHROPIC_ID_MAX: Final = 64
HASH_LENGTH: Final = 8

NAME_MAX: Final = 64
"""Longest name of a tool that every API takes."""

NAMELESS: Final = "_"
"""Stands where a call has no id or no name, which no API takes."""


def completions_call_id(provider: str) -> CallId:
    """The rule of chat completions for the ids of foreign calls."""

    def rule(id: str, _source: AssistantMessage) -> str:
        if "|" in id:
            joined = sanitised(id)
            if len(joined) <= ID_MAX:
                return joined
            head = sanitised(id.partition("|")[0])[: ID_MAX - HASH_LENGTH - 1]
            return f"{head}_{short_hash(id)}"
        return id[:ID_MAX] if provider == "openai" else id

    return rule


def anthropic_call_id(id: str, _source: AssistantMessage) -> str:
    """The rule of the Anthropic API for the ids of foreign calls."""
    return sanitised(id)[:ANTHROPIC_ID_MAX]


def short_hash(text: str) -> str:
    """Eight of `[a-z0-9]`, the same for the same text."""
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    done = ""
    for _ in range(HASH_LENGTH):
        number, digit = divmod(number, len(digits))
        done += digits[digit]
    return done


def sanitised(id: str) -> str:
    """`id` in the characters that every API takes in ids."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", id)


# -- encoding (WIRE-12) ------------------------------------------------------------------


def clean(value: Json) -> Any:
    """`value` without lone surrogates in any text or key; split pairs are joined."""
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATE.sub("", joined_halves(value))
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(item) for item in value]
    return value


def encoded(value: Json) -> bytes:
    """Compact JSON, valid UTF-8 without lone surrogates. Clean input is encoded once."""
    done = dumps(value)
    if _MAYBE_SURROGATE in done:
        return dumps(clean(encode(value)))
    return done
