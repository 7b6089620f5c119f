"""Each kind of entry that a session writer appends: what it holds, what is refused, what is announced."""

from typing import Any

import pytest

from camshaft.actors.host import CommandRefused, StorageError
from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.kernel.commands import AppendBranchSummary, AppendCompaction, AppendContextEdit, AppendCustom, AppendUsage, RecordSelection
from camshaft.kernel.entries import BranchSummaryEntry, CompactionDraft, CompactionEntry, UsageEntry
from camshaft.kernel.messages import SystemMessage, Usage
from camshaft.kernel.persistent import EMPTY, FrozenDict
from tests.actors.writing import ANSWER, HELLO, NO_SPACE, NOW_MS, PROMPT, appended, lines, opened


@pytest.fixture
def files() -> MemoryLogFiles:
    return MemoryLogFiles()


@pytest.mark.rule("SES-31")
@pytest.mark.parametrize(("extra", "stored"), [(EMPTY, {}), (FrozenDict({"data": None}), {"data": None})])
def test_state_without_data_and_with_null_are_told_apart(files: MemoryLogFiles, extra: FrozenDict, stored: dict[str, None]) -> None:
    with opened(files) as writer:
        appended(writer, HELLO, AppendCustom(custom_type="k", extra=extra))

        assert {name: value for name, value in lines(files)[-1].items() if name == "data"} == stored


@pytest.mark.rule("SES-26")
def test_an_empty_note_of_usage_is_none(files: MemoryLogFiles) -> None:
    with opened(files) as writer:
        (usage,) = writer.append(AppendUsage(kind="cache_warm", provider="p", model="m", usage=Usage(input=1), note=""))

        assert isinstance(usage, UsageEntry)
        assert usage.note is None


@pytest.mark.rule("SES-23")
def test_a_selection_of_both_values_makes_two_entries_in_a_chain(files: MemoryLogFiles) -> None:
    with opened(files) as writer:
        model, level = writer.append(RecordSelection(model=("p", "m"), thinking_level="low"))

        assert (model.type, level.type, level.parent_id) == ("model_change", "thinking_level_change", model.id)


@pytest.mark.rule("SES-27", "BND-28")
def test_a_compaction_that_keeps_nothing_names_itself(files: MemoryLogFiles) -> None:
    with opened(files) as writer:
        appended(writer, HELLO)

        (made,) = writer.append(AppendCompaction(draft=CompactionDraft(summary="S"), tokens_before=5))

        assert isinstance(made, CompactionEntry)
        assert (made.first_kept_entry_id, made.tokens_before, made.from_hook) == (made.id, 5, None)


@pytest.mark.rule("SES-28")
def test_a_compaction_holds_the_prompt_with_its_own_time(files: MemoryLogFiles) -> None:
    with opened(files) as writer:
        _, hello = appended(writer, PROMPT, HELLO)

        (made,) = writer.append(AppendCompaction(draft=CompactionDraft(summary="S", first_kept_entry_id=hello), tokens_before=5))

        assert isinstance(made, CompactionEntry)
        assert made.system_message == SystemMessage(content="Be brief.", timestamp=NOW_MS)
        assert made.first_kept_entry_id == hello


@pytest.mark.rule("BND-28", "CMP-45")
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_compaction_cannot_keep_from_an_entry_that_is_not_on_the_branch(files: MemoryLogFiles, elsewhere: bool) -> None:
    with opened(files) as writer:
        hello, answer = appended(writer, HELLO, ANSWER)
        writer.branch(hello)
        state = writer.state
        kept = {True: answer, False: "nope"}[elsewhere]

        with pytest.raises(CommandRefused, match=f"Entry {kept} is not on the active branch"):
            writer.append(AppendCompaction(draft=CompactionDraft(summary="S", first_kept_entry_id=kept), tokens_before=5))

        assert writer.state is state


@pytest.mark.rule("SES-30")
def test_a_branch_summary_goes_to_the_new_position_and_names_the_leaf_that_was_left(files: MemoryLogFiles) -> None:
    with opened(files) as writer:
        hello, answer = appended(writer, HELLO, ANSWER)

        (made,) = writer.append(AppendBranchSummary(entry_id=hello, summary="tried"))
        writer.reset()
        (rooted,) = writer.append(AppendBranchSummary(entry_id=None, summary="tried", from_hook=False))

        assert isinstance(made, BranchSummaryEntry)
        assert isinstance(rooted, BranchSummaryEntry)
        assert (made.parent_id, made.from_id, made.from_hook) == (hello, answer, None)
        assert (rooted.parent_id, rooted.from_id, rooted.from_hook) == (None, "root", False)
        assert writer.leaf_id == rooted.id


@pytest.mark.rule("LOOP-47", "CACHE-10")
def test_usage_and_edits_are_announced_and_summaries_are_not(files: MemoryLogFiles) -> None:
    heard: list[Any] = []
    with opened(files) as writer:
        (hello,) = appended(writer, HELLO)
        writer.subscribe(heard.append)

        announced = appended(
            writer,
            AppendUsage(kind="cache_warm", provider="p", model="m", usage=Usage()),
            AppendContextEdit(target_id=hello, replacement=None),
        )
        appended(
            writer,
            AppendCompaction(draft=CompactionDraft(summary="S"), tokens_before=5),
            AppendBranchSummary(entry_id=hello, summary="tried"),
        )

    assert [event.entry.id for event in heard] == announced


@pytest.mark.rule("SES-43")
def test_a_branch_summary_that_cannot_be_written_leaves_the_leaf(files: MemoryLogFiles) -> None:
    with opened(files) as writer:
        hello, answer = appended(writer, HELLO, ANSWER)
        files.fault = lambda operation: NO_SPACE if operation.kind == "write" else None

        with pytest.raises(StorageError):
            writer.append(AppendBranchSummary(entry_id=hello, summary="tried"))

        assert writer.leaf_id == answer
        files.fault = None
