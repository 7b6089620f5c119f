"""Content blocks, the eight message roles, usage and cost.

Every class is frozen and keyword-only. `extra` holds what the file had and we do not
know (MSG-40), and an explicit null of a field we know (MSG-3): reading gives None either
way, writing gives back what was read. A message with a wrong type in a known field is an
`OpaqueMessage` that keeps its raw JSON (MSG-41).
"""

from typing import ClassVar, Final, Literal

from camshaft.kernel import shapes
from camshaft.kernel.persistent import EMPTY, FrozenDict, Json

StopReason = str
"""`pending`, `stop`, `length`, `toolUse`, `error`, `aborted`, `deferred`; unknown ones are
kept and count as a successful end (MSG-42)."""

FAILED: Final = frozenset({"error", "aborted"})
"""Stop reasons of a response that did not succeed."""


@shapes.frozen(kw_only=True)
class TextBlock:
    """Text for or from the model."""

    type: ClassVar[Literal["text"]] = "text"
    text: str
    text_signature: str | None = None
    """Opaque provider data, replayed byte for byte (MSG-9)."""
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class ImageBlock:
    """An image."""

    type: ClassVar[Literal["image"]] = "image"
    data: str
    """Base64, without a data-URL prefix."""
    mime_type: str
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class ThinkingBlock:
    """Reasoning of the model. An empty one with a signature still matters for replay (MSG-11)."""

    type: ClassVar[Literal["thinking"]] = "thinking"
    thinking: str
    thinking_signature: str | None = None
    redacted: bool | None = None
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class ToolCall:
    """The model's wish to run a tool."""

    type: ClassVar[Literal["toolCall"]] = "toolCall"
    id: str
    name: str
    arguments: FrozenDict = EMPTY
    thought_signature: str | None = None
    namespace: str | None = None
    arguments_error: str | None = None
    """Why the argument text was no JSON object; then `arguments` is empty (MSG-12)."""
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class OpaqueBlock:
    """A block of a type we do not know: kept, never shown to a model (MSG-39)."""

    type: str
    raw: FrozenDict


Block = TextBlock | ImageBlock | ThinkingBlock | ToolCall | OpaqueBlock
Content = str | tuple[Block, ...]


@shapes.frozen(kw_only=True)
class Cost:
    """Money, in the currency of the model's rates."""

    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0
    total: float = 0
    total_from_provider: bool | None = None
    """True only if `total` is an amount the provider billed (MSG-15)."""
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class Usage:
    """Tokens of one response."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write1h: int | None = None
    """Part of `cache_write`; never added to totals (MSG-18)."""
    reasoning: int | None = None
    """Part of `output`; never added to totals (MSG-18)."""
    total_tokens: int = 0
    cost: Cost = Cost()
    extra: FrozenDict = EMPTY


NO_USAGE: Final = Usage()
"""All counters zero: nothing known, or nothing used."""


@shapes.frozen(kw_only=True)
class ToolDeclaration:
    """What the model is told about a tool; compared by value (CTX-26)."""

    name: str
    description: str
    parameters: FrozenDict
    """A JSON Schema object."""
    constrained_sampling: Json = None
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class ToolName:
    """A tool that is no longer declared."""

    name: str
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class SystemMessage:
    """Prompt and tool state, or a change of it (CTX-19)."""

    role: ClassVar[Literal["system"]] = "system"
    content: Content = ""
    sections: FrozenDict | None = None
    """Section name to text; null removes the section. The order counts (CTX-22)."""
    tools_added: tuple[ToolDeclaration, ...] | None = None
    tools_removed: tuple[ToolName, ...] | None = None
    replace: bool | None = None
    """True discards everything replayed before (MSG-20)."""
    timestamp: int
    """Wall clock, ms since the Unix epoch."""
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class UserMessage:
    """What a person, or an extension in their place, said."""

    role: ClassVar[Literal["user"]] = "user"
    content: Content
    timestamp: int
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class AssistantMessage:
    """One response of a model, or of the loop when it failed (MSG-26)."""

    role: ClassVar[Literal["assistant"]] = "assistant"
    content: tuple[Block, ...]
    api: str
    provider: str
    model: str
    response_model: str | None = None
    response_id: str | None = None
    provider_thinking_level: str | None = None
    thinking_level: str | None = None
    """The level the loop asked for, `off` if none; absent in old messages (LOOP-18)."""
    diagnostics: Json = None
    usage: Usage = NO_USAGE
    stop_reason: StopReason
    deferred: FrozenDict | None = None
    """Handle of a response to be fetched later; kept verbatim (MSG-28)."""
    error_message: str | None = None
    raw_stop_reason: str | None = None
    end_turn: bool | None = None
    timestamp: int
    """When the request started (MSG-22)."""
    duration_ms: int | None = None
    extra: FrozenDict = EMPTY

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls in source order."""
        return tuple([block for block in self.content if isinstance(block, ToolCall)])


@shapes.frozen(kw_only=True)
class ToolResultMessage:
    """The answer to one tool call."""

    role: ClassVar[Literal["toolResult"]] = "toolResult"
    tool_call_id: str
    tool_name: str
    content: tuple[Block, ...] = ()
    details: Json = None
    """Tool-specific; never sent to the model. None and absent are the same to a reader."""
    usage: Usage | None = None
    nested_calls: Json = None
    """Record of calls made by the tool (MSG-45 to MSG-52)."""
    is_error: bool
    timestamp: int
    duration_ms: int | None = None
    """Whole ms of `execute`; absent when the tool did not run (TOOL-8)."""
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class BashExecutionMessage:
    """A command the user ran, never the answer to a call (MSG-34)."""

    role: ClassVar[Literal["bashExecution"]] = "bashExecution"
    command: str
    output: str
    exit_code: int | None = None
    cancelled: bool
    truncated: bool
    full_output_path: str | None = None
    exclude_from_context: bool | None = None
    timestamp: int
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class CustomMessage:
    """A message of an extension; the model sees it as a user message (CTX-31)."""

    role: ClassVar[Literal["custom"]] = "custom"
    custom_type: str
    content: Content
    display: bool | None = None
    """Controls rendering only (MSG-35)."""
    details: Json = None
    timestamp: int
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class BranchSummaryMessage:
    """Exists in projections only (MSG-36)."""

    role: ClassVar[Literal["branchSummary"]] = "branchSummary"
    summary: str
    from_id: str | None
    timestamp: int
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class CompactionSummaryMessage:
    """Exists in projections only (MSG-36)."""

    role: ClassVar[Literal["compactionSummary"]] = "compactionSummary"
    summary: str
    tokens_before: int
    timestamp: int
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class OpaqueMessage:
    """A message with an unknown role (MSG-38) or a wrong type in a known field (MSG-41)."""

    role: str | None
    raw: FrozenDict

    @property
    def timestamp(self) -> int:
        """The stored time in ms, or 0."""
        stamp = self.raw.get("timestamp")
        return stamp if isinstance(stamp, int) else 0


Message = (
    SystemMessage
    | UserMessage
    | AssistantMessage
    | ToolResultMessage
    | BashExecutionMessage
    | CustomMessage
    | BranchSummaryMessage
    | CompactionSummaryMessage
    | OpaqueMessage
)

ModelMessage = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage
"""What a provider receives."""


BLANKS: Final = "\t\n\x0b\x0c\r \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
"""What counts as blank where a rule says trimmed: Unicode's spaces, line ends and the byte-order mark, but no control characters."""


def text_of(content: Content, separator: str = "\n") -> str:
    """The content text (MSG-14): a text as it is, else the text blocks joined with `separator`."""
    if isinstance(content, str):
        return content
    return separator.join([block.text for block in content if isinstance(block, TextBlock)])


def blocks_of(content: Content) -> tuple[Block, ...]:
    """The content as blocks: a text becomes one text block."""
    return (TextBlock(text=content),) if isinstance(content, str) else content
