"""The moment at which a session is left: what runs ends, nothing new begins, and what was queued stays where it was queued."""

import os
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.errors import CommandRefused
from camshaft.actors.exclusive import LEAVING_TEXT
from camshaft.actors.generation import StaleContext
from camshaft.actors.host import InvalidOptions, OpenOptions
from camshaft.actors.user_bash import UserBashFailed
from camshaft.extensions_std.providers.scripted import Fail, Hang, assistant, tool_call
from camshaft.kernel.hook_events import CustomInput
from camshaft.kernel.settings import RetrySettings, Settings
from tests.actors.replacing import put, sessions
from tests.actors.running import Running, handling, opened, options, results, said, simulate, tool

FOLDER = Path("/sessions")
OTHER = FOLDER / "other.jsonl"
RETRYING = Settings(retry=RetrySettings(enabled=True), default_thinking_level="off")


async def with_other(running: Running) -> str:
    """The session after its first prompt; OTHER is a copy of it."""
    await running.seat.prompt("first")
    path = str(running.seat.session_file)
    put(running, OTHER, running.kernel.world.log_files.read(path))
    return path


@attrs.frozen
class Elsewhere:
    """Operations that take half a minute; stubborn ones whatever happens."""

    is_stubborn: bool

    async def exec(self, *_: Any, **_more: Any) -> Any:
        with trio.CancelScope(shield=self.is_stubborn):
            await trio.sleep(30)
        return {"exit_code": 0}


# -- nothing new begins -----------------------------------------------------------------


async def works(*_: Any) -> Any:
    """A tool that takes ten seconds."""
    await trio.sleep(10)
    return {"content": [{"type": "text", "text": "worked"}]}


@attrs.define
class Forever:
    """An extension that goes on after every run."""

    asked: int = 0

    def setup(self, api: Any) -> None:
        async def again(*_: Any) -> None:
            self.asked += 1
            api.send_user_message(f"go on {self.asked}")
            await trio.sleep(2)

        api.on("agent_settled", again)


def working() -> list[Any]:
    return [step for number in range(50) for step in (assistant(tool_call("work", id=f"c{number}")), assistant("done"))]


@pytest.mark.rule("EXT-42")
@pytest.mark.parametrize("moment", ["working", "settling"])
def test_an_extension_that_always_goes_on_does_not_keep_a_session_from_being_left(moment: str) -> None:
    forever = Forever()

    async def act() -> None:
        async with opened(working(), forever.setup, tools=[tool(works)], **sessions(FOLDER)) as running:
            await running.seat.submit("go")
            await trio.sleep(14 if moment == "working" else 11)
            assert forever.asked == 1
            began = trio.current_time()
            await running.seat.new_session()

            assert trio.current_time() - began < 15, "the tool has its grace, and that is all"
            assert said(running.seat.context_messages) == []
            assert [error for _, _, error in running.errors()] == [LEAVING_TEXT], "its author hears that the last one was refused"

    simulate(act)


@pytest.mark.rule("CMP-18", "LOOP-42")
@pytest.mark.parametrize("moment", ["working", "settling"])
def test_a_compaction_comes_before_what_an_extension_goes_on_with(moment: str) -> None:
    forever = Forever()

    async def act() -> None:
        async with opened(working(), forever.setup, tools=[tool(works)], **sessions(FOLDER)) as running:
            await running.seat.submit("go " * 100)
            await trio.sleep(25 if moment == "working" else 23.5)
            before = forever.asked
            began = trio.current_time()
            with pytest.raises(CommandRefused):  # there is too little to compact; what counts is when that is known
                await running.seat.compact()

            assert trio.current_time() - began < 15, "the tool has its grace, and that is all"
            assert forever.asked <= before + 1
            await trio.sleep(5)
            texts = [text for _, text in said(running.seat.context_messages)]
            assert f"go on {forever.asked}" in texts, "it goes on afterwards"
            assert running.errors() == []
            await running.seat.close()

    simulate(act)


@pytest.mark.rule("EXT-42", "SDK-8")
def test_a_prompt_given_as_the_last_of_a_session_ends_is_refused_or_answered() -> None:
    async def slow(*_: Any) -> None:
        await trio.sleep(3)

    async def act() -> str:
        async with opened([assistant("one"), assistant("two")], handling("session_before_tree", slow), **sessions(FOLDER)) as running:
            await running.seat.prompt("first")
            first = next(entry.id for entry in running.seat.state.tree.entries() if entry.type == "message")
            fates: list[str] = []

            async def prompts_when_idle() -> None:
                await running.seat.wait_idle()
                try:
                    await running.seat.prompt("second")
                except CommandRefused:
                    fates.append("refused")
                else:
                    fates.append(said(running.seat.context_messages)[-1][1])

            async with trio.open_nursery() as nursery:
                nursery.start_soon(running.seat.navigate_tree, first)
                await trio.sleep(1)
                nursery.start_soon(prompts_when_idle)
                await trio.sleep(1)
                await running.seat.new_session()
            return fates[0]

    # Which of the two that wait comes first is left to chance; both ways happen.
    fates = {simulate(act) for _ in range(30)}

    assert fates == {"refused", "two"}


@pytest.mark.rule("UB-5", "EXT-42")
def test_a_command_of_the_person_that_comes_while_the_session_is_left_is_refused() -> None:
    async def slow(*_: Any) -> None:
        await trio.sleep(2)

    async def act() -> None:
        hooks = (handling("agent_end", slow), handling("user_bash", lambda *_: {"operations": Elsewhere(False)}))
        async with opened([[Hang()]], *hooks, **sessions(FOLDER)) as running:
            await running.seat.submit("go")
            await trio.sleep(1)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(running.seat.new_session)
                await trio.sleep(1)
                with pytest.raises(UserBashFailed, match="is being left"):
                    await running.seat.user_bash("make")
            await running.seat.user_bash("make")

    simulate(act)


@pytest.mark.rule("UB-5")
def test_a_command_that_ignores_the_end_of_its_session_says_so_and_is_nowhere_recorded() -> None:
    async def act() -> None:
        hooks = handling("user_bash", lambda *_: {"operations": Elsewhere(True)})
        async with opened([assistant("one"), assistant("two")], hooks, **sessions(FOLDER)) as running:
            path = await with_other(running)
            said_of_it: list[str] = []

            async def runs() -> None:
                with pytest.raises(UserBashFailed) as refused:
                    await running.seat.user_bash("make")
                said_of_it.append(str(refused.value))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(runs)
                await trio.sleep(1)
                await running.seat.switch_session(str(OTHER))
                assert trio.current_time() < 10
                await running.seat.prompt("next")
            assert said_of_it == ["The command did not end within 5 s when its session was left; nothing was recorded."]
            assert said(running.seat.context_messages)[-1] == ("assistant", "two")
            assert b"bashExecution" not in running.kernel.world.log_files.read(path)

    simulate(act)


# -- what is under way ------------------------------------------------------------------


@pytest.mark.rule("LOOP-66", "SES-87")
def test_a_retry_that_waits_is_given_up_with_its_session() -> None:
    async def act() -> None:
        script: list[Any] = [assistant("one"), [Fail("529 overloaded")], assistant("two")]
        async with opened(script, settings=RETRYING, **sessions(FOLDER)) as running:
            await with_other(running)
            receipt = await running.seat.submit("busy")
            await trio.sleep(0.5)
            assert running.seat.retry_attempt == 1
            await running.seat.switch_session(str(OTHER))
            await receipt.wait()
            await trio.sleep(100)
            assert len(running.provider.requests) == 2
            await running.seat.prompt("next")
            assert said(running.seat.context_messages)[2:] == [("user", "next"), ("assistant", "two")]

    simulate(act)


@pytest.mark.rule("EXT-48", "SES-87")
def test_a_tool_that_ignores_its_end_reaches_no_later_session() -> None:
    async def ignores(*_: Any) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(100)
        return "late"

    async def act() -> None:
        async with opened(
            [assistant("one"), assistant(tool_call("work")), assistant("two")], tools=[tool(ignores)], **sessions(FOLDER)
        ) as running:
            path = await with_other(running)
            await running.seat.submit("busy")
            await trio.sleep(1)
            await running.seat.switch_session(str(OTHER))
            await running.seat.prompt("next")
            await trio.sleep(200)
            assert said(running.seat.context_messages)[2:] == [("user", "next"), ("assistant", "two")]
            await running.seat.switch_session(path)
            assert [(is_error, "late" in text) for _, text, is_error in results(running.seat.context_messages)] == [(True, False)]
            assert running.errors() == []

    simulate(act)


@pytest.mark.rule("QUE-15", "API-20", "EXT-42")
@pytest.mark.parametrize("is_busy", [False, True])
def test_what_is_queued_is_delivered_in_its_own_session_and_in_no_other(is_busy: bool) -> None:
    async def act() -> None:
        script: list[Any] = [assistant("one"), *([[Hang()]] if is_busy else []), *[assistant(f"answer {number}") for number in range(6)]]
        async with opened(script, **sessions(FOLDER)) as running:
            seat = running.seat
            path = await with_other(running)
            if is_busy:
                await seat.submit("busy")
                await trio.sleep(1)
                await seat.send_custom(CustomInput(custom_type="x", content="quiet"), trigger_turn=False)
            await seat.steer("steering")
            await seat.follow_up("following")
            await seat.send_custom(CustomInput(custom_type="x", content="next turn"), deliver_as="nextTurn")

            await seat.switch_session(str(OTHER))
            assert (seat.queue.steering, seat.queue.follow_up) == ((), ())
            await seat.prompt("elsewhere")
            assert said(seat.context_messages)[2:] == [("user", "elsewhere"), ("assistant", "answer 0")]

            await seat.switch_session(path)
            assert (seat.queue.steering, seat.queue.follow_up) == (("steering",), ("following",))
            await seat.prompt("back")
            texts = [text for _, text in said(seat.context_messages)]
            assert texts[texts.index("back") :] == ["back", "next turn", "steering", "answer 1", "following", "answer 2"]
            assert texts.count("quiet") == is_busy

    simulate(act)


# -- the same file again ----------------------------------------------------------------


@pytest.mark.rule("SDK-17", "EXT-28")
def test_the_same_session_goes_on_in_another_folder(tmp_path: Path) -> None:
    async def act() -> None:
        for name in ("here", "there"):
            os.mkdir(tmp_path / name)
        there = str(tmp_path / "there")
        async with opened([assistant("one"), assistant("two")], cwd=str(tmp_path / "here"), **sessions(FOLDER)) as running:
            await running.seat.prompt("first")
            await running.seat.switch_session(str(running.seat.session_file), cwd_override=there)

            assert running.seat.cwd == there
            await running.seat.prompt("second")
            assert there in running.seat.system_prompt
            await running.seat.reload()
            assert running.seat.cwd == there

    simulate(act)


@attrs.frozen
class Picky:
    """Services that refuse a folder."""

    refused: str

    def check(self, cwd: str) -> None:
        if cwd == self.refused:
            raise ValueError("its settings cannot be read")

    async def renewed(self, options: OpenOptions, _reason: str) -> OpenOptions:
        return options


@pytest.mark.rule("EXT-44")
def test_the_same_session_in_a_folder_that_is_refused_stays_as_it_is(tmp_path: Path) -> None:
    async def act() -> None:
        async with opened([assistant("one"), assistant("two")], services=Picky(str(tmp_path)), **sessions(FOLDER)) as running:
            await running.seat.prompt("first")
            with pytest.raises(ValueError, match="cannot be read"):
                await running.seat.switch_session(str(running.seat.session_file), cwd_override=str(tmp_path))
            assert running.seat.cwd == "/" and running.count("session_replaced") == 0

    simulate(act)


@pytest.mark.rule("EXT-40")
def test_extensions_of_a_conversation_that_could_not_be_opened_are_over() -> None:
    apis: list[Any] = []

    async def act() -> None:
        async with opened([]) as running:
            with pytest.raises(InvalidOptions, match="no model"):
                await running.kernel.open(options(running.provider, apis.append, model="no/such"))
            with pytest.raises(StaleContext):
                apis[0].on("turn_end", lambda *_: None)

    simulate(act)
