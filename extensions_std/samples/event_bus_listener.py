"""A sample of two extensions that know each other by a channel only; this one listens to `event_bus.py`.

Load both with `camshaft -e event_bus.py -e event_bus_listener.py`, in any order. It counts what it hears during a
run, in memory, and leaves the counts as a `custom` entry when the run is over; no model sees that.
"""

from collections import Counter
from typing import Any, Final

from camshaft.actors.api import AgentSettled, ExtensionAPI, ExtensionContext

CHANNEL: Final = "tool-calls"
COUNTS: Final = "tool-counts"
"""Type of the entries."""


def setup(api: ExtensionAPI) -> None:
    """Registers the listener, and what stores the counts."""
    counts: Counter[str] = Counter()

    def listen(value: Any) -> None:
        # Whoever emits may be of another version or another make: take what is there.
        counts[str(value.get("tool", "unknown"))] += 1

    def store(_event: AgentSettled, _ctx: ExtensionContext) -> None:
        if counts:
            api.append_entry(COUNTS, dict(counts))
            counts.clear()

    api.events.on(CHANNEL, listen)
    api.on("agent_settled", store)
