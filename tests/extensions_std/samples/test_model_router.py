"""The sample `model_router`: who answers what, what it remembers, and what it costs."""

from typing import Any

import attrs
import pytest

from camshaft.actors.api import CustomEntry, Rates, UsageEntry
from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.extensions_std.providers.scripted import ScriptedProvider, assistant, faux_model, tool_call
from camshaft.extensions_std.samples import model_router
from camshaft.kernel.settings import RetrySettings, Settings
from tests.actors.compacting import failed
from tests.actors.running import Running, opened, said, simulate, tool
from tests.actors.small_run import OK

CHEAP = faux_model("cheap", cost=Rates(input=1, output=2))
DEAR = faux_model("dear", cost=Rates(input=5, output=20), reasoning=True)
MIDDLE = faux_model("middle", cost=Rates(input=2, output=8))


def talked(script: Any, *prompts: str, **more: Any) -> Running:
    """The conversation with `router/auto` after these prompts, closed."""

    async def test() -> Running:
        provider = ScriptedProvider(chunked=False, models=(DEAR, CHEAP, MIDDLE))
        async with opened(script, model_router.setup, provider=provider, model="router/auto", **more) as running:
            for text in prompts:
                await running.seat.prompt(text)
        return running

    found: Running = simulate(test)
    return found


def asked(running: Running) -> list[str]:
    return [request.model.id for request in running.provider.requests]


def kept(running: Running) -> list[Any]:
    """States, and what usage is of."""
    found: list[Any] = []
    for entry in running.seat.state.tree.entries():
        if isinstance(entry, CustomEntry):
            found.append(entry.data["state"])
        elif isinstance(entry, UsageEntry):
            found.append((entry.kind, entry.model))
    return found


def test_an_easy_prompt_stays_with_the_cheapest_model_and_a_hard_one_goes_to_the_dearest_with_all_that_follows() -> None:
    script = [assistant("easy"), assistant("4"), assistant("Hard."), assistant([tool_call("work", {}, id="t")]), assistant("done")]

    running = talked(script, "2 + 2?", "Prove it.", tools=[tool(lambda *_: OK)])

    assert asked(running) == ["cheap", "cheap", "cheap", "dear", "dear"]
    assert said(running.provider.requests[2].messages) == [("user", "Prove it.")]
    assert kept(running) == [("router", "cheap"), "easy", ("router", "cheap"), "hard"]


@pytest.mark.parametrize("verdict", [failed("no judge today"), assistant("who knows")])
def test_what_nobody_can_judge_is_hard(verdict: Any) -> None:
    assert asked(talked([verdict, assistant("ok")], "go")) == ["cheap", "dear"]


def test_what_failed_is_done_by_the_large_model_and_stays_there() -> None:
    settings = Settings(retry=RetrySettings(base_delay_ms=10), default_thinking_level="off")
    script = [assistant("easy"), failed("503 unavailable"), assistant([tool_call("work", {}, id="t")]), assistant("done")]

    running = talked(script, "go", tools=[tool(lambda *_: OK)], settings=settings)

    assert asked(running) == ["cheap", "cheap", "dear", "dear"]
    assert [each for each in kept(running) if isinstance(each, str)] == ["easy", "hard"]


def test_flags_name_the_models_and_one_that_does_not_exist_is_told() -> None:
    script = [assistant("hard"), assistant("ok")]

    running = talked(script, "go", flags={"router-small": "faux/middle", "router-large": "faux/cheap"})
    wrong = talked([], "go", flags={"router-small": "faux/none"})

    assert asked(running) == ["middle", "cheap"]
    assert said(wrong.seat.context_messages)[1] == ("assistant", "error: router/auto: no model faux/none")


def test_a_session_that_is_opened_again_goes_on_with_what_was_decided() -> None:
    files = MemoryLogFiles()

    def custom(api: Any) -> None:
        api.on("session_start", lambda *_: api.send_message({"custom_type": "n", "content": "go on"}, trigger_turn=True))

    async def again() -> Running:
        provider = ScriptedProvider(chunked=False, models=(DEAR, CHEAP))
        async with opened([assistant("ok")], model_router.setup, custom, provider=provider, files=files) as running:
            await running.seat.wait_idle()
        return running

    talked([assistant("hard"), assistant("ok")], "go", files=files)

    assert asked(simulate(again)) == ["dear"]


def test_a_summary_is_the_small_models() -> None:
    async def test() -> list[str]:
        provider = ScriptedProvider(chunked=False, models=(DEAR, CHEAP))
        script = [assistant("hard"), assistant("one"), assistant("hard"), assistant("two"), assistant("the summary")]
        settings = attrs.evolve(Settings(), compaction=attrs.evolve(Settings().compaction, keep_recent_tokens=2))
        async with opened(script, model_router.setup, provider=provider, model="router/auto", settings=settings) as running:
            await running.seat.prompt("long enough to be kept alone")
            await running.seat.prompt("long enough to be kept alone")
            await running.seat.compact()
            return asked(running)
        raise AssertionError

    assert simulate(test) == ["cheap", "dear", "cheap", "dear", "cheap"]
