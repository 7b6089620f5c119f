"""Totals and cost groups of a session."""

import pytest

from camshaft.kernel.entries import BranchSummaryEntry, Entry, UsageEntry
from camshaft.kernel.messages import Cost, ToolCall, ToolResultMessage, Usage
from camshaft.kernel.statistics import CostGroup, TokenTotals, tally
from tests.kernel.made import TIME, assistant, compaction, edit, said, user


def usage(tokens: int, cost: float) -> Usage:
    return Usage(input=tokens, output=1, cache_read=2, cache_write=3, total_tokens=99, cost=Cost(total=cost))


ENTRIES: list[Entry] = [
    user("u", None),
    assistant("a", "u", content=(ToolCall(id="t", name="n"), ToolCall(id="s", name="n")), usage=usage(10, 1), response_model="real"),
    said("r", "a", ToolResultMessage(tool_call_id="t", tool_name="n", is_error=False, usage=usage(1, 3), timestamp=1)),
    compaction("c", "r", "r", usage=usage(1, 0.5)),
    edit("e", "c", "a"),
    BranchSummaryEntry(id="b", parent_id="u", timestamp=TIME, from_id="e", summary="s", usage=usage(1, 0.5)),
    UsageEntry(id="w", parent_id="b", timestamp=TIME, kind="odd", provider="acme", model="m", usage=usage(2, 2)),
    assistant("n", "w"),
]


@pytest.mark.rule("SES-63")
def test_statistics_run_over_all_branches_and_all_kinds_of_usage() -> None:
    found = tally(ENTRIES).statistics

    assert (found.user_messages, found.assistant_messages, found.tool_results, found.tool_calls, found.total_messages) == (1, 2, 1, 2, 4)
    assert found.tokens == TokenTotals(input=15, output=5, cache_read=10, cache_write=15, total=45)
    assert found.cost == 7


@pytest.mark.rule("SES-64")
def test_cost_is_broken_down_by_the_model_that_answered() -> None:
    assert tally(ENTRIES).costs == (
        CostGroup(key="Tools/summaries", cost=4, tokens=21),
        CostGroup(key="acme/m", cost=2, tokens=8),
        CostGroup(key="acme/real", cost=1, tokens=16),
    )


def test_an_empty_session_has_no_groups() -> None:
    assert tally([user("u", None), assistant("a", "u")]).costs == ()
