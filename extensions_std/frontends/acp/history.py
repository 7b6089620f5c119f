"""A stored conversation as the updates that would have told of it: what `session/load` gives."""

from camshaft.actors.api import CompactionEntry, CustomMessage, CustomMessageEntry, MessageEntry
from camshaft.actors.host import Seat
from camshaft.extensions_std.frontends.acp.updates import Update, Updates, note


def history_of(seat: Seat, updates: Updates) -> list[Update]:
    """The active branch from its beginning, also what a compaction took out of the context. O(branch)."""
    told: list[Update] = []
    for entry in seat.session.get_branch():
        match entry:
            case MessageEntry():
                told += updates.of_message(entry.message)
            case CustomMessageEntry():
                told += updates.of_message(
                    CustomMessage(custom_type=entry.custom_type, content=entry.content, display=entry.display, timestamp=0)
                )
            case CompactionEntry():
                told.append(note("the conversation was shortened here"))
    return told + updates.close_calls()
