"""The input notation of vector cases: objects that stand for long texts and lists (VECTORS.md section 2)."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final


def expand(value: Any) -> Any:
    """`value` with every notation object replaced by what it stands for; they may be nested."""
    if isinstance(value, list):
        return [expand(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    for mark, meaning in _NOTATION.items():
        if mark in value:
            return meaning(value)
    return {key: expand(item) for key, item in value.items()}


def replaced(value: Any, pairs: Mapping[str, str]) -> Any:
    """`value` in which every text, keys included, has each key of `pairs` replaced by its value, in the given order."""
    if isinstance(value, str):
        for old, new in pairs.items():
            value = value.replace(old, new)
        return value
    if isinstance(value, (list, tuple)):
        return [replaced(item, pairs) for item in value]
    if isinstance(value, Mapping):
        return {replaced(key, pairs): replaced(item, pairs) for key, item in value.items()}
    return value


def _repeat(value: Mapping[str, Any]) -> Any:
    return expand(value["$repeat"]) * value["n"]


def _concat(value: Mapping[str, Any]) -> Any:
    return "".join([expand(part) for part in value["$concat"]])


def _count(value: Mapping[str, Any]) -> Any:
    first, last = value["$count"]
    return "".join([value["format"].replace("{}", str(number)) for number in range(first, last + 1)])


def _list(value: Mapping[str, Any]) -> Any:
    first, last = value["$list"]
    item = json.dumps(value["item"])
    return [expand(json.loads(item.replace("{i}", str(number)))) for number in range(first, last + 1)]


_NOTATION: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    "$repeat": _repeat,
    "$concat": _concat,
    "$count": _count,
    "$list": _list,
}
