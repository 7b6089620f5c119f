"""Commands that a person runs: where they run, what is told and recorded, what stops them."""

import os
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.errors import CommandRefused
from camshaft.actors.user_bash import UserBashFailed
from camshaft.extensions_std.providers.scripted import assistant
from camshaft.kernel.messages import BashExecutionMessage
from camshaft.kernel.session_events import UserBashOutput
from camshaft.kernel.settings import Settings
from tests.actors.running import NO_RETRY, Running, handling, opened, said

pytestmark = pytest.mark.slow


def recorded(running: Running) -> list[tuple[str, str, int | None, bool, bool | None]]:
    found = [each for each in running.seat.context_messages if isinstance(each, BashExecutionMessage)]
    return [(each.command, each.output, each.exit_code, each.cancelled, each.exclude_from_context) for each in found]


def deltas(running: Running) -> str:
    return "".join([event.delta for event in running.heard if event.type == "bash_execution_update"])


async def printed(running: Running, *texts: str) -> None:
    """Returns when the commands have printed all of these."""
    news = trio.Event()
    leave = running.seat.subscribe(lambda _event: news.set() if all(text in deltas(running) for text in texts) else None)
    if not all(text in deltas(running) for text in texts):
        await news.wait()
    leave()


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def shell(**settings: Any) -> Settings:
    return attrs.evolve(NO_RETRY, **settings)


# -- here --------------------------------------------------------------------------------


@pytest.mark.rule("UB-1", "RPC-75", "RPC-76", "RPC-79")
async def test_a_command_runs_is_told_cleaned_and_is_recorded() -> None:
    async with opened([]) as running:
        done = await running.seat.user_bash("printf 'x\\r\\n\\033[31mred\\033[0m\\n'; echo err >&2; exit 4", command_id="c1")
        hidden = await running.seat.user_bash("echo hidden", exclude_from_context=True)

        assert done == UserBashOutput(output="x\nred\nerr\n", exit_code=4, cancelled=False, truncated=False)
        assert hidden.output == "hidden\n"
        assert deltas(running) == "x\nred\nerr\nhidden\n"
        ids = [event.id for event in running.heard if event.type == "bash_execution_update"]
        assert (ids[0], ids[-1]) == ("c1", None)
        assert [(each[1], each[2], each[4]) for each in recorded(running)] == [("x\nred\nerr\n", 4, None), ("hidden\n", 0, True)]
        assert [event.type for event in running.heard if event.type.startswith("message")] == []


@pytest.mark.rule("UB-6", "RPC-80")
async def test_the_prefix_runs_and_is_not_recorded_and_session_variables_are_not_set() -> None:
    async with opened([], settings=shell(shell_command_prefix="X=5")) as running:
        world = running.seat.world
        assert isinstance(world.environment, dict)
        world.environment.update(PATH=os.environ["PATH"], PI_SESSION_ID="old", AI_AGENT="camshaft")

        done = await running.seat.user_bash("echo $X; env | grep -E 'SESSION_ID|AI_AGENT'")

        assert done.output == "5\nAI_AGENT=camshaft\n"
        assert recorded(running)[0][0] == "echo $X; env | grep -E 'SESSION_ID|AI_AGENT'"


@pytest.mark.rule("RPC-77", "TOOL-53")
async def test_long_output_is_cut_and_all_of_it_is_in_a_file(tmp_path: Path) -> None:
    async with opened([]) as running:
        assert isinstance(running.seat.world.environment, dict)
        running.seat.world.environment.update(PATH=os.environ["PATH"], TMPDIR=str(tmp_path))

        done = await running.seat.user_bash("seq 1 3000 | sed 's/^/\\x1b[1m/'")

    assert (done.truncated, done.output.startswith("1001\n"), done.output.endswith("3000")) == (True, True, True)
    (name,) = names(tmp_path)
    assert (done.full_output_path, name.startswith("camshaft-bash-")) == (str(tmp_path / name), True)
    assert await trio.Path(tmp_path / name).read_text("utf-8") == "".join([f"{number}\n" for number in range(1, 3001)])


@pytest.mark.rule("RPC-78", "UB-2")
async def test_several_run_at_once_and_an_abort_ends_all_of_them_with_what_they_started() -> None:
    async with opened([]) as running:
        done: list[UserBashOutput] = []

        async def run(command: str) -> None:
            done.append(await running.seat.user_bash(command))

        async with trio.open_nursery() as nursery:
            for name in ("one", "two"):
                nursery.start_soon(run, f"echo {name}; sleep 100 & sleep 100; echo never")
            with trio.fail_after(10):
                await printed(running, "one\n", "two\n")
            was_running = running.seat.is_bash_running
            running.seat.abort_bash()

        assert (was_running, running.seat.is_bash_running) == (True, False)
        assert sorted([(each.output, each.exit_code, each.cancelled) for each in done]) == [("one\n", None, True), ("two\n", None, True)]
        assert sorted([each[1:4] for each in recorded(running)]) == [("one\n", None, True), ("two\n", None, True)]
        running.seat.abort_bash()


@pytest.mark.rule("LOOP-35", "UB-6")
async def test_during_a_run_the_record_waits_for_its_end() -> None:
    seen: list[int] = []

    async def respond(_request: Any) -> Any:
        await kept[0].seat.user_bash("echo during")
        seen.append(len(recorded(kept[0])))
        return assistant("done")

    kept: list[Running] = []
    async with opened([respond]) as running:
        kept.append(running)
        await running.seat.prompt("hello")

        assert (seen, [each[1] for each in recorded(running)]) == ([0], ["during\n"])
        assert said(running.seat.context_messages)[-1][0] == "bashExecution"


@pytest.mark.rule("UB-5")
@pytest.mark.parametrize("settings", [shell(shell_path="/no/such/shell"), shell(shell_path="/etc/passwd")])
async def test_what_cannot_be_run_is_an_error_and_is_not_recorded(settings: Settings) -> None:
    async with opened([], settings=settings) as running:
        with pytest.raises(UserBashFailed):
            await running.seat.user_bash("true")

        assert (recorded(running), running.seat.is_bash_running) == ([], False)


@pytest.mark.rule("SDK-16", "RPC-92")
async def test_closing_ends_a_command_and_records_it_first() -> None:
    async with opened([]) as running:
        done: list[UserBashOutput] = []

        async def run() -> None:
            done.append(await running.seat.user_bash("echo begun; sleep 100"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            with trio.fail_after(10):
                await printed(running, "begun\n")
                await running.seat.close()

        assert [each.cancelled for each in done] == [True]
        assert recorded(running) == [("echo begun; sleep 100", "begun\n", None, True, None)]


# -- elsewhere ---------------------------------------------------------------------------

ANSWER = {"output": "theirs", "exit_code": 3, "cancelled": False, "truncated": False, "full_output_path": "/x"}


@pytest.mark.rule("UB-3", "RPC-80")
async def test_a_result_of_a_handler_is_recorded_and_nothing_is_run(tmp_path: Path) -> None:
    events: list[Any] = []

    def answer(event: Any, _ctx: Any) -> Any:
        events.append((event.command, event.exclude_from_context, event.cwd))
        return {"result": ANSWER}

    async with opened([], handling("user_bash", answer)) as running:
        done = await running.seat.user_bash(f"touch {tmp_path}/ran", exclude_from_context=True)

        assert (events, done.output, done.exit_code) == ([(f"touch {tmp_path}/ran", True, "/")], "theirs", 3)
        assert (recorded(running)[0][1:], deltas(running)) == (("theirs", 3, False, True), "")
        assert names(tmp_path) == []


class Remote:
    """Operations that answer as told."""

    def __init__(self, *pieces: bytes | str, code: Any = 0, error: Exception | None = None) -> None:
        self.pieces, self.code, self.error = pieces, code, error
        self.asked: list[tuple[str, str]] = []

    async def exec(self, command: str, cwd: str, *, on_data: Any, signal: Any, timeout: Any, env: Any) -> Any:
        self.asked.append((command, cwd))
        for piece in self.pieces:
            on_data(piece)
            await trio.lowlevel.checkpoint()
        if self.error is not None:
            raise self.error
        if self.code == "hangs":
            await signal.wait()
            return {"exit_code": None}
        return {"exit_code": self.code}


@pytest.mark.rule("UB-3", "UB-6")
async def test_operations_of_a_handler_run_the_command_with_the_prefix() -> None:
    remote = Remote(b"a\x1b[1", b"mb", "c\n", code=7)

    async with opened([], handling("user_bash", lambda *_: {"operations": remote}), settings=shell(shell_command_prefix="p")) as running:
        done = await running.seat.user_bash("cmd")

        assert remote.asked == [("p\ncmd", "/")]
        assert done == UserBashOutput(output="abc\n", exit_code=7, cancelled=False, truncated=False)
        assert (recorded(running), deltas(running)) == ([("cmd", "abc\n", 7, False, None)], "abc\n")


@pytest.mark.rule("UB-3")
async def test_operations_are_aborted_by_their_signal() -> None:
    remote = Remote("begun", code="hangs")
    done: list[UserBashOutput] = []

    async with opened([], handling("user_bash", lambda *_: {"operations": remote})) as running:

        async def run() -> None:
            done.append(await running.seat.user_bash("cmd"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await trio.testing.wait_all_tasks_blocked()
            running.seat.abort_bash()

    assert done == [UserBashOutput(output="begun", exit_code=None, cancelled=True, truncated=False)]


@pytest.mark.rule("UB-3", "UB-5")
@pytest.mark.parametrize(
    ("remote", "said_"),
    [
        (Remote("x", error=OSError("no route")), "user_bash operations failed: no route"),
        (Remote(code="0"), "user_bash operations gave exit_code '0'; expected a whole number or None"),
        (Remote(code=True), "user_bash operations gave exit_code True; expected a whole number or None"),
    ],
)
async def test_operations_that_fail_are_an_error_and_nothing_is_recorded(remote: Remote, said_: str) -> None:
    async with opened([], handling("user_bash", lambda *_: {"operations": remote})) as running:
        with pytest.raises(CommandRefused) as failed:
            await running.seat.user_bash("cmd")

        assert (str(failed.value), recorded(running)) == (said_, [])


def raises(*_: Any) -> Any:
    raise ValueError("no")


@pytest.mark.rule("UB-4", "UB-5", "ERR-6")
@pytest.mark.parametrize("bad", [raises, lambda *_: {}, lambda *_: {"result": ANSWER, "operations": Remote()}, lambda *_: 5])
async def test_a_handler_that_fails_blocks_the_command_and_the_next_is_not_asked(tmp_path: Path, bad: Any) -> None:
    asked: list[int] = []

    async with opened([], handling("user_bash", bad), handling("user_bash", lambda *_: asked.append(1))) as running:
        with pytest.raises(UserBashFailed) as failed:
            await running.seat.user_bash(f"touch {tmp_path}/ran")

        ((_, event, error),) = running.errors()
        assert (event, str(failed.value), asked, recorded(running)) == ("user_bash", error, [], [])
    assert names(tmp_path) == []


@pytest.mark.rule("UB-4")
async def test_a_handler_that_says_nothing_lets_the_next_and_then_this_computer_decide() -> None:
    async with opened([], handling("user_bash", lambda *_: None), handling("user_bash", lambda *_: {"result": ANSWER})) as running:
        assert (await running.seat.user_bash("echo here")).output == "theirs"

    async with opened([], handling("user_bash", lambda *_: None)) as running:
        assert (await running.seat.user_bash("echo here")).output == "here\n"
