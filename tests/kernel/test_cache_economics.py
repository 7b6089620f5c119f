"""Whether it pays to keep a prompt cache warm: the examples of the specification, and prices that are missing or odd."""

from typing import Any

import attrs
import pytest

from camshaft.kernel.cache_economics import forecast, last_usage
from camshaft.kernel.messages import Usage
from camshaft.kernel.models import Rates, Tier
from tests.kernel.made import assistant, edit, label
from tests.kernel.test_cache_warming import LARGE, RATES, TALK, branch

EXAMPLES: list[tuple[Any, int, float, str]] = [
    ("streaming", 10_000, 0.0315, "stop"),
    ("streaming", 20_000, 0.0630, "warm"),
    ("idle", 200_000, 0.0435, "stop"),
    ("idle", 500_000, 0.1087, "warm"),
]


@pytest.mark.rule("CACHE-7")
@pytest.mark.parametrize(("phase", "prompt", "savings", "action"), EXAMPLES)
def test_what_is_saved_decides(phase: Any, prompt: int, savings: float, action: str) -> None:
    found = forecast(RATES, Usage(input=prompt // 2, cache_read=prompt // 4, cache_write=prompt // 4, output=7), phase)

    assert (round(found.expected_savings, 4), found.action) == (savings, action)
    assert found.warm_cost == pytest.approx(prompt * 0.3e-6 + 15e-6)
    assert found.miss_cost == pytest.approx(prompt * 3.45e-6)
    assert found.continuation_probability == (1 if phase == "streaming" else 0.15)


@pytest.mark.rule("CACHE-7")
@pytest.mark.parametrize(
    ("rates", "usage", "is_known", "miss_cost"),
    [
        (attrs.evolve(RATES, cache_write=0), Usage(input=100_000), True, 0.27),
        (Rates(), Usage(input=100_000), False, 0),
        (Rates(output=5), Usage(input=100_000), False, 0),
        (RATES, Usage(output=100), False, 0),
        (Rates(cache_read=5, cache_write=1), Usage(input=100_000), True, 0),
        (attrs.evolve(RATES, tiers=(Tier(input_tokens_above=99_999, input=6, output=30, cache_read=0.6, cache_write=7.5),)),
         Usage(input=100_000), True, 0.69),
    ],
    ids=["no price of writing", "free", "no price of input", "no prompt yet", "reading is dearer", "a large request"],
)  # fmt: skip
def test_prices_that_are_missing_or_odd(rates: Rates, usage: Usage, is_known: bool, miss_cost: float) -> None:
    found = forecast(rates, usage, "streaming")

    assert found.economics_available is is_known
    assert found.miss_cost == pytest.approx(miss_cost)
    assert is_known or found.action == "stop"


def test_the_last_answer_of_the_branch_counts_whatever_became_of_it() -> None:
    failed = assistant("f", "a", usage=Usage(input=3), stop_reason="error")

    assert last_usage(branch()) == Usage()
    assert last_usage(branch(*TALK, label("l", "a", "u", "x"))) == LARGE
    assert last_usage(branch(*TALK, failed, edit("e", "f", "f"))) == Usage(input=3)
