"""Totals of a session over all entries of all branches (SES-63, SES-64)."""

from collections.abc import Iterable
from typing import Final

import attrs

from camshaft.kernel import shapes
from camshaft.kernel.entries import BranchSummaryEntry, CompactionEntry, Entry, MessageEntry, UsageEntry
from camshaft.kernel.estimates import add_usage
from camshaft.kernel.messages import NO_USAGE, AssistantMessage, ToolResultMessage, Usage, UserMessage

TOOLS_AND_SUMMARIES: Final = "Tools/summaries"
"""Group of all usage that names no model."""


@shapes.frozen(kw_only=True)
class TokenTotals:
    """Tokens by kind."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    total: int
    """The sum of the four."""


@shapes.frozen(kw_only=True)
class SessionStatistics:
    """What a session consists of and what it used. Context edits change nothing in it."""

    user_messages: int
    assistant_messages: int
    tool_results: int
    tool_calls: int
    total_messages: int
    """All message entries, whatever their role."""
    tokens: TokenTotals
    cost: float


@shapes.frozen(kw_only=True)
class CostGroup:
    """The share of one model, or of tools and summaries."""

    key: str
    cost: float
    tokens: int


def usage_of(entry: Entry) -> Usage | None:
    """What an entry used, or None."""
    if isinstance(entry, MessageEntry):
        message = entry.message
        return message.usage if isinstance(message, (AssistantMessage, ToolResultMessage)) else None
    if isinstance(entry, (UsageEntry, CompactionEntry, BranchSummaryEntry)):
        return entry.usage
    return None


def token_total(usage: Usage) -> int:
    """Input, output and both cache counters."""
    return usage.input + usage.output + usage.cache_read + usage.cache_write


@shapes.define
class Tally:
    """Statistics and cost groups while entries are counted one by one."""

    messages: int = 0
    calls: int = 0
    counts: dict[str, int] = attrs.field(factory=lambda: {"user": 0, "assistant": 0, "toolResult": 0})
    total: Usage = NO_USAGE
    groups: dict[str, Usage] = attrs.field(factory=dict)

    def add(self, entry: Entry) -> None:
        """Counts one entry. O(1)."""
        if isinstance(entry, MessageEntry):
            self.messages += 1
            message = entry.message
            if isinstance(message, (UserMessage, AssistantMessage, ToolResultMessage)):
                self.counts[message.role] += 1
            if isinstance(message, AssistantMessage):
                self.calls += len(message.tool_calls)
        usage = usage_of(entry)
        if usage is not None:
            key = _group(entry)
            self.total = add_usage(self.total, usage)
            self.groups[key] = add_usage(self.groups.get(key, NO_USAGE), usage)

    @property
    def statistics(self) -> SessionStatistics:
        """The totals so far."""
        total = self.total
        return SessionStatistics(
            user_messages=self.counts["user"],
            assistant_messages=self.counts["assistant"],
            tool_results=self.counts["toolResult"],
            tool_calls=self.calls,
            total_messages=self.messages,
            tokens=TokenTotals(
                input=total.input,
                output=total.output,
                cache_read=total.cache_read,
                cache_write=total.cache_write,
                total=token_total(total),
            ),
            cost=total.cost.total,
        )

    @property
    def costs(self) -> tuple[CostGroup, ...]:
        """Cost and tokens by model, dearest first, equal ones by first use; groups without any are left out (SES-64)."""
        used = [CostGroup(key=key, cost=usage.cost.total, tokens=token_total(usage)) for key, usage in self.groups.items()]
        return tuple(sorted([group for group in used if group.cost or group.tokens], key=lambda group: -group.cost))


def tally(entries: Iterable[Entry]) -> Tally:
    """The count of `entries`. O(entries)."""
    counted = Tally()
    for entry in entries:
        counted.add(entry)
    return counted


def _group(entry: Entry) -> str:
    if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
        return f"{entry.message.provider}/{entry.message.response_model or entry.message.model}"
    if isinstance(entry, UsageEntry):
        return f"{entry.provider}/{entry.model}"
    return TOOLS_AND_SUMMARIES
