"""A session with a server of OpenAI's responses: real files, real sockets."""

import json
from pathlib import Path
from typing import Any

from camshaft.actors.host import MemorySession, OpenOptions, open_kernel
from camshaft.actors.world import real_world
from camshaft.extensions_std.providers.models_json import load_providers
from camshaft.extensions_std.tools import builtin_tools
from camshaft.kernel.messages import AssistantMessage, ToolResultMessage, text_of
from tests.extensions_std.providers.sse_server import Reply, scripted_server

REASONING = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Look"}], "encrypted_content": "ENC"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read", "arguments": '{"path":"note.txt"}'}
TEXT = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "It says hello."}]}
COMPLETED = {"type": "response.completed", "response": {"id": "r", "status": "completed"}}


def _reply(*events: dict[str, Any]) -> Reply:
    return Reply(body=tuple([f"data: {json.dumps(event)}\n\n".encode() for event in (*events, COMPLETED)]), end="hold")


def _done(*items: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "response.output_item.done", "output_index": at, "item": item} for at, item in enumerate(items)]


async def _asked(tmp_path: Path, *replies: Reply) -> tuple[list[AssistantMessage | ToolResultMessage], list[dict[str, Any]]]:
    """The answers and results of one prompt, and the bodies that the server got."""
    world = real_world({"KEY": "canary-key-0123"})
    async with scripted_server(*replies) as server, open_kernel(world=world) as kernel:
        models = [{"id": "gpt", "reasoning": True}]
        own = {"baseUrl": f"{server.base_url}/v1", "api": "openai-responses", "apiKey": "$KEY", "models": models}
        (tmp_path / "models.json").write_text(json.dumps({"providers": {"own": own}}))
        (tmp_path / "note.txt").write_text("hello")
        providers = load_providers(tmp_path, world.environment, world)
        opened = OpenOptions(
            cwd=str(tmp_path), session=MemorySession(), providers=providers, builtin_tools=builtin_tools(), model="own/gpt"
        )
        seat = await kernel.open(opened)
        await seat.prompt("What does the note say?")
        said = [each for each in seat.context_messages if isinstance(each, (AssistantMessage, ToolResultMessage))]
    return said, [json.loads(request.body) for request in server.requests]


async def test_a_model_reads_a_file_and_gets_back_the_items_it_gave(tmp_path: Path) -> None:
    said, bodies = await _asked(tmp_path, _reply(*_done(REASONING, CALL)), _reply(*_done(TEXT)))

    assert [text_of(each.content) for each in said] == ["", "hello", "It says hello."]
    assert bodies[1]["input"][2:] == [
        REASONING,
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read", "arguments": '{"path":"note.txt"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "hello"},
    ]
    assert bodies[1]["input"][:2] == bodies[0]["input"]


async def test_call_that_never_came_whole_does_not_run(tmp_path: Path) -> None:
    """WIRE-95."""
    announced = {"type": "response.output_item.added", "output_index": 0, "item": CALL}

    said, bodies = await _asked(tmp_path, _reply(announced))

    (answer,) = said
    assert isinstance(answer, AssistantMessage)
    assert answer.error_message == "OpenAI Responses stream completed with an unfinished tool call: read (c1|fc_1)"
    assert len(bodies) == 1
