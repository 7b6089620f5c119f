"""Scripts in JSON files: what they mean, and what is told of those that cannot be played (FAUX-27)."""

import json
from pathlib import Path
from typing import Any

import pytest

from camshaft.extensions_std.providers.scripted_file import ACTIONS as BUILT
from camshaft.extensions_std.providers.scripted_file import ScriptFileError, load_script, script_of
from camshaft.extensions_std.providers.scripted_schema import ACTIONS
from camshaft.kernel.messages import TextBlock, ThinkingBlock, ToolCall, Usage
from camshaft.kernel.persistent import FrozenDict
from tests.extensions_std.providers.asking import ask


async def _message(step: Any, **fields: Any) -> Any:
    return (await ask(script_of({"steps": [step], **fields}))).message


@pytest.mark.rule("FAUX-27")
async def test_a_text_is_an_answer() -> None:
    message = await _message("Hello.")

    assert (message.content, message.stop_reason, message.provider, message.model) == (
        (TextBlock(text="Hello."),),
        "stop",
        "faux",
        "faux-1",
    )


async def test_a_message_has_its_blocks_and_the_stop_reason_that_they_imply() -> None:
    call = {"type": "toolCall", "name": "read", "arguments": {"path": "a"}, "id": "c"}
    usage = {"input": 5, "cacheRead": 2, "cost": {"input": 0.5}}

    message = await _message(
        {"content": ["a", {"type": "thinking", "thinking": "b", "signature": "s"}, call], "usage": usage, "responseId": "r"}
    )

    assert message.content == (
        TextBlock(text="a"),
        ThinkingBlock(thinking="b", thinking_signature="s"),
        ToolCall(id="c", name="read", arguments=FrozenDict({"path": "a"})),
    )
    assert (message.stop_reason, message.response_id) == ("toolUse", "r")
    assert (message.usage.total_tokens, message.usage.cost.total) == (7, 0.5)


async def test_an_error_text_implies_an_error() -> None:
    message = await _message({"errorMessage": "503 overloaded"})

    assert (message.stop_reason, message.error_message, message.content) == ("error", "503 overloaded", ())


async def test_actions_interleave_blocks_and_cut_characters() -> None:
    actions = [
        {"type": "respond", "status": 201, "headers": {"x": "y"}},
        {"type": "start", "responseModel": "other"},
        {"type": "text_start"},
        {"type": "toolcall_start", "id": "c", "name": "read"},
        {"type": "text_delta", "contentIndex": 0, "delta": "\ud83d"},
        {"type": "toolcall_delta", "delta": '{"a": "\\u00'},
        {"type": "text_delta", "contentIndex": 0, "delta": "\ude00"},
        {"type": "toolcall_delta", "delta": 'e9"}'},
        {"type": "text_end", "contentIndex": 0},
        {"type": "toolcall_end"},
        {"type": "sleep", "ms": 0},
        {"type": "done", "reason": "length", "rawStopReason": "max_tokens", "diagnostics": [{"type": "d", "timestamp": 1}]},
    ]

    message = await _message({"actions": actions})

    assert message.content == (TextBlock(text="😀"), ToolCall(id="c", name="read", arguments=FrozenDict({"a": "é"})))
    assert (message.response_model, message.stop_reason, message.raw_stop_reason) == ("other", "length", "max_tokens")


async def test_guards_models_and_usage_come_from_the_file() -> None:
    script = {
        "provider": "fake",
        "models": [{"id": "m", "contextWindow": 1000, "cost": {"input": 1, "cacheRead": 2}, "reasoning": True}],
        "usage": {"input": 900},
        "steps": [{"content": "no", "when": {"contains": "other"}}, {"content": "yes", "repeats": True}],
    }
    provider = script_of(script)

    asked = [await ask(provider) for _ in range(2)]

    assert [each.message.usage for each in asked if each.message] == [Usage(input=900, total_tokens=900)] * 2
    model = provider.models[0]
    assert (model.reference, model.api, model.context_window, model.cost.cache_read) == ("fake/m", "fake", 1000, 2)
    with pytest.raises(AssertionError, match="1 scripted responses were not requested"):
        provider.assert_exhausted()


def test_every_action_of_the_schema_can_be_built() -> None:
    assert set(ACTIONS) == set(BUILT)


FAULTS: list[tuple[Any, str]] = [
    ([], "(file): expected an object, got []"),
    ({}, "steps: missing; expected a list"),
    ({"steps": "hi"}, "steps: expected a list, got 'hi'"),
    ({"steps": [5]}, "steps[0]: expected a text or an object, got 5"),
    ({"steps": [{}]}, "steps[0]: says nothing; expected content, errorMessage or actions"),
    ({"steps": [{"contnt": "a"}]}, "steps[0].contnt: is not known here ('a'); did you mean \"content\"?"),
    ({"steps": [{"content": ["a", {"type": "txt"}]}]}, "steps[0].content[1].type: expected one of text, thinking, toolCall, got 'txt'"),
    ({"steps": [{"content": [{"text": "a"}]}]}, "steps[0].content[0].type: expected one of text, thinking, toolCall, got nothing"),
    ({"steps": [{"content": [{"type": "toolCall"}]}]}, "steps[0].content[0].name: missing; expected a non-empty text"),
    ({"steps": [{"content": "a", "stopReason": "end"}]}, "steps[0].stopReason: expected one of stop, length,"),
    ({"steps": [{"content": "a", "usage": {"input": -1}}]}, "steps[0].usage.input: expected a whole number of at least 0, got -1"),
    ({"steps": [{"actions": [{"type": "slep"}]}]}, "steps[0].actions[0].type: expected one of start,"),
    ({"steps": [{"actions": [{"type": "sleep", "ms": "9"}]}]}, "steps[0].actions[0].ms: expected a number of at least 0, got '9'"),
    ({"steps": [{"actions": [{"type": "fail", "text": "a", "status": 5}]}]}, "status: expected an HTTP status, 100 to 599, got 5"),
    ({"steps": [{"actions": [{"type": "hang"}, {"type": "respond"}]}]}, "steps[0].actions[1]: respond says how the answer begins"),
    ({"steps": [{"content": "a", "when": {"model": ""}}]}, "steps[0].when.model: expected a non-empty text, got ''"),
    ({"steps": [], "seed": True}, "seed: expected a whole number of at least 0, got True"),
    ({"steps": [], "tokenSize": {"min": 5, "max": 3}}, "tokenSize: expected whole numbers, min at most max"),
    ({"steps": [], "models": [{"name": "a"}]}, "models[0].id: missing; expected a non-empty text"),
]


@pytest.mark.parametrize(("script", "told"), FAULTS, ids=[told for _, told in FAULTS])
def test_what_cannot_be_played_is_told_with_file_place_and_value(script: Any, told: str, tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(script), encoding="utf-8")

    with pytest.raises(ScriptFileError) as caught:
        load_script(path)

    assert told in str(caught.value)
    assert str(caught.value).endswith(f"File: {path}")


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(ScriptFileError) as caught:
        script_of({"seed": "a", "steps": [1, 2]})

    assert str(caught.value).count("\n  - ") == 3


@pytest.mark.parametrize(("text", "told"), [("{", "The script is not JSON: "), (None, "Cannot read the script: ")])
def test_file_that_cannot_be_read_is_named(text: str | None, told: str, tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")

    with pytest.raises(ScriptFileError, match=told):
        load_script(path)
