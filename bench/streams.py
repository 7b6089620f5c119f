"""Many answers at once from a model server in another process: how late an item reaches the listener of its session.

Real sockets, the real adapter of chat completions, one kernel session for each stream; this process
keeps to one core, and the server to another if there is one.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import trio

from bench import kernels
from camshaft.actors.api import Model
from camshaft.actors.host import open_kernel
from camshaft.actors.world import real_world
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from camshaft.extensions_std.providers.wire_provider import WireProvider

SLACK_S: Final = 60.0
"""Longest time beyond that of the streams; then it is over with an error."""


async def measure(folder: Path, streams: int, rate: float, seconds: float) -> dict[str, Any]:
    """Delays in ms from the server's write to the listener's call, over all items of all streams. Raises ItemsLost."""
    items = round(rate * seconds)
    late_ns: list[int] = []

    def listener() -> Callable[[Any], None]:
        def listen(event: Any) -> None:
            if event.type == "message_update" and event.assistant_message_event.type == "text_delta":
                late_ns.append(time.monotonic_ns() - int(event.assistant_message_event.delta))

        return listen

    with _server(streams, rate, items) as port:
        world = real_world({})
        async with open_kernel(world=world) as kernel:
            await kernels.warm_up(kernel, folder)
            model = Model(id="m", provider="local", api="openai-completions", base_url=f"http://127.0.0.1:{port}/v1")
            provider = WireProvider(name="local", apis=WIRE_APIS, models=(model,), http=world.http)
            seats = [await kernel.open(kernels.options(folder, provider, model="local/m")) for _ in range(streams)]
            for seat in seats:
                seat.subscribe(listener())
            begun, spent, waited = time.perf_counter(), time.process_time(), _waited_s()
            with trio.fail_after(seconds + SLACK_S):
                async with trio.open_nursery() as nursery:
                    for seat in seats:
                        nursery.start_soon(seat.prompt, "go")
            whole_s, busy_s, taken_s = time.perf_counter() - begun, time.process_time() - spent, _waited_s() - waited
    kept = sum([in_order(seat.context_messages[-1]) for seat in seats])
    if not len(late_ns) == kept == streams * items:
        raise ItemsLost(f"of {streams * items} items {len(late_ns)} reached a listener, and {kept} stand in the messages in their order")
    delays = statistics.quantiles(late_ns, n=1000)
    return {
        "p99_ms": delays[989] / 1e6,
        "p50_ms": delays[499] / 1e6,
        "max_ms": max(late_ns) / 1e6,
        "items": kept,
        "cpu_percent": 100 * busy_s / whole_s,
        "taken_percent": 100 * taken_s / whole_s,
        "us_per_item": 1e6 * busy_s / kept,
    }


def _waited_s() -> float:
    """How long this process could have run so far, while others had its core."""
    return int(Path("/proc/self/schedstat").read_text(encoding="ascii").split()[1]) / 1e9


class ItemsLost(Exception):
    """An item was not delivered: there is nothing to measure."""


def in_order(message: Any) -> int:
    """Items in a final message, each of which was a time; those out of order do not count."""
    times = [int(word) for block in message.content for word in block.text.split()]
    return sum([earlier < later for earlier, later in pairwise([0, *times])])


@contextmanager
def _server(streams: int, rate: float, items: int) -> Iterator[int]:
    """Its port."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[-1:])
    command = [sys.executable, "-m", "bench.stream_server", str(streams), str(rate), str(items)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        os.sched_setaffinity(0, cores[:1])
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()
            os.sched_setaffinity(0, cores)
