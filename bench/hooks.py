"""What hooks cost: those that nobody handles, and handlers that do nothing.

Measured in pairs, one after the other in one process, because the differences are smaller than what a shared machine
does from one minute to the next. *Bare* is the dispatcher without its look at the handlers: the least there can be.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bench import kernels
from camshaft.actors.extension_host import ExtensionHost
from camshaft.actors.host import Kernel, open_kernel
from camshaft.extensions_std.providers.scripted import assistant

TURNS: Final = 50
ITEMS: Final = 2_000

HANDLED: Final = ("agent_start", "turn_start", "message_start", "message_update", "message_end", "tool_call", "tool_result", "agent_end")


@contextmanager
def _bare() -> Iterator[None]:
    """The dispatcher asks nobody and looks for nobody."""
    has, announce = ExtensionHost.has, ExtensionHost.announce

    async def tell(host: ExtensionHost, event: Any) -> None:
        host.stream.publish(event)

    ExtensionHost.has = lambda _host, _hook: False  # type: ignore[method-assign]  # for as long as the block
    ExtensionHost.announce = tell  # type: ignore[method-assign]  # as above
    try:
        yield
    finally:
        ExtensionHost.has, ExtensionHost.announce = has, announce  # type: ignore[method-assign]  # as they were


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield


def _sync(api: Any) -> None:
    for hook in HANDLED:
        api.on(hook, lambda _event, _ctx: None)


def _async(api: Any) -> None:
    async def handler(_event: Any, _ctx: Any) -> None:
        """Waits for nothing."""

    for hook in HANDLED:
        api.on(hook, handler)


VARIANTS: Final[dict[str, tuple[Any, Callable[[Any], None] | None]]] = {
    "bare": (_bare, None),
    "unhandled": (_as_it_is, None),
    "sync": (_as_it_is, _sync),
    "async": (_as_it_is, _async),
}


async def measure(folder: Path, repeats: int) -> dict[str, float]:
    """Medians of the differences to the variant before: percent of a turn, µs of a stream item."""
    turns: dict[str, list[float]] = {name: [] for name in VARIANTS}
    items: dict[str, list[float]] = {name: [] for name in VARIANTS}
    async with open_kernel() as kernel:
        await kernels.warm_up(kernel, folder)
        for number in range(repeats + 1):
            names = list(VARIANTS) if number % 2 else list(reversed(VARIANTS))
            for name in names:
                variant, setup = VARIANTS[name]
                with variant():
                    turns[name].append(await _turns(kernel, folder, setup))
                    items[name].append(await _items(kernel, folder, setup))
    bare = statistics.median(turns["bare"][1:])
    return {
        "turn_ms": bare * 1000,
        "unhandled_turn_percent": _median(turns, "unhandled", "bare") / bare * 100,
        "item_us": statistics.median(items["bare"][1:]) * 1e6,
        "unhandled_item_us": _median(items, "unhandled", "bare") * 1e6,
        "sync_item_us": _median(items, "sync", "unhandled") * 1e6,
        "async_item_us": _median(items, "async", "unhandled") * 1e6,
    }


def _median(measured: dict[str, list[float]], name: str, beside: str) -> float:
    """Of the differences, pair by pair; the first round warms up."""
    return statistics.median([one - other for one, other in zip(measured[name], measured[beside])][1:])


async def _turns(kernel: Kernel, folder: Path, setup: Callable[[Any], None] | None) -> float:
    """Seconds a turn."""
    steps = [*[kernels.calls(number) for number in range(TURNS)], assistant("done")]
    return await _prompted(kernel, kernels.options(folder, kernels.model_with(steps), setup=setup)) / (TURNS + 1)


async def _items(kernel: Kernel, folder: Path, setup: Callable[[Any], None] | None) -> float:
    """Seconds an item of a stream."""
    return await _prompted(kernel, kernels.options(folder, kernels.Flood(ITEMS), setup=setup)) / ITEMS


async def _prompted(kernel: Kernel, options: Any) -> float:
    seat = await kernel.open(options)
    begun = time.perf_counter()
    await seat.prompt("go")
    ended = time.perf_counter()
    await seat.close()
    return ended - begun
