"""What answers cost: rates, tiers of size, long-lived cache writes, tiers of service."""

import pytest

from camshaft.kernel.messages import Cost, Usage
from camshaft.kernel.models import Rates, Tier, at_tier, cost_of

RATES = Rates(input=1, output=5, cache_read=0.1, cache_write=1.25)


@pytest.mark.rule("MOD-10", "MOD-13")
def test_each_kind_of_token_has_its_rate_and_reasoning_is_output() -> None:
    used = Usage(input=1_000_000, output=2_000_000, cache_read=3_000_000, cache_write=4_000_000, reasoning=500_000)

    found = cost_of(RATES, used)

    assert [found.input, found.output, found.cache_read, found.cache_write] == pytest.approx([1, 10, 0.3, 5])
    assert found.total == pytest.approx(16.3)
    assert found.total_from_provider is False


@pytest.mark.rule("MOD-11")
@pytest.mark.parametrize(("prompt", "cost"), [(1000, 1000), (1001, 2002), (2001, 6003)])
def test_the_highest_tier_that_the_prompt_exceeds_gives_all_rates(prompt: int, cost: int) -> None:
    high = Tier(input_tokens_above=2000, input=3, output=0, cache_read=3, cache_write=3)
    low = Tier(input_tokens_above=1000, input=2, output=0, cache_read=2, cache_write=2)

    found = cost_of(
        Rates(input=1, cache_read=1, cache_write=1, tiers=(high, low)), Usage(input=prompt - 300, cache_read=200, cache_write=100)
    )

    assert found.total * 1e6 == pytest.approx(cost)


@pytest.mark.rule("MOD-12")
def test_long_lived_cache_writes_cost_twice_the_input_rate() -> None:
    assert cost_of(RATES, Usage(cache_write=20, cache_write1h=8)).cache_write * 1e6 == pytest.approx(31)


@pytest.mark.rule("MOD-15")
@pytest.mark.parametrize(
    ("tier", "model", "factor"),
    [
        ("flex", "gpt-5.5", 0.5),
        ("priority", "gpt-5", 2),
        ("fast", "gpt-5", 2),
        ("priority", "gpt-5.5", 2.5),
        ("fast", "gpt-5.5", 2.5),
        ("default", "gpt-5.5", 1),
        ("auto", "gpt-5", 1),
        (None, "gpt-5.5", 1),
    ],
)
def test_the_tier_of_service_multiplies_every_part_of_the_cost(tier: str | None, model: str, factor: float) -> None:
    cost = Cost(input=1, output=2, cache_read=4, cache_write=8, total=100, total_from_provider=False)

    found = at_tier(cost, tier, model)

    parts = (found.input, found.output, found.cache_read, found.cache_write, found.total)
    assert parts == (factor, 2 * factor, 4 * factor, 8 * factor, 15 * factor)
    assert found.total_from_provider is False
