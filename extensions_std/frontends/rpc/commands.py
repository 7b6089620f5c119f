"""The commands of RPC: one row each."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import attrs

from camshaft.extensions_std.frontends.rpc import choosing, leaving, prompting, reading
from camshaft.extensions_std.frontends.rpc.acting import Acting
from camshaft.extensions_std.frontends.rpc.requests import (
    BashRequest,
    CompactRequest,
    EntriesRequest,
    ExportRequest,
    ForkRequest,
    NameRequest,
    NewSessionRequest,
    NoFields,
    PromptRequest,
    QueueRequest,
    SetEnabledRequest,
    SetLevelRequest,
    SetModelRequest,
    SetModeRequest,
    SwitchRequest,
)

Handler = Callable[[Acting, Any], Awaitable[object]]
"""Gives the result, NOTHING for none; raises what the client is told. It may answer before it is over."""


@attrs.frozen
class Row:
    """One command."""

    request: type[Any]
    """Its fields."""
    handler: Handler
    is_short: bool = False
    """Whether what came after it waits for its answer: it is given without waiting for anybody (RPC-21)."""


COMMANDS: Final[Mapping[str, Row]] = {
    "prompt": Row(PromptRequest, prompting.prompt),
    "steer": Row(QueueRequest, prompting.steer),
    "follow_up": Row(QueueRequest, prompting.follow_up),
    "abort": Row(NoFields, prompting.abort),
    "clear_queue": Row(NoFields, prompting.clear_queue, is_short=True),
    "new_session": Row(NewSessionRequest, leaving.new_session),
    "get_state": Row(NoFields, reading.get_state, is_short=True),
    "get_messages": Row(NoFields, reading.get_messages, is_short=True),
    "set_model": Row(SetModelRequest, choosing.set_model),
    "cycle_model": Row(NoFields, choosing.cycle_model),
    "get_available_models": Row(NoFields, choosing.get_available_models, is_short=True),
    "set_thinking_level": Row(SetLevelRequest, choosing.set_thinking_level, is_short=True),
    "cycle_thinking_level": Row(NoFields, choosing.cycle_thinking_level, is_short=True),
    "get_available_thinking_levels": Row(NoFields, choosing.get_available_thinking_levels, is_short=True),
    "set_steering_mode": Row(SetModeRequest, choosing.set_steering_mode, is_short=True),
    "set_follow_up_mode": Row(SetModeRequest, choosing.set_follow_up_mode, is_short=True),
    "compact": Row(CompactRequest, prompting.compact),
    "set_auto_compaction": Row(SetEnabledRequest, choosing.set_auto_compaction, is_short=True),
    "set_auto_retry": Row(SetEnabledRequest, choosing.set_auto_retry, is_short=True),
    "abort_retry": Row(NoFields, prompting.abort_retry),
    "bash": Row(BashRequest, prompting.bash),
    "abort_bash": Row(NoFields, prompting.abort_bash, is_short=True),
    "get_session_stats": Row(NoFields, reading.get_session_stats, is_short=True),
    "export_html": Row(ExportRequest, leaving.export_html),
    "switch_session": Row(SwitchRequest, leaving.switch_session),
    "fork": Row(ForkRequest, leaving.fork),
    "clone": Row(NoFields, leaving.clone),
    "get_fork_messages": Row(NoFields, reading.get_fork_messages, is_short=True),
    "get_entries": Row(EntriesRequest, reading.get_entries, is_short=True),
    "get_tree": Row(NoFields, reading.get_tree, is_short=True),
    "get_last_assistant_text": Row(NoFields, reading.get_last_assistant_text, is_short=True),
    "set_session_name": Row(NameRequest, leaving.set_session_name, is_short=True),
    "get_commands": Row(NoFields, reading.get_commands, is_short=True),
}
