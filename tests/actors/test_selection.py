"""Which model and level a conversation starts with (MOD-97), and what a host can ask about what is going on (SDK-10, SDK-21)."""

from typing import Any

import pytest
import trio

from camshaft.actors.host import MemorySession, OpenSession, ScopedModel, Settings
from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.extensions_std.providers.scripted import Fail, Hang, ScriptedProvider, assistant, faux_model
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.settings import RetrySettings
from tests.actors.running import PATH, opened, simulate

MODELS = tuple([faux_model(name, reasoning=True) for name in ("one", "two", "three")])

TWO = Settings(default_provider="faux", default_model="two")


def own_level(level: str) -> Settings:
    return Settings(model_thinking_levels=FrozenDict({"faux/one": level}), default_thinking_level="low")


def provider(*models: Any) -> ScriptedProvider:
    return ScriptedProvider(chunked=False, models=models or MODELS)


@pytest.mark.rule("MOD-97", "SDK-4")
@pytest.mark.parametrize(
    ("settings", "more", "model", "level"),
    [
        (Settings(), {}, "faux/one", "medium"),
        (Settings(default_thinking_level="low"), {}, "faux/one", "low"),
        (TWO, {}, "faux/two", "medium"),
        (Settings(default_provider="gone", default_model="two"), {}, "faux/one", "medium"),
        (own_level("high"), {}, "faux/one", "high"),
        (own_level("much"), {}, "faux/one", "low"),
        (
            Settings(default_provider="faux", default_model="two"),
            {"scoped_models": (ScopedModel(model=MODELS[2]),)},
            "faux/three",
            "medium",
        ),
        (Settings(), {"scoped_models": (ScopedModel(model=MODELS[2], thinking_level="high"),)}, "faux/three", "high"),
        (Settings(), {"model": "faux/two", "thinking_level": "low"}, "faux/two", "low"),
    ],
)
def test_a_new_session_starts_with(settings: Settings, more: dict[str, Any], model: str, level: str) -> None:
    async def act() -> tuple[str, str]:
        async with opened([], provider=provider(), settings=settings, **more) as running:
            assert running.seat.model is not None
            return running.seat.model.reference, running.seat.thinking_level
        raise AssertionError

    assert simulate(act) == (model, level)


@pytest.mark.rule("MOD-97")
def test_a_resumed_session_whose_model_is_gone_says_what_it_uses_instead() -> None:
    files = MemoryLogFiles()

    async def act() -> None:
        async with opened([assistant("hi")], provider=provider(), files=files, model="faux/two") as running:
            await running.seat.prompt("go")
        left = provider(MODELS[0])
        async with opened([], provider=left, session=OpenSession(path=PATH), files=files) as running:
            assert [each.message for each in running.seat.take_unreported_diagnostics()] == [
                "Could not restore model faux/two. Using faux/one"
            ]
            assert running.seat.take_unreported_diagnostics() == ()

    simulate(act)


@pytest.mark.rule("SDK-10")
def test_what_a_host_can_ask_while_a_run_is_under_way() -> None:
    async def act() -> None:
        retry = Settings(retry=RetrySettings(max_retries=1, base_delay_ms=60_000), default_thinking_level="off")
        async with opened([[Fail("overloaded")], [Hang()]], session=MemorySession(), settings=retry) as running:
            seat = running.seat
            assert (seat.is_streaming, seat.pending_message_count, seat.retry_attempt) == (False, 0, 0)
            await seat.submit("go")
            await trio.sleep(1)
            await seat.follow_up("later")
            assert (seat.is_streaming, seat.pending_message_count, seat.retry_attempt) == (True, 1, 1)
            await seat.abort()
            assert (seat.is_streaming, seat.retry_attempt) == (False, 0)

    simulate(act)


@pytest.mark.rule("MOD-96", "MOD-97")
@pytest.mark.parametrize(
    ("settings", "patterns", "model", "level"),
    [
        (Settings(enabled_models=("t*:high",)), None, "faux/two", "high"),
        (Settings(enabled_models=("t*",)), ("faux/three:low",), "faux/three", "low"),
        (Settings(enabled_models=("t*",)), (), "faux/one", "medium"),
        (TWO, ("nothing",), "faux/two", "medium"),
    ],
)
def test_patterns_say_where_a_new_session_starts(settings: Settings, patterns: tuple[str, ...] | None, model: str, level: str) -> None:
    async def act() -> tuple[str, str]:
        async with opened([], provider=provider(), settings=settings, model_patterns=patterns) as running:
            assert running.seat.model is not None
            return running.seat.model.reference, running.seat.thinking_level
        raise AssertionError

    assert simulate(act) == (model, level)


@pytest.mark.rule("MOD-96", "RPC-40")
def test_patterns_say_what_is_cycled_through_and_an_odd_one_is_told() -> None:
    async def act() -> None:
        async with opened([], provider=provider(), model_patterns=("faux/t*", "none")) as running:
            told = [each.message for each in running.seat.take_unreported_diagnostics()]
            assert told == ['No models match pattern "none"']
            steps = [await running.seat.cycle_model(), await running.seat.cycle_model()]
            assert [step and (step.model.id, step.is_scoped) for step in steps] == [("three", True), ("two", True)]

    simulate(act)
