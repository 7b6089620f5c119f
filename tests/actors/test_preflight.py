"""When a prompt counts as accepted, and who is told (SDK-8, LOOP-7, LOOP-9)."""

from typing import Any

import pytest
import trio

from camshaft.actors.errors import CommandRefused
from camshaft.actors.prompts import BUSY_TEXT
from camshaft.actors.seat import SeatClosed
from camshaft.extensions_std.providers.scripted import assistant
from tests.actors.running import handling, opened, simulate

pytestmark = pytest.mark.rule("SDK-8")


def told_of(text: str, *setups: Any, **options: Any) -> list[Any]:
    """What happened for a prompt, in order: events by their type, and what `preflight` was told."""

    async def run() -> list[Any]:
        heard: list[Any] = []
        async with opened([assistant("Yes.")], *setups) as running:
            running.seat.subscribe(lambda event: heard.append(event.type))
            receipt = await running.seat.submit(text, preflight=heard.append, **options)
            await receipt.wait()
        return heard

    found: list[Any] = simulate(run)
    return found


def test_a_run_is_accepted_when_it_is_prepared_and_before_its_first_event() -> None:
    heard = told_of("go", handling("before_agent_start", lambda _event, _ctx: None))

    assert heard[:2] == ["started", "agent_start"]
    assert heard.count("started") == 1


def test_a_command_is_accepted_when_it_has_been_run() -> None:
    def setup(api: Any) -> None:
        api.register_command("note", lambda _arguments, _ctx: api.append_entry("note"))

    assert told_of("/note", setup) == ["entry_appended", "handled"]


def test_of_two_prompts_at_once_one_is_accepted_and_one_refused() -> None:
    async def run() -> tuple[list[Any], list[str], list[str]]:
        heard: list[Any] = []
        refused: list[str] = []
        async with opened([assistant("Yes.")]) as running:

            async def submit(text: str) -> None:
                try:
                    await (await running.seat.submit(text, preflight=heard.append)).wait()
                except CommandRefused as error:
                    refused.append(str(error))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(submit, "one")
                nursery.start_soon(submit, "two")
            settled = [each for each in running.types() if each == "agent_settled"]
            return heard, refused, settled
        raise AssertionError

    assert simulate(run) == (["started"], [BUSY_TEXT], ["agent_settled"])


def test_a_deferred_prompt_is_accepted_when_its_turn_comes() -> None:
    async def run() -> list[Any]:
        heard: list[Any] = []
        seats: list[Any] = []

        def setup(api: Any) -> None:
            async def settled(_event: Any, _ctx: Any) -> None:
                if not heard:
                    heard.append((await seats[0].submit("later", preflight=heard.append)).disposition)

            api.on("agent_settled", settled)

        async with opened([assistant("One."), assistant("Two.")], setup) as running:
            seats.append(running.seat)
            await running.seat.prompt("go")
            return heard
        raise AssertionError

    assert simulate(run) == ["deferred", "started"]


def test_a_deferred_prompt_that_is_dropped_is_told_why() -> None:
    async def run() -> list[Any]:
        heard: list[Any] = []
        seats: list[Any] = []

        def setup(api: Any) -> None:
            async def settled(_event: Any, _ctx: Any) -> None:
                await seats[0].submit("later", preflight=heard.append)
                await seats[0].submit("later still", preflight=heard.append)
                gate.set()
                await trio.sleep(1)

            api.on("agent_settled", settled)

        gate = trio.Event()
        async with opened([assistant("One.")], setup) as running:
            seats.append(running.seat)
            await running.seat.submit("go")
            await gate.wait()
            await running.seat.close(at_once=True)
        return heard

    assert [type(each) for each in simulate(run)] == [SeatClosed, SeatClosed]
