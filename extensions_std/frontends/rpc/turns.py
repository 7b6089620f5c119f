"""Work that others wait for only until it has to wait itself.

Trio says nothing about which of two new tasks runs first. Commands have an order, so each is run as far as it goes
without waiting before the next one is begun (RPC-7, RPC-21).
"""

import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


@types.coroutine
def until_it_waits(work: Coroutine[Any, Any, T], waits: Callable[[], object]) -> Generator[Any, Any, T]:
    """What `work` gives; `waits` is called once: when it waits for the first time, or is over without that."""
    is_told = False
    sent: Any = None
    try:
        while True:
            wish = work.send(sent)
            if not is_told:
                is_told = True
                waits()
            sent = yield wish
    except StopIteration as ended:
        result: T = ended.value
    if not is_told:
        waits()
    return result
