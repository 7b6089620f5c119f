"""Going on in another session, and loading extensions anew: the order of steps, and what may fail."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.errors import CommandRefused, MissingWorkingDirectory, SessionFileMissing
from camshaft.actors.host import MemorySession, OpenOptions
from camshaft.actors.replacement import RUNNING_TEXT
from camshaft.extensions_std.providers.scripted import Hang, ScriptedProvider, assistant
from camshaft.kernel.commands import SetName
from tests.actors.replacing import Diary, kept, put, sessions
from tests.actors.running import Running, handling, opened, said, simulate, tool


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

    simulate(kept, tmp_path, diary, act)

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

    simulate(kept, tmp_path, diary, act)


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

    simulate(kept, tmp_path, diary, act, handling(hook, lambda *_: {"cancel": True}))

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

    simulate(kept, tmp_path, diary, act)

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
    simulate(partial(kept, services=Failing(), script=script), tmp_path, diary, act)

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

    simulate(kept, tmp_path, diary, act)

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

    simulate(kept, tmp_path, Diary(), act)


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

    simulate(kept, tmp_path, diary, act, with_tool)

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

    simulate(kept, tmp_path, Diary(), act)


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

    simulate(kept, tmp_path, Diary(), act, sometimes)


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

    simulate(partial(kept, services=Renews(provider)), tmp_path, Diary(), act)


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
    simulate(partial(kept, script=script), tmp_path, Diary(), act, handling("resources_discover", discover))


@pytest.mark.rule("SDK-18")
@pytest.mark.parametrize("how", ["raises", "hangs"])
def test_a_setup_that_fails_does_not_keep_the_new_session_from_beginning(tmp_path: Path, how: str) -> None:
    diary = Diary()

    async def setup(_writer: Any) -> None:
        if how == "hangs":
            await trio.sleep_forever()
        raise ValueError("not today")

    async def act(running: Running) -> None:
        with pytest.raises(TimeoutError if how == "hangs" else ValueError):
            await running.seat.new_session(setup=setup)
        await running.seat.prompt("second")
        assert said(running.seat.context_messages) == [("user", "second"), ("assistant", "two")]

    simulate(kept, tmp_path, diary, act)

    assert "session_start new" in diary.lines
