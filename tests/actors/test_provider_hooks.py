"""Which request fires which provider hook, and in which order, in a whole session over HTTP (WIRE-100 to WIRE-107)."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from camshaft.actors.host import open_kernel
from camshaft.kernel.messages import AssistantMessage
from tests.actors.compacting import SETTINGS, entries
from tests.actors.running import Running, options, simulate, virtual_world
from tests.extensions_std.providers.asking import FakeHttp, FakeResponse, completions, local_model

HOOKS: Final = ("before_provider_headers", "before_provider_request", "after_provider_response", "provider_stream_event")
SAID: Final = b'data: {"choices": [{"index": 0, "delta": {"content": "fine"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
TALK: Final = ("one", "two", "three")


class Watcher:
    """An extension that writes down every provider hook it is called with."""

    def __init__(self, **answers: Callable[[Any], Any]) -> None:
        self.seen: list[str] = []
        self.ctx: Any = None
        self.answers = answers

    def setup(self, api: Any) -> None:
        for hook in ("context", "context_with_system", *HOOKS):
            api.on(hook, self._handler(hook))

        async def ask(_arguments: str, ctx: Any) -> None:
            await ctx.ask_model("what is it?")

        api.register_command("ask", description="asks a model", handler=ask)

    def _handler(self, hook: str) -> Callable[[Any, Any], Any]:
        def handler(event: Any, _ctx: Any) -> Any:
            self.seen.append(hook)
            return self.answers[hook](event) if hook in self.answers else None

        return handler


def last_answer(running: Running) -> AssistantMessage:
    """The newest message, which is an answer."""
    message = running.seat.context_messages[-1]
    assert isinstance(message, AssistantMessage)
    return message


def in_session(watcher: Watcher, http: FakeHttp, act: Callable[[Running], Awaitable[Any]]) -> Running:
    """A session over HTTP in which `act` is done; what was seen before it is forgotten."""

    async def talk() -> Running:
        provider = completions(http, local_model())
        async with open_kernel(world=virtual_world()) as kernel:
            running = Running(kernel, await kernel.open(options(provider, watcher.setup, settings=SETTINGS)), provider)
            running.seat.subscribe(running.heard.append)
            for text in TALK:
                await running.seat.prompt(text)
            watcher.seen.clear()
            http.requests.clear()
            await act(running)
            return running
        raise AssertionError

    done: Running = simulate(talk)
    return done


@pytest.mark.rule("WIRE-100")
def test_the_hooks_of_a_request_come_in_their_order() -> None:
    watcher = Watcher()

    in_session(watcher, FakeHttp([FakeResponse(body=[SAID])]), lambda running: running.seat.prompt("now"))

    assert watcher.seen == ["context", "context_with_system", *HOOKS]


@pytest.mark.rule("WIRE-101", "WIRE-105")
@pytest.mark.parametrize(
    ("asked", "fired"),
    [
        ("prompt", HOOKS),
        ("compact", HOOKS[:1]),
        ("branch summary", HOOKS[:1]),
        ("an extension's own question", ()),
    ],
)
def test_a_request_fires_the_hooks_of_its_kind(asked: str, fired: tuple[str, ...]) -> None:
    watcher, http = Watcher(), FakeHttp([FakeResponse(body=[SAID])])

    async def act(running: Running) -> None:
        match asked:
            case "prompt":
                await running.seat.prompt("now")
            case "compact":
                await running.seat.compact()
            case "branch summary":
                await running.seat.navigate_tree(entries(running)[3].id, summarize=True)
            case _:
                await running.seat.prompt("/ask")

    in_session(watcher, http, act)

    assert len(http.requests) >= 1
    assert tuple(dict.fromkeys([hook for hook in watcher.seen if hook in HOOKS])) == fired


@pytest.mark.rule("WIRE-102")
def test_a_headers_handler_that_raises_is_reported_and_what_it_did_stays() -> None:
    def handle(event: Any) -> None:
        event.headers["x-mine"] = "1"
        event.headers["user-agent"] = None
        raise ValueError("half done")

    watcher, http = Watcher(), FakeHttp([FakeResponse(body=[SAID])])

    async def act(running: Running) -> None:
        watcher.answers["before_provider_headers"] = handle
        await running.seat.prompt("now")

    running = in_session(watcher, http, act)

    sent = dict(http.requests[-1].headers)
    assert (sent["x-mine"], "user-agent" in sent) == ("1", False)
    assert [error[1:] for error in running.errors()][-1] == ("before_provider_headers", "half done")


@pytest.mark.rule("WIRE-103", "WIRE-104")
@pytest.mark.parametrize("how", ["edited", "returned"])
def test_a_body_may_be_edited_or_returned(how: str) -> None:
    def handle(event: Any) -> Any:
        if how == "returned":
            return {**event.payload, "user": "me", "stream": False}
        event.payload["user"] = "me"
        event.payload["stream"] = False
        return None

    watcher, http = Watcher(before_provider_request=handle), FakeHttp([FakeResponse(body=[SAID])])

    in_session(watcher, http, lambda running: running.seat.prompt("now"))

    assert b'"user":"me"' in http.requests[-1].body
    assert b'"stream":true' in http.requests[-1].body


@pytest.mark.rule("WIRE-104")
def test_a_body_that_is_no_object_fails_the_request_before_it_is_sent() -> None:
    watcher, http = Watcher(), FakeHttp([FakeResponse(body=[SAID])])

    async def act(running: Running) -> None:
        watcher.answers["before_provider_request"] = lambda _event: "text"
        await running.seat.prompt("now")

    running = in_session(watcher, http, act)

    assert http.requests == []
    assert last_answer(running).error_message == "before_provider_request must return an object"


@pytest.mark.rule("WIRE-106")
def test_a_refusal_is_seen_by_the_response_handler() -> None:
    statuses: list[int] = []
    watcher = Watcher(after_provider_response=lambda event: statuses.append(event.status))
    http = FakeHttp([*[FakeResponse(body=[SAID])] * len(TALK), FakeResponse(status=429, headers={"retry-after": "7"}, body=[b"{}"])])

    async def act(running: Running) -> None:
        statuses.clear()
        http.requests += [None] * len(TALK)  # type: ignore[list-item]  # the answers of the talk are behind us
        await running.seat.prompt("now")

    in_session(watcher, http, act)

    assert statuses == [429, 429, 429]  # the request, and two retries of the run


@pytest.mark.rule("WIRE-107")
def test_a_stream_handler_that_raises_changes_nothing() -> None:
    def handle(_event: Any) -> None:
        raise ValueError("no")

    watcher = Watcher(provider_stream_event=handle)

    running = in_session(watcher, FakeHttp([FakeResponse(body=[SAID])]), lambda running: running.seat.prompt("now"))

    assert last_answer(running).stop_reason == "stop"
    assert ("provider_stream_event", "no") in [error[1:] for error in running.errors()]


@pytest.mark.rule("WIRE-22")
@pytest.mark.parametrize(
    ("headers", "hint_ms"),
    [({"retry-after": "90"}, 90_000), ({"retry-after-ms": "1500"}, 1_500), ({"retry-after": "soon"}, None), ({}, None)],
)
def test_the_wait_that_a_server_asks_for_is_a_hint_for_the_host(headers: dict[str, str], hint_ms: int | None) -> None:
    http = FakeHttp([*[FakeResponse(body=[SAID])] * len(TALK), FakeResponse(status=429, headers=headers, body=[b"{}"])])
    hints: list[int | None] = []

    async def act(running: Running) -> None:
        hints.append(running.seat.retry_after_ms)
        http.requests += [None] * len(TALK)  # type: ignore[list-item]  # the answers of the talk are behind us
        await running.seat.prompt("now")
        hints.append(running.seat.retry_after_ms)

    in_session(Watcher(), http, act)

    assert hints == [None, hint_ms]
