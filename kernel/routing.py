"""What a router of a virtual model is asked, what it answers, and what both mean (VM-6 to VM-8, VM-12, VM-16).

A virtual model is selected; which physical model gets a request is asked anew before each one.
A router is told why there is a request, who answered before, and the state it gave last. That
state is an entry of the branch, so it goes where the branch goes: another branch, a fork, a
later process. Messages of routing that failed name the virtual model itself; they are no answer
of anybody, and count neither as the previous nor as a failed answer, nor for what was selected.
"""

from collections.abc import Callable, Sequence
from typing import Final, Literal

import attrs

from camshaft.kernel import shapes
from camshaft.kernel.entries import CustomEntry, MessageEntry
from camshaft.kernel.kinds import ASSISTANT, MODEL, NOTHING
from camshaft.kernel.messages import FAILED, AssistantMessage, Message, ModelMessage, UserMessage
from camshaft.kernel.models import VIRTUAL_API, Model
from camshaft.kernel.persistent import FrozenDict, Json
from camshaft.kernel.projection import Projection
from camshaft.kernel.run_data import Run
from camshaft.kernel.state import SessionState
from camshaft.kernel.tools import Signal

STATE_TYPE: Final = "pi.virtual-model-state"
"""`customType` of the entry that holds what a router wants to remember (VM-12)."""

RouteReason = Literal["user", "continuation", "retry", "direct"]
"""Why there is a request (VM-7).

`user`: somebody said something since the last answer. `retry`: the last answer failed and is
asked for again, perhaps after a compaction. `direct`: the request is no part of the conversation,
such as one for a summary. `continuation`: anything else, mostly results of tools.
"""


@shapes.frozen(kw_only=True)
class PreviousAnswer:
    """Who gave the last good answer."""

    model: Model
    """A physical one, as the catalogue has it now."""
    thinking_level: str | None = None
    """The level it was asked with."""


@shapes.frozen(kw_only=True)
class FailedAnswer:
    """Who gave the answer that is asked for again."""

    model: Model
    thinking_level: str | None = None
    message: AssistantMessage
    """The answer; `error_message` says why it failed."""


@shapes.frozen(kw_only=True)
class RouteRequest:
    """What a router is asked. Frozen all the way down."""

    model: Model
    """The virtual model that is selected."""
    thinking_level: str
    """The level that is selected with it."""
    reason: RouteReason
    previous: PreviousAnswer | None = None
    """None if nobody answered yet, or who did is not in the catalogue any more."""
    failed: FailedAnswer | None = None
    """With the reason `retry` only."""
    state: Json = None
    """What the router gave last on this branch; None before that, and for the reason `direct`."""
    messages: Sequence[ModelMessage]
    """The conversation, system messages included; for a request of an extension what it asks. May be a lazy view."""
    signal: Signal
    """Set when the request is no longer wanted."""


@shapes.frozen(kw_only=True)
class Route:
    """What a router answers."""

    model: Model | str
    """A physical model, or its `provider/id`. The catalogue's own record of it is used."""
    thinking_level: str | None = None
    """Clamped to the model; None: the selected level."""
    state: Json = None
    """What `RouteRequest.state` shall be next time, a JSON value; None, or the state of the request itself: as it is."""


FindModel = Callable[[str, str], Model | None]
"""The physical model of a provider and id, or None."""


def reason_of(run: Run, messages: Sequence[Message]) -> RouteReason:
    """Why a run makes a request for these messages; that it is a retry counts more than what somebody said meanwhile."""
    if _is_retry(run):
        return "retry"
    for message in reversed(messages):
        if isinstance(message, AssistantMessage):
            return "continuation"
        if isinstance(message, UserMessage):
            return "user"
    return "continuation"


def failed_of(run: Run, find: FindModel) -> FailedAnswer | None:
    """The answer that a run asks for again, if it is one of a physical model that is known."""
    if not _is_retry(run) or run.last is None or run.last.message.api == VIRTUAL_API:
        return None
    message = run.last.message
    model = find(message.provider, message.model)
    return None if model is None else FailedAnswer(model=model, thinking_level=message.thinking_level, message=message)


def previous_of(messages: Sequence[Message], find: FindModel) -> PreviousAnswer | None:
    """Who gave the last answer among `messages` that did not fail."""
    for message in reversed(messages):
        if isinstance(message, AssistantMessage) and message.stop_reason not in FAILED and message.api != VIRTUAL_API:
            model = find(message.provider, message.model)
            return None if model is None else PreviousAnswer(model=model, thinking_level=message.thinking_level)
    return None


def last_answer(messages: Sequence[Message]) -> AssistantMessage | None:
    """The last message of a physical model, failed or not."""
    for message in reversed(messages):
        if isinstance(message, AssistantMessage) and message.api != VIRTUAL_API:
            return message
    return None


def _is_retry(run: Run) -> bool:
    """Whether the last answer was taken out of the context to be asked for again."""
    return run.last is not None and run.last.entry_id == run.omitted and (run.attempt > 0 or run.job == "recovery")


# -- state -------------------------------------------------------------------------------


def state_data(model: Model, state: Json) -> FrozenDict:
    """The data of a state entry; `state` is frozen."""
    return FrozenDict({"provider": model.provider, "modelId": model.id, "state": state})


def is_news(given: object, before: Json) -> bool:
    """Whether a router gave another state than the one it was given (VM-12).

    The same object is none, and neither is an equal text, number or boolean; an equal object or list that was made
    anew is one.
    """
    if given is None or given is before:
        return False
    if isinstance(given, (str, int, float)):
        return isinstance(given, bool) is not isinstance(before, bool) or given != before
    return True


@shapes.define(eq=False)
class RouterStates:
    """The states of routers on the branch that is active, found by looking back once and then at what was added.

    Reading one decodes the entries that are no message, back to the last state of the model, or to the leaf that was
    looked at last.
    """

    _seen: dict[tuple[str, str], tuple[int, Json]] = attrs.field(factory=dict)
    """By provider and model id: a position up to which the branch was looked at, and the state there."""

    def latest(self, projection: Projection, model: Model) -> Json:
        """The state of the router of `model`, compacted parts of the branch included; None if there is none."""
        if projection.leaf is None:
            return None
        key = (model.provider, model.id)
        seen_at, seen = self._seen.get(key, (-1, None))
        index = projection.index_of(seen_at)
        state = _state_after(projection, key, index, None if index < 0 else seen)
        self._seen[key] = (projection.leaf, state)
        return state


def _state_after(projection: Projection, key: tuple[str, str], first: int, otherwise: Json) -> Json:
    """The last state of a model behind the path index `first`."""
    path, tree = projection.path, projection.tree
    for index in range(len(path) - 1, first, -1):
        entry = tree.entry(path[index]) if tree.kind(path[index]) == NOTHING else None
        data = entry.data if isinstance(entry, CustomEntry) and entry.custom_type == STATE_TYPE else None
        if isinstance(data, FrozenDict) and (data.get("provider"), data.get("modelId")) == key:
            return data.get("state")
    return otherwise


# -- selection ---------------------------------------------------------------------------

IsVirtual = Callable[[tuple[str, str]], bool]
"""Whether a provider and id name a virtual model that is registered."""


def implied_model(state: SessionState, is_virtual: IsVirtual) -> tuple[str, str] | None:
    """Provider and id of the model that the branch was left with (VM-16). O(branch), in C.

    The model that was selected last, if it is a virtual one or nobody answered since; else who answered last.
    """
    selected = state.projection.selected_model
    if selected is not None and is_virtual(selected):
        return selected
    leaf = state.projection.leaf
    if leaf is None:
        return None
    path = state.tree.branch(leaf)
    kinds = state.tree.kinds(path)
    end, first = len(kinds), kinds.rfind(MODEL)
    while (end := kinds.rfind(ASSISTANT, first + 1, end)) >= 0:
        entry = state.tree.entry(path[end])
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage) and entry.message.api != VIRTUAL_API:
            return entry.message.provider, entry.message.model
    return selected


def model_to_record(state: SessionState, is_virtual: IsVirtual) -> tuple[str, str] | None:
    """The selected model, if the next run has to record it because the branch implies another one (VM-16).

    Not if both are physical: then the answer itself names who gave it (CTX-2).
    """
    model = state.selection.model
    if model is None:
        return None
    implied = implied_model(state, is_virtual)
    if implied is None or implied == (model.provider, model.id):
        return None
    return (model.provider, model.id) if model.is_virtual or is_virtual(implied) else None
