"""What routers remember: entries of the branch, written before the request; and requests that are no part of the conversation."""

from typing import Any

import pytest

from camshaft.actors.api import Route, RouteRequest
from camshaft.actors.host import CommandRefused
from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.extensions_std.providers.scripted import assistant
from camshaft.kernel.messages import Usage
from camshaft.kernel.settings import CompactionSettings, Settings
from tests.actors.compacting import failed
from tests.actors.routing import (
    Asked,
    always,
    answers,
    entries,
    leaf,
    models_asked,
    registering,
    routed,
    scripted,
    selected,
    states,
    window,
)
from tests.actors.running import opened, simulate

ROOMY = Settings(compaction=CompactionSettings(enabled=False, keep_recent_tokens=2), default_thinking_level="off")
TIGHT = Settings(compaction=CompactionSettings(reserve_tokens=1000, keep_recent_tokens=2), default_thinking_level="off")
FULL = Usage(input=1490, output=10, total_tokens=1500)
"""More than the small model takes, with the reserve; little for the large one."""


def giving(*given: Any) -> Asked:
    """A router that gives these states, one after the other, then none."""
    left = list(given)
    return Asked(lambda _request, _ctx: Route(model="faux/large", state=left.pop(0) if left else None))


def stated(router: Asked, count: int) -> list[Any]:
    """The states in the session after so many prompts."""

    async def test() -> Any:
        async with routed([assistant("ok")] * count, router) as running:
            for _ in range(count):
                await running.seat.prompt("go")
            return [data["state"] for data in states(running)]
        raise AssertionError

    found: list[Any] = simulate(test)
    return found


@pytest.mark.rule("VM-12", "SES-31")
def test_what_a_router_gives_is_an_entry_before_the_request_and_is_there_next_time() -> None:
    router = giving({"n": 1})

    async def test() -> Any:
        def answer(_request: Any) -> Any:
            seen.append([entry.type for entry in entries(running)][-2:])
            return assistant("ok")

        seen: list[Any] = []
        async with routed([answer, assistant("ok")], router) as running:
            await running.seat.prompt("go")
            await running.seat.prompt("again")
            told = [event.entry.custom_type for event in running.heard if event.type == "entry_appended"]
            return seen, states(running), told
        raise AssertionError

    seen, stored, told = simulate(test)

    assert seen == [["message", "custom"]]
    assert stored == [{"provider": "auto", "modelId": "best", "state": {"n": 1}}]
    assert told == ["pi.virtual-model-state"]
    assert router.states == [None, {"n": 1}]


@pytest.mark.rule("VM-12", "SES-60")
def test_the_state_is_on_disk_when_the_request_leaves_and_stays_if_that_fails() -> None:
    files = MemoryLogFiles()

    async def test() -> Any:
        def answer(_request: Any) -> Any:
            photo = files.photo()
            synced.append([inode.content[: inode.synced].count(b"pi.virtual-model-state") for inode in photo.inodes.values()])
            raise RuntimeError("the model is gone")

        synced: list[Any] = []
        async with routed([answer], giving({"n": 1}), files=files) as running:
            await running.seat.prompt("go")
            return synced, states(running), answers(running)
        raise AssertionError

    synced, stored, seen = simulate(test)

    assert sum(synced[0]) > 0
    assert [data["state"] for data in stored] == [{"n": 1}]
    assert seen == [("faux", "faux/large", "error", "the model is gone")]


UNCHANGED: dict[str, Any] = {"nothing": None, "the same text": "a", "the same number": 1, "the same boolean": True}


@pytest.mark.rule("VM-12")
@pytest.mark.parametrize("state", UNCHANGED.values(), ids=UNCHANGED)
def test_nothing_and_an_equal_text_number_or_boolean_are_no_news(state: Any) -> None:
    assert stated(giving(state, state), 2) == [state] * (state is not None)


NEWS: dict[str, tuple[Any, Any]] = {
    "an equal object": ({"n": 1}, {"n": 1}),
    "an equal list": ([1], [1]),
    "another text": ("a", "b"),
    "a number for a boolean": (True, 1),
    "another kind": ("1", 1),
}


@pytest.mark.rule("VM-12")
@pytest.mark.parametrize(("first", "second"), NEWS.values(), ids=NEWS)
def test_what_is_made_anew_is_stored_also_if_it_is_equal(first: Any, second: Any) -> None:
    assert len(stated(giving(first, second), 2)) == 2


@pytest.mark.rule("VM-12")
def test_the_state_that_was_handed_out_is_frozen_and_no_news_when_it_comes_back() -> None:
    def route(request: RouteRequest, _ctx: Any) -> Route:
        if request.state is None:
            return Route(model="faux/large", state=mine)
        with pytest.raises(TypeError):
            request.state["seen"].append(2) if isinstance(request.state["seen"], list) else request.state.update(n=2)
        return Route(model="faux/large", state=request.state)

    mine: dict[str, Any] = {"seen": [1]}
    router = Asked(route)

    assert stated(router, 3) == [{"seen": (1,)}]
    mine["seen"].append(2)
    assert router.states == [None, {"seen": (1,)}, {"seen": (1,)}]


@pytest.mark.rule("VM-12")
def test_the_state_belongs_to_its_branch_and_its_virtual_model() -> None:
    router, other = giving("first", "second"), always("large")

    def setup(api: Any) -> None:
        api.register_virtual_model({"provider": "auto", "id": "other", "name": "Other", "route": other})

    async def test() -> None:
        async with routed([assistant("ok")] * 6, router, setup) as running:
            await running.seat.prompt("one")
            branch = leaf(running)
            await running.seat.prompt("two")
            await running.seat.prompt("three")
            await running.seat.navigate_tree(branch)
            await running.seat.prompt("two, otherwise")
            await running.seat.set_model("auto/other")
            await running.seat.prompt("four")

    simulate(test)

    assert router.states == [None, "first", "second", "first"]
    assert other.states == [None]


@pytest.mark.rule("VM-12", "VM-16")
def test_the_state_is_there_after_the_session_was_opened_again_and_in_a_fork() -> None:
    files, router, later = MemoryLogFiles(), giving({"n": 1}), always("large")

    async def test() -> Any:
        async with routed([assistant("ok")], router, files=files) as running:
            await running.seat.prompt("go")
        async with opened([assistant("ok")] * 2, registering(later), provider=scripted(), files=files) as running:
            chosen = selected(running)
            await running.seat.prompt("again")
            await running.seat.clone()
            await running.seat.prompt("and again")
            return chosen
        raise AssertionError

    assert simulate(test) == "auto/best"
    assert later.states == [{"n": 1}, {"n": 1}]


# -- compaction, and other requests beside the conversation ---------------------------------


@pytest.mark.rule("VM-14", "CMP-14", "VM-12", "VM-11", "RTY-31")
def test_what_is_too_large_for_the_routed_model_is_compacted_after_routing_and_not_routed_again() -> None:
    def route(request: RouteRequest, _ctx: Any) -> Route:
        if request.reason == "direct":
            return Route(model="faux/large", state="of a summary")
        return Route(model="faux/small" if len(request.messages) > 4 else "faux/large", state=f"after {len(router.requests)}")

    router = Asked(route)

    async def test() -> Any:
        script = [assistant("one"), assistant("two", usage=FULL), assistant("the summary"), assistant("three")]
        async with routed(script, router, settings=TIGHT) as running:
            for text in ("a", "b", "long enough to be kept alone"):
                await running.seat.prompt(text)
            order = [each.type for each in entries(running) if each.type in ("custom", "compaction")]
            reasons = [event.reason for event in running.heard if event.type == "compaction_start"]
            return models_asked(running), order, reasons, len(running.provider.requests[-1].messages)
        raise AssertionError

    asked, order, reasons, sent = simulate(test)

    assert router.reasons == ["user", "user", "user", "direct"]
    assert router.states == [None, "after 1", "after 2", None]
    assert [message.role for message in router.requests[3].messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert asked == ["large", "large", "large", "small"]
    assert order == ["custom", "custom", "custom", "compaction"]
    assert (reasons, sent) == (["threshold"], 3)


@pytest.mark.rule("VM-12", "VM-15", "CMP-14")
def test_the_state_survives_a_compaction_and_the_window_of_who_answered_counts() -> None:
    router = giving({"n": 1})

    async def test() -> Any:
        script = [assistant("one"), assistant("two", usage=FULL), assistant("the summary"), assistant("three")]
        async with routed(script, router, settings=ROOMY, fields={"context_window": 1000}) as running:
            await running.seat.prompt("a")
            await running.seat.prompt("b")
            counted = await window(running)
            await running.seat.compact()
            await running.seat.prompt("c")
            return counted
        raise AssertionError

    assert simulate(test) == (100_000, 1500)
    assert router.states == [None, {"n": 1}, None, {"n": 1}]


@pytest.mark.rule("VM-15")
def test_without_an_answer_the_declared_window_counts_and_none_is_unknown() -> None:
    async def declared(**fields: Any) -> Any:
        async with routed([], always("large"), fields=fields) as running:
            return await window(running)
        raise AssertionError

    assert simulate(lambda: declared(context_window=7000)) == (7000, 0)
    assert simulate(declared) is None


@pytest.mark.rule("VM-15", "RTY-22", "CMP-53")
def test_an_overflow_of_the_routed_model_is_recovered_from_and_asked_for_again_as_a_retry() -> None:
    router = Asked(lambda request, _ctx: {"model": "faux/large" if request.reason in ("retry", "direct") else "faux/small"})

    async def test() -> Any:
        script = [
            assistant("one"),
            assistant("two"),
            failed("prompt is too long: 9000 tokens > 2000 maximum"),
            assistant("sum"),
            assistant("of the turn"),
            assistant("three"),
        ]
        async with routed(script, router, settings=TIGHT) as running:
            for text in ("a", "b", "long enough to be kept alone"):
                await running.seat.prompt(text)
            return models_asked(running), answers(running)[-1]
        raise AssertionError

    asked, last = simulate(test)

    assert router.reasons == ["user", "user", "user", "direct", "direct", "retry"]
    assert router.requests[5].failed is not None
    assert asked == ["small", "small", "small", "large", "large", "large"]
    assert last == ("faux", "faux/large", "stop", None)


@pytest.mark.rule("VM-11", "SES-26")
def test_what_an_extension_asks_is_routed_with_its_own_messages_and_stored_as_used_by_who_answered() -> None:
    router = giving("never kept")

    def setup(api: Any) -> None:
        async def command(_arguments: str, ctx: Any) -> None:
            got.append(await ctx.ask_model("Why?", system_prompt="Be brief."))

        api.register_command("ask", command)

    got: list[Any] = []

    async def test() -> Any:
        async with routed([assistant("because")], router, setup) as running:
            await running.seat.prompt("/ask")
            return [(entry.provider, entry.model) for entry in entries(running) if entry.type == "usage"], states(running)
        raise AssertionError

    assert simulate(test) == ([("faux", "large")], [])
    request = router.requests[0]
    assert (request.reason, request.previous, request.state) == ("direct", None, None)
    assert [message.role for message in request.messages] == ["system", "user"]
    assert (got[0].provider, got[0].model) == ("faux", "large")


@pytest.mark.rule("VM-11", "CMP-69")
def test_a_branch_summary_is_routed_and_fails_with_its_routing() -> None:
    router = Asked(lambda request, _ctx: {"model": "faux/zzz" if request.reason == "direct" else "faux/large"})

    async def test() -> Any:
        async with routed([assistant("one"), assistant("two")], router) as running:
            await running.seat.prompt("a")
            first = leaf(running)
            await running.seat.prompt("b")
            last = leaf(running)
            with pytest.raises(CommandRefused) as caught:
                await running.seat.navigate_tree(first, summarize=True)
            return str(caught.value), leaf(running) == last
        raise AssertionError

    text = "Branch summarization failed: Virtual model auto/best routed to faux/zzz, which is not a physical model."
    assert simulate(test) == (text, True)


# -- what is selected ------------------------------------------------------------------------


def changes(running: Any) -> list[str]:
    return [f"{entry.provider}/{entry.model_id}" for entry in entries(running) if entry.type == "model_change"]


@pytest.mark.rule("VM-16", "CTX-2")
def test_a_branch_on_which_another_model_was_selected_gets_a_model_change_before_the_run() -> None:
    async def test() -> Any:
        async with opened([assistant("ok")] * 4, registering(always("large")), provider=scripted(), model="faux/small") as running:
            await running.seat.prompt("a")
            first = leaf(running)
            await running.seat.set_model("auto/best")
            await running.seat.prompt("b")
            await running.seat.prompt("c")
            before = changes(running)
            await running.seat.navigate_tree(first)
            await running.seat.prompt("d")
            kinds = [entry.type for entry in running.seat.session.get_branch()][-3:]
            return before, changes(running)[len(before) :], kinds, selected(running)
        raise AssertionError

    assert simulate(test) == (["faux/small", "auto/best"], ["auto/best"], ["model_change", "message", "message"], "auto/best")


@pytest.mark.rule("VM-16", "VM-9")
@pytest.mark.parametrize(
    ("script", "is_registered", "chosen"),
    [
        pytest.param([assistant("ok")], True, "auto/best", id="still registered"),
        pytest.param([assistant("ok")], False, "faux/large", id="gone, and somebody answered"),
        pytest.param([], False, "faux/small", id="gone, and nobody answered"),
    ],
)
def test_a_session_goes_on_with_the_virtual_model_as_long_as_it_is_registered(script: Any, is_registered: bool, chosen: str) -> None:
    files = MemoryLogFiles()
    router = always("large" if script else "zzz")

    async def test() -> Any:
        async with routed(script, router, files=files) as running:
            await running.seat.prompt("go")
        setups = [registering(router)] if is_registered else []
        async with opened([], *setups, provider=scripted(), files=files) as running:
            return selected(running)
        raise AssertionError

    assert simulate(test) == chosen


@pytest.mark.rule("EXT-51", "PRV-19", "VM-9")
def test_a_reload_that_registers_it_no_more_leaves_a_selection_that_says_so() -> None:
    loads: list[int] = []

    def once(api: Any) -> None:
        loads.append(1)
        if len(loads) == 1:
            registering(always("large"))(api)

    async def test() -> Any:
        async with opened([assistant("ok")], once, provider=scripted(), model="auto/best") as running:
            await running.seat.prompt("a")
            await running.seat.reload()
            await running.seat.prompt("b")
            return answers(running)
        raise AssertionError

    assert simulate(test)[1:] == [("pi-virtual", "auto/best", "error", "Virtual model auto/best is not registered.")]
