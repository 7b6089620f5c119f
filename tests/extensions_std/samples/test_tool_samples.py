"""Samples that give the model tools: structured_output, tool_override, dynamic_tools, truncated_tool, question, questionnaire."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from camshaft.actors.api import OUTPUT_BYTES_MAX, AssistantMessage, ToolContext, current_tools, size_of, text_of, thaw
from camshaft.actors.host import WatchedUi
from camshaft.extensions_std.providers.scripted import assistant, tool_call
from camshaft.extensions_std.samples import dynamic_tools, question, questionnaire, structured_output, tool_override, truncated_tool
from camshaft.extensions_std.tools import create_read_tool
from tests.actors.extensions_on_disk import write
from tests.actors.running import Running
from tests.extensions_std.samples.trying import prompting
from tests.extensions_std.samples.with_and_without import Act, left, left_in_real_time, virtual_sleep, without_and_with


def calls(name: str, *arguments: dict[str, Any]) -> AssistantMessage:
    return assistant([tool_call(name, each, id=f"c{number}") for number, each in enumerate(arguments)], stop_reason="toolUse")


def details(entries: Sequence[Any]) -> list[Any]:
    return [thaw(entry.message.details) for entry in entries if entry.type == "message" and entry.message.role == "toolResult"]


# -- structured_output -------------------------------------------------------------------


def test_the_final_report_ends_the_run_and_keeps_its_fields() -> None:
    report = {"headline": "Two bugs", "summary": "Both are in the parser.", "next_steps": ["fix them"]}
    script = [calls("final_report", report), assistant("I cannot report.")]

    without, with_it = without_and_with(script, prompting("Find bugs"), structured_output.setup)

    assert without.lines[-2:] == ["final_report failed: Tool final_report not found", "assistant: I cannot report."]
    assert with_it.lines == ["user: Find bugs", "assistant:  -> final_report", "final_report: Reported: Two bugs"]
    assert details(with_it.entries) == [{"headline": "Two bugs", "summary": "Both are in the parser.", "nextSteps": ["fix them"]}]


# -- tool_override -----------------------------------------------------------------------


def test_reading_is_noted_and_a_secret_file_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {".env": "KEY=1", "plain.txt": "hello"})
    script = [calls("read", {"path": ".env"}), calls("read", {"path": "plain.txt"}), assistant("done")]
    more: dict[str, Any] = {"cwd": str(tmp_path), "tools": [create_read_tool()], "ui": WatchedUi()}

    without = left_in_real_time(script, prompting("go"), **more)
    with_it = left_in_real_time(script, prompting("go", "/reads"), tool_override.setup, **more)

    assert [line for line in without.lines if line.startswith(("read", "("))] == ["read: KEY=1", "read: hello"]
    assert [line for line in with_it.lines if line.startswith(("read", "("))] == [
        "(read-access)",
        "read failed: Access to '.env' is not allowed: it may hold secrets",
        "(read-access)",
        "read: hello",
    ]
    assert [event.message for event in with_it.heard if event.type == "notified"] == ["refused .env\nread plain.txt"]


def test_the_model_is_told_the_same_of_a_replaced_tool() -> None:
    def declared(*setups: Any) -> Any:
        with_them = left([assistant("ok")], prompting("go"), *setups, tools=[create_read_tool()])
        return current_tools([entry.message for entry in with_them.entries if entry.type == "message"])

    assert declared(tool_override.setup) == declared()


# -- dynamic_tools -----------------------------------------------------------------------


def test_a_tool_that_a_person_adds_can_be_called_and_is_there_when_the_session_is_opened_again() -> None:
    script = [calls("shout", {"text": "hi"}), assistant("done")]
    without, with_it = without_and_with(script, prompting("/add-echo shout HEY ", "go"), dynamic_tools.setup)

    assert "shout failed: Tool shout not found" in without.lines
    assert with_it.lines[0] == "(echo-tool)"
    assert "shout: HEY hi" in with_it.lines


def test_the_session_has_its_own_tool_from_the_start() -> None:
    without, with_it = without_and_with([calls("echo_session", {"text": "hi"}), assistant("ok")], prompting("go"), dynamic_tools.setup)

    assert "echo_session failed: Tool echo_session not found" in without.lines
    assert "echo_session: [session] hi" in with_it.lines


def test_a_name_that_is_taken_or_wrong_adds_nothing() -> None:
    acts = prompting("/add-echo Shout X", "/add-echo echo_session X")
    with_it = left([], acts, dynamic_tools.setup, ui=WatchedUi())

    assert with_it.lines == []
    assert [event.level for event in with_it.heard if event.type == "notified"] == ["error", "warning"]


# -- truncated_tool ----------------------------------------------------------------------


def test_a_long_output_is_cut_and_kept_in_a_file(tmp_path: Path) -> None:
    write(tmp_path, {"long.txt": "needle and more\n" * 5000})
    script = [calls("search_all", {"pattern": "needle"}), assistant("done")]

    without = left_in_real_time(script, prompting("go"), cwd=str(tmp_path))
    with_it = left_in_real_time(script, prompting("go"), truncated_tool.setup, cwd=str(tmp_path))
    [kept] = details(with_it.entries)
    shown, _, notice = with_it.lines[2].removeprefix("search_all: ").rpartition("\n\n")
    path = Path(kept["fullOutputPath"])
    whole = path.read_text()
    path.unlink()

    assert "search_all failed: Tool search_all not found" in without.lines
    assert whole.count("needle") == 5000
    assert size_of(shown) <= OUTPUT_BYTES_MAX
    assert len(shown.splitlines()) <= 2000
    assert whole.startswith(shown)
    assert str(path) in notice
    assert "of 5000 lines" in notice


def test_a_short_output_is_given_whole_and_a_bad_pattern_is_told(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "needle\n"})
    script = [calls("search_all", {"pattern": "needle"}, {"pattern": "nothing here"}, {"pattern": "("}), assistant("done")]

    lines = left_in_real_time(script, prompting("go"), truncated_tool.setup, cwd=str(tmp_path)).lines

    assert lines[2].startswith("search_all: ./a.txt:1:needle")
    assert lines[3] == "search_all: No matches"
    assert lines[4].startswith("search_all failed: grep")


# -- question, questionnaire -------------------------------------------------------------


def answering(*answers: Any) -> Act:
    """Prompts once and answers one dialog after the other; None leaves the dialog."""

    async def act(running: Running) -> None:
        await running.seat.submit("go")
        for answer in answers:
            await virtual_sleep(1)
            [dialog] = running.seat.dialogs
            running.seat.answer_dialog(dialog.id, answer) if answer is not None else running.seat.cancel_dialog(dialog.id)
        await running.seat.wait_idle()

    return act


ASK = {"question": "Which port?", "options": ["80", "8080"]}


def test_the_answer_to_a_question_is_the_result() -> None:
    script = [calls("question", ASK), assistant("ok")]

    without = left(script, prompting("go"), ui=WatchedUi())
    chosen = left(script, answering("8080"), question.setup, ui=WatchedUi())
    written = left(script, answering(question.OTHER, "8443"), question.setup, ui=WatchedUi())
    silent = left(script, answering(None), question.setup, ui=WatchedUi())

    assert without.lines[2] == "question failed: Tool question not found"
    assert chosen.lines[2] == "question: The user answers: 8080"
    assert written.lines[2] == "question: The user answers: 8443"
    assert silent.lines[2] == "question: The user gave no answer."
    assert details(written.entries) == [{"question": "Which port?", "options": ["80", "8080"], "answer": "8443"}]


def test_without_anybody_to_ask_the_model_is_told_to_decide() -> None:
    script = [calls("question", ASK), assistant("ok")]

    assert left(script, prompting("go"), question.setup).lines[2].startswith("question failed: Nobody is there to ask.")


def test_another_tool_cannot_ask() -> None:
    def asker(api: Any) -> None:
        async def loop(ctx: ToolContext) -> str:
            """Ask through another tool."""
            return text_of((await ctx.execute_tool("question", ASK)).result.content or ())

        api.tool(loop)

    lines = left([calls("loop", {}), assistant("ok")], prompting("go"), question.setup, asker, ui=WatchedUi()).lines

    assert "question" in lines[2]
    assert "The user" not in lines[2]


SEVERAL = {
    "questions": [
        {"id": "port", "text": "Which port?", "kind": "choice", "options": ["80", "8080"]},
        {"id": "tls", "text": "With TLS?", "kind": "yes-no"},
        {"id": "name", "text": "Which name?"},
    ]
}


def test_the_answers_to_a_questionnaire_are_its_result() -> None:
    script = [calls("questionnaire", SEVERAL), assistant("ok")]

    without = left(script, prompting("go"), ui=WatchedUi())
    answered = left(script, answering("80", "No", "web"), questionnaire.setup, ui=WatchedUi())
    left_early = left(script, answering("80", None), questionnaire.setup, ui=WatchedUi())

    assert without.lines[2] == "questionnaire failed: Tool questionnaire not found"
    assert answered.lines[2] == "questionnaire: port: 80\ntls: No\nname: web"
    assert left_early.lines[2] == "questionnaire: port: 80\ntls: (no answer)\nname: (no answer)"
    assert details(left_early.entries) == [{"answers": {"port": "80"}, "complete": False}]
