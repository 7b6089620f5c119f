"""Dialogs of extensions: permission requests, forms, and what happens when nobody answers."""

import asyncio

import pytest
from acp import schema

from tests.extensions_std.frontends.acp.editor import Choose, Editor, connected, first, play
from tests.extensions_std.frontends.acp.gates import ASKING, CONFIRM
from tests.extensions_std.frontends.command import Place, messages, texts

pytestmark = pytest.mark.slow

CALL = {"type": "toolCall", "id": "b", "name": "bash", "arguments": {"command": "echo ran"}}


async def closes(_options: list[schema.PermissionOption]) -> str | None:
    return None


@pytest.mark.parametrize(
    ("choose", "state", "result"),
    [
        (first("allow_once"), "completed", "ran\n"),
        (first("reject_once"), "failed", "refused by a person"),
        (closes, "failed", "refused by a person"),
    ],
)
def test_a_gate_asks_and_the_answer_decides(where: Place, choose: Choose, state: str, result: str) -> None:
    gate = where.write("gate.py", CONFIRM)

    async def scene() -> None:
        async with connected(where, "-e", str(gate), script=[{"content": [CALL]}, "Done."], editor=Editor(choose)) as there:
            assert await there.prompt(await there.start(where.project), "go") == "end_turn"
            (asked,) = there.editor.asked
            assert (asked["toolCall"]["toolCallId"], asked["toolCall"]["title"]) == ("b", "`echo ran`")
            assert asked["toolCall"]["content"][-1]["content"]["text"] == "Run it?\n\nbash"
            assert [(option["name"], option["kind"]) for option in asked["options"]] == [("Yes", "allow_once"), ("No", "reject_once")]
            assert there.editor.states() == {"b": ["pending", "in_progress", state]}
        (file,) = where.session_files()
        assert texts(next(said for said in messages(file) if said["role"] == "toolResult")) == result

    play(scene)


def test_cancel_while_a_person_is_asked_ends_the_prompt(where: Place) -> None:
    gate = where.write("gate.py", CONFIRM)
    asked, closed = asyncio.Event(), asyncio.Event()

    async def waits(_options: list[schema.PermissionOption]) -> str | None:
        asked.set()
        await closed.wait()
        return None

    async def scene() -> None:
        async with connected(where, "-e", str(gate), script=[{"content": [CALL]}], editor=Editor(waits)) as there:
            session = await there.start(where.project)
            prompt = asyncio.create_task(there.prompt(session, "go"))
            await asked.wait()
            await there.agent.cancel(session_id=session)
            assert await prompt == "cancelled"
            closed.set()
            assert there.editor.states()["b"][-1] == "failed"

    play(scene)


def test_a_question_outside_of_a_call_is_asked_about_one_made_up_for_it(where: Place) -> None:
    asking = where.write("asking.py", ASKING)

    async def scene() -> None:
        async with connected(where, "-e", str(asking), script=["Hi."], editor=Editor(first("reject_always"), text="Ada")) as there:
            session = await there.start(where.project, forms=True)
            assert await there.prompt(session, "/ask") == "end_turn"
            permission, form = there.editor.asked
            assert [option["kind"] for option in permission["options"]] == ["allow_once", "reject_always"]
            assert form["requestedSchema"]["properties"]["value"]["description"] == "a name"
            assert there.editor.text_of("agent_thought_chunk") == "\n[got never blue and Ada]\n"
            assert [states[-1] for states in there.editor.states().values()] == ["completed", "completed"]
            assert await there.end() == 0
        assert "noise on standard output" in (where.home / "stderr.txt").read_text()

    play(scene)


def test_a_client_without_forms_is_told_what_it_could_not_be_asked(where: Place) -> None:
    asking = where.write("asking.py", ASKING)

    async def scene() -> None:
        async with connected(where, "-e", str(asking), script=["Hi."]) as there:
            assert await there.prompt(await there.start(where.project), "/ask") == "end_turn"
            assert [each["method"] for each in there.editor.asked] == ["session/request_permission"]
            said = there.editor.text_of("agent_thought_chunk")
            assert "cannot ask for: Name?" in said
            assert "[got red and None]" in said

    play(scene)
