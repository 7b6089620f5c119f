"""Compactions that a run makes by itself: recovery, the threshold, and how often."""

from typing import Any

import pytest
import trio

from camshaft.extensions_std.providers.scripted import Hang, assistant, tool_call
from camshaft.kernel.messages import Usage
from camshaft.kernel.settings import CompactionSettings
from tests.actors.compacting import FULL, OVERFLOW, answer, compactions, ends, entries, failed, heard_by_extensions, talking
from tests.actors.running import Running, handling, said, simulate, tool

OK = {"content": [{"type": "text", "text": "ok"}]}


def prompted(script: list[Any], *setups: Any, then: tuple[str, ...] = ("go",), **more: Any) -> Running:
    """A conversation after these prompts."""

    async def talk() -> Running:
        async with talking(script, *setups, **more) as running:
            for text in then:
                await running.seat.prompt(text)
            return running
        raise AssertionError

    running: Running = simulate(talk)
    return running


@pytest.mark.rule("A24", "RTY-22", "RTY-23", "CMP-55")
@pytest.mark.parametrize("first", [failed(OVERFLOW), answer("cut", stop_reason="length", usage=Usage(input=50, output=9, total_tokens=59))])
def test_an_overflow_or_a_cut_answer_is_taken_out_and_asked_for_again_after_a_compaction(first: Any) -> None:
    running = prompted([first, answer("S"), answer("P"), answer("done")])

    assert ends(running) == [("overflow", False, True, None)]
    assert said(running.seat.context_messages)[-1] == ("assistant", "done")
    assert [entry.type for entry in entries(running)][-3:] == ["context_edit", "compaction", "message"]


@pytest.mark.rule("A23", "RTY-24", "CMP-57")
@pytest.mark.parametrize("kind", ["overflow", "length"])
def test_a_second_failure_is_told_once_and_the_next_prompt_does_not_repeat_it(kind: str) -> None:
    told: list[Any] = []
    cut = answer("cut", stop_reason="length", usage=Usage(input=50, output=9, total_tokens=59))
    again = failed(OVERFLOW) if kind == "overflow" else cut
    script = [again, answer("S"), answer("P"), again, answer("fine")]

    running = prompted(script, heard_by_extensions(told), then=("go", "on"))

    begun = "Context overflow recovery failed after one" if kind == "overflow" else "Truncated response recovery failed after one"
    assert [(retry, (text or "")[: len(begun)]) for _, _, retry, text in ends(running)] == [(True, ""), (False, begun)]
    assert [event.will_retry for event in told] == [False]
    assert said(running.seat.context_messages)[-1] == ("assistant", "fine")


@pytest.mark.rule("RTY-26", "CMP-56")
@pytest.mark.parametrize("how", ["cancelled", "failed"])
def test_a_recovery_that_fails_retries_nothing_and_the_run_settles(how: str) -> None:
    settled: list[str] = []
    setups = [handling("agent_before_settle", lambda event, _ctx: settled.append(event.outcome))]
    if how == "cancelled":
        setups.append(handling("session_before_compact", lambda _event, _ctx: {"cancel": True}))

    running = prompted([failed(OVERFLOW), answer(stop_reason="length")], *setups)

    text = "Context overflow recovery failed: Summarization failed: generation hit the token cap and the summary is incomplete"
    assert ends(running) == [("overflow", how == "cancelled", False, None if how == "cancelled" else text)]
    assert settled[-1] == "error"
    assert said(running.seat.context_messages)[-1] == ("user", "go"), "the failed answer stays out of the context"


@pytest.mark.rule("LOOP-67")
def test_an_abort_in_an_automatic_compaction_settles_aborted_but_stopping_only_that_lets_the_run_settle() -> None:
    async def stopped(whole: bool) -> tuple[list[Any], list[bool], list[str]]:
        boundaries: list[str] = []
        watch = handling("agent_before_settle", lambda event, _ctx: boundaries.append(event.outcome))
        async with talking([answer("ok", usage=FULL), [Hang()]], watch) as running:
            boundaries.clear()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(running.seat.prompt, "go")
                await trio.sleep(5)
                assert running.seat.is_compacting
                if whole:
                    await running.seat.abort()
                else:
                    running.seat.abort_compaction()
            settled = [event.aborted for event in running.heard if event.type == "agent_settled"]
            return ends(running), settled, boundaries
        raise AssertionError

    assert simulate(stopped, True) == ([("threshold", True, False, None)], [True], [])
    assert simulate(stopped, False) == ([("threshold", True, False, None)], [False], ["completed"])


@pytest.mark.rule("RTY-31", "CMP-14")
def test_a_compaction_between_turns_that_fails_does_not_stop_the_turn() -> None:
    async def works(*_: Any) -> Any:
        return OK

    script = [assistant(tool_call("work", id="a"), usage=FULL), failed("no"), answer("done")]
    running = prompted(script, tools=[tool(works)])

    assert ends(running) == [("threshold", False, False, "Auto-compaction failed: Summarization failed: no")]
    types = running.types()
    assert types.index("turn_end") < types.index("compaction_start") < len(types) - types[::-1].index("turn_start") - 1
    assert said(running.seat.context_messages)[-1] == ("assistant", "done")


@pytest.mark.rule("RTY-32", "CMP-15")
def test_after_a_threshold_compaction_only_a_queued_message_starts_another_run() -> None:
    async def queued(text: str | None) -> int:
        async with talking([answer("ok", usage=FULL), answer("S"), answer()]) as running:
            if text is not None:
                running.seat.subscribe(
                    lambda event: running.seat.send_user_message(text, (), "followUp", False) if event.type == "compaction_end" else None
                )
            await running.seat.prompt("go")
            return running.count("agent_start")
        raise AssertionError

    assert (simulate(queued, None), simulate(queued, "more")) == (1, 2)


@pytest.mark.rule("CMP-13", "CMP-14")
@pytest.mark.parametrize(
    "settings",
    [CompactionSettings(enabled=False, reserve_tokens=1000, keep_recent_tokens=2), CompactionSettings(keep_recent_tokens=20_000)],
)
def test_nothing_is_compacted_while_it_is_off_or_while_everything_is_to_be_kept(settings: CompactionSettings) -> None:
    running = prompted([answer("ok", usage=FULL)], settings={"compaction": settings})

    assert (ends(running), compactions(running)) == ([], [])


BIG = "x" * 20_000
"""5,000 tokens: what is kept is all there is."""


@pytest.mark.rule("A23")
def test_a_compaction_that_gains_nothing_is_reported_and_not_repeated_until_the_context_has_grown() -> None:
    reported: list[str] = []

    async def grown() -> list[int]:
        counts = []
        script = [
            answer("1", usage=FULL),
            answer("S"),
            answer("2", usage=FULL),
            answer("3", usage=FULL),
            answer("S"),
            answer("P"),
            answer("4"),
        ]
        async with talking(script, said=("one",)) as running:
            for text in (BIG, "on", BIG):
                await running.seat.prompt(text)
                counts.append(len(compactions(running)))
            reported.extend([each.message for each in running.seat.diagnostics])
        return counts

    counts = simulate(grown)

    assert counts == [1, 1, 2]
    assert "smaller by less than 10%" in reported[0]
    assert "not repeated" in reported[0]
