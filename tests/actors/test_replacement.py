"""Going on in another session, and loading extensions anew: the order of steps, what may fail, what is stale afterwards."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.actor import SelfWait
from camshaft.actors.errors import CommandRefused, MissingWorkingDirectory, SessionFileMissing
from camshaft.actors.host import MemorySession, NewSession, OpenOptions, PromptRefused, Seat
from camshaft.actors.replacement import REPLACING_TEXT, RUNNING_TEXT
from camshaft.extensions_std.providers.scripted import Hang, ScriptedProvider, assistant, tool_call
from camshaft.kernel.commands import SetName
from tests.actors.running import Running, handling, opened, said, simulate, tool

STALE = "This extension ctx is stale after session replacement or reload."


@attrs.define
class Diary:
    """What extensions heard, in order, over all generations."""

    lines: list[str] = attrs.field(factory=list)
    contexts: list[Any] = attrs.field(factory=list)

    def setup(self, api: Any) -> None:
        self.lines.append("load")
        hooks = ("session_before_switch", "session_before_fork", "session_shutdown", "session_start", "resources_discover")
        for hook in hooks:
            api.on(hook, self._note)

    def _note(self, event: Any, ctx: Any) -> None:
        self.contexts.append(ctx)
        about = getattr(event, "reason", None) or getattr(event, "position", "")
        self.lines.append(f"{event.type} {about}")


def sessions(tmp_path: Path) -> dict[str, Any]:
    """Sessions on disk, without threads of the virtual clock in between."""
    return {"session": NewSession(directory=str(tmp_path)), "durability": "none"}


def put(running: Running, path: Path, text: bytes) -> None:
    """A session file of somebody else, in the file system of the simulation."""
    files = running.kernel.world.log_files
    files.make_folder(str(path))
    handle = files.create(str(path))
    files.write(handle, text)
    files.close(handle)


async def _kept(tmp_path: Path, diary: Diary, act: Callable[[Running], Any], *setups: Any, **more: Any) -> Any:
    script = more.pop("script", [assistant("one"), assistant("two")])
    async with opened(script, diary.setup, *setups, **sessions(tmp_path), **more) as running:
        await running.seat.prompt("first")
        diary.lines.clear()
        return await act(running)


@pytest.mark.rule("EXT-41", "EXT-42", "EXT-43")
def test_a_new_session_comes_in_exactly_this_order(tmp_path: Path) -> None:
    diary = Diary()

    async def act(running: Running) -> None:
        old = running.seat.session_file

        async def setup(writer: Any) -> None:
            diary.lines.append("setup")
            writer.append(SetName(name="from setup"))

        async def go_on(ctx: Any) -> None:
            diary.lines.append("with_session")
            await ctx.send_user_message("again")

        answer = await running.seat.new_session(parent_session=old, setup=setup, with_session=go_on)

        assert answer.cancelled is False
        assert running.seat.state.header.parent_session == old
        assert running.seat.session_file != old
        assert running.seat.state.tree.name == "from setup"
        assert said(running.seat.context_messages) == [("user", "again"), ("assistant", "two")]
        replaced = [event for event in running.heard if event.type == "session_replaced"]
        assert [(event.reason, event.previous_session_file) for event in replaced] == [("new", old)]

    simulate(_kept, tmp_path, diary, act)

    assert diary.lines == [
        "session_before_switch new",
        "session_shutdown new",
        "load",
        "setup",
        "session_start new",
        "resources_discover startup",
        "with_session",
        "session_shutdown quit",
    ]


@pytest.mark.rule("EXT-42", "SES-87")
def test_the_run_that_is_cut_off_settles_in_the_old_session(tmp_path: Path) -> None:
    diary = Diary()

    async def act(running: Running) -> None:
        seat, old = running.seat, running.seat.session_file
        running.provider.set_responses([[Hang()]])
        receipt = await seat.submit("wait for me")
        await seat.new_session()
        await receipt.wait()

        assert seat.is_idle
        assert said(seat.context_messages) == []
        await seat.switch_session(str(old))
        assert said(seat.context_messages)[-2:] == [("user", "wait for me"), ("assistant", "aborted: Request was aborted")]

    simulate(_kept, tmp_path, diary, act)


@pytest.mark.rule("EXT-42", "EVT-20")
@pytest.mark.parametrize("hook", ["session_before_switch", "session_before_fork"])
def test_a_handler_can_keep_the_session_as_it_is(tmp_path: Path, hook: str) -> None:
    diary = Diary()

    async def act(running: Running) -> None:
        seat = running.seat
        before = (seat.session_file, tuple(seat.state.tree.entries()))
        if hook == "session_before_switch":
            answers = [await seat.new_session(), await seat.switch_session(str(tmp_path / "nowhere.jsonl"))]
        else:
            answers = [await seat.clone(), await seat.fork("no such entry")]

        assert [answer.cancelled for answer in answers] == [True, True]
        assert (seat.session_file, tuple(seat.state.tree.entries())) == before
        await seat.prompt("still here")

    simulate(_kept, tmp_path, diary, act, handling(hook, lambda *_: {"cancel": True}))

    assert "session_shutdown new" not in diary.lines


@pytest.mark.rule("EXT-44", "CTXT-9")
def test_what_cannot_be_opened_leaves_the_old_session_and_its_extensions_alone(tmp_path: Path) -> None:
    diary = Diary()
    gone = b'{"type":"session","version":3,"id":"g","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/no/such/folder"}\n'

    async def act(running: Running) -> None:
        seat, ctx = running.seat, diary.contexts[-1]
        put(running, tmp_path / "garbage.jsonl", b"no session\n")
        put(running, tmp_path / "gone.jsonl", gone)
        with pytest.raises(SessionFileMissing):
            await seat.switch_session(str(tmp_path / "nowhere.jsonl"))
        with pytest.raises(Exception, match="not a valid camshaft session"):
            await seat.switch_session(str(tmp_path / "garbage.jsonl"))
        with pytest.raises(MissingWorkingDirectory):
            await seat.switch_session(str(tmp_path / "gone.jsonl"))
        with pytest.raises(CommandRefused, match="Invalid entry ID for forking"):
            await seat.fork("zzz")
        with pytest.raises(SessionFileMissing):
            await seat.import_session(str(tmp_path / "nowhere.jsonl"))

        assert ctx.is_idle()
        await seat.prompt("second")
        assert said(seat.context_messages)[-1] == ("assistant", "two")

    simulate(_kept, tmp_path, diary, act)

    assert [line for line in diary.lines if line.startswith("session_shutdown")] == ["session_shutdown quit"]


@pytest.mark.rule("EXT-44")
def test_a_new_cell_that_cannot_be_made_gives_the_old_session_back(tmp_path: Path) -> None:
    diary = Diary()

    @attrs.frozen
    class Failing:
        def check(self, cwd: str) -> None:
            """Nothing to see before the old session ends."""

        async def renewed(self, options: OpenOptions, reason: str) -> OpenOptions:
            raise OSError("the disk is gone")

    async def act(running: Running) -> None:
        seat = running.seat
        old = seat.session_file
        await seat.follow_up("queued before")
        with pytest.raises(OSError, match="the disk is gone"):
            await seat.new_session()

        assert seat.session_file == old
        assert seat.queue.follow_up == ("queued before",)
        await seat.prompt("second")
        assert said(seat.context_messages)[2:4] == [("user", "second"), ("assistant", "two")]

    script = [assistant("one"), assistant("two"), assistant("three")]
    simulate(partial(_kept, services=Failing(), script=script), tmp_path, diary, act)

    assert diary.lines == [
        "session_before_switch new",
        "session_shutdown new",
        "load",
        "session_start reload",
        "resources_discover reload",
        "session_shutdown quit",
    ]


@pytest.mark.rule("SES-76", "SES-77", "EXT-42")
def test_a_fork_hands_the_text_back_and_names_its_parent(tmp_path: Path) -> None:
    diary = Diary()

    async def act(running: Running) -> None:
        seat, old = running.seat, running.seat.session_file
        users = [entry for entry in seat.state.tree.entries() if getattr(getattr(entry, "message", None), "role", "") == "user"]
        answer = await seat.fork(users[0].id)

        assert (answer.cancelled, answer.selected_text) == (False, "first")
        assert seat.state.header.parent_session == old
        assert said(seat.context_messages) == []

    simulate(_kept, tmp_path, diary, act)

    assert diary.lines[:4] == ["session_before_fork before", "session_shutdown fork", "load", "session_start fork"]


@pytest.mark.rule("SES-47", "EXT-41")
def test_sessions_in_memory_are_replaced_in_memory() -> None:
    async def act() -> None:
        diary = Diary()
        async with opened([assistant("one"), assistant("two")], diary.setup, session=MemorySession()) as running:
            seat = running.seat
            await seat.prompt("first")
            await seat.clone()
            assert seat.session_file is None
            assert said(seat.context_messages) == [("user", "first"), ("assistant", "one")]
            await seat.new_session()
            assert said(seat.context_messages) == []

    simulate(act)


@pytest.mark.rule("SES-85")
def test_an_imported_session_is_gone_on_with_in_a_copy(tmp_path: Path) -> None:
    source = tmp_path / "elsewhere" / "other.jsonl"

    async def act(running: Running) -> None:
        seat, files = running.seat, running.kernel.world.log_files
        put(running, source, files.read(str(seat.session_file)))
        await seat.import_session(str(source))
        await seat.prompt("second")

        assert seat.session_file == str(tmp_path / "other.jsonl")
        assert len(files.read(str(source)).splitlines()) < len(files.read(str(seat.session_file)).splitlines())

    simulate(_kept, tmp_path, Diary(), act)


# -- reload ------------------------------------------------------------------------------


@pytest.mark.rule("EXT-49", "EXT-41")
def test_a_reload_keeps_session_and_active_tools_and_loads_extensions_anew(tmp_path: Path) -> None:
    diary = Diary()

    def with_tool(api: Any) -> None:
        api.register_tool(tool(lambda *_: "ok", name="late"))

    async def act(running: Running) -> None:
        seat = running.seat
        seat.set_active_tools(())
        before = tuple(seat.context_messages)
        await seat.reload()

        assert tuple(seat.context_messages) == before
        assert seat.active_tools == ("late",)

    simulate(_kept, tmp_path, diary, act, with_tool)

    assert diary.lines[:4] == ["session_shutdown reload", "load", "session_start reload", "resources_discover reload"]


@pytest.mark.rule("EXT-49")
def test_a_reload_is_refused_while_a_response_is_under_way(tmp_path: Path) -> None:
    async def act(running: Running) -> None:
        running.provider.set_responses([[Hang()]])
        receipt = await running.seat.submit("go")
        with pytest.raises(CommandRefused, match=re.escape(RUNNING_TEXT)):
            await running.seat.reload()
        await running.seat.abort()
        await receipt.wait()

    simulate(_kept, tmp_path, Diary(), act)


@pytest.mark.rule("EXT-27")
def test_an_extension_that_fails_at_a_reload_is_told_to_hosts_and_stops_nothing(tmp_path: Path) -> None:
    loads = []

    def sometimes(_api: Any) -> None:
        loads.append(1)
        if len(loads) > 1:
            raise ValueError("not again")

    async def act(running: Running) -> None:
        await running.seat.reload()
        told = [event.message for event in running.heard if event.type == "diagnostic"]
        assert told == ['Failed to load extension "<inline:x1>": not again']
        await running.seat.prompt("second")

    simulate(_kept, tmp_path, Diary(), act, sometimes)


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

    simulate(_kept, tmp_path, diary, act, keeps)


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

    simulate(_kept, tmp_path, Diary(), act, commanding)

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
        _kept,
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

    simulate(_kept, tmp_path, Diary(), act)

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

    simulate(_kept, tmp_path, Diary(), act, handling("session_shutdown", slow))

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

    simulate(partial(_kept, tools=[tool(work)]), tmp_path, Diary(), act, lambda _api: None)

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
    simulate(_kept, tmp_path, Diary(), act, *slows)


@pytest.mark.rule("LOOP-42", "EXT-50")
def test_a_command_deferred_from_agent_settled_may_reload_or_replace(tmp_path: Path) -> None:
    @attrs.define
    class Once:
        done: bool = False

        def setup(self, api: Any) -> None:
            async def settled(_event: Any, _ctx: Any) -> None:
                if not self.done:
                    self.done = True
                    api.send_user_message("/renew", expand_prompt_templates=True)

            async def renew(_arguments: str, ctx: Any) -> None:
                await ctx.new_session()

            api.on("agent_settled", settled)
            api.register_command("renew", renew)

    async def act() -> None:
        once = Once()
        script = [assistant("one"), assistant("two")]
        async with opened(script, once.setup, **sessions(tmp_path)) as running:
            first = running.seat.session_file
            await running.seat.prompt("first")
            assert running.errors() == []
            assert running.seat.session_file != first
            await running.seat.prompt("second")
            assert said(running.seat.context_messages) == [("user", "second"), ("assistant", "two")]

    simulate(act)


def test_models_of_a_reloaded_provider_are_used(tmp_path: Path) -> None:
    @attrs.frozen
    class Renews:
        provider: ScriptedProvider

        def check(self, cwd: str) -> None:
            """Always good."""

        async def renewed(self, options: OpenOptions, reason: str) -> OpenOptions:
            return attrs.evolve(options, providers=(self.provider,))

    provider = ScriptedProvider(chunked=False)
    provider.set_responses([assistant("from the new provider")])

    async def act(running: Running) -> None:
        await running.seat.reload()
        await running.seat.prompt("second")
        assert said(running.seat.context_messages)[-1] == ("assistant", "from the new provider")

    simulate(partial(_kept, services=Renews(provider)), tmp_path, Diary(), act)


@pytest.mark.rule("RES-3", "EXT-43")
def test_skills_and_templates_that_extensions_name_are_there_from_the_first_prompt(tmp_path: Path) -> None:
    (tmp_path / "greet.md").write_text("Say hello to $1.")
    (tmp_path / "twice.md").write_text("---\ndescription: [broken\n---\nx")

    def discover(event: Any, _ctx: Any) -> Any:
        return {"prompt_paths": [str(tmp_path)]} if event.reason == "startup" else None

    async def act(running: Running) -> None:
        await running.seat.prompt("/greet Ada")
        assert said(running.seat.context_messages)[-2] == ("user", "Say hello to Ada.")
        await running.seat.reload()
        await running.seat.prompt("/greet Ada")
        assert said(running.seat.context_messages)[-2] == ("user", "/greet Ada")

    script = [assistant("one"), assistant("two"), assistant("three")]
    simulate(partial(_kept, script=script), tmp_path, Diary(), act, handling("resources_discover", discover))
