"""Models known without configuration: plain data, replaced or changed by `models.json` (MOD-5)."""

from collections.abc import Mapping
from typing import Any, Final

from camshaft.actors.api import FrozenDict, Model, Rates

WRITTEN: Final = "2026-11-30"
"""The day on which ids, limits and prices were looked up."""

OPENAI_URL: Final = "https://api.openai.com/v1"


def _openai(id: str, name: str, rates: Rates, **fields: Any) -> Model:
    return Model(
        id=id, provider="openai", api="openai-completions", name=name, base_url=OPENAI_URL, input=("text", "image"), cost=rates, **fields
    )


_THINKS: Final[Mapping[str, Any]] = {"reasoning": True, "thinking_level_map": FrozenDict({"off": None})}

BUILTIN: Final[Mapping[str, tuple[Model, ...]]] = {
    "openai": (
        _openai("gpt-4.1", "GPT-4.1", Rates(input=2, output=8, cache_read=0.5), context_window=1_047_576, max_tokens=32_768),
        _openai("gpt-4.1-mini", "GPT-4.1 mini", Rates(input=0.4, output=1.6, cache_read=0.1), context_window=1_047_576, max_tokens=32_768),
        _openai("gpt-4o", "GPT-4o", Rates(input=2.5, output=10, cache_read=1.25)),
        _openai("gpt-4o-mini", "GPT-4o mini", Rates(input=0.15, output=0.6, cache_read=0.075)),
        _openai("gpt-5", "GPT-5", Rates(input=1.25, output=10, cache_read=0.125), context_window=400_000, max_tokens=128_000, **_THINKS),
        _openai("o4-mini", "", Rates(input=1.1, output=4.4, cache_read=0.275), context_window=200_000, max_tokens=100_000, **_THINKS),
    ),
}
"""Provider id to its models. Prices in USD per million tokens; `models.json` corrects what is out of date."""
