"""Dispatching one hook to functions: a subject for every hook whose answers count, and what became of it."""

from collections.abc import Callable
from typing import Any

import attrs
import trio

from camshaft.actors.actor import Limbo
from camshaft.actors.event_stream import EventStream
from camshaft.actors.extension_host import ExtensionHost
from camshaft.actors.generation import Generation
from camshaft.actors.options import Limits
from camshaft.actors.oversight import Oversight
from camshaft.actors.registrations import Extension, Handler
from camshaft.actors.signal import AbortSignal
from camshaft.kernel import boundary, hook_events, hook_merges, session_events, session_merges
from camshaft.kernel.entries import SessionHeader
from camshaft.kernel.estimates import CompactionLimits
from camshaft.kernel.hooks import HOOKS
from camshaft.kernel.messages import AssistantMessage, TextBlock, UserMessage
from camshaft.kernel.persistent import EMPTY, FrozenDict, freeze
from camshaft.kernel.prompt import PromptOptions
from camshaft.kernel.settings import Settings
from camshaft.kernel.state import SessionState, initial
from camshaft.kernel.tools import SourceInfo
from camshaft.kernel.tree import tree_of
from tests.actors.running import simulate
from tests.kernel.made import TIME, assistant, system, user

HEADER = SessionHeader(id="s", timestamp=TIME, cwd="/")
STATE = initial(HEADER, tree_of(entries=[user("u", None), assistant("a", "u")]), 1, (), Settings())
GO = UserMessage(content="go", timestamp=1)
ANSWER = AssistantMessage(content=(TextBlock(text="hi"),), api="x", provider="acme", model="m", stop_reason="stop", timestamp=2)


@attrs.frozen
class Bound:
    """What the host asks of a conversation during a dispatch."""

    state: SessionState = STATE
    run_signal: None = None
    has_sends: bool = False


def plan() -> hook_merges.StartPlan:
    return hook_merges.StartPlan(message=GO, prompt="go", images=None, options=PromptOptions(cwd="/"))


def turn() -> hook_merges.TurnSubject:
    return hook_merges.TurnSubject(
        proposal=boundary.begin("turn_end", STATE),
        turn_index=0,
        message=ANSWER,
        tool_results=(),
        message_entry_id="a",
        tool_result_entry_ids=(),
        outcome="completed",
    )


NO_SIGNAL: Any = AbortSignal(None)

WARMING = session_events.CacheWarmingDecisionEvent(warm_cost=1, miss_cost=2, continuation_probability=0.5, action="warm")
COMPACT = session_events.SessionBeforeCompactEvent(
    preparation=session_events.CompactionPreparation(
        first_kept_entry_id="a",
        messages_to_summarize=(GO,),
        turn_prefix_messages=(),
        is_split_turn=False,
        tokens_before=9,
        file_ops=session_events.FileOperations(),
        settings=CompactionLimits(),
    ),
    branch_entries=(),
    reason="manual",
    will_retry=False,
    signal=NO_SIGNAL,
)

TREE = session_events.SessionBeforeTreeEvent(
    preparation=session_events.TreePreparation(
        target_id="u", old_leaf_id="a", common_ancestor_id="u", entries_to_summarize=(), user_wants_summary=True
    ),
    signal=NO_SIGNAL,
)


def gate(event: Any) -> session_merges.Gate:
    return session_merges.Gate(event=event)


SUBJECTS: dict[str, Callable[[], Any]] = {
    "input": lambda: hook_merges.InputPlan(event=hook_events.InputEvent(text="go", source="interactive")),
    "before_agent_start": plan,
    "context": lambda: (system("sys"), GO, ANSWER),
    "context_with_system": lambda: (system("sys"), GO, ANSWER),
    "before_provider_headers": lambda: FrozenDict({"a": "1"}),
    "before_provider_request": lambda: freeze({"model": "m"}),
    "message_end": lambda: HOOKS["message_end"].event(message=GO),
    "tool_call": lambda: hook_merges.CallGate(tool_name="t", tool_call_id="c", parent_tool_call_id=None, input=FrozenDict({"x": 1})),
    "tool_result": lambda: hook_events.ToolResultEvent(
        tool_name="t", tool_call_id="c", input=EMPTY, content=(TextBlock(text="x"),), structured_content=1, is_error=False
    ),
    "turn_end": turn,
    "project_trust": lambda: session_merges.TrustPlan(event=session_events.ProjectTrustEvent(cwd="/")),
    "resources_discover": lambda: session_merges.Discovery(event=session_events.ResourcesDiscoverEvent(cwd="/", reason="startup")),
    "session_before_switch": lambda: gate(session_events.SessionBeforeSwitchEvent(reason="new")),
    "session_before_fork": lambda: gate(session_events.SessionBeforeForkEvent(entry_id="u", position="at")),
    "session_before_compact": lambda: gate(COMPACT),
    "session_before_tree": lambda: gate(TREE),
    "cache_warming_decision": lambda: session_merges.WarmingPlan(event=WARMING, action="warm"),
    "user_bash": lambda: session_merges.UserBashPlan(event=session_events.UserBashEvent(command="ls", exclude_from_context=False, cwd="/")),
    "agent_before_settle": lambda: hook_merges.SettleSubject(proposal=boundary.begin("agent_before_settle", STATE), outcome="completed"),
}
"""Of the hooks whose answers count; the others are shown their subject as it is."""


def told(hook: str, *functions: Any, fail_closed: bool = False) -> tuple[Any, list[str]]:
    """The subject after handlers, and what was reported."""
    return simulate(_told, hook, functions, fail_closed)  # type: ignore[no-any-return]  # what the next function says


async def _told(hook: str, functions: tuple[Any, ...], fail_closed: bool) -> tuple[Any, list[str]]:
    async with trio.open_nursery() as nursery:
        begun = Generation(1)
        host = ExtensionHost(EventStream(), lambda: 5, begun, Oversight(Limbo(nursery), Limits(), nursery, begun))
        runtime: Any = Bound()
        host._runtime = runtime
        return await _dispatched(host, hook, functions, fail_closed)
    raise AssertionError


async def _dispatched(host: ExtensionHost, hook: str, functions: tuple[Any, ...], fail_closed: bool) -> tuple[Any, list[str]]:
    for number, function in enumerate(functions):
        info = SourceInfo(path=f"x{number}", source="inline")
        host.extensions.append(Extension(f"x{number}", f"x{number}", info, handlers=(Handler(hook, function, fail_closed),)))
    host.rebuild()
    subject = await host.dispatch(hook, SUBJECTS.get(hook, lambda: None)())
    return subject, [f"{each.extension_path}: {each.error}" for each in host.errors]


def fails(*_: Any) -> Any:
    raise ValueError("bad")
