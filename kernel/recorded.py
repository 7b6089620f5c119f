"""What the active branch says about the selection a session was left with (CTX-2, EXPO-7, MOD-97)."""

from camshaft.kernel import shapes
from camshaft.kernel.entries import MessageEntry
from camshaft.kernel.kinds import SYSTEM, THINKING_LEVEL
from camshaft.kernel.messages import SystemMessage
from camshaft.kernel.models import clamp_level
from camshaft.kernel.prompt import SystemState, replay_one
from camshaft.kernel.state import SessionState


@shapes.frozen(kw_only=True)
class RecordedTools:
    """What replaying every system message of the raw branch gives (CTX-28)."""

    declared: tuple[str, ...]
    """Active when the session was left, in order."""
    mentioned: frozenset[str]
    """Ever declared; one that is not declared now was removed and stays inactive."""


def recorded_level(state: SessionState) -> str | None:
    """The thinking level the branch recorded; None if it has no such entry. O(branch)."""
    kinds = state.tree.kinds(_branch(state))
    return state.projection.thinking_level if bytes([THINKING_LEVEL]) in kinds else None


def level_to_record(state: SessionState) -> str | None:
    """The live level, if the next run has to record it because the branch says another one (SES-24).

    A branch without a level entry says none, and a level the model cannot have is no other one. What model
    answers needs no entry: the answer itself names it (CTX-2).
    """
    selection, replayed = state.selection, state.projection.thinking_level
    if replayed == selection.thinking_level or selection.model is None:
        return None
    if clamp_level(selection.model, replayed) == selection.thinking_level or recorded_level(state) is None:
        return None
    return selection.thinking_level


def recorded_tools(state: SessionState) -> RecordedTools | None:
    """The tools of the branch, compacted parts included; None if it has no system message. O(branch)."""
    path = _branch(state)
    replayed: SystemState | None = None
    mentioned: set[str] = set()
    for position, kind in zip(path, state.tree.kinds(path), strict=True):
        if kind != SYSTEM:
            continue
        entry = state.tree.entry(position)
        if isinstance(entry, MessageEntry) and isinstance(entry.message, SystemMessage):
            replayed = replay_one(replayed, entry.message)
            mentioned.update([tool.name for tool in entry.message.tools_added or ()])
    if replayed is None:
        return None
    return RecordedTools(declared=tuple([tool.name for tool in replayed.tools]), mentioned=frozenset(mentioned))


def _branch(state: SessionState) -> tuple[int, ...]:
    leaf = state.projection.leaf
    return () if leaf is None else tuple(state.tree.branch(leaf))
