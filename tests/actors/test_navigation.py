"""Going to another place in the tree: where the leaf is then, what is told, and when it is refused."""

from typing import Any

import pytest
import trio

from camshaft.actors.api import OnlyInCommands
from camshaft.actors.errors import CommandRefused
from camshaft.extensions_std.providers.scripted import Hang, assistant, tool_call
from camshaft.kernel.entries import BranchSummaryEntry, Entry
from tests.actors.compacting import answer, entries, failed, talking
from tests.actors.running import Running, handling, simulate, tool

OK = {"content": [{"type": "text", "text": "ok"}]}


async def refused(running: Running, target: str, **wish: Any) -> str:
    """The text of what a navigation refuses with."""
    try:
        await running.seat.navigate_tree(target, **wish)
    except CommandRefused as error:
        return str(error)
    raise AssertionError("not refused")


def said_by(running: Running, role: str) -> list[Entry]:
    """The message entries of a role, in order."""
    return [entry for entry in entries(running) if getattr(getattr(entry, "message", None), "role", None) == role]


@pytest.mark.rule("CMP-60", "LOOP-5")
def test_it_is_refused_while_anything_is_under_way_or_on_its_way() -> None:
    async def while_busy() -> list[str]:
        async def slow(_event: Any, _ctx: Any) -> None:
            await trio.sleep(1)

        async with talking([[Hang()], [Hang()]], handling("input", slow), said=()) as running:
            running.provider.set_responses([answer(), answer(), [Hang()], [Hang()]])
            await running.seat.prompt("one")
            await running.seat.prompt("two")
            target, texts = said_by(running, "user")[0].id, []
            async with trio.open_nursery() as nursery:
                nursery.start_soon(running.seat.prompt, "go")
                await trio.sleep(0.5)
                texts.append(await refused(running, target))
                await trio.sleep(2)
                texts.append(await refused(running, target))
                await running.seat.abort()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_compact, running)
                await trio.sleep(1)
                texts.append(await refused(running, target))
                await running.seat.abort()
            return texts
        raise AssertionError

    busy = "Wait for the current response to finish before navigating the session tree."
    moving = "Wait for the current compaction or tree navigation to finish before navigating the session tree."
    assert simulate(while_busy) == [busy, busy, moving]


async def _compact(running: Running) -> None:
    try:
        await running.seat.compact()
    except CommandRefused:
        pass


@pytest.mark.rule("CMP-60")
def test_the_current_place_is_no_move_and_an_unknown_one_is_refused() -> None:
    told: list[Any] = []

    async def moved() -> tuple[bool, str, int]:
        async with talking([], handling("session_before_tree", lambda event, _ctx: told.append(event))) as running:
            before = entries(running)
            result = await running.seat.navigate_tree(running.seat.state.leaf_id or "")
            return result.cancelled, await refused(running, "nowhere"), len(entries(running)) - len(before)
        raise AssertionError

    assert simulate(moved) == (False, "Entry nowhere not found", 0)
    assert told == []


@pytest.mark.rule("CMP-69", "CMP-44")
@pytest.mark.parametrize(
    ("reply", "text"), [(answer(" "), "Branch summarization failed: empty summary"), (failed("no"), "Branch summarization failed: no")]
)
def test_a_summary_that_fails_leaves_the_leaf_where_it_was(reply: Any, text: str) -> None:
    async def moved() -> tuple[str, bool, bool]:
        async with talking([reply]) as running:
            leaf = running.seat.state.leaf_id
            said = await refused(running, said_by(running, "user")[0].id, summarize=True)
            return said, running.seat.state.leaf_id == leaf, running.seat.is_idle
        raise AssertionError

    assert simulate(moved) == (text, True, True)


@pytest.mark.rule("CMP-69", "RPC-69")
def test_an_abort_of_the_summary_cancels_the_navigation() -> None:
    async def moved() -> tuple[bool, bool]:
        async with talking([[Hang()]]) as running:
            leaf = running.seat.state.leaf_id
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_abort_later, running)
                result = await running.seat.navigate_tree(said_by(running, "user")[0].id, summarize=True)
            return result.cancelled, running.seat.state.leaf_id == leaf
        raise AssertionError

    assert simulate(moved) == (True, True)


async def _abort_later(running: Running) -> None:
    await trio.sleep(1)
    running.seat.request_abort()


@pytest.mark.rule("EVT-25", "CMP-63", "CMP-67")
def test_an_extension_can_say_other_instructions_and_another_label() -> None:
    def override(_event: Any, _ctx: Any) -> Any:
        return {"custom_instructions": "only this", "replace_instructions": True, "label": "theirs"}

    async def moved() -> tuple[str, str | None, str | None]:
        async with talking([answer("S")], handling("session_before_tree", override)) as running:
            result = await running.seat.navigate_tree(said_by(running, "assistant")[0].id, summarize=True, label="mine")
            assert result.summary_entry is not None
            asked: Any = running.provider.requests[-1].messages[-1].content[0]
            return asked.text.rpartition("\n\n")[2], running.seat.state.tree.label(result.summary_entry.id), result.editor_text
        raise AssertionError

    assert simulate(moved) == ("only this", "theirs", None)


@pytest.mark.rule("EVT-25", "CMP-70")
@pytest.mark.parametrize(("wanted", "text"), [(False, "mine"), (True, "")])
def test_a_supplied_summary_is_used_only_if_one_is_wanted_and_an_empty_one_is_a_plain_move(wanted: bool, text: str) -> None:
    async def moved() -> tuple[bool, int]:
        async with talking([], handling("session_before_tree", lambda _event, _ctx: {"summary": {"summary": text}})) as running:
            result = await running.seat.navigate_tree(said_by(running, "assistant")[0].id, summarize=wanted)
            summaries = [entry for entry in entries(running) if isinstance(entry, BranchSummaryEntry)]
            return result.summary_entry is None, len(summaries)
        raise AssertionError

    assert simulate(moved) == (True, 0)


@pytest.mark.rule("EVT-27", "CTXT-9")
def test_a_command_navigates_and_a_handler_of_the_move_may_prompt() -> None:
    results: list[Any] = []
    target: list[str] = []

    def setup(api: Any) -> None:
        async def go(_arguments: str, ctx: Any) -> None:
            results.append(await ctx.navigate_tree(target[0]))

        api.register_command("go", handler=go)
        api.on("session_tree", lambda _event, _ctx: api.send_user_message("again"))

    async def moved() -> list[str | None]:
        async with talking([answer("late")], setup) as running:
            target.append(said_by(running, "user")[1].id)
            await running.seat.prompt("/go")
            await running.seat.wait_idle()
            await trio.sleep(1)
            return [message.role for message in running.seat.context_messages]
        raise AssertionError

    assert simulate(moved) == ["system", "user", "assistant", "user", "assistant"]
    assert [(each.cancelled, each.editor_text) for each in results] == [(False, "two")]


@pytest.mark.rule("CTX-28", "EXPO-7", "CMP-72")
def test_the_tools_of_the_branch_are_active_again() -> None:
    async def works(*_: Any) -> Any:
        return OK

    async def moved() -> list[tuple[str, ...]]:
        tools = [tool(works, "a"), tool(works, "b")]
        async with talking([answer(), answer()], tools=tools, said=("one",)) as running:
            running.seat.set_active_tools(["b"])
            await running.seat.prompt("two")
            active = [running.seat.active_tools]
            await running.seat.navigate_tree(said_by(running, "assistant")[0].id)
            return [*active, running.seat.active_tools]
        raise AssertionError

    assert simulate(moved) == [("b",), ("b", "a")]


@pytest.mark.rule("CTXT-3", "CTXT-9")
def test_only_commands_navigate() -> None:
    errors: list[str] = []

    async def asks(_id: str, _params: Any, _signal: Any, _update: Any, ctx: Any) -> Any:
        try:
            await ctx.navigate_tree("x")
        except OnlyInCommands as error:
            errors.append(str(error))
        return OK

    async def ran() -> None:
        async with talking([assistant(tool_call("work", id="a")), answer()], tools=[tool(asks)], said=()) as running:
            await running.seat.prompt("go")

    simulate(ran)

    assert errors == ["navigate_tree is only available in command handlers"]
