"""A conversation whose prompt cache is kept warm: when requests are made again, what is left of them, and what ends it."""

from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio

from camshaft.extensions_std.providers.scripted import Sleep, assistant, tool_call
from camshaft.kernel.cache_warming import WarmingStatus
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.settings import read_settings
from tests.actors.running import Running, handling, said, simulate, tool, virtual_world
from tests.actors.warming import LARGE, MODEL, READ, REPLAY, SMALL, after, answer, reason, replays, stored, tasks, warmed

# -- what is done ------------------------------------------------------------------------


@pytest.mark.rule("CACHE-1", "CACHE-5", "CACHE-9", "CACHE-10", "WIRE-101")
def test_the_last_request_is_made_again_for_one_token_before_its_cache_expires() -> None:
    def look(running: Running) -> Any:
        first, second = running.provider.requests
        assert second.at_s - first.at_s == 270
        assert (second.model, second.thinking_level, second.messages) == (first.model, first.thinking_level, first.messages)
        options = second.options
        assert (options.max_tokens, options.max_retries, options.disable_continuation) == (1, 0, True)
        assert attrs.evolve(options, max_tokens=None, max_retries=None, disable_continuation=False) == first.options
        (entry,) = stored(running)
        assert (entry.kind, entry.provider, entry.model, entry.usage, entry.note) == ("cache_warm", "faux", "faux-1", READ, None)
        assert [event.entry for event in running.heard if event.type == "entry_appended"] == [entry]
        assert said(running.seat.context_messages) == [("user", "go"), ("assistant", "one")]
        assert said(running.seat.llm_messages) == [("user", "go"), ("assistant", "one")]
        return running.count("message_start")  # the prompt of the system, of the user, the answer

    assert after(271, look=look) == 3


@pytest.mark.rule("CACHE-6", "CACHE-9", "CACHE-11")
def test_an_idle_session_is_kept_warm_for_half_an_hour() -> None:
    found = after(4000, look=lambda running: (replays(running), reason(running), len(stored(running))))

    assert found == ([270, 540, 810, 1080, 1350, 1620], "30-minute idle safety limit reached", 6)


@pytest.mark.rule("CACHE-6")
def test_a_run_is_kept_warm_for_an_hour_and_goes_on_where_the_entries_are() -> None:
    async def work(*_: Any) -> str:
        await trio.sleep(5000)
        return "done"

    calls = assistant([tool_call("work", id="c1")], usage=LARGE, stop_reason="toolUse")

    def look(running: Running) -> Any:
        last = running.provider.requests[-1]
        assert [each.role for each in last.messages if each.role != "system"] == ["user", "assistant", "toolResult"]
        entries = list(running.seat.state.tree.entries())
        assert all(later.parent_id == earlier.id for earlier, later in zip(entries, entries[1:]))
        return replays(running), said(running.seat.context_messages)[-1]

    found = after(1, calls, *[REPLAY] * 13, answer("end"), look=look, tools=(tool(work),))

    assert found == ([270 * number for number in range(1, 14)], ("assistant", "end"))


@pytest.mark.rule("SES-63", "SES-64", "CACHE-10")
def test_what_replays_cost_counts_in_the_statistics() -> None:
    async def whole() -> Any:
        async with warmed([answer()]) as running:
            await running.seat.prompt("go")
            await trio.sleep(600)
            return await running.seat.statistics()
        raise AssertionError

    found = simulate(whole)

    assert found.totals.cost == pytest.approx(0.30)
    assert found.totals.tokens.cache_read == 1_000_000
    assert (found.totals.assistant_messages, found.totals.total_messages) == (1, 3)


def test_the_model_that_answered_is_named() -> None:
    response = assistant("x", usage=READ, response_model="faux-1-2026")

    (entry,) = after(271, answer(), response, look=stored)

    assert entry.model == "faux-1-2026"


@pytest.mark.rule("STR-3", "CACHE-5")
@pytest.mark.parametrize(("value", "retention", "delay"), [("long", "long", 3240), ("LONG", None, 270), ("", None, 270), (None, None, 270)])
def test_the_environment_says_how_long_prompts_are_cached(value: str | None, retention: str | None, delay: int) -> None:
    environment = {"HOME": "/home"} if value is None else {"HOME": "/home", "CAMSHAFT_CACHE_RETENTION": value}
    world = attrs.evolve(virtual_world(), environment=environment)

    def look(running: Running) -> Any:
        status = running.seat.cache_warming
        assert status.next_warm_at is not None
        return running.provider.requests[0].options.cache_retention, status.next_warm_at - running.kernel.world.clock.now_ms()

    assert after(0, look=look, world=world) == (retention, delay * 1000)


@pytest.mark.rule("WIRE-101")
def test_a_replay_fires_the_hooks_of_providers() -> None:
    heard: list[str] = []
    hooks = ("before_provider_headers", "before_provider_request", "after_provider_response")

    def setup(api: Any) -> None:
        for hook in hooks:
            api.on(hook, lambda event, _ctx: heard.append(event.type))

    after(271, look=lambda running: None, setups=(setup,))

    assert heard == [*hooks, *hooks]


# -- what is not -------------------------------------------------------------------------

UNTOUCHED: dict[str, tuple[dict[str, Any], str]] = {
    "off": ({"mode": "off"}, "cache warming disabled"),
    "during runs only": ({"mode": "streaming"}, "agent run settled"),
    "an unknown lifetime": ({"model": attrs.evolve(MODEL, prompt_cache=FrozenDict())}, "cache lifetime unavailable"),
    "a short lifetime": ({"model": attrs.evolve(MODEL, prompt_cache=FrozenDict({"short": 10}))}, "cache lifetime unavailable"),
}


@pytest.mark.rule("CACHE-2", "CACHE-4", "CACHE-12")
@pytest.mark.parametrize("case", UNTOUCHED)
def test_nothing_is_planned_and_no_task_waits(case: str) -> None:
    more, why = UNTOUCHED[case]

    async def whole() -> None:
        async with warmed([answer()], **more) as running:
            before = tasks()
            await running.seat.prompt("go")
            await trio.testing.wait_all_tasks_blocked()
            assert (tasks(), reason(running)) == (before, why)
            await trio.sleep(4000)
            assert replays(running) == []

    simulate(whole)


def test_before_the_first_request_nothing_is_planned() -> None:
    async def whole() -> list[WarmingStatus]:
        found = []
        for mode in ("idle", "off"):
            async with warmed([], mode=mode) as running:
                found.append(running.seat.cache_warming)
        return found

    assert simulate(whole) == [
        WarmingStatus(state="inactive", reason="waiting for first request"),
        WarmingStatus(state="inactive", reason="cache warming disabled"),
    ]


@pytest.mark.rule("CACHE-2", "SET-7")
def test_a_mode_that_is_none_is_reported_and_the_default_is_used() -> None:
    settings, warnings = read_settings({"cacheWarming": "always"}, "settings.json")

    assert settings.cache_warming == "idle"
    assert len(warnings) == 1 and "cacheWarming" in warnings[0]
    assert read_settings({"cacheWarming": "streaming"}, "settings.json")[0].cache_warming == "streaming"


@pytest.mark.rule("CACHE-7", "CACHE-11")
def test_what_does_not_pay_is_shown_as_planned_and_then_not_done() -> None:
    def look(running: Running) -> Any:
        status = running.seat.cache_warming
        assert status.decision is not None
        return status.state, status.reason, status.decision.action, replays(running)

    assert after(1, answer(usage=SMALL), look=look) == ("scheduled", None, "stop", [])
    assert after(271, answer(usage=SMALL), look=look) == ("inactive", "expected savings below threshold", "stop", [])


@pytest.mark.rule("CACHE-7")
def test_a_first_request_that_takes_long_has_nothing_to_reckon_with() -> None:
    found = after(600, [Sleep(400)], look=lambda running: (replays(running), reason(running)))

    assert found == ([], "cache economics unavailable")


# -- extensions --------------------------------------------------------------------------


def says(action: str | None, shown: list[str] | None = None) -> Callable[[Any], None]:
    """A setup whose handler answers so."""

    def handler(event: Any, _ctx: Any) -> Any:
        if shown is not None:
            shown.append(event.action)
        return None if action is None else {"action": action}

    return handling("cache_warming_decision", handler)


def raises(*_: Any) -> None:
    raise ValueError("broken")


BROKEN = handling("cache_warming_decision", raises)


@pytest.mark.rule("CACHE-8", "CACHE-9", "CACHE-10")
@pytest.mark.parametrize(
    ("usage", "setups", "state", "note"),
    [
        (LARGE, (says(None),), "scheduled", None),
        (LARGE, (says("warm"),), "scheduled", None),
        (LARGE, (says("stop"),), "stopped by extension", None),
        (LARGE, (says("stop"), says("warm")), "scheduled", None),
        (LARGE, (says("warm"), says("stop"), says(None)), "stopped by extension", None),
        (LARGE, (says("stop"), BROKEN), "stopped by extension", None),
        (LARGE, (BROKEN,), "scheduled", None),
        (SMALL, (says("warm"),), "scheduled", "extension override"),
        (SMALL, (says("stop"),), "expected savings below threshold", None),
        (SMALL, (BROKEN, says("warm")), "scheduled", "extension override"),
    ],
)
def test_the_last_answer_of_extensions_decides(usage: Any, setups: tuple[Any, ...], state: str, note: str | None) -> None:
    shown: list[str] = []

    def look(running: Running) -> Any:
        assert len(running.errors()) == sum(setup is BROKEN for setup in setups)
        status = running.seat.cache_warming
        return status.reason or status.state, [entry.note for entry in stored(running)], replays(running)

    found = after(271, answer(usage=usage), look=look, setups=(*setups, says(None, shown)))

    assert found == (state, [note] if state == "scheduled" else [], [270] if state == "scheduled" else [])
    assert shown == ["warm" if usage is LARGE else "stop"]


@pytest.mark.rule("CACHE-9")
def test_after_a_stop_the_next_real_request_begins_anew() -> None:
    async def whole() -> Any:
        async with warmed([answer(), answer("two")], says("stop")) as running:
            await running.seat.prompt("go")
            await trio.sleep(1000)
            await running.seat.prompt("again")
            return running.seat.cache_warming.state
        raise AssertionError

    assert simulate(whole) == "scheduled"


async def never(*_: Any) -> None:
    await trio.sleep_forever()


async def stubborn(*_: Any) -> None:
    with trio.CancelScope(shield=True):
        await trio.sleep(10_000)


@pytest.mark.rule("CACHE-5", "CACHE-8")
@pytest.mark.parametrize("handler", [never, stubborn])
def test_a_handler_that_hangs_is_ended_in_time_for_the_refresh_and_what_was_decided_before_stands(handler: Any) -> None:
    def look(running: Running) -> Any:
        ((path, hook, text),) = running.errors()
        assert (path, hook) == ("<inline:x1>", "cache_warming_decision")
        assert "could not wait for it any longer" in text
        return replays(running), [entry.note for entry in stored(running)]

    found = after(290, answer(usage=SMALL), look=look, setups=(says("warm"), handling("cache_warming_decision", handler), says(None)))

    assert found == ([282 if handler is never else 284], ["extension override"])


def test_a_handler_may_take_its_time() -> None:
    async def slow(*_: Any) -> dict[str, str]:
        await trio.sleep(11)
        return {"action": "warm"}

    found = after(300, look=lambda running: (replays(running), running.errors()), setups=(handling("cache_warming_decision", slow),))

    assert found == ([281], [])
