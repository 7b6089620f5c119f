"""What a resumed conversation records of its selection, and the tools it waits for."""

from typing import Any

import pytest

from camshaft.actors.host import MemorySession
from camshaft.extensions_std.providers.scripted import ScriptedProvider, assistant
from camshaft.kernel.entries import Entry, MessageEntry, ModelChangeEntry, ThinkingLevelChangeEntry
from camshaft.kernel.messages import SystemMessage, ToolDeclaration, UserMessage
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import FrozenDict
from tests.actors.running import opened, simulate

AT = "2026-01-01T00:00:00.000Z"


def model(name: str, *, reasoning: bool) -> Model:
    return Model(id=name, provider="scripted", api="scripted", reasoning=reasoning)


def session(level: str | None) -> MemorySession:
    """A branch that selected `m1`, perhaps a level, and holds one message."""
    entries: list[Entry] = [ModelChangeEntry(id="a1", parent_id=None, timestamp=AT, provider="scripted", model_id="m1")]
    if level is not None:
        entries.append(ThinkingLevelChangeEntry(id="a2", parent_id="a1", timestamp=AT, thinking_level=level))
    said = UserMessage(content="old", timestamp=1)
    return MemorySession(entries=(*entries, MessageEntry(id="a3", parent_id=entries[-1].id, timestamp=AT, message=said)))


@pytest.mark.rule("SES-24")
@pytest.mark.parametrize(
    ("recorded", "chosen", "appended"),
    [
        pytest.param("off", None, [], id="another model needs no entry, its answer names it"),
        pytest.param("off", "high", ["high"], id="another level is recorded"),
        pytest.param("max", "high", [], id="a level the model cannot have is no other one"),
        pytest.param(None, "high", ["high"], id="opening records the first level"),
    ],
)
def test_a_run_records_the_level_if_the_branch_says_another(recorded: str | None, chosen: str | None, appended: list[str]) -> None:
    async def resumed() -> list[Any]:
        provider = ScriptedProvider(models=(model("m1", reasoning=False), model("m2", reasoning=True)))
        more: dict[str, Any] = {"session": session(recorded), "model": "scripted/m2", "thinking_level": chosen, "provider": provider}
        async with opened([assistant("done")], **more) as running:
            await running.seat.prompt("go")
            entries = [running.seat.state.tree.entry(at) for at in range(running.seat.state.tree.length)]
        return entries[len(session(recorded).entries) :]

    found = simulate(resumed)

    assert [entry.thinking_level for entry in found if isinstance(entry, ThinkingLevelChangeEntry)] == appended
    assert not [entry for entry in found if isinstance(entry, ModelChangeEntry)]


@pytest.mark.rule("EXPO-7")
@pytest.mark.parametrize("moment", ["input", "agent_start"])
def test_a_recorded_tool_waits_for_its_registration_until_the_next_run_starts(moment: str) -> None:
    declared = ToolDeclaration(name="late", description="", parameters=FrozenDict({"type": "object"}))
    message = SystemMessage(content="", tools_added=(declared,), timestamp=1)
    recorded = MemorySession(entries=(MessageEntry(id="a1", parent_id=None, timestamp=AT, message=message),))

    def setup(api: Any) -> None:
        late = {"name": "late", "description": "", "parameters": {"type": "object"}, "default_active": False, "execute": lambda *_: None}
        api.on(moment, lambda _event, _ctx: api.register_tool(late))

    async def resumed() -> tuple[str, ...]:
        async with opened([assistant("done")], setup, session=recorded) as running:
            await running.seat.prompt("go")
            return running.seat.active_tools
        raise AssertionError

    assert simulate(resumed) == (("late",) if moment == "input" else ())
