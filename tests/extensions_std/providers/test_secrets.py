"""A secret leaves only in the request it belongs to: not in errors, reprs or logs."""

import json

import pytest

from camshaft.actors.api import RequestOptions
from camshaft.actors.ports.http import HttpFailed, RealHttp
from camshaft.extensions_std.providers.credentials import Auth
from camshaft.extensions_std.providers.models_json import ProviderSettings, load_providers
from camshaft.extensions_std.providers.models_schema import ModelsFileError
from camshaft.kernel.persistent import FrozenDict
from tests.extensions_std.providers.asking import FakeHttp, FakeResponse, ask, completions, local_model
from tests.extensions_std.providers.sse_server import Reply, scripted_server
from tests.extensions_std.providers.test_models_json import _reader, _world

CANARY = "sk-canary-0123456789"

ECHOES = [
    FakeResponse(status=401, body=(f'{{"error": {{"message": "Incorrect API key: {CANARY}"}}}}'.encode(),)),
    FakeResponse(status=502, body=(f"proxy saw Bearer {CANARY}".encode(),)),
    FakeResponse(body=(f'data: {{"error": {{"message": "key {CANARY}"}}}}\n\n'.encode(),)),
    FakeResponse(body=(json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": CANARY}]}).join(["data: ", "\n\n"]).encode(),)),
    HttpFailed("broken", f"ReadError: {CANARY}"),
]


@pytest.mark.parametrize("answer", ECHOES)
@pytest.mark.parametrize("place", ["key", "header", "request header", "url"])
async def test_secret_that_comes_back_is_cut_out_of_the_error(answer: FakeResponse | HttpFailed, place: str) -> None:
    model = local_model(f"http://user:{CANARY}@model.test/v1" if place == "url" else "http://model.test/v1")
    key = CANARY if place == "key" else "other-test-key"
    headers = {"X-Api-Key": CANARY} if place == "header" else {}
    options = RequestOptions(headers=FrozenDict({"Authorization": f"Bearer {CANARY}"} if place == "request header" else {}))

    provider = completions(FakeHttp([answer]), model, key=key, headers=headers)
    asked = await ask(provider, options=options)

    assert asked.message is not None
    assert asked.message.stop_reason == "error"
    assert CANARY not in str(asked.message.error_message)
    assert CANARY not in repr(asked.items)


def test_reprs_show_no_secret() -> None:
    models = {
        "providers": {
            "local": {
                "baseUrl": f"http://user:{CANARY}@host/v1",
                "api": "openai-completions",
                "apiKey": CANARY,
                "headers": {"Authorization": CANARY},
                "models": [{"id": "m", "headers": {"X-Key": CANARY}}],
            }
        }
    }
    settings = ProviderSettings(read=_reader(models=models, auth={"local": {"type": "api_key", "key": CANARY}}))

    providers = load_providers("/agent", {"OPENAI_API_KEY": CANARY}, _world(), settings)

    shown = [repr(providers), *[repr(provider.models) for provider in providers], repr(Auth(api_key=CANARY, headers={"a": CANARY}))]
    assert [text for text in shown if CANARY in text] == []


def test_malformed_file_does_not_show_its_keys() -> None:
    models = {"providers": {"local": {"baseUrl": 7, "apiKey": [CANARY], "headers": {"a": [CANARY]}}}}

    with pytest.raises(ModelsFileError) as caught:
        load_providers("/agent", {}, _world(), ProviderSettings(read=_reader(models=models)))

    assert CANARY not in str(caught.value)
    assert "providers.local.apiKey" in str(caught.value)


async def test_password_of_a_url_is_sent_as_basic_authorization_and_nowhere_else() -> None:
    async with scripted_server(Reply(body=(b"data: [DONE]\n\n",))) as server:
        http = RealHttp()
        model = local_model(f"{server.base_url.replace('http://', 'http://user:pass%20word@')}/v1")
        await ask(completions(http, model, key=None))
        await http.aclose()

    request = server.requests[0]
    assert request.headers["authorization"] == "Basic dXNlcjpwYXNzIHdvcmQ="
    assert request.headers["host"] == f"127.0.0.1:{server.port}"
    assert request.path == "/v1/chat/completions"
