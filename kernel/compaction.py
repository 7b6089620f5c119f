"""Where a compaction cuts, what it summarises, and the entry it becomes (CMP-9 to CMP-49).

Theory of operation. The range is what the context shows now, after the compaction that
counts. From its end so much is kept as the settings say, and the cut falls on an entry that
can begin a kept part: never on a tool result, whose call would be lost. A span is a user's
message and what answered it. When the cut divides a span, its older part is summarised by a
request of its own, so that the kept part can be understood. What was kept by the last
compaction is summarised again, together with that one's summary.

Everything here works on the projection, so with edits applied: what was omitted is neither
kept nor summarised (CMP-22 to CMP-35).
"""

from collections.abc import Sequence
from typing import Final

from camshaft.kernel import shapes
from camshaft.kernel.clock import iso
from camshaft.kernel.commands import AppendCompaction
from camshaft.kernel.entries import CompactionDraft, CompactionEntry, ContextEditEntry, MessageEntry
from camshaft.kernel.errors import Rejection
from camshaft.kernel.estimates import CompactionLimits, estimate, projected, sum_usages
from camshaft.kernel.messages import (
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Message,
    SystemMessage,
    Usage,
    UserMessage,
)
from camshaft.kernel.persistent import FrozenDict, Json
from camshaft.kernel.projection import ContextEntry, Projection, extend
from camshaft.kernel.session_events import CompactionPreparation
from camshaft.kernel.summaries import (
    SummaryRequest,
    SummaryText,
    conversation_text,
    details_of,
    file_lists,
    files_of_details,
    files_of_messages,
    focused,
    joined_files,
)
from camshaft.kernel.summary_texts import (
    NO_PRIOR_HISTORY,
    SUMMARIZATION_PROMPT,
    TURN_PREFIX_HEADING,
    TURN_PREFIX_PROMPT,
    UPDATE_SUMMARIZATION_PROMPT,
)

ALREADY_TEXT: Final = "Already compacted"
NOTHING_TEXT: Final = "Nothing to compact (session too small)"
CANCELLED_TEXT: Final = "Compaction cancelled"
"""Why a compaction did not happen (CMP-18)."""

GAIN_MIN: Final = 0.1
"""A compaction that makes the context smaller by less than this part gains nothing: it is reported, and not repeated for the same input."""

_SPAN_STARTS: Final = (UserMessage, BashExecutionMessage, CustomMessage, BranchSummaryMessage, CompactionSummaryMessage)
_CANDIDATES: Final = (*_SPAN_STARTS, AssistantMessage)


# -- preparation -------------------------------------------------------------------------


def refusal(projection: Projection, preparation: CompactionPreparation | None) -> str | None:
    """Why a manual compaction cannot begin, or None (CMP-18)."""
    if projection.leaf is not None and isinstance(projection.tree.entry(projection.leaf), CompactionEntry):
        return ALREADY_TEXT
    return NOTHING_TEXT if preparation is None else None


def omitting(projection: Projection, entry_ids: Sequence[str]) -> Projection:
    """The context as it would be without these entries; nothing is stored."""
    tree = projection.tree
    for number, target in enumerate(entry_ids):
        parent = None if projection.leaf is None else tree.id_at(projection.leaf)
        edit = ContextEditEntry(id=f"omission {number}", parent_id=parent, timestamp=iso(0), target_id=target, replacement=None)
        tree = tree.append(edit)
        projection = extend(projection, tree, tree.length - 1)
    return projection


def prepare(projection: Projection, limits: CompactionLimits) -> CompactionPreparation | None:
    """What a compaction of this branch would do; None if there is nothing to summarise (CMP-22). O(context)."""
    if projection.leaf is None or isinstance(projection.tree.entry(projection.leaf), CompactionEntry):
        return None
    entries = tuple(projection.context_entries)
    head = entries[0].entry
    previous = head if isinstance(head, CompactionEntry) and entries[0].messages else None
    start = 0 if previous is None else 1
    if not any(_holds(each, _CANDIDATES) for each in entries[start:]):
        return None
    cut = _cut(projection, entries, start, limits.keep_recent_tokens)
    begin = next((at for at in range(cut - 1, start - 1, -1) if _starts_span(entries[at])), None)
    split = begin is not None and not _starts_span(entries[cut])
    history = _messages(entries[start : begin if split else cut])
    prefix = _messages(entries[begin:cut]) if split else ()
    if not history and not prefix:
        return None
    from_model = previous is not None and not previous.from_hook
    earlier = [files_of_details(previous.details)] if from_model and previous is not None else []
    return CompactionPreparation(
        first_kept_entry_id=entries[cut].entry.id,
        messages_to_summarize=history,
        turn_prefix_messages=prefix,
        is_split_turn=split,
        tokens_before=projected(projection).tokens,
        previous_summary=None if previous is None else previous.summary,
        file_ops=joined_files([*earlier, files_of_messages(history), files_of_messages(prefix)]),
        settings=limits,
    )


def _cut(projection: Projection, entries: Sequence[ContextEntry], start: int, keep: int) -> int:
    """Index of the first kept entry (CMP-24 to CMP-29); there is at least one candidate."""
    candidates = [at for at in range(start, len(entries)) if _holds(entries[at], _CANDIDATES)]
    full = _filled_at(entries, start, keep)
    if full is None:
        cut = candidates[0]
    else:
        cut = next((at for at in candidates if at >= full), candidates[-1])
        cut += _is_recovery_suffix(projection, entries[cut + 1 :])
    while cut > start and not entries[cut - 1].messages and not isinstance(entries[cut - 1].entry, CompactionEntry):
        cut -= 1
    return cut


def _filled_at(entries: Sequence[ContextEntry], start: int, keep: int) -> int | None:
    """Where the tokens to keep are reached, from the end; None if never (CMP-26)."""
    total = 0
    for at in range(len(entries) - 1, start - 1, -1):
        size = sum([estimate(message) for message in entries[at].messages])
        total += size
        if size and total >= keep:
            return at
    return None


def _is_recovery_suffix(projection: Projection, suffix: Sequence[ContextEntry]) -> bool:
    """Whether only an omitted attempt follows the cut, so that the input itself is too long to be kept (CMP-28)."""
    if any(each.messages or isinstance(each.entry, CompactionEntry) for each in suffix):
        return False
    omitted = {each.entry.id for each in suffix if _is_omitted(projection, each)}
    attempts = [each for each in suffix if each.entry.id in omitted and _is_answer(each)]
    edits = [each.entry for each in suffix if isinstance(each.entry, ContextEditEntry) and each.entry.replacement is not None]
    return bool(attempts) and all(edit.target_id in omitted for edit in edits)


def _is_omitted(projection: Projection, each: ContextEntry) -> bool:
    edit = projection.edits.get(each.entry.id)
    return edit is not None and edit.replacement is None


def _is_answer(each: ContextEntry) -> bool:
    return isinstance(each.entry, MessageEntry) and isinstance(each.entry.message, AssistantMessage)


def _starts_span(each: ContextEntry) -> bool:
    return _holds(each, _SPAN_STARTS)


def _holds(each: ContextEntry, kinds: tuple[type, ...]) -> bool:
    return not isinstance(each.entry, CompactionEntry) and any(isinstance(message, kinds) for message in each.messages)


def _messages(entries: Sequence[ContextEntry]) -> tuple[Message, ...]:
    """What is summarised of these entries (CMP-31)."""
    kept = [each for each in entries if not isinstance(each.entry, CompactionEntry)]
    return tuple([message for each in kept for message in each.messages if not isinstance(message, SystemMessage)])


# -- the summary -------------------------------------------------------------------------


def history_request(preparation: CompactionPreparation, focus: str | None = None) -> SummaryRequest | None:
    """The request for what comes before the kept part, or before the divided span; None if there is none (CMP-38)."""
    messages, previous = preparation.messages_to_summarize, preparation.previous_summary
    if not messages:
        return None
    known = f"<previous-summary>\n{previous}\n</previous-summary>\n\n" if previous else ""
    instructions = UPDATE_SUMMARIZATION_PROMPT if previous else SUMMARIZATION_PROMPT
    prompt = f"<conversation>\n{conversation_text(messages)}\n</conversation>\n\n{known}{focused(instructions, focus)}"
    return SummaryRequest(label="Summarization", prompt=prompt)


def prefix_request(preparation: CompactionPreparation, focus: str | None = None) -> SummaryRequest | None:
    """The request for the older part of a divided span; None if the cut divides none (CMP-40)."""
    if not preparation.is_split_turn or not preparation.turn_prefix_messages:
        return None
    text = conversation_text(preparation.turn_prefix_messages)
    prompt = f"# Conversation\n{text}\n\n# Instructions\n{focused(TURN_PREFIX_PROMPT, focus)}"
    return SummaryRequest(label="Turn prefix summarization", prompt=prompt)


def requests(preparation: CompactionPreparation, focus: str | None = None) -> tuple[SummaryRequest, ...]:
    """The requests a compaction makes, in order."""
    both = (history_request(preparation, focus), prefix_request(preparation, focus))
    return tuple([request for request in both if request is not None])


def drafted(preparation: CompactionPreparation, answers: Sequence[SummaryText]) -> CompactionDraft:
    """The compaction made of the answers to `requests`, in their order (CMP-40, CMP-41)."""
    left = list(answers)
    if preparation.messages_to_summarize:
        text = left.pop(0).text
    else:
        text = preparation.previous_summary or NO_PRIOR_HISTORY
    if left:
        text += TURN_PREFIX_HEADING + left.pop(0).text
    return CompactionDraft(
        summary=text + file_lists(preparation.file_ops),
        first_kept_entry_id=preparation.first_kept_entry_id,
        details=details_of(preparation.file_ops),
        usage=sum_usages([answer.usage for answer in answers]),
    )


# -- the entry and its result ------------------------------------------------------------


def compaction_entry(command: AppendCompaction, projection: Projection, entry_id: str, at_ms: int) -> CompactionEntry | Rejection:
    """The compaction as the next entry of the projection's branch, or why it is refused.

    It holds the prompt and tools as they are there, so that reading it needs nothing before
    it. One that keeps nothing names itself as the first kept entry. An entry that is not on
    the branch cannot be kept from; a file that says so is still read, and keeps nothing.
    A null that was written out in the draft is not stored beside the id that replaces it.
    """
    draft, tree = command.draft, projection.tree
    kept = draft.first_kept_entry_id
    position = None if kept is None else tree.position(kept)
    if kept is not None and (position is None or not projection.is_on_branch(position)):
        return Rejection(f"Entry {kept} is not on the active branch; first_kept_entry_id names an entry of it, or is None")
    system = projection.system
    return CompactionEntry(
        id=entry_id,
        parent_id=None if projection.leaf is None else tree.id_at(projection.leaf),
        timestamp=iso(at_ms),
        summary=draft.summary,
        first_kept_entry_id=entry_id if kept is None else kept,
        tokens_before=command.tokens_before,
        details=draft.details,
        usage=draft.usage,
        from_hook=command.from_hook,
        system_message=None if system is None else system.as_message(timestamp=at_ms),
        extra=FrozenDict({name: item for name, item in draft.extra.items() if name != "firstKeptEntryId"}),
    )


@shapes.frozen(kw_only=True)
class CompactionResult:
    """What a compaction did, for its caller and for hosts (CMP-20)."""

    summary: str
    first_kept_entry_id: str | None
    tokens_before: int
    estimated_tokens_after: int
    """Sum of the estimates of all messages of the new context."""
    usage: Usage | None = None
    details: Json = None


def result_of(entry: CompactionEntry, after: Projection) -> CompactionResult:
    """The result of the compaction `entry`, of which `after` is the context."""
    return CompactionResult(
        summary=entry.summary,
        first_kept_entry_id=entry.first_kept_entry_id,
        tokens_before=entry.tokens_before,
        estimated_tokens_after=sum([estimate(message) for message in after.messages]),
        usage=entry.usage,
        details=entry.details,
    )
