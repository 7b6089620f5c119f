"""What a script file may hold, as tables, and everything that is wrong with one (FAUX-27).

A fault names the place, as `steps[2].content[0].name`, what is expected, and the value. Keys that are not known are
faults too: a script with a misspelt key would be played without what was meant.
"""

import difflib
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from camshaft.actors.api import THINKING_LEVELS, Json
from camshaft.extensions_std.providers.scripted_messages import STOP_REASONS

SHOWN_MAX: Final = 80
"""Characters of a value that a fault shows."""


@attrs.frozen(kw_only=True)
class Kind:
    """What may stand at a place."""

    expected: str
    check: Callable[[Any], bool]
    fields: "Mapping[str, Kind] | None" = None
    """Of an object with known keys; a key that ends in `!` must be there."""
    items: "Kind | None" = None
    """Of a list."""
    variants: "Mapping[str, Mapping[str, Kind]] | None" = None
    """Of an object whose `type` says which keys it has."""
    choose: "Callable[[Any], Kind] | None" = None
    """Which kind a value is to be judged as."""


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _object(fields: "Mapping[str, Kind]") -> Kind:
    return Kind(expected="an object", check=lambda value: isinstance(value, dict), fields=fields)


def _list(items: Kind) -> Kind:
    return Kind(expected="a list", check=lambda value: isinstance(value, list), items=items)


def _one_of(*values: str) -> Kind:
    return Kind(expected=f"one of {', '.join(values)}", check=lambda value: value in values)


TEXT: Final = Kind(expected="a text", check=lambda value: isinstance(value, str))
NAME: Final = Kind(expected="a non-empty text", check=lambda value: isinstance(value, str) and value != "")
BOOL: Final = Kind(expected="true or false", check=lambda value: isinstance(value, bool))
NUMBER: Final = Kind(expected="a number of at least 0", check=_number)
COUNT: Final = Kind(expected="a whole number of at least 0", check=_count)
ABOVE: Final = Kind(expected="a number above 0", check=lambda value: _number(value) and value > 0)
STATUS: Final = Kind(expected="an HTTP status, 100 to 599", check=lambda value: _count(value) and 100 <= value <= 599)
ANY: Final = Kind(expected="any value", check=lambda _value: True)
OBJECT: Final = Kind(expected="an object", check=lambda value: isinstance(value, dict))
TEXTS: Final = _list(TEXT)
HEADERS: Final = Kind(
    expected="an object of texts", check=lambda value: isinstance(value, dict) and all(isinstance(each, str) for each in value.values())
)

COST: Final = _object(dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "total"), NUMBER))
USAGE: Final = _object({**dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "reasoning", "totalTokens"), COUNT), "cost": COST})

# -- messages ----------------------------------------------------------------------------

BLOCKS: Final[Mapping[str, Mapping[str, Kind]]] = {
    "text": {"text!": TEXT},
    "thinking": {"thinking!": TEXT, "signature": TEXT},
    "toolCall": {"name!": NAME, "arguments": OBJECT, "id": TEXT},
}
BLOCK: Final = Kind(expected="a text or an object", check=lambda value: isinstance(value, str | dict), variants=BLOCKS)
CONTENT: Final = Kind(expected="a text or a list of blocks", check=lambda value: isinstance(value, str | list), items=BLOCK)

MESSAGE: Final[Mapping[str, Kind]] = {
    "content": CONTENT,
    "stopReason": _one_of(*STOP_REASONS),
    "errorMessage": NAME,
    "usage": USAGE,
    "responseId": TEXT,
    "responseModel": TEXT,
    "rawStopReason": TEXT,
    "diagnostics": _list(OBJECT),
    "deferred": OBJECT,
    "timestamp": COUNT,
}

# -- actions -----------------------------------------------------------------------------

_AT: Final = {"contentIndex": COUNT}
_KNOWN: Final = {"usage": USAGE, "responseId": TEXT, "responseModel": TEXT}
_END: Final = {**_KNOWN, "rawStopReason": TEXT, "diagnostics": _list(OBJECT), "deferred": OBJECT}

ACTIONS: Final[Mapping[str, Mapping[str, Kind]]] = {
    "start": _KNOWN,
    "text_start": _AT,
    "text_delta": {**_AT, "delta!": TEXT},
    "text_end": {**_AT, "content": TEXT},
    "thinking_start": _AT,
    "thinking_delta": {**_AT, "delta!": TEXT},
    "thinking_end": {**_AT, "content": TEXT, "signature": TEXT},
    "toolcall_start": {**_AT, "id!": TEXT, "name!": TEXT},
    "toolcall_delta": {**_AT, "delta!": TEXT},
    "toolcall_end": _AT,
    "note": _KNOWN,
    "done": {**_END, "reason": _one_of("stop", "length", "toolUse", "deferred")},
    "error": {**_END, "reason": _one_of("error", "aborted"), "errorMessage": TEXT},
    "text": {"fragments!": TEXTS},
    "thinking": {"fragments!": TEXTS, "signature": TEXT},
    "toolCall": {"id!": TEXT, "name!": TEXT, "fragments!": TEXTS},
    "sleep": {"ms!": NUMBER},
    "waitGate": {"name!": NAME},
    "openGate": {"name!": NAME},
    "fail": {"text!": TEXT, "status": STATUS},
    "drop": {},
    "hang": {},
    "respond": {"status": STATUS, "headers": HEADERS},
    "malformed": {"value!": ANY},
}
ACTION: Final = Kind(expected="an object", check=lambda value: isinstance(value, dict), variants=ACTIONS)

# -- the file ----------------------------------------------------------------------------

GUARD: Final = {"when": _object({"model": NAME, "session": NAME, "contains": TEXT}), "repeats": BOOL}
MESSAGE_STEP: Final = _object({**MESSAGE, **GUARD})
ACTION_STEP: Final = _object({"actions!": _list(ACTION), **GUARD})
STEP: Final = Kind(
    expected="a text or an object",
    check=lambda value: isinstance(value, str | dict),
    choose=lambda value: TEXT if isinstance(value, str) else ACTION_STEP if "actions" in value else MESSAGE_STEP,
)
MODEL: Final = _object(
    {
        "id!": NAME,
        "name": NAME,
        "reasoning": BOOL,
        "thinkingLevelMap": _object(dict.fromkeys(THINKING_LEVELS, ANY)),
        "input": _list(_one_of("text", "image")),
        "contextWindow": COUNT,
        "maxTokens": COUNT,
        "cost": _object(dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), NUMBER)),
    }
)
ROOT: Final = _object(
    {
        "provider": NAME,
        "api": NAME,
        "models": _list(MODEL),
        "seed": COUNT,
        "tokenSize": _object({"min!": ABOVE, "max!": ABOVE}),
        "chunked": BOOL,
        "tokensPerSecond": ABOVE,
        "pauseMs": NUMBER,
        "usage": USAGE,
        "deferred": _object({"pendingFetches": COUNT, "pollAfterMs": COUNT}),
        "steps!": _list(STEP),
    }
)


def faults_of(value: Json, kind: Kind = ROOT, path: str = "") -> list[str]:
    """Everything that is wrong, one text each, in the order of the file."""
    if not kind.check(value):
        return [f"{path or '(file)'}: expected {kind.expected}, got {_shown(value)}"]
    chosen = kind.choose(value) if kind.choose is not None else kind
    if isinstance(value, list) and chosen.items is not None:
        return [fault for index, item in enumerate(value) for fault in faults_of(item, chosen.items, f"{path}[{index}]")]
    if not isinstance(value, dict):
        return []
    if chosen.variants is not None:
        return _variant_faults(value, chosen.variants, path)
    return [] if chosen.fields is None else _field_faults(value, chosen.fields, path)


def _variant_faults(value: Mapping[str, Any], variants: Mapping[str, Mapping[str, Kind]], path: str) -> list[str]:
    name = value.get("type")
    if not isinstance(name, str) or name not in variants:
        return [f"{path}.type: expected one of {', '.join(variants)}, got {_shown(name) if 'type' in value else 'nothing'}"]
    return _field_faults(value, {**variants[name], "type": TEXT}, path)


def _field_faults(value: Mapping[str, Any], fields: Mapping[str, Kind], path: str) -> list[str]:
    known = {name.removesuffix("!"): kind for name, kind in fields.items()}
    found = []
    for name, item in value.items():
        at = f"{path}.{name}" if path else name
        if name in known:
            found += faults_of(item, known[name], at)
        else:
            near = difflib.get_close_matches(name, known, 1)
            hint = f'did you mean "{near[0]}"?' if near else f"expected {', '.join(known) or 'no further key'}"
            found.append(f"{at}: is not known here ({_shown(item)}); {hint}")
    required = [name[:-1] for name in fields if name.endswith("!")]
    missing = [name for name in required if name not in value]
    return [*found, *[f"{path}.{name}: missing; expected {known[name].expected}".lstrip(".") for name in missing]]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"
