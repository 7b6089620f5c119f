"""Conversations with a model whose prompts stay cached for five minutes and are worth keeping."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio

from camshaft.extensions_std.providers.scripted import ScriptedProvider, assistant, faux_model
from camshaft.kernel.messages import Cost, Usage
from camshaft.kernel.models import Rates
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.settings import CompactionSettings
from tests.actors.running import NO_RETRY, Running, opened, simulate

MODEL = faux_model(
    cost=Rates(input=3, output=15, cache_read=0.3, cache_write=3.75),
    context_window=2_000_000,
    prompt_cache=FrozenDict({"short": 300, "long": 3600}),
)
LARGE = Usage(input=500_000, output=10, total_tokens=500_010)
"""Of an answer whose prompt is worth warming while idle."""
SMALL = Usage(input=10, output=10, total_tokens=20)
READ = Usage(cache_read=500_000, output=1, total_tokens=500_001, cost=Cost(cache_read=0.15, total=0.15))
"""Of a replay."""
REPLAY = assistant("x", usage=READ, stop_reason="length")


def answer(text: str = "one", usage: Usage = LARGE, **more: Any) -> Any:
    return assistant(text, usage=usage, **more)


@asynccontextmanager
async def warmed(responses: Sequence[Any], *setups: Any, model: Any = MODEL, mode: Any = "idle", **more: Any) -> AsyncIterator[Running]:
    """Such a conversation; after the `responses` come replays without end."""
    provider = ScriptedProvider(chunked=False, models=(model, faux_model("other")))
    settings = attrs.evolve(NO_RETRY, cache_warming=mode, compaction=CompactionSettings(enabled=False, keep_recent_tokens=1))
    script = [*responses, *[REPLAY] * 30]
    async with opened(script, *setups, **{"provider": provider, "model": model.reference, "settings": settings, **more}) as running:
        yield running


def replays(running: Running) -> list[float]:
    """When replays were made, whole seconds since the first request."""
    begun = running.provider.requests[0].at_s
    return [round(each.at_s - begun) for each in running.provider.requests if each.options.max_tokens == 1]


def stored(running: Running) -> list[Any]:
    """The usage entries of the session."""
    return [entry for entry in running.seat.state.tree.entries() if entry.type == "usage"]


def reason(running: Running) -> str | None:
    return running.seat.cache_warming.reason


def tasks() -> int:
    return trio.lowlevel.current_statistics().tasks_living


def after(seconds: float, *responses: Any, look: Callable[[Running], Any], setups: tuple[Any, ...] = (), **more: Any) -> Any:
    """What `look` sees so many seconds after a first prompt."""

    async def whole() -> Any:
        async with warmed(responses or [answer()], *setups, **more) as running:
            await running.seat.prompt("go")
            await trio.sleep(seconds)
            return look(running)
        raise AssertionError

    return simulate(whole)
