"""The record of nested calls and its limits."""

from camshaft.kernel.messages import Cost, TextBlock, Usage
from camshaft.kernel.nested import ARGUMENTS_BYTES_MAX, RECORDS_MAX, Nest, NestedEnd, finished, started
from camshaft.kernel.usage import add_usage


def test_ids_count_per_caller_and_the_record_is_flat_in_start_order() -> None:
    nest, first = started(Nest(), "tc", "outer", {"o": 1})
    nest, inner = started(nest, first, "inner", None)
    nest, second = started(nest, "tc", "outer", {})
    nest = finished(nest, second, NestedEnd(is_error=False, duration_ms=2))
    nest = finished(nest, inner, NestedEnd(is_error=True, content=(TextBlock(text="no"), TextBlock(text="way")), duration_ms=1))

    assert nest.nested_calls == {
        "calls": (
            {"id": "tc/1", "name": "outer", "status": "unfinished", "arguments": {"o": 1}},
            {"id": "tc/1/1", "name": "inner", "status": "error", "arguments": {}, "durationMs": 1, "error": "no\nway"},
            {"id": "tc/2", "name": "outer", "status": "ok", "arguments": {}, "durationMs": 2},
        ),
        "complete": False,
    }


def test_omitted_arguments_are_not_charged_to_the_total() -> None:
    """Example 7 of the specification."""
    nest = Nest()
    for _ in range(6):
        nest, _call = started(nest, "tc-9", "a", {"v": "x" * 7000})
    nest, _call = started(nest, "tc-9", "b", {"s": 1})

    assert [call.arguments_bytes for call in nest.calls] == [None, None, None, None, 7008, 7008, None]
    assert nest.kept_bytes == 4 * 7008 + 7


def test_byte_limit_of_one_call_is_inclusive() -> None:
    exact, _ = started(Nest(), "tc", "a", {"v": "x" * (ARGUMENTS_BYTES_MAX - 8)})
    over, _ = started(Nest(), "tc", "a", {"v": "x" * (ARGUMENTS_BYTES_MAX - 7)})

    assert [nest.calls[0].arguments_bytes for nest in (exact, over)] == [None, ARGUMENTS_BYTES_MAX + 1]


def test_calls_beyond_the_limit_use_up_ids_and_count_usage() -> None:
    nest = Nest()
    for number in range(RECORDS_MAX + 2):
        nest, call_id = started(nest, "tc", "a", {})
        assert call_id == f"tc/{number + 1}"
        nest = finished(nest, call_id, NestedEnd(is_error=False, usage=Usage(input=1), duration_ms=0))

    assert len(nest.calls) == RECORDS_MAX
    assert nest.record is not None
    assert not nest.record.complete
    assert nest.usage is not None
    assert nest.usage.input == RECORDS_MAX + 2


def test_error_text_is_cut_before_a_pair_it_would_split() -> None:
    nest, call_id = started(Nest(), "tc", "a", {})

    nest = finished(nest, call_id, NestedEnd(is_error=True, content=(TextBlock(text="e" * 499 + "😀"),)))

    assert nest.calls[0].error == "e" * 499


def test_no_call_leaves_no_record() -> None:
    assert (Nest().nested_calls, Nest().usage) == (None, None)


def test_folding_shares_nothing_between_branches() -> None:
    nest, _ = started(Nest(), "tc", "a", {})

    left, right = started(nest, "tc", "b", {}), started(nest, "tc", "c", {})

    assert (left[1], right[1], len(nest.calls)) == ("tc/2", "tc/2", 1)


def test_sum_of_usages_has_the_parts_of_either_side_and_says_who_billed() -> None:
    """MSG-17."""
    billed = Usage(input=1, reasoning=2, cost=Cost(total=0.5, total_from_provider=True))

    assert add_usage(billed, Usage(input=3, cache_write1h=4)) == Usage(
        input=4, reasoning=2, cache_write1h=4, cost=Cost(total=0.5, total_from_provider=False)
    )
    assert add_usage(None, billed) is billed
