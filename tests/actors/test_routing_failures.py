"""Routers that give no route, raise, meddle, hang, or are not there any more: the request ends, the conversation does not."""

from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.api import RouteRequest
from camshaft.actors.host import Limits
from camshaft.extensions_std.providers.scripted import assistant
from camshaft.kernel.settings import RetrySettings, Settings
from tests.actors.routing import SMALL, Asked, always, answers, registering, routed, scripted, states, told
from tests.actors.running import opened, simulate

RETRY = Settings(retry=RetrySettings(max_retries=2, base_delay_ms=1000), default_thinking_level="off")

NO_ROUTES: dict[str, tuple[Any, str]] = {
    "none": (None, "Virtual model auto/best returned no route."),
    "a number": (42, "Virtual model auto/best returned no route."),
    "no model": ({"thinking_level": "off"}, "Virtual model auto/best returned no route."),
    "a bare id": ({"model": "small"}, "Virtual model auto/best returned no route."),
    "a level that is no text": ({"model": "faux/small", "thinking_level": 3}, "Virtual model auto/best returned no route."),
    "an unknown model": ({"model": "faux/zzz"}, "Virtual model auto/best routed to faux/zzz, which is not a physical model."),
    "itself": ({"model": "auto/best"}, "Virtual model auto/best routed to auto/best, which is not a physical model."),
    "no credentials": ({"model": "poor/m"}, "Virtual model auto/best routed to poor/m, which has no credentials."),
    "state that is no JSON": (
        {"model": "faux/small", "state": {"when": {1, 2}}},
        "Virtual model auto/best returned a state that is no JSON: state.when: {1, 2} (set) is not JSON; expected null, "
        "bool, number, text, list or object",
    ),
}


class Poor:
    """A provider without credentials."""

    name = "poor"
    api = "poor"
    models = (attrs.evolve(SMALL, id="m", provider="poor", api="poor"),)

    def configured(self) -> bool:
        return False

    async def stream(self, *_: Any) -> None:
        raise AssertionError("a provider without credentials was asked")


@pytest.mark.rule("VM-9", "VM-13", "LOOP-55")
@pytest.mark.parametrize(("given", "text"), NO_ROUTES.values(), ids=NO_ROUTES)
def test_what_is_no_route_is_an_answer_of_the_virtual_model_with_the_reason(given: Any, text: str) -> None:
    async def test() -> Any:
        async with routed([assistant("never")], lambda *_: given, lambda api: api.register_provider(Poor())) as running:
            await running.seat.prompt("go")
            return answers(running), states(running), running.provider.requests, running.count("agent_settled")
        raise AssertionError

    assert simulate(test) == ([("pi-virtual", "auto/best", "error", text)], [], [], 1)


def raising(request: RouteRequest, _ctx: Any) -> Any:
    raise ValueError("no budget left")


async def raising_later(request: RouteRequest, _ctx: Any) -> Any:
    await trio.sleep(1)
    raise ValueError("no budget left")


def leaving(request: RouteRequest, _ctx: Any) -> Any:
    raise SystemExit(3)


def changing(request: Any, _ctx: Any) -> Any:
    request.reason = "direct"


def changing_messages(request: Any, _ctx: Any) -> Any:
    request.messages[-1].content = "something else"


class Trap:
    """A route that cannot be looked at."""

    @property
    def provider(self) -> str:
        raise RuntimeError("do not look")


FROZEN = "can't set attribute (events, entries and messages cannot be changed; return what is to be changed)"
FOREIGN: dict[str, tuple[Any, str]] = {
    "raises": (raising, "no budget left"),
    "raises later": (raising_later, "no budget left"),
    "ends the program": (leaving, "the extension called sys.exit(3); use ctx.shutdown() to ask the host to end"),
    "changes the request": (changing, FROZEN),
    "changes a message": (changing_messages, FROZEN),
    "gives what raises": (lambda *_: {"model": Trap()}, "do not look"),
}


@pytest.mark.rule("VM-9", "LOOP-55")
@pytest.mark.parametrize(("router", "text"), FOREIGN.values(), ids=FOREIGN)
def test_a_router_that_fails_ends_the_request_and_not_the_conversation(router: Any, text: str) -> None:
    broken = Asked(lambda request, ctx: router(request, ctx) if len(broken.requests) == 1 else {"model": "faux/small"})

    seen, errors = told([assistant("ok")], broken, "one", "two", look=lambda running: (answers(running), running.errors()))

    assert [each[:3] for each in seen] == [("pi-virtual", "auto/best", "error"), ("faux", "faux/small", "stop")]
    assert seen[0][3] == text
    assert errors == []


@pytest.mark.rule("VM-9", "VM-6")
def test_failed_routing_is_nobodys_answer_for_the_router() -> None:
    def route(request: RouteRequest, _ctx: Any) -> Any:
        return {"model": "faux/zzz" if len(router.requests) == 2 else "faux/small"}

    router = Asked(route)

    told([assistant("ok"), assistant("ok")], router, "one", "two", "three")

    assert router.previous == [None, "small", "small"]


@pytest.mark.rule("VM-9", "RTY-1", "LOOP-55")
def test_failed_routing_with_a_text_worth_a_retry_is_routed_again_and_names_no_failed_model() -> None:
    def route(request: RouteRequest, _ctx: Any) -> Any:
        if len(router.requests) == 1:
            raise RuntimeError("503 the classifier is overloaded")
        return {"model": "faux/small"}

    router = Asked(route)

    seen = told([assistant("ok")], router, "go", settings=RETRY, look=answers)

    assert seen == [("faux", "faux/small", "stop", None)]
    assert router.reasons == ["user", "retry"]
    assert router.requests[1].failed is None


@pytest.mark.rule("VM-9")
def test_a_virtual_model_whose_extension_withdrew_it_is_not_registered() -> None:
    async def test() -> Any:
        apis: list[Any] = []
        async with routed([], always("small"), apis.append) as running:
            apis[0].unregister_virtual_model("auto", "best")
            await running.seat.prompt("go")
            return answers(running)
        raise AssertionError

    assert simulate(test) == [("pi-virtual", "auto/best", "error", "Virtual model auto/best is not registered.")]


@pytest.mark.rule("VM-9", "ERR-6")
def test_the_router_of_a_quarantined_extension_is_not_asked() -> None:
    router = always("small")

    def setup(api: Any) -> None:
        registering(router)(api)
        api.on("turn_start", lambda *_: 1 / 0)

    async def test() -> Any:
        script = [assistant("ok")] * 3
        async with opened(script, setup, provider=scripted(), model="auto/best", limits=Limits(strikes_max=2)) as running:
            await running.seat.prompt("one")
            await running.seat.prompt("two")
            return running.seat.quarantined, [each[2:] for each in answers(running)]
        raise AssertionError

    quarantined, seen = simulate(test)

    text = 'Extension "<inline:x0>" is quarantined (2 failures in a row); reload the extensions to use it again.'
    assert quarantined == ("<inline:x0>",)
    assert seen == [("stop", None), ("error", text)]
    assert len(router.requests) == 1


@pytest.mark.rule("VM-17", "ERR-6")
def test_a_router_has_the_time_that_the_host_gives_every_handler() -> None:
    async def test() -> Any:
        async with routed([], hanging, limits=Limits(hook_deadline_s=5)) as running:
            begun = trio.current_time()
            await running.seat.prompt("go")
            return answers(running), trio.current_time() - begun
        raise AssertionError

    seen, taken_s = simulate(test)

    text = "the handler was ended by force, because it did not end within 5 s"
    assert seen == [("pi-virtual", "auto/best", "error", text)]
    assert taken_s == pytest.approx(5)


# -- aborted while it is routed ------------------------------------------------------------


async def hanging(request: RouteRequest, _ctx: Any) -> Any:
    await trio.sleep_forever()


async def deaf(request: RouteRequest, _ctx: Any) -> Any:
    with trio.CancelScope(shield=True):
        await trio.sleep(1000)
    return {"model": "faux/small"}


async def polite(request: RouteRequest, _ctx: Any) -> Any:
    await request.signal.wait()
    return {"model": "faux/small"}


@pytest.mark.rule("VM-17", "LOOP-71", "VM-9")
@pytest.mark.parametrize(
    ("router", "message", "bound_s"),
    [
        pytest.param(hanging, ("pi-virtual", "auto/best", "aborted", "Request was aborted"), 10, id="waits for ever"),
        pytest.param(deaf, ("pi-virtual", "auto/best", "aborted", "Request was aborted"), 12, id="does not hear"),
        pytest.param(polite, ("faux", "faux/small", "aborted", "Request was aborted"), 0, id="goes on as told"),
    ],
)
def test_a_router_ends_with_the_abort_of_its_request(router: Any, message: Any, bound_s: float) -> None:
    async def test() -> Any:
        async with routed([assistant("never")], router) as running:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(running.seat.prompt, "go")
                await trio.sleep(1)
                begun = trio.current_time()
                await running.seat.abort()
            return answers(running), trio.current_time() - begun, running.provider.requests
        raise AssertionError

    seen, taken_s, requests = simulate(test)

    assert (seen, requests) == ([message], [])
    assert taken_s <= bound_s


@pytest.mark.rule("LOOP-63", "VM-6")
def test_after_an_abort_nothing_is_routed() -> None:
    router = always("small")

    async def test() -> Any:
        async with routed([assistant("never")], router, lambda api: api.on("turn_start", lambda _event, ctx: ctx.abort())) as running:
            await running.seat.prompt("go")
            return answers(running)
        raise AssertionError

    assert simulate(test) == [("pi-virtual", "auto/best", "aborted", "Request was aborted")]
    assert router.requests == []
