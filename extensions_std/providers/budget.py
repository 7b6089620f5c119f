"""How large a request is and how much output it may ask for (MOD-30, MOD-31)."""

import math
from typing import Final

import attrs

from camshaft.actors.api import (
    FAILED,
    NO_USAGE,
    AssistantMessage,
    Content,
    FrozenDict,
    ImageBlock,
    Model,
    ModelMessage,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    dumps,
    encode,
    text_of,
)

CHARS_PER_TOKEN: Final = 3.5
IMAGE_CHARS: Final = 4800
"""What an image counts as (MOD-31)."""

MARGIN_MIN: Final = 4096
"""Tokens kept free for what the estimate misses; at least this, else 15 % of the estimate."""
MARGIN_SHARE: Final = 0.15
ROOM_MIN: Final = 32_768
"""Below this room only MARGIN_MIN is kept free."""

BUDGETS: Final = FrozenDict({"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384})
"""Thinking tokens by level; `xhigh` and `max` use that of `high` (MOD-22)."""


@attrs.define
class InputEstimate:
    """Estimated input tokens of a growing message list: add messages in order, read `tokens`."""

    _known: int = 0
    """Tokens up to the last answer whose usage counts."""
    _later: int = 0
    """Estimate of what came after it."""
    _newest_ms: int = 0

    @property
    def tokens(self) -> int:
        """The estimate for everything added so far."""
        return self._known + self._later

    def add(self, message: ModelMessage) -> None:
        """Counts one more message. O(its size)."""
        if isinstance(message, AssistantMessage) and self._counts(message):
            usage = message.usage
            self._known = usage.total_tokens or usage.input + usage.output + usage.cache_read + usage.cache_write
            self._later = 0
        else:
            self._later += tokens_of(message)
        self._newest_ms = max(self._newest_ms, message.timestamp)

    def _counts(self, message: AssistantMessage) -> bool:
        """An older timestamp than an earlier message's means that the prefix was replaced since, by a summary for example."""
        usage = message.usage
        spent = usage.total_tokens or usage.input or usage.output or usage.cache_read or usage.cache_write
        return message.stop_reason not in FAILED and usage is not NO_USAGE and spent > 0 and message.timestamp >= self._newest_ms


def tokens_of(message: ModelMessage) -> int:
    """Estimated tokens of one message."""
    return math.ceil(_chars_of(message) / CHARS_PER_TOKEN)


def output_cap(model: Model, input_tokens: int, requested: int | None) -> int:
    """Tokens of output to ask for (MOD-30), at least 1; or 0, no cap, when neither window nor limit is known."""
    wanted = requested or model.max_tokens
    if model.context_window <= 0:
        return max(0, wanted)
    window = model.context_window
    room = window - input_tokens - max(MARGIN_MIN, math.ceil(MARGIN_SHARE * input_tokens))
    if room < ROOM_MIN:
        room = min(ROOM_MIN, window - input_tokens - MARGIN_MIN)
    return min(wanted, max(1, room)) if wanted > 0 else max(1, room)


def thinking_budget(level: str, own: FrozenDict | None = None) -> int:
    """Thinking tokens of a level that is on; `own` replaces single defaults (MOD-22)."""
    key = "high" if level in ("xhigh", "max") else level
    chosen = {**BUDGETS, **(own or {})}
    budget: int = chosen[key] if key in chosen else chosen["high"]
    return budget


def _chars_of(message: ModelMessage) -> int:
    if isinstance(message, SystemMessage):
        texts = [text_of(message.content), *[text for text in (message.sections or {}).values() if text]]
        tools = [encode(list(changed)) for changed in (message.tools_added, message.tools_removed) if changed]
        return sum(map(len, texts)) + sum([len(dumps(each)) for each in tools])
    return _content_chars(message.content)


def _content_chars(content: Content) -> int:
    if isinstance(content, str):
        return len(content)
    chars = 0
    for block in content:
        match block:
            case TextBlock():
                chars += len(block.text)
            case ThinkingBlock():
                chars += len(block.thinking)
            case ToolCall():
                chars += len(block.name) + len(dumps(block.arguments))
            case ImageBlock():
                chars += IMAGE_CHARS
    return chars
