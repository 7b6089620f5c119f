"""Code that refuses to die: how long it is waited for, what is left, and by which name."""

from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.actor import KILL_AFTER_S, Abandoned, Bounds, Cut, Failure, Limbo, Value
from camshaft.actors.signal import ABORT_GRACE_S, AbortSignal
from tests.actors.running import simulate


async def stubborn(seconds: float) -> str:
    """Ignores every cancellation for so long."""
    with trio.CancelScope(shield=True):
        await trio.sleep(seconds)
    return "late"


async def in_limbo(call: Any, *arguments: Any, end_after_s: float | None = None) -> tuple[Any, float, list[str]]:
    """The outcome, how long it took, and who was listed as abandoned then."""
    async with trio.open_nursery() as nursery:
        limbo, bounds = Limbo(nursery), Bounds()
        if end_after_s is not None:
            bounds.end_after(end_after_s)
        started = trio.current_time()
        outcome = await limbo.run("it", call, *arguments, bounds=bounds)
        return outcome, trio.current_time() - started, list(limbo.abandoned)
    raise AssertionError


async def fails() -> None:
    raise ValueError("bad")


@pytest.mark.parametrize(
    ("call", "arguments", "end_after_s", "expected"),
    [
        pytest.param(stubborn, (1,), None, (Value("late"), 1, []), id="it ends by itself"),
        pytest.param(trio.sleep, (5,), 3, (Cut(), 3, []), id="it is cancelled"),
        pytest.param(stubborn, (4,), 3, (Cut(), 4, []), id="it ends within the patience, and gives no value"),
        pytest.param(stubborn, (9,), 3, (Abandoned(), 3 + KILL_AFTER_S, ["it"]), id="it is given up"),
    ],
)
def test_what_is_waited_for_and_how_long(call: Any, arguments: Any, end_after_s: float | None, expected: Any) -> None:
    async def measured() -> Any:
        return await in_limbo(call, *arguments, end_after_s=end_after_s)

    assert simulate(measured) == expected


def test_a_failure_is_a_value() -> None:
    outcome, _, abandoned = simulate(in_limbo, fails)

    assert isinstance(outcome, Failure)
    assert (outcome.text, abandoned) == ("bad", [])


def test_what_was_given_up_loses_its_name_when_it_ends() -> None:
    async def late() -> tuple[list[str], list[str]]:
        async with trio.open_nursery() as nursery:
            limbo, bounds = Limbo(nursery), Bounds()
            bounds.end_after(1)
            await limbo.run("it", stubborn, 60, bounds=bounds)
            before = list(limbo.abandoned)
            await trio.sleep(60)
            return before, list(limbo.abandoned)
        raise AssertionError

    assert simulate(late) == (["it"], [])


@pytest.mark.parametrize(("seconds", "took_s", "abandoned"), [(1.5, 1.5, []), (60, KILL_AFTER_S, ["it"])])
def test_a_cancelled_caller_waits_no_longer_than_the_kill(seconds: float, took_s: float, abandoned: list[str]) -> None:
    async def cancelled() -> tuple[bool, float, list[str]]:
        async with trio.open_nursery() as nursery:
            limbo, bounds = Limbo(nursery), Bounds()
            with trio.CancelScope() as scope:
                scope.cancel()
                await limbo.run("it", stubborn, seconds, bounds=bounds)
            return scope.cancelled_caught, trio.current_time(), list(limbo.abandoned)
        raise AssertionError

    caught, at, names = simulate(cancelled)

    assert (caught, round(at, 6), names) == (True, took_s, abandoned)


# -- the stages of an abort --------------------------------------------------------------


@attrs.frozen
class Stage:
    """When the code starts, when the abort is requested, and when the code is ended by force."""

    grace_s: float | None
    starts_s: float
    asks_s: float
    ends_s: float | None


@pytest.mark.rule("LOOP-71")
@pytest.mark.parametrize(
    "stage",
    [
        Stage(ABORT_GRACE_S, starts_s=0, asks_s=3, ends_s=3 + ABORT_GRACE_S),
        Stage(ABORT_GRACE_S, starts_s=5, asks_s=3, ends_s=5 + ABORT_GRACE_S),
        Stage(0, starts_s=0, asks_s=3, ends_s=3),
        Stage(None, starts_s=0, asks_s=3, ends_s=None),
    ],
    ids=["asked while it runs", "asked before it starts", "no grace", "no end"],
)
def test_code_is_ended_a_grace_after_the_request_or_its_start(stage: Stage) -> None:
    async def ended() -> float | None:
        signal = AbortSignal(stage.grace_s)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_request_at, signal, stage.asks_s)
            await trio.sleep(stage.starts_s)
            with signal.bounded() as bounds, bounds.scope:
                await trio.sleep(1000)
            return trio.current_time() if bounds.scope.cancelled_caught else None
        raise AssertionError

    assert simulate(ended) == stage.ends_s


async def _request_at(signal: AbortSignal, at_s: float) -> None:
    await trio.sleep(at_s)
    signal.request()
    signal.request()


def test_whoever_waits_for_the_signal_is_woken_and_late_ones_at_once() -> None:
    async def woken() -> tuple[bool, float, float]:
        signal = AbortSignal()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_request_at, signal, 3)
            await signal.wait()
        first = trio.current_time()
        await signal.wait()
        return signal.cancelled, first, trio.current_time()

    assert simulate(woken) == (True, 3, 3)
