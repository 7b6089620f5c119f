"""Model records, thinking levels and cost: what is known about a model without asking it."""

from collections.abc import Mapping
from typing import Final, Literal

import attrs

from camshaft.kernel import shapes
from camshaft.kernel.messages import Cost, Usage
from camshaft.kernel.persistent import EMPTY, FrozenDict

THINKING_LEVELS: Final = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
"""In order (MOD-20)."""

ModelType = Literal["chat", "image", "classifier"]

VIRTUAL_API: Final = "pi-virtual"
"""The api of every virtual model, in the catalogue and in files (VM-3)."""

_ONLY_WHEN_MAPPED: Final = frozenset({"xhigh", "max"})


@shapes.frozen(kw_only=True)
class Tier:
    """Other rates for large requests (MOD-11)."""

    input_tokens_above: int
    input: float
    output: float
    cache_read: float
    cache_write: float


@shapes.frozen(kw_only=True)
class Rates:
    """USD per million tokens."""

    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0
    tiers: tuple[Tier, ...] = ()


@shapes.frozen(kw_only=True)
class Model:
    """A catalogue entry (MOD-1)."""

    id: str
    provider: str
    api: str
    name: str = ""
    """Display name; empty means the id."""
    base_url: str = ""
    type: ModelType = "chat"
    """Which operation takes it; ask `is_chat`."""
    input: tuple[str, ...] = ("text",)
    """Accepted kinds: `text`, `image`."""
    input_limits: FrozenDict = EMPTY
    """What a request may hold, and how images are made smaller before they are stored; JSON names (MOD-1, MOD-4)."""
    output: tuple[str, ...] = ()
    """Kinds an image model gives; `image` is one of them."""
    cost: Rates = Rates()
    headers: FrozenDict = EMPTY
    reasoning: bool = False
    thinking_level_map: FrozenDict = EMPTY
    """Level to provider value; null marks it unsupported (MOD-20)."""
    prompt_cache: FrozenDict = EMPTY
    """Seconds that a cached prompt lives, about: `short`, `long`, each above 0; a tier that is not known is absent."""
    context_window: int = 128_000
    """Tokens; 0 means unknown."""
    max_tokens: int = 16_384
    """Output limit; 0 means unknown."""
    sampling_params: FrozenDict = EMPTY
    """Body fields for the APIs of OpenAI's style, written over what the adapter says (MOD-23)."""
    sampling_params_by_thinking_level: FrozenDict = EMPTY
    """The same for single levels, which are named as in `THINKING_LEVELS`; these win."""
    compat: FrozenDict = EMPTY
    """API-specific flags (MOD-100 to MOD-103), JSON names."""

    @property
    def reference(self) -> str:
        """`provider/id`."""
        return f"{self.provider}/{self.id}"

    @property
    def is_virtual(self) -> bool:
        """Whether it stands for the models that a router chooses, and gets no request itself (VM-5)."""
        return self.api == VIRTUAL_API

    @property
    def is_chat(self) -> bool:
        """Whether a conversation can use it."""
        return self.type == "chat"


def supported_levels(model: Model) -> tuple[str, ...]:
    """The levels `model` has, in order; never empty unless every level is mapped to null."""
    if not model.reasoning:
        return ("off",)
    return tuple([level for level in THINKING_LEVELS if _supports(model.thinking_level_map, level)])


def clamp_level(model: Model, level: str) -> str:
    """The nearest supported level: `level` itself, else above, else below; an unknown one gives the first (MOD-21)."""
    levels = supported_levels(model)
    if level in levels or not levels:
        return level
    if level not in THINKING_LEVELS:
        return levels[0]
    wanted = THINKING_LEVELS.index(level)
    above = [each for each in levels if THINKING_LEVELS.index(each) > wanted]
    return above[0] if above else levels[-1]


def cost_of(rates: Rates, usage: Usage) -> Cost:
    """What `usage` costs (MOD-10 to MOD-13)."""
    prompt = usage.input + usage.cache_read + usage.cache_write
    reached = [tier for tier in rates.tiers if tier.input_tokens_above < prompt]
    rate = max(reached, key=lambda tier: tier.input_tokens_above, default=rates)
    hour = usage.cache_write1h or 0
    parts = (
        usage.input * rate.input / 1e6,
        usage.output * rate.output / 1e6,
        usage.cache_read * rate.cache_read / 1e6,
        ((usage.cache_write - hour) * rate.cache_write + hour * 2 * rate.input) / 1e6,
    )
    return Cost(input=parts[0], output=parts[1], cache_read=parts[2], cache_write=parts[3], total=sum(parts), total_from_provider=False)


def at_tier(cost: Cost, tier: str | None, model_id: str) -> Cost:
    """The cost of a response that was served at a tier; `tier` is the response's, else the requested one (MOD-15)."""
    factor = _FASTER_FACTORS.get(model_id, FAST_FACTOR) if tier in _FAST_TIERS else _SLOW_FACTORS.get(tier or "", 1.0)
    parts = [each * factor for each in (cost.input, cost.output, cost.cache_read, cost.cache_write)]
    return attrs.evolve(cost, input=parts[0], output=parts[1], cache_read=parts[2], cache_write=parts[3], total=sum(parts))


FAST_FACTOR: Final = 2.0
"""What a response of a faster tier costs, as a multiple; models that differ are in `_FASTER_FACTORS`."""
_FAST_TIERS: Final = frozenset({"priority", "fast"})
_FASTER_FACTORS: Final[Mapping[str, float]] = {"gpt-5.5": 2.5}
_SLOW_FACTORS: Final[Mapping[str, float]] = {"flex": 0.5}


def _supports(level_map: Mapping[str, object], level: str) -> bool:
    if level in level_map:
        return level_map[level] is not None
    return level not in _ONLY_WHEN_MAPPED
