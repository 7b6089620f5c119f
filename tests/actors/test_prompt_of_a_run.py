"""The prompt of a run: what handlers are told of it while it is made, and what is left of it afterwards."""

from collections.abc import Callable
from typing import Any

import pytest

from camshaft.extensions_std.providers.scripted import assistant, tool_call
from camshaft.kernel.messages import SystemMessage
from tests.actors.running import Running, handling, opened, simulate, tool

OK = {"content": [{"type": "text", "text": "ok"}]}
Seen = list[Any]


async def works(*_: Any) -> Any:
    return OK


def once(hook: str, edit: Callable[[Any, Any], Any]) -> Callable[[Any], None]:
    """A setup that edits the first `hook` only."""
    left = [edit]
    return handling(hook, lambda event, api: left.pop()(event, api) if left else None)


def noting_prompt(seen: Seen, *hooks: str) -> Callable[[Any], None]:
    """A setup that writes down the prompt at these hooks."""

    def setup(api: Any) -> None:
        for hook in hooks:
            api.on(hook, lambda _event, ctx, hook=hook: seen.append((hook, ctx.get_system_prompt())))

    return setup


def tools_written(running: Running) -> list[str]:
    """The `tools` sections in the transcript, in order."""
    systems = [each for each in running.seat.context_messages if isinstance(each, SystemMessage) and each.sections]
    return [each.sections["tools"] for each in systems if each.sections is not None and each.sections.get("tools")]


def prompts(*setups: Callable[[Any], Any], runs: int = 1, **more: Any) -> Any:
    """The seat's state and the tools sections written, after so many prompts."""

    async def run() -> Any:
        async with opened([assistant(f"answer {number}") for number in range(4)], *setups, **more) as running:
            for number in range(runs):
                await running.seat.prompt(f"go {number}")
            return running.seat, tools_written(running)
        raise AssertionError

    return simulate(run)


@pytest.mark.rule("CTXT-2", "PB-5")
def test_a_forced_prompt_is_what_handlers_read_until_the_run_has_settled() -> None:
    seen: Seen = []
    force = once("before_agent_start", lambda _event, _ctx: {"system_prompt": "forced"})

    prompts(force, noting_prompt(seen, "before_agent_start", "turn_end", "agent_settled"), system_prompt="base")

    before, during, after = [text for _, text in seen]
    assert (before, during) == ("forced", "forced")
    assert after.startswith("base")


@pytest.mark.rule("CTXT-2", "PB-4")
def test_a_section_of_one_run_is_in_the_prompt_that_handlers_read_in_that_run() -> None:
    seen: Seen = []

    def add(event: Any, _ctx: Any) -> None:
        event.system_prompt_options.sections["extra"] = "more"

    prompts(once("before_agent_start", add), noting_prompt(seen, "before_agent_start", "turn_end", "agent_settled"), runs=2)

    assert [(hook, "<extra>" in text) for hook, text in seen] == [
        ("before_agent_start", True),
        ("turn_end", True),
        ("agent_settled", False),
        ("before_agent_start", False),
        ("turn_end", False),
        ("agent_settled", False),
    ]


@pytest.mark.rule("PB-6", "PB-4")
def test_a_selection_made_for_a_run_stays_active_while_the_options_start_from_the_base() -> None:
    shown: Seen = []

    def select(event: Any, _ctx: Any) -> None:
        event.system_prompt_options.selected_tools = ["a"]

    note = handling("before_agent_start", lambda event, _ctx: shown.append(list(event.system_prompt_options.selected_tools)))
    tools = [tool(works, "a"), tool(works, "b")]

    seat, _ = prompts(once("before_agent_start", select), note, runs=2, tools=tools)

    assert shown == [["a"], ["a", "b"]]
    assert seat.active_tools == ("a",)


@pytest.mark.rule("PB-1", "RES-18")
def test_a_snippet_that_a_handler_deletes_is_not_told_in_that_run() -> None:
    def delete(event: Any, _ctx: Any) -> None:
        del event.system_prompt_options.tool_snippets["a"]

    tools = [tool(works, "a", prompt_snippet="does a"), tool(works, "b", prompt_snippet="does b")]

    _, written = prompts(once("before_agent_start", delete), runs=2, tools=tools)

    assert [("- a: does a" in text, "- b: does b" in text) for text in written] == [(False, True), (True, True)]


@pytest.mark.rule("CTX-25", "LOOP-14")
def test_a_tool_activated_by_a_call_is_in_the_prompt_of_the_next_turn() -> None:
    read: Seen = []

    async def run() -> list[str]:
        def setup(api: Any) -> None:
            api.on("agent_end", lambda _event, ctx: read.append(ctx.get_system_prompt()))

            async def activate(*_: Any) -> Any:
                api.set_active_tools(["activate", "late"])
                return OK

            api.register_tool(tool(activate, "activate", prompt_snippet="activates"))
            api.register_tool(tool(works, "late", prompt_snippet="comes late", default_active=False))

        async with opened([assistant(tool_call("activate")), assistant("done")], setup) as running:
            await running.seat.prompt("go")
            return tools_written(running)
        raise AssertionError

    first, second = simulate(run)

    assert "comes late" not in first
    assert "- activate: activates\n- late: comes late" in second
    assert second in read[0]
