"""Settings as JSON before they are read: old forms, two scopes in one, and changes to a file (SET-2, SET-4, SET-6, SET-8, SET-9).

All of it works on frozen JSON objects and leaves keys alone that it does not know. Theory of the merge: objects merge key by
key, everything else replaces, and two kinds of lists are exceptions. `defaultTools` may hold modifiers, which are kept with
what they modify. Lists of resources do not merge: what a path in one starts at depends on the file it stands in, so each
scope's are read for themselves (`resource_lists`).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from camshaft.kernel import shapes
from camshaft.kernel.persistent import EMPTY, FrozenDict, Json, freeze

USER_ONLY: Final = ("defaultProjectTrust", "httpProxy", "cacheWarming", "deviceId", "selfUpdateCommand")
"""Keys that count in the user's file alone (SET-4)."""

RESOURCE_LISTS: Final = ("extensions", "skills", "prompts", "themes", "packages")
"""Keys whose lists are read from both scopes, each for itself (SET-2)."""

_DEFAULT_TOOLS: Final = "defaultTools"


@shapes.frozen(kw_only=True)
class ResourceLists:
    """The resource lists of one scope: texts only, in order; what is no text is left out."""

    extensions: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    themes: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()


def effective_settings(user: Mapping[str, Json], project: Mapping[str, Json] = EMPTY, overrides: Mapping[str, Json] = EMPTY) -> FrozenDict:
    """The settings that count: the project's over the user's, and `overrides` of this process over both.

    Old forms count as their new ones. The resource lists are those of nobody: `resource_lists` gives them.
    """
    theirs = {key: value for key, value in migrated(project).items() if key not in USER_ONLY}
    merged = _merged(_merged(migrated(user), theirs), migrated(overrides))
    return FrozenDict({key: value for key, value in merged.items() if key not in RESOURCE_LISTS})


def resource_lists(scope: Mapping[str, Json]) -> ResourceLists:
    """The resource lists of one scope."""
    raw = migrated(scope)
    return ResourceLists(**{key: _texts(raw.get(key)) for key in RESOURCE_LISTS})


def migrated(raw: Mapping[str, Json]) -> FrozenDict:
    """The object with old forms replaced by new ones; a key that has its new form already wins (SET-9)."""
    found = dict(raw)
    _set_new(found, "steeringMode", found.pop("queueMode", None))
    websockets = found.get("websockets")
    if isinstance(websockets, bool):
        del found["websockets"]
        _set_new(found, "transport", "websocket" if websockets else "sse")
    skills = found.get("skills")
    if isinstance(skills, Mapping):
        _set_new(found, "enableSkillCommands", skills.get("enableSkillCommands"))
        found["skills"] = _texts(skills.get("customDirectories"))
    retry = found.get("retry")
    if isinstance(retry, Mapping) and "maxDelayMs" in retry:
        found["retry"] = freeze(_migrated_retry(retry))
    if isinstance(found.get(_DEFAULT_TOOLS), (list, tuple)):
        found[_DEFAULT_TOOLS] = _texts(found[_DEFAULT_TOOLS])
    return FrozenDict(found)


def _set_new(found: dict[str, Json], new: str, value: Json) -> None:
    if value is not None and found.get(new) is None:
        found[new] = value


def _migrated_retry(retry: Mapping[str, Json]) -> Json:
    rest = {key: value for key, value in retry.items() if key != "maxDelayMs"}
    provider = rest.get("provider")
    own: Mapping[str, Json] = provider if isinstance(provider, Mapping) else EMPTY
    return {**rest, "provider": {"maxRetryDelayMs": retry["maxDelayMs"], **own}}


def _merged(below: Mapping[str, Json], above: Mapping[str, Json]) -> FrozenDict:
    """One level of the merge and those below it; None above counts as not there."""
    merged = dict(below)
    for key, value in above.items():
        before = merged.get(key)
        if value is None:
            continue
        if key == _DEFAULT_TOOLS:
            merged[key] = _tools_over(before, value)
        elif isinstance(before, Mapping) and isinstance(value, Mapping):
            merged[key] = _merged(before, value)
        else:
            merged[key] = value
    return FrozenDict(merged)


def _tools_over(inherited: Json, own: Json) -> tuple[str, ...]:
    """Only modifiers are appended to what is inherited, names replace it (SET-8)."""
    names = _texts(own)
    return (*_texts(inherited), *names) if names and all([_is_modifier(name) for name in names]) else names


@shapes.frozen(kw_only=True)
class DefaultTools:
    """What a merged `defaultTools` says."""

    names: tuple[str, ...] | None
    """The base; None: the built-in one."""
    modifiers: tuple[str, ...]
    """`+name` and `-name`, one for each name: of several the last one counts."""


def default_tools_of(merged: Sequence[str] | None) -> DefaultTools:
    """The plain names are the base, the built-in ones if there are only modifiers; `[]` means none (SET-8)."""
    names = tuple([name for name in merged or () if not _is_modifier(name)])
    last = {name[1:]: name for name in merged or () if _is_modifier(name)}
    return DefaultTools(names=names if names or merged == () else None, modifiers=tuple(last.values()))


def changed(current: Mapping[str, Json], path: Sequence[str], value: Json) -> FrozenDict:
    """The object with one key, or the nested key at `path`, set; None removes it. Everything else stays as it is (SET-6)."""
    (key, *rest) = path
    after = dict(current)
    inner = after.get(key)
    if rest:
        value = changed(inner if isinstance(inner, Mapping) else EMPTY, rest, value)
    if value is None:
        after.pop(key, None)
    else:
        after[key] = freeze(value)
    return FrozenDict(after)


def _is_modifier(name: str) -> bool:
    return name[:1] in ("+", "-")


def _texts(value: Json) -> tuple[str, ...]:
    return tuple([each for each in value if isinstance(each, str)]) if isinstance(value, (list, tuple)) else ()
