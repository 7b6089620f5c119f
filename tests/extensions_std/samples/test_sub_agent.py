"""The sample `sub_agent` in a session, and the same script without it."""

from collections.abc import Callable, Sequence
from typing import Any

import trio

from camshaft.actors.host import NewSession
from camshaft.extensions_std.providers.scripted import Fail, Hang, Step, assistant, tool_call
from camshaft.extensions_std.samples import sub_agent
from camshaft.kernel.statistics import tally
from tests.actors.running import Running, opened, results, simulate, tool

TASK = {"task": "Count the files in src."}
SCRIPT = [assistant(tool_call("delegate", TASK)), assistant("There are 12."), assistant("The project has 12 files.")]


async def _played(script: Sequence[Step], *setups: Callable[[Any], None], **more: Any) -> Running:
    async with opened(script, *setups, session=NewSession(directory="/sessions"), durability="none", **more) as running:
        await running.seat.prompt("How many files?")
        return running


def test_the_answer_of_the_sub_agent_and_its_usage_are_in_the_log_and_without_it_the_tool_is_unknown() -> None:
    plain = simulate(_played, SCRIPT)
    delegated = simulate(_played, SCRIPT, sub_agent.setup)

    assert results(plain.seat.context_messages)[0][1:] == ("Tool delegate not found", True)
    assert results(delegated.seat.context_messages)[0][1:] == ("There are 12.", False)
    entries = delegated.seat.state.tree.entries()
    stored = [entry.message for entry in entries if entry.type == "message" and entry.message.role == "toolResult"]
    assert stored[0].usage is not None
    assert stored[0].details["stopReason"] == "stop"
    own = sum([message.usage.output for message in delegated.seat.context_messages if message.role == "assistant"])
    total = tally(delegated.seat.state.tree.entries()).statistics.tokens.output
    assert total == own + stored[0].usage.output


def test_the_sub_agent_sees_its_task_and_nothing_of_the_conversation() -> None:
    running = simulate(_played, SCRIPT, sub_agent.setup)

    asked = str(running.provider.requests[1].messages)
    assert "Count the files in src." in asked
    assert "How many files?" not in asked
    assert sub_agent.PROMPT in asked


def test_it_has_the_tools_it_is_given_and_never_the_one_that_made_it() -> None:
    async def work(*_: Any) -> str:
        return "ok"

    def two_tools(api: Any) -> None:
        for name in ("one", "two"):
            api.register_tool(tool(work, name=name))

    def names(script: Sequence[Step]) -> set[str]:
        running = simulate(_played, script, sub_agent.setup, two_tools)
        request = running.provider.requests[1]
        return {each.name for message in request.messages if message.role == "system" for each in message.tools_added or ()}

    assert names(SCRIPT) == {"one", "two"}
    only_one = assistant(tool_call("delegate", {**TASK, "tools": ["one", "delegate"]}))
    assert names([only_one, *SCRIPT[1:]]) == {"one"}


def test_a_sub_agent_that_fails_is_an_error_for_its_parent() -> None:
    running = simulate(_played, [SCRIPT[0], [Fail("overloaded by the moon")], SCRIPT[2]], sub_agent.setup)

    assert results(running.seat.context_messages)[0][1:] == ("The sub-agent failed: overloaded by the moon", True)


def test_an_abort_of_the_run_aborts_the_sub_agent() -> None:
    async def act() -> None:
        async with opened([SCRIPT[0], [Hang()]], sub_agent.setup) as running:
            receipt = await running.seat.submit("How many files?")
            await trio.sleep(1)
            await running.seat.abort()
            await receipt.wait()
            assert [is_error for _, _, is_error in results(running.seat.context_messages)] == [True]

    simulate(act)
