"""Samples that shorten the context: custom_compaction, trigger_compact."""

from typing import Any

from camshaft.actors.host import WatchedUi
from camshaft.extensions_std.providers.scripted import Fail, Step, assistant
from camshaft.extensions_std.samples import custom_compaction, trigger_compact
from camshaft.kernel.settings import CompactionSettings, RetrySettings, Settings
from tests.actors.running import Running
from tests.extensions_std.samples.with_and_without import Left, at_rest, left, without_and_with

SMALL = Settings(
    retry=RetrySettings(enabled=False),
    compaction=CompactionSettings(keep_recent_tokens=2),
    default_thinking_level="off",
)
"""Keeps the last question and answer only, so that few messages are enough to compact."""


async def talk_and_compact(running: Running) -> None:
    await running.seat.prompt("first")
    await running.seat.prompt("second")
    await running.seat.compact("the second one")


TALK: list[Step] = [assistant("one"), assistant("two")]


def compactions(left: Left) -> list[Any]:
    return [entry for entry in left.entries if entry.type == "compaction"]


# -- custom_compaction -------------------------------------------------------------------


def test_the_summary_is_the_one_of_the_extension() -> None:
    asked: list[Any] = []

    def answer(request: Any) -> Any:
        asked.append(request.messages)
        return assistant("Goal: to count.")

    without, with_it = without_and_with([*TALK, answer], talk_and_compact, custom_compaction.setup, settings=SMALL)
    [usual], [minutes] = compactions(without), compactions(with_it)

    assert not usual.from_hook
    assert minutes.from_hook
    assert minutes.summary == "Goal: to count."
    assert minutes.first_kept_entry_id == usual.first_kept_entry_id
    assert minutes.usage.output > 0
    assert [entry.type for entry in with_it.entries if entry.type == "usage"] == []
    assert "Look at this above all: the second one" in str(asked[-1])
    assert asked[0][0].content != asked[-1][0].content


def test_if_the_request_fails_the_usual_summary_is_made() -> None:
    script = [*TALK, [Fail("no minutes")], assistant("usual summary")]
    with_it = left(script, talk_and_compact, custom_compaction.setup, settings=SMALL, ui=WatchedUi())

    [usual] = compactions(with_it)
    assert not usual.from_hook
    assert usual.summary.startswith("usual summary")
    assert [event.level for event in with_it.heard if event.type == "notified"] == ["warning"]


def test_an_empty_answer_is_no_summary() -> None:
    script = [*TALK, assistant("  "), assistant("usual summary")]
    [usual] = compactions(left(script, talk_and_compact, custom_compaction.setup, settings=SMALL))

    assert usual.summary.startswith("usual summary")


# -- trigger_compact ---------------------------------------------------------------------


async def talk(running: Running) -> None:
    for text in ("first", "second"):
        await running.seat.prompt(text)
        await at_rest(running)


def flags(tokens: str) -> dict[str, Any]:
    return {"settings": SMALL, "flags": {"compact-at": tokens}, "ui": WatchedUi()}


def test_a_run_that_leaves_too_much_is_followed_by_a_compaction() -> None:
    script = [*TALK, assistant("short")]
    without = left(script, talk, settings=SMALL)
    with_it = left(script, talk, trigger_compact.setup, **flags("1"))
    high = left(script, talk, trigger_compact.setup, **flags("100000"))

    assert compactions(without) == []
    assert compactions(high) == []
    assert with_it.lines[-1] == "compaction: short"
    assert with_it.lines[:-1] == without.lines
    assert any(event.message.startswith("Compacted ") for event in with_it.heard if event.type == "notified")


def test_a_compaction_that_cannot_be_made_is_told_and_the_next_may_try() -> None:
    async def act(running: Running) -> None:
        await running.seat.prompt("/trigger-compact")
        await at_rest(running)
        await running.seat.prompt("/trigger-compact the names")
        await at_rest(running)

    told = [event.message for event in left([], act, trigger_compact.setup, **flags("100000")).heard if event.type == "notified"]

    assert told == ["Not compacted: Nothing to compact (session too small)"] * 2
