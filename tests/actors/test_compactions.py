"""Compactions that somebody asks for, and what may stop them."""

from typing import Any

import pytest
import trio

from camshaft.actors.actor import SelfWait
from camshaft.actors.errors import CommandRefused
from camshaft.actors.host import CompactionFailed, CompactionResult, Limits, MemorySession
from camshaft.extensions_std.providers.scripted import Hang, ScriptedProvider, assistant, tool_call
from tests.actors.compacting import SETTINGS, answer, compactions, ends, entries, failed, heard_by_extensions, talking
from tests.actors.running import Running, handling, opened, said, simulate, tool

OK = {"content": [{"type": "text", "text": "ok"}]}


async def rejected(call: Any, *arguments: Any) -> str:
    """The text of what a call refuses with."""
    try:
        await call(*arguments)
    except CommandRefused as error:
        return str(error)
    raise AssertionError("not refused")


@pytest.mark.rule("CMP-18", "CMP-19", "EVT-23")
@pytest.mark.parametrize(
    ("prompts", "twice", "text"), [((), False, "Nothing to compact (session too small)"), (("one", "two"), True, "Already compacted")]
)
def test_a_compaction_that_cannot_begin_says_why_to_everybody(prompts: Any, twice: bool, text: str) -> None:
    told: list[Any] = []

    async def compacted() -> tuple[str, list[Any]]:
        async with talking([answer("S")], heard_by_extensions(told), said=prompts) as running:
            if twice:
                await running.seat.compact()
            return await rejected(running.seat.compact), ends(running)[-1:]
        raise AssertionError

    refused, ended = simulate(compacted)

    assert (refused, ended) == (text, [("manual", False, False, f"Compaction failed: {text}")])
    assert [(event.error_message, event.will_retry) for event in told] == [(f"Compaction failed: {text}", False)]


@pytest.mark.rule("A24", "RTY-34", "CMP-18")
def test_a_manual_compaction_ends_the_run_first_and_does_not_continue_it() -> None:
    async def compacted() -> tuple[list[str], list[Any], str]:
        async with talking([[Hang()], answer("S"), answer("P")]) as running:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(running.seat.prompt, "go")
                await trio.sleep(1)
                result = await running.seat.compact("the tests")
            return running.types(), said(running.seat.context_messages), result.summary
        raise AssertionError

    types, messages, summary = simulate(compacted)

    assert types.index("agent_settled") < types.index("compaction_start") < types.index("compaction_end")
    assert types.count("agent_start") == 1
    assert summary.startswith("S")
    assert messages[-1][1].startswith("aborted")


@pytest.mark.rule("CMP-45", "SES-29")
@pytest.mark.parametrize("kept", ["known", "unknown"])
def test_a_summary_that_an_extension_supplies_is_stored_without_a_request_if_it_keeps_a_known_entry(kept: str) -> None:
    told: list[Any] = []

    def supply(event: Any, _ctx: Any) -> Any:
        first = event.preparation.first_kept_entry_id if kept == "known" else "nowhere"
        return {"compaction": {"summary": "mine", "first_kept_entry_id": first, "tokens_before": 7}}

    async def compacted() -> tuple[Any, list[Any], int]:
        async with talking([], handling("session_before_compact", supply), heard_by_extensions(told)) as running:
            asked = len(running.provider.requests)
            outcome = await (running.seat.compact() if kept == "known" else rejected(running.seat.compact))
            return outcome, compactions(running), len(running.provider.requests) - asked
        raise AssertionError

    outcome, made, asked = simulate(compacted)

    assert asked == 0
    if kept == "known":
        assert (outcome.summary, outcome.tokens_before) == ("mine", 7)
        assert [entry.from_hook for entry in made] == [True]
    else:
        assert "nowhere is not on the active branch" in outcome
        assert made == []
        assert [event.from_extension for event in told] == [True]


@pytest.mark.rule("CMP-42", "CMP-44")
def test_an_answer_that_is_no_summary_appends_nothing() -> None:
    async def compacted() -> tuple[str, int, list[Any]]:
        async with talking([answer(" ")]) as running:
            before = len(entries(running))
            return await rejected(running.seat.compact), len(entries(running)) - before, ends(running)
        raise AssertionError

    text = "Summarization failed: empty summary"
    assert simulate(compacted) == (text, 0, [("manual", False, False, f"Compaction failed: {text}")])


@pytest.mark.rule("CMP-37", "RTY-15")
def test_a_summary_request_is_made_as_often_as_a_turn_would_be_without_tools_and_cache() -> None:
    async def compacted() -> tuple[str, list[str], Any]:
        async with talking([failed("503 a"), failed("503 b"), failed("503 c")]) as running:
            text = await rejected(running.seat.compact)
            return text, [each for each in running.types() if each.startswith("summarization")], running.provider.requests[-3:]
        raise AssertionError

    text, types, requests = simulate(compacted)

    assert text == "Summarization failed: 503 c"
    retry = ["summarization_retry_scheduled", "summarization_retry_attempt_start"]
    assert types == [*retry, *retry, "summarization_retry_finished"]
    assert {request.options.cache_retention for request in requests} == {"none"}
    assert len({request.options.session_id for request in requests}) == 3, "a fresh id each"


@pytest.mark.rule("RTY-15", "SDK-10", "CMP-43")
def test_stopping_it_in_the_wait_before_a_retry_cancels_it() -> None:
    async def compacted() -> tuple[str, float, list[Any]]:
        async with talking([failed("503 a")]) as running:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_later, 0.5, running.seat.abort_compaction)
                started = trio.current_time()
                text = await rejected(running.seat.compact)
            return text, trio.current_time() - started < 1, ends(running)
        raise AssertionError

    assert simulate(compacted) == ("Compaction cancelled", True, [("manual", True, False, None)])


async def _later(seconds: float, call: Any) -> None:
    await trio.sleep(seconds)
    call()


@pytest.mark.rule("CMP-48", "LOOP-71")
@pytest.mark.parametrize("hook", ["session_before_compact", "session_compact", "session_compact_failed"])
def test_a_handler_that_hangs_can_be_stopped_and_the_next_prompt_is_answered(hook: str) -> None:
    async def hangs(_event: Any, _ctx: Any) -> None:
        await trio.sleep_forever()

    async def compacted() -> tuple[int, list[Any], str]:
        script = [failed("no") if hook == "session_compact_failed" else answer("S"), *[answer("again")] * 2]
        async with talking(script, handling(hook, hangs), limits=Limits(abort_grace_s=1)) as running:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_quietly, running)
                await trio.sleep(5)
                await running.seat.abort()
            await running.seat.prompt("next")
            return len(compactions(running)), ends(running), said(running.seat.context_messages)[-1][1]
        raise AssertionError

    made, ended, last = simulate(compacted)

    assert made == (hook == "session_compact")
    assert [aborted for _, aborted, _, _ in ended] == [hook == "session_before_compact"]
    assert last in ("again", "S")


async def _quietly(running: Running) -> None:
    try:
        await running.seat.compact()
    except CommandRefused:
        pass


@pytest.mark.rule("CTXT-7")
@pytest.mark.parametrize("listening", [True, False])
def test_an_extension_compacts_without_waiting_and_hears_of_it_or_its_failure_is_reported(listening: bool) -> None:
    heard: list[Any] = []

    def register(api: Any) -> None:
        async def compact(_arguments: str, ctx: Any) -> None:
            callbacks = {"on_complete": heard.append, "on_error": heard.append} if listening else {}
            assert ctx.compact(custom_instructions="x", **callbacks) is None

        api.register_command("compact", handler=compact)

    async def compacted() -> list[tuple[str, str, str]]:
        async with talking([answer("S")], register) as running:
            for _ in range(2):
                await running.seat.prompt("/compact")
                await trio.sleep(1)
            return running.errors()
        raise AssertionError

    errors = simulate(compacted)

    if listening:
        assert [type(each) for each in heard] == [CompactionResult, CompactionFailed]
        assert errors == []
    else:
        assert errors == [("<runtime>", "compact", "Already compacted")]


@pytest.mark.rule("A24")
def test_a_second_compaction_is_refused_while_one_is_under_way_and_others_can_wait_for_it() -> None:
    async def compacted() -> tuple[str, bool, bool]:
        async with talking([[Hang()]]) as running, trio.open_nursery() as nursery:
            nursery.start_soon(_quietly, running)
            await trio.sleep(1)
            text, busy = await rejected(running.seat.compact), running.seat.is_compacting and not running.seat.is_idle
            nursery.start_soon(_later, 1, running.seat.abort_compaction)
            await running.seat.wait_idle()
            return text, busy, running.seat.is_idle
        raise AssertionError

    text, busy, idle = simulate(compacted)

    assert text == "Wait for the current compaction or tree navigation to finish before compacting."
    assert (busy, idle) == (True, True)


def test_closing_the_conversation_stops_a_compaction() -> None:
    async def closed() -> tuple[list[Any], int]:
        async with talking([[Hang()]]) as running:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_quietly, running)
                await trio.sleep(1)
                await running.seat.close()
            return ends(running), len(compactions(running))
        raise AssertionError

    assert simulate(closed) == ([("manual", True, False, None)], 0)


@pytest.mark.rule("A06")
def test_a_tool_cannot_wait_for_a_compaction_that_waits_for_its_run() -> None:
    errors: list[str] = []

    async def compacts(*_: Any) -> Any:
        try:
            await running_now[0].seat.compact()
        except SelfWait as error:
            errors.append(str(error))
        return OK

    running_now: list[Running] = []

    async def ran() -> None:
        script = [assistant(tool_call("work", id="a")), answer()]
        async with talking(script, said=(), tools=[tool(compacts)]) as running:
            running_now.append(running)
            await running.seat.prompt("go")

    simulate(ran)

    assert len(errors) == 1
    assert errors[0].startswith("compact() waits for run ")


def test_what_is_appended_while_a_compaction_is_made_stays_after_it() -> None:
    async def compacted() -> tuple[list[str], list[str | None]]:
        async with talking([answer("S")]) as running:
            running.seat.subscribe(lambda event: running.seat.append_entry("note") if event.type == "compaction_start" else None)
            await running.seat.compact()
            return [entry.type for entry in entries(running)][-2:], [message.role for message in running.seat.context_messages]
        raise AssertionError

    types, roles = simulate(compacted)

    assert types == ["custom", "compaction"]
    assert roles == ["system", "compactionSummary", "user", "assistant"]


@pytest.mark.rule("CTXT-7", "CMP-18")
def test_without_a_model_there_is_no_compaction() -> None:
    async def compacted() -> str:
        provider = ScriptedProvider()
        provider.models = ()
        async with talking([answer()]) as running:
            saved = MemorySession(entries=tuple(entries(running)))
        async with opened([], provider=provider, session=saved, settings=SETTINGS) as running:
            return await rejected(running.seat.compact)
        raise AssertionError

    assert "o model" in simulate(compacted)
