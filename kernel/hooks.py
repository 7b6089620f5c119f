"""The hook table: what extensions can handle, and what their answers do.

A dispatch is a fold: a *subject* is shown to one handler after the other as an event, and
what a handler did becomes the next subject. `HOOKS` has one row a hook; the dispatcher of the
extension host reads it and knows no hook by name. A row says

    event      the class a handler is given; frozen but for the parts named mutable in EVT-8,
               which are thawed copies and frozen again after each handler
    result     the class a handler may return; None: what it returns is ignored
    show       subject -> event
    merge      subject, the event after the handler, its result, the session now -> Merged
    on_raise   what a failing handler does to the subject; it is always reported (LOOP-49)
    fail_closed  whether `on(..., fail_closed=True)` is allowed (EVT-21)
    awaited    False: the producer does not wait (EVT-6)
    gate       a raise closes it, so it stays closed when its extension is withdrawn (ERR-6)

A handler that raises contributes nothing, its edits are discarded (EVT-29), except for
`before_agent_start`, whose edits stay. Adding a hook is adding a row, its cells in the test,
and its place in the loop or the seat.
"""

from collections.abc import Mapping
from typing import Any, Final

from camshaft.kernel import shapes
from camshaft.kernel.boundary import BoundaryResult
from camshaft.kernel.events import (
    AgentSettled,
    AgentStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    SessionInfoChanged,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from camshaft.kernel.hook_events import (
    AfterProviderResponseEvent,
    AgentBeforeSettleEvent,
    AgentEndEvent,
    BeforeAgentStartEvent,
    BeforeAgentStartResult,
    BeforeProviderHeadersEvent,
    BeforeProviderRequestEvent,
    ContextEvent,
    ContextResult,
    ContextWithSystemEvent,
    InputEvent,
    InputResult,
    MessageEndResult,
    ModelSelectEvent,
    ProviderStreamEvent,
    SessionCompactFailedEvent,
    SessionShutdownEvent,
    SessionStartEvent,
    ThinkingLevelSelectEvent,
    ToolCallEvent,
    ToolCallResult,
    ToolResultEvent,
    ToolResultPatch,
    TurnEndEvent,
    TurnStartEvent,
)
from camshaft.kernel.hook_merges import (
    Merge,
    Show,
    blocked_gate,
    close_input,
    cut_boundary,
    failed_boundary,
    failed_start,
    itself,
    kept,
    merge_boundary,
    merge_context,
    merge_gate,
    merge_headers,
    merge_input,
    merge_message_end,
    merge_payload,
    merge_start,
    merge_tool_result,
    merge_transcript,
    show_context,
    show_gate,
    show_headers,
    show_payload,
    show_settle,
    show_start,
    show_transcript,
    show_turn,
)
from camshaft.kernel.session_events import (
    CacheWarmingDecisionEvent,
    CacheWarmingDecisionResult,
    CancelResult,
    McpServersChangeEvent,
    ProjectTrustEvent,
    ProjectTrustResult,
    ResourcesDiscoverEvent,
    ResourcesDiscoverResult,
    SessionBeforeCompactEvent,
    SessionBeforeCompactResult,
    SessionBeforeForkEvent,
    SessionBeforeSwitchEvent,
    SessionBeforeTreeEvent,
    SessionBeforeTreeResult,
    SessionCompactEvent,
    SessionTreeEvent,
    UiPromptEndEvent,
    UiPromptStartEvent,
    UserBashEvent,
    UserBashResult,
)
from camshaft.kernel.session_merges import (
    block_user_bash,
    close_before,
    merge_before,
    merge_cache_decision,
    merge_discovery,
    merge_trust,
    merge_user_bash,
    show_event,
)


@shapes.frozen(kw_only=True)
class Hook:
    """One row of the table."""

    name: str
    event: type[Any]
    result: type[Any] | None = None
    show: Show = itself
    merge: Merge = kept
    on_raise: Merge = kept
    """As `merge`, with the error text in place of the result."""
    on_cut: Merge | None = None
    """What a handler does that was ended by force; None: as `on_raise` (LOOP-71)."""
    fail_closed: Merge | None = None
    """What a raise does when the handler asked for it; None: not allowed."""
    awaited: bool = True
    gate: bool = False


def _gate(name: str, event: type[Any], result: type[Any]) -> Hook:
    """A row of the four that ask before a session operation."""
    return Hook(name=name, event=event, result=result, show=show_event, merge=merge_before, fail_closed=close_before)


_ROWS: Final = (
    Hook(name="project_trust", event=ProjectTrustEvent, result=ProjectTrustResult, show=show_event, merge=merge_trust),
    Hook(name="session_start", event=SessionStartEvent),
    Hook(name="resources_discover", event=ResourcesDiscoverEvent, result=ResourcesDiscoverResult, show=show_event, merge=merge_discovery),
    Hook(name="session_shutdown", event=SessionShutdownEvent),
    Hook(name="session_info_changed", event=SessionInfoChanged, awaited=False),
    _gate("session_before_switch", SessionBeforeSwitchEvent, CancelResult),
    _gate("session_before_fork", SessionBeforeForkEvent, CancelResult),
    _gate("session_before_compact", SessionBeforeCompactEvent, SessionBeforeCompactResult),
    Hook(name="session_compact", event=SessionCompactEvent),
    Hook(name="session_compact_failed", event=SessionCompactFailedEvent),
    _gate("session_before_tree", SessionBeforeTreeEvent, SessionBeforeTreeResult),
    Hook(name="session_tree", event=SessionTreeEvent),
    Hook(name="mcp_servers_change", event=McpServersChangeEvent, awaited=False),
    Hook(
        name="input",
        event=InputEvent,
        result=InputResult,
        show=lambda plan: plan.event,
        merge=merge_input,
        fail_closed=close_input,
    ),
    Hook(
        name="before_agent_start",
        event=BeforeAgentStartEvent,
        result=BeforeAgentStartResult,
        show=show_start,
        merge=merge_start,
        on_raise=failed_start,
    ),
    Hook(name="agent_start", event=AgentStart),
    Hook(name="turn_start", event=TurnStartEvent),
    Hook(name="context", event=ContextEvent, result=ContextResult, show=show_context, merge=merge_context),
    Hook(
        name="context_with_system",
        event=ContextWithSystemEvent,
        result=ContextResult,
        show=show_transcript,
        merge=merge_transcript,
    ),
    Hook(
        name="before_provider_headers",
        event=BeforeProviderHeadersEvent,
        result=object,
        show=show_headers,
        merge=merge_headers,
        on_raise=merge_headers,
    ),
    Hook(
        name="before_provider_request",
        event=BeforeProviderRequestEvent,
        result=object,
        show=show_payload,
        merge=merge_payload,
    ),
    Hook(name="after_provider_response", event=AfterProviderResponseEvent),
    Hook(name="provider_stream_event", event=ProviderStreamEvent),
    Hook(name="message_start", event=MessageStart),
    Hook(name="message_update", event=MessageUpdate),
    Hook(name="message_end", event=MessageEnd, result=MessageEndResult, merge=merge_message_end),
    Hook(name="tool_execution_start", event=ToolExecutionStart),
    Hook(
        name="tool_call",
        event=ToolCallEvent,
        result=ToolCallResult,
        show=show_gate,
        merge=merge_gate,
        on_raise=blocked_gate,
        gate=True,
    ),
    Hook(name="tool_execution_update", event=ToolExecutionUpdate),
    Hook(name="tool_result", event=ToolResultEvent, result=ToolResultPatch, merge=merge_tool_result),
    Hook(name="tool_execution_end", event=ToolExecutionEnd),
    Hook(
        name="turn_end",
        event=TurnEndEvent,
        result=BoundaryResult,
        show=show_turn,
        merge=merge_boundary,
        on_raise=failed_boundary,
        on_cut=cut_boundary,
    ),
    Hook(name="agent_end", event=AgentEndEvent),
    Hook(
        name="agent_before_settle",
        event=AgentBeforeSettleEvent,
        result=BoundaryResult,
        show=show_settle,
        merge=merge_boundary,
        on_raise=failed_boundary,
        on_cut=cut_boundary,
    ),
    Hook(name="agent_settled", event=AgentSettled),
    Hook(name="ui_prompt_start", event=UiPromptStartEvent, awaited=False),
    Hook(name="ui_prompt_end", event=UiPromptEndEvent, awaited=False),
    Hook(name="model_select", event=ModelSelectEvent),
    Hook(name="thinking_level_select", event=ThinkingLevelSelectEvent, awaited=False),
    Hook(
        name="cache_warming_decision",
        event=CacheWarmingDecisionEvent,
        result=CacheWarmingDecisionResult,
        show=show_event,
        merge=merge_cache_decision,
    ),
    Hook(
        name="user_bash",
        event=UserBashEvent,
        result=UserBashResult,
        show=show_event,
        merge=merge_user_bash,
        on_raise=block_user_bash,
        gate=True,
    ),
)

HOOKS: Final[Mapping[str, Hook]] = {row.name: row for row in _ROWS}
"""The table, by hook name."""
