"""How answers merge before session operations, at user commands, and where the host asks extensions to decide."""

from typing import Any

import pytest

from camshaft.kernel import session_events
from tests.kernel.dispatching import fails, told


@pytest.mark.rule("EVT-20")
def test_a_later_result_of_a_gate_replaces_the_earlier_one_whole_and_an_empty_one_does_not() -> None:
    first = {"label": "one", "custom_instructions": "short"}
    second = {"label": "two"}

    subject, reports = told("session_before_tree", lambda *_: first, lambda *_: second, lambda *_: {})

    assert reports == []
    assert subject.result == session_events.SessionBeforeTreeResult(label="two")
    assert subject.by == "x1"


@pytest.mark.rule("EVT-20")
def test_cancelling_ends_the_dispatch_of_a_gate() -> None:
    heard: list[str] = []

    subject, _ = told("session_before_switch", lambda *_: {"cancel": True}, lambda *_: heard.append("later"))

    assert subject.cancelled
    assert heard == []


@pytest.mark.rule("EVT-21")
@pytest.mark.parametrize("hook", ["session_before_switch", "session_before_fork", "session_before_compact", "session_before_tree"])
def test_a_gate_stays_open_when_a_handler_raises_unless_it_asked_to_close(hook: str) -> None:
    opened, open_reports = told(hook, fails)
    closed, closed_reports = told(hook, fails, fail_closed=True)

    assert (opened.cancelled, closed.cancelled) == (False, True)
    assert open_reports == closed_reports == ["x0: bad"]


@pytest.mark.rule("UB-4", "UB-5")
def test_the_first_answer_to_a_user_command_wins_and_an_impossible_one_blocks_it() -> None:
    output = {"output": "x", "exit_code": 0, "cancelled": False, "truncated": False}

    answered, _ = told("user_bash", lambda *_: None, lambda *_: {"result": output}, fails)
    both, reports = told("user_bash", lambda *_: {"result": output, "operations": object()})
    no_exec, no_exec_reports = told("user_bash", lambda *_: {"operations": object()})

    assert answered.answer.result.output == "x"
    assert answered.blocked is None
    assert both.blocked == "user_bash handler must return exactly one of operations and result"
    assert reports == [f"x0: {both.blocked}"]
    assert "expected an object with exec" in no_exec.blocked
    assert len(no_exec_reports) == 1


@pytest.mark.rule("EXT-63")
@pytest.mark.parametrize(
    ("answers", "trusted", "by"),
    [
        (("undecided", "yes", "no"), True, "x1"),
        (("no", "yes"), False, "x0"),
        (("undecided",), None, None),
    ],
)
def test_the_first_yes_or_no_decides_on_trust(answers: tuple[str, ...], trusted: bool | None, by: str | None) -> None:
    subject, _ = told("project_trust", *[lambda *_, said=said: {"trusted": said} for said in answers])

    assert (subject.trusted, subject.by) == (trusted, by)


def test_discovered_paths_are_those_of_all_handlers_with_who_named_them() -> None:
    subject, _ = told(
        "resources_discover",
        lambda *_: {"skill_paths": ["a", "b"]},
        lambda *_: {"skill_paths": ["c"], "prompt_paths": ["p"]},
    )

    assert subject.skill_paths == (("x0", "a"), ("x0", "b"), ("x1", "c"))
    assert subject.prompt_paths == (("x1", "p"),)


@pytest.mark.rule("CACHE-8")
def test_the_last_answer_decides_whether_a_cache_is_kept_warm_and_all_see_what_was_proposed() -> None:
    shown: list[str] = []

    def watches(event: Any, _ctx: Any) -> None:
        shown.append(event.action)

    subject, _ = told("cache_warming_decision", lambda *_: {"action": "stop"}, watches)
    again, errors = told("cache_warming_decision", lambda *_: {"action": "stop"}, watches, lambda *_: {"action": "warm"}, fails)

    assert (subject.action, subject.event.action, again.action) == ("stop", "warm", "warm")
    assert shown == ["warm", "warm"]
    assert len(errors) == 1
