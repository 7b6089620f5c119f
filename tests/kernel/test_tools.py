"""Which tools are active, declared and callable: the exposure table and what starts a session with which."""

from itertools import product
from typing import Any, get_args

import pytest

from camshaft.kernel.errors import Rejection
from camshaft.kernel.messages import ToolCall
from camshaft.kernel.persistent import EMPTY, FrozenDict
from camshaft.kernel.tools import (
    EXPOSURES,
    Exposure,
    RegisteredTool,
    SourceInfo,
    ToolDefinition,
    Tools,
    activates,
    after_registration,
    allows,
    callable_names,
    is_sequential,
    selected_at_start,
    with_active,
)


async def execute(*_: Any) -> None:
    """Never called here."""


def definition(name: str, exposure: Any = "direct", **more: Any) -> ToolDefinition:
    return ToolDefinition(name=name, description="", parameters=FrozenDict({"type": "object"}), execute=execute, exposure=exposure, **more)


def registered(*definitions: ToolDefinition, source: str = "inline") -> Tools:
    info = SourceInfo(path="p", source=source)
    return {each.name: RegisteredTool(definition=each, source_info=info) for each in definitions}


EVERY = registered(*[definition(exposure, exposure) for exposure in EXPOSURES])
BUILTIN = registered(*[definition(name) for name in ("read", "bash", "edit", "write", "grep", "find")], source="builtin")
EXTENSION = registered(
    definition("deploy"), definition("quiet", default_active=False), definition("secret", "hidden"), definition("run", "codemode")
)
ALL = {**BUILTIN, **EXTENSION}


# exposure: declared when active, callable while inactive, callable while active, activated by registering
EXPOSED: dict[Exposure, tuple[bool, bool, bool, bool]] = {
    "direct": (True, False, True, True),
    "model-only": (True, False, False, True),
    "codemode": (True, True, True, False),
    "deferred": (True, True, True, False),
    "hidden": (False, False, False, False),
}


@pytest.mark.rule("EXPO-1", "EXPO-2", "EXPO-3", "EXPO-5")
@pytest.mark.parametrize("exposure", get_args(Exposure))
def test_what_an_exposure_means(exposure: Exposure) -> None:
    active = with_active((), [exposure], EVERY)

    found = (
        exposure in active,
        exposure in callable_names((), EVERY),
        exposure in callable_names((exposure,), EVERY),
        activates(EVERY[exposure].definition),
    )

    assert found == EXPOSED[exposure]


@pytest.mark.rule("EXPO-2", "TOOL-2")
@pytest.mark.parametrize(("exposure", "default_active", "was_active"), list(product(EXPOSED, (True, False), (True, False))))
def test_what_registering_does_to_the_active_set(exposure: Exposure, default_active: bool, was_active: bool) -> None:
    tool = definition("t", exposure, default_active=default_active)
    before = ("a", "t") if was_active else ("a",)

    activated = EXPOSED[exposure][3] and default_active
    stays = was_active and exposure != "hidden"
    assert after_registration(before, tool) == (("a", "t") if activated or stays else ("a",))
    assert after_registration(before, tool, filtered=True) == (("a", "t") if stays else ("a",))


@pytest.mark.rule("EXPO-3")
@pytest.mark.parametrize(
    ("current", "wanted", "active"),
    [
        (("read", "bash"), ("bash", "read"), ("read", "bash")),
        (("read",), ("bash", "read", "edit"), ("read", "bash", "edit")),
        (("read", "bash"), ("bash",), ("bash",)),
        (("read",), ("nothing", "secret", "read"), ("read",)),
        (("read",), ("bash", "bash"), ("bash",)),
        (("read",), (), ()),
    ],
)
def test_the_active_set_keeps_its_order_and_drops_what_cannot_be_active(current: Any, wanted: Any, active: Any) -> None:
    assert with_active(current, wanted, ALL) == active


DEFAULT = ("read", "bash", "edit", "write", "deploy")


@pytest.mark.rule("EXPO-30")
@pytest.mark.parametrize(
    ("choice", "excluded", "active"),
    [
        (None, (), DEFAULT),
        (None, ("bash", "w*"), ("read", "edit", "deploy")),
        ((), (), ()),
        (("read", "grep"), (), ("read", "grep")),
        (("grep", "read"), (), ("grep", "read")),
        (("*e*",), (), ("read", "edit", "write", "grep", "deploy", "quiet")),
        (("quiet", "run", "secret"), (), ("quiet", "run")),
        (("+grep",), (), ("read", "bash", "edit", "write", "deploy", "grep")),
        (("-bash", "+quiet"), (), ("read", "edit", "write", "deploy", "quiet")),
        (("+grep", "-grep"), (), DEFAULT),
        (("+grep",), ("grep",), DEFAULT),
        (("nothing",), (), ()),
    ],
)
def test_what_a_session_starts_with(choice: Any, excluded: Any, active: Any) -> None:
    assert selected_at_start(choice, excluded, ALL) == active


@pytest.mark.rule("EXPO-30")
@pytest.mark.parametrize(
    ("choice", "part"), [(("read", "+grep"), "mix names"), (("+gr*",), "take no patterns"), (("-*",), "take no patterns")]
)
def test_a_choice_that_means_two_things_is_refused(choice: Any, part: str) -> None:
    refused = selected_at_start(choice, (), ALL)

    assert isinstance(refused, Rejection) and part in refused.why


@pytest.mark.rule("EXPO-31")
def test_without_the_built_in_defaults_only_extension_tools_start_active() -> None:
    assert selected_at_start(None, (), ALL, defaults=()) == ("deploy",)


@pytest.mark.rule("EXPO-30")
@pytest.mark.parametrize(
    ("choice", "excluded", "name", "is_allowed"),
    [
        (None, (), "x", True),
        (None, ("x",), "x", False),
        ((), (), "x", False),
        (("a", "x"), (), "x", True),
        (("a",), (), "x", False),
        (("mcp__*",), (), "mcp__x", True),
        (("+a", "-x"), (), "x", True),
        (("x",), ("*",), "x", False),
    ],
)
def test_what_may_be_registered_at_all(choice: Any, excluded: Any, name: str, is_allowed: bool) -> None:
    assert allows(choice, excluded, name) is is_allowed


@pytest.mark.rule("TOOL-38")
@pytest.mark.parametrize(
    ("names", "active", "mode", "sequential"),
    [
        (("a", "b"), ("a", "b"), "parallel", False),
        (("a", "s"), ("a", "s"), "parallel", True),
        (("a", "s"), ("a",), "parallel", False),
        (("a", "unknown"), ("a", "unknown"), "parallel", False),
        (("a",), ("a",), "sequential", True),
    ],
)
def test_one_sequential_tool_that_is_active_makes_the_whole_batch_sequential(names: Any, active: Any, mode: Any, sequential: bool) -> None:
    tools = registered(definition("a"), definition("b", execution_mode="parallel"), definition("s", execution_mode="sequential"))
    calls = [ToolCall(id=name, name=name, arguments=EMPTY) for name in names]

    assert is_sequential(calls, active, tools, session_mode=mode) is sequential
