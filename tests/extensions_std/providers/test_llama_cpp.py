"""A llama.cpp server lists its models itself: which ones are offered, with which limits, and what a bad answer may do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from camshaft.actors.api import HttpFailed, HttpRequest, World
from camshaft.actors.host import AuthStatus, ProviderFailed
from camshaft.extensions_std.providers.llama_cpp import ANSWER_MAX_BYTES, COMPAT, LlamaProvider
from camshaft.extensions_std.providers.models_json import load_all
from camshaft.extensions_std.providers.scripted_http import HttpAnswer, ScriptedHttp, Silence, json_answer
from camshaft.kernel.models import clamp_level
from tests.actors.running import virtual_world

URL = "http://llama.test:9931"
ROUTER = {"role": "router", "models_autoload": True}
TEMPLATE = "{% if enable_thinking %}<think>{% endif %}"


def entry(id: Any, state: Any = "loaded", **more: Any) -> dict[str, Any]:
    return {"id": id, "status": {"value": state, "args": ["llama-server"], **more.pop("status", {})}, **more}


def props(n_ctx: Any = 8192, **more: Any) -> dict[str, Any]:
    return {"default_generation_settings": {"n_ctx": n_ctx}, "chat_template": "plain", **more}


def for_path(path: str) -> Callable[[HttpRequest], bool]:
    return lambda request: request.url.partition("//")[2].partition("/")[2] == path.removeprefix("/")


def answers(entries: Any, details: dict[str, Any] | None = None, router: Any = ROUTER) -> ScriptedHttp:
    """A server that gives the same list for ever."""

    def given(path: str, value: Any) -> HttpAnswer:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return attrs.evolve(json_answer(200, body), test=for_path(path), repeats=True)

    paths = {f"/props?model={id}&autoload=false": value for id, value in (details or {}).items()}
    return ScriptedHttp(
        [given("/models", entries if isinstance(entries, bytes) else {"data": entries}), given("/props", router)]
        + [given(path, value) for path, value in paths.items()]
    )


def provider(
    http: ScriptedHttp, folder: Path, environment: dict[str, str] | None = None, models: object = None, auth: object = None
) -> LlamaProvider:
    if models is not None:
        (folder / "models.json").write_text(json.dumps({"providers": {"llama-cpp": models}}), encoding="utf-8")
    if auth is not None:
        (folder / "auth.json").write_text(json.dumps({"llama-cpp": auth}), encoding="utf-8")
    world: World = attrs.evolve(virtual_world(), http=http)
    known = {"LLAMA_BASE_URL": URL} if environment is None else environment
    found = next(each for each in load_all(folder, known, world).providers if each.name == "llama-cpp")
    assert isinstance(found, LlamaProvider)
    return found


async def looked(http: ScriptedHttp, folder: Path, **more: Any) -> LlamaProvider:
    made = provider(http, folder, **more)
    await made.take_look()
    return made


# -- where it is, and whether anybody wants it ---------------------------------------------------


@pytest.mark.rule("MOD-101", "MOD-79")
@pytest.mark.parametrize(
    ("more", "configured"),
    [
        ({"environment": {}}, False),
        ({"environment": {"LLAMA_BASE_URL": " "}}, False),
        ({"environment": {"LLAMA_BASE_URL": URL}}, True),
        ({"environment": {"LLAMA_API_KEY": "k"}}, True),
        ({"environment": {}, "auth": {"type": "api_key", "key": "k"}}, True),
        ({"environment": {}, "auth": {"type": "api_key", "env": {"LLAMA_BASE_URL": URL}}}, True),
        ({"environment": {}, "models": {"baseUrl": URL}}, True),
    ],
)
def test_it_counts_when_anything_says_that_there_is_a_server(more: dict[str, Any], configured: bool, tmp_path: Path) -> None:
    assert provider(ScriptedHttp(), tmp_path, **more).configured() is configured


@pytest.mark.rule("MOD-101")
def test_named_it_is_asked_at_the_usual_port_with_the_usual_key(tmp_path: Path) -> None:
    http = answers([entry("m")], {"m": props()})
    made = provider(http, tmp_path, environment={})
    made.want()

    trio.run(made.take_look)

    assert made.auth_status() == AuthStatus(configured=True, source="fallback")
    assert [request.url for request in http.requests] == [
        "http://127.0.0.1:9931/models",
        "http://127.0.0.1:9931/props?model=m&autoload=false",
    ]
    assert dict(http.requests[0].headers)["authorization"] == "Bearer local"
    assert made.models[0].base_url == "http://127.0.0.1:9931/v1"


@pytest.mark.rule("MOD-101")
@pytest.mark.parametrize("url", [URL, f"{URL}/", f"{URL}/v1", f"{URL}/v1/"])
async def test_the_url_may_name_the_server_or_its_api(url: str, tmp_path: Path) -> None:
    http = answers([entry("m")])

    by_variable = await looked(http, tmp_path, environment={"LLAMA_BASE_URL": url, "LLAMA_API_KEY": "key-of-mine"})
    by_file = await looked(http, tmp_path, environment={}, models={"baseUrl": url})

    assert by_variable.models[0].base_url == by_file.models[0].base_url == f"{URL}/v1"
    assert {request.url.partition("?")[0] for request in http.requests} == {f"{URL}/models", f"{URL}/props"}
    assert dict(http.requests[0].headers)["authorization"] == "Bearer key-of-mine"


# -- what is offered -----------------------------------------------------------------------------


@pytest.mark.rule("MOD-101")
@pytest.mark.parametrize(
    ("router", "listed"),
    [
        (ROUTER, ["running", "asleep", "preset", "of file"]),
        ({"role": "router", "models_autoload": False}, ["running", "asleep"]),
        ({"role": "other", "models_autoload": True}, ["running", "asleep"]),
        (b"no json", ["running", "asleep"]),
    ],
)
async def test_presets_that_are_not_loaded_are_offered_where_they_are_loaded_on_demand(
    router: Any, listed: list[str], tmp_path: Path
) -> None:
    entries = [
        entry("preset", "unloaded", status={"preset": "[preset]\nctx-size = 4096\n"}),
        entry("of file", "unloaded", source="preset"),
        entry("asleep", "sleeping"),
        entry("bare", "unloaded"),
        entry("coming", "downloading", source="preset"),
        entry("running"),
        entry("decides", architecture={"input_modalities": ["text"], "output_modalities": ["decisions"]}),
    ]

    made = await looked(answers(entries, router=router), tmp_path)

    assert [model.id for model in made.models] == listed


async def test_a_server_with_one_model_is_listed_too(tmp_path: Path) -> None:
    made = await looked(answers([{"id": "only", "meta": {"n_ctx_train": 4096}}], {"only": props(2048)}), tmp_path)

    assert [(model.id, model.context_window) for model in made.models] == [("only", 2048)]


@pytest.mark.rule("MOD-101")
@pytest.mark.parametrize(
    ("of_entry", "details", "window"),
    [
        ({"status": {"args": ["-c", "4096"]}, "meta": {"n_ctx_train": 9}}, props(8192), 8192),
        ({"status": {"args": ["-c", "4096"]}, "meta": {"n_ctx": 2048}}, props(0), 2048),
        ({"status": {"args": ["-c", "1", "--ctx-size", "4096"]}, "meta": {"n_ctx_train": 9}}, props(None), 4096),
        ({"status": {"args": ["--ctx-size=512"]}}, props("8192"), 512),
        ({"status": {"args": [], "preset": "[m]\nc = 3000\n"}}, props(-1), 3000),
        ({"status": {"args": ["-c", "0"]}, "meta": {"n_ctx_train": 131072}}, props(True), 131072),
        ({"status": {"args": ["-c"]}, "meta": {"n_ctx_train": 1e300}}, props(float(2**60)), 128000),
        ({}, b"[]", 128000),
    ],
)
async def test_the_window_is_that_of_the_instance_else_that_of_its_arguments(
    of_entry: dict[str, Any], details: Any, window: int, tmp_path: Path
) -> None:
    made = await looked(answers([entry("m", **of_entry)], {"m": details}), tmp_path)

    assert (made.models[0].context_window, made.models[0].max_tokens) == (window, window)


@pytest.mark.rule("MOD-101")
async def test_a_window_that_was_known_comes_before_that_of_the_training(tmp_path: Path) -> None:
    made = await looked(answers([entry("m", meta={"n_ctx_train": 9})], {"m": props(8192)}), tmp_path)
    made.http = answers([entry("m", "unloaded", source="preset", meta={"n_ctx_train": 9})])

    await made.take_look()

    assert made.models[0].context_window == 8192


@pytest.mark.rule("MOD-101")
async def test_a_template_that_knows_thinking_makes_a_model_that_thinks_or_not(tmp_path: Path) -> None:
    entries = [entry("plain"), entry("thinks"), entry("sees", architecture={"input_modalities": ["text", "image", "video"]})]
    details = {"plain": props(), "thinks": props(chat_template=TEMPLATE), "sees": props(modalities={"vision": True})}

    plain, thinks, sees = (await looked(answers(entries, details), tmp_path)).models

    assert dict(plain.compat) == {
        "supportsStore": False,
        "supportsReasoningEffort": False,
        "supportsStrictMode": False,
        "maxTokensField": "max_tokens",
    }
    assert (plain.reasoning, plain.input, plain.api) == (False, ("text",), "openai-completions")
    assert dict(thinks.compat) == {**COMPAT, "thinkingFormat": "qwen-chat-template"}
    assert [clamp_level(thinks, level) for level in ("off", "minimal", "high", "max")] == ["off", "medium", "medium", "medium"]
    assert (thinks.reasoning, sees.input) == (True, ("text", "image"))


@pytest.mark.rule("MOD-53", "MOD-55", "MOD-101")
async def test_models_json_lies_over_what_is_listed(tmp_path: Path) -> None:
    own = {"id": "mine", "contextWindow": 100, "maxTokens": 10}
    file = {
        "baseUrl": f"{URL}/v1",
        "api": "openai-completions",
        "compat": {"supportsStore": True},
        "models": [own],
        "modelOverrides": {"m": {"maxTokens": 99}},
    }
    made = provider(answers([entry("m")], {"m": props()}), tmp_path, environment={}, models=file)

    assert [model.id for model in made.models] == ["mine"]
    await made.take_look()

    listed = {model.id: model for model in made.models}
    assert list(listed) == ["m", "mine"]
    assert (listed["m"].max_tokens, listed["m"].context_window, listed["m"].compat["supportsStore"]) == (99, 8192, True)


# -- what a server may do --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [b"", b"no json", b"[]", b'{"data": 3}', b"[" * 100_000, b"\xff\xfe", b'{"data": ["' + b"x" * ANSWER_MAX_BYTES + b'"]}'],
)
async def test_an_answer_that_is_no_list_fails_and_leaves_the_list(body: bytes, tmp_path: Path) -> None:
    made = await looked(answers([entry("m")], {"m": props()}), tmp_path)
    made.http = answers(body)

    with pytest.raises(ProviderFailed, match=r"\(provider llama-cpp at http://llama\.test:9931\)$") as caught:
        await made.take_look()

    assert caught.value.code == "model_source"
    assert [model.id for model in made.models] == ["m"]


async def test_entries_that_make_no_sense_are_left_out(tmp_path: Path) -> None:
    odd = [None, 3, {}, entry(""), entry(7), entry("a\nb"), entry("x" * 600), entry("m", ["loaded"]), {"id": "n", "status": 5}, entry("m")]

    made = await looked(answers(odd), tmp_path)

    assert [model.id for model in made.models] == ["m", "n"]


async def test_details_that_cannot_be_had_do_not_hide_a_model(tmp_path: Path) -> None:
    http = answers([entry("m", meta={"n_ctx_train": 77})], {"m": b"{"})

    assert (await looked(http, tmp_path)).models[0].context_window == 77


def test_a_server_that_says_nothing_is_given_up_in_time(tmp_path: Path) -> None:
    http = ScriptedHttp([HttpAnswer(body=[b"{", Silence()])])

    async def test() -> float:
        with pytest.raises(ProviderFailed, match="Request timed out"):
            await provider(http, tmp_path).take_look()
        return trio.current_time()

    assert trio.run(test, clock=trio.testing.MockClock(autojump_threshold=0)) < 11


@pytest.mark.parametrize(
    ("http", "why"),
    [
        (ScriptedHttp([HttpFailed("connect", "ConnectError")]), "Connection error"),
        (ScriptedHttp([json_answer(401, b'{"error": {"message": "secret-key-0123"}}')]), "HTTP 401"),
    ],
)
async def test_a_server_that_refuses_is_told_without_the_key(http: ScriptedHttp, why: str, tmp_path: Path) -> None:
    environment = {"LLAMA_BASE_URL": "http://u:secret-password@llama.test", "LLAMA_API_KEY": "secret-key-0123"}

    with pytest.raises(ProviderFailed, match=why) as caught:
        await looked(http, tmp_path, environment=environment)

    assert "secret" not in str(caught.value)


async def test_a_password_in_the_url_is_no_part_of_a_model(tmp_path: Path) -> None:
    http = answers([entry("m")], {"m": props()})

    made = await looked(http, tmp_path, environment={"LLAMA_BASE_URL": "http://u:secret@llama.test"})

    assert made.models[0].base_url == "http://llama.test/v1"
    assert (await made.keys.resolve(made.models[0])).base_url == "http://u:secret@llama.test/v1"
    assert "secret" not in repr(made)
