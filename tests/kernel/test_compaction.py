"""Cut points, what is summarised, the requests and what becomes of their answers."""

from typing import Any

import pytest

from camshaft.kernel.compaction import drafted, history_request, prefix_request, prepare, requests
from camshaft.kernel.entries import Entry
from camshaft.kernel.estimates import CompactionLimits
from camshaft.kernel.messages import NO_USAGE, AssistantMessage, TextBlock, ToolCall, ToolResultMessage, Usage
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.projection import project
from camshaft.kernel.session_events import CompactionPreparation
from camshaft.kernel.summaries import (
    SummaryFailure,
    SummaryText,
    answered,
    conversation_text,
    details_of,
    file_lists,
    files_of_details,
    files_of_messages,
)
from camshaft.kernel.summary_texts import (
    BRANCH_SUMMARY_PROMPT,
    SUMMARIZATION_PROMPT,
    TURN_PREFIX_PROMPT,
    UPDATE_SUMMARIZATION_PROMPT,
)
from camshaft.kernel.tree import tree_of
from tests.kernel.made import assistant, compaction, edit, label, said, user

TEN = "x" * 40
"""Ten tokens."""
SIX: list[Entry] = [
    (assistant if number % 2 else user)(f"e{number}", f"e{number - 1}" if number else None, str(number) * 40) for number in range(6)
]


def prepared(entries: list[Entry], keep: int) -> CompactionPreparation | None:
    tree = tree_of(entries=entries)
    return prepare(project(tree, tree.length - 1 if entries else None), CompactionLimits(keep_recent_tokens=keep))


def answer(text: str = "S", **fields: Any) -> AssistantMessage:
    given: dict[str, Any] = {
        "content": (TextBlock(text=text),),
        "api": "x",
        "provider": "p",
        "model": "m",
        "stop_reason": "stop",
        "timestamp": 1,
    }
    return AssistantMessage(**{"usage": NO_USAGE, **given, **fields})


@pytest.mark.rule("CMP-26", "CMP-27", "CMP-30", "CMP-31")
@pytest.mark.parametrize(
    ("keep", "first", "summarised", "prefix"),
    [(0, "e5", 4, 1), (10, "e5", 4, 1), (11, "e4", 4, 0), (20, "e4", 4, 0), (21, "e3", 2, 1), (30, "e3", 2, 1), (50, "e1", 0, 1)],
)
def test_as_much_of_the_end_is_kept_as_the_settings_say(keep: int, first: str, summarised: int, prefix: int) -> None:
    found = prepared(SIX, keep)

    assert found is not None
    assert found.first_kept_entry_id == first
    assert (len(found.messages_to_summarize), len(found.turn_prefix_messages)) == (summarised, prefix)
    assert found.is_split_turn is (prefix > 0)


@pytest.mark.rule("CMP-22", "CMP-25")
@pytest.mark.parametrize("entries", [[], SIX, [*SIX, compaction("k", "e5", "e5")], [label("l", None, "l", "x")]])
def test_without_anything_to_summarise_there_is_no_preparation(entries: list[Entry]) -> None:
    assert prepared(entries, 61) is None


@pytest.mark.rule("CMP-23", "CMP-33")
def test_what_the_last_compaction_kept_is_summarised_again_with_its_summary_and_files() -> None:
    details = FrozenDict({"readFiles": ("b", 5), "modifiedFiles": "no list"})
    entries = [*SIX, compaction("k", "e5", "e4", details=details), user("n", "k", TEN), assistant("m", "n", TEN)]

    found = prepared(entries, 20)

    assert found is not None
    assert found.previous_summary == "S"
    assert [message.role for message in found.messages_to_summarize] == ["user", "assistant"]
    assert details_of(found.file_ops) == {"readFiles": ("b",), "modifiedFiles": ()}


@pytest.mark.rule("CMP-28")
@pytest.mark.parametrize("elsewhere", [True, False])
def test_an_input_too_long_to_be_kept_is_summarised_unless_another_entry_was_edited_after_it(elsewhere: bool) -> None:
    tail = edit("r", "o", "e0", "other") if elsewhere else edit("r", "o", "a")
    entries = [*SIX, user("u", "e5", "x" * 4000), assistant("a", "u", "par"), edit("o", "a", "a"), tail]

    found = prepared(entries, 100)

    assert found is not None
    assert found.first_kept_entry_id == ("u" if elsewhere else "a")


@pytest.mark.rule("CMP-33", "CMP-34")
def test_files_of_nested_calls_count_and_a_file_that_was_changed_is_not_listed_as_read() -> None:
    nested = FrozenDict({"calls": ({"name": "write", "arguments": {"path": "a"}}, {"name": "read", "arguments": {"path": 1}}, 5)})
    call = ToolCall(id="1", name="read", arguments=FrozenDict({"path": "a"}))
    other = ToolCall(id="2", name="read", arguments=FrozenDict({"path": "b"}))
    result = ToolResultMessage(tool_call_id="1", tool_name="read", is_error=False, nested_calls=nested, timestamp=1)

    files = files_of_messages([answer(content=(call, other)), result])

    assert details_of(files) == {"readFiles": ("b",), "modifiedFiles": ("a",)}


@pytest.mark.rule("CMP-33")
def test_a_call_without_a_path_to_speak_of_touched_no_file() -> None:
    calls = tuple([ToolCall(id=name, name=name, arguments=FrozenDict({"path": ""})) for name in ("read", "write", "edit")])

    assert file_lists(files_of_messages([answer(content=calls)])) == ""


@pytest.mark.rule("CMP-38", "CMP-39")
def test_an_earlier_summary_is_carried_on_in_the_recorded_form() -> None:
    found = prepared([compaction("k", None, "k"), *[user("a", "k", TEN), user("b", "a", TEN)]], 10)
    assert found is not None

    request = history_request(found, "the tests")

    assert request is not None
    assert request.prompt == (
        f"<conversation>\n[User]: {TEN}\n</conversation>\n\n<previous-summary>\nS\n</previous-summary>\n\n"
        f"{UPDATE_SUMMARIZATION_PROMPT}\n\nAdditional focus: the tests"
    )


@pytest.mark.rule("CMP-40", "CMP-41")
def test_a_divided_span_has_two_requests_and_one_summary_with_both_usages() -> None:
    found = prepared([*SIX, said("c", "e5", answer(content=(_read("f"),))), assistant("d", "c", TEN)], 10)
    assert found is not None
    labels = [request.label for request in requests(found)]
    usage = Usage(input=1, output=2)

    draft = drafted(found, [SummaryText(text="H", usage=usage), SummaryText(text="P", usage=usage)])

    assert labels == ["Summarization", "Turn prefix summarization"]
    assert draft.summary == "H\n\n---\n\n**Turn Context (split turn):**\n\nP\n\n<read-files>\nf\n</read-files>"
    assert draft.usage is not None
    assert (draft.usage.input, draft.usage.output) == (2, 4)


@pytest.mark.rule("CMP-40")
def test_the_beginning_of_the_only_span_is_summarised_without_a_request_for_a_history() -> None:
    found = prepared(SIX[:2], 0)
    assert found is not None

    draft = drafted(found, [SummaryText(text="P", usage=NO_USAGE)])

    assert (history_request(found), prefix_request(found) is not None) == (None, True)
    assert draft.summary == "No prior history.\n\n---\n\n**Turn Context (split turn):**\n\nP"


@pytest.mark.rule("CMP-42", "CMP-43", "CMP-44")
@pytest.mark.parametrize(
    ("message", "text"),
    [
        (answer(stop_reason="error"), "Summarization failed: Unknown error"),
        (answer(stop_reason="error", error_message="no"), "Summarization failed: no"),
        (answer(stop_reason="length"), "Summarization failed: generation hit the token cap and the summary is incomplete"),
        (answer(content=(ToolCall(id="1", name="n", arguments=FrozenDict()),)), "Summarization attempted to call a tool"),
        (answer(" \n"), "Summarization failed: empty summary"),
        (answer(stop_reason="aborted"), "Summarization aborted"),
    ],
)
def test_what_is_no_summary_is_refused_with_its_reason(message: AssistantMessage, text: str) -> None:
    found = answered("Summarization", message)

    assert isinstance(found, SummaryFailure)
    assert (found.text, found.aborted) == (text, message.stop_reason == "aborted")


@pytest.mark.rule("CMP-39", "CMP-40", "CMP-67")
@pytest.mark.parametrize("prompt", [SUMMARIZATION_PROMPT, UPDATE_SUMMARIZATION_PROMPT, BRANCH_SUMMARY_PROMPT])
def test_the_instructions_ask_for_the_headings_in_order(prompt: str) -> None:
    wanted = ["## Goal", "## Constraints & Preferences", "## Progress", "### Done", "### In Progress", "### Blocked"]
    wanted += ["## Key Decisions", "## Next Steps"] + ([] if prompt is BRANCH_SUMMARY_PROMPT else ["## Critical Context"])

    assert [line for line in prompt.splitlines() if line.startswith("#")] == wanted


@pytest.mark.rule("CMP-40")
def test_the_instructions_for_the_beginning_of_a_span_ask_for_its_headings() -> None:
    headings = [line for line in TURN_PREFIX_PROMPT.splitlines() if line.startswith("#")]
    assert headings == ["## Original Request", "## Progress So Far", "## Context Needed to Continue"]


@pytest.mark.rule("CMP-36")
def test_a_long_result_is_shown_shortened() -> None:
    result = ToolResultMessage(tool_call_id="1", tool_name="n", is_error=False, content=(TextBlock(text="r" * 2001),), timestamp=1)

    assert conversation_text([result]) == "[Tool result]: " + "r" * 2000 + "\n\n[... 1 more characters truncated]"


@pytest.mark.rule("CMP-33")
@pytest.mark.parametrize("details", [None, 5, "x", FrozenDict(), FrozenDict({"readFiles": FrozenDict()})])
def test_odd_details_of_an_earlier_summary_name_no_files(details: object) -> None:
    assert details_of(files_of_details(details)) == {"readFiles": (), "modifiedFiles": ()}


def _read(path: str) -> ToolCall:
    return ToolCall(id=path, name="read", arguments=FrozenDict({"path": path}))
