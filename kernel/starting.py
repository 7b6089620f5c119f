"""What a turn starts with: prompt and tool patches, the starting messages, the forced prompt.

A patch is a system message with the difference between what the transcript says and what is
wanted; without a difference there is none (CTX-25, CTX-26). Prompt patches are written at the
start of a session run and between turns, tool patches also when any low-level run begins.
"""

from collections.abc import Sequence

import attrs

from camshaft.kernel import shapes
from camshaft.kernel.errors import Rejection
from camshaft.kernel.hook_events import CustomInput
from camshaft.kernel.messages import CustomMessage, Message, SystemMessage, ToolDeclaration
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.prompt import PromptOptions, SystemState, build_sections, collapse, section_patch, tool_patch
from camshaft.kernel.run_data import Pending
from camshaft.kernel.state import Queued


@shapes.frozen(kw_only=True)
class WantedPrompt:
    """The sections that options ask for, kept while the options are the same objects."""

    options: PromptOptions
    live: PromptOptions
    sections: FrozenDict


def wanted_prompt(
    options: PromptOptions, live: PromptOptions, known: WantedPrompt | None, shown: PromptOptions
) -> WantedPrompt | Rejection:
    """The prompt of a run whose handlers made `options` of the ones `shown`, with the tools as they are now in `live`.

    `known` is given back if it was made from the same objects. Rejected if a section name is bad.
    """
    if known is not None and known.options is options and known.live is live:
        return known
    sections = build_sections(with_tools_of(options, live, shown))
    return sections if isinstance(sections, Rejection) else WantedPrompt(options=options, live=live, sections=sections)


def prompt_patch(wanted: WantedPrompt, replayed: SystemState | None, now_ms: int) -> SystemMessage | None:
    """A system message with the sections that differ from what the transcript says; None without a difference."""
    patch = section_patch({} if replayed is None else replayed.sections, wanted.sections)
    return None if patch is None else SystemMessage(content="", sections=patch, timestamp=now_ms)


def with_tool_patch(
    pending: tuple[Pending, ...], wanted: Sequence[ToolDeclaration], replayed: SystemState | None, now_ms: int
) -> tuple[Pending, ...]:
    """The messages about to be added, with the change of the declared tools (LOOP-13).

    It goes on the last system message among them, whose own tool fields it replaces, or on a new
    one in front.
    """
    patch = tool_patch(() if replayed is None else replayed.tools, wanted)
    added, removed = patch.added or None, patch.removed or None
    for at, item in reversed(list(enumerate(pending))):
        if isinstance(item.message, SystemMessage):
            patched = attrs.evolve(item.message, tools_added=added, tools_removed=removed)
            return (*pending[:at], attrs.evolve(item, message=patched), *pending[at + 1 :])
    if not patch:
        return pending
    message = SystemMessage(content="", tools_added=added, tools_removed=removed, timestamp=now_ms)
    return (Pending(message=message), *pending)


@shapes.frozen(kw_only=True)
class Beginning:
    """What a session run begins with."""

    patch: SystemMessage | None
    input: Queued
    next_turn: tuple[Queued, ...]
    added: tuple[CustomInput, ...]
    """Messages of handlers, in handler order."""


def starting_messages(beginning: Beginning, ids: Sequence[str], now_ms: int) -> tuple[Pending, ...]:
    """Prompt patch, the message, `nextTurn` messages, then messages of handlers (LOOP-8, PB-7).

    Needs one id for the patch and one for each message of a handler; the others have theirs.
    """
    fresh = iter(ids)
    patch = () if beginning.patch is None else (Pending(message=beginning.patch, entry_id=next(fresh)),)
    accepted = [Pending(message=item.message, entry_id=item.entry_id) for item in (beginning.input, *beginning.next_turn)]
    added = [Pending(message=custom_message(each, now_ms), entry_id=next(fresh)) for each in beginning.added]
    return (*patch, *accepted, *added)


def custom_message(given: CustomInput, now_ms: int) -> CustomMessage:
    """The message of an extension, complete; missing content becomes an empty list (QUE-12)."""
    content = () if given.content is None else given.content
    return CustomMessage(custom_type=given.custom_type, content=content, display=given.display, details=given.details, timestamp=now_ms)


def forced_transcript(transcript: Sequence[Message], text: str, now_ms: int) -> tuple[Message, ...]:
    """One leading system message with the forced text and the current tools, then the rest (PB-5)."""
    head = collapse(transcript)
    system = head[0] if head and isinstance(head[0], SystemMessage) else None
    if system is None:
        return (SystemMessage(content=text, timestamp=now_ms), *head)
    return (SystemMessage(content=text, tools_added=system.tools_added, timestamp=system.timestamp), *head[1:])


def with_tools_of(options: PromptOptions, live: PromptOptions, shown: PromptOptions) -> PromptOptions:
    """The run's options with the tools as they are now; what handlers wrote about a tool they were shown stands."""
    return attrs.evolve(
        options,
        selected_tools=live.selected_tools,
        hidden_tools=live.hidden_tools,
        tool_snippets=_and_new(options.tool_snippets, live.tool_snippets, shown),
        tool_guidelines=_and_new(options.tool_guidelines, live.tool_guidelines, shown),
    )


def _and_new(written: FrozenDict, live: FrozenDict, shown: PromptOptions) -> FrozenDict:
    return FrozenDict({**{name: item for name, item in live.items() if name not in shown.selected_tools}, **written})
