"""Whether the context has to be compacted now, and why: recovery and threshold (RTY-20 to RTY-33, CMP-14 to CMP-17).

Three moments ask. After a low-level run, and before a prompt, the last answer is looked at:
an overflow can be recovered from once, what lies beyond that is told once, and an answer that
says how full the context is may be followed by a compaction. Between turns the estimate of
the context counts; if the selected model is virtual, then not between turns but when a request
was routed, with the window of the model that it goes to. An answer from before the last compaction says nothing any more (CMP-16).

A compaction that gained nothing is not repeated for the same input: as long as it is the one
that counts and the context has not grown by more than what would have been a gain.
"""

from enum import Enum
from typing import Final

from camshaft.kernel import retries
from camshaft.kernel.compaction import GAIN_MIN, NOTHING_TEXT, omitting, prepare
from camshaft.kernel.contribution import entry_time_ms
from camshaft.kernel.estimates import compaction_due, context_tokens, estimate, limits_for, plain, projected
from camshaft.kernel.messages import AssistantMessage, ToolResultMessage
from camshaft.kernel.models import Model
from camshaft.kernel.projection import Projection
from camshaft.kernel.run_data import Barren, Last, Run, View
from camshaft.kernel.session_events import CompactionPreparation, CompactionReason
from camshaft.kernel.state import SessionState

PREFIXES: Final = {
    "manual": "Compaction failed: ",
    "threshold": "Auto-compaction failed: ",
    "overflow": "Context overflow recovery failed: ",
}
"""What the error text of a failed compaction begins with, by reason (CMP-19)."""

BEYOND_OVERFLOW: Final = (
    "Context overflow recovery failed after one compact-and-retry attempt. Try reducing context or switching to a larger-context model."
)
BEYOND_LENGTH: Final = "Truncated response recovery failed after one compact-and-retry attempt."
"""What is told of a second failure (CMP-57)."""


class Need(Enum):
    """What the last answer asks for."""

    NOTHING = "nothing"
    RECOVERY = "take the answer out, compact, ask again"
    BEYOND = "tell that there is no recovery"
    COMPACTION = "compact, then go on"


def need(run: Run, view: View, *, before_prompt: bool = False) -> Need:
    """What the last answer of `run` asks for; an aborted one counts before a prompt only (CMP-14). Raises BadSetting."""
    state, last, model = view.state, run.last, view.limiting
    if last is None or model is None or not state.settings.compaction.enabled or last.entry_id == run.omitted:
        return Need.NOTHING
    if _is_older_than_compaction(state.projection, last.entry_id, last.message):
        return Need.NOTHING
    if _is_recoverable(last, model, state.projection):
        if not run.tried and _prepared(state, omitting(state.projection, attempt(state.projection, last.entry_id))) is not None:
            return Need.RECOVERY
        return Need.NOTHING if last.entry_id in run.reported else Need.BEYOND
    if last.message.stop_reason == "aborted" and not before_prompt:
        return Need.NOTHING
    full = is_silent_overflow(last, view) or _is_past_threshold(state, model, _tokens(state.projection, last.message))
    return Need.COMPACTION if full and _can_gain(state, view.barren) else Need.NOTHING


def due_between_turns(view: View) -> bool:
    """Whether the next request would be too large, by the estimate of the context (RTY-31). Raises BadSetting.

    Never for a virtual model: which window counts is known only when the request is routed (CMP-14).
    """
    model = view.state.selection.model
    return model is not None and not model.is_virtual and due_before_request(view, model)


def due_before_request(view: View, model: Model) -> bool:
    """Whether a request to `model` would be too large, by the estimate of the context (CMP-14, VM-14). Raises BadSetting."""
    state = view.state
    if not state.settings.compaction.enabled or state.live.aborting:
        return False
    return _is_past_threshold(state, model, projected(state.projection).tokens) and _can_gain(state, view.barren)


def prepared(state: SessionState) -> CompactionPreparation | None:
    """The compaction of the active branch under the settings of the selected model. Raises BadSetting."""
    return _prepared(state, state.projection)


def is_silent_overflow(last: Last, view: View) -> bool:
    """Whether a good answer took in more than the window holds: compact, but keep it (RTY-23)."""
    model = view.limiting
    return (
        model is not None
        and last.message.stop_reason == "stop"
        and retries.is_overflow(last.message, model.context_window)
        and _is_untouched(last, model, view.state.projection)
    )


def reason_of(run: Run, view: View) -> CompactionReason:
    """Why a run compacts (CMP-19)."""
    silent = run.last is not None and is_silent_overflow(run.last, view)
    return "overflow" if run.job == "recovery" or silent else "threshold"


def attempt(projection: Projection, entry_id: str) -> tuple[str, ...]:
    """The answer with this id and its tool results: what follows it before the next answer (CMP-55)."""
    found: list[str] = []
    for each in reversed(projection.context_entries):
        if each.entry.id == entry_id:
            return (entry_id, *reversed(found))
        if any(isinstance(message, AssistantMessage) for message in each.messages):
            found.clear()
        elif any(isinstance(message, ToolResultMessage) for message in each.messages):
            found.append(each.entry.id)
    return (entry_id,)


def beyond_text(run: Run) -> str:
    """What is told of an answer that cannot be recovered from (RTY-24, RTY-25)."""
    if not run.tried:
        return PREFIXES["overflow"] + NOTHING_TEXT
    is_length = run.last is not None and run.last.message.stop_reason == "length" and run.last.message.usage.output > 0
    return BEYOND_LENGTH if is_length else BEYOND_OVERFLOW


def context_size(projection: Projection) -> int:
    """Sum of the estimates of all messages in context, in tokens. O(context)."""
    return sum([estimate(message) for message in projection.messages])


def barren_after(before: int, after: Projection) -> Barren | None:
    """What to remember of the compaction that now counts in `after`, if the context of `before` tokens gained nothing by it."""
    tokens, at = context_size(after), after.compaction_position
    if at is None or tokens < before * (1 - GAIN_MIN):
        return None
    return Barren(entry_id=after.tree.id_at(at), tokens=tokens)


# -- parts of the checks -----------------------------------------------------------------


def _is_older_than_compaction(projection: Projection, entry_id: str, message: AssistantMessage) -> bool:
    """Whether the last compaction came after the answer was begun (CMP-16); in the same millisecond their order on the branch counts."""
    at = projection.compaction_position
    if at is None:
        return False
    compacted_ms = entry_time_ms(projection.tree.timestamp(at))
    position = projection.tree.position(entry_id)
    comes_after = position is not None and projection.index_of(position) > projection.compaction_index
    return message.timestamp < compacted_ms or (message.timestamp == compacted_ms and not comes_after)


def _is_recoverable(last: Last, model: Model, projection: Projection) -> bool:
    """An overflow error, or an answer cut with room left, of the current model and still in the context (RTY-20 to RTY-22)."""
    message = last.message
    if (message.provider, message.model) != (model.provider, model.id):
        return False
    if message.stop_reason == "error":
        return retries.is_overflow(message, model.context_window) and _is_shown(last, projection)
    cut = retries.is_overflow(message, model.context_window) or retries.is_recoverable_length(message, model.max_tokens)
    return message.stop_reason == "length" and not message.tool_calls and cut and _is_untouched(last, model, projection)


def _is_shown(last: Last, projection: Projection) -> bool:
    """Whether the answer is part of the context."""
    position = projection.tree.position(last.entry_id)
    index = -1 if position is None else projection.index_of(position)
    edit = projection.edits.get(last.entry_id)
    return index >= 0 and projection.is_selected(index) and (edit is None or edit.replacement is not None)


def _is_untouched(last: Last, model: Model, projection: Projection) -> bool:
    """Whether the sizes an answer tells are those of the context as it is: its model's, shown, nothing edited since (CMP-53)."""
    position = projection.tree.position(last.entry_id)
    same = (last.message.provider, last.message.model) == (model.provider, model.id)
    return same and position is not None and _is_shown(last, projection) and projection.edit_index < projection.index_of(position)


def _tokens(projection: Projection, message: AssistantMessage) -> int:
    """How full the context is, by the last answer (CMP-17); 0 if nothing newer than the last compaction says so."""
    if projection.edited:
        return projected(projection).tokens
    own = context_tokens(message.usage)
    if message.stop_reason != "error" and own > 0:
        return own
    found = plain(projection.messages)
    if found.last_usage_index is None:
        return found.tokens
    source = projection.messages[found.last_usage_index]
    entry = projection.entry_of(source)
    assert isinstance(source, AssistantMessage) and entry is not None
    return 0 if _is_older_than_compaction(projection, entry.id, source) else found.tokens


def _is_past_threshold(state: SessionState, model: Model, tokens: int) -> bool:
    """Whether so many tokens are too many for the window of `model`; the settings are those of the selected one (CMP-10)."""
    selected = state.selection.model or model
    return compaction_due(tokens, model.context_window, limits_for(state.settings.compaction, selected.reference))


def _can_gain(state: SessionState, barren: Barren | None) -> bool:
    """Whether there is something to compact, other than what a compaction gained nothing from."""
    return prepared(state) is not None and not _is_barren(state.projection, barren)


def _is_barren(projection: Projection, barren: Barren | None) -> bool:
    at = projection.compaction_position
    if barren is None or at is None or projection.tree.id_at(at) != barren.entry_id:
        return False
    return context_size(projection) <= barren.tokens * (1 + GAIN_MIN)


def _prepared(state: SessionState, projection: Projection) -> CompactionPreparation | None:
    model = state.selection.model
    return prepare(projection, limits_for(state.settings.compaction, None if model is None else model.reference))
