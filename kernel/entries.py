"""Session entries, the session header and boundary drafts.

An entry is a line of the session log (SES-20 and on). `timestamp` is UTC ISO 8601 with
three fractional digits and `Z` (MSG-2). Unknown types and malformed bodies are
`OpaqueEntry`: nodes of the tree that contribute nothing.
"""

from typing import ClassVar, Literal

from camshaft.kernel import shapes
from camshaft.kernel.messages import Content, Message, SystemMessage, Usage
from camshaft.kernel.persistent import EMPTY, FrozenDict, Json


@shapes.frozen(kw_only=True)
class SessionHeader:
    """Line 1 of a session file; no part of the tree (SES-1)."""

    type: ClassVar[Literal["session"]] = "session"
    version: int = 3
    id: str
    timestamp: str
    cwd: str | None = None
    parent_session: str | None = None
    """Path of the file this session came from."""
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class MessageEntry:
    """A message of the conversation."""

    type: ClassVar[Literal["message"]] = "message"
    id: str
    parent_id: str | None
    timestamp: str
    message: Message
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class ModelChangeEntry:
    """The selected model changed (SES-22)."""

    type: ClassVar[Literal["model_change"]] = "model_change"
    id: str
    parent_id: str | None
    timestamp: str
    provider: str
    model_id: str
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class ThinkingLevelChangeEntry:
    """The thinking level changed; the value is an open text (SES-25)."""

    type: ClassVar[Literal["thinking_level_change"]] = "thinking_level_change"
    id: str
    parent_id: str | None
    timestamp: str
    thinking_level: str
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class UsageEntry:
    """Model work outside the conversation (SES-26)."""

    type: ClassVar[Literal["usage"]] = "usage"
    id: str
    parent_id: str | None
    timestamp: str
    kind: str
    provider: str
    model: str
    usage: Usage
    note: str | None = None
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class CompactionEntry:
    """History before `first_kept_entry_id` is replaced by a summary (SES-27, SES-28)."""

    type: ClassVar[Literal["compaction"]] = "compaction"
    id: str
    parent_id: str | None
    timestamp: str
    summary: str
    first_kept_entry_id: str | None = None
    """Its own id when nothing is kept; unknown ids keep nothing either."""
    tokens_before: int = 0
    details: Json = None
    usage: Usage | None = None
    from_hook: bool | None = None
    system_message: SystemMessage | None = None
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class BranchSummaryEntry:
    """What happened on a branch that was left (SES-30)."""

    type: ClassVar[Literal["branch_summary"]] = "branch_summary"
    id: str
    parent_id: str | None
    timestamp: str
    from_id: str | None
    summary: str
    details: Json = None
    usage: Usage | None = None
    from_hook: bool | None = None
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class CustomEntry:
    """State of an extension; never reaches a model (SES-31)."""

    type: ClassVar[Literal["custom"]] = "custom"
    id: str
    parent_id: str | None
    timestamp: str
    custom_type: str
    data: Json = None
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class CustomMessageEntry:
    """A message of an extension that the model sees."""

    type: ClassVar[Literal["custom_message"]] = "custom_message"
    id: str
    parent_id: str | None
    timestamp: str
    custom_type: str
    content: Content
    display: bool | None = None
    details: Json = None
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class Replacement:
    """New content for the target of a context edit."""

    content: Content
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class ContextEditEntry:
    """Changes what another entry contributes to the context; null omits it (CTX-8)."""

    type: ClassVar[Literal["context_edit"]] = "context_edit"
    id: str
    parent_id: str | None
    timestamp: str
    target_id: str
    replacement: Replacement | None
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class LabelEntry:
    """Names another entry; without or with an empty label it clears the name (SES-32)."""

    type: ClassVar[Literal["label"]] = "label"
    id: str
    parent_id: str | None
    timestamp: str
    target_id: str
    label: str | None = None
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class SessionInfoEntry:
    """Names the session; empty clears the name (SES-33)."""

    type: ClassVar[Literal["session_info"]] = "session_info"
    id: str
    parent_id: str | None
    timestamp: str
    name: str | None = None
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class OpaqueEntry:
    """An entry of unknown type, or whose body cannot be read: kept, contributes nothing (SES-11, MSG-43)."""

    type: str
    id: str
    parent_id: str | None
    timestamp: str
    raw: FrozenDict
    """The whole line."""


Entry = (
    MessageEntry
    | ModelChangeEntry
    | ThinkingLevelChangeEntry
    | UsageEntry
    | CompactionEntry
    | BranchSummaryEntry
    | CustomEntry
    | CustomMessageEntry
    | ContextEditEntry
    | LabelEntry
    | SessionInfoEntry
    | OpaqueEntry
)


@shapes.frozen(kw_only=True)
class CustomDraft:
    """A proposed `custom` entry."""

    type: ClassVar[Literal["custom"]] = "custom"
    custom_type: str
    data: Json = None
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class CustomMessageDraft:
    """A proposed `custom_message` entry."""

    type: ClassVar[Literal["custom_message"]] = "custom_message"
    custom_type: str
    content: Content
    display: bool
    details: Json = None
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class ContextEditDraft:
    """A proposed `context_edit` entry; null omits the target."""

    type: ClassVar[Literal["context_edit"]] = "context_edit"
    target_id: str
    replacement: Replacement | None
    extra: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class CompactionDraft:
    """A proposed `compaction` entry; null keeps nothing before it (BND-28)."""

    type: ClassVar[Literal["compaction"]] = "compaction"
    summary: str
    first_kept_entry_id: str | None = None
    details: Json = None
    usage: Usage | None = None
    extra: FrozenDict = EMPTY


Draft = CustomDraft | CustomMessageDraft | ContextEditDraft | CompactionDraft
