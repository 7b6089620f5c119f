"""What handlers of session operations, of the user's own commands and of the host's decisions are given and may return.

The gates `session_before_*` share one discipline: a result that says anything replaces the
one before as a whole, `cancel` ends the dispatch (EVT-20). A field that is None says nothing;
an empty text clears a wish.
"""

from typing import ClassVar, Literal

from camshaft.kernel import shapes
from camshaft.kernel.entries import BranchSummaryEntry, CompactionEntry, Entry
from camshaft.kernel.estimates import CompactionLimits
from camshaft.kernel.messages import Message, Usage
from camshaft.kernel.persistent import FrozenDict, Json
from camshaft.kernel.tools import Signal

CompactionReason = Literal["manual", "threshold", "overflow"]
ForkPosition = Literal["before", "at"]


@shapes.frozen(kw_only=True)
class SessionBeforeSwitchEvent:
    """The session is about to be replaced by a new one or another file; may be cancelled."""

    type: ClassVar[str] = "session_before_switch"
    reason: Literal["new", "resume"]
    target_session_file: str | None = None
    """Absolute; None for a new session."""


@shapes.frozen(kw_only=True)
class SessionBeforeForkEvent:
    """The session is about to be replaced by a copy of a branch; the entry id was not looked at yet."""

    type: ClassVar[str] = "session_before_fork"
    entry_id: str
    position: ForkPosition


@shapes.frozen(kw_only=True)
class CancelResult:
    """Whether to stay in the session."""

    cancel: bool | None = None
    skip_conversation_restore: bool | None = None
    """Reserved; without effect."""


@shapes.frozen(kw_only=True)
class FileOperations:
    """Files that tools touched, by what was done to them; sorted."""

    read: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()


@shapes.frozen(kw_only=True)
class CompactionPreparation:
    """What a compaction would summarise and keep (CMP-35)."""

    first_kept_entry_id: str
    messages_to_summarize: tuple[Message, ...]
    turn_prefix_messages: tuple[Message, ...]
    """The beginning of a turn whose end is kept; empty unless `is_split_turn`."""
    is_split_turn: bool
    tokens_before: int
    previous_summary: str | None = None
    file_ops: FileOperations
    settings: CompactionLimits


@shapes.frozen(kw_only=True)
class SessionBeforeCompactEvent:
    """A compaction was prepared and is about to be summarised; may be cancelled or supplied."""

    type: ClassVar[str] = "session_before_compact"
    preparation: CompactionPreparation
    branch_entries: tuple[Entry, ...]
    """From the root to the leaf."""
    custom_instructions: str | None = None
    reason: CompactionReason
    will_retry: bool
    """Whether the last request is repeated afterwards."""
    signal: Signal


@shapes.frozen(kw_only=True)
class SuppliedCompaction:
    """A summary that an extension made in place of the model (CMP-45)."""

    summary: str
    first_kept_entry_id: str
    """An entry of the active branch; anything else makes the compaction fail."""
    tokens_before: int
    usage: Usage | None = None
    details: Json = None


@shapes.frozen(kw_only=True)
class SessionBeforeCompactResult:
    """Cancel, or supply the summary."""

    cancel: bool | None = None
    compaction: SuppliedCompaction | None = None


@shapes.frozen(kw_only=True)
class SessionCompactEvent:
    """A compaction was appended and the context rebuilt."""

    type: ClassVar[str] = "session_compact"
    compaction_entry: CompactionEntry
    from_extension: bool
    reason: CompactionReason
    will_retry: bool


@shapes.frozen(kw_only=True)
class TreePreparation:
    """Where a navigation would lead and what would be summarised (EVT-25)."""

    target_id: str
    old_leaf_id: str | None
    common_ancestor_id: str | None
    entries_to_summarize: tuple[Entry, ...]
    user_wants_summary: bool
    custom_instructions: str | None = None
    replace_instructions: bool | None = None
    label: str | None = None


@shapes.frozen(kw_only=True)
class SessionBeforeTreeEvent:
    """The leaf is about to move to another entry; may be cancelled, summarised or told otherwise."""

    type: ClassVar[str] = "session_before_tree"
    preparation: TreePreparation
    signal: Signal


@shapes.frozen(kw_only=True)
class SuppliedSummary:
    """A branch summary that an extension made in place of the model."""

    summary: str
    details: Json = None
    usage: Usage | None = None


@shapes.frozen(kw_only=True)
class SessionBeforeTreeResult:
    """Cancel, supply the summary (used only if one is wanted), or change what was asked for."""

    cancel: bool | None = None
    summary: SuppliedSummary | None = None
    custom_instructions: str | None = None
    replace_instructions: bool | None = None
    label: str | None = None


@shapes.frozen(kw_only=True)
class SessionTreeEvent:
    """The leaf moved and the tools of the branch are active again."""

    type: ClassVar[str] = "session_tree"
    new_leaf_id: str | None
    """Id of the label entry, if a label was set (EVT-26)."""
    old_leaf_id: str | None
    summary_entry: BranchSummaryEntry | None = None
    from_extension: bool | None = None
    """Said with a summary only."""


@shapes.frozen(kw_only=True)
class ResourcesDiscoverEvent:
    """Extensions may name further skills, prompt templates and themes."""

    type: ClassVar[str] = "resources_discover"
    cwd: str
    reason: Literal["startup", "reload"]


@shapes.frozen(kw_only=True)
class ResourcesDiscoverResult:
    """Paths of files or folders."""

    skill_paths: tuple[str, ...] = ()
    prompt_paths: tuple[str, ...] = ()
    theme_paths: tuple[str, ...] = ()


@shapes.frozen(kw_only=True)
class UserBashEvent:
    """A command that the user typed is about to run."""

    type: ClassVar[str] = "user_bash"
    command: str
    exclude_from_context: bool
    cwd: str


@shapes.frozen(kw_only=True)
class UserBashOutput:
    """What a command did, as an extension says; nothing is executed (UB-3)."""

    output: str
    exit_code: int | None
    """None: unknown; it has to be said."""
    cancelled: bool
    truncated: bool
    full_output_path: str | None = None


@shapes.frozen(kw_only=True)
class UserBashResult:
    """Exactly one of the two (UB-4)."""

    operations: object = None
    """An object with `exec(command, cwd, *, on_data, signal, timeout, env)`, which is awaited and gives an object with `exit_code`."""
    result: UserBashOutput | None = None


@shapes.frozen(kw_only=True)
class UiPromptStartEvent:
    """A dialog is open (UI-10)."""

    type: ClassVar[str] = "ui_prompt_start"
    reason: str = "ui_prompt"
    kind: str
    """`select`, `confirm`, `input`, `editor` or `custom`."""
    title: str | None = None


@shapes.frozen(kw_only=True)
class UiPromptEndEvent:
    """The last open dialog was closed; says what the start said."""

    type: ClassVar[str] = "ui_prompt_end"
    reason: str = "ui_prompt"
    kind: str
    title: str | None = None


@shapes.frozen(kw_only=True)
class RegisteredMcpServer:
    """An MCP server that an extension registered."""

    name: str
    config: FrozenDict
    extension_path: str


@shapes.frozen(kw_only=True)
class McpServersChangeEvent:
    """Extensions registered or unregistered MCP servers; these are all of them, in registration order."""

    type: ClassVar[str] = "mcp_servers_change"
    servers: tuple[RegisteredMcpServer, ...]


@shapes.frozen(kw_only=True)
class CacheWarmingDecisionEvent:
    """The prompt cache of a model is about to expire."""

    type: ClassVar[str] = "cache_warming_decision"
    warm_cost: float
    miss_cost: float
    continuation_probability: float
    action: Literal["warm", "stop"]
    """What happens if nobody says otherwise."""


@shapes.frozen(kw_only=True)
class CacheWarmingDecisionResult:
    """What to do; the last one returned wins."""

    action: Literal["warm", "stop"]


@shapes.frozen(kw_only=True)
class ProjectTrustEvent:
    """Whether the files of a project may be used is to be decided."""

    type: ClassVar[str] = "project_trust"
    cwd: str


@shapes.frozen(kw_only=True)
class ProjectTrustResult:
    """The first yes or no wins (EXT-63)."""

    trusted: Literal["yes", "no", "undecided"]
    remember: bool | None = None
    """True saves the decision for this folder; otherwise it lasts for the process."""
