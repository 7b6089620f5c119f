"""Samples that change what people type: input_transform, input_transform_streaming, inline_bash."""

from typing import Any

import pytest

from camshaft.actors.host import WatchedUi
from camshaft.extensions_std.providers.scripted import assistant, tool_call
from camshaft.extensions_std.samples import inline_bash, input_transform, input_transform_streaming
from tests.actors.running import Running, tool
from tests.extensions_std.samples.trying import prompting
from tests.extensions_std.samples.with_and_without import at_rest, left, left_in_real_time, without_and_with


def test_a_quick_question_is_stored_with_the_wish_for_a_short_answer() -> None:
    without, with_it = without_and_with([assistant("4")], prompting("?quick What is 2 + 2?"), input_transform.setup)

    assert without.lines == ["user: ?quick What is 2 + 2?", "assistant: 4"]
    assert with_it.lines == ["user: Answer in one or two sentences: What is 2 + 2?", "assistant: 4"]


def test_a_ping_is_answered_without_the_model() -> None:
    without, with_it = without_and_with([assistant("pong?")], prompting("ping"), input_transform.setup, ui=WatchedUi())

    assert without.lines == ["user: ping", "assistant: pong?"]
    assert with_it.lines == []
    assert [event.message for event in with_it.heard if event.type == "notified"] == ["pong"]


def test_a_text_of_an_extension_is_left_alone() -> None:
    def sender(api: Any) -> None:
        api.register_command("send", lambda _text, _ctx: api.send_user_message("ping"))

    async def act(running: Running) -> None:
        await running.seat.prompt("/send")
        await at_rest(running)

    assert left([assistant("yes")], act, input_transform.setup, sender).lines == ["user: ping", "assistant: yes"]


@pytest.mark.parametrize(
    ("behavior", "marked"),
    [
        ("steer", "user: A remark while you work; keep it in mind and go on: and quickly"),
        ("followUp", "user: When you are done with that, the next task: and quickly"),
    ],
)
def test_a_text_that_comes_during_a_run_is_stored_with_its_mark(behavior: Any, marked: str) -> None:
    def act_and_tools() -> tuple[Any, Any]:
        seats: list[Running] = []

        async def work(*_: Any) -> Any:
            await seats[0].seat.submit("and quickly", streaming_behavior=behavior)
            return {"content": [{"type": "text", "text": "worked"}]}

        async def act(running: Running) -> None:
            seats.append(running)
            await running.seat.prompt("go")

        return act, [tool(work)]

    script = [assistant(tool_call("work"), stop_reason="toolUse"), assistant("one"), assistant("two")]

    def run(*setups: Any) -> list[str]:
        act, tools = act_and_tools()
        return left(script, act, *setups, tools=tools).lines

    without, with_it = run(), run(input_transform_streaming.setup)

    assert "user: and quickly" in without
    assert [line for line in with_it if line not in without] == [marked]
    assert "user: go" in with_it


def test_a_command_in_a_prompt_is_replaced_by_its_output() -> None:
    prompt = prompting("Is !{echo 3.11} newer than !{echo 3.9}?")
    without = left_in_real_time([assistant("yes")], prompt)
    with_it = left_in_real_time([assistant("yes")], prompt, inline_bash.setup)

    assert without.lines == ["user: Is !{echo 3.11} newer than !{echo 3.9}?", "assistant: yes"]
    assert with_it.lines == ["user: Is 3.11 newer than 3.9?", "assistant: yes"]


def test_a_command_that_fails_is_told_to_the_model_and_the_person() -> None:
    with_it = left_in_real_time([assistant("oh")], prompting("Why !{echo no >&2; exit 3}"), inline_bash.setup, ui=WatchedUi())

    assert with_it.lines[0] == "user: Why ['echo no >&2; exit 3' ended with 3: no]"
    assert [event.message for event in with_it.heard if event.type == "notified"] == ["'echo no >&2; exit 3' ended with 3"]


def test_an_output_that_looks_like_a_command_is_not_run() -> None:
    with_it = left_in_real_time([assistant("ok")], prompting("Say !{printf '!\\173echo twice\\175'}"), inline_bash.setup)

    assert with_it.lines[0] == "user: Say !{echo twice}"
