"""Messages between extensions."""

from typing import Any

import pytest
import trio

from camshaft.actors.bus import EventBus, Subscription
from tests.actors.running import opened, simulate


def loaded(*setups: Any) -> list[tuple[str, str, str]]:
    async def run() -> list[tuple[str, str, str]]:
        async with opened([], *setups) as running:
            await trio.testing.wait_all_tasks_blocked()
            return [(each.extension_path, each.event, each.error) for each in running.seat.errors]
        raise AssertionError

    errors: list[tuple[str, str, str]] = simulate(run)
    return errors


@pytest.mark.rule("API-27")
def test_listeners_are_called_in_the_order_in_which_they_subscribed_whoever_they_belong_to() -> None:
    heard: list[str] = []

    def first(api: Any) -> None:
        api.events.on("c", lambda value: heard.append(f"first {value}"))
        api.on("session_start", lambda *_: api.events.on("c", lambda value: heard.append(f"late {value}")))

    def second(api: Any) -> None:
        api.events.on("c", lambda value: heard.append(f"second {value}"))
        api.on("session_start", lambda *_: api.events.emit("c", 1))

    assert loaded(first, second) == []
    assert heard == ["first 1", "second 1", "late 1"]


@pytest.mark.rule("API-27")
def test_what_a_factory_emits_reaches_those_that_were_loaded_before() -> None:
    heard: list[str] = []

    loaded(
        lambda api: api.events.on("c", lambda _value: heard.append("before")),
        lambda api: api.events.emit("c"),
        lambda api: api.events.on("c", lambda _value: heard.append("after")),
    )

    assert heard == ["before"]


@pytest.mark.rule("API-27", "ERR-4")
def test_listeners_that_fail_are_reported_and_the_others_hear_it_and_nobody_waits_for_async_ones() -> None:
    heard: list[str] = []

    def fails(_value: Any) -> None:
        raise ValueError("now")

    async def fails_later(_value: Any) -> None:
        await trio.lowlevel.checkpoint()
        heard.append("later")
        raise ValueError("later")

    def setup(api: Any) -> None:
        api.events.on("c", fails)
        api.events.on("c", fails_later)
        api.events.on("c", lambda _value: heard.append("last"))
        api.on("session_start", lambda *_: api.events.emit("c"))

    assert loaded(setup) == [("<inline:x0>", "events:c", "now"), ("<inline:x0>", "events:c", "later")]
    assert heard == ["last", "later"]


@pytest.mark.rule("EXT-24", "API-27")
def test_an_extension_that_failed_to_load_hears_nothing() -> None:
    heard: list[str] = []

    def failing(api: Any) -> None:
        api.events.on("c", lambda _value: heard.append("failed"))
        raise ValueError("bad")

    loaded(failing, lambda api: api.events.emit("c"))

    assert heard == []


def test_an_unsubscribed_listener_hears_no_more_and_unsubscribing_twice_is_nothing() -> None:
    heard: list[str] = []
    bus = EventBus()
    stop = bus.add(Subscription("c", heard.append, lambda: True))

    bus.emit("c", "one")
    stop()
    stop()
    bus.emit("c", "two")

    assert heard == ["one"]


@pytest.mark.rule("API-27", "EXT-46")
def test_the_bus_goes_on_when_a_subscription_is_over() -> None:
    heard: list[str] = []
    alive = [True, True]
    bus = EventBus()
    for number in (0, 1):
        bus.add(Subscription("c", lambda value, number=number: heard.append(f"{number} {value}"), lambda number=number: alive[number]))  # type: ignore[misc]  # bound per turn

    alive[0] = False
    bus.emit("c", "x")

    assert heard == ["1 x"]
