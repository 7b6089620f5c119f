"""A llama.cpp server on the command line: its models are there when one of them is chosen, and for the list."""

import json

import pytest

from tests.extensions_std.frontends.command import Place, camshaft, says
from tests.extensions_std.providers.sse_server import Received, Reply, scripted_server

LISTED = {"data": [{"id": "org/small:Q4", "status": {"value": "loaded"}}, {"id": "other", "status": {"value": "unloaded"}}]}
DETAILS = {"default_generation_settings": {"n_ctx": 4096}, "chat_template": ""}


def router(request: Received) -> Reply:
    """What a router answers."""
    if request.method == "POST":
        return says("Hello.")
    body = json.dumps(LISTED if request.path == "/models" else DETAILS).encode()
    return Reply(headers=(("content-type", "application/json"),), body=(body,))


def silent(request: Received) -> Reply:
    """A host that takes requests and says nothing."""
    return says("Hello.") if request.method == "POST" else Reply(status=0)


@pytest.mark.slow
@pytest.mark.rule("MOD-101", "MOD-90", "MOD-97")
@pytest.mark.parametrize("words", [("--model", "llama-cpp/org/small:Q4"), ("--provider", "llama-cpp", "--model", "small"), ()])
async def test_a_model_of_the_server_is_chosen_at_the_start(words: tuple[str, ...], where: Place) -> None:
    async with scripted_server(choose=router) as server:
        ended = await camshaft(where, *words, "hi", LLAMA_BASE_URL=server.base_url)

    assert (ended.code, ended.out) == (0, "Hello.\n")
    (asked,) = [request for request in server.requests if request.method == "POST"]
    body = json.loads(asked.body)
    assert (asked.path, body["model"], asked.headers["authorization"]) == ("/v1/chat/completions", "org/small:Q4", "Bearer local")
    assert "store" not in body
    assert 0 < body["max_tokens"] <= 4096


@pytest.mark.slow
@pytest.mark.rule("MOD-101", "EXT-23")
async def test_its_models_are_listed(where: Place) -> None:
    async with scripted_server(choose=router) as server:
        ended = await camshaft(where, "--list-models", LLAMA_BASE_URL=server.base_url)

    assert [line.split()[:3] for line in ended.out.splitlines()[1:]] == [["llama-cpp", "org/small:Q4", "4.1K"]]


@pytest.mark.slow
@pytest.mark.rule("MOD-43")
async def test_offline_it_is_not_asked(where: Place) -> None:
    async with scripted_server(choose=router) as server:
        ended = await camshaft(where, "--model", "llama-cpp/org/small:Q4", "hi", LLAMA_BASE_URL=server.base_url, CAMSHAFT_OFFLINE="1")

    assert ended.code == 1
    assert server.requests == []


@pytest.mark.slow
async def test_a_server_that_was_named_and_is_not_there_is_told(where: Place) -> None:
    ended = await camshaft(where, "--model", "llama-cpp/m", "hi", LLAMA_BASE_URL="http://127.0.0.1:9")

    assert ended.code == 1
    assert 'Warning: Availability refresh: Provider "llama-cpp": Connection error' in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.slow
async def test_a_server_that_says_nothing_does_not_hold_up_other_models(where: Place) -> None:
    async with scripted_server(choose=silent) as server:
        where.configure(server.base_url)
        ended = await camshaft(where, "--model", "local/m1", "hi", LLAMA_BASE_URL=server.base_url)

    assert (ended.code, ended.out) == (0, "Hello.\n")


@pytest.mark.slow
@pytest.mark.rule("MOD-42", "PRV-17")
async def test_what_was_found_last_is_known_after_a_restart_without_the_server(where: Place) -> None:
    async with scripted_server(choose=router) as server:
        await camshaft(where, "--list-models", LLAMA_BASE_URL=server.base_url)
    url = "http://127.0.0.1:9"

    later = await camshaft(where, "--list-models", LLAMA_BASE_URL=url, CAMSHAFT_OFFLINE="1")

    kept = where.agent_dir / "model-lists.json"
    assert [line.split()[:3] for line in later.out.splitlines()[1:]] == [["llama-cpp", "org/small:Q4", "4.1K"]]
    assert json.loads(kept.read_text())["llama-cpp"]["models"][0]["id"] == "org/small:Q4"
    assert kept.stat().st_mode & 0o777 == 0o600
