"""Without a client: how lines are made, how calls and messages are shown, how blocks become a prompt."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from camshaft.actors.api import AssistantMessage, TextBlock, ThinkingBlock, ToolCall, ToolResult, ToolResultMessage, UserMessage, freeze
from camshaft.actors.host import (
    AgentSettled,
    Dialog,
    MemorySession,
    MessageEnd,
    MessageStart,
    OpenOptions,
    Seat,
    ToolExecutionEnd,
    ToolExecutionStart,
    open_kernel,
    real_world,
)
from camshaft.extensions_std.frontends.acp.asking import permission_options
from camshaft.extensions_std.frontends.acp.prompts import LINKED_BYTES_MAX, prompt_of
from camshaft.extensions_std.frontends.acp.records import RpcError, line_of
from camshaft.extensions_std.frontends.acp.tool_calls import Tools, shown_call
from camshaft.extensions_std.frontends.acp.updates import Update, Updates
from camshaft.extensions_std.tools import builtin_tools


@asynccontextmanager
async def a_seat(cwd: Path) -> AsyncGenerator[Seat]:
    async with open_kernel(world=real_world({"HOME": str(cwd)})) as kernel:
        yield await kernel.open(OpenOptions(cwd=str(cwd), session=MemorySession(), builtin_tools=builtin_tools()))


def answer(*content: Any, stop_reason: str = "stop") -> AssistantMessage:
    return AssistantMessage(content=content, api="a", provider="p", model="m", stop_reason=stop_reason, timestamp=0)


def call(id: str, name: str, **arguments: Any) -> ToolCall:
    return ToolCall(id=id, name=name, arguments=freeze(arguments))


def states(updates: list[Update]) -> list[tuple[str, str]]:
    return [(update["toolCallId"], update["status"]) for update in updates if "status" in update]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("half \ud83c", '"half \ufffd"'),
        ("\udf39 half", '"\ufffd half"'),
        ("a \\ud83c text", '"a \\\\ud83c text"'),
        ("\\\ud83c", '"\\\\\ufffd"'),
        ("\ud83c\ud83c", '"\ufffd\ufffd"'),
        ("🌹", '"🌹"'),
    ],
)
def test_a_line_holds_no_halves_of_characters(text: str, shown: str) -> None:
    assert line_of({"a": text}).decode() == f'{{"a":{shown}}}\n'


@pytest.mark.parametrize(
    ("name", "arguments", "title", "kind", "locations"),
    [
        ("read", {"path": "a.py", "offset": 7}, "Read a.py", "read", [{"path": "{cwd}/a.py", "line": 7}]),
        ("read", {"path": "a.py", "offset": True}, "Read a.py", "read", [{"path": "{cwd}/a.py"}]),
        ("read", {"path": 7}, "Read", "read", []),
        ("read", {"path": "a\0b"}, "Read a\0b", "read", []),
        ("bash", {"command": "ls\nrm x"}, "`ls …`", "execute", []),
        ("bash", {"command": "echo `date`"}, "`` echo `date` ``", "execute", []),
        ("bash", {}, "Bash", "execute", []),
        ("grep", {"pattern": "a+", "path": "src"}, "Grep `a+` src", "search", [{"path": "{cwd}/src"}]),
        ("ask_oracle", {"path": "a.py"}, "ask_oracle", "other", []),
    ],
)
async def test_a_call_is_shown_by_what_it_does(
    tmp_path: Path, name: str, arguments: dict[str, Any], title: str, kind: str, locations: list[dict[str, Any]]
) -> None:
    async with a_seat(tmp_path) as seat:
        shown = shown_call("1", name, freeze(arguments), Tools(seat))

    placed = [{**each, "path": each["path"].format(cwd=tmp_path)} for each in locations]
    assert (shown.title.lower(), shown.kind, list(shown.locations)) == (title.lower(), kind, placed)


async def test_outputs_of_commands_are_fenced_and_failures_are_not(tmp_path: Path) -> None:
    async with a_seat(tmp_path) as seat:
        shown = shown_call("1", "bash", freeze({"command": "x"}), Tools(seat))

    blocks = (TextBlock(text="a ``` b"),)
    assert shown.content(blocks)[0]["content"]["text"] == "````\na ``` b\n````"
    assert shown.content(blocks, is_error=True)[0]["content"]["text"] == "a ``` b"


async def test_a_change_that_failed_is_shown_with_the_reason(tmp_path: Path) -> None:
    async with a_seat(tmp_path) as seat:
        shown = shown_call("1", "edit", freeze({"path": "a", "edits": [{"oldText": "x", "newText": "y"}, {"oldText": 1}]}), Tools(seat))

    change = {"type": "diff", "path": str(tmp_path / "a"), "oldText": "x", "newText": "y"}
    assert shown.content((TextBlock(text="Done"),)) == [change]
    assert [each["type"] for each in shown.content((TextBlock(text="No"),), is_error=True)] == ["diff", "content"]


async def test_calls_that_never_ran_end_as_failed_with_the_next_answer_or_the_run(tmp_path: Path) -> None:
    async with a_seat(tmp_path) as seat:
        updates = Updates(Tools(seat))
        told = updates.of_message(answer(call("1", "bash", command="x"), stop_reason="error"))
        told += updates.of_event(MessageStart(message=answer()))
        told += updates.of_message(answer(call("1", "bash", command="x"), stop_reason="aborted"))
        told += updates.of_event(AgentSettled(aborted=True))
        told += updates.of_event(AgentSettled(aborted=True))

    assert states(told) == [("1", "pending"), ("1", "failed"), ("1#2", "pending"), ("1#2", "failed")]


async def test_calls_of_a_tool_say_whose_they_are_and_questions_are_about_the_last_one(tmp_path: Path) -> None:
    async with a_seat(tmp_path) as seat:
        updates = Updates(Tools(seat))
        updates.of_message(answer(call("1", "bash", command="x")))
        updates.of_event(ToolExecutionStart(tool_call_id="1", tool_name="bash", args=freeze({"command": "x"})))
        inner = ToolExecutionStart(tool_call_id="1/1", tool_name="read", args=freeze({"path": "a"}), parent_tool_call_id="1")
        begun, _running = updates.of_event(inner)
        assert begun["_meta"] == {"camshaft/parentToolCallId": "1"}
        assert updates.current_call is not None and updates.current_call.id == "1/1"
        end = ToolExecutionEnd(tool_call_id="1/1", tool_name="read", result=ToolResult(), is_error=False, parent_tool_call_id="1")
        assert states(updates.of_event(end)) == [("1/1", "completed")]
        assert updates.current_call is not None and updates.current_call.id == "1"


async def test_what_did_not_stream_is_told_when_the_message_is_whole(tmp_path: Path) -> None:
    async with a_seat(tmp_path) as seat:
        updates = Updates(Tools(seat))
        said = answer(ThinkingBlock(thinking="hm"), TextBlock(text="yes"), TextBlock(text=""), call("1", "bash", command="x"))
        told = updates.of_event(MessageEnd(message=said))
        done = ToolResultMessage(tool_call_id="1", tool_name="bash", content=(TextBlock(text="out"),), is_error=False, timestamp=0)
        told += [*updates.of_message(done), *updates.of_message(done)]

    assert [each["sessionUpdate"] for each in told] == ["agent_thought_chunk", "agent_message_chunk", "tool_call", "tool_call_update"]


async def test_only_the_prompt_of_the_client_is_not_shown_again(tmp_path: Path) -> None:
    async with a_seat(tmp_path) as seat:
        updates = Updates(Tools(seat))
        updates.awaits_prompt = True
        own = updates.of_message(UserMessage(content="mine", timestamp=0))
        other = updates.of_message(UserMessage(content="of an extension", timestamp=0))

    assert own == []
    assert other == [{"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "of an extension"}}]


@pytest.mark.parametrize(
    ("option", "kind"),
    [
        ("Allow", "allow_once"),
        ("Allow always", "allow_always"),
        ("Yes, for this session", "allow_always"),
        ("No", "reject_once"),
        ("Never.", "reject_always"),
        ("red", "allow_once"),
        ("", "allow_once"),
    ],
)
def test_the_look_of_an_option_is_guessed_from_its_words(option: str, kind: str) -> None:
    dialog = Dialog(id="1", kind="select", title="?", options=(option,), extension="x")

    assert list(permission_options(dialog)) == [(option, kind)]


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def link(path: Path) -> dict[str, Any]:
    return {"type": "resource_link", "name": path.name, "uri": path.as_uri()}


async def test_files_stand_before_a_text_and_behind_a_command(tmp_path: Path) -> None:
    file = tmp_path / "a b.txt"
    file.write_text("inside")

    asked = await prompt_of((text("Look at "), link(file)), str(tmp_path))
    called = await prompt_of((text("/review "), link(file)), str(tmp_path))

    shown = f'<file name="{file}">\ninside\n</file>\n'
    assert asked.text == f"{shown}Look at a b.txt"
    assert called.text == f"/review a b.txt\n{shown}"


@pytest.mark.parametrize("name", ["missing", "folder", "large", "binary"])
async def test_what_cannot_be_put_into_a_prompt_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "large").write_bytes(b"x" * (LINKED_BYTES_MAX + 1))
    (tmp_path / "binary").write_bytes(b"a\0b")

    prompt = await prompt_of((text("See "), link(tmp_path / name)), str(tmp_path))

    assert (prompt.text, prompt.images) == (f"See {name}", ())


@pytest.mark.parametrize(
    "block",
    [
        7,
        {},
        {"type": "text"},
        {"type": "text", "text": 7},
        {"type": "audio", "data": "", "mimeType": "audio/wav"},
        {"type": "image", "data": "?", "mimeType": "image/png"},
        {"type": "resource", "resource": 7},
        {"type": "resource", "resource": {"uri": "x"}},
        {"type": "resource_link", "name": "n"},
        {"type": "resource_link", "name": "n", "uri": "http://[broken"},
    ],
)
async def test_a_block_that_is_none_is_named_by_its_place(block: Any) -> None:
    with pytest.raises(RpcError, match=r"^prompt\.1: "):
        await prompt_of((text("a"), block), "/")
