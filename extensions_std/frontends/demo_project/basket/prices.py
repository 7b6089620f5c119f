"""Prices of a basket, in cents."""

BULK_FROM = 10
"""Pieces of one thing from which on it is cheaper."""

BULK_PERCENT = 20
"""Taken off the price of such a thing."""


def line_total(price: int, pieces: int) -> int:
    """What so many pieces of one thing cost."""
    total = price * pieces
    if pieces > BULK_FROM:
        total -= total * BULK_PERCENT // 100
    return total


def basket_total(lines: list[tuple[int, int]]) -> int:
    """What a basket of (price, pieces) costs."""
    return sum(line_total(price, pieces) for price, pieces in lines)
