"""Whether it pays to keep a provider's prompt cache warm (CACHE-7)."""

from collections.abc import Mapping
from typing import Final, Literal

from camshaft.kernel import shapes
from camshaft.kernel.entries import MessageEntry
from camshaft.kernel.kinds import ASSISTANT
from camshaft.kernel.messages import NO_USAGE, AssistantMessage, Usage
from camshaft.kernel.models import Rates, cost_of
from camshaft.kernel.projection import Projection
from camshaft.kernel.session_events import CacheWarmingDecisionEvent

Phase = Literal["streaming", "idle"]
"""During a run, or between runs."""
Action = Literal["warm", "stop"]

PROBABILITIES: Final[Mapping[Phase, float]] = {"streaming": 1.0, "idle": 0.15}
"""How likely there is another request before the refreshed entry expires (CACHE-7)."""
SAVINGS_MIN_USD: Final = 0.05
"""Expected savings below this are not worth a request."""


@shapes.frozen(kw_only=True)
class WarmingForecast:
    """Whether a refresh pays (CACHE-7). USD."""

    phase: Phase
    warm_cost: float
    """Of the refresh."""
    miss_cost: float
    """What the next request costs more without the cache; at least 0."""
    continuation_probability: float
    """Of a next request in time, from 0 to 1."""
    expected_savings: float
    economics_available: bool
    """False: there is no answer yet to estimate from, or no price."""
    action: Action
    """What the figures propose; extensions may overrule it."""

    @property
    def event(self) -> CacheWarmingDecisionEvent:
        """What extensions are asked."""
        return CacheWarmingDecisionEvent(
            warm_cost=self.warm_cost,
            miss_cost=self.miss_cost,
            continuation_probability=self.continuation_probability,
            action=self.action,
        )


def forecast(rates: Rates, usage: Usage, phase: Phase) -> WarmingForecast:
    """What the figures propose; `usage` is that of the last answer, whose prompt the next one is likely to begin with."""
    prompt = usage.input + usage.cache_read + usage.cache_write
    hit = cost_of(rates, Usage(cache_read=prompt)).total
    miss = cost_of(rates, Usage(cache_write=prompt)).total or cost_of(rates, Usage(input=prompt)).total
    warm_cost = cost_of(rates, Usage(cache_read=prompt, output=1)).total
    miss_cost, probability = max(0.0, miss - hit), PROBABILITIES[phase]
    savings = probability * miss_cost - warm_cost
    available = bool(hit or miss)
    return WarmingForecast(
        phase=phase,
        warm_cost=warm_cost,
        miss_cost=miss_cost,
        continuation_probability=probability,
        expected_savings=savings,
        economics_available=available,
        action="warm" if available and savings >= SAVINGS_MIN_USD else "stop",
    )


def last_usage(transcript: Projection) -> Usage:
    """Of the last answer of the branch, whatever became of it; zero without one. O(entries since)."""
    for index in range(transcript.length - 1, -1, -1):
        position = transcript.path[index]
        if transcript.tree.kind(position) == ASSISTANT:
            entry = transcript.tree.entry(position)
            if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
                return entry.message.usage
    return NO_USAGE
