"""The output cap leaves room for what the estimate misses."""

import pytest

from camshaft.extensions_std.providers.budget import InputEstimate, output_cap, thinking_budget
from camshaft.kernel.messages import AssistantMessage, ImageBlock, ModelMessage, TextBlock, Usage, UserMessage
from camshaft.kernel.persistent import FrozenDict
from tests.extensions_std.providers.asking import local_model


@pytest.mark.parametrize(
    ("window", "limit", "tokens", "requested", "cap"),
    [
        (8000, 8000, 2, None, 3902),
        (200_000, 64_000, 10, None, 64_000),
        (200_000, 64_000, 10, 4000, 4000),
        (100_000, 64_000, 40_000, None, 54_000),
        (100_000, 64_000, 60_000, None, 32_768),
        (8000, 8000, 9000, None, 1),
        (0, 8000, 9000, None, 8000),
        (0, 0, 10, None, 0),
        (128_000, 0, 0, None, 123_904),
    ],
)
def test_cap_is_what_fits(window: int, limit: int, tokens: int, requested: int | None, cap: int) -> None:
    assert output_cap(local_model(context_window=window, max_tokens=limit), tokens, requested) == cap


def _answer(total: int, at_ms: int, stop_reason: str = "stop") -> AssistantMessage:
    usage = Usage(input=total, total_tokens=total)
    return AssistantMessage(
        content=(TextBlock(text="x" * 35),), api="a", provider="p", model="m", usage=usage, stop_reason=stop_reason, timestamp=at_ms
    )


def _user(chars: int, at_ms: int = 0) -> UserMessage:
    return UserMessage(content="x" * chars, timestamp=at_ms)


@pytest.mark.parametrize(
    ("messages", "tokens"),
    [
        ((_user(35), _user(36)), 10 + 11),
        ((_user(35), _answer(500, 1), _user(35)), 500 + 10),
        ((_user(35, 9), _answer(500, 1), _user(35)), 10 + 10 + 10),
        ((_answer(500, 1), _answer(600, 2, "aborted")), 500 + 10),
        ((_answer(0, 1),), 10),
        ((UserMessage(content=(ImageBlock(data="x", mime_type="image/png"),), timestamp=0),), 1372),
    ],
)
def test_estimate_rests_on_the_last_answer_that_counts(messages: tuple[ModelMessage, ...], tokens: int) -> None:
    estimate = InputEstimate()

    for message in messages:
        estimate.add(message)

    assert estimate.tokens == tokens


@pytest.mark.parametrize(("level", "budget"), [("minimal", 1024), ("low", 7), ("high", 16384), ("xhigh", 16384), ("max", 16384)])
def test_budget_of_a_level_may_be_replaced(level: str, budget: int) -> None:
    assert thinking_budget(level, FrozenDict({"low": 7})) == budget
