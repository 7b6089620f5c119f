"""Sums of usages (MSG-17)."""

from camshaft.kernel.messages import Cost, Usage


def add_usage(left: Usage | None, right: Usage | None) -> Usage | None:
    """Both together, field by field; the other one unchanged if one is None.

    The parts that a provider may leave out appear if either side has them. A sum is billed by
    the provider only if both sides are. Unknown fields of either side are not summed and not kept.
    """
    if left is None or right is None:
        return right if left is None else left
    return Usage(
        input=left.input + right.input,
        output=left.output + right.output,
        cache_read=left.cache_read + right.cache_read,
        cache_write=left.cache_write + right.cache_write,
        cache_write1h=_part(left.cache_write1h, right.cache_write1h),
        reasoning=_part(left.reasoning, right.reasoning),
        total_tokens=left.total_tokens + right.total_tokens,
        cost=add_cost(left.cost, right.cost),
    )


def add_cost(left: Cost, right: Cost) -> Cost:
    """Both together; `total_from_provider` is always set."""
    return Cost(
        input=left.input + right.input,
        output=left.output + right.output,
        cache_read=left.cache_read + right.cache_read,
        cache_write=left.cache_write + right.cache_write,
        total=left.total + right.total,
        total_from_provider=left.total_from_provider is True and right.total_from_provider is True,
    )


def _part(left: int | None, right: int | None) -> int | None:
    return None if left is None and right is None else (left or 0) + (right or 0)
