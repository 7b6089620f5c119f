"""What becomes of a continuation that a boundary asked for, and of drafts as they were given."""

from typing import Any

import pytest

from camshaft.extensions_std.providers.scripted import assistant
from tests.actors.running import handling, opened, said, simulate

AGAIN = {"type": "custom_message", "custom_type": "m", "content": "again", "display": True}


@pytest.mark.rule("BND-33", "BND-34")
@pytest.mark.parametrize("hook", ["turn_end", "agent_before_settle"])
def test_after_an_error_only_the_settle_boundary_continues_but_drafts_of_both_are_stored(hook: str) -> None:
    async def run() -> list[tuple[str | None, str]]:
        left = [{"entries": [AGAIN], "continue_": True}]
        failure = assistant("", stop_reason="error", error_message="bad thing")
        async with opened([failure, assistant("fine")], handling(hook, lambda *_: left.pop() if left else None)) as running:
            await running.seat.prompt("go")
            return said(running.seat.context_messages)
        raise AssertionError

    found = simulate(run)

    answered = [("assistant", "fine")] if hook == "agent_before_settle" else []
    assert found == [("user", "go"), ("assistant", "error: bad thing"), ("custom", "again"), *answered]


@pytest.mark.rule("BND-29", "SES-48")
def test_a_null_that_a_draft_spells_out_and_further_fields_of_a_replacement_are_stored() -> None:
    async def run() -> Any:
        def handler(event: Any, _ctx: Any) -> Any:
            replacement = {"content": [{"type": "text", "text": "q"}], "why": 1}
            edit = {"type": "context_edit", "target_id": event.message_entry_id, "replacement": replacement}
            return {"entries": [edit, {"type": "custom", "custom_type": "c", "data": None}, {"type": "custom", "custom_type": "d"}]}

        async with opened([assistant("done")], handling("turn_end", handler)) as running:
            await running.seat.prompt("go")
            assert running.errors() == []
            return list(running.seat.state.tree.entries())[-3:]
        raise AssertionError

    edit, null, absent = simulate(run)

    assert edit.replacement.extra == {"why": 1}
    assert null.extra == {"data": None}
    assert absent.extra == {}
