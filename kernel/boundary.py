"""The two boundaries, `turn_end` and `agent_before_settle`: a fold over proposed entries.

One handler after the other is shown a proposal and may answer with a result. `reduce` folds
the answer; `RULES` holds what the two boundaries do differently; `seal` makes the final
entries. The session is never touched in between:

    proposal' = reduce(proposal, result, now, at)
    preview   = the projection of `now` extended by the drafts: O(drafts), whatever the length
    commit    = seal(proposal, now, stamps), one CommitBatch, posted to the session

Rules of the fold. A field that a result has replaces the proposal's (BND-10, BND-11). After
every handler all drafts are applied, in order, to a scratch extension of the branch as it is
*then*, because handlers may append (BND-14, BND-20). Validity is that of the final proposal:
a later handler may repair it (BND-21). While it is invalid, its entries are shown but the
context is, as a whole, the last valid one (BND-22). An error is reported once and blames the
extension whose return made it invalid. Invalid at the end: no entry and no continuation.

A draft cannot name another draft: preview ids are positional and never in the session (BND-24).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, assert_never

import attrs

from camshaft.kernel import codec, edits, estimates, shapes
from camshaft.kernel.clock import iso
from camshaft.kernel.commands import AppendCompaction, CommitBatch
from camshaft.kernel.compaction import compaction_entry
from camshaft.kernel.entries import (
    CompactionDraft,
    ContextEditDraft,
    ContextEditEntry,
    CustomDraft,
    CustomEntry,
    CustomMessageDraft,
    CustomMessageEntry,
    Draft,
    Entry,
)
from camshaft.kernel.errors import CodecError, Rejection
from camshaft.kernel.messages import AssistantMessage, Message, ModelMessage
from camshaft.kernel.persistent import FrozenDict, NotJson, freeze
from camshaft.kernel.projection import ContextEntry, Projection, extend
from camshaft.kernel.records import Decision
from camshaft.kernel.state import Queues, SessionState, Stamps

BoundaryKind = Literal["turn_end", "agent_before_settle"]

PREVIEW_ID: Final = "preview-{}"
"""Ids of previewed drafts, counted from 1: positional, so they need nothing from the world."""


@shapes.frozen(kw_only=True)
class BoundaryRule:
    """What one boundary does differently."""

    queued_makes_runnable: Literal["always", "after an assistant"]
    """When a waiting queue makes the context runnable (BND-30 c)."""
    continues_after: frozenset[str]
    """Outcomes after which an accepted continuation is honoured (BND-33, BND-34)."""


RULES: Final[Mapping[BoundaryKind, BoundaryRule]] = {
    "turn_end": BoundaryRule(queued_makes_runnable="always", continues_after=frozenset({"completed"})),
    "agent_before_settle": BoundaryRule(queued_makes_runnable="after an assistant", continues_after=frozenset({"completed", "error"})),
}


@shapes.frozen(kw_only=True)
class BoundaryResult:
    """What a boundary handler may return; a field left out keeps the proposal's."""

    entries: tuple[object, ...] | None = None
    """Drafts, or dicts with their snake_case fields; replaces all proposed so far."""
    continue_: bool | None = None
    """Whether the run asks the model once more."""


@shapes.frozen(kw_only=True)
class BoundaryContext:
    """What the context would be with the proposal appended; every field is computed when read."""

    kind: BoundaryKind
    projection: Projection
    queues: Queues

    @property
    def context_entries(self) -> Sequence[ContextEntry]:
        """Entries in context, each with the messages it contributes; drafts have preview ids."""
        return self.projection.context_entries

    @property
    def context_messages(self) -> Sequence[Message]:
        """The messages of those entries in their own roles."""
        return self.projection.messages

    @property
    def llm_messages(self) -> Sequence[ModelMessage]:
        """The same, converted for the model."""
        return self.projection.llm_messages

    @property
    def pending_messages(self) -> tuple[Message, ...]:
        """What the next turn would take from the queues, then all held messages (BND-3)."""
        queues = self.queues
        waiting, mode = (queues.steering, queues.steering_mode) if queues.steering else (queues.follow_up, queues.follow_up_mode)
        polled = waiting if mode == "all" else waiting[:1]
        return (*[item.message for item in polled], *queues.held)

    @property
    def can_continue(self) -> bool:
        """Whether a provider could answer (BND-30)."""
        if self.projection.runnable or self.queues.held:
            return True
        if not self.queues.waiting:
            return False
        return RULES[self.kind].queued_makes_runnable == "always" or _ends_with_assistant(self.projection)


@shapes.frozen(kw_only=True)
class Proposal:
    """The proposal so far."""

    kind: BoundaryKind
    entries: tuple[object, ...] = ()
    """Drafts; while invalid also whatever a handler returned."""
    continue_: bool = False
    valid: bool = True
    context: BoundaryContext
    """Preview of the last valid proposal."""
    continued_by: str | None = None
    """Extension whose return set `continue_` to true last, for the report of a limit (BND-35)."""


def begin(kind: BoundaryKind, now: SessionState) -> Proposal:
    """The empty proposal of a boundary. O(1)."""
    return Proposal(kind=kind, context=BoundaryContext(kind=kind, projection=now.projection, queues=now.queues))


def reduce(proposal: Proposal, result: BoundaryResult | None, now: SessionState, at_ms: int, extension: str) -> tuple[Proposal, str | None]:
    """The proposal after one handler, and the error to report against its extension, if any.

    `result` None means the handler returned nothing or raised; the preview is rebuilt all the same.
    """
    returned = result is not None and (result.entries is not None or result.continue_ is not None)
    if result is not None:
        proposal = _replaced(proposal, result, extension)
    applied = _applied(proposal.entries, now, at_ms)
    if isinstance(applied, Rejection):
        report = applied.why if proposal.valid or returned else None
        return attrs.evolve(proposal, valid=False), report
    context = BoundaryContext(kind=proposal.kind, projection=applied[0], queues=now.queues)
    return attrs.evolve(proposal, entries=applied[2], valid=True, context=context), None


def seal(proposal: Proposal, now: SessionState, turn_entry_id: str | None, stamps: Stamps) -> CommitBatch | Rejection:
    """The command that commits the proposal: final ids and times, checked once more against `now` (BND-40, BND-43).

    An invalid proposal gives a batch of nothing and no continuation. Needs one id per draft.
    """
    if not proposal.valid:
        return CommitBatch(entries=(), decision=Decision(turn_entry_id=turn_entry_id, continue_=False))
    applied = _applied(proposal.entries, now, stamps.now_ms, stamps.ids)
    if isinstance(applied, Rejection):
        return applied
    return CommitBatch(entries=applied[1], decision=Decision(turn_entry_id=turn_entry_id, continue_=proposal.continue_))


def can_continue(kind: BoundaryKind, now: SessionState) -> bool:
    """Whether a continuation asked for at this boundary is runnable in the session as it is (BND-31)."""
    return BoundaryContext(kind=kind, projection=now.projection, queues=now.queues).can_continue


def _replaced(proposal: Proposal, result: BoundaryResult, extension: str) -> Proposal:
    changes: dict[str, Any] = {}
    if result.entries is not None:
        changes["entries"] = tuple([item if isinstance(draft := _read(item), Rejection) else draft for item in result.entries])
    if result.continue_ is not None:
        changes["continue_"] = result.continue_
        changes["continued_by"] = extension if result.continue_ else None
    return attrs.evolve(proposal, **changes) if changes else proposal


def _applied(
    entries: tuple[object, ...], now: SessionState, at_ms: int, ids: Sequence[str] | None = None
) -> tuple[Projection, tuple[Entry, ...], tuple[Draft, ...]] | Rejection:
    """The branch with all drafts appended, the entries made and the drafts read; or the first fault with its index."""
    projection, tree, made, drafts = now.projection, now.tree, list[Entry](), list[Draft]()
    for index, item in enumerate(entries):
        draft = _read(item)
        entry_id = ids[index] if ids is not None else PREVIEW_ID.format(index + 1)
        entry = draft if isinstance(draft, Rejection) else _entry(draft, entry_id, at_ms, now, projection)
        if isinstance(draft, Rejection) or isinstance(entry, Rejection):
            fault = draft if isinstance(draft, Rejection) else entry
            assert isinstance(fault, Rejection)
            return Rejection(f"Invalid boundary entries: {_at(index, len(entries))}{fault.why}")
        tree = tree.append(entry)
        projection = extend(projection, tree, tree.length - 1)
        made.append(entry)
        drafts.append(draft)
    return projection, tuple(made), tuple(drafts)


def _at(index: int, count: int) -> str:
    return f"entries[{index}]: " if count > 1 else ""


def _read(item: object) -> Draft | Rejection:
    replacement = item.get("replacement") if isinstance(item, Mapping) else None
    more = {key: value for key, value in replacement.items() if key != "content"} if isinstance(replacement, Mapping) else {}
    if more and isinstance(item, Mapping) and isinstance(replacement, Mapping):
        item = {**item, "replacement": {key: value for key, value in replacement.items() if key == "content"}}
    try:
        draft: Draft = codec.PYTHON.structure(item, Draft)  # type: ignore[arg-type]  # a union is a type form, which cattrs takes
        return _as_given(draft, item, freeze(more, "replacement"))
    except (CodecError, NotJson) as error:
        return Rejection(str(error))


def _as_given(draft: Draft, item: object, more: FrozenDict) -> Draft:
    """The draft with what a dict spelled out beyond its fields: nulls, and further fields of a replacement."""
    if isinstance(draft, ContextEditDraft) and draft.replacement is not None and more:
        return attrs.evolve(draft, replacement=attrs.evolve(draft.replacement, extra=FrozenDict({**draft.replacement.extra, **more})))
    if isinstance(item, Mapping):
        optional = [field.name for field in attrs.fields(type(draft)) if field.default is None]
        nulls = {codec.camel(name): None for name in optional if name in item and item[name] is None}
        return attrs.evolve(draft, extra=FrozenDict({**draft.extra, **nulls})) if nulls else draft
    return draft


def _entry(draft: Draft, entry_id: str, at_ms: int, now: SessionState, projection: Projection) -> Entry | Rejection:
    """The entry of one draft on top of `projection`; `now` is the session without any draft."""
    tree = projection.tree
    parent = None if projection.leaf is None else tree.id_at(projection.leaf)
    at = iso(at_ms)
    match draft:
        case CustomDraft():
            return CustomEntry(
                id=entry_id, parent_id=parent, timestamp=at, custom_type=draft.custom_type, data=draft.data, extra=draft.extra
            )
        case CustomMessageDraft():
            return CustomMessageEntry(
                id=entry_id,
                parent_id=parent,
                timestamp=at,
                custom_type=draft.custom_type,
                content=draft.content,
                display=draft.display,
                details=draft.details,
                extra=draft.extra,
            )
        case ContextEditDraft():
            if now.tree.position(draft.target_id) is None:
                return Rejection(f"Entry {draft.target_id} not found")
            checked = edits.checked_replacement(tree, projection, draft.target_id, draft.replacement)
            if isinstance(checked, Rejection):
                return checked
            return ContextEditEntry(id=entry_id, parent_id=parent, timestamp=at, target_id=draft.target_id, replacement=checked)
        case CompactionDraft():
            tokens = estimates.projected(projection).tokens
            return compaction_entry(AppendCompaction(draft=draft, tokens_before=tokens, from_hook=True), projection, entry_id, at_ms)
        case _:
            assert_never(draft)


def _ends_with_assistant(projection: Projection) -> bool:
    messages = projection.llm_messages
    return bool(messages) and isinstance(messages[-1], AssistantMessage)
