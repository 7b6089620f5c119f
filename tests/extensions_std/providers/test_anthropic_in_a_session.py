"""A session with a server of models.json that speaks the Anthropic API: real files, real sockets."""

import json
from pathlib import Path

from camshaft.actors.host import MemorySession, OpenOptions, open_kernel
from camshaft.actors.world import real_world
from camshaft.extensions_std.providers.models_json import load_providers
from camshaft.extensions_std.tools import builtin_tools
from camshaft.kernel.messages import AssistantMessage, ToolResultMessage, text_of
from tests.extensions_std.providers.anthropic_asking import START, STOP, block, delta, end, raw, stop
from tests.extensions_std.providers.sse_server import Reply, scripted_server

THINKS = [
    block(0, type="thinking", thinking=""),
    delta(0, type="thinking_delta", thinking="Read it."),
    delta(0, type="signature_delta", signature="sig"),
    stop(0),
]
READS = [
    block(1, type="tool_use", id="t1", name="read", input={}),
    delta(1, type="input_json_delta", partial_json='{"path":'),
    delta(1, type="input_json_delta", partial_json='"note.txt"}'),
    stop(1),
]
ANSWERS = [block(0, type="text", text=""), delta(0, type="text_delta", text="It says hello."), stop(0)]


async def test_a_model_reads_a_file_and_sees_its_result_and_its_own_thinking(tmp_path: Path) -> None:
    replies = (Reply(body=(raw(START, *THINKS, *READS, end("tool_use"), STOP),)), Reply(body=(raw(START, *ANSWERS, end(), STOP),)))
    world = real_world({"LOCAL_KEY": "canary-key-0123"})

    async with scripted_server(*replies) as server, open_kernel(world=world) as kernel:
        model = {"id": "claude-x", "reasoning": True}
        local = {"baseUrl": server.base_url, "api": "anthropic-messages", "apiKey": "$LOCAL_KEY", "models": [model]}
        (tmp_path / "models.json").write_text(json.dumps({"providers": {"local": local}}))
        (tmp_path / "note.txt").write_text("hello")
        providers = load_providers(tmp_path, world.environment, world)
        opened = OpenOptions(
            cwd=str(tmp_path), session=MemorySession(), providers=providers, builtin_tools=builtin_tools(), model="local/claude-x"
        )
        seat = await kernel.open(opened)
        await seat.prompt("What does the note say?")
        answers = [each for each in seat.context_messages if isinstance(each, (AssistantMessage, ToolResultMessage))]

    bodies = [json.loads(request.body) for request in server.requests]
    assert [text_of(each.content) for each in answers] == ["", "hello", "It says hello."]
    assert [(request.path, request.headers["x-api-key"]) for request in server.requests] == [
        ("/v1/messages?beta=true", "canary-key-0123")
    ] * 2
    assert bodies[1]["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Read it.", "signature": "sig"},
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "note.txt"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "hello", "is_error": False, "cache_control": {"type": "ephemeral"}}
            ],
        },
    ]
    assert "read" in [tool["name"] for tool in bodies[1]["tools"]]
    assert bodies[1]["thinking"]["type"] == "enabled"
