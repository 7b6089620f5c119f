"""Every method of the API and every member of the contexts, at every time at which it may not be used.

One table of calls for all tests: it must hold every public member, so that a new one cannot be forgotten.
"""

import inspect
from collections.abc import Callable
from typing import Any, Final

import pytest

from camshaft.actors.contexts import CommandContext, ExtensionContext, ToolContext
from camshaft.actors.extension_api import LOADING_TEXT, ExtensionAPI
from camshaft.actors.generation import STALE, OnlyInCommands, StaleContext
from camshaft.actors.misuse import ExtensionMisuse
from camshaft.actors.model_registry import ModelRegistry
from camshaft.actors.session_view import SessionView
from camshaft.extensions_std.providers.scripted import assistant, faux_model, tool_call
from tests.actors.running import opened, simulate

Call = Callable[[Any], Any]


async def works(*_: Any) -> Any:
    return {"content": []}


TOOL = {"name": "t", "description": "d", "parameters": {"type": "object"}, "execute": works}


def function() -> None:
    """A tool."""


REGISTRATIONS: Final[dict[str, Call]] = {
    "on": lambda api: api.on("turn_end", print),
    "register_tool": lambda api: api.register_tool(TOOL),
    "tool": lambda api: api.tool(function),
    "register_command": lambda api: api.register_command("c", print),
    "register_shortcut": lambda api: api.register_shortcut("f1", print),
    "register_flag": lambda api: api.register_flag("f", type="boolean"),
    "get_flag": lambda api: api.get_flag("f"),
    "register_message_renderer": lambda api: api.register_message_renderer("k", print),
    "register_entry_renderer": lambda api: api.register_entry_renderer("k", print),
    "register_tool_renderer": lambda api: api.register_tool_renderer(print),
    "register_markdown_transformer": lambda api: api.register_markdown_transformer(print),
    "register_provider": lambda api: api.register_provider("p", {"base_url": "u"}),
    "unregister_provider": lambda api: api.unregister_provider("p"),
    "register_virtual_model": lambda api: api.register_virtual_model({"provider": "p", "id": "v", "name": "V", "route": print}),
    "unregister_virtual_model": lambda api: api.unregister_virtual_model("p", "v"),
    "register_mcp_server": lambda api: api.register_mcp_server("s", {"command": "x"}),
    "unregister_mcp_server": lambda api: api.unregister_mcp_server("s"),
    "get_mcp_servers": lambda api: api.get_mcp_servers(),
    "exec": lambda api: api.exec("true"),
    "events.on": lambda api: api.events.on("c", print),
    "events.emit": lambda api: api.events.emit("c", 1),
}
"""Allowed in a factory (EXT-21)."""

ACTIONS: Final[dict[str, Call]] = {
    "send_message": lambda api: api.send_message({"custom_type": "k"}),
    "send_user_message": lambda api: api.send_user_message("x"),
    "append_entry": lambda api: api.append_entry("k"),
    "set_session_name": lambda api: api.set_session_name("n"),
    "get_session_name": lambda api: api.get_session_name(),
    "set_label": lambda api: api.set_label("e", "l"),
    "get_active_tools": lambda api: api.get_active_tools(),
    "get_all_tools": lambda api: api.get_all_tools(),
    "get_settings": lambda api: api.get_settings(),
    "set_active_tools": lambda api: api.set_active_tools(["t"]),
    "get_commands": lambda api: api.get_commands(),
    "get_thinking_level": lambda api: api.get_thinking_level(),
    "set_thinking_level": lambda api: api.set_thinking_level("off"),
    "set_model": lambda api: api.set_model("p/m"),
}
"""Refused in a factory (EXT-22)."""

CALLS: Final = {**REGISTRATIONS, **ACTIONS}


def public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


def test_the_table_has_every_member_of_the_api() -> None:
    ours = {"checked", "host"}

    assert {name.partition(".")[0] for name in CALLS} == public(ExtensionAPI) - ours


async def outcome(call: Call, given: Any) -> BaseException | None:
    try:
        answer = call(given)
        if inspect.isawaitable(answer):
            await answer
    except Exception as error:  # noqa: BLE001  # whatever the author gets
        return error
    return None


async def outcomes(given: Any, calls: dict[str, Call]) -> dict[str, BaseException | None]:
    return {name: await outcome(call, given) for name, call in calls.items()}


# -- in a factory ------------------------------------------------------------------------


@pytest.mark.rule("EXT-21", "EXT-22")
def test_in_a_factory_registrations_work_and_actions_say_that_it_is_too_early() -> None:
    found: dict[str, BaseException | None] = {}

    async def setup(api: Any) -> None:
        found.update(await outcomes(api, {name: call for name, call in CALLS.items() if name != "exec"}))

    async def load() -> None:
        async with opened([], setup):
            pass

    simulate(load)

    refused = {name: str(error) for name, error in found.items() if error is not None}
    assert refused == {**dict.fromkeys(ACTIONS, LOADING_TEXT), "set_model": "Extension runtime not initialized"}
    assert {type(error) for error in found.values() if error is not None} == {ExtensionMisuse}


# -- after a failed factory ---------------------------------------------------------------


@pytest.mark.rule("EXT-24", "PRV-20")
def test_the_api_of_an_extension_that_failed_refuses_everything() -> None:
    kept: list[Any] = []

    def failing(api: Any) -> None:
        kept.append(api)
        raise ValueError("bad")

    async def test() -> dict[str, BaseException | None]:
        async with opened([], failing):
            return await outcomes(kept[0], CALLS)
        raise AssertionError

    text = 'Extension "<inline:x0>" failed to load and its API is no longer active.'
    assert {name: str(error) for name, error in simulate(test).items()} == dict.fromkeys(CALLS, text)


# -- after the generation -----------------------------------------------------------------

MEMBERS: Final[dict[str, Call]] = {
    "compact": lambda ctx: ctx.compact(),
    "is_idle": lambda ctx: ctx.is_idle(),
    "has_pending_messages": lambda ctx: ctx.has_pending_messages(),
    "is_project_trusted": lambda ctx: ctx.is_project_trusted(),
    "abort": lambda ctx: ctx.abort(),
    "shutdown": lambda ctx: ctx.shutdown(),
    "get_context_usage": lambda ctx: ctx.get_context_usage(),
    "get_system_prompt": lambda ctx: ctx.get_system_prompt(),
    "ask_model": lambda ctx: ctx.ask_model("x"),
    "fetch_deferred": lambda ctx: ctx.fetch_deferred({}),
    "cancel_deferred": lambda ctx: ctx.cancel_deferred({}),
    "start_task": lambda ctx: ctx.start_task(works),
    "wait_for_idle": lambda ctx: ctx.wait_for_idle(),
    "navigate_tree": lambda ctx: ctx.navigate_tree("e"),
    "get_system_prompt_options": lambda ctx: ctx.get_system_prompt_options(),
    "new_session": lambda ctx: ctx.new_session(),
    "fork": lambda ctx: ctx.fork("e"),
    "switch_session": lambda ctx: ctx.switch_session("p"),
    "reload": lambda ctx: ctx.reload(),
    "execute_tool": lambda ctx: ctx.execute_tool("t"),
}
"""How the members of contexts are called that are no values."""

CHILDREN: Final = {"open_child"}
"""Tested with child sessions."""
OF_THE_CALL: Final = {"tool_call_id", "signal"}
"""Data of a tool's call, which nobody has to be asked for."""


def uses(cls: type) -> dict[str, Call]:
    """A use of every member of a context."""
    names = sorted(public(cls) - CHILDREN - (OF_THE_CALL if cls is ToolContext else set()))
    return {name: MEMBERS.get(name, lambda ctx, name=name: getattr(ctx, name)) for name in names}  # type: ignore[misc]  # bound in its turn


@pytest.fixture(scope="module")
def stale() -> dict[str, Any]:
    """An API and contexts of a session that was closed."""
    kept: dict[str, Any] = {}

    def execute(_id: str, _arguments: Any, _signal: Any, _update: Any, ctx: Any) -> Any:
        kept["tool"] = ctx
        return {"content": []}

    def setup(api: Any) -> None:
        kept["api"] = api
        kept["unsubscribe"] = api.on("turn_end", lambda *_: None)
        kept["unlisten"] = api.events.on("c", print)
        api.on("turn_end", lambda _event, ctx: kept.update(event=ctx, session=ctx.session, registry=ctx.model_registry))
        api.register_tool({**TOOL, "execute": execute})
        api.register_command("c", lambda _arguments, ctx: kept.update(command=ctx))

    async def close() -> None:
        async with opened([assistant([tool_call("t", id="c1")]), assistant("done")], setup) as running:
            await running.seat.prompt("/c")
            await running.seat.prompt("go")

    simulate(close)
    return kept


def stale_of(given: Any, calls: dict[str, Call]) -> dict[str, Any]:
    async def test() -> dict[str, BaseException | None]:
        return await outcomes(given, calls)

    found: dict[str, Any] = simulate(test)
    return found


@pytest.mark.rule("EXT-46", "ERR-2")
def test_every_method_of_a_stale_api_says_so(stale: dict[str, Any]) -> None:
    found = stale_of(stale["api"], CALLS)

    assert {name: (type(error), str(error)) for name, error in found.items()} == dict.fromkeys(CALLS, (StaleContext, STALE))


@pytest.mark.rule("EXT-46", "CTXT-1")
@pytest.mark.parametrize(("name", "cls"), [("event", ExtensionContext), ("command", CommandContext), ("tool", ToolContext)])
def test_every_member_of_a_stale_context_says_so(stale: dict[str, Any], name: str, cls: type) -> None:
    found = stale_of(stale[name], uses(cls))

    assert {member: type(error) for member, error in found.items()} == dict.fromkeys(uses(cls), StaleContext)


VIEW: Final[dict[str, Call]] = {
    **{name: lambda view, name=name: getattr(view, name)() for name in public(SessionView)},  # type: ignore[misc]  # bound in its turn
    "get_entry": lambda view: view.get_entry("e"),
    "get_label": lambda view: view.get_label("e"),
}
REGISTRY: Final[dict[str, Call]] = {
    "get_all": lambda registry: registry.get_all(),
    "get_available": lambda registry: registry.get_available(),
    "find": lambda registry: registry.find("p", "m"),
    "resolve": lambda registry: registry.resolve("p/m"),
    "has_configured_auth": lambda registry: registry.has_configured_auth(None),
    "get_models_of_type": lambda registry: registry.get_models_of_type("image"),
    "get_available_of_type": lambda registry: registry.get_available_of_type("image"),
    "find_of_type": lambda registry: registry.find_of_type("image", "p", "m"),
    "is_using_oauth": lambda registry: registry.is_using_oauth(faux_model()),
    "get_provider": lambda registry: registry.get_provider("p"),
    "get_provider_display_name": lambda registry: registry.get_provider_display_name("p"),
    "get_provider_auth_status": lambda registry: registry.get_provider_auth_status("p"),
    "get_api_key_and_headers": lambda registry: registry.get_api_key_and_headers(faux_model()),
    "get_api_key_for_provider": lambda registry: registry.get_api_key_for_provider("p"),
    "get_provider_auth": lambda registry: registry.get_provider_auth("p"),
    "stream": lambda registry: registry.stream(faux_model(), "a"),
    "stream_simple": lambda registry: registry.stream_simple(faux_model(), "a"),
    "complete": lambda registry: registry.complete(faux_model(), "a"),
    "generate_images": lambda registry: registry.generate_images(faux_model(), "a"),
    "classify": lambda registry: registry.classify(faux_model(), "a"),
    "refresh": lambda registry: registry.refresh(),
    "get_error": lambda registry: registry.get_error(),
    "get_registered_provider_ids": lambda registry: registry.get_registered_provider_ids(),
    "get_registered_provider_config": lambda registry: registry.get_registered_provider_config("p"),
    "get_registered_native_provider": lambda registry: registry.get_registered_native_provider("p"),
}


@pytest.mark.rule("EXT-47")
def test_what_was_taken_from_a_context_earlier_is_stale_too(stale: dict[str, Any]) -> None:
    assert set(REGISTRY) == public(ModelRegistry)

    found = {**stale_of(stale["session"], VIEW), **stale_of(stale["registry"], REGISTRY)}

    assert {name: type(error) for name, error in found.items()} == dict.fromkeys([*VIEW, *REGISTRY], StaleContext)


@pytest.mark.rule("EXT-46")
def test_an_unsubscribe_function_can_still_be_called(stale: dict[str, Any]) -> None:
    assert [stale["unsubscribe"](), stale["unsubscribe"](), stale["unlisten"]()] == [None] * 3


# -- only in commands ---------------------------------------------------------------------


@pytest.mark.rule("CTXT-3", "CTXT-9")
def test_what_only_commands_may_do_says_so_everywhere_else() -> None:
    only = sorted(public(CommandContext) - public(ExtensionContext))
    found: list[dict[str, str]] = []

    async def note(ctx: Any) -> None:
        errors = await outcomes(ctx, {name: lambda ctx, name=name: getattr(ctx, name) for name in only})  # type: ignore[misc]  # bound in its turn
        assert {type(error) for error in errors.values()} == {OnlyInCommands}
        found.append({name: str(error) for name, error in errors.items()})

    async def execute(_id: str, _arguments: Any, _signal: Any, _update: Any, ctx: Any) -> Any:
        await note(ctx)
        return {"content": []}

    def setup(api: Any) -> None:
        api.register_tool({**TOOL, "execute": execute})
        api.on("session_start", lambda _event, ctx: note(ctx))

    async def test() -> None:
        async with opened([assistant([tool_call("t", id="c1")]), assistant("done")], setup) as running:
            await running.seat.prompt("go")
            assert running.errors() == []

    simulate(test)

    assert found == [{name: f"{name} is only available in command handlers" for name in only}] * 2
