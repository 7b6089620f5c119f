"""The sample todo: a tool whose state is in the history."""

from typing import Any

from camshaft.actors.api import thaw
from camshaft.actors.host import OpenSession, WatchedUi
from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.extensions_std.providers.scripted import Step, assistant, tool_call
from camshaft.extensions_std.samples import todo
from tests.actors.running import PATH, Running
from tests.extensions_std.samples.trying import prompting
from tests.extensions_std.samples.with_and_without import left, without_and_with


def calls(*arguments: dict[str, Any]) -> list[Step]:
    made = [tool_call("todo", each, id=f"c{number}") for number, each in enumerate(arguments)]
    return [assistant(made, stop_reason="toolUse"), assistant("ok")]


ADD_TWO = calls({"action": "add", "text": "read"}, {"action": "add", "text": "write"}, {"action": "toggle", "id": 1})


def test_the_list_is_kept_in_the_details_of_the_results() -> None:
    without, with_it = without_and_with(ADD_TWO, prompting("plan"), todo.setup)

    assert without.lines[2] == "todo failed: Tool todo not found"
    assert with_it.lines[2:5] == ["todo: [ ] 1. read", "todo: [ ] 1. read\n[ ] 2. write", "todo: [x] 1. read\n[ ] 2. write"]
    [last] = [entry.message for entry in with_it.entries if entry.type == "message" and getattr(entry.message, "tool_call_id", "") == "c2"]
    assert thaw(last.details) == {"todos": [{"id": 1, "text": "read", "done": True}, {"id": 2, "text": "write", "done": False}]}


def test_what_cannot_be_done_is_told_and_changes_nothing() -> None:
    script = calls({"action": "add", "text": "read"}, {"action": "toggle", "id": 7}, {"action": "add"}, {"action": "list"})
    lines = left(script, prompting("plan"), todo.setup).lines

    assert lines[3:6] == ["todo failed: there is no todo 7; expected one of [1]", "todo failed: add needs a text", "todo: [ ] 1. read"]


def shown(running: Running) -> list[str]:
    return [event.message for event in running.heard if event.type == "notified"]


def test_each_branch_has_the_list_it_had_there() -> None:
    async def act(running: Running) -> None:
        await running.seat.prompt("plan")
        before = running.seat.state.leaf_id
        await running.seat.prompt("more")
        await running.seat.prompt("/todos")
        assert before is not None
        await running.seat.navigate_tree(before)
        await running.seat.prompt("/todos")
        assert shown(running) == ["[ ] 1. read\n[ ] 2. write", "[ ] 1. read"]

    script = [*calls({"action": "add", "text": "read"}), *calls({"action": "add", "text": "write"})]
    assert left(script, act, todo.setup, ui=WatchedUi()).errors == []


def test_a_session_that_is_opened_again_goes_on_with_its_list() -> None:
    files = MemoryLogFiles()
    where: dict[str, Any] = {"log_files": files, "session": OpenSession(path=PATH)}

    left(ADD_TWO, prompting("plan"), todo.setup, **where)
    again = left(calls({"action": "list"}), prompting("go on"), todo.setup, **where)

    assert again.lines[-2] == "todo: [x] 1. read\n[ ] 2. write"
