"""What belongs to a generation that is over, and who may replace a session when."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from camshaft.actors.actor import SelfWait
from camshaft.actors.errors import CommandRefused
from camshaft.actors.host import PromptRefused, Seat
from camshaft.actors.replacement import REPLACING_TEXT
from camshaft.extensions_std.providers.scripted import assistant, tool_call
from tests.actors.replacing import Diary, kept
from tests.actors.running import Running, handling, said, simulate, tool

STALE = "This extension ctx is stale after session replacement or reload."


# -- what belongs to the generation that is over -----------------------------------------

API_CALLS: dict[str, Callable[[Any], Any]] = {
    "on": lambda api: api.on("turn_end", print),
    "register_tool": lambda api: api.register_tool(tool(print)),
    "register_command": lambda api: api.register_command("x", print),
    "send_message": lambda api: api.send_message({"custom_type": "x"}),
    "send_user_message": lambda api: api.send_user_message("x"),
    "append_entry": lambda api: api.append_entry("x"),
    "set_session_name": lambda api: api.set_session_name("x"),
    "get_session_name": lambda api: api.get_session_name(),
    "set_label": lambda api: api.set_label("x", "y"),
    "get_active_tools": lambda api: api.get_active_tools(),
    "get_all_tools": lambda api: api.get_all_tools(),
    "set_active_tools": lambda api: api.set_active_tools(()),
    "get_commands": lambda api: api.get_commands(),
    "get_thinking_level": lambda api: api.get_thinking_level(),
    "set_thinking_level": lambda api: api.set_thinking_level("off"),
    "events.on": lambda api: api.events.on("c", print),
    "events.emit": lambda api: api.events.emit("c"),
}
CONTEXT_READS = ("cwd", "mode", "has_ui", "world", "session", "model", "thinking_level", "signal")
CONTEXT_CALLS = ("is_idle", "has_pending_messages", "abort", "get_context_usage", "get_system_prompt")
REPLACEMENTS: dict[str, Callable[[Seat], Any]] = {
    "new": lambda seat: seat.new_session(),
    "resume": lambda seat: seat.switch_session(str(seat.session_file)),
    "fork": lambda seat: seat.clone(),
    "reload": lambda seat: seat.reload(),
}


@pytest.mark.rule("EXT-46", "EXT-47", "ERR-2")
@pytest.mark.parametrize("how", REPLACEMENTS)
def test_everything_of_an_old_generation_raises_and_nothing_of_it_reaches_the_new_session(tmp_path: Path, how: str) -> None:
    diary, apis, unsubscribes = Diary(), list[Any](), list[Any]()

    def keeps(api: Any) -> None:
        apis.append(api)
        unsubscribes.append(api.on("turn_end", lambda *_: None))

    async def act(running: Running) -> None:
        api, ctx = apis[0], diary.contexts[-1]
        view = ctx.session
        await REPLACEMENTS[how](running.seat)
        entries = tuple(running.seat.state.tree.entries())

        for call in API_CALLS.values():
            with pytest.raises(Exception, match=STALE):
                call(api)
        for name in CONTEXT_READS:
            with pytest.raises(Exception, match=STALE):
                getattr(ctx, name)
        for name in CONTEXT_CALLS:
            with pytest.raises(Exception, match=STALE):
                getattr(ctx, name)()
        with pytest.raises(Exception, match=STALE):
            view.get_entries()
        with pytest.raises(Exception, match=STALE):
            await api.set_model("scripted/m1")
        unsubscribes[0]()

        assert tuple(running.seat.state.tree.entries()) == entries
        assert running.seat._parts.host.has("turn_end")

    simulate(kept, tmp_path, diary, act, keeps)


# -- one at a time, and from where ---------------------------------------------------------


@pytest.mark.rule("CTXT-9")
@pytest.mark.parametrize("operation", ["new_session", "reload"])
def test_a_command_goes_on_in_its_old_closure_and_its_context_is_stale(tmp_path: Path, operation: str) -> None:
    seen: list[str] = []

    def commanding(api: Any) -> None:
        async def go(_arguments: str, ctx: Any) -> None:
            await getattr(ctx, operation)()
            seen.append("went on")
            ctx.is_idle()

        api.register_command("go", go)

    async def act(running: Running) -> None:
        receipt = await running.seat.prompt("/go")
        assert receipt.disposition == "handled"
        assert [error for _, event, error in running.errors() if event == "command"] != []
        assert running.errors()[-1][2].startswith(STALE)

    simulate(kept, tmp_path, Diary(), act, commanding)

    assert seen == ["went on"]


@pytest.mark.rule("CTXT-3")
@pytest.mark.parametrize("name", ["new_session", "fork", "switch_session", "reload"])
def test_event_handlers_cannot_replace_the_session(tmp_path: Path, name: str) -> None:
    def reaches(event: Any, ctx: Any) -> None:
        if event.message.content[0].text == "two":
            getattr(ctx, name)

    async def act(running: Running) -> None:
        await running.seat.prompt("second")
        assert running.errors() == [("<inline:x1>", "turn_end", f"{name} is only available in command handlers")]

    simulate(
        kept,
        tmp_path,
        Diary(),
        act,
        handling("turn_end", reaches),
    )


def test_a_second_replacement_meanwhile_is_refused(tmp_path: Path) -> None:
    refused: list[str] = []

    async def act(running: Running) -> None:
        seat = running.seat

        async def again(*_: Any) -> None:
            try:
                await seat.new_session()
            except CommandRefused as error:
                refused.append(str(error))

        async def slow(*_: Any) -> None:
            await trio.sleep(1)

        async with trio.open_nursery() as nursery:
            seat._parts.host.extensions[0].handlers = ()
            nursery.start_soon(lambda: seat.new_session(setup=slow))
            await trio.sleep(0.5)
            nursery.start_soon(again)
        await seat.prompt("second")

    simulate(kept, tmp_path, Diary(), act)

    assert refused == [REPLACING_TEXT]


@pytest.mark.rule("RPC-63")
def test_no_prompt_is_accepted_between_two_sessions(tmp_path: Path) -> None:
    refused: list[str] = []

    async def act(running: Running) -> None:
        seat = running.seat

        async def tries(*_: Any) -> None:
            try:
                await seat.prompt("into nothing")
            except (PromptRefused, CommandRefused) as error:
                refused.append(str(error))

        seat._parts.host.extensions[1].handlers = ()
        running.kernel._nursery.start_soon(seat.new_session)
        await trio.sleep(0.5)
        await tries()
        await trio.sleep(1)
        await seat.prompt("second")
        assert said(seat.context_messages) == [("user", "second"), ("assistant", "two")]

    async def slow(*_: Any) -> None:
        await trio.sleep(1)

    simulate(kept, tmp_path, Diary(), act, handling("session_shutdown", slow))

    assert refused == [REPLACING_TEXT]


@pytest.mark.rule("CTXT-9")
def test_replacing_the_session_from_inside_its_run_says_so_instead_of_hanging(tmp_path: Path) -> None:
    raised: list[Exception] = []

    async def act(running: Running) -> None:
        seat = running.seat

        async def execute(*_: Any) -> str:
            try:
                await seat.new_session()
            except SelfWait as error:
                raised.append(error)
            return "ok"

        seat._parts.host.extensions[1].tools = {}
        running.provider.set_responses([assistant(tool_call("work")), assistant("done")])
        tools.append(execute)
        await seat.prompt("second")

    tools: list[Any] = []

    async def work(*arguments: Any) -> Any:
        return await tools[0](*arguments)

    simulate(partial(kept, tools=[tool(work)]), tmp_path, Diary(), act, lambda _api: None)

    assert len(raised) == 1
    assert "new_session() waits for run" in str(raised[0])


@pytest.mark.rule("SDK-23")
def test_cancelling_the_caller_never_leaves_a_conversation_without_a_session(tmp_path: Path) -> None:
    async def act(running: Running) -> None:
        seat = running.seat
        for after_s in (0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.1):
            with trio.move_on_after(after_s):
                await seat.new_session()
            running.provider.set_responses([assistant("still")])
            await seat.prompt("go")
            assert said(seat.context_messages)[-1] == ("assistant", "still")

    async def slow(*_: Any) -> None:
        await trio.sleep(0.2)

    slows = [handling(hook, slow) for hook in ("session_before_switch", "session_shutdown", "session_start", "resources_discover")]
    simulate(kept, tmp_path, Diary(), act, *slows)
