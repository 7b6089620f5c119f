"""A sample: keeps the raw events of the model's stream beside the answer that was made of them.

Load it with `camshaft -e debug_provider.py` and switch it on with `/debug-provider`; the same again switches it off.
While it is on, each answer is followed by a `custom` entry with the id of its entry and the events of its provider as
they came, before anything was made of them. No model sees that. Whether it is on is kept in memory, so it is off in
the next session. While it is off it handles nothing, and the stream costs what it costs without it.
"""

from collections.abc import Callable
from typing import Final

import attrs

from camshaft.actors.api import (
    BoundaryResult,
    CommandContext,
    CustomDraft,
    ExtensionAPI,
    ExtensionContext,
    Json,
    ProviderStreamEvent,
    TurnEndEvent,
    freeze,
)

EVENTS: Final = "provider-events"
"""Type of the entries."""

EVENTS_MAX: Final = 2_000
"""Events kept of one answer; of more, the first ones are kept and the others counted."""


def setup(api: ExtensionAPI) -> None:
    """Registers the command only; it registers the rest."""
    api.register_command("debug-provider", Debugging(api).toggle, description="Keep raw stream events, or stop keeping them")


@attrs.define(eq=False)
class Debugging:
    """The events of the answer that is coming in."""

    api: ExtensionAPI
    events: list[Json] = attrs.field(factory=list)
    dropped: int = 0
    off: tuple[Callable[[], None], ...] = ()
    """What unsubscribes; empty while it is off."""

    def toggle(self, _arguments: str, ctx: CommandContext) -> None:
        """On if it was off, off if it was on."""
        if self.off:
            for unsubscribe in self.off:
                unsubscribe()
            self.off, self.events, self.dropped = (), [], 0
        else:
            self.off = (self.api.on("provider_stream_event", self.on_event), self.api.on("turn_end", self.on_turn_end))
        ctx.ui.notify(f"Raw events of the model's stream are {'kept' if self.off else 'no longer kept'}.")

    def on_event(self, event: ProviderStreamEvent, _ctx: ExtensionContext) -> None:
        """One event, as it came."""
        if len(self.events) < EVENTS_MAX:
            self.events.append(event.data)
        else:
            self.dropped += 1

    def on_turn_end(self, event: TurnEndEvent, _ctx: ExtensionContext) -> BoundaryResult:
        """Stores the events of the answer of this turn, behind it."""
        answer = event.message
        group = {
            "answer": event.message_entry_id,
            "model": f"{answer.provider}/{answer.model}",
            "events": self.events,
            "dropped": self.dropped,
        }
        self.events, self.dropped = [], 0
        return BoundaryResult(entries=(*event.entries, CustomDraft(custom_type=EVENTS, data=freeze(group))))
