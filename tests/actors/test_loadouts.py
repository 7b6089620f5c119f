"""Tools that change what is declared while they are active."""

from typing import Any

import pytest

from camshaft.actors.api import Loadout, LoadoutChanges, SystemMessage, ToolContext, ToolDefinition
from camshaft.extensions_std.providers.scripted import assistant, tool_call
from camshaft.kernel.persistent import FrozenDict
from tests.actors.running import Running, opened, results, simulate, tool


async def works(*_: Any) -> Any:
    return {"content": [{"type": "text", "text": "worked"}]}


def preparing(hook: Any, name: str = "loader", **more: Any) -> ToolDefinition:
    return tool(works, name, prepare_loadout=hook, **more)


def declared(messages: Any) -> dict[str, str]:
    """Names and descriptions of what a request declares."""
    found: dict[str, str] = {}
    for message in messages:
        if isinstance(message, SystemMessage):
            found |= {each.name: each.description for each in message.tools_added or ()}
    return found


def run(test: Any, responses: Any, *tools: ToolDefinition, setups: Any = (), **more: Any) -> Any:
    async def go() -> Any:
        async with opened(responses, *setups, tools=tools, **more) as running:
            return await test(running)
        raise AssertionError

    return simulate(go)


OTHER = tool(works, "other", prompt_snippet="helps otherwise", prompt_guidelines=("Use other with care.",))


@pytest.mark.rule("EXPO-20", "EXPO-21")
def test_a_hook_sees_the_set_and_its_descriptions_are_declared_and_recorded_the_last_one_counts() -> None:
    seen: list[Loadout] = []

    def first(loadout: Loadout) -> Any:
        seen.append(loadout)
        return {"descriptions": {"other": "first", "loader": "loads"}}

    async def test(running: Running) -> Any:
        await running.seat.prompt("go")
        return declared(running.provider.requests[0].messages), declared(running.seat.context_messages)

    last = preparing(lambda _: LoadoutChanges(descriptions=FrozenDict({"other": "last"})), "x")
    asked, recorded = run(test, [assistant("done")], preparing(first), OTHER, last)

    assert asked == recorded == {"loader": "loads", "other": "last", "x": "does it"}
    assert [each.name for each in seen[-1].declared] == ["loader", "other", "x"]
    assert {each.description for each in seen[-1].declared} == {"does it"}
    assert (seen[-1].callable, seen[-1].registered) == (("loader", "other", "x"), ("loader", "other", "x"))
    assert (seen[-1].exposure_of("other"), seen[-1].namespace_of("other"), seen[-1].exposure_of("gone")) == ("direct", None, None)
    assert seen[-1].guidelines_of("other") == ("Use other with care.",)


@pytest.mark.rule("EXPO-22")
@pytest.mark.parametrize("setups", [(), (lambda api: api.on("context", lambda *_: None),)], ids=["plain", "with a context handler"])
def test_a_hidden_declaration_is_in_no_request_and_no_prompt_but_active_recorded_and_callable(setups: Any) -> None:
    async def calls(_id: str, _arguments: Any, _signal: Any, _update: Any, ctx: ToolContext) -> Any:
        outcome = await ctx.execute_tool("other")
        return {"content": outcome.result.content}

    loader = tool(calls, "loader", prepare_loadout=lambda _: {"hidden_declarations": ["other"]})

    async def test(running: Running) -> Any:
        await running.seat.prompt("go")
        requests = running.provider.requests
        return (
            [declared(each.messages) for each in requests],
            declared(running.seat.context_messages),
            running.seat.active_tools,
            "helps otherwise" in running.seat.system_prompt or "with care" in running.seat.system_prompt,
            results(running.seat.context_messages),
        )

    script = [assistant([tool_call("loader", id="c1")]), assistant("done")]
    asked, recorded, active, in_prompt, found = run(test, script, loader, OTHER, setups=setups)

    assert asked == [{"loader": "does it"}] * 2
    assert recorded == {"loader": "does it", "other": "does it"}
    assert active == ("loader", "other")
    assert not in_prompt
    assert found == [("c1", "worked", False)]


@pytest.mark.rule("EXPO-23")
@pytest.mark.parametrize(
    ("bad", "text"), [(lambda _: 1 / 0, "division by zero"), (lambda _: {"hide": []}, "hide: expected no such field; LoadoutChanges has ")]
)
def test_a_hook_that_fails_is_reported_and_the_others_count(bad: Any, text: str) -> None:
    async def test(running: Running) -> Any:
        await running.seat.prompt("go")
        return declared(running.provider.requests[0].messages)["other"], running.seat.errors[-1]

    def setup(api: Any) -> None:
        for each in (preparing(bad), preparing(lambda _: {"descriptions": {"other": "kept"}}, "good"), OTHER):
            api.register_tool(each)

    found, error = run(test, [assistant("done")], setups=(setup,))

    assert found == "kept"
    assert (error.extension_path, error.event, error.error[: len(text)]) == ("<inline:x0>", "prepare_loadout", text)


@pytest.mark.rule("EXPO-20")
def test_a_tool_that_is_not_active_changes_nothing() -> None:
    async def test(running: Running) -> Any:
        running.seat.set_active_tools(["other"])
        await running.seat.prompt("go")
        return declared(running.provider.requests[0].messages)

    assert run(test, [assistant("done")], preparing(lambda _: {"descriptions": {"other": "changed"}}), OTHER) == {"other": "does it"}


@pytest.mark.rule("EXPO-20", "EXPO-21")
def test_what_a_hook_says_otherwise_between_turns_is_declared_anew() -> None:
    texts = iter(["one", "one", "two", "two", "two"])

    async def test(running: Running) -> Any:
        await running.seat.prompt("go")
        return [declared(each.messages)["other"] for each in running.provider.requests]

    script = [assistant([tool_call("other", id="c1")]), assistant("done")]

    assert run(test, script, preparing(lambda _: {"descriptions": {"other": next(texts)}}), OTHER) == ["one", "two"]
