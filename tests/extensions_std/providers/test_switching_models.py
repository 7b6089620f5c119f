"""A life of a session that goes from model to model, over all wire APIs, and through everything that goes wrong.

Real files and real sockets. Each seed is another life: prompts to models in turn, with thinking, parallel calls,
images, refusals, broken and aborted answers, compactions, and the session opened again in between. Every request has to
be one that its server takes, what one API has no use for stays in the session, and comes back when its model does.
"""

import base64
import json
import random
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
import trio

from camshaft.actors.host import CompactionFailed, Kernel, OpenOptions, OpenSession, Seat, open_kernel
from camshaft.actors.world import real_world
from camshaft.extensions_std.providers.models_json import load_providers
from camshaft.extensions_std.providers.scripted import assistant, text, thinking, tool_call
from camshaft.extensions_std.providers.scripted_wire import wire_stream
from camshaft.extensions_std.tools import builtin_tools
from camshaft.kernel.entries import MessageEntry
from camshaft.kernel.messages import AssistantMessage, TextBlock, ThinkingBlock, ToolCall, ToolResultMessage
from camshaft.kernel.models import Model
from camshaft.kernel.settings import CompactionSettings, RetrySettings, Settings
from tests.extensions_std.providers.request_rules import faults
from tests.extensions_std.providers.sse_server import Received, Reply, ScriptedServer, Silence, scripted_server
from tests.extensions_std.providers.test_random_requests import sdk_faults

PATHS: Final = {
    "/v1/messages?beta=true": "anthropic-messages",
    "/v1/chat/completions": "openai-completions",
    "/v1/responses": "openai-responses",
}
MODELS: Final = ("claude/c", "chat/g", "resp/r")
PIXEL: Final = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")
SETTINGS: Final = Settings(
    retry=RetrySettings(enabled=False),
    compaction=CompactionSettings(enabled=False, keep_recent_tokens=20),
    default_thinking_level="medium",
)
STEPS: Final = 10
LIMIT_S: Final = 30.0


@attrs.define(eq=False)
class Life:
    """One session, and the servers of its models."""

    chance: random.Random
    folder: Path
    sent: list[AssistantMessage] = attrs.field(factory=list)
    """Whole answers, as their servers meant them."""
    planned: list[Reply] = attrs.field(factory=list)
    requests: list[tuple[str, bytes]] = attrs.field(factory=list)
    seat: Seat | None = None

    def reply(self, request: Received) -> Reply:
        """What is planned next; a summary if nothing is."""
        api = PATHS[request.path]
        self.requests.append((api, request.body))
        if self.planned:
            return self.planned.pop(0)
        return Reply(body=(wire_stream(api, assistant("What was said so far.")),))

    def streamed(self, api: str, message: AssistantMessage) -> Reply:
        """A whole answer."""
        self.sent.append(message)
        return Reply(body=(wire_stream(api, message),))

    def working(self, api: str) -> list[Reply]:
        """An answer that thinks and calls tools, and one after it."""
        number = len(self.sent)
        calls = [
            tool_call("read", {"path": self.chance.choice(("note.txt", "pixel.png", "absent.txt"))}, id=f"call_{number}_{which}")
            for which in range(self.chance.choice((1, 2, 3)))
        ]
        signature = {"anthropic-messages": f"sig{number}", "openai-completions": "reasoning_content"}.get(api, "its item")
        content: list[Any] = [thinking(f"thought {number}", signature=signature), text(f"Look {number}."), *calls]
        return [self.streamed(api, assistant(content, stop_reason="toolUse")), self.streamed(api, assistant(f"Done {number}."))]

    async def talk(self, said: str) -> None:
        """A prompt and a plain answer."""
        assert self.seat is not None and self.seat.model is not None
        self.planned = [self.streamed(self.seat.model.api, assistant(f"Well {len(self.sent)}."))]
        await self.seat.prompt(said)

    async def step(self) -> None:
        """One thing happens."""
        assert self.seat is not None
        seat, what = self.seat, self.chance.choice(("work", "work", "work", "talk", "refused", "cut", "abort", "compact"))
        assert await seat.set_model(self.chance.choice(MODELS))
        assert seat.model is not None
        api = seat.model.api
        match what:
            case "work":
                self.planned = self.working(api)
                await seat.prompt("work")
            case "talk":
                await self.talk("talk")
            case "refused":
                self.planned = [Reply(status=500, headers=(("content-type", "application/json"),), body=(b'{"error": {"message": "no"}}',))]
                await seat.prompt("be refused")
            case "cut":
                whole = self.working(api)[0].body[0]
                assert isinstance(whole, bytes)
                del self.sent[-2:]
                self.planned = [Reply(body=(whole[: self.chance.randrange(len(whole))],), end="cut")]
                await seat.prompt("be cut off")
            case "abort":
                whole = self.working(api)[0].body[0]
                assert isinstance(whole, bytes)
                del self.sent[-2:]
                self.planned = [Reply(body=(whole[: self.chance.randrange(len(whole) // 2)], Silence()))]
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(seat.prompt, "be aborted")
                    await trio.sleep(0.05)  # real time: the server is a real socket
                    await seat.abort()
            case "compact":
                try:
                    await seat.compact()
                except CompactionFailed:
                    pass
        self.planned = []


@asynccontextmanager
async def conversation(life: Life, server: ScriptedServer) -> AsyncGenerator[Kernel, None]:
    """The session opened, as another process would."""
    providers = {
        "claude": {"baseUrl": server.base_url, "api": "anthropic-messages", "models": [model("c")]},
        "chat": {"baseUrl": f"{server.base_url}/v1", "api": "openai-completions", "models": [model("g")]},
        "resp": {"baseUrl": f"{server.base_url}/v1", "api": "openai-responses", "models": [model("r")]},
    }
    keyed = {name: {**each, "apiKey": "key-0123456789"} for name, each in providers.items()}
    (life.folder / "models.json").write_text(json.dumps({"providers": keyed}), "utf-8")
    world = real_world({})
    async with open_kernel(world=world) as kernel:
        loaded = load_providers(life.folder, world.environment, world)
        options = OpenOptions(
            cwd=str(life.folder),
            session=OpenSession(path=str(life.folder / "session.jsonl")),
            providers=loaded,
            builtin_tools=builtin_tools(),
            model=MODELS[0] if life.seat is None else None,
            settings=SETTINGS,
            override_cwd=True,
        )
        life.seat = await kernel.open(options)
        yield kernel


def model(model_id: str) -> dict[str, Any]:
    """An entry of models.json."""
    return {"id": model_id, "reasoning": True, "input": ["text", "image"]}


@attrs.frozen
class Lived:
    """What is left of a life."""

    life: Life
    stored: list[Any]
    """The messages in the session."""
    context: list[Any]
    """Those that a model sees."""
    models: dict[str, Model]
    """By api."""


async def live(seed: int, folder: Path) -> Lived:
    """A whole life, with a goodbye to each model."""
    (folder / "note.txt").write_text("hello", "utf-8")
    (folder / "pixel.png").write_bytes(PIXEL)
    life = Life(chance=random.Random(seed), folder=folder)
    async with scripted_server(choose=life.reply) as server:
        done = 0
        while done < STEPS:
            async with conversation(life, server):
                for _ in range(life.chance.randrange(2, 6)):
                    await life.step()
                    done += 1
        async with conversation(life, server):
            assert life.seat is not None
            for reference in MODELS:
                assert await life.seat.set_model(reference)
                await life.talk("goodbye")
            entries = list(life.seat.state.tree.entries())
            stored = [entry.message for entry in entries if isinstance(entry, MessageEntry)]
            models = {each.api: each for provider in life.seat.providers for each in provider.models}
            return Lived(life, stored, list(life.seat.context_messages), models)
    raise AssertionError


@pytest.mark.slow
@pytest.mark.rule("WIRE-13", "WIRE-16", "WIRE-17", "WIRE-18", "WIRE-19", "STR-30")
@pytest.mark.parametrize("seed", range(12))
def test_a_session_that_goes_from_model_to_model_loses_nothing_and_is_understood_everywhere(seed: int, tmp_path: Path) -> None:
    async def bounded() -> Lived:
        with trio.fail_after(LIMIT_S):
            return await live(seed, tmp_path)
        raise AssertionError

    lived = trio.run(bounded)

    sent, models = lived.life.requests, lived.models
    wrong = [(api, fault) for api, body in sent for fault in (*faults(body, models[api]), *sdk_faults(body, models[api]))]
    assert wrong == []
    whole = [each for each in lived.stored if isinstance(each, AssistantMessage) and each.stop_reason in ("stop", "toolUse")]
    assert list(map(shown, whole)) == list(map(shown, lived.life.sent))
    calls = [call.id for each in whole if each.stop_reason == "toolUse" for call in each.tool_calls]
    assert [each.tool_call_id for each in lived.stored if isinstance(each, ToolResultMessage)] == calls
    for api, body in sent[-len(MODELS) :]:
        assert thoughts_in(body) == {thought for each in lived.context for thought in thoughts_of(each, api)}


def shown(message: AssistantMessage) -> list[tuple[str, ...]]:
    """What an answer says, and what of its thoughts is signed."""
    done: list[tuple[str, ...]] = []
    for block in message.content:
        match block:
            case ThinkingBlock():
                done.append((block.thinking, "signed" if block.thinking_signature else "not signed"))
            case TextBlock():
                done.append((block.text,))
            case ToolCall():
                done.append((block.name, str(dict(block.arguments))))
    return done


def thoughts_in(body: bytes) -> set[str]:
    """The thoughts that a request repeats."""
    return set(re.findall(r"thought \d+", body.decode()))


def thoughts_of(message: object, api: str) -> list[str]:
    """Those of a good answer that was given over this API."""
    if not isinstance(message, AssistantMessage) or message.api != api or message.stop_reason not in ("stop", "toolUse"):
        return []
    return [block.thinking for block in message.content if isinstance(block, ThinkingBlock)]
