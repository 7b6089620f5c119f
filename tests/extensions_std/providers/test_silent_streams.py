"""A server that keeps the connection but gives no more content: ends within a bound, over every wire API (field fault A22)."""

import json
from collections.abc import Mapping
from typing import Any, Final

import attrs
import pytest
import trio
from trio.testing import MockClock

from camshaft.actors.api import Model, RequestOptions
from camshaft.extensions_std.providers.credentials import Auth
from camshaft.extensions_std.providers.transport import TransportLimits
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from camshaft.extensions_std.providers.wire_provider import WireProvider
from camshaft.kernel.messages import text_of
from camshaft.kernel.retries import is_retryable_text
from tests.extensions_std.providers.asking import Asked, AskSignal, FakeHttp, FakeResponse, Wait, ask

pytestmark = pytest.mark.rule("A22", "STR-30", "STR-33", "WIRE-29")


def _data(event: Mapping[str, Any], name: str = "") -> bytes:
    named = f"event: {name}\n" if name else ""
    return f"{named}data: {json.dumps(event)}\n\n".encode()


@attrs.frozen(kw_only=True)
class Spoken:
    """How an API says the pieces of a stream; no event of it is the last one of a block."""

    opening: bytes
    more: bytes
    """Adds `x` to the text."""
    closing: bytes
    alive: bytes
    """Says that the server is there, and nothing else."""


def _typed(event: dict[str, Any]) -> bytes:
    return _data(event, event["type"])


ITEM: Final = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
SPOKEN: Final[Mapping[str, Spoken]] = {
    "openai-completions": Spoken(
        opening=_data({"id": "r", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}),
        more=_data({"id": "r", "choices": [{"index": 0, "delta": {"content": "x"}}]}),
        closing=_data({"id": "r", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + b"data: [DONE]\n\n",
        alive=b": keep-alive\n\n",
    ),
    "anthropic-messages": Spoken(
        opening=_typed(
            {"type": "message_start", "message": {"id": "m", "model": "m", "content": [], "usage": {"input_tokens": 3, "output_tokens": 1}}}
        )
        + _typed({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        more=_typed({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}),
        closing=_typed({"type": "content_block_stop", "index": 0})
        + _typed({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}})
        + _typed({"type": "message_stop"}),
        alive=_typed({"type": "ping"}),
    ),
    "openai-responses": Spoken(
        opening=_typed({"type": "response.created", "response": {"id": "r"}})
        + _typed({"type": "response.output_item.added", "output_index": 0, "item": ITEM})
        + _typed(
            {"type": "response.content_part.added", "output_index": 0, "content_index": 0, "part": {"type": "output_text", "text": ""}}
        ),
        more=_typed({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "x"}),
        closing=_typed(
            {"type": "response.output_item.done", "output_index": 0, "item": {**ITEM, "content": [{"type": "output_text", "text": "xxx"}]}}
        )
        + _typed(
            {
                "type": "response.completed",
                "response": {"id": "r", "status": "completed", "usage": {"input_tokens": 3, "output_tokens": 3, "total_tokens": 6}},
            }
        ),
        alive=b": keep-alive\n\n",
    ),
}
EVERY_API: Final = pytest.mark.parametrize("api", WIRE_APIS)
LIMIT_S: Final = TransportLimits().progress_timeout_s
STALLED: Final = f"Request timed out.: no content for {LIMIT_S:g} s, though the server kept the connection open"


def _provider(api: str, *body: bytes | Wait) -> WireProvider:
    model = Model(id="m", provider="local", api=api, base_url="http://model.test")

    async def resolve(_model: Model, _options: RequestOptions) -> Auth:
        return Auth(api_key="key")

    return WireProvider(name="local", apis=WIRE_APIS, models=(model,), http=FakeHttp([FakeResponse(body=body)]), resolve=resolve)


def _told(asked: Asked) -> tuple[str, str | None, str]:
    assert asked.message is not None
    return asked.message.stop_reason, asked.message.error_message, text_of(asked.message.content)


def test_every_api_is_tried() -> None:
    assert SPOKEN.keys() >= WIRE_APIS.keys()


@EVERY_API
async def test_signs_of_life_without_content_end_as_an_error_that_is_retried(autojump_clock: MockClock, api: str) -> None:
    spoken = SPOKEN[api]
    for_ever = [piece for _ in range(3600) for piece in (Wait(1), spoken.alive)]

    asked = await ask(_provider(api, spoken.opening, *[spoken.more] * 3, *for_ever))

    assert _told(asked) == ("error", STALLED, "xxx")
    assert is_retryable_text(STALLED)
    assert LIMIT_S is not None
    assert trio.current_time() == pytest.approx(LIMIT_S, abs=1)


@EVERY_API
async def test_total_silence_ends_as_well(autojump_clock: MockClock, api: str) -> None:
    spoken = SPOKEN[api]

    asked = await ask(_provider(api, spoken.opening, *[spoken.more] * 3, Wait(10_000)))

    assert _told(asked) == ("error", STALLED, "xxx")


@EVERY_API
async def test_a_piece_every_two_minutes_is_an_answer(autojump_clock: MockClock, api: str) -> None:
    spoken = SPOKEN[api]
    slowly = [piece for _ in range(3) for piece in (Wait(120), spoken.alive, spoken.more)]

    asked = await ask(_provider(api, spoken.opening, *slowly, Wait(120), spoken.closing))

    assert _told(asked) == ("stop", None, "xxx")


@EVERY_API
@pytest.mark.parametrize("abort_at_s", [0, 0.5, 1, 100.5, 299])
async def test_an_abort_ends_it_at_once_whenever_it_comes(autojump_clock: MockClock, api: str, abort_at_s: float) -> None:
    spoken, signal = SPOKEN[api], AskSignal()
    for_ever = [piece for _ in range(3600) for piece in (Wait(1), spoken.alive)]
    found: list[Asked] = []

    async def run() -> None:
        found.append(await ask(_provider(api, spoken.opening, spoken.more, *for_ever), signal=signal))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await trio.sleep(abort_at_s)
        signal.abort()

    assert _told(found[0]) == ("aborted", "Request was aborted", "x" if abort_at_s else _told(found[0])[2])
    assert trio.current_time() == pytest.approx(abort_at_s)
