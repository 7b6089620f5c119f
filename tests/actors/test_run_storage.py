"""Runs whose log refuses any one of its writes, or all from there on: what is told, and that the state never leads the log."""

import errno
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from camshaft.actors.errors import StorageError
from camshaft.actors.simulation.log_files import Fault, MemoryLogFiles, Operation
from tests.actors.running import opened, said, simulate, tool, unanswered
from tests.actors.small_run import SCRIPT, next_prompt_is_answered, reopened, stored, works

# -- a log that refuses ------------------------------------------------------------------------


def full(number: int, last: int) -> Callable[[Operation], Fault | None]:
    """A disk that is full for the writes from `number` to `last`."""
    written = 0

    def fault(operation: Operation) -> Fault | None:
        nonlocal written
        written += operation.kind == "write"
        refused = operation.kind == "write" and number <= written <= last
        return Fault(error=OSError(errno.ENOSPC, "disk full")) if refused else None

    return fault


@attrs.frozen
class Refused:
    """How such a run ended, and what the next prompt found with a good disk."""

    settled: int
    error: str | None
    begun: set[str]
    """Calls whose begin was told."""
    messages: list[Any]
    answered: bool


async def refused(number: int, last: int, files: MemoryLogFiles) -> Refused:
    error: str | None = None
    async with opened(SCRIPT, files=files, tools=[tool(works)]) as running:
        files.fault = full(number, last)
        try:
            await running.seat.prompt("go")
        except StorageError as raised:
            error = str(raised)
        assert running.seat.state.live.activity.value == "idle"
        files.fault = None
        settled = running.count("agent_settled")
        try:
            answered = await next_prompt_is_answered(running)
        except StorageError as sealed:
            answered = "sealed" in str(sealed) and "open it again" in str(sealed)
        begun = {event.tool_call_id for event in running.heard if event.type == "tool_execution_start"}
        return Refused(settled, error, begun, stored(running), answered)
    raise AssertionError


WRITES = range(1, 13)


@pytest.mark.rule("SES-43", "BND-42", "LOOP-34", "A03")
@pytest.mark.parametrize("number", WRITES)
def test_a_log_that_refuses_one_write_loses_no_result_of_a_call_that_began(number: int) -> None:
    files = MemoryLogFiles()

    run: Refused = simulate(refused, number, number, files)
    after, _, answered_again = simulate(reopened, files)

    assert (run.answered, answered_again) == (True, True)
    assert run.settled == int(number > 2), "a run that never started does not settle"
    assert run.error is None or "disk full" in run.error
    assert said(after) == said(run.messages), "the state never leads the log"
    assert run.begun.isdisjoint(unanswered(after))


@pytest.mark.rule("SES-43", "BND-42", "LOOP-34", "A03")
@pytest.mark.parametrize("number", WRITES)
def test_a_log_that_refuses_every_write_ends_the_run_with_its_error(number: int) -> None:
    files = MemoryLogFiles()

    run: Refused = simulate(refused, number, 10_000, files)
    after, _, answered_again = simulate(reopened, files)

    assert (run.answered, answered_again) == (True, True)
    assert run.settled == int(number > 2)
    assert run.error is not None and "disk full" in run.error, "what cannot be stored is told"
    assert said(after) == said(run.messages), "the state never leads the log"
