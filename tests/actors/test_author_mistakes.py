"""Mistakes an extension author can make, and the message each gives.

Tables: what goes wrong while loading, what a call of the API refuses, and what a handler or a tool that misbehaves
is reported with. None of them ever touches the conversation: the next prompt is answered. `mistakes.md` in design/ has
a row for each, with the message and what to do; whatever is compared here is compared with that row as well.

Longer than 400 lines because of the tables.
"""

import asyncio
import re
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from camshaft.actors.api import CommandContext, ExtensionAPI
from camshaft.actors.contexts import OF_THE_API
from camshaft.actors.generation import OnlyInCommands, StaleContext
from camshaft.actors.host import ExtensionMisuse, ExtensionSource, LoadError
from camshaft.extensions_std.providers.scripted import assistant, tool_call
from camshaft.kernel.boundary import BoundaryResult
from camshaft.kernel.entries import CustomDraft
from camshaft.kernel.hook_events import InputResult, ToolCallResult
from camshaft.kernel.hooks import HOOKS
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.tools import ToolDefinition
from tests.actors.running import handling, opened, said, simulate, tool

PAGE: Final = (Path(__file__).parents[2] / "design/mistakes.md").read_text(encoding="utf-8")
ROW: Final = re.compile(r"^\| (.+?) \| `(.+?)` \| (.+?) \|$", re.MULTILINE)
TOLD: Final = {section.partition("\n")[0]: ROW.findall(section) for section in PAGE.split("\n## ")[1:]}
"""By section: mistake, message, what to do. `…` in a message stands for anything."""


def require_told(section: str, name: str, message: str, *paths: str) -> None:
    """Fails if the page does not give this message for the mistake; the extension is called `brief.py` there."""
    shown = message
    for path in (*paths, "<inline:x0>"):
        shown = shown.replace(path, "brief.py")
    rows = {mistake: said for mistake, said, _ in TOLD[section]}
    assert re.fullmatch(".*".join([re.escape(part) for part in rows[name].split("…")]), shown), f"{name}: {shown}"


OK = {"content": [{"type": "text", "text": "ok"}]}


async def execute(*_: Any) -> Any:
    return OK


SCHEMA = {"type": "object"}
GOOD_TOOL = {"name": "t", "description": "d", "parameters": SCHEMA, "execute": execute}


# -- loading -----------------------------------------------------------------------------

SOURCES: dict[str, tuple[str | None, str]] = {
    "no file": (None, "Extension path does not exist: {path}"),
    "syntax error": ("def setup(api):\n    return (\n", "Failed to load extension: '(' was never closed ({path}, line 2)"),
    "error at import": (
        "x = 1\nraise ValueError('bad')\n",
        "Failed to load extension: ValueError: bad ({path}, line 2)",
    ),
    "missing module": (
        "import no_such_module_at_all\n",
        "Failed to load extension: ModuleNotFoundError: No module named 'no_such_module_at_all' ({path}, line 1)",
    ),
    "no setup": ("def set_up(api): pass\n", "Extension does not export a valid factory function: {path}"),
    "setup is no function": ("setup = 3\n", "Extension does not export a valid factory function: {path}"),
    "setup takes nothing": (
        "def setup(): pass\n",
        "Failed to load extension: TypeError: setup() takes 0 positional arguments but 1 was given ({path})",
    ),
    "setup raises": ("def setup(api):\n    raise ValueError('bad')\n", "Failed to load extension: ValueError: bad ({path}, line 2)"),
    "setup lacks a key": ("def setup(api):\n    {}['x']\n", "Failed to load extension: KeyError: 'x' ({path}, line 2)"),
    "async setup raises": (
        "async def setup(api):\n    raise ValueError('bad')\n",
        "Failed to load extension: ValueError: bad ({path}, line 2)",
    ),
    "an action while loading": (
        "def setup(api):\n    api.set_active_tools(['read'])\n",
        "Failed to load extension: ExtensionMisuse: Extension runtime not initialized. Action methods cannot be called during extension"
        " loading. ({path}, line 2)",
    ),
    "an unknown event": (
        "def setup(api):\n    api.on('turn_ended', print)\n",
        "Failed to load extension: ExtensionMisuse: there is no event 'turn_ended' (did you mean 'turn_end'?); the events are "
        + ", ".join(HOOKS)
        + " ({path}, line 2)",
    ),
}


@pytest.mark.rule("EXT-8", "EXT-22", "EXT-24", "EXT-25", "EVT-4")
@pytest.mark.parametrize("name", SOURCES)
def test_an_extension_that_does_not_load_is_named_with_its_reason(tmp_path: Path, name: str) -> None:
    source, error = SOURCES[name]
    path = tmp_path / "extension.py"
    (tmp_path / ("extension.py" if source is not None else "other.py")).write_text(source or "")

    async def loaded() -> tuple[tuple[LoadError, ...], list[tuple[str | None, str]]]:
        async with opened([assistant("done")], sources=[ExtensionSource(path=str(path))]) as running:
            await running.seat.prompt("go")
            return running.seat.load_errors, said(running.seat.context_messages)
        raise AssertionError

    errors, found = simulate(loaded)

    assert errors == (LoadError(path=str(path), error=error.format(path=path)),)
    require_told("While loading", name, errors[0].error, str(path))
    assert found == [("user", "go"), ("assistant", "done")]


@pytest.mark.rule("EXT-24")
def test_an_extension_that_fails_halfway_leaves_nothing_and_its_api_is_dead() -> None:
    kept: list[Any] = []

    def failing(api: Any) -> None:
        kept.append(api)
        api.on("turn_end", lambda *_: kept.append("called"))
        api.register_tool(GOOD_TOOL)
        api.register_command("c", lambda *_: None)
        raise ValueError("bad")

    async def loaded() -> tuple[Any, ...]:
        async with opened([assistant("done")], failing) as running:
            await running.seat.prompt("go")
            with pytest.raises(ExtensionMisuse) as caught:
                kept[0].on("turn_end", print)
            seat = running.seat
            return [each.error for each in seat.load_errors], tuple(seat.tools), seat.commands(), str(caught.value), kept[1:]
        raise AssertionError

    text = 'Extension "<inline:x0>" failed to load and its API is no longer active.'
    assert simulate(loaded) == (["bad"], (), (), text, [])


@pytest.mark.rule("EXT-46")
def test_an_api_and_a_context_that_outlive_their_session_raise_on_every_use() -> None:
    kept: list[Any] = []

    def setup(api: Any) -> None:
        kept.append(api)
        api.on("turn_end", lambda _event, ctx: kept.append(ctx))

    async def closed() -> None:
        async with opened([assistant("done")], setup) as running:
            await running.seat.prompt("go")

    simulate(closed)

    api, context = kept
    for use in (lambda: api.on("turn_end", print), api.get_active_tools, lambda: context.model, context.is_idle, context.abort):
        with pytest.raises(StaleContext, match="stale after session replacement or reload"):
            use()


@pytest.mark.rule("EXT-30")
def test_of_two_tools_with_one_name_the_first_stays_and_the_second_owner_is_told() -> None:
    def first(api: Any) -> None:
        api.register_tool({**GOOD_TOOL, "description": "first"})

    def second(api: Any) -> None:
        api.register_tool({**GOOD_TOOL, "description": "second"})

    async def loaded() -> tuple[str, list[str]]:
        async with opened([], first, second) as running:
            return running.seat.tools["t"].definition.description, [each.error for each in running.seat.load_errors]
        raise AssertionError

    assert simulate(loaded) == ("first", ['Tool "t" conflicts with <inline:x0>'])


# -- calls of the API --------------------------------------------------------------------


def undescribed(text):  # type: ignore[no-untyped-def]  # the mistake
    """Counts the words of a text."""


def undocumented(text: str) -> None: ...


TOOL = 'tool "t" registered by "<inline:x0>"'
CALLS: dict[str, tuple[Any, str]] = {
    "an unknown event": (
        lambda api: api.on("turn_ended", print),
        "there is no event 'turn_ended' (did you mean 'turn_end'?); the events are project_trust, ",
    ),
    "a handler that is none": (lambda api: api.on("turn_end", None), "the handler of 'turn_end' is None; expected a function"),
    "a handler that yields": (
        lambda api: api.on("turn_end", takes_and_yields),
        "the handler of 'turn_end' contains a yield, so calling it runs nothing of it; return the answer instead",
    ),
    "a handler without the context": (
        lambda api: api.on("turn_end", takes_one),
        "the handler of 'turn_end' takes (event); it is called with (event, ctx), so it must take that",
    ),
    "a command handler without the arguments": (
        lambda api: api.register_command("c", lambda ctx: None),
        "the handler of command 'c' takes (ctx); it is called with (args, ctx), so it must take that",
    ),
    "execute of another signature": (
        lambda api: api.register_tool({**GOOD_TOOL, "execute": lambda text: text}),
        f"execute of {TOOL} takes (text); it is called with (tool_call_id, params, signal, on_update, ctx), so it must take that",
    ),
    "a function without annotations": (
        lambda api: api.register_tool(undescribed),
        "function undescribed registered as a tool by \"<inline:x0>\": parameter 'text' has no annotation; a model must be told its type",
    ),
    "a function without a docstring": (
        lambda api: api.register_tool(undocumented),
        'function undocumented registered as a tool by "<inline:x0>" has no docstring; a model reads it as the description of the tool',
    ),
    "fail_closed where it means nothing": (
        lambda api: api.on("turn_end", print, fail_closed=True),
        "'turn_end' cannot fail closed; these can: session_before_switch, ",
    ),
    "a listener that is none": (lambda api: api.events.on("c", 3), "the listener of channel 'c' is 3; expected a function"),
    "a tool without a schema": (
        lambda api: api.register_tool({"name": "t", "description": "d", "execute": execute}),
        'Tool "t" registered by extension "<inline:x0>" must define an object parameter schema.',
    ),
    "a tool whose schema is a text": (
        lambda api: api.register_tool({**GOOD_TOOL, "parameters": "object"}),
        'Tool "t" registered by extension "<inline:x0>" must define an object parameter schema.',
    ),
    "a tool that takes a list": (
        lambda api: api.register_tool({**GOOD_TOOL, "parameters": {"type": "array"}}),
        'Tool "t" registered by extension "<inline:x0>" must define an object parameter schema, not one of type \'array\'.',
    ),
    "a tool with a field too many": (
        lambda api: api.register_tool({**GOOD_TOOL, "exposed": True}),
        "tool registered by \"<inline:x0>\": no field 'exposed'; expected annotations, ",
    ),
    "a tool that cannot be run": (
        lambda api: api.register_tool({**GOOD_TOOL, "execute": "echo"}),
        f"execute of {TOOL} is 'echo'; expected a function",
    ),
    "a tool without a function": (
        lambda api: api.register_tool({"name": "t", "description": "d", "parameters": SCHEMA}),
        f"execute of {TOOL} is None; expected a function",
    ),
    "a tool without a name": (
        lambda api: api.register_tool({**GOOD_TOOL, "name": ""}),
        "tool registered by \"<inline:x0>\": name ''; expected a text",
    ),
    "an unknown exposure": (
        lambda api: api.register_tool({**GOOD_TOOL, "exposure": "visible"}),
        f"{TOOL}: exposure 'visible'; expected one of direct, model-only, codemode, deferred, hidden",
    ),
    "an unknown execution mode": (
        lambda api: api.register_tool(
            ToolDefinition(name="t", description="", parameters=FrozenDict(SCHEMA), execute=execute, execution_mode="serial")  # type: ignore[arg-type]  # the mistake
        ),
        f"{TOOL}: execution_mode 'serial'; expected parallel or sequential",
    ),
    "guidelines as one text": (
        lambda api: api.register_tool({**GOOD_TOOL, "prompt_guidelines": "be careful"}),
        f"{TOOL}: prompt_guidelines 'be careful'; expected a list of texts",
    ),
    "a shortcut without a key": (lambda api: api.register_shortcut("", print), "the key of a shortcut is ''; expected a text"),
    "a shortcut without a function": (lambda api: api.register_shortcut("f1", 3), "the handler of shortcut 'f1' is 3; expected a function"),
    "a flag without a name": (lambda api: api.register_flag("", type="string"), "the name of a flag is ''; expected a text"),
    "a flag of no type": (
        lambda api: api.register_flag("f", type="number"),
        "type of flag 'f' is 'number'; expected boolean or string",
    ),
    "a flag with a wrong default": (
        lambda api: api.register_flag("f", type="boolean", default="yes"),
        'Invalid default for flag "f": expected boolean, got string',
    ),
    "a text flag with a number": (
        lambda api: api.register_flag("f", type="string", default=3),
        'Invalid default for flag "f": expected string, got number',
    ),
    "a message renderer that is none": (
        lambda api: api.register_message_renderer("k", None),
        "the message renderer of 'k' is None; expected a function",
    ),
    "an entry renderer of nothing": (
        lambda api: api.register_entry_renderer("", print),
        "the custom_type of the entry renderer is ''; expected a text",
    ),
    "a tool renderer that is none": (lambda api: api.register_tool_renderer("t"), "the tool renderer is 't'; expected a function"),
    "a transformer that is none": (
        lambda api: api.register_markdown_transformer(3),
        "the Markdown transformer is 3; expected a function",
    ),
    "a transformer for one text": (
        lambda api: api.register_markdown_transformer(print, message_types="user"),
        "message_types of the Markdown transformer: 'user'; expected a list of user, assistant, ",
    ),
    "a transformer for an unknown place": (
        lambda api: api.register_markdown_transformer(print, message_types=["user", "footer"]),
        "message_types of the Markdown transformer: 'footer'; expected a list of user, assistant, ",
    ),
    "completions that are none": (
        lambda api: api.register_command("c", print, get_argument_completions=["a"]),
        "get_argument_completions of command 'c' is ['a']; expected a function",
    ),
    "a tool that is no tool": (
        lambda api: api.register_tool(3),
        'tool registered by "<inline:x0>": 3; expected ToolDefinition(...), a dict with its fields or a typed function',
    ),
    "a hook of a tool that is none": (
        lambda api: api.register_tool({**GOOD_TOOL, "prepare_loadout": {}}),
        f"prepare_loadout of {TOOL} is {{}}; expected a function",
    ),
    "a namespace that is a text": (
        lambda api: api.register_tool({**GOOD_TOOL, "namespace": "docs"}),
        f"{TOOL}: namespace 'docs'; expected Namespace(...) or a dict with its fields",
    ),
    "annotations with a field too many": (
        lambda api: api.register_tool({**GOOD_TOOL, "annotations": {"read_only": True}}),
        f"{TOOL}: annotations has no field 'read_only'; expected read_only_hint, destructive_hint, ",
    ),
    "a command without a name": (lambda api: api.register_command("", print), "a command needs a name and a handler, got '' and "),
    "a handler left out": (lambda api: api.on("turn_end"), "the handler of 'turn_end' is None; expected a function"),
    "a command with its slash": (
        lambda api: api.register_command("/c", print),
        "the name of a command is '/c'; expected one without a slash in front and without spaces",
    ),
    "a command of two words": (
        lambda api: api.register_command("c d", print),
        "the name of a command is 'c d'; expected one without a slash in front and without spaces",
    ),
    "a flag with its dashes": (
        lambda api: api.register_flag("--f", type="string"),
        "the name of a flag is '--f'; expected it without the dashes",
    ),
    "an entry without its type": (lambda api: api.append_entry({"n": 1}), "the custom_type of an entry is {'n': 1}; expected a text"),
    "what the context has": (
        lambda api: api.start_task(print),
        "the API has no 'start_task'; it is ctx.start_task, of the context that handlers, tools and commands get",
    ),
    "a misspelt call": (lambda api: api.register_tol(print), "the API has no 'register_tol' (did you mean 'register_tool'"),
    "a command without a handler": (lambda api: api.register_command("c", None), "a command needs a name and a handler, got 'c' and None"),
    "a way that does not exist": (
        lambda api: api.send_message({"custom_type": "k"}, deliver_as="later"),
        "deliver_as 'later'; expected steer, followUp or nextTurn",
    ),
    "nextTurn for a user message": (
        lambda api: api.send_user_message("x", deliver_as="nextTurn"),
        "deliver_as 'nextTurn'; expected steer or followUp",
    ),
    "a message without its type": (lambda api: api.send_message({"content": "x"}), "custom_type: "),
    "a message with a field too many": (
        lambda api: api.send_message({"custom_type": "k", "trigger": True}),
        "trigger: expected no such field; CustomInput has ",
    ),
    "content that is none": (lambda api: api.send_user_message(3), "content: "),
    "active tools as one text": (lambda api: api.set_active_tools("read"), "active tools 'read'; expected a list of names"),
    "state that is no JSON": (lambda api: api.append_entry("k", {"a": {1, 2}}), "data.a: {1, 2} (set) is not JSON; "),
    "a label of nothing": (lambda api: api.set_label("gone", "x"), "Entry gone not found"),
    "an unknown level": (lambda api: api.set_thinking_level("most"), "thinking level 'most'; expected one of off, "),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_cannot_be_meant_is_refused_where_it_is_written(name: str) -> None:
    call, text = CALLS[name]
    said_: list[str] = []

    def setup(api: Any) -> None:
        def start(_event: Any, _ctx: Any) -> None:
            try:
                call(api)
            except Exception as error:  # noqa: BLE001  # whatever the author gets
                said_.append(str(error))

        api.on("session_start", start)

    async def called() -> list[tuple[str | None, str]]:
        async with opened([assistant("done")], setup) as running:
            await running.seat.prompt("go")
            return said(running.seat.context_messages)
        raise AssertionError

    assert simulate(called) == [("user", "go"), ("assistant", "done")]
    assert [shown[: len(text)] for shown in said_] == [text]
    require_told("Calls of the API", name, said_[0])


def test_what_the_context_says_is_of_the_api_is_there() -> None:
    assert [name for name in OF_THE_API if not hasattr(ExtensionAPI, name)] == []
    assert [name for name in OF_THE_API if hasattr(CommandContext, name)] == []


# -- handlers ----------------------------------------------------------------------------


def raises(*_: Any) -> Any:
    raise ValueError("bad")


async def raises_later(*_: Any) -> Any:
    await trio.lowlevel.checkpoint()
    raise ExceptionGroup("both", [ValueError("one"), ValueError("two")])


async def waits_elsewhere(*_: Any) -> None:
    await asyncio.get_running_loop().run_in_executor(None, print)


async def takes_and_yields(event: Any, _ctx: Any) -> Any:
    yield event


def takes_one(event: Any) -> None:
    """A handler that forgot the context."""


def changes(event: Any, _ctx: Any) -> None:
    event.turn_index = 3


def giving(value: Any) -> Any:
    return lambda *_: value


HANDLERS: dict[str, tuple[str, Any, str | None]] = {
    "raises": ("turn_end", raises, "bad"),
    "raises a group": ("turn_end", raises_later, "both (2 sub-exceptions)"),
    "ends the program": ("turn_end", lambda *_: sys.exit(3), "the extension called sys.exit(3); use ctx.shutdown() to "),
    "misspells a field": ("turn_end", lambda event, _ctx: event.tool_result, "'TurnEndEvent' object has no attribute 'tool_result' (did "),
    "changes an event": ("turn_end", changes, "can't set attribute"),
    "asks the context for a call of the API": (
        "turn_end",
        lambda _event, ctx: ctx.send_message("x"),
        "ExtensionContext has no attribute 'send_message'; it is api.send_message, of what setup(api) gets",
    ),
    "starts a task by calling it": (
        "turn_end",
        lambda _event, ctx: ctx.start_task(raises_later()),
        "start_task was given the result of raises_later(...); give the function, then its arguments: start_task(raises_later, ...)",
    ),
    "starts a task that takes less": (
        "turn_end",
        lambda _event, ctx: ctx.start_task(takes_one, 1, 2),
        "the function of start_task takes (event); it is called with (1, 2), so it must take that",
    ),
    "waits on asyncio": ("turn_end", waits_elsewhere, "no running event loop (this runs on Trio, not on asyncio: "),
    "returns a text": ("turn_end", giving("go on"), "turn_end handler returned str: "),
    "returns a truth value": ("input", giving(True), "input handler returned bool: "),
    "returns another result": ("turn_end", giving(InputResult(action="handled")), "turn_end handler returned InputResult: "),
    "returns an unknown key": (
        "turn_end",
        giving({"continue_run": True}),
        "turn_end handler returned dict: continue_run: expected no such field; BoundaryResult has continue, entries",
    ),
    "returns a camelCase key": (
        "before_agent_start",
        giving({"systemPrompt": "x"}),
        "before_agent_start handler returned dict: systemPrompt: ",
    ),
    "returns a wrong type": (
        "turn_end",
        giving({"continue": "yes"}),
        "turn_end handler returned dict: continue: expected true or false, got 'yes'",
    ),
    "returns a wrong type in its class": (
        "turn_end",
        giving(BoundaryResult(continue_="yes")),  # type: ignore[arg-type]  # the mistake
        "turn_end handler returned BoundaryResult: continue: expected true or false, got 'yes'",
    ),
    "returns entries as one draft": (
        "turn_end",
        giving({"entries": CustomDraft(custom_type="k")}),
        "turn_end handler returned dict: entries: ",
    ),
    "transforms without a text": ("input", giving({"action": "transform"}), "input handler returned a transform without text"),
    "returns nothing": ("turn_end", giving(None), None),
    "returns to nobody": ("agent_start", giving("ignored"), None),
}


@pytest.mark.rule("LOOP-49", "ERR-1")
@pytest.mark.parametrize("name", HANDLERS)
def test_a_handler_that_misbehaves_is_reported_once_and_the_run_goes_on(name: str) -> None:
    hook, handler, text = HANDLERS[name]

    async def handled() -> tuple[list[str], list[tuple[str | None, str]], list[str]]:
        async with opened([assistant("done")], handling(hook, handler)) as running:
            await running.seat.prompt("go")
            errors = running.errors()
            assert all([(path, event) == ("<inline:x0>", hook) for path, event, _ in errors])
            assert all([error.place is not None and error.place.startswith(__file__) for error in running.seat.errors])
            kept = [each.error for each in running.seat.errors]
            return [error for _, _, error in errors], said(running.seat.context_messages), kept
        raise AssertionError

    errors, found, kept = simulate(handled)

    assert [error[: len(text or "")] for error in errors] == ([text] if text is not None else [])
    assert kept == errors
    for error in errors:
        require_told("Handlers", name, error)
    assert found == [("user", "go"), ("assistant", "done")]


GATES: dict[str, tuple[Any, str]] = {
    "raises": (raises, "bad"),
    "misspells a field": (
        giving({"blocked": True}),
        "tool_call handler returned dict: blocked: expected no such field; ToolCallResult has ",
    ),
    "gives no reason": (giving(ToolCallResult(block=True)), "Tool execution was blocked"),
    "puts what is no JSON into the arguments": (lambda event, _ctx: event.input.update(x={1}), "input.x: {1} (set) is not JSON"),
}


@pytest.mark.rule("TOOL-21")
@pytest.mark.parametrize("name", GATES)
def test_a_gate_that_misbehaves_blocks_the_call(name: str) -> None:
    handler, text = GATES[name]

    async def handled() -> list[tuple[str | None, str]]:
        script = [assistant(tool_call("work")), assistant("done")]
        async with opened(script, handling("tool_call", handler), tools=[tool(execute)]) as running:
            await running.seat.prompt("go")
            return said(running.seat.context_messages)
        raise AssertionError

    shown = [shown for role, shown in simulate(handled) if role == "toolResult"]
    assert [each[: len(text)] for each in shown] == [text]
    require_told("Gates", name, shown[0])


# -- tools -------------------------------------------------------------------------------


def number(_text: str = "") -> Any:
    """A typed function."""
    return 3


def many(_text: str = "") -> Any:
    """A typed function."""
    return ["one"]


def lacks(_text: str = "") -> Any:
    """A typed function."""
    return dict[str, str]()["x"]


def leaves(_text: str = "") -> Any:
    """A typed function."""
    sys.exit(3)


async def gives_nothing(*_: Any) -> None:
    return None


TOOLS: dict[str, tuple[Any, str, bool]] = {
    "a typed function gives a number": (number, "Tool work returned no valid result object: 3 (int); expected ToolResult(", True),
    "a typed function gives a list": (many, "Tool work returned no valid result object: ['one'] (list); expected ToolResult(", True),
    "execute gives nothing": (
        {**GOOD_TOOL, "execute": gives_nothing},
        "Tool work returned no result; expected a result object with content",
        True,
    ),
    "raises": (lacks, "KeyError: 'x'", False),
    "ends the program": (leaves, "the extension called sys.exit(3); use ctx.shutdown() to ask the host to end", False),
}
"""What is registered, what the model is told, and whether the author is told the same: what a tool raises is for the model."""


@pytest.mark.rule("TOOL-25", "TOOL-27")
@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_that_misbehaves_gives_an_error_result(name: str) -> None:
    given, text, is_reported = TOOLS[name]

    def setup(api: Any) -> None:
        if isinstance(given, dict):
            api.register_tool({**given, "name": "work"})
        else:
            api.tool(name="work")(given)

    async def called() -> tuple[list[str], list[str], list[str | None]]:
        async with opened([assistant(tool_call("work")), assistant("done")], setup) as running:
            await running.seat.prompt("go")
            shown = [shown for role, shown in said(running.seat.context_messages) if role == "toolResult"]
            return shown, [each.error for each in running.seat.errors], [each.place for each in running.seat.errors]
        raise AssertionError

    shown, errors, places = simulate(called)

    assert [each[: len(text)] for each in shown] == [text]
    assert errors == (shown if is_reported else [])
    assert all([place is not None and place.startswith(__file__) for place in places])
    require_told("Tools", name, shown[0])


def test_an_input_handler_that_asked_to_fail_closed_stops_the_input_when_it_raises() -> None:
    async def handled() -> tuple[str, int]:
        async with opened([], handling("input", raises, fail_closed=True)) as running:
            return (await running.seat.prompt("go")).disposition, len(running.errors())
        raise AssertionError

    assert simulate(handled) == ("handled", 1)


@pytest.mark.parametrize(
    ("use", "error", "text"),
    [
        (lambda ctx: ctx.wait_for_idle, OnlyInCommands, "wait_for_idle is only available in command handlers"),
        (lambda ctx: ctx.modle, AttributeError, "ExtensionContext has no attribute 'modle' (did you mean 'mode' or 'model'?)"),
    ],
)
def test_a_context_names_what_it_does_not_have(use: Any, error: type[Exception], text: str) -> None:
    seen: list[str] = []

    def handler(_event: Any, ctx: Any) -> None:
        with pytest.raises(error) as caught:
            use(ctx)
        seen.append(str(caught.value))

    async def handled() -> None:
        async with opened([assistant("done")], handling("turn_end", handler)) as running:
            await running.seat.prompt("go")

    simulate(handled)

    assert seen == [text]


def test_a_command_that_raises_was_handled_and_is_reported() -> None:
    def setup(api: Any) -> None:
        api.register_command("bad", raises)

    async def commanded() -> tuple[str, list[tuple[str, str, str]]]:
        async with opened([], setup) as running:
            return (await running.seat.prompt("/bad x")).disposition, running.errors()
        raise AssertionError

    assert simulate(commanded) == ("handled", [("command:bad", "command", "bad")])


def test_the_page_has_no_mistake_that_is_not_tried_here() -> None:
    tried: dict[str, dict[str, Any]] = {"While loading": SOURCES, "Calls of the API": CALLS, "Handlers": {}, "Gates": GATES, "Tools": TOOLS}
    tried["Handlers"] = {name: row for name, row in HANDLERS.items() if row[2] is not None}

    assert {section: [mistake for mistake, *_ in rows] for section, rows in TOLD.items()} == {
        section: list(rows) for section, rows in tried.items()
    }
