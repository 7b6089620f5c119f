"""What is sent to OpenAI's responses, where the recorded requests do not show it."""

import json
from collections.abc import Sequence
from typing import Any, Final

import pytest

from camshaft.actors.api import ModelRequest, RequestOptions
from camshaft.extensions_std.providers.openai_responses import RESPONSES
from camshaft.kernel.messages import (
    AssistantMessage,
    ImageBlock,
    ModelMessage,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolDeclaration,
    ToolResultMessage,
    UserMessage,
)
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import EMPTY, FrozenDict, freeze
from tests.extensions_std.providers.asking import FakeHttp, FakeResponse, ask, completions

API: Final = "openai-responses"
ASK: Final = UserMessage(content="Go", timestamp=1)
GOOD: Final = FakeResponse(body=(b'data: {"type":"response.completed","response":{"status":"completed"}}\n\n',))


def _model(compat: dict[str, Any] | None = None, **fields: Any) -> Model:
    fields = {"provider": "openai", "reasoning": True, "compat": freeze(compat or {}), **fields}
    return Model(id="gpt", api=API, base_url="http://model.test/v1", **fields)


def _answer(*content: Any, model: str = "gpt", provider: str = "openai", api: str = API, at: int = 2) -> AssistantMessage:
    return AssistantMessage(content=content, api=api, provider=provider, model=model, stop_reason="stop", timestamp=at)


def _result(id: str, *content: Any, name: str = "read") -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=id, tool_name=name, content=content or (TextBlock(text="ok"),), is_error=False, timestamp=3)


def _body(messages: Sequence[ModelMessage], model: Model | None = None, level: str = "off", **options: Any) -> dict[str, Any]:
    model = model or _model()
    conversation = RESPONSES.begin(model)
    conversation.follow(messages)
    request = ModelRequest(model=model, thinking_level=level, messages=messages, options=RequestOptions(**options))
    body: dict[str, Any] = json.loads(conversation.body(request))
    return body


def _sent(body: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: body[name] for name in names if name in body}


# -- fields (WIRE-80 to WIRE-83, STR-4) --------------------------------------------------


def test_cache_key_is_cut_by_code_points() -> None:
    assert _body([ASK], session_id="é" * 70)["prompt_cache_key"] == "é" * 64


@pytest.mark.parametrize(
    ("compat", "retention", "fields"),
    [
        ({}, "short", {"prompt_cache_key": "s"}),
        ({}, "long", {"prompt_cache_key": "s", "prompt_cache_retention": "24h"}),
        ({}, "none", {}),
        ({"promptCacheKeyMode": "disabled"}, "long", {"prompt_cache_retention": "24h"}),
        ({"promptCacheKeyMode": "enabled"}, "short", {"prompt_cache_key": "s"}),
        ({"supportsExplicitPromptCacheMode": True}, "short", {"prompt_cache_key": "s"}),
        ({"supportsExplicitPromptCacheMode": True}, "none", {"prompt_cache_options": {"mode": "explicit"}}),
        ({"supportsExplicitPromptCacheMode": True, "supportsLongCacheRetention": False}, "long", {"prompt_cache_key": "s"}),
    ],
)
def test_cache_fields_follow_retention_and_flags(compat: dict[str, Any], retention: str, fields: dict[str, Any]) -> None:
    body = _body([ASK], _model(compat), session_id="s", cache_retention=retention)

    assert _sent(body, "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options") == fields


async def test_no_retention_sends_no_affinity_headers() -> None:
    http = FakeHttp([GOOD])

    await ask(completions(http, _model()), options=RequestOptions(session_id="s", cache_retention="none"))

    assert not {"session-id", "x-client-request-id", "x-session-id"} & dict(http.requests[0].headers).keys()


def test_affinity_format_of_openrouter_is_found_by_its_address_and_can_be_overridden() -> None:
    def names(model: Model) -> set[str]:
        request = ModelRequest(model=model, thinking_level="off", messages=[ASK], options=RequestOptions(session_id="s"))
        return {name for layer in RESPONSES.begin(model).layers(request) for name in layer} - {"accept", "content-type"}

    router: dict[str, Any] = {"provider": "mine", "compat": EMPTY, "id": "m", "api": API, "base_url": "https://openrouter.ai/api/v1"}

    assert names(Model(**router)) == {"x-session-id"}
    assert names(Model(**{**router, "compat": FrozenDict({"sessionAffinityFormat": "openai"})})) == {"session-id", "x-client-request-id"}
    assert names(Model(**{**router, "compat": FrozenDict({"sessionAffinityFormat": 7})})) == {"x-session-id"}


def test_cap_is_at_least_what_the_api_takes() -> None:
    assert _body([ASK], max_tokens=3)["max_output_tokens"] == 16


def test_own_entry_computes_no_cap() -> None:
    assert "max_output_tokens" not in _body([ASK], api_options=EMPTY)


@pytest.mark.parametrize(
    ("own", "level_map", "reasoning"),
    [
        ({}, {}, {"effort": "none"}),
        ({}, {"off": "low"}, {"effort": "low"}),
        ({}, {"off": None}, None),
        ({"reasoningEffort": "max"}, {}, {"effort": "max", "summary": "auto"}),
        ({"reasoningEffort": "high"}, {"high": "h"}, {"effort": "h", "summary": "auto"}),
        ({"reasoningEffort": "high"}, {"high": None}, {"effort": "high", "summary": "auto"}),
        ({"reasoningEffort": "low", "reasoningSummary": None}, {}, {"effort": "low", "summary": "auto"}),
        ({"reasoningEffort": "low", "reasoningSummary": "concise"}, {}, {"effort": "low", "summary": "concise"}),
        ({"reasoningSummary": "detailed"}, {"medium": "m"}, {"effort": "medium", "summary": "detailed"}),
        ({"reasoningSummary": None}, {}, {"effort": "none"}),
        ({"reasoningEffort": 7, "unknown": 1}, {}, {"effort": "none"}),
    ],
)
def test_options_of_the_api_are_sent_as_they_are(own: dict[str, Any], level_map: dict[str, Any], reasoning: dict[str, Any] | None) -> None:
    body = _body([ASK], _model(thinking_level_map=freeze(level_map)), level="high", api_options=freeze(own))

    assert body.get("reasoning") == reasoning
    assert ("include" in body) == ("summary" in (reasoning or {}))


def test_model_that_does_not_reason_gets_no_reasoning_whatever_is_asked() -> None:
    own = freeze({"reasoningEffort": "high", "reasoningSummary": "detailed", "serviceTier": "priority"})

    body = _body([ASK], _model(reasoning=False), api_options=own)

    assert _sent(body, "reasoning", "include", "service_tier") == {"service_tier": "priority"}


def test_sampling_parameters_of_the_level_are_found_on_the_model() -> None:
    params = {"low": {"top_p": 0.5}, "off": {"top_p": 0.9}}

    body = _body([ASK], _model(sampling_params_by_thinking_level=freeze(params)), level="low")

    assert body["top_p"] == 0.5


def test_tool_choice_is_given_as_it_is() -> None:
    assert _body([ASK], tool_choice="none")["tool_choice"] == "none"


def test_without_developer_role_the_prompt_is_a_system_message() -> None:
    system = SystemMessage(content="S", timestamp=0)

    assert _body([system, ASK], _model({"supportsDeveloperRole": False}))["input"][0] == {"role": "system", "content": "S"}


def test_flags_of_vendor_betas_change_nothing() -> None:
    """MOD-103."""
    betas = {"supportsAdditionalTools": True, "supportsToolSearch": True, "supportsMidConvoEffort": True}

    assert _body([ASK], _model(betas), level="low") == _body([ASK], level="low")


# -- items (WIRE-84 to WIRE-88) ----------------------------------------------------------


def _ids(messages: Sequence[ModelMessage], compat: dict[str, Any] | None = None) -> list[str]:
    return [item["id"] for item in _body(messages, _model(compat))["input"] if item.get("role") == "assistant"]


@pytest.mark.parametrize("signature", ['{"v":1,"id":7}', '{"v":1,"id"', "plain"])
def test_signature_of_another_form_is_itself_the_id(signature: str) -> None:
    assert _ids([ASK, _answer(TextBlock(text="x", text_signature=signature))]) == [signature]


def test_phase_that_is_none_is_left_out() -> None:
    signature = '{"v":1,"id":"m","phase":"thinking aloud"}'

    item = _body([ASK, _answer(TextBlock(text="x", text_signature=signature))])["input"][1]

    assert (item["id"], "phase" in item) == ("m", False)


def test_long_ids_of_different_texts_stay_different() -> None:
    long = [TextBlock(text="x", text_signature="i" * 64 + end) for end in ("", "a", "b")]

    kept, first, second = _ids([ASK, _answer(*long)])

    assert kept == "i" * 64
    assert first != second and {len(first), len(second)} == {12}


def test_results_made_up_and_system_messages_in_place_count_and_omitted_messages_do_not() -> None:
    """WIRE-85."""
    failed = AssistantMessage(content=(TextBlock(text="f"),), api=API, provider="openai", model="gpt", stop_reason="error", timestamp=2)
    textless = SystemMessage(content="", tools_added=(ToolDeclaration(name="n", description="d", parameters=EMPTY),), timestamp=2)
    unreadable = _answer(ThinkingBlock(thinking="t", thinking_signature="broken"))
    history: list[ModelMessage] = [
        ASK,
        _answer(ToolCall(id="c|fc_1", name="read")),
        failed,
        unreadable,
        ASK,
        textless,
        _answer(TextBlock(text="x")),
    ]

    assert _ids(history, {"supportsMidConvoSystemMessages": True}) == ["msg_pi_5"]
    assert _ids(history) == ["msg_pi_4"]


@pytest.mark.parametrize(
    ("source", "id", "sent"),
    [
        ({}, "c|fc_1", ("c", "fc_1")),
        ({}, "c|item_1", ("c", None)),
        ({}, "c|ctc_1", ("c", None)),
        ({}, "c", ("c", None)),
        ({"model": "gpt-old"}, "c|fc_1", ("c", None)),
        ({"model": "gpt-old"}, "c+1__|fc_/1", ("c_1", None)),
        ({"api": "openai-completions", "model": "gpt"}, "toolu_1", ("toolu_1", None)),
        ({"api": "openai-completions", "model": "gpt"}, "x" * 70, ("x" * 64, None)),
    ],
)
def test_item_id_of_a_call_is_sent_where_the_server_knows_it(source: dict[str, Any], id: str, sent: tuple[str, str | None]) -> None:
    call, result = _body([ASK, _answer(ToolCall(id=id, name="read"), **source), _result(id)])["input"][1:]

    assert (call["call_id"], call.get("id")) == sent
    assert result["call_id"] == sent[0]


def test_foreign_item_id_is_a_hash_that_the_server_can_take() -> None:
    foreign = _answer(ToolCall(id="c|" + "i" * 99, name="read"), provider="other")

    item = _body([ASK, foreign])["input"][1]

    assert item["call_id"] == "c" and item["id"].startswith("fc_") and len(item["id"]) == 11


def test_calls_that_differ_only_in_their_item_ids_are_told_apart() -> None:
    answer = _answer(ToolCall(id="c|fc_1", name="read"), ToolCall(id="c|fc_2", name="read"))
    results = [_result("c|fc_2", TextBlock(text="2")), _result("c|fc_1", TextBlock(text="1"))]

    items = _body([ASK, answer, *results])["input"][1:]

    assert [item["call_id"] for item in items] == ["c", "c_2", "c_2", "c"]
    assert [item.get("output") for item in items[2:]] == ["2", "1"]


GRAMMAR: Final = ToolDeclaration(
    name="patch",
    description="d",
    parameters=freeze({"type": "object", "properties": {"body": {"type": "string"}}, "required": ["body"]}),
    constrained_sampling=freeze({"type": "grammar", "variants": {"openai_lark": "start: /x/"}}),
)


def test_grammar_tool_is_sent_and_replayed_with_plain_text() -> None:
    system = SystemMessage(content="", tools_added=(GRAMMAR,), timestamp=0)
    calls = [ToolCall(id=id, name="patch", arguments=FrozenDict({"body": "x"})) for id in ("a|ctc_1", "b|fc_2")]
    odd = ToolCall(id="c|fc_3", name="patch", arguments=FrozenDict({"body": 7}))
    history: list[ModelMessage] = [system, ASK, _answer(*calls, odd), _result("a|ctc_1", name="patch"), _result("b|fc_2", name="patch")]

    body = _body(history, _model({"supportsOpenAIGrammarTools": True}))

    form = {"type": "grammar", "syntax": "lark", "definition": "start: /x/"}
    assert body["tools"] == [{"type": "custom", "name": "patch", "description": "d", "format": form}]
    assert body["input"][1:4] == [
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "a", "name": "patch", "input": "x"},
        {"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "x"},
        {"type": "function_call", "id": "fc_3", "call_id": "c", "name": "patch", "arguments": '{"body":7}'},
    ]
    assert [item["type"] for item in body["input"][4:]] == ["custom_tool_call_output"] * 2 + ["function_call_output"]


def test_grammar_tool_is_a_function_where_grammars_are_unknown() -> None:
    system = SystemMessage(content="", tools_added=(GRAMMAR,), timestamp=0)
    call = ToolCall(id="a|ctc_1", name="patch", arguments=FrozenDict({"body": "x"}))

    body = _body([system, ASK, _answer(call), _result("a|ctc_1", name="patch")])

    assert body["tools"][0]["type"] == "function"
    assert body["input"][1:] == [
        {"type": "function_call", "call_id": "a", "name": "patch", "arguments": '{"body":"x"}'},
        {"type": "function_call_output", "call_id": "a", "output": "ok"},
    ]


@pytest.mark.parametrize(("wish", "is_strict"), [(None, False), ({"type": "json_schema", "strict": "prefer"}, True)])
def test_strictness_is_told_to_servers_that_know_it(wish: Any, is_strict: bool) -> None:
    parameters = freeze({"type": "object", "properties": {"a": {"type": "string"}}})
    tool = ToolDeclaration(name="t", description="d", parameters=parameters, constrained_sampling=freeze(wish))
    system = SystemMessage(content="", tools_added=(tool,), timestamp=0)

    told = _body([system, ASK], _model({"supportsStrictMode": True}))["tools"][0]
    untold = _body([system, ASK])["tools"][0]

    assert told["strict"] is is_strict
    assert ("required" in told["parameters"]) is is_strict
    assert "strict" not in untold and "required" not in untold["parameters"]


def test_images_are_sent_to_models_that_take_them_and_told_to_others() -> None:
    image = ImageBlock(data="aW1n", mime_type="image/png")
    shown = UserMessage(content=(TextBlock(text=" "), image), timestamp=1)
    history: list[ModelMessage] = [shown, _answer(ToolCall(id="c", name="shot")), _result("c", image, name="shot")]
    part = {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aW1n"}

    sees, blind = [_body(history, _model(input=kinds))["input"] for kinds in (("text", "image"), ("text",))]

    assert sees[0]["content"] == [{"type": "input_text", "text": " "}, part]
    assert sees[2]["output"] == [part]
    assert blind[0]["content"][1] == {"type": "input_text", "text": "(image omitted: model does not support images)"}
    assert blind[2]["output"] == "(tool image omitted: model does not support images)"


@pytest.mark.parametrize("signature", ["reasoning_content", "[1]", '{"type":"message"}', "7", "{"])
async def test_thinking_that_is_no_reasoning_item_is_left_out_and_told_once(signature: str) -> None:
    """WIRE-88."""
    bad = _answer(ThinkingBlock(thinking="t", thinking_signature=signature), TextBlock(text="x", text_signature="m"))
    http = FakeHttp([GOOD])
    provider = completions(http, _model(), clock=lambda: 77)

    first = await ask(provider, [ASK, bad, ASK], options=RequestOptions(session_id="s"))
    second = await ask(provider, [ASK, bad, ASK, ASK], options=RequestOptions(session_id="s"))

    assert [item.get("id") for item in json.loads(http.requests[0].body)["input"]] == [None, "m", None]
    assert first.message is not None and second.message is not None
    (told,) = first.message.diagnostics
    assert (told["type"], told["timestamp"], told["details"]["contentIndex"]) == ("openai_thinking_skipped", 77, 0)
    assert second.message.diagnostics is None


def test_result_of_a_call_that_failed_is_dropped_and_one_of_no_call_at_all_is_sent() -> None:
    failed = AssistantMessage(
        content=(ToolCall(id="c|fc_1", name="read"),), api=API, provider="openai", model="gpt", stop_reason="aborted", timestamp=2
    )

    items = _body([ASK, failed, _result("c|fc_1"), _result("d|fc_2"), ASK])["input"]

    assert [item.get("call_id") for item in items] == [None, "d", None]


def test_second_result_of_a_call_is_dropped() -> None:
    items = _body([ASK, _answer(ToolCall(id="c", name="read")), _result("c"), _result("c")])["input"]

    assert len(items) == 3


def test_text_with_half_a_character_is_sent_without_it() -> None:
    reasoning = '{"type":"reasoning","id":"rs\\ud800","summary":[]}'
    answer = _answer(ThinkingBlock(thinking="", thinking_signature=reasoning), TextBlock(text="x\ud800", text_signature="m\udc00"))

    items = _body([ASK, answer])["input"]

    assert (items[1]["id"], items[2]["id"], items[2]["content"][0]["text"]) == ("rs", "m", "x")


def test_no_id_is_sent_twice_empty_or_too_long() -> None:
    """A history that holds such would be refused for ever."""
    texts = [
        TextBlock(text=text, text_signature=signature) for text, signature in (("1", "m"), ("2", "m"), ("3", "\ud800"), ("4", "msg_pi_1_3"))
    ]
    calls = [ToolCall(id=id, name="read") for id in ("c|fc_1", "d|fc_1", "e|fc_" + "x" * 99, "y" * 70)]
    results = [_result(call.id) for call in calls]

    items = _body([ASK, _answer(*texts, *calls), *results, _answer(ToolCall(id="c|fc_9", name="read")), _result("c|fc_9")])["input"]

    assert [item["id"] for item in items if item.get("role") == "assistant"] == ["m", "msg_pi_1_1", "msg_pi_1_2", "msg_pi_1_3"]
    sent = [(item["call_id"], item.get("id")) for item in items if item.get("type") == "function_call"]
    assert sent == [("c", "fc_1"), ("d", None), ("e", None), ("y" * 64, None), ("c_2", "fc_9")]
    assert [item["call_id"] for item in items if item.get("type") == "function_call_output"] == [id for id, _ in sent]


def test_reasoning_is_sent_once_and_only_before_what_it_led_to() -> None:
    thinking = ThinkingBlock(thinking="", thinking_signature='{"type":"reasoning","id":"rs_1","summary":[]}')

    items = _body([ASK, _answer(thinking), ASK, _answer(thinking, TextBlock(text="x")), _answer(thinking, TextBlock(text="y"))])["input"]

    assert [item.get("type", item.get("role")) for item in items] == ["user", "user", "reasoning", "message", "message"]


def test_result_of_no_call_takes_no_calls_place() -> None:
    call = _answer(ToolCall(id="c|fc_1", name="read"))

    before = _body([_result("c"), ASK, call, _result("c|fc_1")])["input"]
    after = _body([ASK, call, _result("c|fc_1"), _result("c"), _result("|")])["input"]

    assert [item.get("call_id") for item in before] == ["c", None, "c_2", "c_2"]
    assert [item.get("call_id") for item in after] == [None, "c", "c"]
