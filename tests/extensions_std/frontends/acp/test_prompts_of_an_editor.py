"""What an editor sees of a prompt: streamed updates, tool calls with their changes, the stop reason."""

import asyncio
import contextlib
import json
from typing import Any

import acp
import pytest
import trio
from acp.exceptions import RequestError

from tests.extensions_std.frontends.acp.editor import connected, play
from tests.extensions_std.frontends.command import Place, left_by, messages, texts, unanswered

pytestmark = pytest.mark.slow

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WRITE = {"type": "toolCall", "id": "w", "name": "write", "arguments": {"path": "a.txt", "content": "hello\n"}}
EDIT = {"type": "toolCall", "id": "e", "name": "edit", "arguments": {"path": "a.txt", "edits": [{"oldText": "hello", "newText": "bye"}]}}
SLEEP = {"type": "toolCall", "id": "s", "name": "bash", "arguments": {"command": "echo begun; sleep 60"}}


def test_the_handshake_says_what_there_is_whatever_version_is_asked_for(where: Place) -> None:
    async def scene() -> None:
        async with connected(where, script=["Hi."]) as there:
            said = await there.agent.initialize(protocol_version=7)
            assert said.protocol_version == 1
            assert said.agent_info is not None and said.agent_info.name == "camshaft"
            assert said.agent_capabilities is not None and said.agent_capabilities.load_session
            assert [method.id for method in said.auth_methods or []] == ["credentials"]
            await there.agent.authenticate(method_id="credentials")
            assert await there.end() == 0

    play(scene)


def test_an_answer_is_streamed_with_thoughts_calls_changes_and_usage(where: Place) -> None:
    script = [{"content": [{"type": "thinking", "thinking": "Hm."}, "I write.", WRITE]}, {"content": [EDIT]}, "Done."]

    async def scene() -> None:
        async with connected(where, script=script) as there:
            session = await there.start(where.project)
            assert await there.prompt(session, "go") == "end_turn"
            editor = there.editor
            assert editor.text_of("agent_thought_chunk") == "Hm."
            assert editor.text_of("agent_message_chunk") == "I write.Done."
            assert editor.text_of("user_message_chunk") == ""
            assert editor.states() == {"w": ["pending", "in_progress", "completed"], "e": ["pending", "in_progress", "completed"]}
            path = str(where.project / "a.txt")
            begun = await editor.until("tool_call", toolCallId="e")
            assert (begun["title"], begun["kind"], begun["locations"]) == ("Edit a.txt", "edit", [{"path": path}])
            assert begun["rawInput"] == EDIT["arguments"]
            ended = await editor.until("tool_call_update", toolCallId="e", status="completed")
            assert ended["content"] == [{"type": "diff", "path": path, "oldText": "hello", "newText": "bye"}]
            assert ended["rawOutput"]["text"] == "Replaced 1 block in a.txt"
            assert (await editor.until("usage_update"))["used"] > 0
        assert (where.project / "a.txt").read_text() == "bye\n"

    play(scene)


def test_ids_that_a_provider_uses_twice_are_two_calls(where: Place) -> None:
    async def scene() -> None:
        async with connected(where, script=[{"content": [WRITE]}, {"content": [WRITE]}, "Done."]) as there:
            await there.prompt(await there.start(where.project), "go")
            assert list(there.editor.states()) == ["w", "w#2"]

    play(scene)


def test_texts_files_links_and_images_reach_the_model(where: Place) -> None:
    (where.project / "notes.txt").write_text("remember", encoding="utf-8")
    link = acp.resource_link_block("notes.txt", (where.project / "notes.txt").as_uri())
    web = acp.resource_link_block("page", "https://example.org/")
    embedded = acp.embedded_text_resource("file:///elsewhere/b.txt", "inside")
    picture = acp.image_block(PICTURE, "image/png")

    async def scene() -> None:
        async with connected(where, script=["Seen."]) as there:
            session = await there.start(where.project)
            prompt: list[Any] = [acp.text_block("See "), link, acp.text_block(" and "), web, acp.resource_block(embedded), picture]
            assert (await there.agent.prompt(session_id=session, prompt=prompt)).stop_reason == "end_turn"
            (file,) = where.session_files()
            said = messages(file)[1]
            assert texts(said) == (
                f'<file name="{where.project / "notes.txt"}">\nremember\n</file>\n'
                '<file name="/elsewhere/b.txt">\ninside\n</file>\n'
                "See notes.txt and [page](https://example.org/)/elsewhere/b.txt"
            )
            assert [block["type"] for block in said["content"]] == ["text", "image"]

    play(scene)


@pytest.mark.parametrize(
    "blocks", [[], [acp.text_block("  ")], [acp.audio_block("AAAA", "audio/wav")], [acp.image_block("?", "image/png")]]
)
def test_a_prompt_that_cannot_be_taken_is_refused(where: Place, blocks: list[Any]) -> None:
    async def scene() -> None:
        async with connected(where, script=["Hi."]) as there:
            session = await there.start(where.project)
            with pytest.raises(RequestError, match="prompt") as refused:
                await there.agent.prompt(session_id=session, prompt=blocks)
            assert refused.value.code == -32602
            assert await there.prompt(session, "hello") == "end_turn"

    play(scene)


def test_a_failed_answer_is_an_error_and_a_cut_one_says_so(where: Place) -> None:
    script = [
        {"actions": [{"type": "fail", "text": "invalid api key", "status": 401}]},
        {"content": ["half"], "stopReason": "length"},
    ]

    async def scene() -> None:
        async with connected(where, script=script) as there:
            session = await there.start(where.project)
            with pytest.raises(RequestError, match="invalid api key"):
                await there.prompt(session, "one")
            assert await there.prompt(session, "two") == "max_tokens"

    play(scene)


def test_cancel_in_the_middle_of_a_tool_answers_the_prompt_and_kills_the_tool(where: Place) -> None:
    async def scene() -> None:
        async with connected(where, script=[{"content": [SLEEP]}, "Again."]) as there:
            session = await there.start(where.project)
            prompt = asyncio.create_task(there.prompt(session, "go"))
            await there.editor.until("tool_call_update", toolCallId="s", status="in_progress")
            before = asyncio.get_running_loop().time()
            await there.agent.cancel(session_id=session)
            later = asyncio.create_task(there.prompt(session, "again"))  # as editors do, before the first one is answered
            assert await prompt == "cancelled"
            assert asyncio.get_running_loop().time() - before < 10
            assert there.editor.states()["s"][-1] == "failed"
            assert await later == "end_turn"
            assert await there.end() == 0
        (file,) = where.session_files()
        assert unanswered(file) == []

    play(scene)


def test_cancel_while_the_model_hangs(where: Place) -> None:
    script = [{"actions": [{"type": "start"}, {"type": "text", "fragments": ["I am"]}, {"type": "hang"}]}]

    async def scene() -> None:
        async with connected(where, script=script) as there:
            session = await there.start(where.project)
            prompt = asyncio.create_task(there.prompt(session, "go"))
            await there.editor.until("agent_message_chunk")
            with pytest.raises(RequestError, match="under way"):
                await there.prompt(session, "me too")
            await there.agent.cancel(session_id=session)
            assert await prompt == "cancelled"

    play(scene)


def test_two_sessions_of_one_connection_do_not_meet(where: Place) -> None:
    (where.home / "other").mkdir()
    steps = [
        {"content": [SLEEP], "when": {"contains": "slow"}},
        {"content": ["quick ", "answer"], "when": {"contains": "quick"}},
    ]

    async def scene() -> None:
        async with connected(where, script=steps) as there:
            slow = await there.start(where.project)
            quick = (await there.agent.new_session(cwd=str(where.home / "other"), mcp_servers=[])).session_id
            prompt = asyncio.create_task(there.prompt(slow, "slow"))
            await there.editor.until("tool_call_update", sessionId=slow, status="in_progress")
            assert await there.prompt(quick, "quick") == "end_turn"
            assert not prompt.done()
            assert there.editor.text_of("agent_message_chunk", quick) == "quick answer"
            await there.agent.cancel(session_id=slow)
            assert await prompt == "cancelled"
        folders = {json.loads(file.read_text().split("\n")[0])["cwd"] for file in where.session_files()}
        assert folders == {str(where.project), str(where.home / "other")}

    play(scene)


def test_an_editor_that_dies_leaves_a_whole_log_and_no_process(where: Place) -> None:
    async def scene() -> None:
        async with connected(where, script=[{"content": [SLEEP]}]) as there:
            session = await there.start(where.project)
            prompt = asyncio.create_task(there.prompt(session, "go"))
            await there.editor.until("tool_call_update", toolCallId="s", status="in_progress")
            assert await there.end() == 0
            with contextlib.suppress(ConnectionError):  # whether it is answered in time depends on how busy the computer is
                assert await prompt == "cancelled"
        (file,) = where.session_files()
        assert unanswered(file) == []
        assert "toolResult" in [said["role"] for said in messages(file)]

    play(scene)
    assert trio.run(left_by, where) == []
