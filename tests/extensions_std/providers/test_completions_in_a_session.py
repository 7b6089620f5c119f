"""A session with a model server of models.json: real files, real sockets."""

import json
from pathlib import Path
from typing import Any

from camshaft.actors.host import MemorySession, OpenOptions, open_kernel
from camshaft.actors.world import real_world
from camshaft.extensions_std.providers.models_json import load_providers
from camshaft.extensions_std.tools import builtin_tools
from camshaft.kernel.messages import AssistantMessage, ToolResultMessage, text_of
from tests.extensions_std.providers.sse_server import Reply, scripted_server


def _reply(delta: dict[str, Any], finish: str) -> Reply:
    chunk = {"id": "r", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return Reply(body=(f"data: {json.dumps(chunk)}\n\n".encode(), b"data: [DONE]\n\n"))


async def test_a_local_model_reads_a_file_and_sees_its_result(tmp_path: Path) -> None:
    arguments = json.dumps({"path": "note.txt"})
    call = {"index": 0, "id": "c1", "function": {"name": "read", "arguments": arguments}}
    replies = (_reply({"tool_calls": [call]}, "tool_calls"), _reply({"content": "It says hello."}, "stop"))
    world = real_world({"LOCAL_KEY": "canary-key-0123"})

    async with scripted_server(*replies) as server, open_kernel(world=world) as kernel:
        local = {"baseUrl": f"{server.base_url}/v1", "api": "openai-completions", "apiKey": "$LOCAL_KEY", "models": [{"id": "qwen"}]}
        (tmp_path / "models.json").write_text(json.dumps({"providers": {"local": local}}))
        (tmp_path / "note.txt").write_text("hello")
        providers = load_providers(tmp_path, world.environment, world)
        opened = OpenOptions(
            cwd=str(tmp_path), session=MemorySession(), providers=providers, builtin_tools=builtin_tools(), model="local/qwen"
        )
        seat = await kernel.open(opened)
        await seat.prompt("What does the note say?")
        said = [text_of(each.content) for each in seat.context_messages if isinstance(each, (AssistantMessage, ToolResultMessage))]

    bodies = [json.loads(request.body) for request in server.requests]
    assert said == ["", "hello", "It says hello."]
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer canary-key-0123"] * 2
    assert [message["role"] for message in bodies[1]["messages"]] == ["system", "user", "assistant", "tool"]
    assert bodies[1]["messages"][3] == {"role": "tool", "content": "hello", "tool_call_id": "c1"}
    assert "read" in [tool["function"]["name"] for tool in bodies[1]["tools"]]
