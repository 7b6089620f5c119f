"""What a script counts for each session by itself, so that nothing depends on which of two sessions comes first (FAUX-20, FAUX-25)."""

import random
import re
from collections.abc import Iterator
from functools import partial

import attrs

from camshaft.actors.api import AssistantMessage, Block, ModelRequest, StreamItem, TextDelta, ThinkingDelta, ToolCall, ToolCallDelta
from camshaft.extensions_std.providers.scripted_messages import block_items, start_of
from camshaft.extensions_std.providers.scripted_records import CHARS_PER_TOKEN, tokens_of

_COUNTED = re.compile(r"call_(\d+)")


@attrs.define
class SessionNumbers:
    """Counters of one session."""

    requests: int = 0
    calls: int | None = None
    """The last number that was given to a tool call; None: not known yet."""

    def named(self, message: AssistantMessage, request: ModelRequest) -> AssistantMessage:
        """The message with `call_<n>` for tool calls that have no id: none that the transcript holds already.

        O(messages), once a session.
        """
        if all(not isinstance(block, ToolCall) or block.id for block in message.content):
            return message
        last = _last_number(request) if self.calls is None else self.calls
        content: list[Block] = []
        for block in message.content:
            if isinstance(block, ToolCall) and not block.id:
                last += 1
                content.append(attrs.evolve(block, id=f"call_{last}"))
            else:
                content.append(block)
        self.calls = last
        return attrs.evolve(message, content=tuple(content))


@attrs.frozen
class Cutter:
    """Cuts the texts of one answer into chunks of seeded length; the same seed and texts give the same chunks."""

    seed: str
    token_size: tuple[int, int]
    """Tokens of a chunk, least and most."""
    is_on: bool = True
    """False: every text is one chunk."""

    def chunks(self, index: int, value: str) -> Iterator[str]:
        """Pieces of block `index`; an empty text is one empty piece (FAUX-6)."""
        if not value or not self.is_on:
            yield value
            return
        chance = random.Random(f"{self.seed}/{index}")
        start = 0
        while start < len(value):
            end = start + CHARS_PER_TOKEN * chance.randint(*self.token_size)
            yield value[start:end]
            start = end


def timed_items(message: AssistantMessage, cutter: Cutter, tokens_per_second: float | None) -> Iterator[tuple[StreamItem, float]]:
    """The items of a message but for its end, each with the seconds that it takes (FAUX-6)."""
    yield start_of(message), 0
    for index, block in enumerate(message.content):
        for item in block_items(index, block, partial(cutter.chunks, index)):
            is_paced = tokens_per_second is not None and isinstance(item, TextDelta | ThinkingDelta | ToolCallDelta)
            yield item, tokens_of(item.delta) / tokens_per_second if is_paced else 0  # type: ignore[union-attr, operator]  # paced: both are there


def _last_number(request: ModelRequest) -> int:
    ids = [call.id for message in request.messages if isinstance(message, AssistantMessage) for call in message.tool_calls]
    return max([int(found[1]) for id in ids if (found := _COUNTED.fullmatch(id))], default=0)
