"""Settings of two scopes: how they merge, old forms, changes to a file."""

from typing import Any

import pytest

from camshaft.kernel.persistent import freeze
from camshaft.kernel.settings_merge import (
    USER_ONLY,
    DefaultTools,
    ResourceLists,
    changed,
    default_tools_of,
    effective_settings,
    migrated,
    resource_lists,
)


def merged(user: dict[str, Any], project: dict[str, Any], overrides: dict[str, Any] | None = None) -> Any:
    return effective_settings(freeze(user), freeze(project), freeze(overrides or {}))


@pytest.mark.rule("SET-2")
@pytest.mark.parametrize(
    ("user", "project", "expected"),
    [
        ({"a": 1}, {}, {"a": 1}),
        ({"a": 1, "b": 2}, {"a": 3}, {"a": 3, "b": 2}),
        ({"o": {"x": 1, "i": {"p": 1}}}, {"o": {"y": 2, "i": {"q": 2}}}, {"o": {"x": 1, "i": {"p": 1, "q": 2}, "y": 2}}),
        ({"l": [1, 2]}, {"l": [3]}, {"l": (3,)}),
        ({"o": {"x": 1}}, {"o": 5}, {"o": 5}),
        ({"a": 1}, {"a": None}, {"a": 1}),
    ],
)
def test_objects_merge_and_everything_else_replaces(user: Any, project: Any, expected: Any) -> None:
    assert merged(user, project) == expected


@pytest.mark.rule("SET-2")
def test_overrides_count_over_both() -> None:
    assert merged({"a": 1}, {"a": 2, "o": {"x": 1}}, {"a": 3, "o": {"y": 2}}) == {"a": 3, "o": {"x": 1, "y": 2}}


@pytest.mark.rule("SET-2")
def test_resource_lists_are_read_from_each_scope_and_not_merged() -> None:
    user, project = {"skills": ["u", 5], "packages": ["p"]}, {"skills": ["p"], "prompts": "x"}

    assert merged(user, project) == {}
    assert resource_lists(freeze(user)) == ResourceLists(skills=("u",), packages=("p",))
    assert resource_lists(freeze(project)) == ResourceLists(skills=("p",))


@pytest.mark.rule("SET-4")
@pytest.mark.parametrize("key", USER_ONLY)
def test_some_keys_of_a_project_do_not_count(key: str) -> None:
    assert merged({}, {key: "always"}) == {}
    assert merged({key: "never"}, {key: "always"}) == {key: "never"}


@pytest.mark.rule("SET-8")
@pytest.mark.parametrize(
    ("user", "project", "expected"),
    [
        (["read"], ["bash"], ("bash",)),
        (["read"], ["+grep", "-read"], ("read", "+grep", "-read")),
        (["+grep"], ["-bash"], ("+grep", "-bash")),
        (["read"], ["ls", "+grep"], ("ls", "+grep")),
        (["read"], [], ()),
        (["read", 5], None, ("read",)),
        (None, ["+x"], ("+x",)),
    ],
)
def test_names_replace_the_inherited_tools_and_modifiers_are_appended(user: Any, project: Any, expected: Any) -> None:
    assert merged({"defaultTools": user}, {"defaultTools": project}) == {"defaultTools": expected}


@pytest.mark.rule("SET-8")
@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        (None, DefaultTools(names=None, modifiers=())),
        ((), DefaultTools(names=(), modifiers=())),
        (("read", "+grep"), DefaultTools(names=("read",), modifiers=("+grep",))),
        (("+grep", "-bash"), DefaultTools(names=None, modifiers=("+grep", "-bash"))),
        (("-ls", "+ls"), DefaultTools(names=None, modifiers=("+ls",))),
    ],
)
def test_default_tools_are_a_base_and_the_last_modifier_of_each_name(listed: Any, expected: DefaultTools) -> None:
    assert default_tools_of(listed) == expected


@pytest.mark.rule("SET-9")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"queueMode": "all"}, {"steeringMode": "all"}),
        ({"queueMode": "all", "steeringMode": "one-at-a-time"}, {"steeringMode": "one-at-a-time"}),
        ({"websockets": True}, {"transport": "websocket"}),
        ({"websockets": False}, {"transport": "sse"}),
        ({"websockets": True, "transport": "auto"}, {"transport": "auto"}),
        ({"websockets": {"a": 1}}, {"websockets": {"a": 1}}),
        ({"skills": {"enableSkillCommands": False, "customDirectories": ["x", 1]}}, {"enableSkillCommands": False, "skills": ("x",)}),
        ({"skills": {}, "enableSkillCommands": True}, {"enableSkillCommands": True, "skills": ()}),
        ({"skills": ["x"]}, {"skills": ("x",)}),
        ({"retry": {"maxDelayMs": 5, "maxRetries": 1}}, {"retry": {"maxRetries": 1, "provider": {"maxRetryDelayMs": 5}}}),
        ({"retry": {"maxDelayMs": 5, "provider": {"maxRetryDelayMs": 6}}}, {"retry": {"provider": {"maxRetryDelayMs": 6}}}),
        ({"theme": "dark"}, {"theme": "dark"}),
    ],
)
def test_old_forms_become_new_ones_and_a_new_form_wins(old: Any, new: Any) -> None:
    assert migrated(freeze(old)) == new


@pytest.mark.rule("SET-6")
@pytest.mark.parametrize(
    ("before", "path", "value", "after"),
    [
        ({"a": 1, "b": 2}, ("a",), 3, {"a": 3, "b": 2}),
        ({"o": {"x": 1}}, ("o", "y"), [2], {"o": {"x": 1, "y": (2,)}}),
        ({}, ("o", "y"), 2, {"o": {"y": 2}}),
        ({"o": 5}, ("o", "y"), 2, {"o": {"y": 2}}),
        ({"o": {"x": 1, "y": 2}}, ("o", "y"), None, {"o": {"x": 1}}),
        ({"a": 1}, ("b",), None, {"a": 1}),
    ],
)
def test_a_change_touches_its_key_only(before: Any, path: tuple[str, ...], value: Any, after: Any) -> None:
    assert changed(freeze(before), path, value) == after
