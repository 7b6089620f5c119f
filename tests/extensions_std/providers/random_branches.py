"""Random branches of session files: sound, damaged and foreign ones, from a seed.

A branch is made as lines of a file and read as files are, so that what decoding and the projection do
to odd content is part of what is tried. `count` tells what a model gets to see of it, so that a generator
that stopped making trouble is noticed.
"""

import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import attrs

from camshaft.kernel.codec import decode_entry, dumps
from camshaft.kernel.messages import (
    FAILED,
    AssistantMessage,
    ImageBlock,
    ModelMessage,
    OpaqueBlock,
    SystemMessage,
    ThinkingBlock,
    ToolResultMessage,
)
from camshaft.kernel.projection import project
from camshaft.kernel.tree import tree_of

Held = Counter[str]
"""Kind of trouble to how often it occurred."""

SOUND: Final = re.compile("[A-Za-z0-9_-]{1,64}")
"""Ids and names that every API takes."""
HALF: Final = re.compile(rb"\\ud[89a-f][0-9a-f]{2}")
"""Half a character in JSON as we write it: whole ones are written as they are."""
TIME: Final = "2026-03-01T09:00:00.000Z"
LONE: Final = ("a\ud800", "\udc00b", "\ud83d \ude00", "x\udfff\ud800y")
"""Texts with halves of characters that have no other half."""
TEXTS: Final = (
    *("ok", "two words", "line\nline", "Gr\u00f6\u00dfe \u65e5\u672c", "\ud83d\ude00", "a\u2028b", "\x00\x1b[0m"),
    *("", " ", "\n\t", "\u00a0"),
)
KEYS: Final = ("path", "n", "", "sp ace", "a\udc00", "\u00fc")
NAMES: Final = ("read", "bash", "edit", "mcp-x_y", "a" * 64)
ODD_NAMES: Final = ("", "two words", "server.tool", "functions.read:0", "re\ud800ad", "\ud800", "l\u00f6schen", "b" * 90)
SOUND_IDS: Final = ("call_1", "call_2", "toolu_01A", "a", "b")
PIPED_IDS: Final = (
    "call_1|fc_1",
    "call_2|fc_1",
    "call_3|",
    "call_4|ctc_9",
    "call_5|rs_1",
    "call_1_|" + "fc_" + "z" * 90,
    "x" * 80 + "|fc_2",
)
ODD_IDS: Final = (*PIPED_IDS, "", "x" * 50, "y" * 100, "weird id:1/2", "a|b|c", "\ud800", "|", "call_1_", "functions.read:0", "\u00fc")
ITEMS: Final = (
    '{"type":"reasoning","id":"rs_1","summary":[]}',
    '{"type":"reasoning","id":"rs_2","summary":[{"type":"summary_text","text":"t"}],"encrypted_content":"e"}',
    '{"type":"reasoning","summary":[],"encrypted_content":"e"}',
    '{"type":"message","id":"msg_1"}',
    '{"id":3}',
)
SIGNATURES: Final = (
    *ITEMS,
    None,
    None,
    "",
    " ",
    "sig",
    "reasoning_content",
    "reasoning",
    "[",
    "[1]",
    "{}",
    "1",
    "null",
    "s\ud800",
    '[{"type":"reasoning.text","text":"t"}]',
)
TEXT_SIGNATURES: Final = (
    None,
    None,
    "",
    "msg_1",
    "m" * 90,
    '{"v":1,"id":"msg_2"}',
    '{"v":1,"id":"msg_2","phase":"commentary"}',
    '{"v":1,"id":5}',
    '{"v":1',
    "\ud800",
)
STOPS: Final = ("stop", "stop", "toolUse", "toolUse", "length", "error", "error", "aborted", "pending", "deferred", "strange")
SCHEMAS: Final[tuple[dict[str, Any], ...]] = (
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    {"type": "object"},
    {},
    {"anyOf": [{"type": "object"}], "description": "a\ud800"},
    {"type": "object", "properties": {"\ud800k": {"type": ["string", "null"]}}, "additionalProperties": False},
)
SAMPLINGS: Final = (None, None, None, False, {"type": "json_schema", "strict": "prefer"}, {"type": "strange"}, 7)
GRAMMAR: Final[dict[str, Any]] = {"type": "grammar", "variants": {"openai_lark": 'start: "x"'}}


@attrs.frozen
class Origin:
    """Which model an answer came from."""

    provider: str
    api: str
    model: str


ELSEWHERE: Final = (
    Origin("anthropic", "anthropic-messages", "claude-other"),
    Origin("openai", "openai-responses", "gpt-other"),
    Origin("local", "openai-completions", "llama"),
    Origin("acme", "acme-api", "x"),
)


@attrs.define
class Maker:
    """Makes branches for requests to `own`, the model that will be asked."""

    _random: random.Random
    own: Origin
    _open: list[str] = attrs.field(factory=list)
    """Ids of calls without a result so far."""

    def lines(self) -> list[dict[str, Any]]:
        """A branch as the lines of a file, from the root to the leaf; a person's words are among them."""
        count = self._random.randint(1, 16)
        bodies = [self._body(number) for number in range(count)]
        place = len(bodies) if self._random.random() < 0.7 else self._random.randint(0, len(bodies))
        bodies.insert(place, _said({"role": "user", "content": "go", "timestamp": 1}))
        parents = [None, *[f"e{number}" for number in range(count)]]
        return [{**body, "id": f"e{number}", "parentId": parents[number], "timestamp": TIME} for number, body in enumerate(bodies)]

    def _body(self, number: int) -> dict[str, Any]:
        chance = self._random.random()
        if self._open and chance < 0.45:
            return self._result(self._open.pop(self._random.choice((0, 0, -1))))
        if chance < 0.65:
            return self._assistant()
        if chance < 0.78:
            return _said({"role": "user", "content": self._content(), "timestamp": number})
        if chance < 0.88:
            return self._system()
        return self._other(number)

    # answers and results

    def _assistant(self) -> dict[str, Any]:
        pick = self._random.choice
        origin = self.own if self._random.random() < 0.5 else pick(ELSEWHERE)
        if origin != self.own and self._random.random() < 0.3:
            origin = attrs.evolve(self.own, model="sibling")
        stop = pick(STOPS)
        blocks = [self._answer_block(is_own=origin == self.own) for _ in range(pick((0, 1, 1, 2, 3, 5)))]
        content: Any = pick((None, "a text", *[blocks] * 20))
        message = {"role": "assistant", "content": content, "api": origin.api, "provider": origin.provider, "model": origin.model}
        if stop not in ("error", "aborted") and isinstance(content, list):
            calls = [block["id"] for block in content if block["type"] == "toolCall"]
            self._open += calls
        return _said({**message, "stopReason": stop, "timestamp": 2, "usage": {"input": 1, "output": 1, "totalTokens": 2}})

    def _answer_block(self, *, is_own: bool) -> dict[str, Any]:
        pick = self._random.choice
        match pick(("text", "text", "thinking", "thinking", "toolCall", "toolCall", "toolCall", "toolCall", "image", "other")):
            case "text":
                return {"type": "text", "text": self._text(), "textSignature": pick(TEXT_SIGNATURES)}
            case "thinking":
                return {
                    "type": "thinking",
                    "thinking": self._text(),
                    "thinkingSignature": pick(SIGNATURES),
                    "redacted": pick((None, None, True)),
                }
            case "toolCall":
                id = self._id(is_own=is_own)
                arguments = pick(({}, {pick(KEYS): self._text()}, {pick(KEYS): [{pick(KEYS): self._text()}, 1.5, None]}))
                return {
                    "type": "toolCall",
                    "id": id,
                    "name": self._name(is_own=is_own),
                    "arguments": arguments,
                    "thoughtSignature": pick((None, "t")),
                }
            case "image":
                return self._image()
        return self._odd_block()

    def _id(self, *, is_own: bool) -> str:
        """Odd ids only where another model made them: own ones are sent as they are (WIRE-17)."""
        ids: list[str] = [*SOUND_IDS * 3, *ODD_IDS, *ODD_IDS]
        if is_own:
            sound = PIPED_IDS if self.own.api == "openai-responses" else SOUND_IDS
            ids = [*sound[:3] * 3, *sound, f"call_{self._random.randint(10, 10_000)}"]
        return self._random.choice(ids)

    def _name(self, *, is_own: bool) -> str:
        """Odd names too only where another model called; a name may be missing anywhere."""
        if self._random.random() < 0.8:
            return self._random.choice(NAMES)
        names: tuple[str, ...] = ("", "\ud800", "re\ud800ad") if is_own else ODD_NAMES
        return self._random.choice(names)

    def _result(self, call_id: str) -> dict[str, Any]:
        chance = self._random.random()
        if chance < 0.25:
            call_id = self._random.choice([*SOUND_IDS, *ODD_IDS])
        elif chance < 0.45:
            self._open.insert(0, call_id)
        is_error = self._random.random() < 0.3
        content = self._random.choice((None, *[[self._user_block() for _ in range(self._random.choice((0, 1, 1, 2, 4)))]] * 12))
        return _said(
            {
                "role": "toolResult",
                "toolCallId": call_id,
                "toolName": self._name(is_own=False),
                "content": content,
                "isError": is_error,
                "timestamp": 3,
            }
        )

    # what people, extensions and the prompt say

    def _content(self) -> Any:
        blocks = [self._user_block() for _ in range(self._random.choice((0, 1, 1, 2, 4)))]
        return self._random.choice((None, self._text(), *[blocks] * 6))

    def _user_block(self) -> dict[str, Any]:
        match self._random.choice(("text", "text", "text", "image", "image", "thinking", "toolCall", "other")):
            case "text":
                return {"type": "text", "text": self._text()}
            case "image":
                return self._image()
            case "thinking":
                return {"type": "thinking", "thinking": self._text(), "thinkingSignature": "s"}
            case "toolCall":
                return {"type": "toolCall", "id": "stray", "name": "read", "arguments": {}}
        return self._odd_block()

    def _image(self) -> dict[str, Any]:
        return {"type": "image", "data": "aW1n", "mimeType": self._random.choice(("image/png", "image/jpeg", "image/png", "image/bmp"))}

    def _odd_block(self) -> dict[str, Any]:
        return {"type": self._random.choice(("audio", "server_tool", "\ud800")), "data": self._text()}

    def _system(self) -> dict[str, Any]:
        pick = self._random.choice
        content = pick((None, "", self._text(), [{"type": "text", "text": self._text()}]))
        message: dict[str, Any] = {"role": "system", "content": content, "timestamp": 0}
        if self._random.random() < 0.5:
            message["sections"] = {pick(("rules", "cwd", "s\ud800")): pick((None, self._text(), "a rule")) for _ in range(2)}
        if self._random.random() < 0.6:
            message["toolsAdded"] = [self._tool(name) for name in self._random.sample(NAMES, self._random.randint(0, 3))]
        if self._random.random() < 0.3:
            message["toolsRemoved"] = [{"name": pick(NAMES)}]
        if self._random.random() < 0.2:
            message["replace"] = True
        return _said(message)

    def _tool(self, name: str) -> dict[str, Any]:
        pick = self._random.choice
        if self._random.random() < 0.1:
            return {"name": name, "description": "d", "parameters": SCHEMAS[0], "constrainedSampling": GRAMMAR}
        return {"name": name, "description": self._text(), "parameters": pick(SCHEMAS), "constrainedSampling": pick(SAMPLINGS)}

    def _other(self, number: int) -> dict[str, Any]:
        """Entries and roles that only the projection makes messages of, and damaged ones."""
        pick = self._random.choice
        target = f"e{self._random.randint(0, max(0, number - 1))}"
        return pick(
            (
                _said(
                    {
                        "role": "bashExecution",
                        "command": self._text(),
                        "output": self._text(),
                        "cancelled": pick((True, False)),
                        "truncated": False,
                        "timestamp": 1,
                    }
                ),
                _said({"role": "custom", "customType": "x", "content": self._content(), "timestamp": 1}),
                _said({"role": "strange", "content": 5}),
                _said({"role": "user", "content": 5, "timestamp": 1}),
                {"type": "custom_message", "customType": "x", "content": self._content(), "display": True},
                {"type": "branch_summary", "fromId": target, "summary": self._text()},
                {"type": "compaction", "summary": self._text(), "firstKeptEntryId": pick((target, "unknown")), "tokensBefore": 5},
                {"type": "context_edit", "targetId": target, "replacement": pick((None, {"content": self._content() or "edited"}))},
                {"type": "model_change", "provider": "acme", "modelId": "x"},
                {"type": "mystery"},
            )
        )

    def _text(self) -> str:
        if self._random.random() < 0.15:
            return self._random.choice(LONE)
        return self._random.choice(TEXTS)


def messages_of(lines: Sequence[dict[str, Any]]) -> list[ModelMessage]:
    """What a model gets to see of the branch: lines read as those of a file, then projected."""
    entries = [decode_entry(line) for line in lines]
    return list(project(tree_of(entries=entries), len(entries) - 1).llm_messages) if entries else []


def count(messages: Sequence[ModelMessage], own: Origin, held: Held) -> None:
    """Counts the kinds of trouble in what a model gets to see of a branch."""
    answers = [message for message in messages if isinstance(message, AssistantMessage)]
    results = Counter([message.tool_call_id for message in messages if isinstance(message, ToolResultMessage)])
    calls = [call for message in answers for call in message.tool_calls]
    blocks = [block for message in messages if not isinstance(message.content, str) for block in message.content]
    ids = Counter([call.id for call in calls])
    held["orphan calls"] += (ids - results).total()
    held["orphan results"] += (results - ids).total()
    held["failed answers"] += sum([message.stop_reason in FAILED for message in answers])
    held["foreign answers"] += sum(
        [(message.provider, message.api, message.model) != (own.provider, own.api, own.model) for message in answers]
    )
    held["images"] += sum([isinstance(block, ImageBlock) for block in blocks])
    held["thinking"] += sum([isinstance(block, ThinkingBlock) for block in blocks])
    held["unknown blocks"] += sum([isinstance(block, OpaqueBlock) for block in blocks])
    held["odd ids"] += sum([SOUND.fullmatch(call.id) is None for call in calls])
    held["odd names"] += sum([SOUND.fullmatch(call.name) is None for call in calls])
    held["repeated ids"] += ids.total() - len(ids)
    held["system messages"] += sum([isinstance(message, SystemMessage) for message in messages])
    held["half characters"] += sum([HALF.search(dumps(message)) is not None for message in messages])


def _said(message: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "message": message}
