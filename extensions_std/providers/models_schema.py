"""The shape of `models.json`, and its text read with comments and trailing commas (MOD-50, MOD-51).

All faults of a file are reported at once, each with its dotted path, what was found and what is
expected. Unknown fields are ignored (MOD-1).
"""

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from camshaft.actors.api import THINKING_LEVELS, Json, MalformedJson, loads

SHOWN_MAX: Final = 60
"""Characters of a wrong value that an error shows."""

_IN_URL: Final = re.compile(r"(?<=//)[^\s'\"]*(?=@)|(?<=\?)[^\s'\"]+")
"""Name and password, and the query."""

SIMILAR: Final = 0.75
"""From which likeness on a key counts as a known one misspelt: two letters changed places, one is missing, another case."""

SECRET_FIELDS: Final = frozenset({"apiKey", "headers"})
"""Fields whose values no error shows."""

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*|/\*.*?\*/)*[}\]])', re.DOTALL)

Check = Callable[[Json], bool]


class ModelsFileError(Exception):
    """`models.json` cannot be used; the text names the file, and each fault with its place (MOD-51)."""


@attrs.frozen
class Kind:
    """What a field may hold."""

    expected: str
    check: Check
    fields: "Mapping[str, Kind] | None" = None
    """Of an object with known fields."""
    items: "Kind | None" = None
    """Of a list, or of an object whose keys are free."""


def _is_number(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _objects(fields: "Mapping[str, Kind]") -> Kind:
    return Kind("an object", lambda value: isinstance(value, dict), fields=fields)


def _map(items: Kind) -> Kind:
    return Kind("an object", lambda value: isinstance(value, dict), items=items)


def _list(items: Kind) -> Kind:
    return Kind("a list", lambda value: isinstance(value, list), items=items)


TEXT: Final = Kind("a non-empty text", lambda value: isinstance(value, str) and value != "")
ANY_TEXT: Final = Kind("a text", lambda value: isinstance(value, str))
BOOL: Final = Kind("true or false", lambda value: isinstance(value, bool))
NUMBER: Final = Kind("a number", _is_number)
RATE: Final = Kind("a number of at least 0", lambda value: _is_number(value) and value >= 0)
OBJECT: Final = Kind("an object", lambda value: isinstance(value, dict))
INPUT: Final = Kind('"text" or "image"', lambda value: value in ("text", "image"))
LEVEL_VALUE: Final = Kind("a text or null", lambda value: value is None or isinstance(value, str))
RADIUS: Final = Kind('"radius"', lambda value: value == "radius")

RATES: Final = {"input": RATE, "output": RATE, "cacheRead": RATE, "cacheWrite": RATE}
COST: Final = _objects({**RATES, "tiers": _list(_objects({**RATES, "inputTokensAbove": NUMBER}))})
SECONDS: Final = Kind("a number above 0", lambda value: _is_number(value) and value > 0)
COUNT: Final = Kind("an integer of at least 1", lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 1)
QUALITY: Final = Kind("an integer from 1 to 100", lambda value: COUNT.check(value) and value <= 100)
RESIZE: Final = _objects({"maxWidth": COUNT, "maxHeight": COUNT, "maxBytes": COUNT, "jpegQuality": QUALITY})
LIMITS: Final = _objects({"maxRequestBytes": COUNT, "images": _objects({"maxPerMessage": COUNT, "maxPerRequest": COUNT, "resize": RESIZE})})
LEVELS: Final = _objects(dict.fromkeys(THINKING_LEVELS, LEVEL_VALUE))
BY_LEVEL: Final = _objects(dict.fromkeys(THINKING_LEVELS, OBJECT))

OVERRIDE: Final[Mapping[str, Kind]] = {
    "name": TEXT,
    "input": _list(INPUT),
    "inputLimits": LIMITS,
    "cost": COST,
    "headers": _map(ANY_TEXT),
    "reasoning": BOOL,
    "thinkingLevelMap": LEVELS,
    "promptCache": _objects({"short": SECONDS, "long": SECONDS}),
    "contextWindow": NUMBER,
    "maxTokens": NUMBER,
    "samplingParams": OBJECT,
    "samplingParamsByThinkingLevel": BY_LEVEL,
    "compat": OBJECT,
}
MODEL: Final[Mapping[str, Kind]] = {"id": TEXT, "api": TEXT, "baseUrl": TEXT, **OVERRIDE}
PROVIDER: Final[Mapping[str, Kind]] = {
    "name": TEXT,
    "baseUrl": TEXT,
    "apiKey": TEXT,
    "api": TEXT,
    "oauth": RADIUS,
    "headers": _map(ANY_TEXT),
    "compat": OBJECT,
    "authHeader": BOOL,
    "models": _list(_objects(MODEL)),
    "modelOverrides": _map(_objects(OVERRIDE)),
}
ROOT: Final = _objects({"providers": _map(_objects(PROVIDER))})


def parsed(text: bytes, path: str) -> dict[str, Any]:
    """The provider entries of a file's text. Raises ModelsFileError with every fault."""
    try:
        value = loads(_plain(text.decode("utf-8", "replace").removeprefix("\ufeff")).encode())
    except MalformedJson as error:
        raise ModelsFileError(f"Failed to parse models.json: {error}\n\nFile: {path}") from None
    faults = [f"  - {place}: {reason}" for place, reason in _faults(value, ROOT, "")]
    if not faults and "providers" not in value:
        faults = ["  - providers: missing; expected an object"]
    faults += [f"  - {place}: missing; expected a non-empty text" for place in _models_without_id(value)]
    if faults:
        raise ModelsFileError("\n".join(["Invalid models.json schema:", *faults]) + f"\n\nFile: {path}")
    providers: dict[str, Any] = value["providers"]
    return providers


def misspelt(raw: Mapping[str, Any]) -> list[str]:
    """Keys of a provider entry and its models that look like a key we know; others may be another reader's (MOD-1)."""
    found = _misspelt(raw, PROVIDER, "")
    for index, model in enumerate(raw.get("models", ())):
        found += _misspelt(model, MODEL, f"models.{index}.")
    return found


def _misspelt(given: Mapping[str, Any], known: Mapping[str, Kind], path: str) -> list[str]:
    plain = {_plainly(name): name for name in known}
    near = {name: difflib.get_close_matches(_plainly(name), plain, 1, SIMILAR) for name in given if name not in known}
    return [f'key "{path}{name}" is ignored; did you mean "{path}{plain[like[0]]}"?' for name, like in near.items() if like]


def _plainly(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _plain(text: str) -> str:
    """JSON without comments and trailing commas; a comment becomes blanks, so that places in errors stay right."""
    return _TOKEN.sub(lambda found: found[0] if found[0].startswith('"') else re.sub(r"[^\n]", " ", found[0]), text)


def _faults(value: Json, kind: Kind, path: str) -> list[tuple[str, str]]:
    if not kind.check(value):
        return [(path or "(file)", f"expected {kind.expected}, got {_shown(value, path)}")]
    found: list[tuple[str, str]] = []
    if isinstance(value, dict):
        for name, item in value.items():
            below = kind.items if kind.fields is None else kind.fields.get(name)
            if below is not None:
                found += _faults(item, below, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and kind.items is not None:
        for index, item in enumerate(value):
            found += _faults(item, kind.items, f"{path}.{index}")
    return found


def _models_without_id(value: Json) -> list[str]:
    providers = value.get("providers") if isinstance(value, dict) else None
    places = []
    for name, provider in (providers if isinstance(providers, dict) else {}).items():
        models = provider.get("models") if isinstance(provider, dict) else None
        for index, model in enumerate(models if isinstance(models, list) else []):
            if isinstance(model, dict) and "id" not in model:
                places.append(f"providers.{name}.models.{index}.id")
    return places


def _shown(value: Json, path: str) -> str:
    if not SECRET_FIELDS.isdisjoint(path.split(".")):
        return f"{type(value).__name__} (not shown)"
    text = _IN_URL.sub("<hidden>", repr(value))
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"
