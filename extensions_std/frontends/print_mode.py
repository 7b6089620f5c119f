"""Print mode: runs the prompts, then writes the last answer (PRINT-1 to PRINT-8).

The answer is the last assistant message that the last prompt's run produced, whatever was edited out of the
context since (PRINT-4); after a prompt that started no run, the assistant message that the context ends with.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import attrs

from camshaft.actors.api import AssistantMessage, TextBlock
from camshaft.actors.host import Event, MessageEnd, Seat
from camshaft.extensions_std.frontends.file_arguments import Prompt
from camshaft.extensions_std.frontends.streams import Output, say

TRUNCATED: Final = "Response was truncated: the model reached its output token limit."

NO_PROMPT: Final = 'Nothing to do: give a prompt, for example: camshaft "What does this project do?", or pipe one in (--help tells more)'

FAILED: Final = {"error": "Request error", "aborted": "Request aborted"}
"""What is told of an answer that failed without a text."""

Before = Callable[[], Awaitable[None]]
"""Awaited before the answer is written, so that what else is on the screen is complete."""

IsShown = Callable[[AssistantMessage], bool]
"""Whether an answer stands already where standard output goes to, so that it would be there twice."""


@attrs.define(eq=False)
class _Last:
    """The last assistant message of the run."""

    message: AssistantMessage | None = None

    def see(self, event: Event) -> None:
        """A listener."""
        if isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage):
            self.message = event.message


async def run(seat: Seat, prompts: Sequence[Prompt], out: Output, *, before_answer: Before, is_shown: IsShown) -> int:
    """The exit code. Raises what refused or ended a prompt, and OSError if the answer cannot be written."""
    if not prompts:
        say(NO_PROMPT)
        return 0
    last = _Last()
    unsubscribe = seat.subscribe(last.see)
    for prompt in prompts:
        last.message = None
        await seat.prompt(prompt.text, images=prompt.images)
    unsubscribe()
    await before_answer()
    answer = last.message or _end_of_context(seat)
    return 0 if answer is None else await _write(answer, out, is_shown)


async def _write(answer: AssistantMessage, out: Output, is_shown: IsShown) -> int:
    if answer.stop_reason in FAILED:
        say(answer.error_message or FAILED[answer.stop_reason])
        return 1
    texts = [f"{block.text}\n" for block in answer.content if isinstance(block, TextBlock)]
    if texts and not is_shown(answer):
        await out.write("".join(texts).encode("utf-8", "replace"))
    if answer.stop_reason == "length":
        say(TRUNCATED)
        return 1
    return 0


def _end_of_context(seat: Seat) -> AssistantMessage | None:
    messages = seat.context_messages
    last = messages[-1] if messages else None
    return last if isinstance(last, AssistantMessage) else None
