"""models.json gives providers, or says exactly what is wrong with it."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.world import World, real_world
from camshaft.extensions_std.providers.builtin_models import BUILTIN
from camshaft.extensions_std.providers.config_values import missing_variables, resolved
from camshaft.extensions_std.providers.credentials import AuthUnresolved
from camshaft.extensions_std.providers.llama_cpp import LLAMA
from camshaft.extensions_std.providers.models_json import ProviderSettings, load_providers
from camshaft.extensions_std.providers.models_schema import ModelsFileError
from camshaft.kernel.models import Model, Rates
from camshaft.kernel.persistent import FrozenDict
from tests.extensions_std.providers.asking import FakeHttp, FakeResponse, ask

LOCAL = {"baseUrl": "http://127.0.0.1:8080/v1", "api": "openai-completions", "models": [{"id": "qwen"}]}


def _reader(**files: object) -> Callable[[Path], bytes]:
    """Files of an agent directory that exists only here; a text is the file as it is."""

    def read(path: Path) -> bytes:
        if path.stem not in files:
            raise FileNotFoundError(path)
        content = files[path.stem]
        return content.encode() if isinstance(content, str) else json.dumps(content).encode()

    return read


def _world(*answers: FakeResponse) -> World:
    return attrs.evolve(real_world({}), http=FakeHttp(answers or [FakeResponse(status=500)]))


def _loaded(models: object, environment: Mapping[str, str] | None = None, **files: object) -> tuple[dict[str, Any], list[str]]:
    told: list[str] = []
    settings = ProviderSettings(read=_reader(models=models, **files))
    providers = load_providers("/agent", environment or {}, _world(), settings, told.append)
    return {provider.name: provider for provider in providers}, told


def _own(providers: Mapping[str, object]) -> list[str]:
    """Those that are not built in."""
    return [name for name in providers if name not in (*BUILTIN, LLAMA)]


async def _header(models: object, environment: Mapping[str, str], name: str = "authorization", **files: object) -> str | None:
    """What a request of provider `local` sends in a header, or the error it ends with."""
    world = _world()
    settings = ProviderSettings(read=_reader(models=models, **files))
    provider = next(each for each in load_providers("/", environment, world, settings) if each.name == "local")
    asked = await ask(provider)
    assert isinstance(world.http, FakeHttp)
    assert asked.message is not None
    return dict(world.http.requests[0].headers).get(name) if world.http.requests else asked.message.error_message


def test_local_server_needs_only_a_url_and_a_model() -> None:
    providers, told = _loaded({"providers": {"local": LOCAL}})

    assert told == []
    assert providers["local"].configured()
    assert providers["local"].models == (
        Model(id="qwen", name="qwen", provider="local", api="openai-completions", base_url="http://127.0.0.1:8080/v1"),
    )


def test_comments_trailing_commas_and_a_byte_order_mark_are_accepted() -> None:
    text = '\ufeff{ // providers\n "providers": { /* one */ "local": ' + json.dumps(LOCAL)[:-1] + ', "name": "a // b, ]", }, }, }'

    providers, told = _loaded(text)

    assert told == []
    assert "local" in providers


def test_missing_file_leaves_the_builtin_providers_of_which_those_with_a_key_are_configured() -> None:
    providers, told = _loaded({"providers": {}}, {"OPENAI_API_KEY": "k"})

    assert told == []
    assert list(providers) == [*[name for name in BUILTIN if name in providers], LLAMA]
    assert [name for name, provider in providers.items() if provider.configured()] == ["openai"]
    assert load_providers("/agent", {}, _world(), ProviderSettings(read=_reader()))[0].models == next(iter(providers.values())).models


@pytest.mark.parametrize(("name", "variable"), [("openai", "OPENAI_BASE_URL"), ("anthropic", "ANTHROPIC_BASE_URL")])
def test_environment_may_replace_the_url_of_a_builtin_provider(name: str, variable: str) -> None:
    providers, _ = _loaded({"providers": {}}, {variable: "http://proxy/v1"})

    assert {model.base_url for model in providers[name].models} == {"http://proxy/v1"}


def test_every_fault_of_a_file_is_told_with_its_place_value_and_expectation() -> None:
    broken = {
        "providers": {"p": {**LOCAL, "baseUrl": "", "models": [{"id": "a", "reasoning": "yes", "cost": {"input": -1}}, {"name": "x"}]}}
    }

    providers, told = _loaded(broken)

    assert _own(providers) == []
    assert told == [
        "Invalid models.json schema:\n"
        "  - providers.p.baseUrl: expected a non-empty text, got ''\n"
        "  - providers.p.models.0.reasoning: expected true or false, got 'yes'\n"
        "  - providers.p.models.0.cost.input: expected a number of at least 0, got -1\n"
        "  - providers.p.models.1.id: missing; expected a non-empty text\n"
        "\nFile: /agent/models.json"
    ]


def test_text_that_is_no_json_is_told_with_the_file() -> None:
    with pytest.raises(ModelsFileError, match=r"Failed to parse models.json: (?s:.*)File: /agent/models.json"):
        load_providers("/agent", {}, _world(), ProviderSettings(read=_reader(models="{")))


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({}, 'Provider bad: must specify "baseUrl", "headers", "compat", "modelOverrides", or "models".'),
        ({"api": "openai-completions", "models": [{"id": "m"}]}, 'Provider bad: "baseUrl" is required when defining custom models.'),
        ({"baseUrl": "u", "models": [{"id": "m"}]}, 'Provider bad, model m: no "api" specified. Set at provider or model level.'),
        ({**LOCAL, "models": [{"id": "m", "maxTokens": 0}]}, "Provider bad, model m: invalid maxTokens 0"),
    ],
)
def test_entry_that_makes_no_sense_leaves_the_others_alone(entry: dict[str, Any], text: str) -> None:
    providers, told = _loaded({"providers": {"bad": entry, "local": LOCAL}})

    assert _own(providers) == ["local"]
    assert len(told) == 1
    assert told[0].startswith(text)


def test_entry_replaces_a_known_model_entirely_and_overrides_come_last() -> None:
    entry = {
        "compat": {"supportsStore": False},
        "models": [{"id": "gpt-4o", "maxTokens": 5}],
        "modelOverrides": {"gpt-4.1": {"cost": {"input": 9}, "compat": {"vllmPriority": 1}}, "unknown": {"name": "x"}},
    }
    providers, told = _loaded({"providers": {"openai": entry}})

    models = {model.id: model for model in providers["openai"].models}

    assert told == []
    assert (models["gpt-4o"].max_tokens, models["gpt-4o"].cost, models["gpt-4o"].input) == (5, Rates(), ("text",))
    assert models["gpt-4.1"].cost == Rates(input=9, output=8, cache_read=0.5)
    assert models["gpt-4.1"].compat == FrozenDict({"supportsStore": False, "vllmPriority": 1})
    assert "unknown" not in models


def test_lifetimes_limits_and_parameters_by_level_stand_on_the_model_and_merge_with_an_override() -> None:
    limits = {"maxRequestBytes": 1000, "images": {"maxPerMessage": 5, "resize": {"maxWidth": 800}}}
    model = {
        "id": "qwen",
        "promptCache": {"short": 300},
        "inputLimits": limits,
        "samplingParamsByThinkingLevel": {"high": {"a": 1, "b": 1}},
    }
    override = {
        "promptCache": {"long": 3600},
        "inputLimits": {"images": {"maxPerRequest": 9, "resize": {"maxHeight": 600}}},
        "samplingParamsByThinkingLevel": {"high": {"b": {"y": 2}}, "low": {"c": 3}},
    }

    providers, told = _loaded({"providers": {"local": {**LOCAL, "models": [model], "modelOverrides": {"qwen": override}}}})

    (made,) = providers["local"].models
    assert told == []
    assert made.prompt_cache == {"short": 300, "long": 3600}
    assert made.sampling_params_by_thinking_level == {"high": {"a": 1, "b": {"y": 2}}, "low": {"c": 3}}
    assert made.input_limits == {
        "maxRequestBytes": 1000,
        "images": {"maxPerMessage": 5, "maxPerRequest": 9, "resize": {"maxWidth": 800, "maxHeight": 600}},
    }


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"promptCache": {"short": 0}}, "promptCache.short: expected a number above 0, got 0"),
        ({"inputLimits": {"images": {"maxPerMessage": 0}}}, "inputLimits.images.maxPerMessage: expected an integer of at least 1, got 0"),
        (
            {"inputLimits": {"images": {"resize": {"jpegQuality": 101}}}},
            "inputLimits.images.resize.jpegQuality: expected an integer from 1 to 100, got 101",
        ),
    ],
)
def test_lifetimes_and_limits_have_bounds(fields: dict[str, Any], place: str) -> None:
    _, told = _loaded({"providers": {"local": {**LOCAL, "models": [{"id": "qwen", **fields}]}}})

    assert f"  - providers.local.models.0.{place}" in told[0]


@pytest.mark.rule("PRV-15")
async def test_a_model_of_an_api_that_is_not_ours_is_listed_and_its_requests_fail() -> None:
    providers, told = _loaded({"providers": {"mixed": {**LOCAL, "models": [{"id": "m", "api": "bedrock-converse-stream"}, {"id": "n"}]}}})

    asked = await ask(providers["mixed"])

    assert [model.api for model in providers["mixed"].models] == ["bedrock-converse-stream", "openai-completions"]
    text = "No API provider registered for api: bedrock-converse-stream; its models need an extension that brings it"
    assert told == [f'Provider "mixed": {text}']
    assert asked.message is not None
    assert asked.message.error_message == "No API provider registered for api: bedrock-converse-stream"


async def test_key_and_headers_are_resolved_at_the_request() -> None:
    entry = {**LOCAL, "apiKey": "pre-$KEY", "headers": {"X-Team": "${TEAM}", "X-Cost": "5$$"}}
    models = {"providers": {"local": entry}}
    environment = {"KEY": "abc", "TEAM": "red"}

    assert await _header(models, environment) == "Bearer pre-abc"
    assert await _header(models, environment, "x-team") == "red"
    assert await _header(models, environment, "x-cost") == "5$"


async def test_unresolved_key_names_the_variables_that_are_missing() -> None:
    text = await _header({"providers": {"local": {**LOCAL, "apiKey": "$A-$B"}}}, {"B": " "})

    assert text == 'Failed to resolve API key for provider "local" from environment variables: A, B'


async def test_key_may_be_printed_by_a_command() -> None:
    assert await _header({"providers": {"local": {**LOCAL, "apiKey": "!echo ' k '"}}}, {}) == "Bearer k"


async def test_command_that_fails_is_named() -> None:
    text = await _header({"providers": {"local": {**LOCAL, "apiKey": "!exit 3"}}}, {})

    assert text == 'Failed to resolve API key for provider "local" from shell command: exit 3'


async def test_stored_key_comes_before_that_of_the_entry_and_brings_its_environment() -> None:
    stored = {"local": {"type": "api_key", "key": "$OWN", "env": {"OWN": "stored"}}}

    assert await _header({"providers": {"local": {**LOCAL, "apiKey": "entry"}}}, {"OWN": "process"}, auth=stored) == "Bearer stored"


async def test_stored_key_that_does_not_resolve_is_an_error_not_another_key() -> None:
    stored = {"local": {"type": "api_key", "key": "$GONE"}}

    text = await _header({"providers": {"local": {**LOCAL, "apiKey": "entry"}}}, {}, auth=stored)

    assert text == 'Failed to resolve API key for provider "local" from environment variable: GONE'


async def test_stored_login_that_we_cannot_use_owns_the_provider() -> None:
    text = await _header({"providers": {"local": LOCAL}}, {}, auth={"local": {"type": "oauth", "access": "a"}})

    assert text == "Provider is not configured: local"


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("a$FOO-b", "axx-b"),
        ("${FOO}y", "xxy"),
        ("${bad-name}", "${bad-name}"),
        ("${FOO", "${FOO"),
        ("$", "$"),
        ("cost$", "cost$"),
        ("$!x", "!x"),
    ],
)
def test_templates_are_read_as_written(template: str, value: str) -> None:
    async def nothing(_command: str) -> str | None:
        return None

    assert trio.run(resolved, template, "x", {"FOO": "xx"}, nothing) == value


def test_each_missing_variable_is_named_once() -> None:
    assert missing_variables("$A$B$A${C}", {"B": "b"}) == ("A", "C")


async def test_unresolved_value_never_shows_another_one() -> None:
    async def nothing(_command: str) -> str | None:
        return None

    with pytest.raises(AuthUnresolved, match="^Failed to resolve key from environment variable: GONE$"):
        await resolved("$THERE$GONE", "key", {"THERE": "canary"}, nothing)


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"baseUrl": "u"}, ['Provider "odd": it has no models, so none can be chosen; list them under "models"']),
        (
            {"baseUrl": "u", "modles": []},
            [
                'Provider "odd": key "modles" is ignored; did you mean "models"?',
                'Provider "odd": it has no models, so none can be chosen; list them under "models"',
            ],
        ),
        ({**LOCAL, "api_key": "k"}, ['Provider "odd": key "api_key" is ignored; did you mean "apiKey"?']),
        (
            {**LOCAL, "models": [{"id": "m", "contextwindow": 8}]},
            ['Provider "odd": key "models.0.contextwindow" is ignored; did you mean "models.0.contextWindow"?'],
        ),
        ({**LOCAL, "notes": "of another reader"}, []),
    ],
)
def test_a_key_that_looks_misspelt_and_a_provider_without_models_are_told(entry: dict[str, Any], told: list[str]) -> None:
    assert _loaded({"providers": {"odd": entry}})[1] == told


@pytest.mark.parametrize("vendor", ["openai", "openrouter"])
def test_a_known_vendor_needs_no_models_of_its_own(vendor: str) -> None:
    assert _loaded({"providers": {vendor: {"headers": {"x-team": "a"}}}})[1] == []


def test_a_host_that_asked_for_no_texts_gets_oddities_silently() -> None:
    providers = load_providers("/agent", {}, _world(), ProviderSettings(read=_reader(models={"providers": {"odd": {"baseUrl": "u"}}})))

    assert "odd" in {provider.name for provider in providers}
