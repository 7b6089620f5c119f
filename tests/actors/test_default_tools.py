"""Which tools a new session starts with, by the setting `defaultTools`."""

from typing import Any

import attrs
import pytest

from camshaft.actors.host import OpenOptions, open_kernel
from camshaft.extensions_std.tools import builtin_tools
from tests.actors.running import NO_RETRY, virtual_world


@pytest.mark.rule("SET-8", "EXPO-30", "EXPO-31")
@pytest.mark.parametrize(
    ("listed", "more", "active"),
    [
        (None, {}, ["bash", "edit", "read", "write"]),
        ((), {}, []),
        (("read", "grep"), {}, ["grep", "read"]),
        (("+grep", "-bash"), {}, ["edit", "grep", "read", "write"]),
        (("read", "+grep", "+ls", "-ls"), {}, ["grep", "read"]),
        (("-grep", "+grep"), {}, ["bash", "edit", "grep", "read", "write"]),
        (("+grep",), {"no_tools": "builtin"}, ["grep"]),
        (("read",), {"tools": ("ls",)}, ["ls"]),
    ],
)
async def test_names_are_the_base_and_modifiers_change_it(listed: tuple[str, ...] | None, more: dict[str, Any], active: list[str]) -> None:
    settings = attrs.evolve(NO_RETRY, default_tools=listed)
    given = OpenOptions(cwd="/", builtin_tools=builtin_tools(), settings=settings, **more)

    async with open_kernel(world=virtual_world()) as kernel:
        assert sorted((await kernel.open(given)).active_tools) == active
