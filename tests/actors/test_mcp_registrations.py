"""MCP servers that extensions register: whose they are, and who is told."""

from typing import Any

import pytest

from camshaft.actors.host import ExtensionMisuse
from tests.actors.running import Running, opened, simulate


def doing(test: Any, *setups: Any) -> Any:
    async def run() -> Any:
        async with opened([], *setups) as running:
            return await test(running)
        raise AssertionError

    return simulate(run)


async def nothing(_running: Running) -> None:
    """For what is seen while loading."""


UNCONNECTED = (
    'MCP server "docs" is registered, but no loaded extension connects MCP servers; '
    "another extension may have replaced the built-in MCP support"
)


async def errors(running: Running) -> list[tuple[str, str, str]]:
    return [(each.extension_path, each.event, each.error) for each in running.seat.errors]


@pytest.mark.rule("ERR-9", "MCP-43")
def test_a_server_that_nobody_connects_is_reported_once() -> None:
    def setup(api: Any) -> None:
        api.register_mcp_server("docs", {"command": "docs"})
        api.on("session_start", lambda *_: api.register_mcp_server("docs", {"command": "other"}))

    assert doing(errors, setup) == [("<inline:x0>", "register_mcp_server", UNCONNECTED)]


@pytest.mark.rule("MCP-39", "MCP-40", "MCP-41", "MCP-42")
def test_who_connects_reads_the_list_at_the_start_and_hears_of_later_changes() -> None:
    seen: list[Any] = []

    def connecting(api: Any) -> None:
        api.on("mcp_servers_change", lambda event, _ctx: seen.append([(each.name, each.config["command"]) for each in event.servers]))
        api.on("session_start", lambda *_: seen.append([each.name for each in api.get_mcp_servers()]))

    def registering(api: Any) -> None:
        api.register_mcp_server("docs", {"command": "docs"})
        seen.append(api.get_mcp_servers())

        def start(*_: Any) -> None:
            api.register_mcp_server("more", {"command": "more"})
            api.register_mcp_server("docs", {"command": "changed"})
            api.unregister_mcp_server("more")
            api.unregister_mcp_server("never")

        api.on("session_start", start)

    async def test(running: Running) -> list[tuple[str, str, str]]:
        await running.seat._parts.host.drained()
        return await errors(running)

    assert doing(test, connecting, registering) == []
    assert seen == [
        (),
        ["docs"],
        [("docs", "docs"), ("more", "more")],
        [("docs", "changed"), ("more", "more")],
        [("docs", "changed")],
    ]


INVALID = 'Invalid MCP server registered by extension "<inline:x1>": '
MCP_MISTAKES: dict[str, tuple[str, Any, str]] = {
    "a bad name": (
        "a b",
        {"command": "x"},
        INVALID + 'invalid server name "a b" (use letters, digits, "_" and "-")',
    ),
    "no object": ("s", "npx", INVALID + 'server "s" must be an object'),
    "no transport": (
        "s",
        {},
        INVALID + 'server "s" needs either "command" (stdio) or "url" (streamable HTTP)',
    ),
    "another's name": ("docs-v", {"command": "x"}, 'MCP server "docs-v" is already registered by extension "<inline:x0>"'),
    "a name like another's": ("docs_v", {"command": "x"}, 'MCP server "docs_v" conflicts with registered server "docs-v"'),
}


@pytest.mark.rule("API-40", "MCP-34", "MCP-35")
@pytest.mark.parametrize(("name", "config", "text"), MCP_MISTAKES.values(), ids=MCP_MISTAKES)
def test_a_server_that_cannot_be_is_refused(name: str, config: Any, text: str) -> None:
    told: list[str] = []

    def second(api: Any) -> None:
        with pytest.raises(ExtensionMisuse) as caught:
            api.register_mcp_server(name, config)
        told.append(str(caught.value))

    doing(nothing, lambda api: api.register_mcp_server("docs-v", {"command": "x"}), second)

    assert told == [text]


@pytest.mark.rule("MCP-36")
def test_two_names_of_one_factory_that_are_one_namespace_are_refused() -> None:
    def setup(api: Any) -> None:
        api.register_mcp_server("o-v", {"command": "x"})
        api.register_mcp_server("o_v", {"command": "x"})

    async def test(running: Running) -> list[str]:
        return [each.error for each in running.seat.load_errors]

    assert doing(test, setup) == ['MCP server "o_v" conflicts with registered server "o-v"']


@pytest.mark.rule("MCP-38")
def test_nobody_takes_back_the_server_of_another_extension() -> None:
    kept: list[Any] = []

    def second(api: Any) -> None:
        api.unregister_mcp_server("docs")
        kept.append(api)

    async def test(running: Running) -> list[str]:
        return [each.name for each in kept[0].get_mcp_servers()]

    assert doing(test, lambda api: api.register_mcp_server("docs", {"command": "x"}), second) == ["docs"]
