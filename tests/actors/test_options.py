"""What a conversation is opened with: every option has a check, and every mistake its text."""

from pathlib import Path
from typing import Any

import attrs
import pytest

from camshaft.actors.host import CommandRefused, InlineExtension, InvalidOptions, OpenOptions, Settings, open_kernel
from camshaft.actors.options import CHECKS
from camshaft.extensions_std.providers.scripted import ScriptedProvider
from tests.actors.running import opened, simulate, virtual_world


async def waits(*_: Any) -> None:
    """A listener that would have to be awaited."""


@attrs.frozen
class Waiter:
    """An object whose call would have to be awaited."""

    async def __call__(self, *_: Any) -> None:
        """Never awaited."""


MISTAKES: dict[str, tuple[Any, str]] = {
    "cwd": ("/no/such/folder", "cwd is '/no/such/folder'; expected the path of a folder that exists"),
    "agent_dir": (3, "agent_dir is 3; expected a path, or None"),
    "session": ("s.jsonl", "session is 's.jsonl'; expected NewSession(), OpenSession(path=...) or MemorySession()"),
    "settings": ({"retry": {}}, "settings is {'retry': {}}; expected Settings(...)"),
    "providers": ((ScriptedProvider,), "expected a provider, which has models, configured() and stream()"),
    "provider_faults": ("broken", "provider_faults is 'broken'; expected a tuple, of which each is a text"),
    "build_provider": ("openai", "build_provider is 'openai'; expected a function that takes a BuildRequest, or None"),
    "model_overlay": ("openai", "model_overlay is 'openai'; expected a function of a provider id and its models, or None"),
    "model_lists": ("openai", "model_lists is 'openai'; expected a RefreshStore, with stored() and keep(), or None"),
    "extensions": (("a.py",), "extensions[0] is 'a.py'; expected ExtensionSource(path=...) or InlineExtension("),
    "preloaded": (True, "preloaded is True; expected what Kernel.preload gave, or None"),
    "builtin_tools": (({"name": "t"},), "builtin_tools[0] is {'name': 't'}; expected ToolDefinition(...)"),
    "tools": ("read", "tools is 'read'; expected a tuple, of which each is the name of a tool"),
    "exclude_tools": (("read", 3), "exclude_tools[1] is 3; expected the name of a tool"),
    "no_tools": (True, "no_tools is True; expected one of 'all', 'builtin', None"),
    "system_prompt": (3, "system_prompt is 3; expected a text, or None"),
    "append_system_prompt": ("be brief", "append_system_prompt is 'be brief'; expected a tuple"),
    "context_files": (("AGENTS.md",), "context_files[0] is 'AGENTS.md'; expected ContextFile(path=..., content=...)"),
    "skills": (("review",), "skills[0] is 'review'; expected Skill(name=..., description=..., file_path=...)"),
    "templates": (("fix",), "templates[0] is 'fix'; expected PromptTemplate(name=..., content=...)"),
    "model": (3, "model is 3; expected a text like 'provider/id', or None"),
    "scoped_models": (("openai/x",), "scoped_models[0] is 'openai/x'; expected ScopedModel(model=...)"),
    "model_patterns": ("openai/*", "model_patterns is 'openai/*'; expected a tuple, of which each is a pattern like 'provider/*'"),
    "thinking_level": ("most", "thinking_level is 'most'; expected one of 'off', 'minimal', "),
    "durability": ("always", "durability is 'always'; expected one of 'commit', 'settle', 'none'"),
    "resume": ("continue", "resume is 'continue'; expected one of 'report'"),
    "listeners": ((waits,), "expected a plain function"),
    "followers": ([print], "followers[0] is <built-in function print>; expected Follower()"),
    "override_cwd": ("yes", "override_cwd is 'yes'; expected true or false"),
    "services": ("files", "services is 'files'; expected an object with check() and renewed(), or None"),
    "mode": (None, "mode is None; expected a text"),
    "ui": (
        print,
        "ui is <built-in function print>; expected a UI port, which has select(), confirm(), input() and editor(), or WatchedUi()",
    ),
    "ambiguous_commands": ("ask", "ambiguous_commands is 'ask'; expected one of 'send', 'refuse'"),
    "flags": ({"plan": 3}, "flags is {'plan': 3}; expected a dict of flag names and values, which are true, false or a text"),
    "project_trusted": ("yes", "project_trusted is 'yes'; expected true or false"),
    "on_shutdown": ("quit", "on_shutdown is 'quit'; expected a function without arguments, or None"),
}


def test_every_option_has_a_check_and_a_mistake() -> None:
    names = [field.name for field in attrs.fields(OpenOptions)]

    assert sorted(CHECKS) == sorted(MISTAKES) == sorted(names)


@pytest.mark.parametrize("name", MISTAKES)
def test_an_option_that_cannot_be_meant_is_refused_with_its_name_its_value_and_what_was_expected(name: str) -> None:
    value, text = MISTAKES[name]

    assert text in refused(**{name: value})


@pytest.mark.parametrize(
    ("group", "kind"),
    [
        ("retry", "RetrySettings"),
        ("compaction", "CompactionSettings"),
        ("branch_summary", "BranchSummarySettings"),
        ("images", "ImageSettings"),
    ],
)
def test_a_group_of_settings_is_an_object_of_its_class(group: str, kind: str) -> None:
    given: dict[str, Any] = {group: {"enabled": False}}

    assert f"settings.{group} is {{'enabled': False}}; expected {kind}(...)" in refused(settings=Settings(**given))


def test_all_mistakes_are_told_at_once() -> None:
    told = refused(tools="read", durability="always", cwd=__file__)

    assert [name for name in MISTAKES if f"{name} is " in told] == ["cwd", "tools", "durability"]


@pytest.mark.parametrize("given", [InlineExtension(name="x", setup=None), "x.py", 3])  # type: ignore[arg-type]  # the mistake
def test_an_extension_that_is_none_is_refused(given: Any) -> None:
    assert "extensions[0] is " in refused(extensions=[given])


def test_what_is_no_options_object_is_refused() -> None:
    async def run() -> None:
        async with open_kernel(world=virtual_world()) as kernel:
            await kernel.open({"cwd": "/"})  # type: ignore[arg-type]  # the mistake

    with pytest.raises(InvalidOptions, match=r"expected OpenOptions\(cwd=\.\.\., \.\.\.\)"):
        simulate(run)


@pytest.mark.parametrize("listener", [waits, Waiter(), None], ids=["async function", "async object", "None"])
def test_a_listener_that_is_no_plain_function_is_refused_by_subscribe_too(listener: Any) -> None:
    async def run() -> None:
        async with opened([]) as running:
            running.seat.subscribe(listener)

    with pytest.raises(CommandRefused, match=r"expected a plain function: .*; follow\(\) is for what has to wait"):
        simulate(run)


def test_lists_are_as_good_as_tuples(tmp_path: Path) -> None:
    async def run() -> str:
        async with open_kernel(world=virtual_world()) as kernel:
            given: dict[str, Any] = {"providers": [ScriptedProvider()], "tools": ["x*"], "listeners": [print], "extensions": []}
            seat = await kernel.open(OpenOptions(cwd=str(tmp_path), settings=Settings(), **given))
            return seat.cwd

    assert simulate(run) == str(tmp_path)


def refused(**given: Any) -> str:
    """What is told of these options."""

    async def run() -> None:
        async with open_kernel(world=virtual_world()) as kernel:
            await kernel.open(OpenOptions(**{"cwd": "/", **given}))

    with pytest.raises(InvalidOptions) as caught:
        simulate(run)
    return str(caught.value)
