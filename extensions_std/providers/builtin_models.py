"""Models known without configuration: plain data, replaced or changed by `models.json` (MOD-5).

Few on purpose: of each vendor what people use. Where the numbers come from is said of each group; what no page was found for
is said to be from memory, and may be out of date. The first model of a provider is its default: it is taken when nothing else
is said, and a model that is not listed is asked as this one is (MOD-95, MOD-97).
"""

from collections.abc import Mapping
from typing import Any, Final

from camshaft.actors.api import FrozenDict, Model, Rates, Tier

WRITTEN: Final = "2026-11-30"
"""The day on which they were written; sources were looked at on 2026-12-01."""

ANTHROPIC_URL: Final = "https://api.anthropic.com"
OPENAI_URL: Final = "https://api.openai.com/v1"
OPENROUTER_URL: Final = "https://openrouter.ai/api/v1"
CEREBRAS_URL: Final = "https://api.cerebras.ai/v1"

SEES: Final = ("text", "image")

_MILLION: Final[Mapping[str, Any]] = {"context_window": 1_000_000, "max_tokens": 128_000}
_OLDER: Final[Mapping[str, Any]] = {"context_window": 200_000, "max_tokens": 64_000}
_GPT_5: Final[Mapping[str, Any]] = {"context_window": 400_000, "max_tokens": 128_000}
_LONG: Final[Mapping[str, Any]] = {"context_window": 1_050_000, "max_tokens": 128_000}
_GPT_4_1: Final[Mapping[str, Any]] = {"context_window": 1_047_576, "max_tokens": 32_768}

_PLAIN: Final[Mapping[str, Any]] = {"api": "openai-completions", "reasoning": False}
"""Models that do not think lose nothing over chat completions."""

_EFFORTS: Final = {"minimal": None, "xhigh": "xhigh", "max": "max"}
"""From low to max."""
_ADAPTIVE: Final = FrozenDict({"forceAdaptiveThinking": True, "supportsTemperature": False})
"""The model says itself how long it thinks, and takes no sampling parameters."""


def _levels(**values: str | None) -> FrozenDict:
    return FrozenDict(values)


def _claude(id: str, name: str, rates: Rates, **fields: Any) -> Model:
    return Model(
        id=id,
        provider="anthropic",
        api="anthropic-messages",
        name=name,
        base_url=ANTHROPIC_URL,
        input=SEES,
        cost=rates,
        reasoning=True,
        prompt_cache=FrozenDict({"short": 300, "long": 3600}),
        **fields,
    )


def _gpt(id: str, name: str, rates: Rates, **fields: Any) -> Model:
    known = {"api": "openai-responses", "reasoning": True, **fields}
    return Model(id=id, provider="openai", name=name, base_url=OPENAI_URL, input=SEES, cost=rates, **known)


def _routed(id: str, name: str, rates: Rates, **fields: Any) -> Model:
    return Model(id=id, provider="openrouter", api="openai-completions", name=name, base_url=OPENROUTER_URL, cost=rates, **fields)


BUILTIN: Final[Mapping[str, tuple[Model, ...]]] = {
    # Source: the model overviews and the price page under platform.claude.com/docs; the sizes of Sonnet 4.5 and Opus 4.5 are from memory.
    "anthropic": (
        _claude(
            *("claude-sonnet-5-5", "Claude Sonnet 5.5", Rates(input=2, output=10, cache_read=0.1, cache_write=2.5)),
            thinking_level_map=_levels(off=None, **_EFFORTS),
            compat=_ADAPTIVE,
            **_MILLION,
        ),
        _claude(
            *("claude-opus-5-5", "Claude Opus 5.5", Rates(input=4, output=20, cache_read=0.2, cache_write=5)),
            thinking_level_map=_levels(off=None, **_EFFORTS),
            compat=_ADAPTIVE,
            **_MILLION,
        ),
        _claude(
            *("claude-opus-5", "Claude Opus 5", Rates(input=5, output=25, cache_read=0.5, cache_write=6.25)),
            thinking_level_map=_levels(**_EFFORTS),
            compat=_ADAPTIVE,
            **_MILLION,
        ),
        _claude(
            "claude-haiku-5-5",
            "Claude Haiku 5.5",
            Rates(
                input=0.1,
                output=0.5,
                cache_read=0.01,
                cache_write=0.125,
                tiers=(Tier(input_tokens_above=100_000, input=0.5, output=2.5, cache_read=0.05, cache_write=0.625),),
            ),
            thinking_level_map=_levels(**_EFFORTS),
            compat=_ADAPTIVE,
            **_MILLION,
        ),
        _claude("claude-haiku-4-5", "Claude Haiku 4.5", Rates(input=1, output=5, cache_read=0.1, cache_write=1.25), **_OLDER),
        _claude("claude-sonnet-4-5", "Claude Sonnet 4.5", Rates(input=3, output=15, cache_read=0.3, cache_write=3.75), **_OLDER),
        _claude("claude-opus-4-5", "Claude Opus 4.5", Rates(input=5, output=25, cache_read=0.5, cache_write=6.25), **_OLDER),
    ),
    # Source: developers.openai.com/api/docs/models/gpt-6.2-sol. All others are from memory; gateways list the same sizes for
    # GPT-5 mini and GPT-4.1 mini.
    "openai": (
        _gpt(
            "gpt-6.2-sol",
            "GPT-6.2 Sol",
            Rates(
                input=2,
                output=10,
                cache_read=0.1,
                cache_write=2.5,
                tiers=(Tier(input_tokens_above=272_000, input=4, output=15, cache_read=0.2, cache_write=5),),
            ),
            thinking_level_map=_levels(off=None, **_EFFORTS),
            **_LONG,
        ),
        _gpt(
            "gpt-5.1",
            "GPT-5.1",
            Rates(input=1.25, output=10, cache_read=0.125),
            thinking_level_map=_levels(off="none", minimal=None),
            **_GPT_5,
        ),
        _gpt("gpt-5", "GPT-5", Rates(input=1.25, output=10, cache_read=0.125), thinking_level_map=_levels(off=None), **_GPT_5),
        _gpt("gpt-5-mini", "GPT-5 mini", Rates(input=0.25, output=2, cache_read=0.025), thinking_level_map=_levels(off=None), **_GPT_5),
        _gpt("gpt-5-nano", "GPT-5 nano", Rates(input=0.05, output=0.4, cache_read=0.005), thinking_level_map=_levels(off=None), **_GPT_5),
        _gpt("gpt-4.1", "GPT-4.1", Rates(input=2, output=8, cache_read=0.5), **_PLAIN, **_GPT_4_1),
        _gpt("gpt-4.1-mini", "GPT-4.1 mini", Rates(input=0.4, output=1.6, cache_read=0.1), **_PLAIN, **_GPT_4_1),
        _gpt("gpt-4.1-nano", "GPT-4.1 nano", Rates(input=0.1, output=0.4, cache_read=0.025), **_PLAIN, **_GPT_4_1),
        _gpt("gpt-4o", "GPT-4o", Rates(input=2.5, output=10, cache_read=1.25), **_PLAIN),
        _gpt("gpt-4o-mini", "GPT-4o mini", Rates(input=0.15, output=0.6, cache_read=0.075), **_PLAIN),
        _gpt(
            *("o4-mini", "o4-mini", Rates(input=1.1, output=4.4, cache_read=0.275)),
            thinking_level_map=_levels(off=None, minimal=None),
            context_window=200_000,
            max_tokens=100_000,
        ),
    ),
    # From memory: what the vendors ask for, which OpenRouter passes on. The cost of a request is what it reports (MOD-14).
    "openrouter": (
        _routed(
            *("anthropic/claude-sonnet-4.5", "Claude Sonnet 4.5", Rates(input=3, output=15, cache_read=0.3, cache_write=3.75)),
            input=SEES,
            reasoning=True,
            prompt_cache=FrozenDict({"short": 300, "long": 3600}),
            **_OLDER,
        ),
        _routed(
            *("openai/gpt-5", "GPT-5", Rates(input=1.25, output=10, cache_read=0.125)),
            input=SEES,
            reasoning=True,
            thinking_level_map=_levels(off=None),
            **_GPT_5,
        ),
    ),
    # Source: catalogues of others that follow Cerebras' own list (window and prices); the output limit is from memory.
    "cerebras": (
        Model(
            id="gpt-oss-120b",
            provider="cerebras",
            api="openai-completions",
            name="GPT OSS 120B",
            base_url=CEREBRAS_URL,
            cost=Rates(input=0.35, output=0.75),
            reasoning=True,
            thinking_level_map=_levels(off=None, minimal=None),
            context_window=131_072,
            max_tokens=40_000,
        ),
    ),
}
"""Provider id to its models. Prices in USD per million tokens; `models.json` corrects what is out of date.

A model whose wire API no adapter speaks is not offered.
"""
