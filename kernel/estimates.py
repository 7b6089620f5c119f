"""How large a context is, and when it is too large (CMP-1 to CMP-13, MSG-16, MSG-17).

Characters are UTF-16 code units (MSG-7); a token is four of them. Where the model has told
its usage, that counts, and only what came after it is estimated. The usage is trusted only
if nothing before it was edited or compacted since (CMP-5).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Final

from camshaft.kernel import codec, shapes
from camshaft.kernel.errors import KernelError
from camshaft.kernel.messages import (
    FAILED,
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    Content,
    Cost,
    CustomMessage,
    ImageBlock,
    Message,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from camshaft.kernel.persistent import EMPTY, Json
from camshaft.kernel.projection import ContextEntry, Projection
from camshaft.kernel.settings import CompactionSettings

CHARACTERS_PER_TOKEN: Final = 4
POINT_MIN: Final = -6
POINT_MAX: Final = 21
"""Between these places of the decimal point a number is spelt without an exponent."""
IMAGE_CHARACTERS: Final = 4800
"""An image counts 1200 tokens."""

RESERVE_TOKENS: Final = 16_384
"""Default of `compaction.reserveTokens`: room for the answer."""
KEEP_RECENT_TOKENS: Final = 20_000
"""Default of `compaction.keepRecentTokens`."""
SAFE_INTEGER_MAX: Final = 2**53 - 1
"""Largest value of a setting (CMP-10)."""


# -- one message -------------------------------------------------------------------------


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units; a lone surrogate is one."""
    return len(text) if text.isascii() else len(text) + sum([character > "\uffff" for character in text])


def estimate(message: Message) -> int:
    """Tokens of a message by its size (CMP-1); 0 for a role that is not known."""
    return -(-_characters(message) // CHARACTERS_PER_TOKEN)


def _characters(message: Message) -> int:
    if isinstance(message, (UserMessage, CustomMessage, ToolResultMessage)):
        return _content_characters(message.content)
    if isinstance(message, AssistantMessage):
        return sum([_block_characters(block) for block in message.content])
    if isinstance(message, SystemMessage):
        return _system_characters(message)
    if isinstance(message, BashExecutionMessage):
        return utf16_length(message.command) + utf16_length(message.output)
    if isinstance(message, (BranchSummaryMessage, CompactionSummaryMessage)):
        return utf16_length(message.summary)
    return 0


def _content_characters(content: Content) -> int:
    if isinstance(content, str):
        return utf16_length(content)
    texts = [utf16_length(block.text) for block in content if isinstance(block, TextBlock)]
    return sum(texts) + IMAGE_CHARACTERS * sum([isinstance(block, ImageBlock) for block in content])


def _block_characters(block: object) -> int:
    """A block of an assistant message."""
    if isinstance(block, TextBlock):
        return utf16_length(block.text)
    if isinstance(block, ThinkingBlock):
        return utf16_length(block.thinking)
    if isinstance(block, ToolCall):
        return utf16_length(block.name) + _json_length(block.arguments)
    return 0


def _system_characters(message: SystemMessage) -> int:
    sections = sum([utf16_length(text) for text in (message.sections or EMPTY).values() if isinstance(text, str)])
    tools = 0 if message.tools_added is None else _json_length(message.tools_added)
    return _content_characters(message.content) + sections + tools


def _json_length(value: object) -> int:
    """UTF-16 length of the compact JSON, numbers spelt as the reference spells them (CMP-2)."""
    plain = codec.encode(value)
    spelt_otherwise = sum([_number_length(number) - len(codec.dumps(number)) for number in _floats(plain)])
    return utf16_length(codec.dumps(plain).decode()) + spelt_otherwise


def _floats(value: Json) -> Iterator[float]:
    match value:
        case float() if isfinite(value):
            yield value
        case Mapping():
            for each in value.values():
                yield from _floats(each)
        case list() | tuple():
            for each in value:
                yield from _floats(each)


def _number_length(value: float) -> int:
    """Length of the shortest decimal that is this number: whole ones without a fraction, an exponent below 1e-6 and from 1e21."""
    sign, digits, exponent = Decimal(repr(value + 0)).normalize().as_tuple()
    assert isinstance(exponent, int)
    point = len(digits) + exponent
    if value == 0:
        return 1
    if 0 < point <= POINT_MAX:
        return sign + max(point, len(digits) + 1 if exponent < 0 else 0)
    if POINT_MIN < point <= 0:
        return sign + len("0.") - point + len(digits)
    return sign + len(digits) + (len(digits) > 1) + len(f"e{point - 1:+d}")


# -- usage -------------------------------------------------------------------------------


def context_tokens(usage: Usage) -> int:
    """What a usage says about the size of the context (MSG-16)."""
    return usage.total_tokens or usage.input + usage.output + usage.cache_read + usage.cache_write


def valid_usage(message: Message) -> Usage | None:
    """The usage of an assistant message that tells a context size, or None (CMP-3)."""
    if not isinstance(message, AssistantMessage) or message.stop_reason in FAILED:
        return None
    return message.usage if context_tokens(message.usage) > 0 else None


def add_usage(one: Usage, other: Usage) -> Usage:
    """The sum of two usages (MSG-17); `total_from_provider` is always written."""
    return Usage(
        input=one.input + other.input,
        output=one.output + other.output,
        cache_read=one.cache_read + other.cache_read,
        cache_write=one.cache_write + other.cache_write,
        cache_write1h=_optional_sum(one.cache_write1h, other.cache_write1h),
        reasoning=_optional_sum(one.reasoning, other.reasoning),
        total_tokens=one.total_tokens + other.total_tokens,
        cost=Cost(
            input=one.cost.input + other.cost.input,
            output=one.cost.output + other.cost.output,
            cache_read=one.cost.cache_read + other.cost.cache_read,
            cache_write=one.cost.cache_write + other.cost.cache_write,
            total=one.cost.total + other.cost.total,
            total_from_provider=bool(one.cost.total_from_provider and other.cost.total_from_provider),
        ),
    )


def sum_usages(usages: Iterable[Usage]) -> Usage | None:
    """The sum of all, the only one as it is, None without any."""
    total: Usage | None = None
    for usage in usages:
        total = usage if total is None else add_usage(total, usage)
    return total


def _optional_sum(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)


# -- a context ---------------------------------------------------------------------------


@shapes.frozen(kw_only=True)
class ContextEstimate:
    """The size of a context in tokens."""

    tokens: int
    usage_tokens: int = 0
    """What the trusted usage says; 0 without one."""
    trailing_tokens: int
    """The estimated rest."""
    last_usage_index: int | None = None
    """Index of the message with the trusted usage, or None."""


def plain(messages: Sequence[Message]) -> ContextEstimate:
    """The last valid usage plus the estimate of what follows it, else of everything (CMP-4)."""
    trailing = 0
    count = len(messages)
    for number, message in enumerate(reversed(messages), 1):
        usage = valid_usage(message)
        if usage is not None:
            return _from_usage(usage, trailing, count - number)
        trailing += estimate(message)
    return ContextEstimate(tokens=trailing, trailing_tokens=trailing)


def projected(projection: Projection) -> ContextEstimate:
    """The size of a branch's context (CMP-5): as `plain`, if the usage is newer than the last edit and the last compaction.

    Walks from the end to the usage; everything is estimated only where none can be trusted.
    """
    newest_change = max(projection.edit_index, projection.compaction_index)
    trailing = 0
    number = projection.message_count
    for each in reversed(projection.context_entries):
        if projection.index_of(each.position) <= newest_change:
            break
        for message in reversed(each.messages):
            number -= 1
            usage = valid_usage(message)
            if usage is not None:
                return _from_usage(usage, trailing, number)
            trailing += estimate(message)
    return _estimated(projection)


def _from_usage(usage: Usage, trailing: int, index: int) -> ContextEstimate:
    known = context_tokens(usage)
    return ContextEstimate(tokens=known + trailing, usage_tokens=known, trailing_tokens=trailing, last_usage_index=index)


def _estimated(projection: Projection) -> ContextEstimate:
    """The replayed system message and everything else, by size."""
    total = 0 if projection.system is None else estimate(projection.system.as_message())
    total += sum([estimate(message) for message in projection.messages if not isinstance(message, SystemMessage)])
    return ContextEstimate(tokens=total, trailing_tokens=total)


@shapes.frozen(kw_only=True)
class ContextUsage:
    """How full the context is, as reported (CMP-7)."""

    tokens: int | None
    """None after a compaction until a model has answered."""
    context_window: int
    percent: float | None


def context_usage(projection: Projection, context_window: int) -> ContextUsage | None:
    """The report for a window of this many tokens; None if the window is unknown (0)."""
    if context_window <= 0:
        return None
    if projection.compaction_index >= 0 and not _answered_since_compaction(projection):
        return ContextUsage(tokens=None, context_window=context_window, percent=None)
    tokens = projected(projection).tokens
    return ContextUsage(tokens=tokens, context_window=context_window, percent=tokens / context_window * 100)


def _answered_since_compaction(projection: Projection) -> bool:
    for each in reversed(projection.context_entries):
        if projection.index_of(each.position) <= projection.compaction_index:
            return False
        if _has_usage(each):
            return True
    return False


def _has_usage(each: ContextEntry) -> bool:
    return any(valid_usage(message) is not None for message in each.messages)


# -- the threshold -----------------------------------------------------------------------


class BadSetting(KernelError):
    """A compaction setting is no count; the text names it and its value (CMP-10)."""


@shapes.frozen(kw_only=True)
class CompactionLimits:
    """The compaction settings that hold for one model (CMP-9)."""

    enabled: bool = True
    reserve_tokens: int = RESERVE_TOKENS
    keep_recent_tokens: int = KEEP_RECENT_TOKENS


def compaction_limits(settings: Mapping[str, Json], reference: str | None = None) -> CompactionLimits:
    """The limits in the JSON of the `compaction` settings for the *selected* model `provider/id`.

    Each value: override of the model, else ordinary, else default. Raises BadSetting for a
    value that is no integer from 0 to 2^53-1, also for an ordinary one that an override hides.
    """
    overrides = settings.get("modelOverrides")
    override: Json = overrides.get(reference) if isinstance(overrides, Mapping) and reference is not None else None
    where = f'compaction.modelOverrides["{reference}"]'
    if override is not None and not isinstance(override, Mapping):
        raise BadSetting(f"Invalid {where} setting: {_shown(override)}. Expected an object.")

    def limit(field: str, default: int) -> int:
        value = _count(settings.get(field), f"compaction.{field}")
        special = _count((override or EMPTY).get(field), f"{where}.{field}")
        return next((known for known in (special, value) if known is not None), default)

    return CompactionLimits(
        enabled=settings.get("enabled") is not False,
        reserve_tokens=limit("reserveTokens", RESERVE_TOKENS),
        keep_recent_tokens=limit("keepRecentTokens", KEEP_RECENT_TOKENS),
    )


def limits_for(settings: CompactionSettings, reference: str | None) -> CompactionLimits:
    """The limits of a session's settings for the selected model `provider/id`. Raises BadSetting for a bad override."""
    raw = {
        "enabled": settings.enabled,
        "reserveTokens": settings.reserve_tokens,
        "keepRecentTokens": settings.keep_recent_tokens,
        "modelOverrides": settings.model_overrides,
    }
    return compaction_limits(raw, reference)


def compaction_due(tokens: int, context_window: int, limits: CompactionLimits) -> bool:
    """Whether the context has passed the threshold (CMP-11); never with an unknown window (CMP-12)."""
    return limits.enabled and context_window > 0 and tokens > context_window - limits.reserve_tokens


def _count(value: Json, where: str) -> int | None:
    if value is None:
        return None
    whole = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value and float(value).is_integer()
    if not whole or not 0 <= value <= SAFE_INTEGER_MAX:
        raise BadSetting(f"Invalid {where} setting: {_shown(value)}. Expected a non-negative safe integer.")
    return int(value)


def _shown(value: Json) -> str:
    """A setting as a person wrote it."""
    return value if isinstance(value, str) else codec.dumps(value).decode()
