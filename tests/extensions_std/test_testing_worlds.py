"""Conversations of which nothing is left to chance (FAUX-20), and conversations over a scripted wire."""

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from camshaft.actors.api import dumps, encode
from camshaft.actors.host import MemorySession, OpenOptions, open_kernel
from camshaft.extensions_std.testing import (
    HttpAnswer,
    Played,
    ScriptedHttp,
    ScriptedProvider,
    assistant,
    rehearse,
    scripted_world,
    split_every,
    text,
    tool_call,
    when,
    wire_model,
    wire_stream,
)
from camshaft.kernel.events import MessageEnd, MessageUpdate
from camshaft.kernel.messages import AssistantMessage


def asking(api: Any) -> None:
    api.register_tool(look)


async def look(where: str) -> str:
    """Looks."""
    await trio.sleep(2)
    return f"nothing in {where}"


def _lines(played: Played) -> list[bytes]:
    """The log of events: every field, of updates the block event."""
    return [dumps([event.type, encode(_told(event))]) for event in played.events]


def _told(event: Any) -> Any:
    return event.assistant_message_event if isinstance(event, MessageUpdate) else event


def _played(seed: int) -> Played:
    model = ScriptedProvider(seed=seed, tokens_per_second=20)
    script = [assistant([text("Let me look into it. " * 5), tool_call("look", {"where": "the cellar"})]), assistant("Nothing there. " * 9)]
    return rehearse(asking, provider=model, world=scripted_world(), script=script, prompts=["Look."], jumping=True, cwd="/")


@pytest.mark.rule("FAUX-20")
def test_the_same_seed_gives_the_same_bytes_of_events_and_another_one_does_not() -> None:
    first, second, other = _played(4), _played(4), _played(5)

    assert _lines(first) == _lines(second)
    assert len(_lines(first)) > 20
    assert dumps([encode(entry) for entry in first.entries]) == dumps([encode(entry) for entry in second.entries])
    assert _lines(first) != _lines(other)
    assert first.requests[1].at_s > 2


@pytest.mark.rule("FAUX-20", "FAUX-25")
@pytest.mark.parametrize("attempt", range(5))
def test_sessions_at_once_hear_the_same_whoever_comes_first(attempt: int) -> None:
    def heard() -> dict[str, list[str]]:
        model = ScriptedProvider(seed=attempt)
        steps = [when(assistant(f"{name} " * 30), contains=name, repeats=True) for name in ("ape", "bear", "cow")]
        model.set_responses(steps)
        deltas: dict[str, list[str]] = {}

        async def talk(kernel: Any, name: str) -> None:
            heard = deltas.setdefault(name, [])

            def listen(event: Any) -> None:
                if isinstance(event, MessageUpdate) and event.assistant_message_event.delta is not None:
                    heard.append(event.assistant_message_event.delta)

            seat = await kernel.open(OpenOptions(cwd="/", session=MemorySession(), providers=(model,), listeners=(listen,)))
            await seat.prompt(f"Tell me about the {name}.")
            await seat.prompt(f"More about the {name}.")

        async def play() -> None:
            async with open_kernel(world=scripted_world()) as kernel, trio.open_nursery() as nursery:
                for name in ("ape", "bear", "cow"):
                    nursery.start_soon(talk, kernel, name)

        trio.run(play, clock=MockClock(autojump_threshold=0))
        return deltas

    first = heard()

    assert first == heard()
    assert all(len(deltas) > 8 for deltas in first.values())


def test_a_conversation_over_the_wire() -> None:
    call = assistant([text("Looking."), tool_call("look", {"where": "the attic"})], stop_reason="toolUse")
    streams = [wire_stream("openai-completions", message) for message in (call, assistant("Nothing."))]
    http = ScriptedHttp([HttpAnswer(body=split_every(stream, 5)) for stream in streams])

    played = rehearse(asking, provider=wire_model("openai-completions", http), prompts=["Look."], jumping=True, cwd="/")

    assert [said for _role, said in played.said] == ["Look.", "Looking.", "nothing in the attic", "Nothing."]
    assert [message["role"] for message in json.loads(http.requests[1].body)["messages"]] == ["system", "user", "assistant", "tool"]
    http.assert_exhausted()


def test_without_a_script_the_wire_is_dead_and_no_request_leaves_the_process() -> None:
    world = scripted_world()

    played = rehearse(provider=wire_model("openai-completions", world.http), world=world, prompts=["Hi."], jumping=True, cwd="/")

    answers = [event.message for event in played.events if isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage)]
    assert {(answer.error_message or "").partition(" (")[0] for answer in answers} == {"Connection error.: no scripted HTTP answer is left"}


def test_script_and_wire_exclude_each_other() -> None:
    with pytest.raises(TypeError, match="script is given beside the provider"):
        rehearse(provider=wire_model("openai-completions", ScriptedHttp()), script=[assistant("x")])


def test_an_api_that_nobody_speaks_is_refused() -> None:
    with pytest.raises(ValueError, match="api is 'smoke'; expected one of"):
        wire_model("smoke", ScriptedHttp())
