"""The hook table: every row with every kind of answer, and what each merge does.

The dispatcher of the extension host is used as it is, so what is tested is what runs.
"""

from itertools import product
from typing import Any

import attrs
import pytest

from camshaft.kernel import hook_events
from camshaft.kernel.hooks import HOOKS
from camshaft.kernel.messages import TextBlock
from tests.kernel.dispatching import ANSWER, GO, SUBJECTS, fails, told
from tests.kernel.made import system

ANSWERS: dict[str, Any] = {
    "nothing": lambda *_: None,
    "an empty dict": lambda *_: {},
    "an unknown key": lambda *_: {"surprise": 1},
    "a wrong type": lambda *_: 3,
    "a raise": fails,
}
KEEPS = {"nothing", "an empty dict"}
ANYTHING = {"before_provider_headers", "before_provider_request"}
"""Hooks that take any value for an answer; the first ignores it, the second sends it."""
ASKS_FOR_MORE = {
    ("project_trust", "nothing"),
    *product(["project_trust", "cache_warming_decision", "user_bash"], ["an empty dict"]),
}
"""Cells where saying too little is a mistake: these answers have a part that must be there."""
CHANGES = {
    *product(["user_bash"], ["an empty dict", "an unknown key", "a wrong type", "a raise"]),
    *product(["tool_call"], ["an unknown key", "a wrong type", "a raise"]),
    *product(["before_provider_request"], ["an empty dict", "an unknown key", "a wrong type"]),
}
"""Cells whose subject is another one afterwards: a gate blocks, a body is replaced."""


def test_every_hook_that_takes_answers_has_a_subject_here() -> None:
    assert set(SUBJECTS) == {name for name, row in HOOKS.items() if row.result is not None}


@pytest.mark.rule("EVT-29", "LOOP-49")
@pytest.mark.parametrize(("hook", "answer"), list(product(HOOKS, ANSWERS)))
def test_what_every_kind_of_answer_does_to_every_hook(hook: str, answer: str) -> None:
    before = SUBJECTS.get(hook, lambda: None)()

    after, reports = told(hook, ANSWERS[answer])

    takes = HOOKS[hook].result is not None and hook not in ANYTHING
    is_bad = answer == "a raise" or (takes and answer not in KEEPS) or (hook, answer) in ASKS_FOR_MORE
    assert [report[:4] for report in reports] == ["x0: "] * is_bad
    assert (_plain(after) != _plain(before)) == ((hook, answer) in CHANGES)


def _plain(subject: Any) -> Any:
    """Contexts of proposals are views, compared by what they show."""
    proposal = getattr(subject, "proposal", None)
    return subject if proposal is None else (proposal.entries, proposal.continue_, proposal.valid, proposal.kind)


def test_which_hooks_fail_closed_are_not_waited_for_or_commit_nothing_when_cut() -> None:
    assert [name for name, row in HOOKS.items() if row.fail_closed is not None] == [
        "session_before_switch",
        "session_before_fork",
        "session_before_compact",
        "session_before_tree",
        "input",
    ]
    assert [name for name, row in HOOKS.items() if not row.awaited] == [
        "session_info_changed",
        "mcp_servers_change",
        "ui_prompt_start",
        "ui_prompt_end",
        "thinking_level_select",
    ]
    assert [name for name, row in HOOKS.items() if row.on_cut is not None] == ["turn_end", "agent_before_settle"]


# -- merges ------------------------------------------------------------------------------


@pytest.mark.rule("IN-2")
@pytest.mark.parametrize(
    ("answer", "text", "handled"),
    [
        ({"action": "continue"}, "go", False),
        ({"action": "other"}, "go", False),
        ({"action": "transform", "text": ""}, "", False),
        ({"action": "transform", "text": "x"}, "x!", False),
        ({"action": "handled"}, "go", True),
    ],
)
def test_input_handlers_chain_until_one_handled_it(answer: Any, text: str, handled: bool) -> None:
    def second(event: Any, _ctx: Any) -> Any:
        return {"action": "transform", "text": event.text + "!"} if event.text == "x" else None

    after, reports = told("input", lambda *_: answer, second)

    assert (after.event.text, after.handled, reports) == (text, handled, [])


@pytest.mark.rule("EVT-21")
def test_a_raising_input_handler_lets_pass_unless_it_asked_to_fail_closed() -> None:
    assert told("input", fails)[0].handled is False
    assert told("input", fails, fail_closed=True)[0].handled is True


@pytest.mark.rule("TOOL-18", "TOOL-19", "TOOL-20", "TOOL-21")
@pytest.mark.parametrize(
    ("handler", "given", "blocked", "terminate"),
    [
        (lambda event, _ctx: event.input.update(y=2), {"x": 1, "y": 2}, None, False),
        (lambda *_: {"input": {"z": 3}}, {"z": 3}, None, False),
        (lambda *_: {"block": True}, {"x": 1}, "Tool execution was blocked", False),
        (lambda *_: {"block": True, "reason": "no", "terminate": True}, {"x": 1}, "no", True),
        (lambda *_: {"block": False, "reason": "no"}, {"x": 1}, None, False),
        (fails, {"x": 1}, "bad", False),
    ],
)
def test_a_gate_edits_replaces_or_blocks(handler: Any, given: Any, blocked: str | None, terminate: bool) -> None:
    called: list[Any] = []

    after, _ = told("tool_call", handler, lambda event, _ctx: called.append(event.input))

    assert (after.input, after.blocked, after.terminate) == (given, blocked, terminate)
    assert called == [given] * (blocked is None)


@pytest.mark.rule("EVT-37")
@pytest.mark.parametrize(
    ("answer", "content", "structured", "is_error"),
    [
        ({"is_error": True}, "x", 1, True),
        ({"content": [{"type": "text", "text": "y"}]}, "y", None, False),
        ({"content": [{"type": "text", "text": "y"}], "structured_content": 2}, "y", 2, False),
        ({"content": None}, "x", 1, False),
    ],
)
def test_a_result_is_patched_by_field_and_new_content_drops_the_structured_one(
    answer: Any, content: str, structured: Any, is_error: bool
) -> None:
    after, reports = told("tool_result", lambda *_: answer)

    assert (after.content, after.structured_content, after.is_error, reports) == ((TextBlock(text=content),), structured, is_error, [])


@pytest.mark.rule("EVT-32", "LOOP-20")
@pytest.mark.parametrize(
    ("message", "stored", "reports"),
    [
        (attrs.evolve(GO, content="changed"), attrs.evolve(GO, content="changed"), []),
        (ANSWER, GO, ["x0: message_end handlers must return a message with the same role"]),
    ],
)
def test_a_message_is_replaced_by_one_of_its_role_only(message: Any, stored: Any, reports: list[str]) -> None:
    after, found = told("message_end", lambda *_: {"message": message})

    assert (after.message, found) == (stored, reports)


def edits(event: Any, _ctx: Any) -> None:
    event.messages[0].content = "edited"


def drops(event: Any, _ctx: Any) -> None:
    del event.messages[0]


@pytest.mark.rule("EVT-28", "EVT-29")
def test_edits_of_a_context_leave_system_messages_in_place_and_other_lists_get_one_head() -> None:
    def edits_and_fails(event: Any, ctx: Any) -> None:
        edits(event, ctx)
        raise ValueError("bad")

    edited, _ = told("context", edits)
    dropped, _ = told("context", drops)
    replaced, _ = told("context", lambda *_: {"messages": [{"role": "user", "content": "new", "timestamp": 1}]})
    raised, reports = told("context", edits_and_fails)

    assert edited == (system("sys"), attrs.evolve(GO, content="edited"), ANSWER) and edited[2] is ANSWER
    assert [message.role for message in dropped] == ["system", "assistant"]
    assert [message.role for message in replaced] == ["system", "user"]
    assert (raised, reports) == ((system("sys"), GO, ANSWER), ["x0: bad"])


def test_a_whole_transcript_may_lose_its_head_but_not_unnoticed() -> None:
    after, reports = told("context_with_system", drops)

    assert [message.role for message in after] == ["user", "assistant"]
    assert reports == ["x0: Handler removed the leading system message; the request is sent without prompt and tools"]


@pytest.mark.rule("PB-3", "EVT-29")
def test_prompt_options_are_edited_in_place_also_by_a_handler_that_then_raises() -> None:
    def names_badly(event: Any, _ctx: Any) -> None:
        event.system_prompt_options.sections = {"good": "g", "Bad name": "b"}
        raise ValueError("bad")

    after, reports = told("before_agent_start", names_badly, lambda *_: {"message": {"custom_type": "k"}})

    assert after.options.sections == {"good": "g"}
    assert after.added == (hook_events.CustomInput(custom_type="k"),)
    assert [report.partition(" name: ")[0] for report in reports] == ["x0: bad", "x0: Invalid system prompt section"]
