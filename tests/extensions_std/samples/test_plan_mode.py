"""The sample plan_mode: looks before it changes anything, and follows its plan."""

from typing import Any

import pytest

from camshaft.actors.api import Annotations, ToolDefinition, current_tools, thaw
from camshaft.actors.host import OpenSession, WatchedUi
from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.extensions_std.providers.scripted import Step, assistant, tool_call
from camshaft.extensions_std.samples import plan_mode
from tests.actors.running import PATH, Running, tool
from tests.extensions_std.samples.trying import prompting
from tests.extensions_std.samples.with_and_without import Left, at_rest, left, virtual_sleep, without_and_with


async def work(*_: Any) -> Any:
    return {"content": [{"type": "text", "text": "worked"}]}


def tools() -> list[ToolDefinition]:
    return [tool(work, "read", annotations=Annotations(read_only_hint=True)), tool(work, "bash"), tool(work, "edit")]


def calls(*named: tuple[str, dict[str, Any]]) -> Any:
    return assistant([tool_call(name, given, id=f"c{at}") for at, (name, given) in enumerate(named)], stop_reason="toolUse")


PLANNED = assistant("I looked around.\nPlan:\n1. Write a test\n2) Fix the loop")
LOOKING: list[Step] = [calls(("read", {}), ("bash", {"command": "ls -l"}), ("bash", {"command": "rm x"}), ("edit", {})), PLANNED]


def modes(left: Left) -> list[Any]:
    return [thaw(entry.data) for entry in left.entries if entry.type == "custom" and entry.custom_type == "plan-mode"]


def test_while_planning_only_reading_is_let_through_and_the_plan_is_stored() -> None:
    without, with_it = without_and_with([*LOOKING, assistant("?")], prompting("/plan", "look"), plan_mode.setup, tools=tools())

    assert [line for line in without.lines if line.startswith(("read", "bash", "edit"))] == [
        "read: worked",
        "bash: worked",
        "bash: worked",
        "edit: worked",
    ]
    assert [line.partition(":")[0] for line in with_it.lines if line.startswith(("read", "bash", "edit"))] == [
        "read",
        "bash",
        "bash failed",
        "edit failed",
    ]
    assert modes(with_it) == [
        {"planning": True, "steps": [], "tools": ["read", "bash", "edit"]},
        {"planning": True, "steps": [["Write a test", False], ["Fix the loop", False]], "tools": ["read", "bash", "edit"]},
    ]
    assert with_it.sections[0]["plan-mode"].count("You are planning") == 1


def test_the_model_is_told_only_of_the_tools_that_read() -> None:
    with_it = left([assistant("ok"), assistant("ok")], prompting("/plan", "look", "/plan", "work"), plan_mode.setup, tools=tools())
    messages = [entry.message for entry in with_it.entries if entry.type == "message"]
    planning = [at for at, message in enumerate(messages) if message.role == "assistant"][0]

    assert [each.name for each in current_tools(messages[:planning])] == ["read", "bash"]
    assert sorted([each.name for each in current_tools(messages)]) == ["bash", "edit", "read"]


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        ("ls", True),
        ("git log --oneline -3", True),
        ("cat a.txt", True),
        ("cat a.txt > b.txt", False),
        ("cat $(rm x)", False),
        ("ls; rm x", False),
        ("ls && rm x", False),
        ("ls\nrm x", False),
        ("git push", False),
        ("lsof", False),
        ("", False),
    ],
)
def test_a_command_is_let_through_if_it_can_only_read(command: str, allowed: bool) -> None:
    assert (plan_mode.READING_COMMAND.fullmatch(command) is not None) == allowed


def test_the_plan_is_carried_out_when_the_person_says_so_and_its_steps_are_ticked_off() -> None:
    shown: list[Any] = []

    async def act(running: Running) -> None:
        await running.seat.prompt("look")
        await virtual_sleep(1)
        [dialog] = running.seat.dialogs
        running.seat.answer_dialog(dialog.id, plan_mode.CARRY_OUT)
        await at_rest(running)
        shown.extend([widget.lines for key, widget in running.seat.ui.widgets if key == "plan-mode"])

    script: list[Step] = [PLANNED, calls(("edit", {})), assistant("The test is written. [DONE:1]")]
    with_it = left(script, act, plan_mode.setup, tools=tools(), ui=WatchedUi(), mode="rpc", flags={"plan": True})

    assert with_it.lines[-4:-1] == ["assistant:  -> edit", "edit: worked", "assistant: The test is written. [DONE:1]"]
    assert modes(with_it)[-1] == {
        "planning": False,
        "steps": [["Write a test", True], ["Fix the loop", False]],
        "tools": ["read", "bash", "edit"],
    }
    assert shown == [("1. [x] Write a test", "2. [ ] Fix the loop")]
    assert with_it.errors == []


def test_a_session_that_is_opened_again_is_in_the_mode_it_was_in() -> None:
    where: dict[str, Any] = {"log_files": MemoryLogFiles(), "session": OpenSession(path=PATH), "tools": tools()}

    left([PLANNED], prompting("/plan", "look"), plan_mode.setup, **where)
    again = left([calls(("edit", {})), assistant("ok")], prompting("go on"), plan_mode.setup, **where)

    assert again.lines[-2].startswith("edit failed: ")


def test_going_back_to_before_the_plan_ends_the_planning() -> None:
    async def act(running: Running) -> None:
        await running.seat.prompt("work")
        before = running.seat.state.leaf_id
        await running.seat.prompt("/plan")
        assert before is not None
        await running.seat.navigate_tree(before)
        await running.seat.prompt("work")

    script: list[Step] = [assistant("ok"), calls(("edit", {})), assistant("ok")]
    assert "edit: worked" in left(script, act, plan_mode.setup, tools=tools()).lines
