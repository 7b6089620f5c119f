"""One order for everybody; nobody is waited for but a follower that fell behind, and that not for ever."""

from typing import Any, Never

import pytest
import trio

from camshaft.actors.event_stream import FOLLOWER_EVENTS_MAX, STALL_S, EventStream, Follower, FollowerStalled
from camshaft.kernel.events import DiagnosticEvent, Event, ThinkingLevelChanged
from tests.actors.running import simulate


def event(name: str) -> Event:
    return ThinkingLevelChanged(level=name)


def names(events: list[Any]) -> list[str]:
    return [each.message if isinstance(each, DiagnosticEvent) else each.level for each in events]


def test_everybody_hears_one_order_though_a_listener_publishes() -> None:
    stream, first, second = EventStream(), list[Event](), list[Event]()

    def posting(heard: Any) -> None:
        first.append(heard)
        if heard.level == "a":
            stream.publish(event("a1"))
            stream.publish(event("a2"))

    stream.subscribe(posting)
    stream.subscribe(second.append)

    stream.publish(event("a"))
    stream.publish(event("b"))

    assert names(first) == names(second) == ["a", "a1", "a2", "b"]


def test_unsubscribing_twice_is_as_good_as_once_and_leaves_the_others() -> None:
    stream, first, second = EventStream(), list[Event](), list[Event]()
    unsubscribe = stream.subscribe(first.append)
    stream.subscribe(second.append)

    unsubscribe()
    unsubscribe()
    stream.publish(event("a"))

    assert (first, names(second)) == ([], ["a"])


@pytest.mark.rule("LOOP-48")
def test_a_failing_listener_is_reported_once_and_still_called() -> None:
    stream, heard, called = EventStream(), list[Event](), list[Event]()

    def failing(each: Event) -> None:
        called.append(each)
        raise ValueError("broken")

    stream.subscribe(failing)
    stream.subscribe(heard.append)

    stream.publish(event("a"))
    stream.publish(event("b"))

    line = failing.__code__.co_firstlineno + 2
    told = f"a listener failed on thinking_level_changed: ValueError: broken ({__file__}, line {line})"
    assert names(heard) == ["a", told, "b"]
    assert [each.message for each in stream.diagnostics] == [told]
    assert names(called) == names(heard)


def test_an_interrupt_in_a_listener_leaves_the_stream_usable() -> None:
    stream, heard = EventStream(), list[Event]()

    def interrupted(each: Any) -> None:
        if each.level == "a":
            raise KeyboardInterrupt

    stream.subscribe(interrupted)
    stream.subscribe(heard.append)

    with pytest.raises(KeyboardInterrupt):
        stream.publish(event("a"))
    stream.publish(event("b"))

    assert names(heard) == ["b"]


async def _take(follower: Follower[Never], into: list[Event], every_s: float = 0) -> None:
    async for each in follower:
        into.append(each)
        await trio.sleep(every_s)


def test_a_follower_gets_every_event_from_its_beginning_to_the_end_of_the_stream() -> None:
    async def followed() -> list[Event]:
        stream, heard = EventStream(), list[Event]()
        stream.publish(event("before"))
        async with stream.follow() as follower, trio.open_nursery() as nursery:
            nursery.start_soon(_take, follower, heard)
            for name in "abc":
                stream.publish(event(name))
                await trio.sleep(1)
            stream.publish(event("last"))
            stream.close()
        return heard

    assert names(simulate(followed)) == ["a", "b", "c", "last"]


@pytest.mark.parametrize(("behind", "is_full"), [(FOLLOWER_EVENTS_MAX, False), (FOLLOWER_EVENTS_MAX + 1, True)])
def test_a_follower_is_waited_for_when_it_is_more_than_the_limit_behind(behind: int, is_full: bool) -> None:
    async def followed() -> bool:
        stream = EventStream()
        async with stream.follow():
            for _ in range(behind):
                stream.publish(event("a"))
            return stream.is_full
        raise AssertionError

    assert simulate(followed) is is_full


def test_a_slow_follower_holds_the_run_up_until_it_is_near_enough() -> None:
    async def followed() -> tuple[float, int]:
        stream, heard = EventStream(), list[Event]()
        async with stream.follow() as follower, trio.open_nursery() as nursery:
            for _ in range(FOLLOWER_EVENTS_MAX + 10):
                stream.publish(event("a"))
            nursery.start_soon(_take, follower, heard, 2)
            await stream.wait_for_followers()
            waited = trio.current_time()
            nursery.cancel_scope.cancel()
        return waited, len(heard)

    assert simulate(followed) == (18, 10)


def test_a_stalled_follower_is_closed_with_an_error_and_the_run_goes_on() -> None:
    async def followed() -> tuple[float, str, bool]:
        stream = EventStream()
        async with stream.follow() as follower:
            for _ in range(FOLLOWER_EVENTS_MAX + 1):
                stream.publish(event("a"))
            await stream.wait_for_followers()
            waited = trio.current_time()
            stream.publish(event("b"))
            with pytest.raises(FollowerStalled) as caught:
                await anext(follower)
            return waited, str(caught.value), stream.is_full
        raise AssertionError

    text = f"the follower left {FOLLOWER_EVENTS_MAX + 1} events untaken for 30 s and was closed; subscribe again to go on"
    assert simulate(followed) == (STALL_S, text, False)


def test_a_follower_that_takes_one_event_in_a_while_is_alive() -> None:
    async def followed() -> tuple[float, bool]:
        stream, heard = EventStream(), list[Event]()
        async with stream.follow() as follower, trio.open_nursery() as nursery:
            for _ in range(FOLLOWER_EVENTS_MAX + 5):
                stream.publish(event("a"))
            nursery.start_soon(_take, follower, heard, STALL_S - 1)
            await stream.wait_for_followers()
            waited = trio.current_time()
            nursery.cancel_scope.cancel()
        return waited, len(heard) == 5

    assert simulate(followed) == (4 * (STALL_S - 1), True)


def test_a_follower_whose_reader_says_that_it_is_at_work_is_alive() -> None:
    async def followed() -> float:
        stream = EventStream()
        async with stream.follow() as follower, trio.open_nursery() as nursery:
            for _ in range(FOLLOWER_EVENTS_MAX + 1):
                stream.publish(event("a"))

            async def work() -> None:
                for _ in range(3):
                    await trio.sleep(STALL_S - 1)
                    follower.progress()
                await anext(follower)

            nursery.start_soon(work)
            await stream.wait_for_followers()
        return trio.current_time()

    assert simulate(followed) == 3 * (STALL_S - 1)


def test_what_its_owner_puts_between_the_events_is_taken_in_its_place() -> None:
    async def followed() -> list[Event | str]:
        stream, follower = EventStream(), Follower[str]()
        stream.attach(follower)
        stream.subscribe(lambda _: follower.put("heard"))
        stream.publish(event("a"))
        follower.put("own")
        stream.publish(event("b"))
        stream.close()
        return [each async for each in follower]

    assert simulate(followed) == [event("a"), "heard", "own", event("b"), "heard"]


def test_a_follower_that_leaves_is_not_waited_for() -> None:
    async def followed() -> float:
        stream, gone = EventStream(), trio.Event()

        async def leaving() -> None:
            async with stream.follow():
                await gone.wait()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(leaving)
            await trio.sleep(1)
            for _ in range(FOLLOWER_EVENTS_MAX + 1):
                stream.publish(event("a"))
            nursery.start_soon(_set_after, gone, 5)
            await stream.wait_for_followers()
        return trio.current_time()

    assert simulate(followed) == 6


async def _set_after(gate: trio.Event, seconds: float) -> None:
    await trio.sleep(seconds)
    gate.set()


def test_what_waits_can_be_taken_after_the_stream_closed() -> None:
    async def followed() -> list[Event]:
        stream, heard = EventStream(), list[Event]()
        async with stream.follow() as follower:
            stream.publish(event("a"))
            stream.close()
            stream.publish(event("b"))
            await _take(follower, heard)
        return heard

    assert names(simulate(followed)) == ["a"]
