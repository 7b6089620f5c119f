"""The same scenario in other words: texts, tool names, extension names, custom types and call ids, replaced consistently.

Theory of operation. One seeded permutation of the alphabet, kept the same for small and capital
letters, is applied to every word of a scenario that is free, that is, no literal of a protocol.
Letter by letter, so that pieces of a stream still join to their text, and a part that is
searched for still occurs. Lengths stay, and so does everything that is counted.

In a scenario every text is free but for the values of PROTOCOL_KEYS. In a trace a word is free
if it occurs in a free text of the scenario, or in the text its chunks join to: what remains are
the kernel's own words, as in `Tool NAME not found`. Words that are both are LITERALS and stay as
they are on both sides, and so do the words of error texts that decide about a retry.
"""

import json
import random
import re
import string
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

_KEYS: Final = """
ch event at do trigger type role stopReason rawStopReason api provider model modelId previousModel payloadModel payloadRoles
responseId thinkingLevel level previousLevel reason outcome source messageType update scenario get op path action deliverAs
behavior streamingBehavior position mode exposure errorMessage finalError throw status body parameters prepare settings models
compare probe recordOnly recordHeaders parentId targetId fromId firstKeptEntryId messageEntryId toolResultEntryIds leaf
branchTypes malformed timestamp version cwd signalAborted mimeType previousSessionFile targetSessionFile entry summaryEntry
newLeafId oldLeafId sections $ev $arg $var $entry $model format
"""

PROTOCOL_KEYS: Final = frozenset(_KEYS.split())
"""Keys whose values are no free texts."""

_WORDS: Final = """
system user assistant toolResult custom compactionSummary branchSummary bashExecution text thinking toolCall image errorMessage
pending stop length toolUse error aborted deferred completed message custom_message context_edit compaction branch_summary Tool
tool not found ok conflicts with Invalid boundary entries Operation was execution blocked Retry cancelled Context overflow
recovery failed Additional focus true false null undefined none queued handled SYS steer followUp nextTurn
"""

LITERALS: Final = frozenset(_WORDS.split())
"""Words the kernel, the format or the runner itself writes; left alone wherever they occur."""

UNREAD_KEYS: Final = ("name", "topic", "description")
"""Fields of a scenario that only people read."""

NAMED_PARTS: Final = re.compile(r"^(systemPromptOptions\.(?:toolSnippets|toolGuidelines)\.)(.+)$")
"""Paths that contain a tool name."""

BUS_EVENT: Final = re.compile(r"^(\(bus:|events:)(.+?)(\)?)$")
"""Events of records that contain the name of a channel."""

MARK: Final = re.compile(r"(</?[a-z0-9_-]+(?::[^<>]*)?>)")
"""Placeholders and tags."""

WORD: Final = re.compile(r"[A-Za-z0-9]+")

IDENTIFIER: Final = re.compile(r"[es]\d+")
"""What entry and session ids look like in a recorded trace."""

BRIEF_FREE: Final[Mapping[str, tuple[int, ...]]] = {
    "system": (1, 4, 5),
    "user": (1,),
    "toolResult": (1, 2, 4),
    "custom": (1, 2),
    "compactionSummary": (1,),
    "branchSummary": (1,),
    "bashExecution": (1, 2),
}
"""Where brief messages hold free texts; assistant ones hold them in their blocks."""


@attrs.frozen(kw_only=True)
class Renaming:
    """Other words for one scenario and its trace."""

    table: Mapping[int, int]
    """For `str.translate`."""
    kept: frozenset[str]
    """Words that stay."""
    free: frozenset[str]
    """Words of the scenario that are replaced."""

    def scenario(self, scenario: Mapping[str, Any]) -> dict[str, Any]:
        """The scenario in other words."""
        renamed: dict[str, Any] = _walk(scenario, self._anywhere)
        return {**renamed, **{key: scenario[key] for key in UNREAD_KEYS}}

    def trace(self, trace: Mapping[str, Any]) -> dict[str, Any]:
        """The trace of that scenario."""
        renamed: dict[str, Any] = _walk(trace, self._known)
        return renamed

    def _anywhere(self, text: str) -> str:
        return _each_word(text, lambda word: word if self._stays(word) else word.translate(self.table))

    def _known(self, text: str) -> str:
        return _each_word(text, lambda word: word.translate(self.table) if word in self.free else word)

    def _stays(self, word: str) -> bool:
        return word in self.kept or IDENTIFIER.fullmatch(word) is not None


def renaming(scenario: Mapping[str, Any], seed: int) -> Renaming:
    """Other words for this scenario; the same for the same seed."""
    letters = list(string.ascii_lowercase)
    others = _moved(letters, random.Random(seed))
    table = str.maketrans("".join([*letters, *map(str.upper, letters)]), "".join([*others, *map(str.upper, others)]))
    sources = (_decisive_words, _model_words, _section_words, _entry_ids)
    kept = LITERALS.union(*[source(scenario) for source in sources])
    words = {word for text in _free_texts(scenario) for word in WORD.findall(MARK.sub(" ", text))}
    free = frozenset(word for word in words if word not in kept and IDENTIFIER.fullmatch(word) is None)
    return Renaming(table=table, kept=kept, free=free)


def _moved(letters: list[str], chance: random.Random) -> list[str]:
    """A permutation that leaves no letter where it is."""
    others = letters[:]
    while any(one == other for one, other in zip(letters, others)):
        chance.shuffle(others)
    return others


# -- walking -----------------------------------------------------------------------------


def _walk(value: Any, rename: Any) -> Any:
    if isinstance(value, str):
        return rename(value)
    if isinstance(value, list):
        return _brief(value, rename) or [_walk(item, rename) for item in value]
    if isinstance(value, dict):
        return {key: _field(value, key, item, rename) for key, item in value.items()}
    return value


def _field(owner: Mapping[str, Any], key: str, item: Any, rename: Any) -> Any:
    if key == "event" and isinstance(item, str) and (found := BUS_EVENT.match(item)):
        return found[1] + rename(found[2]) + found[3]
    if key == "path" and isinstance(item, str) and (found := NAMED_PARTS.match(item)):
        return found[1] + rename(found[2])
    if key == "sections" and isinstance(item, dict) or key == "sessionFile":
        return _inner(item, rename)
    if key == "delta" and owner.get("update") == "toolcall_delta":
        return json.dumps(_walk(json.loads(item), rename), separators=(",", ":"), ensure_ascii=False)
    if key == "entry" and isinstance(item, dict):
        return _walk(item, rename)
    if key in PROTOCOL_KEYS or (key == "id" and "type" in owner and owner["type"] != "toolCall"):
        return item
    return _walk(item, rename)


def _inner(value: Any, rename: Any) -> Any:
    """Texts of prompt sections; lines of a session file, of which raw ones stay."""
    if isinstance(value, dict):
        return {key: item if item is None else rename(item) for key, item in value.items()}
    return [line if isinstance(line, str) else _walk(line, rename) for line in value]


def _brief(value: list[Any], rename: Any) -> list[Any] | None:
    head = value[0] if value and isinstance(value[0], str) else None
    if head == "assistant" and len(value) > 1:
        return [*value[:2], *[[block[0], *_walk(block[1:], rename)] for block in value[2:]]]
    places = BRIEF_FREE.get(head or "")
    if places is None or len(value) <= max(places):
        return None
    return [_walk(item, rename) if index in places else item for index, item in enumerate(value)]


def _each_word(text: str, rename: Any) -> str:
    parts = MARK.split(text)
    return "".join([part if index % 2 else WORD.sub(lambda found: rename(found[0]), part) for index, part in enumerate(parts)])


# -- collecting --------------------------------------------------------------------------


def _free_texts(scenario: Mapping[str, Any]) -> list[str]:
    texts: list[str] = []

    def collect(text: str) -> str:
        texts.append(text)
        return text

    _walk({key: value for key, value in scenario.items() if key not in UNREAD_KEYS}, collect)
    for block in _objects(scenario):
        if isinstance(block.get("chunks"), list):
            texts.extend(_joined(block["chunks"]))
    return texts


def _joined(chunks: list[Any]) -> Iterable[str]:
    """What the chunks join to, so far and at last."""
    text = ""
    for chunk in chunks:
        piece = chunk.get("content") if isinstance(chunk, dict) else chunk
        text += piece if isinstance(piece, str) else ""
        yield text


def _objects(value: Any) -> Iterable[Mapping[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(item)


def _decisive_words(scenario: Mapping[str, Any]) -> Iterable[str]:
    """Words of error texts, which decide whether a request is tried again."""
    for each in _objects(scenario):
        for key in ("throw", "errorMessage"):
            if isinstance(each.get(key), str):
                yield from WORD.findall(each[key])
        if "body" in each:
            yield from WORD.findall(json.dumps(each["body"]))


def _model_words(scenario: Mapping[str, Any]) -> Iterable[str]:
    for model in scenario.get("models") or [{"id": "m1"}]:
        yield from WORD.findall(model["id"])
    for extension in scenario.get("extensions") or ():
        for model in extension.get("virtualModels") or ():
            yield from WORD.findall(f"{model['provider']} {model['id']}")
    yield from ("scripted", "local")


def _section_words(scenario: Mapping[str, Any]) -> Iterable[str]:
    """Names of custom prompt sections."""
    for each in _objects(scenario):
        path = each.get("path")
        if isinstance(path, str) and path.startswith("systemPromptOptions.sections."):
            yield from WORD.findall(path.rpartition(".")[2])


def _entry_ids(scenario: Mapping[str, Any]) -> Iterable[str]:
    """Ids of a given session file: the comparison takes a text that equals one for the id."""
    for line in scenario.get("sessionFile") or ():
        if isinstance(line, dict):
            yield str(line.get("id"))
