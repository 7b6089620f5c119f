"""The built-in catalogue is small, dated, and holds nothing that cannot be."""

from datetime import date

import pytest

from camshaft.extensions_std.providers.builtin_models import BUILTIN, WRITTEN
from camshaft.extensions_std.providers.provider_keys import ENVIRONMENT_KEYS
from camshaft.kernel.models import THINKING_LEVELS, Model, supported_levels

MODELS = [model for models in BUILTIN.values() for model in models]
APIS = ("anthropic-messages", "openai-completions", "openai-responses")


@pytest.mark.rule("MOD-5")
def test_it_is_small_dated_and_every_vendor_has_a_variable_for_its_key() -> None:
    assert 15 <= len(MODELS) <= 30
    assert date.fromisoformat(WRITTEN) < date(2027, 6, 1), "older than half a year: look everything up again"
    assert BUILTIN.keys() <= ENVIRONMENT_KEYS.keys()
    assert [name for name, models in BUILTIN.items() if not models] == []
    assert len({model.reference for model in MODELS}) == len(MODELS)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.reference)
def test_an_entry_is_plausible(model: Model) -> None:
    cost = model.cost

    assert model in BUILTIN[model.provider]
    assert model.api in APIS
    assert model.base_url.startswith("https://")
    assert model.base_url.endswith("/v1") is (model.api != "anthropic-messages")
    assert model.name
    assert model.is_chat
    assert 0 < model.max_tokens < model.context_window
    assert 0 <= cost.cache_read < cost.input < cost.output
    assert cost.cache_write == 0 or cost.cache_write > cost.input
    assert all([0 < tier.input_tokens_above < model.context_window and tier.input > cost.input for tier in cost.tiers])
    assert model.thinking_level_map.keys() <= set(THINKING_LEVELS)
    assert len(supported_levels(model)) > 1 or not model.reasoning
    assert model.reasoning or not model.thinking_level_map
    assert all([seconds > 0 for seconds in model.prompt_cache.values()])
    assert model.prompt_cache.keys() <= {"short", "long"}
