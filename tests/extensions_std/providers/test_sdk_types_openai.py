"""The bodies we send are what OpenAI's own SDK would let one write, but for what other vendors add."""

import json
from typing import Any, Final

import pytest
import trio
from openai.types.chat import (
    chat_completion_assistant_message_param,
    chat_completion_system_message_param,
    chat_completion_tool_message_param,
)

from tests.conformance.recorded import DATA
from tests.conformance.run_wire import run_case
from tests.extensions_std.providers.sdk_types_openai import PARAMS, VENDOR_FIELDS, VENDOR_MESSAGE_FIELDS, openai_faults

MESSAGES: Final = {
    "assistant": chat_completion_assistant_message_param.ChatCompletionAssistantMessageParam,
    "system": chat_completion_system_message_param.ChatCompletionSystemMessageParam,
    "tool": chat_completion_tool_message_param.ChatCompletionToolMessageParam,
}

HELLO: Final[dict[str, Any]] = {"role": "user", "content": [{"type": "input_text", "text": "Hello"}]}
GOOD: Final[dict[str, Any]] = {"model": "m", "stream": True, "input": [HELLO]}


def _cases() -> list[Any]:
    files = [json.loads((DATA / "wire" / f"requests-{api}.json").read_text("utf-8")) for api in ("completions", "responses")]
    return [pytest.param(case, id=case["name"]) for file in files for case in file["cases"] if "request" in case["expect"]]


def _own(case: dict[str, Any]) -> set[str]:
    """Fields that the case itself asks for, by sampling parameters or a hook."""
    model, options = case["model"], case.get("options", {})
    levels = model.get("samplingParamsByThinkingLevel", {}).values()
    asked = [model.get("samplingParams", {}), options.get("samplingParams", {}), case.get("hooks", {}).get("payload", {}).get("merge", {})]
    return {name for fields in (*asked, *levels) for name in fields} - {"model", "stream"}


@pytest.mark.parametrize("case", _cases())
def test_body_fits_the_types_of_the_sdk(case: dict[str, Any]) -> None:
    body = trio.run(run_case, "requests", case)["request"]["body"]

    assert openai_faults(case["model"]["api"], body, _own(case)) == []


@pytest.mark.parametrize("api", VENDOR_FIELDS)
def test_no_field_of_the_table_is_known_to_the_sdk(api: str) -> None:
    """Else the table would hide what the SDK could check."""
    assert not set(VENDOR_FIELDS[api]) & {name for cls in PARAMS[api].__mro__ for name in getattr(cls, "__annotations__", {})}


@pytest.mark.parametrize("role", VENDOR_MESSAGE_FIELDS)
def test_no_message_field_of_the_table_is_known_to_the_sdk(role: str) -> None:
    assert not set(VENDOR_MESSAGE_FIELDS[role]) & set(MESSAGES[role].__annotations__)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({**GOOD, "tool_stream": True}, "tool_stream"),
        ({**GOOD, "input": [{**HELLO, "name": "x"}]}, "name"),
        ({**GOOD, "input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "text"),
        ({**GOOD, "input": [{"type": "function_call", "call_id": "c", "name": "n", "arguments": {}}]}, "arguments"),
        ({**GOOD, "tools": [{"type": "function", "name": "n", "parametres": {}}]}, "parametres"),
        ({**GOOD, "max_output_tokens": "many"}, "max_output_tokens"),
    ],
)
def test_unknown_missing_and_wrong_values_are_faults(body: dict[str, Any], place: str) -> None:
    """A check that lets everything pass would pass everything."""
    assert openai_faults("openai-responses", GOOD) == []

    assert place in " ".join(openai_faults("openai-responses", body))
