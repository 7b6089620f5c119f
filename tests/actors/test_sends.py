"""Messages that extensions send: when they are queued, in which order, and what the handlers around them see."""

from collections.abc import Callable
from typing import Any

import pytest
import trio

from camshaft.actors.host import BUSY_TEXT
from camshaft.extensions_std.providers.scripted import assistant
from tests.actors.running import handling, opened, said, simulate

Seen = list[Any]


def noting(seen: Seen, hook: str, note: Callable[[Any, Any], Any]) -> Callable[[Any], None]:
    """A setup whose handler of `hook` writes down what `note` says."""
    return handling(hook, lambda event, ctx: seen.append(note(event, ctx)))


def sending(hook: str, *texts: str, **options: Any) -> Callable[[Any], None]:
    """A setup that sends these texts at the first `hook`."""

    def setup(api: Any) -> None:
        left = list(texts)

        def handler(_event: Any, _ctx: Any) -> None:
            while left:
                api.send_user_message(left.pop(0), **options)

        api.on(hook, handler)

    return setup


def ran(*setups: Callable[[Any], Any]) -> tuple[list[tuple[str | None, str]], list[str], list[tuple[str, str, str]]]:
    """What the conversation holds after one prompt, the types of its events, and the errors reported."""

    async def run() -> Any:
        async with opened([assistant(f"answer {number}") for number in range(6)], *setups) as running:
            await running.seat.prompt("go")
            return said(running.seat.context_messages), running.types(), running.errors()
        raise AssertionError

    found: tuple[list[tuple[str | None, str]], list[str], list[tuple[str, str, str]]] = simulate(run)
    return found


@pytest.mark.rule("QUE-13", "BND-15")
def test_without_input_handlers_a_user_message_is_queued_within_the_call() -> None:
    seen: Seen = []

    ran(
        sending("turn_end", "more", deliver_as="steer"),
        noting(seen, "turn_end", lambda event, _ctx: [m.content[0].text for m in event.context.pending_messages]),
    )

    assert seen == [["more"], []]


@pytest.mark.rule("QUE-3", "QUE-13")
@pytest.mark.parametrize("listens", [False, True])
def test_a_user_message_sent_from_turn_end_is_delivered_in_the_same_low_level_run(listens: bool) -> None:
    setups = [sending("turn_end", "more", deliver_as="steer")]
    setups += [noting([], "input", lambda _event, _ctx: None)] if listens else []

    found, types, _ = ran(*setups)

    assert found == [("user", "go"), ("assistant", "answer 0"), ("user", "more"), ("assistant", "answer 1")]
    assert types.count("agent_start") == 1


@pytest.mark.rule("QUE-13", "EVT-1")
def test_input_handlers_hear_of_a_message_when_the_sending_handler_returned_and_it_is_queued_after_the_next() -> None:
    seen: Seen = []

    def setup(api: Any) -> None:
        api.on("input", lambda event, _ctx: seen.append(f"input {event.text}"))
        api.on("turn_end", lambda event, ctx: seen.append(f"turn_end, pending {ctx.has_pending_messages()}"))

    ran(sending("turn_end", "more", deliver_as="steer"), setup)

    assert seen == ["input go", "input more", "turn_end, pending False", "turn_end, pending False"]


@pytest.mark.rule("QUE-2", "EVT-6")
@pytest.mark.parametrize("again", range(8))
def test_messages_of_one_handler_stay_in_the_order_sent(again: int) -> None:
    texts = [f"m{number}" for number in range(5)]

    found, _, _ = ran(sending("agent_end", *texts, deliver_as="followUp"), noting([], "input", lambda _event, _ctx: again))

    assert [text for role, text in found if role == "user"] == ["go", *texts]


@pytest.mark.rule("EVT-51")
def test_a_settle_boundary_waits_for_input_handlers_that_take_their_time() -> None:
    async def slowly(_event: Any, _ctx: Any) -> None:
        await trio.sleep(3)

    found, types, _ = ran(sending("agent_before_settle", "late", deliver_as="followUp"), handling("input", slowly))

    assert [text for role, text in found if role == "user"] == ["go", "late"]
    assert types.count("agent_settled") == 1


@pytest.mark.rule("API-21", "LOOP-2")
def test_a_busy_session_wants_to_know_how_a_message_is_delivered() -> None:
    _, _, errors = ran(sending("turn_end", "more"))

    assert errors == [("<runtime>", "send_user_message", BUSY_TEXT)]


@pytest.mark.rule("CTXT-9", "API-21")
def test_a_command_sent_as_a_text_may_wait_for_the_run_it_was_sent_from() -> None:
    seen: Seen = []

    def setup(api: Any) -> None:
        async def command(arguments: str, ctx: Any) -> None:
            await ctx.wait_for_idle()
            seen.append((arguments, ctx.is_idle()))

        api.register_command("later", command)

    async def run() -> None:
        sender = sending("agent_before_settle", "/later now", expand_prompt_templates=True)
        async with opened([assistant("done")], sender, setup) as running:
            await running.seat.prompt("go")
            await trio.sleep(1)
            assert running.errors() == []

    simulate(run)

    assert seen == [("now", True)]
