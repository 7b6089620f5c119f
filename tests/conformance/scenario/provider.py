"""The scripted provider of a scenario: replies as live steps of the kit's scripted provider (README.md sections 2.1, 2.2)."""

from collections.abc import Mapping
from typing import Any, Final

import attrs
import trio

from camshaft.actors.api import Emit, ModelRequest, Signal
from camshaft.extensions_std.providers.scripted import RequestAborted, ScriptedProvider
from camshaft.kernel.codec import dumps
from camshaft.kernel.messages import ToolCall, Usage
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import freeze
from camshaft.kernel.stream import (
    Ended,
    Started,
    TextDelta,
    TextEnded,
    TextStarted,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingStarted,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from tests.conformance.scenario.actions import perform
from tests.conformance.scenario.stage import Place, Stage
from tests.conformance.scenario.wire_paths import wire

PAUSE_S: Final = 0.003
"""Before each stream event, so that consumers are done with the one before and clock times differ."""

NAME: Final = "scripted"

Reply = Mapping[str, Any]


def models_of(scenario: Mapping[str, Any], *, provider: str = NAME, api: str = NAME, **fields: Any) -> tuple[Model, ...]:
    """The models a scenario lists."""
    return tuple([_model(listed, provider, api, fields) for listed in scenario.get("models") or [{"id": "m1"}]])


@attrs.define(eq=False, kw_only=True)
class Replies:
    """Records each request, then lets the kit's provider play the next reply."""

    stage: Stage
    models: tuple[Model, ...]
    name: str = NAME
    api: str = NAME
    _kit: ScriptedProvider = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._kit = ScriptedProvider(name=NAME, api=NAME, models=self.models, pause_s=PAUSE_S)

    def configured(self) -> bool:
        """Always: replies need no credentials."""
        return True

    async def stream(self, request: ModelRequest, signal: Signal, emit: Emit) -> None:
        """Plays the next reply; an error without a start when none is left."""
        self.stage.recorder.request(
            {
                "model": request.model.reference,
                "thinkingLevel": request.thinking_level,
                "messages": wire(tuple(request.messages)),
            }
        )
        if self.stage.replies:
            reply = self.stage.replies.pop(0)
            self._kit.usage = usage_of(reply)
            self._kit.append_responses([self._step(reply)])
        await self._kit.stream(request, signal, emit)

    def _step(self, reply: Reply) -> Any:
        async def play(_request: ModelRequest, signal: Signal, emit: Emit) -> None:
            await _play(Playing(stage=self.stage, reply=reply, signal=signal, emit=emit))

        return play


@attrs.frozen(kw_only=True)
class Playing:
    """One reply on its way."""

    stage: Stage
    reply: Reply
    signal: Signal
    emit: Emit
    """Pauses, looks at the signal, sends. Raises RequestAborted."""

    @property
    def place(self) -> Place:
        """Where actions of the reply run."""
        return Place(stage=self.stage, head={"ch": "provider"})

    async def until_aborted(self) -> None:
        """Waits for the abort, then ends the reply."""
        await self.signal.wait()
        raise RequestAborted


def usage_of(reply: Reply) -> Usage:
    """The scripted usage of a reply."""
    given = {"input": 100, "output": 10, "cacheRead": 0, "cacheWrite": 0, **(reply.get("usage") or {})}
    total = given["input"] + given["output"] + given["cacheRead"] + given["cacheWrite"]
    return Usage(
        input=given["input"],
        output=given["output"],
        cache_read=given["cacheRead"],
        cache_write=given["cacheWrite"],
        total_tokens=given.get("totalTokens", total),
    )


async def _play(playing: Playing) -> None:
    reply, usage = playing.reply, usage_of(playing.reply)
    await perform(playing.place, reply.get("before") or ())
    await trio.sleep(reply.get("delayMs", 0) / 1000)
    if "throw" in reply:
        await playing.emit(Ended(stop_reason="error", error_message=reply["throw"], usage=usage))
        return
    if reply.get("hang") == "before":
        await playing.until_aborted()
    if not reply.get("noStart"):
        await playing.emit(Started(usage=usage))
    for index, block in enumerate(blocks_of(reply)):
        await _send_block(playing, index, block)
    if reply.get("hang") == "after":
        await playing.until_aborted()
    handle = freeze(reply["deferred"]) if "deferred" in reply else None
    await playing.emit(Ended(stop_reason=stop_reason_of(reply), error_message=reply.get("errorMessage"), usage=usage, deferred=handle))


def blocks_of(reply: Reply) -> list[Mapping[str, Any]]:
    """The content blocks of a reply."""
    if "text" in reply:
        return [{"type": "text", "text": reply["text"], **({"chunks": reply["chunks"]} if "chunks" in reply else {})}]
    return list(reply.get("content") or ())


def stop_reason_of(reply: Reply) -> str:
    """The scripted stop reason, or what the reply implies."""
    if "stopReason" in reply:
        return str(reply["stopReason"])
    if reply.get("errorMessage") is not None:
        return "error"
    return "toolUse" if any(block["type"] == "toolCall" for block in blocks_of(reply)) else "stop"


async def _send_block(playing: Playing, index: int, block: Mapping[str, Any]) -> None:
    match block["type"]:
        case "text":
            await playing.emit(TextStarted(index=index))
            await _send_chunks(playing, index, block.get("chunks", [block["text"]]), TextDelta)
            await playing.emit(TextEnded(index=index))
        case "thinking":
            await playing.emit(ThinkingStarted(index=index))
            await _send_chunks(playing, index, block.get("chunks", [block["thinking"]]), ThinkingDelta)
            await playing.emit(ThinkingEnded(index=index))
        case "toolCall":
            arguments = freeze(block.get("arguments") or {})
            call = ToolCall(id=block["id"], name=block["name"], arguments=arguments, arguments_error=block.get("argumentsError"))
            await playing.emit(ToolCallStarted(index=index, id=call.id, name=call.name))
            await playing.emit(ToolCallDelta(index=index, delta=dumps(arguments).decode()))
            await playing.emit(ToolCallEnded(index=index, tool_call=call))
        case other:
            raise ValueError(f"unknown block type {other!r} in a reply")


async def _send_chunks(playing: Playing, index: int, chunks: list[Any], delta: type[TextDelta] | type[ThinkingDelta]) -> None:
    for chunk in chunks:
        if isinstance(chunk, str):
            await playing.emit(delta(index=index, delta=chunk))
            continue
        await perform(playing.place, chunk.get("actions") or ())
        if chunk.get("hang"):
            await playing.until_aborted()


def _model(listed: Mapping[str, Any], provider: str, api: str, fields: Mapping[str, Any]) -> Model:
    return Model(
        id=listed["id"],
        provider=provider,
        api=api,
        input=("text", "image"),
        reasoning=listed.get("reasoning", False),
        context_window=listed.get("contextWindow", 200_000),
        max_tokens=listed.get("maxTokens", 8000),
        thinking_level_map=freeze(listed.get("thinkingLevelMap") or {}),
        **fields,
    )
