"""What comes out of foreign code: one table, and the operations that may not wait for themselves.

Every way a piece of code can end is tried under every way it can be cancelled. The lists of ways are the rows and
columns of TABLE; a test says that it has every cell.
"""

from collections.abc import Awaitable, Callable
from itertools import product
from typing import Any

import pytest
import trio

from camshaft.actors.actor import Failure, SelfWait, Value, guard, guard_now, operation, refuse_self_wait
from tests.actors.running import simulate

Code = Callable[[], Awaitable[str]]


async def returns() -> str:
    await trio.lowlevel.checkpoint_if_cancelled()
    return "done"


async def raises() -> str:
    raise ValueError("bad")


async def raises_group_of_one() -> str:
    raise ExceptionGroup("outer", [ExceptionGroup("inner", [ValueError("bad")])])


async def raises_group_of_two() -> str:
    raise ExceptionGroup("two", [ValueError("bad"), KeyError("worse")])


async def raises_group_with_cancelled() -> str:
    """A nursery whose one task fails while the other waits: the group holds an error and, if cancelled, a Cancelled."""
    try:
        await trio.lowlevel.checkpoint_if_cancelled()
    except trio.Cancelled as cancelled:
        raise BaseExceptionGroup("mixed", [ValueError("bad"), cancelled]) from None
    raise ExceptionGroup("mixed", [ValueError("bad")])


async def swallows() -> str:
    try:
        await trio.lowlevel.checkpoint_if_cancelled()
    except trio.Cancelled:
        pass
    return "done"


async def raises_on_cancel() -> str:
    try:
        await trio.lowlevel.checkpoint_if_cancelled()
    except trio.Cancelled:
        raise ValueError("bad") from None
    raise ValueError("bad")


async def shields() -> str:
    with trio.CancelScope(shield=True):
        await trio.lowlevel.checkpoint()
    return "done"


class Panic(BaseException):
    """As compiled libraries raise: no Exception, but nobody's interrupt either."""


async def panics() -> str:
    raise Panic("bad")


async def panics_in_a_group() -> str:
    raise BaseExceptionGroup("outer", [BaseExceptionGroup("inner", [Panic("bad")])])


async def panics_among_others() -> str:
    raise BaseExceptionGroup("two", [ValueError("bad"), Panic("bad")])


CODES: tuple[Code, ...] = (
    returns,
    raises,
    raises_group_of_one,
    raises_group_of_two,
    raises_group_with_cancelled,
    swallows,
    raises_on_cancel,
    shields,
    panics,
    panics_in_a_group,
    panics_among_others,
)
CANCELS = ("none", "own", "outer")

DONE, BAD, TWO, CUT, PANIC = "Value done", "Failure bad", "Failure two (2 sub-exceptions)", "Cut", "Failure Panic: bad"
TABLE: dict[tuple[Code, str], str] = {
    (returns, "none"): DONE,
    (raises, "none"): BAD,
    (raises_group_of_one, "none"): BAD,
    (raises_group_of_two, "none"): TWO,
    (raises_group_with_cancelled, "none"): BAD,
    (swallows, "none"): DONE,
    (raises_on_cancel, "none"): BAD,
    (shields, "none"): DONE,
    (panics, "none"): PANIC,
    (panics_in_a_group, "none"): PANIC,
    (panics_among_others, "none"): TWO,
    # Its own scope was cancelled: no value comes out, whatever the code did.
    **{(code, "own"): CUT for code in CODES},
    # The scope around was cancelled: a Cancelled travels on; code that hid it has an outcome, and the caller's next
    # checkpoint raises.
    (returns, "outer"): "Cancelled",
    (raises, "outer"): BAD,
    (raises_group_of_one, "outer"): BAD,
    (raises_group_of_two, "outer"): TWO,
    (raises_group_with_cancelled, "outer"): "Cancelled",
    (swallows, "outer"): DONE,
    (raises_on_cancel, "outer"): BAD,
    (shields, "outer"): DONE,
    (panics, "outer"): PANIC,
    (panics_in_a_group, "outer"): PANIC,
    (panics_among_others, "outer"): TWO,
}


def told(outcome: Any) -> str:
    match outcome:
        case Value(value=value):
            return f"Value {value}"
        case Failure():
            return f"Failure {outcome.text}"
        case _:
            return type(outcome).__name__


async def ended(code: Code, cancel: str) -> str:
    own, seen = trio.CancelScope(), ["Cancelled"]
    with trio.CancelScope() as outer:
        {"none": trio.CancelScope(), "own": own, "outer": outer}[cancel].cancel()
        seen.append(told(await guard(code, scope=own)))
    return seen[-1]


def test_every_way_to_end_is_listed_under_every_cancellation() -> None:
    assert set(TABLE) == set(product(CODES, CANCELS))


@pytest.mark.parametrize(("code", "cancel"), TABLE, ids=lambda each: getattr(each, "__name__", each))
def test_the_outcome_is_that_of_the_table(code: Code, cancel: str) -> None:
    assert simulate(ended, code, cancel) == TABLE[code, cancel]


@pytest.mark.rule("A13")
def test_a_cancellation_that_leaked_from_another_scope_is_a_failure() -> None:
    async def leaking() -> Any:
        caught: list[BaseException] = []
        with trio.CancelScope() as elsewhere:
            elsewhere.cancel()
            try:
                await trio.lowlevel.checkpoint()
            except trio.Cancelled as cancelled:
                caught.append(cancelled)
                raise

        async def raising() -> None:
            raise caught[0]

        async def raising_among_others() -> None:
            raise BaseExceptionGroup("mixed", [caught[0], caught[0]])

        return await guard(raising), await guard(raising_among_others)

    outcomes = simulate(leaking)

    assert [told(each) for each in outcomes] == ["Failure the code was ended by a cancellation that belongs to another scope"] * 2


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)], ids=lambda error: type(error).__name__)
def test_an_interrupt_travels_on(error: BaseException) -> None:
    async def interrupted() -> None:
        raise error

    async def among_others() -> None:
        raise BaseExceptionGroup("mixed", [ValueError("bad"), error])

    with pytest.raises(type(error)):
        trio.run(guard, interrupted)
    with pytest.raises(BaseExceptionGroup) as caught:
        trio.run(guard, among_others)

    assert caught.group_contains(type(error))


def test_sync_code_that_panics_is_a_failure_with_its_stack_and_an_interrupt_is_not() -> None:
    def panic() -> None:
        raise Panic

    def leave() -> None:
        raise SystemExit(3)

    outcome = guard_now(panic)

    assert told(outcome) == "Failure Panic"
    assert isinstance(outcome, Failure) and "in panic" in outcome.stack
    with pytest.raises(SystemExit):
        guard_now(leave)


def test_sync_code_is_guarded_without_a_checkpoint() -> None:
    def bad() -> None:
        raise ExceptionGroup("one", [ValueError()])

    assert guard_now(int, "7") == Value(7)
    assert told(guard_now(bad)) == "Failure ValueError", "an error without a text is shown by its class"


def test_code_that_gives_no_awaitable_has_its_value_at_once() -> None:
    assert simulate(guard, int, "7") == Value(7)
    assert simulate(ended, lambda: 7, "own") == "Value 7", "there was nothing to cancel"


# -- the operation chain -----------------------------------------------------------------


@pytest.mark.rule("A31")
def test_waiting_for_an_operation_one_is_part_of_raises_with_the_chain() -> None:
    with operation("run 1"), operation("tool write"), pytest.raises(SelfWait) as caught:
        refuse_self_wait("run 1", "abort()")

    assert str(caught.value) == ("abort() waits for run 1, which waits for this code (run 1 > tool write); call it without waiting")


def test_waiting_for_another_operation_or_an_ended_one_is_allowed() -> None:
    with operation("run 1"):
        refuse_self_wait("run 2", "abort()")
    refuse_self_wait("run 1", "abort()")


def test_tasks_inherit_the_chain_of_who_started_them() -> None:
    async def started() -> list[str]:
        seen: list[str] = []

        async def child() -> None:
            try:
                refuse_self_wait("run 1", "wait_idle()")
            except SelfWait:
                seen.append("refused")

        async with trio.open_nursery() as nursery:
            with operation("run 1"):
                nursery.start_soon(child)
        return seen

    assert simulate(started) == ["refused"]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("bad"), "bad"),
        (ValueError(), "ValueError"),
        (KeyError("x"), "KeyError: 'x'"),
        (KeyError(), "KeyError"),
    ],
    ids=repr,
)
def test_the_text_of_a_failure_can_be_read_without_knowing_its_class(error: Exception, text: str) -> None:
    assert Failure(error).text == text
