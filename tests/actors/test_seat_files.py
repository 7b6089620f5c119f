"""What a conversation tells and writes of its session: statistics, an export."""

from pathlib import Path
from typing import Any

import pytest

from camshaft.actors.api import current_prompt, current_tools, list_sessions
from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.extensions_std.providers.scripted import assistant
from camshaft.kernel import codec
from tests.actors.running import handling, opened, simulate, tool
from tests.actors.small_run import SCRIPT, works


@pytest.mark.rule("SES-63", "RPC-74")
def test_statistics_count_what_the_session_holds() -> None:
    async def run() -> None:
        async with opened(SCRIPT, tools=[tool(works)]) as running:
            before = await running.seat.statistics()
            assert (before.totals.total_messages, before.costs) == (0, ())
            await running.seat.prompt("go")
            found = await running.seat.statistics()

            assert (found.session_id, found.session_file) == (running.seat.state.header.id, running.seat.session_file)
            assert (found.totals.user_messages, found.totals.assistant_messages) == (1, 2)
            assert (found.totals.tool_calls, found.totals.tool_results) == (2, 2)
            assert found.totals.total_messages == len(list(running.seat.context_messages))
            assert found.context_usage is not None

    simulate(run)


@pytest.mark.rule("SES-86", "SDK-13")
def test_an_export_opens_again_with_the_same_context() -> None:
    files = MemoryLogFiles()

    async def run() -> None:
        async with opened([assistant("one"), assistant("two")], files=files) as running:
            await running.seat.prompt("go")
            path = await running.seat.export_jsonl("/out/export.jsonl")

            assert path == "/out/export.jsonl"
            lines = [codec.loads(line) for line in files.read(path).splitlines()]
            own = [codec.encode(entry) for entry in running.seat.state.tree.entries()]
            assert lines[1:] == own
            header: Any = lines[0]
            assert header["id"] == running.seat.state.header.id

    simulate(run)


@pytest.mark.rule("API-28")
def test_an_extension_lists_sessions_and_reads_prompt_and_tools_of_a_transcript(tmp_path: Path) -> None:
    seen: list[Any] = []

    async def look(_event: Any, ctx: Any) -> None:
        messages = ctx.session.build_session_projection().messages
        seen.append((await list_sessions(ctx.world, str(tmp_path)), current_prompt(messages), current_tools(messages)))

    async def run() -> None:
        async with opened(SCRIPT, handling("agent_settled", look), tools=[tool(works)]) as running:
            await running.seat.prompt("go")

    simulate(run)
    ((listed, prompt, tools),) = seen
    assert listed == ()
    assert "work" in [each.name for each in tools]
    assert prompt
