"""Vector family `branch-summary`: what is left behind, what of it fits, the summary (VECTORS.md 5.10)."""

from typing import Any

from camshaft.kernel import codec
from camshaft.kernel.branch_summaries import BranchContent, branch_content, branch_request, budget_of, left_branch, stored_branch_summary
from camshaft.kernel.messages import AssistantMessage
from camshaft.kernel.summaries import SummaryFailure, answered, modified_files, read_files
from tests.conformance.session_lines import tree_of_lines
from tests.conformance.vectors.compaction import brief


def run(case_input: dict[str, Any]) -> object:
    """The entries that are left, the messages that fit, or a summary with its requests."""
    tree = tree_of_lines(case_input)
    if case_input["op"] == "collect":
        target = tree.position(case_input["to"])
        assert target is not None
        start = case_input["from"]
        left = left_branch(tree, None if start is None else tree.position(start), target)
        return {"entries": [entry.id for entry in left.entries], "commonAncestorId": left.common_ancestor_id}
    entries = tuple(tree.entries())
    if case_input["op"] == "prepare":
        found = branch_content(tree, entries, case_input["budget"])
        return {"messages": [brief(message) for message in found.messages], "totalTokens": found.total_tokens, **_files(found)}
    return _generated(branch_content(tree, entries, budget_of(case_input["contextWindow"], case_input["reserveTokens"])), case_input)


def _generated(content: BranchContent, case_input: dict[str, Any]) -> dict[str, Any]:
    request = branch_request(content, case_input.get("customInstructions"), case_input.get("replaceInstructions", False))
    if request is None:
        return {"requests": [], "summary": stored_branch_summary(content, None), **_files(content)}
    message = codec.decode_message(case_input["replies"][0])
    assert isinstance(message, AssistantMessage)
    answer = answered(request.label, message)
    if isinstance(answer, SummaryFailure):
        failed: dict[str, Any] = {"aborted": True} if answer.aborted else {"error": answer.text}
        return {"requests": [request.prompt], **failed}
    summary = stored_branch_summary(content, answer.text)
    return {"requests": [request.prompt], "summary": summary, "usage": codec.encode(answer.usage), **_files(content)}


def _files(content: BranchContent) -> dict[str, Any]:
    return {"readFiles": list(read_files(content.file_ops)), "modifiedFiles": list(modified_files(content.file_ops))}
