"""A run gives way to what a host starts when it hears of an event: it counts in what comes next, whatever order tasks run in."""

from typing import Any

import pytest
import trio

from camshaft.actors.actor import give_way
from camshaft.extensions_std.providers.scripted import assistant, tool_call
from tests.actors.running import opened, said, simulate, tool

OFTEN = 8
"""Tasks of one round run forwards or backwards by chance; so many tries see both."""


@pytest.mark.rule("LOOP-14")
def test_a_message_steered_on_hearing_of_the_end_of_a_turn_is_in_the_next_one() -> None:
    async def steered() -> list[tuple[str | None, str]]:
        async def work(*_: Any) -> Any:
            return {"content": [{"type": "text", "text": "ok"}]}

        async with opened([assistant(tool_call("work")), assistant("done")], tools=[tool(work)]) as running, trio.open_nursery() as nursery:
            turns: list[Any] = []

            def hear(event: Any) -> None:
                if event.type == "turn_end":
                    turns.append(event)
                    if len(turns) == 1:
                        nursery.start_soon(running.seat.steer, "late")

            running.seat.subscribe(hear)
            await running.seat.prompt("go")
            return said(running.seat.context_messages)
        raise AssertionError

    for _ in range(OFTEN):
        assert [text for _role, text in simulate(steered)] == ["go", "", "ok", "late", "done"]


@pytest.mark.rule("LOOP-42")
def test_a_prompt_made_on_hearing_of_the_settling_runs_before_the_first_one_returns() -> None:
    async def prompted() -> list[tuple[str | None, str]]:
        async with opened([assistant("one"), assistant("two")]) as running, trio.open_nursery() as nursery:
            settled: list[Any] = []

            def hear(event: Any) -> None:
                if event.type == "agent_settled":
                    settled.append(event)
                    if len(settled) == 1:
                        nursery.start_soon(running.seat.prompt, "again")

            running.seat.subscribe(hear)
            await running.seat.prompt("go")
            return said(running.seat.context_messages)
        raise AssertionError

    for _ in range(OFTEN):
        assert [text for _role, text in simulate(prompted)] == ["go", "one", "again", "two"]


def test_a_cancellation_is_not_seen_while_giving_way() -> None:
    async def cancelled() -> tuple[bool, bool]:
        async with trio.open_nursery() as nursery:
            with trio.CancelScope() as scope:
                scope.cancel()
                nursery.start_soon(trio.lowlevel.checkpoint)
                await give_way()
                passed = True
                await trio.lowlevel.checkpoint()
        return passed, scope.cancelled_caught

    assert simulate(cancelled) == (True, True)
