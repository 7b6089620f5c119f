"""The bash tool: what the model gets, while it runs and at the end, and what is left."""

import resource
import stat
from pathlib import Path
from typing import Any

import pytest
import trio

from camshaft.actors.ports.files import PrivateFile, RealFiles
from camshaft.extensions_std.tools import ShellOptions, ToolFailure, create_bash_tool, create_powershell_tool
from camshaft.kernel.models import Model
from tests.extensions_std.tools.calls import (
    CallContext,
    Switch,
    arrived,
    call,
    context,
    end_all,
    gone,
    open_handles,
    running,
    text,
    update_text,
)


@pytest.mark.rule("TOOL-77", "TOOL-93")
async def test_programs_get_the_code_the_time_and_all_of_the_output(tmp_path: Path) -> None:
    result = await call(create_bash_tool(), {"command": "echo a; exit 3"}, context(tmp_path))

    structured = dict(result.structured_content)
    assert 0 <= structured.pop("wall_time_seconds") < 5
    assert structured == {"output": "a\n", "truncated": False, "exit_code": 3}
    assert (text(result), result.is_error, result.details) == ("a\n\n\nCommand exited with code 3", True, None)


@pytest.mark.slow
@pytest.mark.rule("TOOL-78")
async def test_the_first_update_is_empty_and_later_ones_show_the_tail(tmp_path: Path) -> None:
    updates: list[str] = []

    await call(create_bash_tool(), {"command": "echo one; sleep 0.15; echo two; sleep 0.15"}, context(tmp_path), on_update=_into(updates))

    assert updates[0] == ""
    assert updates[1:] in (["one\n", "one\ntwo\n"], ["one\ntwo\n"])  # A busy computer may join the two.


@pytest.mark.slow
@pytest.mark.rule("TOOL-78")
async def test_a_command_that_prints_fast_gives_few_updates(tmp_path: Path) -> None:
    updates: list[str] = []

    await call(create_bash_tool(), {"command": "for i in {1..20000}; do echo $i; done"}, context(tmp_path), on_update=_into(updates))

    assert 2 <= len(updates) < 40


@pytest.mark.rule("TOOL-74", "TOOL-53")
async def test_an_abort_in_mid_output_keeps_the_tail_and_the_spill_file(tmp_path: Path) -> None:
    switch, failures = Switch(), list[str]()
    command = "(sleep 60 &) ; i=0; while :; do i=$((i+1)); echo line $i; done"

    def give_late(update: Any) -> None:
        if update.details is not None:
            switch.give()

    with pytest.raises(ToolFailure) as failure:
        await call(create_bash_tool(), {"command": command}, context(tmp_path), switch, give_late)
    failures.append(str(failure.value))

    assert failures[0].endswith("]\n\nCommand aborted")
    (spill,) = (tmp_path / "scratch").iterdir()
    assert f"Full output: {spill}" in failures[0]
    assert spill.read_text().startswith("line 1\nline 2\n")
    assert await gone(tmp_path), running(tmp_path)


@pytest.mark.rule("TOOL-56")
async def test_an_aborted_call_does_not_start(tmp_path: Path) -> None:
    switch = Switch()
    switch.give()

    with pytest.raises(ToolFailure, match=r"^Command aborted$"):
        await call(create_bash_tool(), {"command": "touch started"}, context(tmp_path), switch)

    assert not (tmp_path / "started").exists()


@pytest.mark.slow
@pytest.mark.rule("TOOL-73")
async def test_a_timeout_names_the_exit_of_a_shell_that_was_done(tmp_path: Path) -> None:
    command = "(while :; do echo x; sleep 0.02; done) & exit 4"

    with pytest.raises(
        ToolFailure, match=r"(?s)^x\n.*\n\nCommand timed out after 0.6 seconds \(the shell had exited with code 4 after 0\.\d s"
    ):
        await call(create_bash_tool(), {"command": command, "timeout": 0.6}, context(tmp_path))

    assert await gone(tmp_path), running(tmp_path)


@pytest.mark.rule("TOOL-73")
@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan"), 2147483.648])
async def test_a_time_limit_out_of_range_is_refused(tmp_path: Path, timeout: float) -> None:
    with pytest.raises(ToolFailure, match="timeout is"):
        await call(create_bash_tool(), {"command": "true", "timeout": timeout}, context(tmp_path))


@pytest.mark.rule("TOOL-53")
async def test_the_spill_file_is_its_owners_alone_and_complete(tmp_path: Path) -> None:
    result = await call(create_bash_tool(), {"command": "seq 1 30000"}, context(tmp_path))

    (spill,) = (tmp_path / "scratch").iterdir()
    assert result.details["fullOutputPath"] == str(spill)
    assert spill.name == "camshaft-bash-0000000000000001.log"
    assert stat.S_IMODE(spill.stat().st_mode) == 0o600
    assert spill.read_text() == "".join([f"{number}\n" for number in range(1, 30001)])


@pytest.mark.slow
@pytest.mark.rule("A38", "TOOL-77")
async def test_a_huge_output_in_one_line_needs_little_memory(tmp_path: Path) -> None:
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    result = await call(create_bash_tool(), {"command": "head -c 100000000 /dev/zero | tr '\\0' z"}, context(tmp_path))

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 40_000
    assert "Showing the last 50.0KB of line 1, which is 95.4MB" in text(result)
    assert result.structured_content["truncated"] is True
    assert "\n\n[... 98951424 bytes left out ...]\n\n" in result.structured_content["output"]
    (spill,) = (tmp_path / "scratch").iterdir()
    assert result.structured_content["full_output_path"] == str(spill)
    assert spill.stat().st_size == 100_000_000
    spill.unlink()


@pytest.mark.rule("A38")
async def test_output_that_cannot_be_kept_costs_the_file_and_not_the_command(tmp_path: Path) -> None:
    class FullDisk:
        """Every call but the one that fails is that of real files."""

        async def create_private(self, path: str) -> PrivateFile:
            await trio.lowlevel.checkpoint()
            raise OSError(28, "No space left on device", path)

    tool = create_bash_tool(ShellOptions(files=FullDisk()))  # type: ignore[arg-type]  # the one method a shell needs

    result = await call(tool, {"command": "seq 1 30000"}, context(tmp_path))

    assert text(result).endswith("30000\n\n[Showing lines 28001-30000 of 30000. The full output was not kept (ENOSPC)]")
    assert "fullOutputPath" not in result.details


@pytest.mark.rule("TOOL-71")
async def test_session_variables_of_another_session_are_gone_and_ours_are_there(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    inherited = {**ctx.world.environment, "PI_SESSION_FILE": "stale", "CAMSHAFT_MODEL": "stale", "PI_OTHER": "kept"}
    world = type(ctx.world)(environment=inherited)
    model = Model(id="m1", provider="acme", api="api")
    session = CallContext(cwd=ctx.cwd, world=world, session_id="s1", model=model, thinking_level="high")

    shown = await call(create_bash_tool(), {"command": "env | grep -E '^(PI|CAMSHAFT)_' | grep -v MARK | sort"}, session)
    hidden = await call(
        create_bash_tool(ShellOptions(expose_session=False)), {"command": "env | grep -E '^(PI|CAMSHAFT)_' | grep -v MARK"}, session
    )

    own = ["MODEL=m1", "PROVIDER=acme", "REASONING_LEVEL=high", "SESSION_ID=s1"]
    assert text(shown).splitlines() == [f"CAMSHAFT_{each}" for each in own] + sorted([*[f"PI_{each}" for each in own], "PI_OTHER=kept"])
    assert text(hidden) == "PI_OTHER=kept\n"


async def test_a_working_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    ctx = CallContext(cwd=str(tmp_path / "gone"), world=context(tmp_path).world)

    with pytest.raises(ToolFailure, match=r"Working directory '.*/gone' cannot be entered.*ENOENT"):
        await call(create_bash_tool(), {"command": "true"}, ctx)


@pytest.mark.rule("TOOL-70")
async def test_a_shell_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolFailure, match="none of /no/such/shell can be run"):
        await call(create_bash_tool(ShellOptions(shell_path="/no/such/shell")), {"command": "true"}, context(tmp_path))


@pytest.mark.rule("TOOL-79")
async def test_powershell_is_refused_where_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(ToolFailure, match="runs on Windows only"):
        await call(create_powershell_tool(), {"command": "Get-Date"}, context(tmp_path))


@pytest.mark.slow
async def test_a_call_cancelled_at_any_time_leaves_nothing(tmp_path: Path) -> None:
    before = open_handles()
    command = "sleep 60 & seq 1 3000; sleep 0.05; seq 1 3000; sleep 60"

    for milliseconds in range(0, 120, 4):
        with trio.move_on_after(milliseconds / 1000):
            await call(create_bash_tool(), {"command": command}, context(tmp_path))
        assert await gone(tmp_path), (milliseconds, running(tmp_path))
        assert open_handles() <= before, milliseconds


async def test_background_children_survive_a_normal_end(tmp_path: Path) -> None:
    result = await call(create_bash_tool(), {"command": "sleep 30 >/dev/null 2>&1 & echo started"}, context(tmp_path))

    assert text(result) == "started\n"
    assert await arrived(tmp_path, 1)
    end_all(tmp_path)


def _into(texts: list[str]) -> Any:
    return lambda update: texts.append(update_text(update))


def test_real_files_can_stand_in_for_the_tools_own() -> None:
    assert create_bash_tool(ShellOptions(files=RealFiles())).name == "bash"
