"""Conversations with something to compact: a small window, two answered prompts, a model that answers with summaries."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs

from camshaft.extensions_std.providers.scripted import ScriptedProvider, Step, assistant, faux_model
from camshaft.kernel.entries import CompactionEntry, Entry
from camshaft.kernel.messages import AssistantMessage, Usage
from camshaft.kernel.settings import CompactionSettings, RetrySettings, Settings
from tests.actors.running import Running, handling, opened

WINDOW = 5000
"""Tokens; 1000 of them are reserved."""
SETTINGS = Settings(
    retry=RetrySettings(max_retries=2, base_delay_ms=1000),
    compaction=CompactionSettings(reserve_tokens=1000, keep_recent_tokens=2),
    default_thinking_level="off",
)
FULL = Usage(input=4490, output=10, total_tokens=4500)
SMALL = Usage(input=100, output=10, total_tokens=110)
OVERFLOW = "prompt is too long: 9000 tokens > 5000 maximum"


def answer(text: str = "ok", **fields: Any) -> AssistantMessage:
    """An answer that tells a small usage."""
    return assistant(text, **{"usage": SMALL, **fields})


def failed(text: str) -> AssistantMessage:
    """A failed answer."""
    return assistant("", stop_reason="error", error_message=text)


@asynccontextmanager
async def talking(
    script: Sequence[Step], *setups: Callable[[Any], Any], said: Sequence[str] = ("one", "two"), **more: Any
) -> AsyncIterator[Running]:
    """A conversation in which so many prompts were answered; the script is for what follows.

    A prompt and an answer of up to four letters are one token each, so the last of them are what is kept.
    """
    settings = attrs.evolve(SETTINGS, **more.pop("settings", {}))
    model = faux_model(context_window=WINDOW, max_tokens=100)
    provider = ScriptedProvider(chunked=False, pause_s=0.003, models=(model,))
    async with opened([*[answer() for _ in said], *script], *setups, provider=provider, settings=settings, **more) as running:
        for text in said:
            await running.seat.prompt(text)
        running.heard.clear()
        yield running


def entries(running: Running) -> list[Entry]:
    """All entries of the session."""
    return list(running.seat.state.tree.entries())


def compactions(running: Running) -> list[CompactionEntry]:
    """The compactions among them."""
    return [entry for entry in entries(running) if isinstance(entry, CompactionEntry)]


def ends(running: Running) -> list[tuple[str, bool, bool, str | None]]:
    """Reason, aborted, will retry and error text of each compaction that ended."""
    found = [event for event in running.heard if event.type == "compaction_end"]
    return [(event.reason, event.aborted, event.will_retry, event.error_message) for event in found]


def heard_by_extensions(events: list[Any]) -> Any:
    """A setup that notes what is told to extensions about failures."""
    return handling("session_compact_failed", lambda event, _ctx: events.append(event))
