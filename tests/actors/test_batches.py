"""Batches of tool calls: when each begins, and what an abort or a handler makes of the results."""

from collections.abc import Callable
from typing import Any

import pytest

from camshaft.extensions_std.providers.scripted import assistant, tool_call
from tests.actors.running import handling, opened, results, simulate, tool

BLOCK = {"block": True, "reason": "no", "terminate": True}


def run(calls: int, work: Any, *setups: Callable[[Any], Any]) -> list[tuple[str, bool]]:
    """Texts and errors of the results of so many calls in one answer."""

    async def ran() -> list[tuple[str, bool]]:
        script = [assistant([tool_call("work", {"n": number}) for number in range(calls)]), assistant("done")]
        async with opened(script, *setups, tools=[tool(work)]) as running:
            await running.seat.prompt("go")
            return [(text, is_error) for _, text, is_error in results(running.seat.context_messages)]
        raise AssertionError

    found: list[tuple[str, bool]] = simulate(ran)
    return found


@pytest.mark.rule("LOOP-62")
@pytest.mark.parametrize("calls", [2, 5])
def test_call_that_aborts_at_once_leaves_the_later_ones_of_a_parallel_batch_unstarted(calls: int) -> None:
    async def work(_id: str, params: dict[str, Any], _signal: Any, _update: Any, ctx: Any) -> Any:
        ctx.abort()
        return {"content": [{"type": "text", "text": f"ran {params['n']}"}]}

    assert run(calls, work) == [("ran 0", False), *[("Operation aborted", True)] * (calls - 1)]


@pytest.mark.rule("TOOL-38")
def test_calls_of_a_parallel_batch_begin_in_source_order_and_before_any_result_is_handled() -> None:
    seen: list[str] = []

    async def work(_id: str, params: dict[str, Any], *_: Any) -> Any:
        seen.append(f"begun {params['n']}")
        return {"content": []}

    def handler(_event: Any, _ctx: Any) -> None:
        seen.append("result")

    run(4, work, handling("tool_result", handler))

    assert seen == ["begun 0", "begun 1", "begun 2", "begun 3", *["result"] * 4]


@pytest.mark.rule("TOOL-5")
def test_abort_in_a_hook_wins_over_its_block_but_not_over_its_raise() -> None:
    def blocking(_event: Any, ctx: Any) -> Any:
        ctx.abort()
        return BLOCK

    def raising(_event: Any, ctx: Any) -> Any:
        ctx.abort()
        raise ValueError("boom")

    async def work(*_: Any) -> Any:
        raise AssertionError

    found = [run(1, work, handling("tool_call", handler)) for handler in (blocking, raising)]

    assert found == [[("Operation aborted", True)], [("boom", True)]]


@pytest.mark.rule("TOOL-33")
def test_hook_that_returns_terminate_changes_the_rest_and_the_run_goes_on() -> None:
    async def work(*_: Any) -> Any:
        return {"content": [{"type": "text", "text": "old"}]}

    def handler(_event: Any, _ctx: Any) -> Any:
        return {"content": [{"type": "text", "text": "new"}], "terminate": True}

    async def ran() -> tuple[list[str], list[Any], int]:
        script = [assistant(tool_call("work")), assistant("done")]
        async with opened(script, handling("tool_result", handler), tools=[tool(work)]) as running:
            await running.seat.prompt("go")
            return [text for _, text, _ in results(running.seat.context_messages)], running.errors(), running.count("turn_end")
        raise AssertionError

    assert simulate(ran) == (["new"], [], 2)
