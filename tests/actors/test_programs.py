"""Programs that extensions run: what is kept, and how the end is told. Real processes."""

from pathlib import Path
from typing import Any

import pytest
import trio

from camshaft.actors.ports.processes import RealProcesses
from camshaft.actors.programs import ExecResult, Program, run_program
from camshaft.actors.signal import AbortSignal
from camshaft.actors.world import real_world
from tests.actors.running import opened, simulate

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


def bash(script: str, folder: Path, **more: Any) -> Program:
    return Program(arguments=("bash", "-c", script), cwd=str(folder), environment=ENVIRONMENT, **more)


async def ended(program: Program) -> ExecResult:
    with trio.fail_after(20):
        return await run_program(RealProcesses(), program)


@pytest.mark.rule("API-25")
async def test_both_streams_come_apart_with_the_code_and_there_is_no_input(tmp_path: Path) -> None:
    end = await ended(bash("cat; echo out; echo err >&2; pwd; exit 3", tmp_path))

    assert end == ExecResult(stdout=f"out\n{tmp_path}\n", stderr="err\n", code=3, killed=False, truncated=False)


@pytest.mark.rule("API-25")
async def test_no_shell_reads_the_arguments(tmp_path: Path) -> None:
    program = Program(arguments=("printf", "%s|", "a b", "$HOME", "*"), cwd=str(tmp_path), environment=ENVIRONMENT)

    assert (await ended(program)).stdout == "a b|$HOME|*|"


@pytest.mark.rule("API-25")
@pytest.mark.parametrize(("name", "folder"), [("no-such-program-at-all", "."), ("bash", "gone")])
async def test_a_program_that_cannot_be_started_is_an_end_with_code_1(tmp_path: Path, name: str, folder: str) -> None:
    end = await ended(Program(arguments=(name,), cwd=str(tmp_path / folder), environment=ENVIRONMENT))

    assert (end.stdout, end.code, end.killed, end.truncated) == ("", 1, False, False)
    assert "No such file or directory" in end.stderr


@pytest.mark.slow
@pytest.mark.rule("API-25")
async def test_the_time_ends_a_program_politely(tmp_path: Path) -> None:
    end = await ended(bash("echo out; exec sleep 60", tmp_path, timeout_ms=200))

    assert end == ExecResult(stdout="out\n", stderr="", code=143, killed=True, truncated=False)


@pytest.mark.rule("API-25")
async def test_what_a_program_says_while_it_is_asked_to_end_is_kept(tmp_path: Path) -> None:
    signal = AbortSignal()
    signal.request()

    end = await ended(bash("trap 'echo bye; exit 7' TERM; kill -TERM $$; sleep 60", tmp_path, signal=signal))

    assert end in (
        ExecResult(stdout="bye\n", stderr="", code=7, killed=True, truncated=False),
        # Asked before it had set its trap.
        ExecResult(stdout="", stderr="", code=143, killed=True, truncated=False),
    )


@pytest.mark.rule("API-25")
async def test_a_signal_that_is_set_already_ends_it_at_once(tmp_path: Path) -> None:
    signal = AbortSignal()
    signal.request()

    end = await ended(bash("exec sleep 60", tmp_path, signal=signal))

    assert (end.code, end.killed) == (143, True)


@pytest.mark.slow
@pytest.mark.rule("API-25")
async def test_a_program_that_ignores_the_request_is_ended_by_force(tmp_path: Path) -> None:
    stubborn = "trap '' TERM; echo ready; while :; do sleep 60; done"

    end = await ended(bash(stubborn, tmp_path, timeout_ms=300, term_grace_s=0.2))

    assert end == ExecResult(stdout="ready\n", stderr="", code=137, killed=True, truncated=False)


@pytest.mark.rule("API-25")
@pytest.mark.parametrize("limit", [1, 4, 9, 1000])
async def test_output_is_cut_exactly_at_the_limit_of_both_streams_together(tmp_path: Path, limit: int) -> None:
    end = await ended(bash("printf 12345; printf 67890 >&2; yes", tmp_path, output_bytes_max=limit))

    assert len(end.stdout) + len(end.stderr) == limit
    assert (end.killed, end.truncated) == (True, True)
    assert end.code != 0


@pytest.mark.rule("API-25")
async def test_a_program_that_ended_well_with_too_much_output_has_no_good_code(tmp_path: Path) -> None:
    end = await ended(bash("printf 12345", tmp_path, output_bytes_max=4))

    assert (end.stdout, end.truncated, end.killed) == ("1234", True, True)
    assert end.code != 0


@pytest.mark.rule("API-25")
async def test_a_character_that_the_cut_left_incomplete_is_dropped_and_others_are_replaced(tmp_path: Path) -> None:
    cut = await ended(bash(r"printf 'a\303\244'", tmp_path, output_bytes_max=2))
    whole = await ended(bash(r"printf 'a\303'", tmp_path))

    assert (cut.stdout, whole.stdout) == ("a", "a\ufffd")


@pytest.mark.rule("API-25")
async def test_a_folder_is_relative_to_that_of_the_session(tmp_path: Path) -> None:
    found: list[str] = []
    (tmp_path / "sub").mkdir()

    async def setup(api: Any) -> None:
        found.extend([(await api.exec("pwd", **given)).stdout for given in ({"cwd": "sub"}, {"cwd": str(tmp_path)}, {})])

    async with opened([], setup, cwd=str(tmp_path), world=real_world(ENVIRONMENT)):
        pass

    assert found == [f"{tmp_path}/sub\n", f"{tmp_path}\n", f"{tmp_path}\n"]


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "no room": ({"max_buffer": 0}, "exec: max_buffer 0; expected a whole number of bytes above 0"),
    "room that is none": ({"max_buffer": "1k"}, "exec: max_buffer '1k'; expected a whole number of bytes above 0"),
    "no time": ({"timeout": 0}, "exec: timeout 0; expected a number of milliseconds above 0, or None"),
    "time that is none": ({"timeout": "1s"}, "exec: timeout '1s'; expected a number of milliseconds above 0, or None"),
    "arguments that are one text": ({"args": "-n 3"}, "exec: args '-n 3'; expected a list of texts, each one argument"),
    "arguments that are none": ({"args": None}, "exec: args None; expected a list of texts, each one argument"),
    "an argument that is no text": ({"args": ["-n", 3]}, "exec: 3 in the command; expected texts"),
}


@pytest.mark.rule("API-25")
@pytest.mark.parametrize(("given", "text"), MISTAKES.values(), ids=MISTAKES)
def test_limits_and_arguments_that_cannot_be_meant_are_refused(given: dict[str, Any], text: str) -> None:
    async def setup(api: Any) -> None:
        await api.exec("true", **given)

    async def load() -> list[str]:
        async with opened([], setup) as running:
            return [each.error for each in running.seat.load_errors]
        raise AssertionError

    assert simulate(load) == [text]
