"""A key is nowhere but in the request it belongs to: a canary in every place, through every API, on success and every failure.

What is searched: every file that was written, standard output and error, logs, all events and diagnostics as text and as JSON,
the stored messages, what extensions are told, and every exception that was raised, with its causes and contexts. Not searched
is what a handler asks for as it came over the wire: the headers and events of a reply.
"""

import base64
import json
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import attrs
import pytest
import trio

from camshaft.actors.api import ExtensionAPI, RequestOptions, encode
from camshaft.actors.host import InlineExtension, NewSession, OpenOptions, ProviderFailed, Settings, open_kernel
from camshaft.actors.ports.http import Http, HttpRequest, HttpResponse, RealHttp
from camshaft.actors.world import real_world
from camshaft.extensions_std.providers.models_json import LoadedProviders, ProviderSettings, load_all
from camshaft.extensions_std.providers.models_schema import ModelsFileError
from camshaft.extensions_std.providers.provider_keys import ProcessKeys
from camshaft.extensions_std.providers.registered import provider_builder
from camshaft.extensions_std.providers.transport import TransportLimits
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from camshaft.kernel.settings import RetrySettings
from tests.extensions_std.providers.sse_server import Reply, ScriptedServer, Silence, scripted_server

CANARY = "sk-canary/0123+456789"

# -- where the canary is ---------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Place:
    """A place for a secret."""

    provider: Mapping[str, Any] = attrs.field(factory=dict)
    """Fields of the provider's entry."""
    model: Mapping[str, Any] = attrs.field(factory=dict)
    stored: Mapping[str, Any] | None = None
    given: str | None = None
    environment: Mapping[str, str] = attrs.field(factory=dict)
    url: Callable[[str], str] = lambda url: url
    config: Mapping[str, Any] | None = None
    """What an extension registers over the entry."""


PLACES = {
    "key": Place(provider={"apiKey": CANARY}),
    "key of a variable": Place(provider={"apiKey": "$ACME"}, environment={"ACME": CANARY}),
    "key of a command": Place(provider={"apiKey": "!printenv ACME; echo $ACME >&2"}, environment={"ACME": CANARY}),
    "key and bearer": Place(provider={"apiKey": CANARY, "authHeader": True}),
    "stored key": Place(stored={"type": "api_key", "key": CANARY}),
    "stored command": Place(stored={"type": "api_key", "key": "!printenv ACME"}, environment={"ACME": CANARY}),
    "stored variable": Place(stored={"type": "api_key", "key": "$ACME", "env": {"ACME": CANARY}}),
    "key of the process": Place(given=CANARY),
    "header": Place(provider={"apiKey": "other-key", "headers": {"X-Team": CANARY}}),
    "bearer header": Place(provider={"headers": {"Authorization": f"Bearer {CANARY}"}}),
    "header of the model": Place(
        provider={"apiKey": "other-key"}, model={"headers": {"X-Api-Token": "$ACME"}}, environment={"ACME": CANARY}
    ),
    "password of the url": Place(url=lambda url: url.replace("://", f"://user:{quote(CANARY, safe='')}@")),
    "query of the url": Place(url=lambda url: f"{url}?token={quote(CANARY, safe='')}"),
    "key of an extension": Place(config={"api_key": CANARY}),
    "header of an extension": Place(config={"api_key": "other-key", "headers": {"X-Team": CANARY}}),
}

# -- what happens to the request ---------------------------------------------------------


def _events(*events: Mapping[str, Any], end: bytes = b"") -> Reply:
    named = [f"event: {event['type']}\n" if "type" in event else "" for event in events]
    return Reply(body=(*[f"{name}data: {json.dumps(event)}\n\n".encode() for name, event in zip(named, events, strict=True)], end))


RESPONSE = {"id": "r", "status": "completed", "output": [], "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}
FINE: Mapping[str, Reply] = {
    "openai-completions": _events(
        {"id": "r", "choices": [{"index": 0, "delta": {"content": "fine"}, "finish_reason": "stop"}]}, end=b"data: [DONE]\n\n"
    ),
    "openai-responses": _events(
        {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
        {"type": "response.completed", "response": RESPONSE},
    ),
    "anthropic-messages": _events(
        {"type": "message_start", "message": {"id": "r", "usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ),
}
ECHO = f"you sent Bearer {CANARY}, or {quote(CANARY, safe='')}"
ECHOED: Mapping[str, Reply] = {
    "openai-completions": _events({"error": {"message": ECHO}}),
    "openai-responses": _events({"type": "response.failed", "response": {"id": "r", "error": {"code": "x", "message": ECHO}}}),
    "anthropic-messages": _events({"type": "error", "error": {"type": "x", "message": ECHO}}),
}
FAILURES: Mapping[str, Reply | Mapping[str, Reply] | str] = {
    "success": FINE,
    "unauthorized": Reply(status=401, body=(json.dumps({"error": {"message": ECHO}}).encode(),)),
    "page of a proxy": Reply(status=502, body=(f"<p>{ECHO}</p>".encode(),)),
    "redirect": Reply(status=302, headers=(("location", "http://127.0.0.1:1"),), body=(ECHO.encode(),)),
    "error event": ECHOED,
    "malformed event": Reply(body=(f"data: {{{ECHO}\n\n".encode(),)),
    "cut": Reply(body=(b": \n\n",), end="cut"),
    "silence": Reply(body=(Silence(),)),
    "refused": "http://127.0.0.1:1/v1",
    "unknown host": "http://camshaft-canary.invalid/v1",
    "no url": "ht!tp://host:port/v1",
    "broken url": "http://[::1/v1",
}


@attrs.define(eq=False)
class Spy:
    """HTTP that remembers what was raised."""

    http: Http
    raised: list[BaseException] = attrs.field(factory=list)

    async def aclose(self) -> None:
        """Closes what it stands before."""
        await self.http.aclose()

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[HttpResponse, None]:
        """As the one behind it."""
        try:
            async with self.http.stream(request) as response:
                yield response
        except Exception as error:
            self.raised.append(error)
            raise


def _chain(error: BaseException | None) -> Iterator[str]:
    """Everything that the error and what lies below it shows."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield f"{each!r} {each} {each.args!r}"
        waiting += [each.__cause__, each.__context__]


@attrs.define
class Seen:
    """Everything that anybody could see."""

    texts: list[str] = attrs.field(factory=list)

    def shows(self) -> list[str]:
        """What of it has the canary, in any of its spellings."""
        spellings = (CANARY, quote(CANARY), quote(CANARY, safe=""), json.dumps(CANARY)[1:-1], "0123+456789", "0123%2B456789")
        return [text for text in self.texts if any([each in text for each in spellings])]


async def _run(folder: Path, place: Place, api: str, url: str, seen: Seen) -> str | None:
    """A prompt in a session on disk; the error of its answer."""
    entry = {"baseUrl": place.url(url), "api": api, "models": [{"id": "m", **place.model}], **place.provider}
    agent = folder / "agent"
    agent.mkdir()
    (agent / "models.json").write_text(json.dumps({"providers": {"acme": entry}}), encoding="utf-8")
    stored = {} if place.stored is None else {"acme": place.stored}
    (agent / "auth.json").write_text(json.dumps(stored), encoding="utf-8")
    spy = Spy(RealHttp())
    world = attrs.evolve(real_world({"PATH": "/usr/bin:/bin", **place.environment}), http=spy)
    limits = TransportLimits(idle_timeout_s=0.2, max_retries=0)
    settings = ProviderSettings(limits=limits, keys=ProcessKeys({} if place.given is None else {"acme": place.given}))
    loaded = load_all(agent, world.environment, world, settings, seen.texts.append)

    def setup(extension: ExtensionAPI) -> None:
        if place.config is not None:
            extension.register_provider("acme", dict(place.config))

        async def told(_event: object, ctx: Any) -> None:
            registry = ctx.model_registry
            auth = await registry.get_api_key_and_headers(ctx.model)
            seen.texts += [repr(each) for each in (auth, registry, registry.get_all(), registry.get_provider("acme"), registry.get_error())]

        extension.on("session_start", told)
        for event in ("before_provider_request", "message_end", "turn_end", "agent_end"):
            extension.on(event, lambda event, _ctx: seen.texts.append(repr(event)))

    async with open_kernel(world=world) as kernel:
        options = OpenOptions(
            cwd=str(folder),
            agent_dir=str(agent),
            session=NewSession(directory=str(folder / "sessions")),
            settings=Settings(retry=RetrySettings(enabled=False)),
            providers=loaded.providers,
            build_provider=provider_builder(world, settings, loaded),
            extensions=(InlineExtension(name="x", setup=setup),),
            model="acme/m",
        )
        seat = await kernel.open(options)
        seat.subscribe(lambda event: seen.texts.extend([repr(event), json.dumps(encode(event))]))
        await seat.prompt("hello")
        last = seat.context_messages[-1]
        seen.texts += [repr(options), repr(seat.providers), repr(seat.diagnostics), repr(seat.state), json.dumps(encode(seat.model))]
        seen.texts += [repr(loaded), repr(loaded.ring), repr(loaded.keys), repr(settings)]
    for error in spy.raised:
        seen.texts += _chain(error)
    seen.texts += _written(folder)
    return getattr(last, "error_message", None)


def _written(folder: Path) -> list[str]:
    """Names and contents of what a session leaves; the files of the user are where the canary comes from."""
    written = [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "agent"]
    assert written
    return [f"{path} {path.read_text(encoding='utf-8', errors='replace')}" for path in written]


def _reached(server: ScriptedServer) -> bool:
    """Whether the canary arrived where it belongs."""
    sent = "\n".join([f"{each.path}\n{each.headers}" for each in server.requests])
    basic = base64.b64encode(f"user:{CANARY}".encode()).decode()
    return any([each in sent for each in (CANARY, quote(CANARY, safe=""), basic)])


EVERYWHERE = ("key", "header", "password of the url", "query of the url")
"""Places that every API is tried with; the others are the same to all of them."""
CASES = [(place, failure, api) for api in WIRE_APIS for failure in FAILURES for place in PLACES]
CASES = [case for case in CASES if case[2] == "openai-completions" or case[0] in EVERYWHERE]


@pytest.mark.parametrize(("place", "failure", "api"), CASES)
async def test_the_canary_is_seen_nowhere(
    place: str, failure: str, api: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    seen, given = Seen(), FAILURES[failure]
    with trio.fail_after(30):
        if isinstance(given, str):
            error = await _run(tmp_path, PLACES[place], api, given, seen)
        else:
            async with scripted_server(given if isinstance(given, Reply) else given[api]) as server:
                error = await _run(tmp_path, PLACES[place], api, f"{server.base_url}/v1", seen)
                assert _reached(server)
    seen.texts += [*capfd.readouterr(), caplog.text]

    assert (error is None) is (failure == "success"), error
    assert seen.shows() == []


@pytest.mark.parametrize("api", WIRE_APIS)
async def test_a_key_that_cannot_be_sent_is_not_shown(api: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    seen = Seen()

    async with scripted_server(FINE[api]) as server:
        error = await _run(tmp_path, Place(provider={"apiKey": f"{CANARY}\nx"}), api, f"{server.base_url}/v1", seen)

    assert "cannot be sent" in str(error)
    assert Seen([*seen.texts, *capfd.readouterr()]).shows() == []


# -- what is wrong before there is a request -----------------------------------------------


def _loading(folder: Path, models: str = '{"providers": {}}', auth: str = "{}") -> LoadedProviders:
    (folder / "models.json").write_text(models, encoding="utf-8")
    (folder / "auth.json").write_text(auth, encoding="utf-8")
    return load_all(folder, {}, real_world({}))


MALFORMED = {
    "models: no JSON": {"models": f'{{"providers": {{"acme": {{"apiKey": "{CANARY}",,}}}}}}'},
    "models: wrong type": {
        "models": json.dumps({"providers": {"acme": {"baseUrl": 3, "apiKey": [CANARY], "headers": {"X-Team": [CANARY]}}}})
    },
    "models: wrong header": {"models": json.dumps({"providers": {"acme": {"headers": CANARY}}})},
    "models: key in a url of a wrong type": {"models": json.dumps({"providers": {"acme": {"baseUrl": [f"http://u:{CANARY}@h"]}}})},
    "models: no model": {"models": json.dumps({"providers": {"acme": {"apiKey": CANARY}}})},
    "auth: no JSON": {"auth": f'{{"acme": {{"key": "{CANARY}",,}}}}'},
    "auth: no object": {"auth": json.dumps([CANARY])},
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_file_that_is_wrong_does_not_show_its_keys(case: str, tmp_path: Path) -> None:
    with pytest.raises(ModelsFileError) as caught:
        _loading(tmp_path, **MALFORMED[case])

    assert Seen([*_chain(caught.value)]).shows() == []


@pytest.mark.parametrize("key", [f"!echo {CANARY[:2]}{CANARY[2:]} >&2; false", f"a{CANARY}$MISSING"])
async def test_a_key_that_does_not_resolve_shows_no_other_part_of_it(key: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    entry = {"baseUrl": "http://h/v1", "api": "openai-completions", "apiKey": key, "models": [{"id": "m"}]}
    loaded = _loading(tmp_path, json.dumps({"providers": {"acme": entry}}))
    provider = next(each for each in loaded.providers if each.name == "acme")

    with pytest.raises(Exception) as caught:  # noqa: PT011  whatever it is
        await provider.resolve(provider.models[0], RequestOptions())

    shown = Seen([*_chain(caught.value), *capfd.readouterr()]).shows()
    assert shown == [] or key.startswith("!")
    assert [text for text in shown if f"shell command: {key[1:]}" not in text] == []


async def test_storing_a_key_where_it_cannot_be_does_not_show_it(tmp_path: Path) -> None:
    loaded = _loading(tmp_path)
    (tmp_path / "auth.json").write_text(f'{{"acme": "{CANARY}', encoding="utf-8")

    with pytest.raises(ProviderFailed) as caught:
        await loaded.ring.store.put("acme", {"type": "api_key", "key": CANARY})

    assert Seen([*_chain(caught.value), repr(loaded.ring.store)]).shows() == []
