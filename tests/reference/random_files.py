"""Session files by chance, from a seed: every kind of entry, parents anywhere before or missing, references that lead nowhere.

Values have the types the format gives them, and no parent comes later: what a file does that breaks these rules is not the
same in both programs, on purpose.
"""

import json
from collections.abc import Callable
from random import Random
from typing import Any, Final

import attrs

from tests.reference.histories import ABORTED, ANSWER, BASH, DONE, RESULT, USAGE, USER

ENTRIES_MAX: Final = 30
"""Enough for several branches with several compactions."""

SYSTEMS: Final = (
    {"content": "whole", "replace": True},
    {"content": "", "sections": {"a": "A", "b": "B"}, "toolsAdded": [{"name": "t", "description": "d", "parameters": {}}]},
    {"content": "", "sections": {"a": None, "c": "C"}, "toolsRemoved": ["t"]},
)
OTHERS: Final = (
    {"role": "custom", "customType": "x", "content": "c", "display": True, "timestamp": 1},
    {"role": "branchSummary", "summary": "s", "fromId": "x", "timestamp": 1},
    {"role": "compactionSummary", "summary": "s", "tokensBefore": 1, "timestamp": 1},
    {"role": "oracle", "content": 1},
)
MESSAGES: Final = (USER, ANSWER, RESULT, DONE, ABORTED, BASH, *[{"role": "system", **each, "timestamp": 1} for each in SYSTEMS], *OTHERS)
REPLACEMENTS: Final[tuple[Any, ...]] = (None, {"content": "new"}, {"content": [{"type": "text", "text": "n"}]}, {"content": []})
TEXTS: Final = ("", "hi", "two\nlines", " spaced ", "“é😀")
NOISE: Final = ("", "{bad", "null", "   ")
"""Lines that are none."""

Fields = dict[str, Any]


def random_file(seed: int, cwd: str) -> bytes:
    """A file of the current version."""
    random = Random(seed)
    header = {"type": "session", "version": 3, "id": f"s{seed}", "timestamp": "2026-03-01T09:00:00.000Z", "cwd": cwd}
    lines, ids = [json.dumps(header)], list[str]()
    for number in range(random.randint(1, ENTRIES_MAX)):
        lines.append(json.dumps(_entry(random, f"{number:08x}", ids), ensure_ascii=random.random() < 0.5))
        if random.random() < 0.05:
            lines.append(random.choice(NOISE))
    return "\n".join(lines).encode() + random.choice([b"\n", b""])


def random_old_file(seed: int, cwd: str) -> bytes:
    """A file of the first version: entries without ids and parents, compactions that keep from an index."""
    random = Random(-seed)
    header = {"type": "session", "id": f"s{seed}", "timestamp": "2026-03-01T09:00:00.000Z", "cwd": cwd}
    lines, ids = [json.dumps(header)], list[str]()
    for number in range(random.randint(1, ENTRIES_MAX)):
        fields = _entry(random, f"{number:08x}", ids)
        del fields["id"], fields["parentId"]
        if "firstKeptEntryId" in fields:
            fields["firstKeptEntryIndex"] = random.randint(0, ENTRIES_MAX)
            del fields["firstKeptEntryId"]
        lines.append(json.dumps(fields))
    return "\n".join(lines).encode() + b"\n"


def _entry(random: Random, entry_id: str, ids: list[str]) -> Fields:
    """An entry behind those with `ids`, to which it is added."""
    kind = random.choice(["message"] * 8 + [*KINDS])
    when = f"2026-03-01T09:{random.randrange(60):02d}:{random.randrange(60):02d}.000Z"
    fields: Fields = {"type": kind, "id": entry_id, "parentId": _parent(random, ids), "timestamp": when}
    fields |= {"message": random.choice(MESSAGES)} if kind == "message" else KINDS[kind](random, _targets(random, ids, entry_id))
    ids.append(entry_id)
    return fields


def _parent(random: Random, ids: list[str]) -> str | None:
    if ids and random.random() < 0.9:
        return ids[-1] if random.random() < 0.8 else random.choice(ids)
    return random.choice([None, None, "missing"])


@attrs.frozen
class _Targets:
    """Ids an entry may refer to."""

    earlier: str
    kept: str
    """That one, or its own."""


def _targets(random: Random, ids: list[str], own: str) -> _Targets:
    earlier = random.choice(ids) if ids and random.random() < 0.9 else "nowhere"
    return _Targets(earlier, random.choice([earlier, own]))


def _compaction(random: Random, to: _Targets) -> Fields:
    checkpoint = {"systemMessage": {"role": "system", "content": "", "sections": {"a": "Z"}, "timestamp": 9}}
    kept = {"summary": random.choice(TEXTS), "firstKeptEntryId": to.kept, "tokensBefore": 5}
    return {**kept, **random.choice([checkpoint, {}])}


def _custom_message(random: Random, _to: _Targets) -> Fields:
    return {"customType": "c", "content": random.choice(["x", [{"type": "text", "text": "y"}]]), "display": random.random() < 0.5}


KINDS: Final[dict[str, Callable[[Random, _Targets], Fields]]] = {
    "model_change": lambda random, _: {"provider": random.choice("pq"), "modelId": "m"},
    "thinking_level_change": lambda random, _: {"thinkingLevel": random.choice(["off", "high", "odd"])},
    "compaction": _compaction,
    "custom": lambda random, _: {"customType": "c", "data": random.choice([None, 1, {"a": [1]}])},
    "custom_message": _custom_message,
    "context_edit": lambda random, to: {"targetId": to.earlier, "replacement": random.choice(REPLACEMENTS)},
    "label": lambda random, to: {"targetId": to.earlier, **random.choice([{}, {"label": ""}, {"label": "a"}, {"label": "b"}])},
    "session_info": lambda random, _: {"name": random.choice(TEXTS)},
    "branch_summary": lambda random, to: {"fromId": to.earlier, "summary": random.choice(TEXTS)},
    "usage": lambda _random, _: {"kind": "cache_warm", "provider": "p", "model": "m", "usage": USAGE},
    "kind_of_a_later_version": lambda _random, _: {"something": {"else": None}},
}
