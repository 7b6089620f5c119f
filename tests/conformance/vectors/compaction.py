"""Vector family `compaction`: cut points, preparation, summary requests, the stored summary (VECTORS.md 5.9)."""

from collections.abc import Sequence
from typing import Any

from camshaft.kernel import codec
from camshaft.kernel.compaction import drafted, prepare, requests
from camshaft.kernel.estimates import compaction_limits
from camshaft.kernel.messages import AssistantMessage, Message, OpaqueMessage, TextBlock, ToolCall
from camshaft.kernel.projection import project
from camshaft.kernel.session_events import CompactionPreparation
from camshaft.kernel.summaries import SummaryFailure, answered, conversation_text, file_lists, files_of_details, modified_files, read_files
from tests.conformance.session_lines import tree_of_lines

SHOWN_CHARACTERS = 24


def run(case_input: dict[str, Any]) -> object:
    """A preparation, a compaction with its requests, a text."""
    match case_input["op"]:
        case "prepare":
            found = _prepared(case_input)
            return None if found is None else _shown(found)
        case "compact":
            return _compacted(case_input)
        case "serialize":
            return conversation_text([codec.decode_message(message) for message in case_input["messages"]])
        case _:
            return file_lists(files_of_details(case_input))


def brief(message: Message) -> list[str]:
    """A message as `[role, text]`."""
    if isinstance(message, OpaqueMessage):
        raw = codec.encode(message)
        return [str(message.role), _brief_text(raw.get("content", ""))]
    for name in ("command", "summary"):
        if hasattr(message, name):
            return [message.role, getattr(message, name)[:SHOWN_CHARACTERS]]
    return [message.role, _brief_text(getattr(message, "content", ""))]


def _brief_text(content: Any) -> str:
    text = content if isinstance(content, str) else "|".join([_brief_block(block) for block in content])
    return text[:SHOWN_CHARACTERS]


def _brief_block(block: Any) -> str:
    if isinstance(block, TextBlock):
        return block.text
    return block.name if isinstance(block, ToolCall) else str(block.type)


def _prepared(case_input: dict[str, Any]) -> CompactionPreparation | None:
    tree = tree_of_lines(case_input)
    leaf = tree.length - 1 if tree.length else None
    return prepare(project(tree, leaf), compaction_limits(case_input["settings"]))


def _shown(found: CompactionPreparation) -> dict[str, Any]:
    previous = {} if found.previous_summary is None else {"previousSummary": found.previous_summary}
    return {
        "firstKeptEntryId": found.first_kept_entry_id,
        "isSplitTurn": found.is_split_turn,
        "tokensBefore": found.tokens_before,
        **previous,
        "messagesToSummarize": [brief(message) for message in found.messages_to_summarize],
        "turnPrefixMessages": [brief(message) for message in found.turn_prefix_messages],
        "readFiles": list(read_files(found.file_ops)),
        "modifiedFiles": list(modified_files(found.file_ops)),
    }


def _compacted(case_input: dict[str, Any]) -> dict[str, Any]:
    preparation = _prepared(case_input)
    assert preparation is not None
    shown: list[dict[str, Any]] = []
    answers = []
    replies = iter(case_input["replies"])
    for request in requests(preparation, case_input.get("customInstructions")):
        messages = request.messages(0)
        shown.append({"messages": _sent(messages), "cacheRetention": "none", "tools": False})
        message = codec.decode_message(next(replies))
        assert isinstance(message, AssistantMessage)
        answer = answered(request.label, message)
        if isinstance(answer, SummaryFailure):
            return {"requests": shown, "error": answer.text}
        answers.append(answer)
    draft = drafted(preparation, answers)
    return {
        "requests": shown,
        "summary": draft.summary,
        "firstKeptEntryId": draft.first_kept_entry_id,
        "tokensBefore": preparation.tokens_before,
        "usage": codec.encode(draft.usage),
        "details": codec.encode(draft.details),
    }


def _sent(messages: Sequence[Any]) -> list[list[str]]:
    return [[message.role, message.content if isinstance(message.content, str) else message.content[0].text] for message in messages]
