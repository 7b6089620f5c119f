"""Restarts: which children end and start with which, how often, and what is raised in the end."""

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.supervision import RESTART_WINDOW_S, RESTARTS_MAX, ChildSpec, RestartLimit, supervise
from tests.actors.running import simulate


@attrs.define
class Log:
    """What children did, with the second."""

    lines: list[str] = attrs.field(factory=list)

    def add(self, line: str) -> None:
        self.lines.append(f"{round(trio.current_time())} {line}")

    def child(self, name: str, *lives: Callable[[], Awaitable[None]], again: bool = True) -> ChildSpec:
        """A child that lives one life after the other, the last one for ever."""
        left = list(lives)

        async def start() -> None:
            self.add(f"{name} starts")
            life = left.pop(0) if len(left) > 1 else left[0]
            try:
                await life()
                self.add(f"{name} returns")
            except trio.Cancelled:
                self.add(f"{name} is cancelled")
                raise

        def restart(error: Exception) -> bool:
            self.add(f"{name} crashed: {error}")
            return again

        return ChildSpec(name=name, start=start, restart=restart)


def after(seconds: float, error: Exception | None = None) -> Callable[[], Awaitable[None]]:
    async def life() -> None:
        await trio.sleep(seconds)
        if error is not None:
            raise error

    return life


def test_children_that_return_are_done() -> None:
    log = Log()

    simulate(supervise, [log.child("a", after(2)), log.child("b", after(1))])
    simulate(supervise, [])

    assert log.lines == ["0 a starts", "0 b starts", "1 b returns", "2 a returns"]


def test_a_crash_takes_the_later_children_along_and_leaves_the_earlier_ones() -> None:
    log = Log()

    simulate(
        supervise,
        [
            log.child("a", after(5)),
            log.child("b", after(1, ValueError("bad")), after(1)),
            log.child("c", after(3)),
        ],
    )

    assert log.lines == [
        *["0 a starts", "0 b starts", "0 c starts"],
        *["1 c is cancelled", "1 b crashed: bad"],
        *["1 b starts", "1 c starts"],
        *["2 b returns", "4 c returns", "5 a returns"],
    ]


def test_a_child_that_cannot_start_again_is_left_out_with_those_after_it() -> None:
    log = Log()

    simulate(supervise, [log.child("a", after(5)), log.child("b", after(1, ValueError("bad")), again=False), log.child("c", after(3))])

    assert log.lines[3:] == ["1 c is cancelled", "1 b crashed: bad", "5 a returns"]


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_child_that_keeps_crashing_escalates_with_its_last_crash_as_cause(depth: int) -> None:
    log, crash = Log(), ValueError("bad")
    quiet = [log.child(f"quiet {number}", after(100)) for number in range(depth)]

    with pytest.raises(RestartLimit, match=f"b crashed {RESTARTS_MAX + 1} times within 60 s; it is not started again") as caught:
        simulate(supervise, [*quiet, log.child("b", after(1, crash)), log.child("c", after(3))])

    assert caught.value.__cause__ is crash
    assert log.lines.count(f"{RESTARTS_MAX + 1} b crashed: bad") == 0, "at the limit nobody is asked"
    assert [line for line in log.lines if line.startswith(f"{RESTARTS_MAX + 1} quiet")] == [
        f"{RESTARTS_MAX + 1} quiet {number} is cancelled" for number in reversed(range(depth))
    ]


def test_crashes_that_are_far_apart_never_escalate() -> None:
    log = Log()
    lives: list[Any] = [after(RESTART_WINDOW_S / RESTARTS_MAX + 1, ValueError("bad"))] * 20

    simulate(supervise, [log.child("b", *lives, after(1))])

    assert len([line for line in log.lines if "crashed" in line]) == 20


def test_cancelling_the_supervisor_restarts_nobody() -> None:
    log = Log()

    async def cancelled() -> bool:
        with trio.move_on_after(1) as scope:
            await supervise([log.child("a", after(9)), log.child("b", after(9))])
        return scope.cancelled_caught

    assert simulate(cancelled)
    assert sorted(log.lines) == ["0 a starts", "0 b starts", "1 a is cancelled", "1 b is cancelled"]
