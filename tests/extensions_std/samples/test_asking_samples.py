"""Samples that ask a model outside the conversation: summarize, qna, handoff."""

from pathlib import Path
from typing import Any

import trio

from camshaft.actors.host import WatchedUi
from camshaft.extensions_std.providers.scripted import Fail, Step, assistant
from camshaft.extensions_std.samples import handoff, qna, summarize
from tests.actors.replacing import sessions
from tests.actors.running import Running
from tests.extensions_std.samples.trying import prompting
from tests.extensions_std.samples.with_and_without import Left, left, virtual_sleep, without_and_with


def notified(left: Left) -> list[tuple[str, str]]:
    return [(event.level, event.message) for event in left.heard if event.type == "notified"]


# -- summarize ---------------------------------------------------------------------------


def test_a_summary_is_shown_and_kept_and_the_model_of_the_conversation_never_sees_it() -> None:
    seen: list[Any] = []

    def answer(request: Any) -> Any:
        seen.append(request.messages)
        return assistant("You said hello.")

    script: list[Step] = [assistant("hello"), answer, answer]
    without, with_it = without_and_with(script, prompting("hi", "/summarize", "on"), summarize.setup, ui=WatchedUi())

    assert without.lines == ["user: hi", "assistant: hello", "user: /summarize", "assistant: You said hello.", "user: on"] + [
        "assistant: You said hello."
    ]
    assert with_it.lines == [
        "user: hi",
        "assistant: hello",
        "(usage summary)",
        "(summary)",
        "user: on",
        "assistant: You said hello.",
    ]
    assert notified(with_it) == [("info", "You said hello.")]
    assert "[User]: hi" in str(seen[-2])
    assert "summary" not in str(seen[-1]).lower()


def test_a_summary_that_fails_is_told_and_leaves_nothing() -> None:
    script: list[Step] = [assistant("hello"), [Fail("overloaded")]]
    with_it = left(script, prompting("/summarize", "hi", "/summarize"), summarize.setup, ui=WatchedUi())

    assert [line for line in with_it.lines if line == "(summary)"] == []
    assert [level for level, _ in notified(with_it)] == ["warning", "error"]
    assert with_it.errors == []


# -- qna ---------------------------------------------------------------------------------


def editor(left: Left) -> list[Any]:
    return [event.value for event in left.heard if event.type == "ui_changed" and event.part == "editor_text"]


def test_the_questions_of_the_last_answer_are_put_into_the_editor() -> None:
    script: list[Step] = [assistant("Which port? And with TLS?"), assistant("Q: Which port?\nA: \n\nQ: With TLS?\nA: ")]
    without, with_it = without_and_with(script, prompting("serve it", "/qna"), qna.setup, ui=WatchedUi())

    assert without.lines[2:] == ["user: /qna", "assistant: Q: Which port?\nA: \n\nQ: With TLS?\nA: "]
    assert with_it.lines[2:] == ["(usage qna)"]
    assert editor(with_it) == ["Q: Which port?\nA: \n\nQ: With TLS?\nA:"]


def test_an_answer_that_asks_nothing_leaves_the_editor_alone() -> None:
    with_it = left([assistant("Done."), assistant("No questions")], prompting("/qna", "go", "/qna"), qna.setup, ui=WatchedUi())

    assert editor(with_it) == []
    assert notified(with_it) == [("warning", "There is no answer yet"), ("info", "The last answer asks nothing")]


# -- handoff -----------------------------------------------------------------------------

SCRIPT = [assistant("It is in a.py."), assistant("Fix a.py: the loop."), assistant("fixed")]


def test_the_work_goes_on_in_a_new_session_that_names_the_old_one(tmp_path: Path) -> None:
    parents: list[str | None] = []

    async def act(running: Running) -> None:
        await running.seat.prompt("Where is the fault?")
        old = running.seat.session_file
        await running.seat.prompt("/handoff fix it")
        parents.append(running.seat.state.header.parent_session)
        parents.append(old)

    without = left(SCRIPT, act, **sessions(tmp_path))
    assert parents[0] is None
    parents.clear()
    with_it = left(SCRIPT, act, handoff.setup, **sessions(tmp_path))

    assert without.lines[2:] == ["user: /handoff fix it", "assistant: Fix a.py: the loop."]
    assert with_it.lines == ["user: Fix a.py: the loop.", "assistant: fixed"]
    assert parents[0] == parents[1] is not None
    assert with_it.errors == []


def test_a_person_may_change_the_prompt_or_stay(tmp_path: Path) -> None:
    def answered(answer: str | None) -> Left:
        async def act(running: Running) -> None:
            await running.seat.prompt("Where is the fault?")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(running.seat.prompt, "/handoff fix it")
                await virtual_sleep(1)
                [dialog] = running.seat.dialogs
                assert dialog.prefill == "Fix a.py: the loop."
                running.seat.cancel_dialog(dialog.id) if answer is None else running.seat.answer_dialog(dialog.id, answer)

        return left(SCRIPT, act, handoff.setup, ui=WatchedUi(), mode="rpc", **sessions(tmp_path))

    assert answered("Fix a.py only.").lines == ["user: Fix a.py only.", "assistant: fixed"]
    assert answered(None).lines == ["user: Where is the fault?", "assistant: It is in a.py.", "(usage handoff)"]


def test_without_a_goal_or_an_answer_everything_stays() -> None:
    script: list[Step] = [assistant("hello"), [Fail("overloaded")]]
    with_it = left(script, prompting("hi", "/handoff", "/handoff fix it"), handoff.setup, ui=WatchedUi())

    assert with_it.lines == ["user: hi", "assistant: hello"]
    assert [level for level, _ in notified(with_it)] == ["error", "error"]
