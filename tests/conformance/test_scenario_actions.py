"""What no recorded scenario uses: the runner's other actions, steps and replies, against the kernel."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.conformance.scenario.driver import run_scenario

CALL = {"content": [{"type": "toolCall", "id": "t1", "name": "a", "arguments": {"x": 1}}]}
END = {"text": "end"}


def play(replies: Sequence[Any], steps: Sequence[Any], **fields: Any) -> dict[str, Any]:
    """The trace of a scenario made for a test."""
    return run_scenario({"name": "made", "replies": list(replies), "steps": list(steps), **fields})


def records(trace: dict[str, Any], channel: str) -> list[dict[str, Any]]:
    """The records of one channel, without its name."""
    return [{key: value for key, value in record.items() if key != "ch"} for record in trace["events"] if record["ch"] == channel]


def tool(script: Sequence[Any], *others: Any) -> dict[str, Any]:
    """The extensions of a scenario with a tool `a`."""
    return {"extensions": [{"name": "e", "tools": [{"name": "a", "script": list(script)}, *others]}]}


def test_parallel_nested_calls_are_issued_and_answered_in_list_order() -> None:
    slow_then_fast = [
        [{"do": "sleep", "ms": 10}, {"do": "return", "value": {"text": "one"}}],
        [{"do": "return", "value": {"text": "two"}}],
    ]
    inner = {"name": "b", "scripts": slow_then_fast}

    trace = play([CALL, END], [{"do": "prompt", "text": "go"}], **tool([{"do": "nested", "parallel": [{"name": "b"}] * 2}], inner))

    at = [(record["call"], record["at"]) for record in records(trace, "tool")]
    assert at == [
        ("t1", "start"),
        ("t1/1", "start"),
        ("t1/2", "start"),
        ("t1/2", "end"),
        ("t1/1", "end"),
        ("t1", "nested"),
        ("t1", "end"),
    ]
    results = records(trace, "tool")[5]["results"]
    assert [(result["id"], result["text"]) for result in results] == [("t1/1", "one"), ("t1/2", "two")]


def test_a_trigger_runs_beside_the_run_and_can_abort_it() -> None:
    held = {"text": "part", "chunks": ["pa", {"hang": True}, "rt"]}
    on = {"event": "message_update", "when": {"assistantMessageEvent.delta": "pa"}}
    trigger = {"on": on, "do": [{"do": "log", "note": "seen", "get": ["isIdle"]}, {"do": "sleep", "ms": 5}, {"do": "hostAbort"}]}

    trace = play([held], [{"do": "prompt", "text": "go"}], triggers=[trigger])

    assert records(trace, "driver") == [
        {"step": 1, "do": "prompt"},
        {"trigger": "log"},
        {"note": "seen", "got": {"isIdle": False}},
        {"trigger": "sleep"},
        {"trigger": "hostAbort"},
        {"step": 1, "done": True},
    ]
    assert trace["state"]["messages"][-1][:3] == ["assistant", "aborted", ["text", "pa"]]


def test_a_started_step_is_awaited_by_its_name() -> None:
    steps = [
        {"do": "prompt", "text": "go", "wait": False, "as": "run"},
        {"do": "sleep", "ms": 50},
        {"do": "abort"},
        {"do": "await", "ref": "run"},
    ]

    trace = play([{"text": "never", "hang": "before"}], steps)

    done = [record["step"] for record in records(trace, "driver") if record.get("done")]
    assert (done[0], set(done[1:3]), done[3]) == (2, {1, 3}, 4)
    assert trace["state"]["messages"][-1][:2] == ["assistant", "aborted"]


def test_a_gate_opened_in_a_stream_lets_a_step_pass() -> None:
    reply = {"text": "ab", "chunks": ["a", {"actions": [{"do": "signal", "name": "g"}, {"do": "wait", "name": "h"}]}, "b"]}
    steps = [
        {"do": "prompt", "text": "go", "wait": False, "as": "run"},
        {"do": "waitGate", "name": "g"},
        {"do": "query", "get": ["isIdle", "isStreaming", "signalAborted"]},
        {"do": "signal", "name": "h"},
        {"do": "await", "ref": "run"},
    ]

    trace = play([reply], steps)

    answer = next(record for record in records(trace, "driver") if "result" in record)
    assert answer["result"] == {"isIdle": False, "isStreaming": True, "signalAborted": False}
    assert trace["state"]["lastAssistantText"] == "ab"


def test_a_handler_comes_and_goes_while_a_run_is_active() -> None:
    later = {"do": "on", "event": "turn_end", "as": "late", "actions": [{"do": "log", "note": "late"}, {"do": "off", "as": "late"}]}
    extension = {"name": "e", "handlers": [{"event": "agent_start", "silent": True, "actions": [later], "times": 1}]}

    trace = play([END, END], [{"do": "prompt", "text": "one"}, {"do": "prompt", "text": "two"}], extensions=[extension], probe=False)

    assert [record["note"] for record in records(trace, "ext") if "note" in record] == ["late"]


def test_a_bus_listener_is_recorded_when_called_and_acts_on_its_own() -> None:
    extension = {
        "name": "e",
        "bus": [{"channel": "c", "actions": [{"do": "sleep", "ms": 5}, {"do": "log", "note": "heard", "value": {"$ev": "v"}}]}],
        "commands": [{"name": "tell", "actions": [{"do": "busEmit", "channel": "c", "data": {"v": 1}}, {"do": "log", "note": "told"}]}],
    }

    trace = play([], [{"do": "prompt", "text": "/tell"}], extensions=[extension], probe=False)

    assert [record.get("note", record["event"]) for record in records(trace, "ext")] == ["(load)", "(command)", "(bus:c)", "told", "heard"]


def test_prompts_carry_images_and_bash_results_are_recorded() -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    ran = {"do": "recordBash", "command": "ls", "result": {"output": "o", "exitCode": 0}, "options": {"excludeFromContext": True}}

    trace = play([END], [{"do": "prompt", "text": "see", "images": [image]}, ran])

    assert trace["state"]["messages"][-3:] == [
        ["user", "see\n[image image/png]"],
        ["assistant", "stop", ["text", "end"]],
        ["bashExecution", "ls", "o", 0, True],
    ]


def test_a_request_without_a_reply_fails_in_the_words_of_the_format() -> None:
    trace = play([], [{"do": "prompt", "text": "go"}], settings={"retry": {"enabled": False}})

    assert trace["state"]["messages"][-1] == ["assistant", "error", ["errorMessage", "<error:no-more-replies>"]]


@pytest.mark.parametrize("step", ["bogus", "compact"])
def test_a_step_that_cannot_be_taken_is_an_error_of_its_own(step: str) -> None:
    trace = play([], [{"do": step}, {"do": "query", "get": ["isIdle"]}])

    first, *_, last = [record for record in records(trace, "driver") if record.get("done")]
    assert step in first["error"]
    assert last["result"] == {"isIdle": True}


@pytest.mark.slow
def test_a_cut_connection_and_an_error_response_are_tried_again() -> None:
    replies = [
        {"chunks": [{"content": "par"}], "cut": True},
        {"status": 503, "headers": {"x-note": "n"}, "body": {"error": {"message": "busy"}}},
        {"chunks": [{"content": "ok"}]},
    ]

    trace = play(replies, [{"do": "prompt", "text": "go"}], provider="http", recordHeaders=["Authorization", "X-None"])

    assert [request["headers"] for request in trace["requests"]] == [{"Authorization": "Bearer test-key"}] * 3
    assert trace["state"]["lastAssistantText"] == "ok"


def test_a_handler_that_fails_while_the_session_opens_is_reported_behind_its_record() -> None:
    bad = {"name": "bad", "handlers": [{"event": "session_start", "actions": [{"do": "raise", "message": "no"}]}]}

    trace = play([], [], extensions=[bad], probe=["session_start"])

    assert [(record["ch"], record["ext"], record["event"]) for record in trace["events"]] == [
        ("ext", "bad", "(load)"),
        ("ext", "probe", "(load)"),
        ("ext", "bad", "session_start"),
        ("error", "bad", "session_start"),
        ("ext", "probe", "session_start"),
    ]


def test_a_call_that_the_output_limit_cut_is_shown_by_its_placeholder() -> None:
    trace = play([{**CALL, "stopReason": "length"}, END], [{"do": "prompt", "text": "go"}], **tool([]))

    assert ["toolResult", "t1", "a", True, "<tool-call-truncated:a>"] in trace["state"]["messages"]
    end = next(record for record in records(trace, "session") if record["event"] == "tool_execution_end")
    assert end["data"]["result"]["content"] == [{"type": "text", "text": "<tool-call-truncated:a>"}]
