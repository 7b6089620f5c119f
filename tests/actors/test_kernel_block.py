"""How the kernel is entered: one right way, and what every wrong one is told; and what stays readable of a conversation."""

import asyncio
from typing import Any

import pytest
import trio

from camshaft.actors.event_stream import DIAGNOSTICS_KEPT_MAX
from camshaft.actors.host import DiagnosticEvent, KernelMisuse, open_kernel
from camshaft.extensions_std.providers.scripted import assistant
from tests.actors.running import opened, simulate, virtual_world


def test_a_plain_with_is_told_how_to_enter() -> None:
    with pytest.raises(KernelMisuse, match=r"entered with a plain 'with'; write it as\n\n    async def main"), open_kernel():  # type: ignore[attr-defined]  # the mistake
        raise AssertionError


def test_awaiting_it_is_told_how_to_enter() -> None:
    async def run() -> None:
        await open_kernel()  # type: ignore[misc]  # the mistake

    with pytest.raises(KernelMisuse, match="open_kernel\\(\\) was awaited; write it as"):
        simulate(run)


def test_using_it_as_a_kernel_is_told_how_to_enter() -> None:
    with pytest.raises(AttributeError, match="gives no kernel yet, so there is no 'open'; write it as"):
        open_kernel().open  # type: ignore[attr-defined]  # noqa: B018  # the mistake


def test_entering_it_in_asyncio_is_told_that_it_needs_trio() -> None:
    async def run() -> None:
        async with open_kernel():
            raise AssertionError

    with pytest.raises(KernelMisuse, match=r"outside trio\.run\(\), in asyncio for example; write it as"):
        asyncio.run(run())


def test_entering_it_right_gives_a_kernel_and_what_the_block_raises_comes_out() -> None:
    async def run() -> None:
        async with open_kernel(world=virtual_world()) as kernel:
            raise ValueError(kernel.abandoned)

    with pytest.raises(ValueError, match=r"\(\)"):
        trio.run(run)


def test_the_last_diagnostics_stay_readable_though_nobody_listened() -> None:
    def failing(event: Any) -> None:
        raise KeyError(event.type)

    async def run() -> tuple[DiagnosticEvent, ...]:
        async with opened([assistant("done")]) as running:
            for _ in range(DIAGNOSTICS_KEPT_MAX):
                running.seat.subscribe(lambda _event: 1 / 0)
            running.seat.subscribe(failing)
            await running.seat.prompt("go")
            return running.seat.diagnostics
        raise AssertionError

    kept = simulate(run)

    assert len(kept) == DIAGNOSTICS_KEPT_MAX
    assert kept[-1].message.startswith("a listener failed on agent_start: KeyError: 'agent_start' (")
    assert kept[-1].message.endswith(f"{__file__}, line {failing.__code__.co_firstlineno + 1})")
