"""Child sessions: what they share with their parent, what ends them, and how deep they go."""

from typing import Any

import pytest
import trio

from camshaft.actors.children import CHILD_DEPTH_MAX
from camshaft.actors.host import ChildOptions, ChildOutcome, CommandRefused, MemorySession, NewSession
from camshaft.extensions_std.providers.scripted import Fail, Hang, assistant, tool_call
from camshaft.kernel.messages import ToolResultMessage
from tests.actors.running import Running, handling, opened, results, said, simulate, tool


def delegating(outcomes: list[Any], options: ChildOptions | None = None) -> Any:
    """A tool that prompts a child and says what came of it."""

    async def execute(_call_id: str, _arguments: Any, _signal: Any, _update: Any, ctx: Any) -> Any:
        async with ctx.open_child(options) as child:
            outcome: ChildOutcome = await child.prompt("part of the work")
            outcomes.append((outcome, child))
        return {"content": [{"type": "text", "text": outcome.text or outcome.stop_reason}], "usage": outcome.usage}

    return tool(execute, name="delegate")


def closed(running: Running) -> bool:
    return [seat for seat in running.kernel._seats if not seat.is_closed] == [running.seat]


def test_only_the_answer_of_a_child_comes_back_and_its_usage_counts_for_the_parent() -> None:
    outcomes: list[Any] = []

    async def act() -> None:
        script = [assistant(tool_call("delegate")), assistant("found it"), assistant("done")]
        async with opened(script, tools=[delegating(outcomes)]) as running:
            await running.seat.prompt("work")

            assert [text for _, text, _ in results(running.seat.context_messages)] == ["found it"]
            outcome, _ = outcomes[0]
            assert outcome.usage.output > 0
            stored = [message.usage for message in running.seat.context_messages if isinstance(message, ToolResultMessage)]
            assert stored == [outcome.usage]
            assert closed(running)
            asked = [request.messages for request in running.provider.requests]
            assert ["part of the work" in str(messages) for messages in asked] == [False, True, False]

    simulate(act)


def test_a_gate_of_the_parent_guards_the_child() -> None:
    def block(event: Any, _ctx: Any) -> Any:
        return {"block": True, "reason": "not here"} if event.tool_name == "danger" else None

    ran: list[str] = []
    outcomes: list[Any] = []

    async def danger(*_: Any) -> str:
        ran.append("danger")
        return "boom"

    async def act(options: ChildOptions | None) -> list[Any]:
        outcomes.clear()
        script = [assistant(tool_call("delegate")), assistant(tool_call("danger")), assistant("stopped"), assistant("done")]
        tools = [delegating(outcomes, options), tool(danger, name="danger")]
        async with opened(script, handling("tool_call", block), tools=tools) as running:
            await running.seat.prompt("work")
            return [text for _, text, _ in results(outcomes[0][1].messages)]

    assert simulate(act, None) == ["not here"]
    assert ran == []
    simulate(act, ChildOptions(extensions=()))
    assert ran == ["danger"]


def test_an_abort_flows_down_and_the_child_ends_with_its_block() -> None:
    outcomes: list[Any] = []

    async def act() -> None:
        async with opened([assistant(tool_call("delegate")), [Hang()]], tools=[delegating(outcomes)]) as running:
            receipt = await running.seat.submit("work")
            await trio.sleep(1)
            await running.seat.abort()
            await receipt.wait()

            assert outcomes[0][0].stop_reason == "aborted"
            assert closed(running)
            assert running.seat.is_idle

    simulate(act)


def test_closing_the_parent_at_once_leaves_no_child_behind() -> None:
    async def act() -> None:
        async with opened([assistant(tool_call("delegate")), [Hang()]], tools=[delegating([])]) as running:
            await running.seat.submit("work")
            await trio.sleep(1)
            children = [seat for seat in running.kernel._seats if seat is not running.seat]
            with trio.fail_after(60):
                await running.kernel.close(at_once=True)
            assert [child.is_closed for child in children] == [True]

    simulate(act)


def test_a_failed_answer_of_a_child_is_an_outcome() -> None:
    outcomes: list[Any] = []

    async def act() -> None:
        script: list[Any] = [assistant(tool_call("delegate")), [Fail("no such luck")], assistant("done")]
        async with opened(script, tools=[delegating(outcomes)]) as running:
            await running.seat.prompt("work")
            assert (outcomes[0][0].stop_reason, outcomes[0][0].error) == ("error", "no such luck")

    simulate(act)


def test_children_end_somewhere() -> None:
    refused: list[str] = []

    async def execute(_call_id: str, _arguments: Any, _signal: Any, _update: Any, ctx: Any) -> str:
        try:
            async with ctx.open_child() as child:
                return str((await child.prompt("deeper")).text)
        except CommandRefused as error:
            refused.append(str(error))
            return "no deeper"

    async def act() -> None:
        calls = [assistant(tool_call("delegate")) for _ in range(CHILD_DEPTH_MAX + 1)]
        answers = [assistant(f"level {number}") for number in range(CHILD_DEPTH_MAX + 1)]
        async with opened([*calls, *answers], tools=[tool(execute, name="delegate")]) as running:
            await running.seat.prompt("work")
            assert said(running.seat.context_messages)[-1] == ("assistant", f"level {CHILD_DEPTH_MAX}")

    simulate(act)

    assert refused == [f"this conversation is {CHILD_DEPTH_MAX} levels beneath its first; children end at {CHILD_DEPTH_MAX}"]


@pytest.mark.parametrize("is_kept", [False, True])
def test_the_session_of_a_child_is_kept_on_request(is_kept: bool) -> None:
    outcomes: list[Any] = []

    async def act() -> None:
        script = [assistant(tool_call("delegate")), assistant("found it"), assistant("done")]
        options = ChildOptions(is_kept=is_kept)
        session = NewSession(directory="/sessions")
        async with opened(script, tools=[delegating(outcomes, options)], session=session, durability="none") as running:
            await running.seat.prompt("work")
            path = outcomes[0][1].session_file
            files = running.kernel.world.log_files
            assert (path is not None and files.state(path) is not None) is is_kept
            if is_kept:
                assert str(running.seat.session_file) in files.read(path).decode()

    simulate(act)


def test_what_a_child_does_to_its_parent_s_dialogs_is_nothing() -> None:
    async def act() -> None:
        async with opened([assistant("one")], session=MemorySession()) as running:
            async with running.seat.open_child() as child:
                assert (await child.prompt("hello")).text == "one"
            assert running.seat.is_idle
            assert said(running.seat.context_messages) == []

    simulate(act)


def test_a_child_that_no_run_waits_for_ends_with_its_parent() -> None:
    outcomes: list[Any] = []

    def commanding(api: Any) -> None:
        async def go(_arguments: str, ctx: Any) -> None:
            async with ctx.open_child() as child:
                outcomes.append(await child.prompt("part of the work"))

        api.register_command("go", go)

    async def act() -> None:
        async with opened([[Hang()]], commanding) as running, trio.open_nursery() as nursery:
            nursery.start_soon(running.seat.prompt, "/go")
            await trio.sleep(1)
            with trio.fail_after(60):
                await running.seat.close()
            await trio.sleep(1)
            assert [outcome.stop_reason for outcome in outcomes] == ["aborted"]
            assert [seat.is_closed for seat in running.kernel._seats] == [True, True]

    simulate(act)
