"""Statistics of a session as hosts show them (SES-63, SES-64, RPC-74)."""

from typing import Final

import trio

from camshaft.kernel import shapes
from camshaft.kernel.estimates import ContextUsage, context_usage
from camshaft.kernel.models import Model
from camshaft.kernel.state import SessionState
from camshaft.kernel.statistics import CostGroup, SessionStatistics, Tally

ENTRIES_BETWEEN_CHECKPOINTS: Final = 256
"""A few ms of counting; the loop serves others in between."""


@shapes.frozen(kw_only=True)
class Statistics:
    """What a session consists of, over all its branches, and how full its context is."""

    session_id: str
    session_file: str | None
    """Its path, whether it exists yet or not; None in memory."""
    totals: SessionStatistics
    costs: tuple[CostGroup, ...]
    """By model, dearest first."""
    context_usage: ContextUsage | None
    """None without a model, or if its window is unknown."""


async def statistics_of(state: SessionState, session_file: str | None, limiting: Model | None) -> Statistics:
    """The statistics of a snapshot. O(entries); others run meanwhile, and what they append is not counted.

    `limiting` is the model whose window counts (VM-15).
    """
    counted = Tally()
    for number, entry in enumerate(state.tree.entries()):
        if number % ENTRIES_BETWEEN_CHECKPOINTS == 0:
            await trio.lowlevel.checkpoint()
        counted.add(entry)
    return Statistics(
        session_id=state.header.id,
        session_file=session_file,
        totals=counted.statistics,
        costs=counted.costs,
        context_usage=None if limiting is None else context_usage(state.projection, limiting.context_window),
    )
