"""Models of `models.json`, and how single fields lie over those of a model (MOD-1, MOD-55)."""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from camshaft.actors.api import EMPTY, FrozenDict, Model, Rates, Tier, freeze

MERGED_COMPAT: Final = ("openRouterRouting", "vercelGatewayRouting", "chatTemplateKwargs", "chatTemplateArgs")
"""Compat values that merge per key; all others replace (MOD-55)."""


def model_from_json(raw: Mapping[str, Any], provider: str) -> Model:
    """A model of a valid `models.json` entry whose api and base url are filled in (MOD-1); headers are left out (MOD-56)."""
    cost = raw.get("cost", EMPTY)
    tiers = tuple([Tier(input_tokens_above=tier.get("inputTokensAbove", 0), **_rates(tier)) for tier in cost.get("tiers", ())])
    return Model(
        id=raw["id"],
        provider=provider,
        api=raw["api"],
        name=raw.get("name", raw["id"]),
        base_url=raw["baseUrl"],
        input=tuple(raw.get("input", ("text",))),
        cost=Rates(**_rates(cost), tiers=tiers),
        reasoning=raw.get("reasoning", False),
        input_limits=freeze(raw.get("inputLimits", EMPTY)),
        thinking_level_map=freeze(raw.get("thinkingLevelMap", EMPTY)),
        prompt_cache=freeze(raw.get("promptCache", EMPTY)),
        context_window=raw.get("contextWindow", 128_000),
        max_tokens=raw.get("maxTokens", 16_384),
        sampling_params=freeze(raw.get("samplingParams", EMPTY)),
        sampling_params_by_thinking_level=freeze(raw.get("samplingParamsByThinkingLevel", EMPTY)),
        compat=freeze(raw.get("compat", EMPTY)),
    )


def overridden(model: Model, raw: Mapping[str, Any]) -> Model:
    """Single fields replaced; objects merge (MOD-55)."""
    fields: dict[str, Any] = {}
    names = {"name": "name", "reasoning": "reasoning", "contextWindow": "context_window", "maxTokens": "max_tokens"}
    fields.update({python: raw[json] for json, python in names.items() if json in raw})
    if "input" in raw:
        fields["input"] = tuple(raw["input"])
    if "cost" in raw:
        cost, old = raw["cost"], model.cost
        own = {"input": old.input, "output": old.output, "cacheRead": old.cache_read, "cacheWrite": old.cache_write}
        tiers = old.tiers
        if "tiers" in cost:
            tiers = tuple([Tier(input_tokens_above=tier.get("inputTokensAbove", 0), **_rates(tier)) for tier in cost["tiers"]])
        fields["cost"] = Rates(**_rates({**own, **cost}), tiers=tiers)
    for json, python in (
        ("thinkingLevelMap", "thinking_level_map"),
        ("promptCache", "prompt_cache"),
        ("samplingParams", "sampling_params"),
    ):
        if json in raw:
            fields[python] = freeze({**getattr(model, python), **raw[json]})
    if "inputLimits" in raw:
        fields["input_limits"] = _deep(model.input_limits, raw["inputLimits"], 2)
    if "samplingParamsByThinkingLevel" in raw:
        by_level = _deep(model.sampling_params_by_thinking_level, raw["samplingParamsByThinkingLevel"], 1)
        fields["sampling_params_by_thinking_level"] = by_level
    if "compat" in raw:
        fields["compat"] = merged_compat(model.compat, raw["compat"])
    return attrs.evolve(model, **fields)


def merged_compat(below: FrozenDict, above: Mapping[str, Any]) -> FrozenDict:
    """Flags over flags; some merge per key."""
    merged = {name: {**below[name], **above[name]} for name in MERGED_COMPAT if _are_objects(below.get(name), above.get(name))}
    frozen: FrozenDict = freeze({**below, **above, **merged})
    return frozen


def _are_objects(*values: object) -> bool:
    return all(isinstance(value, Mapping) for value in values)


def _deep(below: Mapping[str, Any], above: Mapping[str, Any], depth: int) -> FrozenDict:
    """Objects merge down to `depth` levels beneath this one; anything else replaces."""
    both = [name for name in above if depth > 0 and _are_objects(below.get(name), above[name])]
    frozen: FrozenDict = freeze({**below, **above, **{name: _deep(below[name], above[name], depth - 1) for name in both}})
    return frozen


def _rates(raw: Mapping[str, Any]) -> dict[str, float]:
    names = {"input": "input", "output": "output", "cacheRead": "cache_read", "cacheWrite": "cache_write"}
    return {python: raw.get(json, 0) for json, python in names.items()}
