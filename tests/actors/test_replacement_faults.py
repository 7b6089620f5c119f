"""What goes wrong around a replacement: other writers, late handlers, late prompts, waits that would be for oneself."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.actor import SelfWait
from camshaft.actors.cell import REPLACED_TEXT
from camshaft.actors.errors import CommandRefused
from camshaft.actors.host import InvalidOptions, NewSession, OpenOptions, OpenSession, SessionLocked, open_kernel
from camshaft.actors.replacement import REPLACING_TEXT
from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.extensions_std.providers.scripted import Hang, ScriptedProvider, assistant
from tests.actors.replacing import Diary, kept, sessions
from tests.actors.running import Running, handling, opened, options, said, simulate, virtual_world

FOLDER = Path("/sessions")


@attrs.frozen
class Fails:
    """Options of a new session that cannot be."""

    changes: Any = None

    def check(self, cwd: str) -> None:
        """Nothing to see before the old session ends."""

    async def renewed(self, given: OpenOptions, _reason: str) -> OpenOptions:
        if self.changes is None:
            raise OSError("the disk is gone")
        return attrs.evolve(given, **self.changes)


# -- other writers -----------------------------------------------------------------------


@pytest.mark.rule("EXT-44", "SES-90")
@pytest.mark.parametrize("how", ["reload", "new_session"])
def test_another_writer_of_the_idle_session_does_not_take_it_away(how: str) -> None:
    diary = Diary()

    async def act(running: Running) -> None:
        files: Any = running.kernel.world.log_files
        lock = f"{running.seat.session_file}.lock"
        handle = files.lock(lock, "somebody else")
        if how == "reload":
            await running.seat.reload()
        else:
            with pytest.raises(OSError, match="the disk is gone"):
                await running.seat.new_session()
        with pytest.raises(SessionLocked):
            await running.seat.prompt("second")
        files.unlock(lock, handle)
        await running.seat.prompt("second")
        assert said(running.seat.context_messages)[-1] == ("assistant", "two")

    simulate(partial(kept, services=None if how == "reload" else Fails()), FOLDER, diary, act)

    assert diary.lines[-3:] == ["session_start reload", "resources_discover reload", "session_shutdown quit"]


def test_an_idle_session_that_was_gone_on_with_keeps_no_file_open() -> None:
    files = MemoryLogFiles()

    async def act() -> None:
        async with opened([assistant("one")], world=virtual_world(files), **sessions(FOLDER)) as running:
            seat = running.seat
            await seat.prompt("first")
            path = str(seat.session_file)
            for go_on in (
                seat.new_session,
                partial(seat.switch_session, path),
                partial(seat.switch_session, path),
                seat.clone,
                seat.reload,
            ):
                await go_on()
                await trio.testing.wait_all_tasks_blocked()
                assert files.open_handles == 0 and files.held_locks == ()
            again = await running.kernel.open(attrs.evolve(seat._parts.options, session=OpenSession(path=path)))
            await trio.testing.wait_all_tasks_blocked()
            assert again.context_messages and files.held_locks == ()

    simulate(act)


@pytest.mark.rule("SES-90")
def test_a_link_to_a_session_is_that_session(tmp_path: Path) -> None:
    async def act() -> None:
        async with open_kernel() as kernel:
            first, second = ScriptedProvider(chunked=False), ScriptedProvider(chunked=False)
            first.set_responses([assistant("one"), [Hang()]])
            here: dict[str, Any] = {"session": NewSession(directory=str(tmp_path)), "durability": "none"}
            seat, other = await kernel.open(options(first, **here)), await kernel.open(options(second, **here))
            await seat.prompt("first")
            link = tmp_path / "link.jsonl"
            os.symlink(str(seat.session_file), link)
            receipt = await seat.submit("second")
            with pytest.raises(SessionLocked):
                await other.switch_session(str(link))
            await seat.abort()
            await receipt.wait()
            await other.switch_session(str(link))
            assert other.session_file == seat.session_file

    trio.run(act)


# -- what was under way ------------------------------------------------------------------


@pytest.mark.rule("LOOP-1", "EXT-48")
@pytest.mark.parametrize("how", ["reload", "new_session"])
@pytest.mark.parametrize("takes_s", [1, 10_000])
def test_a_prompt_whose_handlers_are_overtaken_is_refused_and_they_are_ended(how: str, takes_s: float) -> None:
    refused: list[str] = []

    async def slow(event: Any, _ctx: Any) -> None:
        if event.text == "late":
            await trio.sleep(takes_s)

    async def act(running: Running) -> None:
        seat = running.seat

        async def prompts() -> None:
            with pytest.raises(CommandRefused) as caught:
                await seat.prompt("late")
            refused.append(str(caught.value))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(prompts)
            await trio.sleep(0.5)
            await getattr(seat, how)()
        assert trio.current_time() < 1
        await seat.prompt("second")
        assert [text for _, text in said(seat.context_messages)][-2:] == ["second", "two"]
        assert running.errors() == []

    simulate(kept, FOLDER, Diary(), act, handling("input", slow))

    assert refused == [REPLACED_TEXT]


@pytest.mark.rule("LOOP-42")
def test_what_was_deferred_behind_a_replacement_is_reported() -> None:
    sent: list[int] = []

    def setup(api: Any) -> None:
        async def settled(*_: Any) -> None:
            if not sent:
                sent.append(1)
                api.send_user_message("/renew", expand_prompt_templates=True)
                api.send_user_message("after that")

        async def renew(_arguments: str, ctx: Any) -> None:
            await ctx.new_session()

        api.on("agent_settled", settled)
        api.register_command("renew", renew)

    async def act() -> None:
        async with opened([assistant("one")], setup, **sessions(FOLDER)) as running:
            await running.seat.prompt("first")
            assert running.errors() == [("<runtime>", "send_user_message", REPLACED_TEXT)]
            assert said(running.seat.context_messages) == []

    simulate(act)


def test_of_two_that_wait_for_the_end_of_agent_settled_one_is_refused() -> None:
    outcomes: list[str] = []
    diary = Diary()

    async def slow(*_: Any) -> None:
        await trio.sleep(1)

    async def act(running: Running) -> None:
        async def replaces() -> None:
            try:
                outcomes.append(str((await running.seat.new_session()).cancelled))
            except CommandRefused as error:
                outcomes.append(str(error))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(running.seat.prompt, "second")
            await trio.sleep(0.5)
            nursery.start_soon(replaces)
            nursery.start_soon(replaces)

    simulate(kept, FOLDER, diary, act, handling("agent_settled", slow), handling("session_shutdown", slow))

    assert sorted(outcomes) == ["False", REPLACING_TEXT]
    assert diary.lines.count("session_shutdown new") == 1


@pytest.mark.rule("CMP-60", "SDK-22")
def test_a_navigation_cannot_wait_for_the_replacement_that_waits_for_it() -> None:
    files, raised = MemoryLogFiles(), list[str]()
    seats: list[Any] = []

    async def switches(*_: Any) -> None:
        try:
            await seats[0].switch_session(seats[1])
        except SelfWait as error:
            raised.append(str(error))

    async def act() -> None:
        setup = handling("session_before_tree", switches)
        async with opened([assistant("one"), assistant("two")], setup, world=virtual_world(files), **sessions(FOLDER)) as running:
            seat = running.seat
            await seat.prompt("first")
            seats.extend([seat, seat.session_file])
            await seat.new_session()
            await seat.prompt("second")
            first = next(iter(seat.state.tree.entries()))
            await seat.navigate_tree(first.id)
            await trio.testing.wait_all_tasks_blocked()
            assert files.open_handles == 0 and files.held_locks == ()

    simulate(act)

    assert len(raised) == 1 and raised[0].startswith("switch_session() waits for compaction or navigation")


def test_a_command_cannot_replace_what_is_being_closed() -> None:
    files, diary = MemoryLogFiles(), Diary()

    def commanding(api: Any) -> None:
        async def go(_arguments: str, ctx: Any) -> None:
            await trio.sleep(0.5)
            await ctx.new_session()

        api.register_command("go", go)

    async def slow(*_: Any) -> None:
        await trio.sleep(1)

    async def act() -> None:
        setups = (diary.setup, commanding, handling("session_shutdown", slow))
        async with opened([], *setups, world=virtual_world(files), **sessions(FOLDER)) as running:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(running.seat.prompt, "/go")
                await trio.sleep(0.1)
                await running.seat.close()
            assert running.errors() == [("command:go", "command", "the conversation was closed; open the session again")]

    simulate(act)

    assert diary.lines[-1] == "session_shutdown quit" and diary.lines.count("load") == 1


@pytest.mark.parametrize("hook", ["session_shutdown", "session_start"])
def test_closing_from_inside_a_replacement_says_so_or_closes(hook: str) -> None:
    raised: list[str] = []
    seats: list[Any] = []

    async def closes(event: Any, _ctx: Any) -> None:
        if event.reason == "new":
            try:
                await seats[0].close()
            except SelfWait as error:
                raised.append(str(error))

    async def act() -> None:
        async with opened([assistant("one")], handling(hook, closes), **sessions(FOLDER)) as running:
            seats.append(running.seat)
            with trio.fail_after(10):
                await running.seat.new_session()
            assert running.seat.is_closed is (hook == "session_start")

    simulate(act)

    assert bool(raised) is (hook == "session_shutdown")


# -- generations that never were, or are over ----------------------------------------------


@pytest.mark.rule("API-27", "EXT-44")
def test_extensions_of_a_cell_that_could_not_be_made_hear_nothing() -> None:
    loads, got = [], list[tuple[int, str]]()

    def setup(api: Any) -> None:
        loads.append(1)
        number = len(loads)
        api.events.on("news", lambda value: got.append((number, value)))

    async def act(running: Running) -> None:
        with pytest.raises(InvalidOptions):
            await running.seat.new_session()
        running.seat._parts.ground.bus.emit("news", "hello")

    simulate(partial(kept, services=Fails({"model": "no/such"})), FOLDER, Diary(), act, setup)

    assert (len(loads), got) == (3, [(3, "hello")])


@attrs.frozen
class Silent:
    """A port whose person never answers."""

    async def select(self, *_: Any, **__: Any) -> None:
        await trio.sleep_forever()

    confirm = input = editor = select


@pytest.mark.rule("UI-6", "UI-10")
def test_no_generation_hears_the_end_of_a_prompt_it_did_not_hear_the_start_of() -> None:
    heard: list[tuple[int, str]] = []
    loads: list[int] = []

    def setup(api: Any) -> None:
        loads.append(1)
        number = len(loads)

        async def ask(_arguments: str, ctx: Any) -> None:
            heard.append((number, f"answer {await ctx.ui.input('Name?')}"))

        api.register_command("ask", ask)
        for hook in ("ui_prompt_start", "ui_prompt_end"):
            api.on(hook, lambda event, _ctx: heard.append((number, event.type)))

    async def act(running: Running) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(running.seat.prompt, "/ask")
            await trio.sleep(0.5)
            await running.seat.new_session()
        await trio.sleep(1)

    simulate(partial(kept, ui=Silent()), FOLDER, Diary(), act, setup)

    assert [each for each in heard if each[1] != "ui_prompt_end" or each[0] != 1] == [(1, "ui_prompt_start"), (1, "answer None")]
