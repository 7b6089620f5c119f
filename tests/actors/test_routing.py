"""Requests of a virtual model: why the router is asked, what it is told, and where the request goes."""

from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.api import Route, RouteRequest
from camshaft.extensions_std.providers.scripted import assistant, tool_call
from camshaft.kernel.settings import RetrySettings, Settings
from tests.actors.compacting import failed
from tests.actors.routing import LARGE, SMALL, Asked, always, answers, entries, models_asked, registering, routed, scripted, selected, told
from tests.actors.running import opened, simulate, tool
from tests.actors.small_run import OK

RETRY = Settings(retry=RetrySettings(max_retries=2, base_delay_ms=1000), default_thinking_level="off")


# -- why, and what the router is told -------------------------------------------------------


@pytest.mark.rule("VM-6", "VM-7", "VM-8", "VM-5")
def test_every_request_is_routed_with_its_reason_and_answered_by_a_physical_model() -> None:
    router = Asked(lambda request, _ctx: Route(model=SMALL if request.reason == "continuation" else LARGE))
    script = [assistant([tool_call("work", {}, id="t")], stop_reason="toolUse"), assistant("end"), assistant("next")]

    asked, seen = told(
        script,
        router,
        "go",
        "again",
        tools=[tool(lambda *_: OK)],
        look=lambda running: (models_asked(running), (answers(running), selected(running))),
    )

    assert router.reasons == ["user", "continuation", "user"]
    assert router.previous == [None, "large", "small"]
    assert asked == ["large", "small", "large"]
    assert seen == (
        [("faux", "faux/large", "toolUse", None), ("faux", "faux/small", "stop", None), ("faux", "faux/large", "stop", None)],
        "auto/best",
    )


@pytest.mark.rule("VM-6")
def test_the_router_sees_the_selected_pair_and_the_conversation_with_its_system_message() -> None:
    router = always("large")

    told([assistant("ok")], router, "go", fields={"thinking_levels": ["off", "high"]}, thinking_level="high")

    request = router.requests[0]
    assert (request.model.reference, request.thinking_level, request.failed, request.state) == ("auto/best", "high", None, None)
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.signal.cancelled is False


@pytest.mark.rule("VM-7")
def test_a_message_of_an_extension_alone_is_a_continuation_and_behind_a_prompt_it_changes_nothing() -> None:
    router = always("large")

    def setup(api: Any) -> None:
        api.on("session_start", lambda *_: api.send_message({"custom_type": "n", "content": "note"}, trigger_turn=True))
        api.on("before_agent_start", lambda *_: {"message": {"custom_type": "n", "content": "more"}})

    async def test() -> None:
        async with routed([assistant("one"), assistant("two")], router, setup) as running:
            await running.seat.wait_idle()
            await running.seat.prompt("go")

    simulate(test)

    assert router.reasons == ["continuation", "user"]


@pytest.mark.rule("VM-6", "VM-7", "RTY-12")
def test_a_retry_is_routed_with_the_answer_that_failed_also_if_somebody_spoke_meanwhile() -> None:
    router = Asked(lambda request, _ctx: {"model": "faux/small" if request.reason == "retry" else "faux/large"})

    async def test() -> list[str]:
        script = [assistant("one"), failed("503 unavailable"), assistant("ok"), assistant("more")]
        async with routed(script, router, settings=RETRY) as running:
            await running.seat.prompt("first")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(running.seat.prompt, "go")
                await trio.sleep(0.5)
                await running.seat.steer("hurry")
            return models_asked(running)
        raise AssertionError

    asked = simulate(test)

    assert asked == ["large", "large", "small"]
    assert router.reasons == ["user", "user", "retry"]
    failure = router.requests[2].failed
    assert failure is not None
    assert (failure.model, failure.thinking_level, failure.message.error_message) == (LARGE, "off", "503 unavailable")
    assert router.previous[2] == "large"


@pytest.mark.rule("VM-7")
def test_what_is_asked_after_a_retry_was_called_off_is_no_retry() -> None:
    router = always("large")

    async def test() -> None:
        script = [failed("503 unavailable"), assistant("ok"), assistant("ok")]
        async with routed(script, router, settings=RETRY) as running, trio.open_nursery() as nursery:
            nursery.start_soon(running.seat.prompt, "go")
            await trio.sleep(0.5)
            await running.seat.follow_up("something else")
            running.seat.cancel_retry()

    simulate(test)

    assert router.reasons == ["user", "user", "user"]
    assert [request.failed for request in router.requests] == [None, None, None]


# -- where it goes --------------------------------------------------------------------------


@pytest.mark.rule("VM-8")
def test_the_catalogues_own_record_is_asked_and_the_level_is_clamped_to_it() -> None:
    forged = attrs.evolve(LARGE, base_url="http://elsewhere", context_window=1)

    requests, levels = told(
        [assistant("ok"), assistant("ok")],
        Asked(lambda request, _ctx: Route(model=forged if len(request.messages) == 2 else SMALL, thinking_level="max")),
        "one",
        "two",
        look=lambda running: (
            running.provider.requests,
            [m.thinking_level for m in running.seat.context_messages if m.role == "assistant"],
        ),
    )

    assert [request.model for request in requests] == [LARGE, SMALL]
    assert levels == [request.thinking_level for request in requests] == ["high", "off"]


# -- its own context, and the end of a request ------------------------------------------------


@pytest.mark.rule("VM-17", "API-32", "CTXT-2")
def test_the_router_can_look_at_the_session_and_the_models_and_ask_one() -> None:
    async def route(request: RouteRequest, ctx: Any) -> Any:
        models = [model.reference for model in ctx.model_registry.get_available()]
        answer = await ctx.ask_model("easy?", model=ctx.model_registry.find("faux", "small"))
        got.append((models, ctx.model.reference, ctx.signal is not None, answer.content[0].text))
        return {"model": "faux/large"}

    got: list[Any] = []

    seen = told([assistant("yes"), assistant("ok")], route, "go", look=answers)

    assert got == [(["faux/small", "faux/large", "auto/best"], "auto/best", True, "yes")]
    assert seen == [("faux", "faux/large", "stop", None)]


@pytest.mark.rule("VM-11")
def test_a_router_that_asks_its_own_virtual_model_is_told_so_instead_of_going_round_for_ever() -> None:
    async def route(request: RouteRequest, ctx: Any) -> Any:
        await ctx.ask_model("which?")

    seen = told([], route, "go", look=answers)

    assert seen[0][3] == "Virtual model auto/best was asked by its own router; let that name a physical model."


# -- order ---------------------------------------------------------------------------------


@pytest.mark.rule("WIRE-100", "VM-6", "LOOP-15")
def test_routing_comes_before_the_context_handlers_and_what_those_select_counts_next_time() -> None:
    order: list[str] = []

    def route(request: RouteRequest, _ctx: Any) -> Any:
        order.append("route")
        return {"model": "faux/small"}

    def setup(api: Any) -> None:
        async def context(_event: Any, _ctx: Any) -> None:
            order.append("context")
            await api.set_model("faux/large")

        api.on("context", context)

    async def test() -> Any:
        async with routed([assistant("one"), assistant("two")], route, setup) as running:
            await running.seat.prompt("go")
            await running.seat.prompt("go")
            return models_asked(running)
        raise AssertionError

    assert simulate(test) == ["small", "large"]
    assert order == ["route", "context", "context"]


# -- selection -----------------------------------------------------------------------------


@pytest.mark.rule("VM-5", "API-22", "TOOL-71")
def test_selecting_one_is_recorded_clamps_the_level_and_is_what_everybody_sees() -> None:
    seen: list[Any] = []

    def work(*given: Any) -> Any:
        ctx = given[-1]
        seen.append((ctx.model.reference, ctx.thinking_level))
        return OK

    async def test() -> Any:
        script = [assistant([tool_call("work", {}, id="t")]), assistant("ok")]
        setup = registering(always("large"), thinking_levels=["off", "low"])
        async with opened(script, setup, tools=[tool(work)], provider=scripted(), model="large", thinking_level="high") as running:
            assert await running.seat.set_model("auto/best")
            await running.seat.prompt("go")
            chosen = [(entry.provider, entry.model_id) for entry in entries(running) if entry.type == "model_change"]
            return chosen, running.seat.thinking_level, models_asked(running)
        raise AssertionError

    assert simulate(test) == ([("faux", "large"), ("auto", "best")], "low", ["large", "large"])
    assert seen == [("auto/best", "low")]
