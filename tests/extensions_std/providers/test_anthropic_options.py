"""Options, caps and headers of a request of the Anthropic API, rule by rule: what the recorded vectors leave open."""

import json
from typing import Any, Final

import pytest

from camshaft.actors.api import RequestOptions
from camshaft.kernel.persistent import FrozenDict, freeze
from tests.extensions_std.providers.anthropic_asking import STOPPED, sent
from tests.extensions_std.providers.asking import FakeHttp, anthropic, ask


def api(**options: Any) -> dict[str, Any]:
    """Options of the API's own entry."""
    return {"api_options": freeze(options)}


OWN_ENTRY: Final[list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]] = [
    ({}, {}, {"max_tokens": 64000}),
    ({"thinkingEnabled": False}, {}, {"max_tokens": 64000, "thinking": {"type": "disabled"}}),
    ({"thinkingEnabled": True}, {}, {"max_tokens": 64000, "thinking": {"type": "enabled", "budget_tokens": 1024, "display": "summarized"}}),
    (
        {"thinkingEnabled": True, "thinkingBudgetTokens": 5000, "thinkingDisplay": "omitted"},
        {},
        {"max_tokens": 64000, "thinking": {"type": "enabled", "budget_tokens": 5000, "display": "omitted"}},
    ),
    (
        {"thinkingEnabled": True, "thinkingBudgetTokens": 0},
        {},
        {"max_tokens": 64000, "thinking": {"type": "enabled", "budget_tokens": 1024, "display": "summarized"}},
    ),
    (
        {"thinkingEnabled": True, "effort": "xhigh"},
        {"forceAdaptiveThinking": True},
        {"max_tokens": 64000, "thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "xhigh"}},
    ),
    (
        {"thinkingEnabled": True},
        {"forceAdaptiveThinking": True},
        {"max_tokens": 64000, "thinking": {"type": "adaptive", "display": "summarized"}},
    ),
]


@pytest.mark.rule("STR-4", "WIRE-47")
@pytest.mark.parametrize(("own", "compat", "expected"), OWN_ENTRY)
async def test_options_of_the_api_are_sent_as_they_are(own: dict[str, Any], compat: dict[str, Any], expected: dict[str, Any]) -> None:
    body, _ = await sent(level="high", options=api(**own), compat=freeze(compat), reasoning=True, context_window=1000)

    assert {name: value for name, value in body.items() if name not in ("model", "messages", "stream")} == expected


@pytest.mark.rule("STR-4")
async def test_cap_of_the_own_entry_is_not_computed() -> None:
    body, _ = await sent(options={**api(), "max_tokens": 7_000_000}, context_window=1000)

    assert body["max_tokens"] == 7_000_000


@pytest.mark.rule("MOD-32")
@pytest.mark.parametrize(
    ("limits", "level", "asked", "cap", "budget"),
    [
        ({"max_tokens": 64000}, "high", 4000, 20384, 16384),
        ({"max_tokens": 8192}, "medium", None, 8192, 7168),
        ({"max_tokens": 0, "context_window": 0}, "low", 5000, 7048, 2048),
        ({"max_tokens": 64000}, "xhigh", 4000, 20384, 16384),
    ],
)
async def test_cap_leaves_thinking_its_budget(limits: dict[str, Any], level: str, asked: int | None, cap: int, budget: int) -> None:
    levels = FrozenDict({"xhigh": "xhigh"})

    body, _ = await sent(level=level, options={"max_tokens": asked}, reasoning=True, thinking_level_map=levels, **limits)

    assert (body["max_tokens"], body["thinking"]["budget_tokens"]) == (cap, budget)


@pytest.mark.rule("MOD-22")
async def test_own_budget_replaces_that_of_a_level() -> None:
    body, _ = await sent(level="low", options={"thinking_budgets": FrozenDict({"low": 3000})}, reasoning=True)

    assert body["thinking"]["budget_tokens"] == 3000


@pytest.mark.rule("MOD-30")
async def test_cap_is_at_least_one_where_nothing_is_known() -> None:
    body, _ = await sent(max_tokens=0, context_window=0)

    assert body["max_tokens"] == 1


@pytest.mark.rule("WIRE-47")
async def test_model_that_cannot_be_told_to_stop_thinking_is_told_nothing() -> None:
    body, _ = await sent(reasoning=True, thinking_level_map=FrozenDict({"off": None}))

    assert "thinking" not in body


@pytest.mark.rule("WIRE-47")
@pytest.mark.parametrize(("level", "effort"), [("minimal", "low"), ("low", "low"), ("medium", "m"), ("high", "high"), ("xhigh", "max")])
async def test_effort_of_an_adaptive_model_is_the_maps_or_the_levels(level: str, effort: str) -> None:
    levels = FrozenDict({"medium": "m", "xhigh": "max"})

    body, _ = await sent(level=level, reasoning=True, thinking_level_map=levels, compat=FrozenDict({"forceAdaptiveThinking": True}))

    assert body["output_config"] == {"effort": effort}


TEMPERATURES: Final[list[tuple[dict[str, Any], dict[str, Any]]]] = [
    ({"level": "low", "reasoning": True}, {}),
    ({"compat": FrozenDict({"supportsTemperature": False})}, {}),
    ({"reasoning": True}, {"temperature": 0.5}),
]


@pytest.mark.rule("WIRE-48")
@pytest.mark.parametrize(("asking", "expected"), TEMPERATURES)
async def test_temperature_is_sent_where_it_is_taken(asking: dict[str, Any], expected: dict[str, Any]) -> None:
    body, _ = await sent(options={"temperature": 0.5}, **asking)

    assert {name: value for name, value in body.items() if name == "temperature"} == expected


CHOICES: Final = [
    ("auto", {"type": "auto"}),
    ("any", {"type": "any"}),
    ({"type": "tool", "name": "read"}, {"type": "tool", "name": "read"}),
]


@pytest.mark.rule("WIRE-40")
@pytest.mark.parametrize(("choice", "written"), CHOICES)
async def test_tool_choice_is_an_object(choice: Any, written: Any) -> None:
    body, _ = await sent(options={**api(), "tool_choice": freeze(choice)})

    assert body["tool_choice"] == written


@pytest.mark.rule("WIRE-40")
async def test_user_id_that_is_no_text_is_not_sent() -> None:
    body, _ = await sent(options={"metadata": FrozenDict({"user_id": 7})})

    assert "metadata" not in body


BETAS: Final[list[tuple[dict[str, Any], str | None]]] = [
    ({}, None),
    ({"level": "low", "reasoning": True}, "interleaved-thinking-2025-05-14"),
    ({"level": "low"}, None),
    ({"level": "low", "reasoning": True, "compat": FrozenDict({"forceAdaptiveThinking": True})}, None),
    ({"options": api(thinkingEnabled=True, interleavedThinking=False), "reasoning": True}, None),
    ({"level": "low", "reasoning": True, "headers": FrozenDict({"Anthropic-Beta": "mine"})}, "mine"),
    ({"level": "low", "reasoning": True, "options": {"headers": FrozenDict({"anthropic-beta": "asked"})}}, "asked"),
    ({"compat": FrozenDict({"supportsEagerToolInputStreaming": False})}, None),
]


@pytest.mark.rule("WIRE-49")
@pytest.mark.parametrize(("asking", "betas"), BETAS)
async def test_betas_are_one_header(asking: dict[str, Any], betas: str | None) -> None:
    _, headers = await sent(**asking)

    assert headers.get("anthropic-beta") == betas


@pytest.mark.rule("WIRE-2", "WIRE-4")
@pytest.mark.parametrize(
    ("key", "name", "value"), [("k-1", "x-api-key", "k-1"), ("sk-ant-oat01-x", "authorization", "Bearer sk-ant-oat01-x")]
)
async def test_key_is_sent_as_what_it_is(key: str, name: str, value: str) -> None:
    http = FakeHttp([STOPPED])
    await ask(anthropic(http, key=key))

    own = {header: text for header, text in http.requests[0].headers if header in ("x-api-key", "authorization")}
    assert own == {name: value}
    assert json.loads(http.requests[0].body)["messages"][0]["content"][0]["text"] == "Hello"


@pytest.mark.rule("STR-32")
@pytest.mark.parametrize(("headers", "error"), [({}, "No API key for provider: anthropic"), ({"X-Api-Key": "h"}, None)])
async def test_request_needs_a_key_or_a_header_in_its_place(headers: dict[str, str], error: str | None) -> None:
    asked = await ask(anthropic(FakeHttp([STOPPED]), key=None, needs_key=True), options=RequestOptions(headers=FrozenDict(headers)))

    assert asked.message is not None
    assert asked.message.error_message == error


AFFINITY: Final[list[tuple[dict[str, Any], dict[str, str]]]] = [
    ({"base_url": "https://openrouter.ai/api"}, {"x-session-id": "s"}),
    ({"compat": FrozenDict({"sendSessionAffinityHeaders": True})}, {"x-session-affinity": "s"}),
    (
        {"compat": FrozenDict({"sendSessionAffinityHeaders": True}), "headers": FrozenDict({"x-session-affinity": "m"})},
        {"x-session-affinity": "m"},
    ),
    ({"compat": FrozenDict({"sendSessionAffinityHeaders": "yes"})}, {}),
    ({}, {}),
]


@pytest.mark.rule("WIRE-3", "MOD-100")
@pytest.mark.parametrize(("model", "expected"), AFFINITY)
async def test_session_is_kept_on_one_server_where_that_is_wanted(model: dict[str, Any], expected: dict[str, str]) -> None:
    _, headers = await sent(options={"session_id": "s"}, **model)
    _, without = await sent(options={"session_id": "s", "cache_retention": "none"}, compat=model.get("compat", FrozenDict()))

    assert {name: value for name, value in headers.items() if "session" in name} == expected
    assert not any("session" in name for name in without)
