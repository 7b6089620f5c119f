"""A command that a client gives again, and one that expects the session to stand elsewhere."""

from typing import Any

import pytest
import trio

from camshaft.actors.host import Position, PositionMoved, PromptRefused, Receipt, open_kernel
from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.extensions_std.providers.scripted import Hang, ScriptedProvider, assistant
from tests.actors.running import Running, handling, opened, options, said, simulate, virtual_world


def users(running: Running) -> list[str]:
    return [text for role, text in said(running.seat.context_messages) if role == "user"]


def test_a_prompt_given_again_gets_its_receipt_and_does_nothing() -> None:
    async def run() -> tuple[Receipt, Receipt, list[str]]:
        async with opened([assistant("a")]) as running:
            first = await running.seat.prompt("one", command_id="c1")
            again = await running.seat.prompt("one", command_id="c1")
            return first, again, users(running)
        raise AssertionError

    first, again, texts = simulate(run)

    assert (again.entry_id, again.run_id, again.disposition) == (first.entry_id, first.run_id, first.disposition)
    assert (first.is_repeated, again.is_repeated, texts) == (False, True, ["one"])


def test_a_prompt_given_again_while_the_first_is_heard_waits_for_its_receipt() -> None:
    async def slowly(_event: Any, _ctx: Any) -> None:
        await trio.sleep(5)

    async def run() -> tuple[list[bool], list[str]]:
        got: list[bool] = []
        async with opened([assistant("a")], handling("input", slowly)) as running:

            async def give() -> None:
                got.append((await running.seat.prompt("one", command_id="c1")).is_repeated)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(give)
                nursery.start_soon(give)
            return sorted(got), users(running)
        raise AssertionError

    assert simulate(run) == ([False, True], ["one"])


def test_a_refused_prompt_may_be_given_again() -> None:
    async def run() -> tuple[bool, list[str]]:
        async with opened([[Hang()], assistant("a")]) as running:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(running.seat.prompt, "first")
                await trio.sleep(1)
                with pytest.raises(PromptRefused):
                    await running.seat.submit("one", command_id="c1")
                await running.seat.abort()
            return (await running.seat.prompt("one", command_id="c1")).is_repeated, users(running)
        raise AssertionError

    assert simulate(run) == (False, ["first", "one"])


@pytest.mark.parametrize("way", ["steer", "follow_up"])
def test_a_queued_text_given_again_is_queued_once(way: str) -> None:
    async def run() -> tuple[str, str, int]:
        async with opened([[Hang()]]) as running, trio.open_nursery() as nursery:
            nursery.start_soon(running.seat.prompt, "first")
            await trio.sleep(1)
            queue = getattr(running.seat, way)
            first = await queue("more", command_id="c1")
            again = await queue("more", command_id="c1")
            waiting = running.seat.pending_message_count
            running.seat.clear_queue()
            await running.seat.abort()
            return first, again, waiting
        raise AssertionError

    assert simulate(run) == ("queued", "queued", 1)


def test_another_process_knows_the_command_by_the_entry_it_made() -> None:
    files = MemoryLogFiles()

    async def run() -> tuple[Receipt, Receipt, int]:
        async with opened([assistant("a")], files=files) as running:
            first = await running.seat.prompt("one", command_id="c1")
        provider = ScriptedProvider(chunked=False)
        async with open_kernel(world=virtual_world(files)) as kernel:
            seat = await kernel.open(options(provider, files=files))
            again = await seat.prompt("one", command_id="c1")
            return first, again, provider.state.call_count
        raise AssertionError

    first, again, calls = simulate(run)

    assert (again.disposition, again.entry_id, again.is_repeated, calls) == ("started", first.entry_id, True, 0)


def test_a_prompt_is_refused_where_the_client_is_wrong_about_the_session() -> None:
    async def run() -> tuple[PositionMoved, list[str], str | None]:
        async with opened([assistant("a"), assistant("b")]) as running:
            await running.seat.prompt("one")
            here = Position(leaf_id=running.seat.state.leaf_id)
            await running.seat.prompt("two", expected=here)
            with pytest.raises(PositionMoved) as refused:
                await running.seat.prompt("three", expected=here)
            return refused.value, users(running), running.seat.state.leaf_id
        raise AssertionError

    refusal, texts, leaf = simulate(run)

    assert texts == ["one", "two"]
    assert refusal.found == leaf


def test_handlers_that_take_their_time_do_not_let_a_prompt_answer_something_else() -> None:
    async def slowly(event: Any, _ctx: Any) -> None:
        if event.text == "mine":
            await trio.sleep(5)

    async def run() -> tuple[list[str], list[str]]:
        refused: list[str] = []
        async with opened([assistant("a"), assistant("b")], handling("input", slowly)) as running:
            here = Position(leaf_id=running.seat.state.leaf_id)

            async def mine() -> None:
                try:
                    await running.seat.prompt("mine", expected=here)
                except PositionMoved as error:
                    refused.append(str(error))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(mine)
                await trio.sleep(1)
                await running.seat.prompt("theirs")
            return refused, users(running)
        raise AssertionError

    refused, texts = simulate(run)

    assert (len(refused), texts) == (1, ["theirs"])
