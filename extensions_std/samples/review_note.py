"""A sample: notes each turn in the session, and asks for one review before a run settles.

It keeps nothing in memory: whether a review was asked for is read from the context that the boundary would
leave, so it also holds after the session was closed and opened again.
"""

from collections.abc import Sequence
from typing import Final

from camshaft.actors.api import (
    AgentBeforeSettleEvent,
    BoundaryResult,
    CustomDraft,
    CustomMessage,
    CustomMessageDraft,
    ExtensionAPI,
    ExtensionContext,
    Message,
    TurnEndEvent,
    UserMessage,
)

NOTE: Final = "turn-note"
"""Type of the notes: `custom` entries, which no model sees."""

REVIEW: Final = "review-request"
"""Type of the request: a `custom_message`, which the model gets like a message of the user."""

QUESTION: Final = "Review what you did: does it solve the whole problem, and is there anything you would take back?"


def setup(api: ExtensionAPI) -> None:
    """Registers the two boundaries."""
    api.on("turn_end", note_turn)
    api.on("agent_before_settle", ask_for_review)


def note_turn(event: TurnEndEvent, _ctx: ExtensionContext) -> BoundaryResult:
    """Adds a note about the turn to what its boundary stores."""
    tools = [result.tool_name for result in event.tool_results]
    note = CustomDraft(custom_type=NOTE, data={"turn": event.turn_index, "outcome": event.outcome, "tools": tools})
    return BoundaryResult(entries=(*event.entries, note))


def ask_for_review(event: AgentBeforeSettleEvent, _ctx: ExtensionContext) -> BoundaryResult | None:
    """Asks once after each prompt of the user, if its run went well."""
    if event.outcome != "completed" or _was_asked(event.context.context_messages):
        return None
    request = CustomMessageDraft(custom_type=REVIEW, content=QUESTION, display=True)
    return BoundaryResult(entries=(*event.entries, request), continue_=True)


def _was_asked(messages: Sequence[Message]) -> bool:
    """Whether a review was asked for since the user's last message."""
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            return False
        if isinstance(message, CustomMessage) and message.custom_type == REVIEW:
            return True
    return False
