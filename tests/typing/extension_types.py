"""What a type checker says of an extension; nothing here runs. `mypy` over the tests is the test.

`assert_type` fails where a type is another one; a `type: ignore` on a mistake fails where there is no error any more.
"""

from collections.abc import Callable
from typing import Any, assert_type

import attrs

from camshaft.actors.api import (
    AgentEndEvent,
    BoundaryResult,
    CallOutcome,
    CommandContext,
    ExtensionAPI,
    ExtensionContext,
    InputEvent,
    InputResult,
    Model,
    ModelRegistry,
    OnUpdate,
    SessionView,
    Signal,
    ToolCallEvent,
    ToolCallResult,
    ToolContext,
    ToolResult,
    TurnEndEvent,
    define_tool,
)


def on_turn_end(event: TurnEndEvent, ctx: ExtensionContext) -> BoundaryResult:
    assert_type(event.turn_index, int)
    assert_type(ctx.model, Model | None)
    assert_type(ctx.session, SessionView)
    assert_type(ctx.model_registry, ModelRegistry)
    return BoundaryResult()


async def on_input(event: InputEvent, _ctx: ExtensionContext) -> InputResult | None:
    assert_type(event.text, str)
    return None


def on_tool_call(_event: ToolCallEvent, _ctx: ExtensionContext) -> dict[str, Any]:
    return {"block": True}


def on_agent_end(_event: AgentEndEvent, _ctx: ExtensionContext) -> str:
    return "nobody asks"


def registrations(api: ExtensionAPI) -> None:
    assert_type(api.on("turn_end", on_turn_end), Callable[[], None])
    api.on("input", on_input, fail_closed=True)
    api.on("tool_call", on_tool_call)
    api.on("agent_end", on_agent_end)
    api.on("input", lambda event, ctx: InputResult(action="transform", text=event.text.upper() + ctx.cwd))
    api.on("tool_call", lambda event, _ctx: ToolCallResult(block=event.tool_name == "bash"))


def mistakes(api: ExtensionAPI) -> None:
    api.on("turn_ended", on_turn_end)  # type: ignore[call-overload]  # no such event
    api.on("turn_end", on_input)  # type: ignore[call-overload]  # the handler of another event
    api.on("turn_end", lambda _event, _ctx: InputResult(action="handled"))  # type: ignore[call-overload]  # another result
    api.on("turn_end", on_turn_end, fail_closed=True)  # type: ignore[call-overload]  # it cannot
    api.on("input", lambda event, _ctx: event.txt)  # type: ignore[call-overload]  # no such field


def contexts(event: ExtensionContext, command: CommandContext, tool: ToolContext) -> None:
    assert_type(command.cwd, str)
    assert_type(tool.is_idle(), bool)
    assert_type(tool.signal, Signal)
    assert_type(event.signal, Signal | None)
    event.wait_for_idle()  # type: ignore[attr-defined]  # only in commands
    event.modle  # type: ignore[attr-defined]  # noqa: B018  # misspelt


async def actions(api: ExtensionAPI, tool: ToolContext) -> None:
    assert_type(await tool.execute_tool("read"), CallOutcome)
    assert_type((await api.exec("git", ["status"])).code, int)
    assert_type(await api.set_model("a/b"), bool)
    assert_type(api.get_flag("plan"), bool | str | None)
    api.register_flag("plan", type="number")  # type: ignore[arg-type]  # no such type


@attrs.frozen
class Query:
    """Parameters of a tool."""

    words: list[str]


async def search(_id: str, query: Query, _signal: Signal, _on_update: OnUpdate, _ctx: ToolContext) -> ToolResult:
    assert_type(query.words, list[str])
    return ToolResult()


def takes_a_dict(_id: str, _query: dict[str, Any], _signal: Signal, _on_update: OnUpdate, _ctx: ToolContext) -> None:
    """Expects what define_tool does not give."""


def tools(api: ExtensionAPI) -> None:
    api.register_tool(define_tool("search", "d", Query, search))
    define_tool("search", "d", Query, takes_a_dict)  # type: ignore[arg-type]  # it would get a Query

    @api.tool
    def greet(name: str) -> str:
        """Greets."""
        return name

    @api.tool(exposure="deferred")
    async def later(name: str) -> str:
        """Greets later."""
        return name

    assert_type(greet("a"), str)
