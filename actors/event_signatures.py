"""What a handler of each hook is given and may return, for editors and type checkers.

One signature for each row of the hook table, from which `design/event_signatures.py` writes this file.
Nothing here is run: `ExtensionAPI.on` does what the table says.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, overload

from camshaft.actors.contexts import ExtensionContext
from camshaft.actors.trust_context import TrustContext
from camshaft.kernel.boundary import (
    BoundaryResult,
)
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

C = TypeVar("C")
E = TypeVar("E")
R = TypeVar("R")

Result: TypeAlias = R | Mapping[str, Any] | None
"""What a handler may return: a result, a dict with its fields, or nothing."""
Handles: TypeAlias = Callable[[E, C], object]
"""A handler whose answer counts for nothing."""
Answers: TypeAlias = Callable[[E, C], Result[R] | Awaitable[Result[R]]]
"""A handler whose answer counts; sync or async."""
Unsubscribe: TypeAlias = Callable[[], None]
"""Ends the registration; idempotent."""


class On(Protocol):
    """`on(event, handler)`: calls the handler at every event of that name, and returns its unsubscribe."""

    @overload
    def __call__(
        self, event: Literal["project_trust"], handler: Answers[ProjectTrustEvent, TrustContext, ProjectTrustResult], /
    ) -> Unsubscribe: ...

    @overload
    def __call__(self, event: Literal["session_start"], handler: Handles[SessionStartEvent, ExtensionContext], /) -> Unsubscribe: ...

    @overload
    def __call__(
        self, event: Literal["resources_discover"], handler: Answers[ResourcesDiscoverEvent, ExtensionContext, ResourcesDiscoverResult], /
    ) -> Unsubscribe: ...

    @overload
    def __call__(self, event: Literal["session_shutdown"], handler: Handles[SessionShutdownEvent, ExtensionContext], /) -> Unsubscribe: ...

    @overload
    def __call__(
        self, event: Literal["session_info_changed"], handler: Handles[SessionInfoChanged, ExtensionContext], /
    ) -> Unsubscribe: ...

    @overload
    def __call__(
        self,
        event: Literal["session_before_switch"],
        handler: Answers[SessionBeforeSwitchEvent, ExtensionContext, CancelResult],
        /,
        *,
        fail_closed: bool = False,
    ) -> Unsubscribe: ...

    @overload
    def __call__(
        self,
        event: Literal["session_before_fork"],
        handler: Answers[SessionBeforeForkEvent, ExtensionContext, CancelResult],
        /,
        *,
        fail_closed: bool = False,
    ) -> Unsubscribe: ...

    @overload
    def __call__(
        self,
        event: Literal["session_before_compact"],
        handler: Answers[SessionBeforeCompactEvent, ExtensionContext, SessionBeforeCompactResult],
        /,
        *,
        fail_closed: bool = False,
    ) -> Unsubscribe: ...

    @overload
    def __call__(self, event: Literal["session_compact"], handler: Handles[SessionCompactEvent, ExtensionContext], /) -> Unsubscribe: ...

    @overload
    def __call__(
        self, event: Literal["session_compact_failed"], handler: Handles[SessionCompactFailedEvent, ExtensionContext], /
    ) -> Unsubscribe: ...

    @overload
    def __call__(
        self,
        event: Literal["session_before_tree"],
        handler: Answers[SessionBeforeTreeEvent, ExtensionContext, SessionBeforeTreeResult],
        /,
        *,
        fail_closed: bool = False,
    ) -> Unsubscribe: ...

    @overload
    def __call__(self, event: Literal["session_tree"], handler: Handles[SessionTreeEvent, ExtensionContext], /) -> Unsubscribe: ...

    @overload
    def __call__(
        self, event: Literal["mcp_servers_change"], handler: Handles[McpServersChangeEvent, ExtensionContext], /
    ) -> Unsubscribe: ...

    @overload
    def __call__(
        self, event: Literal["input"], handler: Answers[InputEvent, ExtensionContext, InputResult], /, *, fail_closed: bool = False
    ) -> Unsubscribe: ...

    @overload
    def __call__(
        self, event: Literal["before_agent_start"], handler: Answers[BeforeAgentStartEvent, ExtensionContext, BeforeAgentStartResult], /
    ) -> Unsubscribe: ...

    @overload
    def __call__(self, event: Literal["agent_start"], handler: Handles[AgentStart, ExtensionContext], /) -> Unsubscribe: ...

    @overload
    def __call__(self, event: Literal["turn_start"], handler: Handles[TurnStartEvent, ExtensionContext], /) -> Unsubscribe: ...

    @overload
    def __call__(self, event: Literal["context"], handler: Answers[ContextEvent, ExtensionContext, ContextResult], /) -> Unsubscribe: ...

    @overload
    def __call__(
        self, event: Literal["context_with_system"], handler: Answers[ContextWithSystemEvent, ExtensionContext, ContextResult], /
    ) -> Unsubscribe: ...

    @overload
    def __call__(
        self, event: Literal["before_provider_headers"], handler: Handles[BeforeProviderHeadersEvent, ExtensionContext], /
    ) -> Unsubscribe: ...

    @overload
    def __call__(
        self, event: Literal["before_provider_request"], handler: Handles[BeforeProviderRequestEvent, ExtensionContext], /
    ) -> Unsubscribe: ...

    @overload
    def __call__(
        self, event: Literal["after_provider_response"], handler: Handles[AfterProviderResponseEvent, ExtensionContext], /
    ) -> Unsubscribe: ...

    @overload
    def __call__(
        self, event: Literal["provider_stream_event"], handler: Handles[ProviderStreamEvent, ExtensionContext], /
    ) -> Unsubscribe: ...

    @overload
    def __call__(self, event: Literal["message_start"], handler: Handles[MessageStart, ExtensionContext], /) -> Unsubscribe: ...

    @overload
    def __call__(self, event: Literal["message_update"], handler: Handles[MessageUpdate, ExtensionContext], /) -> Unsubscribe: ...

    @overload
    def __call__(
        self, event: Literal["message_end"], handler: Answers[MessageEnd, ExtensionContext, MessageEndResult], /
    ) -> Unsubscribe: ...

    @overload
    def __call__(
        self, event: Literal["tool_execution_start"], handler: Handles[ToolExecutionStart, ExtensionContext], /
    ) -> Unsubscribe: ...

    @overload
    def __call__(
        self, event: Literal["tool_call"], handler: Answers[ToolCallEvent, ExtensionContext, ToolCallResult], /
    ) -> Unsubscribe: ...

    @overload
    def __call__(
        self, event: Literal["tool_execution_update"], handler: Handles[ToolExecutionUpdate, ExtensionContext], /
    ) -> Unsubscribe: ...

    @overload
    def __call__(
        self, event: Literal["tool_result"], handler: Answers[ToolResultEvent, ExtensionContext, ToolResultPatch], /
    ) -> Unsubscribe: ...

    @overload
    def __call__(self, event: Literal["tool_execution_end"], handler: Handles[ToolExecutionEnd, ExtensionContext], /) -> Unsubscribe: ...

    @overload
    def __call__(self, event: Literal["turn_end"], handler: Answers[TurnEndEvent, ExtensionContext, BoundaryResult], /) -> Unsubscribe: ...

    @overload
    def __call__(self, event: Literal["agent_end"], handler: Handles[AgentEndEvent, ExtensionContext], /) -> Unsubscribe: ...

    @overload
    def __call__(
        self, event: Literal["agent_before_settle"], handler: Answers[AgentBeforeSettleEvent, ExtensionContext, BoundaryResult], /
    ) -> Unsubscribe: ...

    @overload
    def __call__(self, event: Literal["agent_settled"], handler: Handles[AgentSettled, ExtensionContext], /) -> Unsubscribe: ...

    @overload
    def __call__(self, event: Literal["ui_prompt_start"], handler: Handles[UiPromptStartEvent, ExtensionContext], /) -> Unsubscribe: ...

    @overload
    def __call__(self, event: Literal["ui_prompt_end"], handler: Handles[UiPromptEndEvent, ExtensionContext], /) -> Unsubscribe: ...

    @overload
    def __call__(self, event: Literal["model_select"], handler: Handles[ModelSelectEvent, ExtensionContext], /) -> Unsubscribe: ...

    @overload
    def __call__(
        self, event: Literal["thinking_level_select"], handler: Handles[ThinkingLevelSelectEvent, ExtensionContext], /
    ) -> Unsubscribe: ...

    @overload
    def __call__(
        self,
        event: Literal["cache_warming_decision"],
        handler: Answers[CacheWarmingDecisionEvent, ExtensionContext, CacheWarmingDecisionResult],
        /,
    ) -> Unsubscribe: ...

    @overload
    def __call__(
        self, event: Literal["user_bash"], handler: Answers[UserBashEvent, ExtensionContext, UserBashResult], /
    ) -> Unsubscribe: ...
