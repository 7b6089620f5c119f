"""Sessions of a connection: what can be chosen, listing, loading after a restart, closing, and what is refused."""

import asyncio
import json

import acp
import pytest
from acp import schema
from acp.exceptions import RequestError

from tests.extensions_std.frontends.acp.editor import connected, play
from tests.extensions_std.frontends.acp.gates import FRESH
from tests.extensions_std.frontends.command import Place, messages, texts

pytestmark = pytest.mark.slow

CALL = {"type": "toolCall", "id": "b", "name": "bash", "arguments": {"command": "echo out"}}


def test_a_session_is_loaded_after_a_restart_as_it_was_seen(where: Place) -> None:
    async def scene() -> None:
        async with connected(where, script=[{"content": [{"type": "thinking", "thinking": "Hm."}, "I run.", CALL]}, "Done."]) as there:
            session = await there.start(where.project)
            await there.prompt(session, "go")
            seen = there.editor
            assert await there.end() == 0
        async with connected(where, script=[{"content": [CALL]}, "More."]) as there:
            await there.agent.initialize(protocol_version=1)
            loaded = await there.agent.load_session(cwd=str(where.project), session_id=session, mcp_servers=[])
            assert [option.id for option in loaded.config_options or []] == ["model", "thinking"]
            told = there.editor
            assert told.text_of("user_message_chunk") == "go"
            for kind in ("agent_message_chunk", "agent_thought_chunk"):
                assert told.text_of(kind) == seen.text_of(kind)
            assert told.states() == {"b": ["pending", "completed"]}
            before = await seen.until("tool_call_update", toolCallId="b", status="completed")
            assert await told.until("tool_call_update", toolCallId="b", status="completed") == before
            assert await there.prompt(session, "go on") == "end_turn"
            assert told.states()["b#2"] == ["pending", "in_progress", "completed"]

    play(scene)


def test_sessions_are_listed_resumed_without_a_word_and_closed(where: Place) -> None:
    async def scene() -> None:
        async with connected(where, script=["One.", "Two."]) as there:
            session = await there.start(where.project)
            await there.prompt(session, "first words")
            listed = (await there.agent.list_sessions(cwd=str(where.project))).sessions
            assert [(each.session_id, each.title, each.cwd) for each in listed] == [(session, "first words", str(where.project))]
            assert (await there.agent.list_sessions(cwd=str(where.home))).sessions == []
            await there.agent.close_session(session_id=session)
            with pytest.raises(RequestError) as refused:
                await there.prompt(session, "anybody?")
            assert refused.value.code == -32002
            there.editor.updates.clear()
            await there.agent.resume_session(cwd=str(where.project), session_id=session)
            assert there.editor.text_of("user_message_chunk") == ""
            assert await there.prompt(session, "go on") == "end_turn"

    play(scene)


def test_model_and_thinking_level_can_be_chosen(where: Place) -> None:
    models = [{"id": "small", "name": "Small"}, {"id": "big", "name": "Big", "reasoning": True}]

    async def scene() -> None:
        async with connected(where, script={"models": models, "steps": ["Hi."]}) as there:
            await there.agent.initialize(protocol_version=1)
            made = await there.agent.new_session(cwd=str(where.project), mcp_servers=[])
            assert values(made.config_options) == {"model": "faux/small", "thinking": "off"}
            session = made.session_id
            changed = await there.agent.set_config_option(session_id=session, config_id="model", value="faux/big")
            changed = await there.agent.set_config_option(session_id=session, config_id="thinking", value="high")
            assert values(changed.config_options) == {"model": "faux/big", "thinking": "high"}
            for id, value in (("model", "faux/none"), ("thinking", "most"), ("colour", "red")):
                with pytest.raises(RequestError) as refused:
                    await there.agent.set_config_option(session_id=session, config_id=id, value=value)
                assert refused.value.code == -32602

    play(scene)


def values(options: object) -> dict[str, object]:
    assert isinstance(options, list)
    return {option.id: option.current_value for option in options}


def test_templates_are_commands(where: Place) -> None:
    where.write(".camshaft/prompts/review.md", "---\ndescription: Reviews a file\n---\nReview $1 now")

    async def scene() -> None:
        async with connected(where, script=["Fine."]) as there:
            session = await there.start(where.project)
            update = await there.editor.until("available_commands_update")
            assert update["availableCommands"] == [{"name": "review", "description": "Reviews a file", "input": {"hint": "arguments"}}]
            await there.prompt(session, "/review a.py")
            assert there.editor.text_of("user_message_chunk") == ""
        (file,) = where.session_files()
        assert "Review a.py now" in file.read_text()

    play(scene)


def test_servers_that_are_not_connected_are_told_of(where: Place) -> None:
    server = schema.McpServerStdio(name="files", command="/bin/files", args=[], env=[])

    async def scene() -> None:
        async with connected(where, script=["Hi."]) as there:
            await there.agent.initialize(protocol_version=1)
            made = await there.agent.new_session(cwd=str(where.project), mcp_servers=[server])
            assert made.field_meta == {"camshaft/mcpServersNotConnected": ["files"]}
            await there.prompt(made.session_id, "hello")
            assert "not used: files" in there.editor.text_of("agent_thought_chunk")
            assert there.editor.text_of("agent_message_chunk") == "Hi."

    play(scene)


def test_without_any_model_the_client_is_told_to_authenticate(where: Place) -> None:
    async def scene() -> None:
        async with connected(where) as there:
            said = await there.agent.initialize(protocol_version=1)
            (method,) = said.auth_methods or []
            assert "ANTHROPIC_API_KEY" in (method.description or "")
            for _again in range(2):
                with pytest.raises(RequestError) as refused:
                    await there.agent.new_session(cwd=str(where.project), mcp_servers=[])
                assert refused.value.code == -32000
                with pytest.raises(RequestError) as refused:
                    await there.agent.authenticate(method_id="credentials")
                assert refused.value.code == -32000
            local = {"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "models": [{"id": "m1"}]}
            where.write(".camshaft/models.json", json.dumps({"providers": {"local": local}}))
            await there.agent.authenticate(method_id="credentials")
            assert (await there.agent.new_session(cwd=str(where.project), mcp_servers=[])).session_id

    play(scene)


def test_what_cannot_be_opened_is_refused_and_the_connection_goes_on(where: Place) -> None:
    async def scene() -> None:
        async with connected(where, script=["Hi."]) as there:
            await there.agent.initialize(protocol_version=1)
            for cwd in ("relative", str(where.project / "missing")):
                with pytest.raises(RequestError, match="cwd") as refused:
                    await there.agent.new_session(cwd=cwd, mcp_servers=[])
                assert refused.value.code == -32602
            with pytest.raises(RequestError) as refused:
                await there.agent.load_session(cwd=str(where.project), session_id="nobody", mcp_servers=[])
            assert refused.value.code == -32002
            with pytest.raises(RequestError, match="additionalDirectories"):
                await there.agent.new_session(cwd=str(where.project), mcp_servers=[], additional_directories=["/"])
            made = await there.agent.new_session(cwd=str(where.project), mcp_servers=[])
            assert (await there.agent.prompt(session_id=made.session_id, prompt=[acp.text_block("hello")])).stop_reason == "end_turn"

    play(scene)


def test_an_extension_that_does_not_load_is_named_by_the_refusal(where: Place) -> None:
    broken = where.write("broken.py", "def setup(api):\n    raise RuntimeError('no')\n")

    async def scene() -> None:
        async with connected(where, "-e", str(broken), script=["Hi."]) as there:
            await there.agent.initialize(protocol_version=1)
            with pytest.raises(RequestError, match="extension"):
                await there.agent.new_session(cwd=str(where.project), mcp_servers=[])
            assert await there.end() == 0

    play(scene)


def test_a_conversation_that_goes_on_in_another_session_keeps_its_id(where: Place) -> None:
    fresh = where.write("fresh.py", FRESH)

    async def scene() -> None:
        async with connected(where, "-e", str(fresh), script=["One.", "Two."]) as there:
            session = await there.start(where.project)
            assert await there.prompt(session, "first") == "end_turn"
            assert await there.prompt(session, "/fresh") == "end_turn"
            assert await there.prompt(session, "second") == "end_turn"
            assert there.editor.text_of("agent_message_chunk", session) == "One.Two."
            assert await there.end() == 0
        old, new = where.session_files()
        assert [[texts(said) for said in messages(file) if said["role"] == "user"] for file in (old, new)] == [["first"], ["second"]]

    play(scene)


def test_closing_a_session_answers_its_prompt_first(where: Place) -> None:
    script = [{"actions": [{"type": "start"}, {"type": "text", "fragments": ["I am"]}, {"type": "hang"}]}]

    async def scene() -> None:
        async with connected(where, script=script) as there:
            session = await there.start(where.project)
            prompt = asyncio.create_task(there.prompt(session, "go"))
            await there.editor.until("agent_message_chunk")
            await there.agent.close_session(session_id=session)
            assert await prompt == "cancelled"

    play(scene)
