"""What handlers leave behind that is no JSON, has no end, or fails when it is looked at: reported, and nothing else.

The kernel reads answers and edits after the handler has returned; objects of the extension run code then, too.
"""

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from camshaft.extensions_std.providers.scripted import assistant, tool_call
from tests.actors.running import handling, opened, said, simulate, tool

OK = {"content": [{"type": "text", "text": "ok"}]}


class Evil:
    """Fails however it is looked at."""

    def __repr__(self) -> str:
        raise ValueError("evil")

    def __iter__(self) -> Any:
        raise ValueError("evil")


class EvilDict(dict[str, Any]):
    """A dict that cannot be read."""

    def items(self) -> Any:
        raise ValueError("evil")


class Mute(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise ValueError("evil")


def circle() -> Any:
    made: dict[str, Any] = {}
    made["in"] = made
    return made


def depth() -> Any:
    made: Any = None
    for _ in range(100_000):
        made = {"in": made}
    return made


VALUES: dict[str, Callable[[], Any]] = {
    "a circle": circle,
    "depth without end": depth,
    "an object that fails": Evil,
    "a dict that fails": lambda: EvilDict(a=1),
    "a set": lambda: {1},
    "a dict of numbers": lambda: {1: 2},
}


def in_arguments(event: Any, value: Any) -> None:
    event.input["k"] = value


def in_payload(event: Any, value: Any) -> None:
    event.payload["k"] = value


def in_message(event: Any, value: Any) -> None:
    event.messages[0].content = value


def in_messages(event: Any, value: Any) -> Any:
    return {"messages": [*event.messages, value]}


def in_section(event: Any, value: Any) -> None:
    event.system_prompt_options.sections["odd"] = value


def in_entry(_event: Any, value: Any) -> Any:
    return {"entries": [{"type": "custom", "custom_type": "odd", "data": value}]}


def in_details(_event: Any, value: Any) -> Any:
    return {"details": value}


PLACES: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "arguments of a call": ("tool_call", in_arguments),
    "the payload": ("before_provider_request", in_payload),
    "a message": ("context", in_message),
    "the messages": ("context", in_messages),
    "the transcript": ("context_with_system", in_messages),
    "a section of the prompt": ("before_agent_start", in_section),
    "an entry at the end of a turn": ("turn_end", in_entry),
    "an entry before the run settles": ("agent_before_settle", in_entry),
    "details of a result": ("tool_result", in_details),
}


async def execute(*_: Any) -> Any:
    return OK


async def answered(hook: str, handler: Callable[[Any, Any], Any]) -> tuple[set[tuple[str, str]], list[tuple[str | None, str]]]:
    """Whose errors were reported for which hook, and the conversation after a prompt."""
    script = [assistant(tool_call("work", {})), assistant("done")]
    async with opened(script, handling(hook, handler), tools=[tool(execute)]) as running:
        await running.seat.prompt("go")
        return {(path, event) for path, event, _ in running.errors()}, said(running.seat.context_messages)
    raise AssertionError


@pytest.mark.rule("A29")
@pytest.mark.rule("ERR-5")
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("place", PLACES)
def test_what_cannot_be_taken_over_is_reported_and_the_prompt_is_answered(place: str, value: str) -> None:
    hook, leave = PLACES[place]

    reported, found = simulate(answered, hook, lambda event, _ctx: leave(event, VALUES[value]()))

    assert reported == {("<inline:x0>", hook)}
    assert found[-1] == ("assistant", "done")
    if hook == "tool_call":
        assert found[2][0] == "toolResult" and found[2][1] != "ok", "a gate whose edits cannot be read is closed"


@pytest.mark.rule("ERR-5")
def test_an_error_that_cannot_say_what_it_is_goes_by_its_name() -> None:
    def fails(_event: Any, _ctx: Any) -> None:
        raise Mute

    async def errors() -> list[str]:
        async with opened([assistant("done")], handling("turn_start", fails)) as running:
            await running.seat.prompt("go")
            return [error for _, _, error in running.errors()]
        raise AssertionError

    assert simulate(errors) == ["Mute"]


@pytest.mark.rule("PB-3")
def test_a_section_that_is_no_text_is_dropped_alone() -> None:
    def edits(event: Any, _ctx: Any) -> None:
        event.system_prompt_options.sections.update(odd=7, even="kept")

    @attrs.define
    class Seen:
        prompt: str = ""

    seen = Seen()

    def looks(event: Any, _ctx: Any) -> None:
        seen.prompt = event.system_prompt

    async def errors() -> list[str]:
        async with opened([assistant("done")], handling("before_agent_start", edits), handling("before_agent_start", looks)) as running:
            await running.seat.prompt("go")
            return [error for _, _, error in running.errors()]
        raise AssertionError

    assert simulate(errors) == ["system_prompt_options.sections['odd'] is no text: int"]
    assert "kept" in seen.prompt


@pytest.mark.rule("EXPO-3")
@pytest.mark.parametrize("names", [[1], {"work"}, {}, None, 3])
def test_active_tools_that_are_no_list_of_names_are_refused_and_the_set_stays(names: Any) -> None:
    seen: list[Any] = []

    def setup(api: Any) -> None:
        def start(_event: Any, _ctx: Any) -> None:
            try:
                api.set_active_tools(names)
            finally:
                seen.append(api.get_active_tools())

        api.on("session_start", start)

    async def errors() -> list[str]:
        async with opened([], setup, tools=[tool(execute)]) as running:
            return [each.error for each in running.seat.errors]
        raise AssertionError

    assert simulate(errors) == [f"active tools {names!r}; expected a list of names"]
    assert seen == [("work",)]


@pytest.mark.rule("API-27")
@pytest.mark.rule("API-15")
def test_a_channel_or_a_session_name_that_is_no_text_is_refused() -> None:
    def setup(api: Any) -> None:
        api.on("session_start", lambda _event, _ctx: api.events.on({}, print))
        api.on("session_start", lambda _event, _ctx: api.set_session_name(3))

    async def errors() -> list[str]:
        async with opened([], setup) as running:
            return [each.error for each in running.seat.errors]
        raise AssertionError

    assert simulate(errors) == ["the channel of a listener is {}; expected a text", "the name of the session is 3; expected a text"]
