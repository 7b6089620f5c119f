"""Reading what servers report: they may say anything, and nothing of it may break an answer."""

from collections.abc import Mapping
from typing import Any, Final

AMOUNT_MAX: Final = 2**53
"""Tokens or USD beyond this are no count of anything, and cannot be multiplied with a price."""


def amount_of(value: object) -> float | None:
    """A number from 0 to AMOUNT_MAX; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if 0 <= value <= AMOUNT_MAX else None


def count_of(*values: object) -> int:
    """The first that is an amount, else 0."""
    for value in values:
        amount = amount_of(value)
        if amount is not None:
            return int(amount)
    return 0


def object_in(holder: object, name: str) -> Mapping[str, Any]:
    """The member of that name if it is an object, else an empty one."""
    found = holder.get(name) if isinstance(holder, dict) else None
    return found if isinstance(found, dict) else {}


def text_in(holder: Mapping[str, Any], name: str) -> str:
    """The member of that name if it is a text, else an empty one."""
    found = holder.get(name)
    return found if isinstance(found, str) else ""


def objects_in(holder: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The objects of the list of that name; none if it is no list."""
    found = holder.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def billed(usage: Mapping[str, Any]) -> float | None:
    """What OpenRouter billed, in USD, or None if it does not say so in full (MOD-14)."""
    cost, own_key = amount_of(usage.get("cost")), usage.get("is_byok")
    if cost is None or not isinstance(own_key, bool):
        return None
    if not own_key:
        return cost
    details = object_in(usage, "cost_details")
    whole = details.get("upstream_inference_cost")
    parts = [whole] if whole is not None else [details.get(f"upstream_inference_{part}_cost") for part in ("prompt", "completions")]
    amounts = [amount_of(each) for each in parts]
    known = [each for each in amounts if each is not None]
    return cost + sum(known) if len(known) == len(amounts) else None
