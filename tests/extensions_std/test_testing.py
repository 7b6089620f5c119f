"""The kit for tests of extensions: it plays what is written, and fails what a test forgot to look at."""

import re
from pathlib import Path
from typing import Any

import pytest
import trio

from camshaft.actors.api import (
    ExtensionAPI,
    MessageEntry,
    SessionBeforeCompactEvent,
    SessionBeforeCompactResult,
    SuppliedCompaction,
)
from camshaft.actors.host import CompactionSettings, Seat, Settings
from camshaft.extensions_std.providers.scripted import Hang, assistant, tool_call
from camshaft.extensions_std.testing import rehearse


def asking(api: Any) -> None:
    async def ask(_arguments: str, ctx: Any) -> None:
        ui = ctx.ui
        ui.notify(
            repr((await ui.input("Name?"), await ui.confirm("Sure?"), await ui.select("Which?", ["a", "b"]), await ui.editor("Text")))
        )

    api.register_command("ask", ask)


def failing(api: Any) -> None:
    def fail(_event: Any, _ctx: Any) -> None:
        raise ValueError("bad")

    api.on("turn_end", fail)


def nothing(_api: Any) -> None: ...


def test_prompts_and_script_make_a_conversation_with_the_usual_tools(tmp_path: Path) -> None:
    script = [assistant(tool_call("write", {"path": "a.txt", "content": "x"})), assistant("Done.")]

    played = rehearse(nothing, script=script, prompts=["Write."], cwd=str(tmp_path))

    assert [role for role, _ in played.said] == ["user", "assistant", "toolResult", "assistant"]
    assert (tmp_path / "a.txt").read_text() == "x"
    assert len(played.requests) == 2
    assert played.events[-1].type == "agent_settled"
    assert [entry.message.role for entry in played.entries if isinstance(entry, MessageEntry)][1:] == [role for role, _ in played.said]


def test_an_extension_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "hello.py"
    path.write_text("def setup(api):\n    api.register_command('hi', lambda args, ctx: ctx.ui.notify('Hello ' + args))\n")

    assert rehearse(path, prompts=["/hi Ada"], answers=[]).shown == ("Hello Ada",)
    assert rehearse(str(path), prompts=["/hi Ada"]).shown == ()


def test_dialogs_are_answered_in_order() -> None:
    played = rehearse(asking, prompts=["/ask"], answers=["Ada", True, None, "more"])

    assert played.asked == ("Name?", "Sure?", "Which?", "Text")
    assert played.shown == ("('Ada', True, None, 'more')",)


def test_without_answers_nobody_is_asked() -> None:
    assert rehearse(asking, prompts=["/ask"]).asked == ()


def test_a_scene_comes_after_the_prompts_and_a_clock_that_jumps_takes_no_time() -> None:
    async def scene(seat: Seat) -> None:
        await trio.sleep(3600)  # real time: none, the clock of this conversation jumps
        await seat.prompt("Two")

    played = rehearse(nothing, script=[assistant("1"), assistant("2")], prompts=["One"], scene=scene, jumping=True, limit_s=7200)

    assert played.said == (("user", "One"), ("assistant", "1"), ("user", "Two"), ("assistant", "2"))


def test_a_summary_is_told_with_what_it_says() -> None:
    def compacting(api: ExtensionAPI) -> None:
        api.on("session_before_compact", minutes)

    def minutes(event: SessionBeforeCompactEvent, _ctx: Any) -> SessionBeforeCompactResult:
        kept = event.preparation.first_kept_entry_id
        return SessionBeforeCompactResult(compaction=SuppliedCompaction(summary="Greetings.", first_kept_entry_id=kept, tokens_before=9))

    async def scene(seat: Seat) -> None:
        await seat.compact()

    settings = Settings(compaction=CompactionSettings(keep_recent_tokens=1))
    played = rehearse(compacting, script=[assistant("1"), assistant("2")], prompts=["One", "Two"], scene=scene, settings=settings)

    assert played.said[0] == ("compactionSummary", "Greetings.")


@pytest.mark.parametrize(
    ("extension", "given", "text"),
    [
        (nothing, {"prompts": "hi"}, "prompts is 'hi'; expected a list: prompts=['hi']"),
        (nothing, {"answers": "yes"}, "answers is 'yes'; expected a list: answers=['yes']"),
        (nothing, {"scene": lambda _seat: None}, "scene returned None; expected a function that begins with `async def`"),
        (re, {}, "expected its function `setup`, or the path of its file"),
    ],
    ids=["one prompt", "one answer", "sync scene", "module"],
)
def test_an_argument_that_cannot_be_meant_is_refused(extension: Any, given: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError, match=re.escape(text)):
        rehearse(extension, **given)


def test_errors_can_be_what_is_tested() -> None:
    played = rehearse(failing, script=[assistant("hi")], prompts=["hi"], allow_errors=True)

    assert [(error.event, error.error) for error in played.errors] == [("turn_end", "bad")]


@pytest.mark.parametrize(
    ("extension", "given", "text"),
    [
        ("gone.py", {}, "gone.py: Extension path does not exist: "),
        (failing, {"script": [assistant("hi")], "prompts": ["hi"]}, "bad [ValueError, in turn_end, "),
        (nothing, {"script": [assistant("hi")]}, "1 scripted responses were not requested, the next is assistant('hi')"),
        (nothing, {"prompts": ["hi"]}, "1 of 1 requests found no scripted response"),
        (asking, {"prompts": ["/ask"], "answers": ["a"]}, "no answer was written down for the confirm 'Sure?' of <inline:"),
        (asking, {"prompts": ["/ask"], "answers": ["a", "b", None, None]}, "answer 'b' does not fit the confirm 'Sure?' of <inline:"),
        (nothing, {"answers": ["a"]}, "the answer 'a' was not asked for"),
        (nothing, {"scene": lambda seat: seat.prompt("hi"), "script": [[Hang()]], "jumping": True}, "did not end within 604800 s"),
    ],
    ids=["not loaded", "handler failed", "script left", "script too short", "answer missing", "answer unfit", "answer left", "hang"],
)
def test_what_a_test_did_not_look_at_fails_it(extension: Any, given: dict[str, Any], text: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(text)):
        rehearse(extension, **given)
